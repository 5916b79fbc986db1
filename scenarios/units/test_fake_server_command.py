"""The programs `mcp-fake-server` and `mcp-fake-npx` as processes: what they are told, what they say, how they end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import fake_servers
from fake_servers.command import execute, serve
from fake_servers.mcp import Behaviour, Tool
from fake_servers.npm.registry import Package, registry_from
from harness.world import World
from scenarios.worlds import ran

BIN = Path(fake_servers.__file__).parent / "bin"
LIMIT_SECONDS = 20.0
HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "moo"}}
TALK = "".join(f"{json.dumps(message)}\n" for message in (HELLO, CALL))
MOO = {"name": "cow", "tools": [{"name": "moo", "text": "it's 'é'"}]}


def ended(program: str, *words: str, stdin: str = TALK, python: Sequence[str] = ("-IS",), **env: str) -> Any:
    """A program that has run with the standard library alone, in a clean environment."""
    command = [sys.executable, *python, str(BIN / program), *words]
    return finished(command, stdin, env)


def finished(command: Sequence[str], stdin: str, env: dict[str, str], **options: Any) -> Any:
    return subprocess.run(
        command, input=stdin, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False, **options
    )


def said(run: Any) -> tuple[str, str]:
    """The server's name and the text of the call."""
    first, second = (json.loads(line)["result"] for line in run.stdout.splitlines())
    return first["serverInfo"]["name"], second["content"][0]["text"]


def test_a_behaviour_is_json_a_file_or_a_variable_and_else_all_is_well(tmp_path):
    (tmp_path / "cow.json").write_text(json.dumps(MOO))
    (tmp_path / "cow.toml").write_text('name = "cow"\n[[tools]]\nname = "moo"\ntext = "it\'s \'é\'"\n')
    ways: list[tuple[tuple[str, ...], dict[str, str]]] = [
        (("--behaviour", json.dumps(MOO)), {}),
        ((f"--behaviour={tmp_path}/cow.json", "--", "--behaviour", "passed over"), {}),
        (("--behaviour", f"{tmp_path}/cow.toml"), {"MCP_FAKE_BEHAVIOUR": "not looked at"}),
        ((), {"MCP_FAKE_BEHAVIOUR": json.dumps(MOO)}),
        ((), {"MCP_FAKE_BEHAVIOUR": f"{tmp_path}/cow.toml"}),
    ]
    for words, env in ways:
        run = ended("mcp-fake-server", *words, **env)
        assert (said(run), run.stderr, run.returncode) == (("cow", "it's 'é'"), "", 0)
    relative = finished(
        [sys.executable, "-IS", str(BIN / "mcp-fake-server"), "--behaviour", "cow.json"], TALK, {}, cwd=tmp_path
    )
    assert said(relative)[0] == "cow"
    good = ended("mcp-fake-server", stdin=f"{json.dumps(HELLO)}\n")
    assert json.loads(good.stdout)["result"]["serverInfo"] == {"name": "server", "version": "1.0.0"}


MISUSES = [
    (("--nope",), "what is --nope? See --help"),
    (("extra",), "what is extra? See --help"),
    (("--behaviour",), "--behaviour needs a value"),
    (("--behaviour", "{"), "--behaviour: Expecting property name"),
    (("--behaviour", "[1]"), "--behaviour: not a table"),
    (("--behaviour", "/nowhere.json"), "--behaviour /nowhere.json: No such file"),
    (("--behaviour", "/"), "--behaviour /: Is a directory"),
    (("--behaviour", '{"initialize":"maybe"}'), "--behaviour: initialize must be one of answer, never"),
    (("--behaviour", '{"tools":[{}]}'), "--behaviour: a tool needs a name"),
    (("--http",), "--http needs a value"),
    (("--http", "x"), "--http needs a port from 0 to 65535, not 'x'"),
    (("--sse", "65536"), "--sse needs a port"),
    (("--sse", "-1"), "--sse needs a port"),
    (("--http", "0", "--sse", "0"), "one of --http and --sse, once"),
]


@pytest.mark.parametrize(("words", "text"), MISUSES)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(words, text):
    async def body(world: World) -> int:
        return await serve(world, ["mcp-fake-server", *words])

    run = ran(bodies={"server": body})
    assert run.results["server"] == 2
    [line] = run.actors["server"].stderr.lines
    assert line.startswith(f"mcp-fake-server: {text}")


