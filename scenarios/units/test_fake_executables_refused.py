"""The fake runtimes as executables where the system refuses them something: a spawn, a stream, a folder, a home."""

from __future__ import annotations

import errno
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fake_runtimes import executable
from scenarios.units.test_fake_executables import BIN, PATIENCE_SECONDS, PROMPTS, REPOSITORY, RUNTIMES, SERVERS, Place
from scenarios.units.test_fake_executables import place as place

TOO_MUCH = "x" * 3_000_000
UNSTARTABLE: dict[str, tuple[dict[str, Any], int]] = {
    "too much": ({"command": "/bin/echo", "args": [TOO_MUCH]}, errno.E2BIG),
    "a null byte": ({"command": "/bin/echo", "args": ["a\0b"]}, errno.EINVAL),
    "no name": ({"command": "/bin/echo", "env": {"": "x"}}, errno.EINVAL),
    "a name that is a pair": ({"command": "/bin/echo", "env": {"A=B": "x"}}, errno.EINVAL),
    "too long": ({"command": f"/{'y' * 300}"}, errno.ENAMETOOLONG),
    "a circle": ({"command": "./circle"}, errno.ELOOP),
    "no program": ({"command": "./plain"}, errno.ENOEXEC),
}
FLOODS = {"stdout": ["-c", "exec yes"], "stderr": ["-c", "exec yes >&2"], "one line": ["-c", "exec cat /dev/zero"]}


def configure(place: Place, runtime: str, entry: dict[str, Any], **more: Any) -> None:
    """One stdio server called `files`."""
    if runtime != "codex":
        place.write(".mcp.json", json.dumps({"mcpServers": {"files": {**entry, **more}}}))
        place.write("~/.claude/settings.json", json.dumps({"enableAllProjectMcpServers": True}))
        return
    env = ", ".join(f"{json.dumps(name)} = {json.dumps(value)}" for name, value in entry.get("env", {}).items())
    fields = {key: json.dumps(value) for key, value in {**entry, **more}.items() if key != "env"}
    lines = [f"{key} = {value}" for key, value in {**fields, "env": f"{{{env}}}"}.items()]
    place.write("~/.codex/config.toml", "\n".join(("[mcp_servers.files]", *lines, "")))


@pytest.mark.parametrize(("entry", "number"), UNSTARTABLE.values(), ids=list(UNSTARTABLE))
def test_a_server_whose_spawn_the_system_refuses_has_failed_in_the_runtimes_words(place, entry, number):
    (place.project / "circle").symlink_to("circle")
    place.write("plain", "no program").chmod(0o755)
    name, told = errno.errorcode[number], f"{os.strerror(number)} (os error {number})"
    configure(place, "claude", entry)
    done = place.run("claude", "mcp", "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"✘ Failed to connect — {name}: " in done.stdout
    done = place.run("pi", *PROMPTS["pi"])
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert done.stderr == f"MCP: Failed to connect to files: spawn {entry['command']} {name}\n"
    configure(place, "codex", entry, required=True)
    done = place.run("codex", *PROMPTS["codex"])
    assert done.returncode == 1
    assert f"required MCP servers failed to initialize: files: {told} (code" in done.stderr


@pytest.mark.parametrize("args", FLOODS.values(), ids=list(FLOODS))
def test_a_server_that_never_stops_printing_does_not_keep_a_run_from_ending(place, args):
    entry = {"command": "/bin/sh", "args": args}
    configure(place, "claude", entry)
    done = place.run("claude", "mcp", "list", MCP_TIMEOUT="500")
    assert (done.returncode, done.stderr) == (0, "")
    assert "✘ Failed to connect — " in done.stdout
    configure(place, "codex", entry, required=True, startup_timeout_sec=0.5)
    done = place.run("codex", *PROMPTS["codex"])
    assert done.returncode == 1
    assert "required MCP servers failed to initialize: files: " in done.stderr


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("claude", "mcp", "list"), -signal.SIGPIPE),
        (("codex", "mcp", "list"), 101),
        (("codex", "--version"), 101),
        (("pi", "--version"), -signal.SIGPIPE),
    ],
)
def test_a_program_whose_reader_has_gone_ends_without_a_word(place, argv, code):
    place.configure("claude")
    reader, writer = os.pipe()
    os.close(reader)
    assert ended(place, argv, writer) == (code, "")


@pytest.mark.parametrize("argv", [("claude", "mcp", "list"), ("codex", "mcp", "list"), ("pi", "--version")])
def test_a_program_whose_stdout_is_full_says_so_in_one_line(place, argv):
    place.configure("claude")
    full = os.open("/dev/full", os.O_WRONLY)
    assert ended(place, argv, full) == (1, f"{argv[0]}: {os.strerror(errno.ENOSPC)}\n")