def test_the_process_says_so_too():
    run = ended("mcp-fake-server", "--nope")
    assert (run.returncode, run.stdout, run.stderr) == (2, "", "mcp-fake-server: what is --nope? See --help\n")
    run = ended("mcp-fake-server", MCP_FAKE_BEHAVIOUR="{}x")
    assert (run.returncode, run.stderr) == (
        2,
        "mcp-fake-server: MCP_FAKE_BEHAVIOUR: Extra data: line 1 column 3 (char 2)\n",
    )


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_help_is_printed(word):
    run = ended("mcp-fake-server", word)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("usage: mcp-fake-server ")
    assert all(name in run.stdout for name in ("--behaviour", "--http", "--sse", "--stateless", "MCP_FAKE_BEHAVIOUR"))


def test_a_server_over_stdio_loads_no_event_loop_and_nothing_of_http():
    run = ended("mcp-fake-server", python=("-IS", "-X", "importtime"))
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert "fake_servers.mcp.stdio" in loaded
    assert not loaded & {"asyncio", "http.client", "ssl", "uvicorn", "fake_servers.mcp.http", "pathlib", "argparse"}


@pytest.mark.parametrize(
    ("behaviour", "code"), [({"exits": "on-call", "exit_code": 7}, 7), ({"exits": "at-start", "exit_code": 3}, 3)]
)
def test_a_process_ends_as_the_behaviour_says(behaviour, code):
    run = ended("mcp-fake-server", "--behaviour", json.dumps({**behaviour, "stderr": ["Error: no key"]}))
    assert (run.returncode, run.stderr) == (code, "Error: no key\n")


@contextmanager
def started(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server over HTTP with its URL, ended whatever happens."""
    command = [sys.executable, "-IS", str(BIN / "mcp-fake-server"), *words]
    process = subprocess.Popen(command, env={}, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        yield process, process.stderr.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def post(url: str, message: Any = HELLO) -> httpx.Response:
    return httpx.post(url, json=message, timeout=LIMIT_SECONDS, trust_env=False)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_server_over_http_prints_its_url_and_ends_with_a_signal(name):
    with started("--http", "0", "--behaviour", json.dumps(MOO)) as (process, url):
        answer = post(url)
        assert answer.json()["result"]["serverInfo"]["name"] == "cow"
        assert "Mcp-Session-Id" in answer.headers
        process.send_signal(signal.Signals[name])
        assert process.wait(LIMIT_SECONDS) == 0
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/mcp")


def test_a_server_without_sessions_gives_none():
    with started("--http", "0", "--stateless") as (_, url):
        assert "Mcp-Session-Id" not in post(url).headers


def test_the_older_transport_has_a_server_too_which_ends_with_its_stream_open():
    with started("--sse", "0") as (process, url), httpx.stream("GET", url, timeout=LIMIT_SECONDS) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: endpoint"
        endpoint = httpx.URL(url).join(next(lines).removeprefix("data: "))
        assert post(str(endpoint)).status_code == 202
        assert [next(lines), next(lines)[:6]] == ["", "data: "]
        process.terminate()
        assert process.wait(LIMIT_SECONDS) == 0


def test_a_port_that_is_taken_is_said_in_one_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = ended("mcp-fake-server", "--http", str(port))
    assert run.returncode == 2
    [line] = run.stderr.splitlines()
    assert line.startswith(f"mcp-fake-server: port {port}: Address already in use")


# --- npx --------------------------------------------------------------------------------------------------------------

REGISTRY = {
    "@s/cow": {"version": "1.6.0", "install_seconds": 0.02, "steps": 2, "behaviour": MOO},
    "locked": {"install_seconds": 0, "bin_mode": "0644"},
}


def npx_environment(home: Path, registry: Any = REGISTRY) -> dict[str, str]:
    python = Path(sys.executable).parent
    return {"HOME": str(home), "PATH": f"{BIN}:{python}:/usr/bin:/bin", "MCP_FAKE_REGISTRY": json.dumps(registry)}


def test_npx_installs_a_package_and_is_its_server_and_finds_it_there_again(tmp_path):
    env = npx_environment(tmp_path)
    for _ in range(2):
        run = finished(["npx", "-y", "@s/cow@1.6.0"], TALK, env)
        assert (said(run), run.stderr, run.returncode) == (("cow", "it's 'é'"), "", 0)
    [tree] = (tmp_path / ".npm/_npx").iterdir()
    assert json.loads((tree / "node_modules/@s/cow/package.json").read_text())["version"] == "1.6.0"


def test_the_program_that_npx_installed_serves_whoever_runs_it(tmp_path):
    env = npx_environment(tmp_path)
    finished([str(BIN / "mcp-fake-npx"), "-y", "@s/cow"], "", env)
    [shim] = tmp_path.glob(".npm/_npx/*/node_modules/.bin/cow")
    nodes = {"node", *filter(None, [shutil.which("node", path=os.defpath)])}
    for command in ([str(shim)], *([node, str(shim.resolve())] for node in nodes)):
        run = finished([*command, "--port", "it's"], TALK, env)
        assert (said(run), run.stderr, run.returncode) == (("cow", "it's 'é'"), "", 0)


def test_the_fake_node_runs_nothing_else(tmp_path):
    env = npx_environment(tmp_path)
    (tmp_path / "other.js").write_text("process.exit(0)\n")
    run = finished(["node", str(tmp_path / "other.js")], "", env)
    assert (run.returncode, run.stderr) == (1, f"node: {tmp_path}/other.js was not installed by the fake npm\n")
    assert finished(["node", "-e", "1"], "", env).returncode == 0
    assert finished(["node", "--version"], "", env).stdout == "v22.14.0\n"


def test_npx_and_npm_fail_in_the_words_of_npm(tmp_path):
    env = npx_environment(tmp_path)
    unknown = finished(["npx", "-y", "cowsai"], "", env)
    assert (unknown.returncode, unknown.stderr.splitlines()[0]) == (1, "npm error code E404")
    locked = finished(["npx", "-y", "locked"], "", env)
    assert (locked.returncode, locked.stderr) == (127, "sh: 1: locked: Permission denied\n")
    assert finished(["npm", "config", "get", "cache"], "", env).stdout == f"{tmp_path}/.npm\n"
    without = {key: value for key, value in env.items() if key != "MCP_FAKE_REGISTRY"}
    assert "E404" in finished(["npx", "-y", "@s/cow"], "", without).stderr


@pytest.mark.parametrize(
    ("registry", "text"),
    [
        ("{", "MCP_FAKE_REGISTRY: Expecting property name"),
        ("/nowhere.json", "MCP_FAKE_REGISTRY /nowhere.json: No such file"),
        ('{"a": 1}', "MCP_FAKE_REGISTRY: the package a must be a table, not 1"),
        ('{"a": {"names": 1}}', "MCP_FAKE_REGISTRY: the package a: a package has no 'names'; it may have "),
        ('{"a": {"behaviour": {"x": 1}}}', "MCP_FAKE_REGISTRY: the package a: a server's behaviour has no 'x'"),
    ],
)
def test_a_registry_that_cannot_be_used_is_one_line_and_exit_code_2(registry, text):
    from harness.world.model import Simulation

    async def body(world: World, argv: Sequence[str]) -> int:
        return await execute(world, ["/usr/bin/npx", *argv])

    simulation = Simulation()
    actor = simulation.start("npx", body, ["-y", "a"], env={"MCP_FAKE_REGISTRY": registry})
    simulation.run()
    [line] = actor.stderr.lines
    assert (actor.exit_code, line[: len(text) + 5]) == (2, f"npx: {text}")


def test_a_registry_is_a_table_of_packages():
    table = {
        "a@2.0.0": {"behaviour": {"name": "s", "tools": ["t"]}, "dependencies": ["b"], "broken": True},
        "@s/b": {"version": "3.0.0", "bin_name": "bee", "bin_mode": 420, "install_seconds": 0, "steps": 0},
        "c": {"bin_mode": "0755"},
    }
    assert registry_from(table) == {
        "a@2.0.0": Package(
            "a", "2.0.0", behaviour=Behaviour(name="s", tools=(Tool("t"),)), broken=True, dependencies=("b",)
        ),
        "@s/b": Package("@s/b", "3.0.0", "bee", 0o644, 0, 0),
        "c": Package("c", bin_mode=0o755),
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"version": 1}, {"bin_name": None}, {"bin_mode": "rwx"}, {"bin_mode": "9"}, {"bin_mode": -1},
        {"bin_mode": 0o10000}, {"bin_mode": True}, {"bin_mode": 1.5}, {"install_seconds": -1},
        {"install_seconds": "1"}, {"install_seconds": True}, {"install_seconds": float("inf")},
        {"install_seconds": float("nan")}, {"steps": 1.0}, {"steps": -1}, {"steps": True}, {"behaviour": []},
        {"broken": 1}, {"broken": "no"}, {"dependencies": "b"}, {"dependencies": [1]}, {"other": 1},
    ],
)  # fmt: skip
def test_a_packages_field_of_another_kind_is_refused_by_its_name(fields):
    [key] = fields
    with pytest.raises(ValueError, match=f"the package a: .*{key}"):
        registry_from({"a": fields})