def ended(place: Place, argv: tuple[str, ...], stdout: int) -> tuple[int, str]:
    """How a program with that stdout ends, and what it says of it; the descriptor is used up."""
    try:
        done = subprocess.run(
            argv,
            cwd=place.project,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    finally:
        os.close(stdout)
    return done.returncode, done.stderr


@RUNTIMES
def test_a_working_directory_that_is_gone_is_told_in_one_line(place, runtime):
    command = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = place.run("sh", "-c", command, "sh", sys.executable, "-IS", str(BIN / runtime), *PROMPTS[runtime])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{runtime}: {os.strerror(errno.ENOENT)}: the working directory\n"


@pytest.mark.parametrize("given", [{}, {"HOME": ""}])
def test_without_a_home_the_password_database_says_where_it_is(monkeypatch, given):
    seen: list[str | None] = []
    start: Any = executable.start  # which returns here
    monkeypatch.setattr("harness.world.blocking.main", lambda program, argv: seen.append(os.environ.get("HOME")))
    for runtime in ("claude", "codex", "pi"):
        monkeypatch.delenv("HOME", raising=False)
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", [runtime])
        start(runtime)
    assert seen == [pwd.getpwuid(os.getuid()).pw_dir] * 3
    monkeypatch.setenv("HOME", "/home/mine")
    start("pi")
    assert seen[-1] == "/home/mine"
    assert executable.home_variable(2**31 - 7) == {}


@pytest.mark.parametrize("program", [*(BIN / name for name in PROMPTS), *(SERVERS / name for name in ("npx", "npm"))])
def test_a_start_that_is_interrupted_tells_nothing_of_itself(tmp_path, program):
    package = program.parent.parent.name
    for path in (f"{package}/__init__.py", f"{package}/console.py", f"{package}/bin/{program.name}"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / path, tmp_path / path)
    slow = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"
    for name in ("executable", "command"):
        (tmp_path / package / f"{name}.py").write_text(slow, encoding="utf-8")
    copy = [sys.executable, "-IS", str(tmp_path / package / "bin" / program.name)]
    done = subprocess.run(copy, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("codex", "exec", "--cd", "/nope", "x"), "Error: No such file or directory (os error 2)"),
        (("codex", "exec", "-C", "/etc/passwd", "x"), "Error: Not a directory (os error 20)"),
        (("claude", "-p", "--session-id", "../x", "x"), "Error: Invalid session ID. Must be a valid UUID."),
    ],
)
def test_what_a_run_cannot_be_given_is_refused_in_one_line(place, argv, said):
    done = place.run(*argv)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"{said}\n")


def test_a_relative_directory_of_a_run_is_taken_from_where_it_is_started(place):
    inner = place.project / "inner"
    inner.mkdir()
    server = "#!/bin/sh\npwd > where\n"
    place.write("~/server", server).chmod(0o755)
    configure(place, "codex", {"command": str(place.home / "server")})
    assert place.run("codex", "exec", "--cd", "inner", "x").returncode == 0
    assert Path((inner / "where").read_text(encoding="utf-8").strip()) == inner.resolve()


@pytest.mark.parametrize(
    ("runtime", "call", "said"),
    [
        ("pi", {}, "turns[0].calls[0].tool: a call needs one"),
        ("claude", {"server": "files"}, "turns[0].calls[0].tool: a call needs one"),
        ("claude", {"tool": "echo"}, "turns[0].calls[0].server: a call needs one"),
        ("codex", {"tool": "echo"}, "turns[0].calls[0].server: a call needs one"),
    ],
)
def test_a_planned_call_of_nothing_is_refused(place, runtime, call, said):
    done = place.run(runtime, *PROMPTS[runtime], MCP_FAKE_PLAN=json.dumps([{"calls": [call]}]))
    assert (done.returncode, done.stdout) == (executable.UNUSABLE, "")
    assert done.stderr == f"mcp-fake-{runtime}: MCP_FAKE_PLAN: {said}\n"


@pytest.mark.parametrize("profile", ["claude-2.1.268", "claude-2.1.328"])
def test_a_server_that_ends_behind_its_first_answer_has_always_failed(place, profile):
    entry = {"command": "mcp-fake-server", "args": ["--behaviour", json.dumps({"exits": "after-initialize"})]}
    configure(place, "claude", entry)
    said = [place.run("claude", "mcp", "list", MCP_FAKE_PROFILE=profile).stdout.splitlines()[-1] for _ in range(3)]
    assert len(set(said)) == 1
    assert "✘ Failed to connect — " in said[0]
    assert "Connection closed" in said[0]
