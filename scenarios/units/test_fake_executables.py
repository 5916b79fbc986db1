"""The fake runtimes as executables: found on PATH, told by the environment what to be, and used by strangers."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fake_runtimes import executable
from fake_runtimes.plan import AT_ONCE, Plan, PlanError, ToolCall, Turn, read_plan
from fake_runtimes.profile import DIRECTORY, known_profiles, load_profile
from fake_servers.mcp import Behaviour
from fake_servers.mcp import program as server_program
from harness.scenario.runtimes import runtime_programs
from harness.world.model import Simulation

REPOSITORY = Path(__file__).parents[2]
BIN, SERVERS = REPOSITORY / "fake_runtimes" / "bin", REPOSITORY / "fake_servers" / "bin"
README = (REPOSITORY / "fake_runtimes" / "README.md").read_text(encoding="utf-8")
VERSIONS = {"claude": "2.1.268 (Claude Code)", "codex": "codex-cli 0.146.0", "pi": "0.84.1"}
PROMPTS = {"claude": ("-p", "go on"), "codex": ("exec", "go on"), "pi": ("-p", "go on")}
STREAMS = {
    "claude": ("-p", "go on", "--output-format", "stream-json", "--verbose"),
    "codex": ("exec", "--json", "--sandbox", "danger-full-access", "go on"),
    "pi": ("-p", "--mode", "json", "go on"),
}
PLAN = [{"text": "I look", "calls": [{"server": "files", "tool": "echo"}]}, {"text": "Found it."}]
RUNTIMES = pytest.mark.parametrize("runtime", list(VERSIONS))
PATIENCE_SECONDS = 60


class Place:
    """A home and a project of a stranger, and programs of ours in front of PATH."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        for directory in (self.home, self.project):
            directory.mkdir()
        path = ":".join(map(str, (BIN, SERVERS, Path(sys.executable).parent, "/usr/bin", "/bin")))
        self.environment = {"HOME": str(self.home), "PATH": path}

    def write(self, path: str, text: str) -> Path:
        """A file below the project, or (`~/…`) below the home."""
        whole = self.home / path[2:] if path.startswith("~/") else self.project / path
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(text, encoding="utf-8")
        return whole

    def configure(self, runtime: str, command: str = "mcp-fake-server") -> None:
        """A stdio server called `files`, as this runtime is told of it."""
        if runtime == "codex":
            self.write("~/.codex/config.toml", f'[mcp_servers.files]\ncommand = "{command}"\n')
        else:
            self.write(".mcp.json", json.dumps({"mcpServers": {"files": {"command": command}}}))

    def run(self, *argv: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the project."""
        return subprocess.run(
            argv,
            cwd=self.project,
            env={**self.environment, **variables},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A place in which nothing that was started is left."""
    yield Place(tmp_path)
    until = time.monotonic() + PATIENCE_SECONDS  # a server that was told to end has a moment to do so
    while (left := who_is_in(tmp_path)) and time.monotonic() < until:
        time.sleep(0.01)
    assert left == []


def who_is_in(folder: Path) -> list[str]:
    """The processes whose directory lies there."""
    return [process.name for process in Path("/proc").glob("[0-9]*") if is_in(process, folder)]


def is_in(process: Path, folder: Path) -> bool:
    """Whether a process works in a folder; one that has ended, or is another user's, does not."""
    try:
        return (process / "cwd").readlink().is_relative_to(folder)
    except OSError:
        return False


# --- for strangers


def test_a_shell_script_that_knows_nothing_of_us_gets_the_stream_of_a_real_run(place):
    (script,) = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    assert len(script.splitlines()) <= 11
    place.write("orchestrate", script)
    place.configure("claude")
    done = place.run("sh", "orchestrate", "go on", MCP_FAKE_PLAN=json.dumps(PLAN))
    assert (done.returncode, done.stderr) == (0, "")
    told = [(kind, json.loads(line)) for kind, line in (line.split(": ", 1) for line in done.stdout.splitlines())]
    assert [kind for kind, _ in told] == ["starts", "says", "says", "reads", "says", "ends"]
    starts, says, calls, reads, last, ends = (line for _, line in told)
    assert starts["mcp_servers"] == [{"name": "files", "status": "connected"}]
    assert starts["tools"] == ["mcp__files__echo"]
    assert says["message"]["content"] == [{"type": "text", "text": "I look"}]
    assert calls["message"]["content"][0]["name"] == "mcp__files__echo"
    assert reads["message"]["content"][0]["content"] == [{"type": "text", "text": "ok"}]
    assert (ends["subtype"], ends["is_error"], ends["num_turns"]) == ("success", False, 2)
    assert ends["result"] == last["message"]["content"][0]["text"] == "Found it."
    assert {line["session_id"] for _, line in told} == {starts["session_id"]}


@RUNTIMES
def test_a_server_that_is_not_ours_is_started_spoken_to_and_ended(place, runtime):
    server = place.write("server.py", STRANGER)
    server.chmod(0o755)
    place.configure(runtime, str(server))
    done = place.run(runtime, *STREAMS[runtime], MCP_FAKE_PLAN=json.dumps(PLAN))
    assert done.returncode == 0
    assert "from a stranger" in done.stdout
    assert "Found it." in done.stdout


STRANGER = f"""\
#!{sys.executable}
import json, sys

ANSWERS = {{
    "initialize": {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s"}}}},
    "tools/list": {{"tools": [{{"name": "echo", "inputSchema": {{"type": "object"}}}}]}},
    "tools/call": {{"content": [{{"type": "text", "text": "from a stranger"}}]}},
}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = ANSWERS.get(message["method"])
        failed = {{"error": {{"code": -32601, "message": "Method not found"}}}}
        told = failed if answer is None else {{"result": answer}}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], **told}}), flush=True)
"""


@RUNTIMES
def test_a_link_from_another_folder_finds_the_package(place, runtime):
    link = place.home / "mine"
    link.symlink_to(BIN / runtime)
    twice = place.project / "again"
    twice.symlink_to(link)
    assert place.run(str(twice), "--version").stdout == f"{VERSIONS[runtime]}\n"


@RUNTIMES
def test_an_installed_copy_needs_nothing_but_the_world_and_the_standard_library(place, runtime, tmp_path):
    site = tmp_path / "site"
    skipped = shutil.ignore_patterns("__pycache__", "live")
    shutil.copytree(REPOSITORY / "fake_runtimes", site / "fake_runtimes", ignore=skipped)
    shutil.copytree(REPOSITORY / "harness" / "world", site / "harness" / "world", ignore=skipped)
    shutil.copy(REPOSITORY / "harness" / "__init__.py", site / "harness")
    place.configure(runtime)
    copied = place.run(str(site / "fake_runtimes" / "bin" / runtime), *PROMPTS[runtime])
    assert (copied.returncode, copied.stdout) == (0, "Done.\n")
    script = f"from fake_runtimes.console import {runtime}; {runtime}()"
    own = place.run(sys.executable, "-S", "-c", script, *PROMPTS[runtime], PYTHONPATH=str(site))
    assert (own.returncode, own.stdout) == (0, "Done.\n")


def test_the_console_scripts_lead_to_what_is_there():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    for runtime in VERSIONS:
        module, _, name = project["project"]["scripts"][f"mcp-fake-{runtime}"].partition(":")
        assert callable(getattr(import_module(module), name))
        assert os.access(BIN / runtime, os.X_OK)


@RUNTIMES
def test_a_run_loads_neither_an_event_loop_nor_what_is_slow_to_load(place, runtime):
    place.configure(runtime)
    run = [sys.executable, "-IS", "-X", "importtime", str(BIN / runtime), *STREAMS[runtime]]
    done = place.run(*run, MCP_FAKE_PLAN=json.dumps(PLAN))
    assert done.returncode == 0
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert f"fake_runtimes.{runtime}.session" in loaded
    assert not loaded & {"asyncio", "argparse", "pathlib", "subprocess", "logging", "inspect", "dataclasses", "ssl"}
    others = [name for name in VERSIONS if name != runtime]
    assert not [name for name in loaded if name.startswith(tuple(f"fake_runtimes.{other}" for other in others))]


# --- what they are told


@RUNTIMES
def test_the_version_is_the_real_ones_and_what_it_is_stands_elsewhere(place, runtime):
    assert place.run(runtime, "--version").stdout == f"{VERSIONS[runtime]}\n"
    about = place.run(runtime, "--about")
    assert about.returncode == 0
    assert f"mcp-fake-{runtime}: a stand-in" in about.stdout
    assert "Nothing was asked of a real program on this machine" in about.stdout


@RUNTIMES
def test_a_profile_is_chosen_by_variable_or_flag_in_three_spellings(place, runtime):
    newer = next(name for name in known_profiles()[::-1] if name.startswith(runtime))
    version = newer.removeprefix(f"{runtime}-")
    told = {
        place.run(runtime, "--version", MCP_FAKE_PROFILE=newer).stdout,
        place.run(runtime, "--version", MCP_FAKE_PROFILE=version).stdout,
        place.run(runtime, "--fake-profile", f"{runtime}@{version}", "--version", MCP_FAKE_PROFILE="none").stdout,
        place.run(runtime, f"--fake-profile={version}", "--version").stdout,
    }
    (only,) = told
    assert version.partition("+")[0] in only


@pytest.mark.parametrize(
    "variables",
    [
        {"MCP_FAKE_PROFILE": "9.9.9"},
        {"MCP_FAKE_PROFILE": "codex-0.146.0"},
        {"MCP_FAKE_PLAN": "[oops"},
        {"MCP_FAKE_PLAN": "no-such-file.json"},
        {"MCP_FAKE_PLAN": '[{"sconds": 1}]'},
    ],
)
def test_what_a_fake_cannot_be_ends_with_a_code_of_its_own_and_a_word(place, variables):
    done = place.run("claude", "-p", "go on", **variables)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(f"mcp-fake-claude: {next(iter(variables))}: ")
    assert done.stderr.count("\n") == 1


@RUNTIMES
def test_a_plan_comes_from_a_file_the_variable_or_a_flag(place, runtime):
    place.write("plan.json", json.dumps({"turns": [{"text": "from a file"}]}))
    words = PROMPTS[runtime]
    assert place.run(runtime, *words, MCP_FAKE_PLAN="plan.json").stdout == "from a file\n"
    assert place.run(runtime, *words, MCP_FAKE_PLAN='[{"text": "inline"}]').stdout == "inline\n"
    assert place.run(runtime, "--fake-plan", '[{"text": "a flag"}]', *words).stdout == "a flag\n"


def test_what_a_fake_was_told_is_hidden_from_what_it_starts(place):
    server = place.write("server", '#!/bin/sh\nenv > "$HOME/seen"\n')
    server.chmod(0o755)
    place.configure("claude", str(server))
    own = {"MCP_FAKE_PROFILE": "2.1.268", "MCP_FAKE_PLAN": "[{}]", "WORLD_TIME_SCALE": "2", "MCP_FAKE_BEHAVIOUR": "{}"}
    assert place.run("claude", "-p", "go on", **own).returncode == 0
    seen = {line.partition("=")[0] for line in (place.home / "seen").read_text(encoding="utf-8").splitlines()}
    assert seen & {*own, "HOME", "CLAUDECODE"} == {"MCP_FAKE_BEHAVIOUR", "HOME", "CLAUDECODE"}


def test_flags_behind_a_double_dash_are_the_programs_own():
    told = executable.told_by(("codex", "mcp", "add", "x", "--", "srv", "--fake-plan", "y"), {})
    assert (told.plan, told.argv) == ("", ("codex", "mcp", "add", "x", "--", "srv", "--fake-plan", "y"))


def test_a_world_of_faster_time_is_as_long_by_its_own_clock(place):
    words = ("-p", "go on", "--output-format", "json")
    done = place.run("claude", *words, MCP_FAKE_PLAN='[{"seconds": 600}]', WORLD_TIME_SCALE="10000")
    assert json.loads(done.stdout)["duration_ms"] >= 600_000


def test_events_go_to_the_file_that_the_environment_names(place):
    place.configure("claude")
    place.run("claude", "-p", "go on", WORLD_EVENTS=str(place.project / "events"))
    events = [json.loads(line) for line in (place.project / "events").read_text(encoding="utf-8").splitlines()]
    (request,) = [event for event in events if event["event"] == "model.request"]
    assert (request["actor"], request["details"]["tools"]) == ("claude", ["mcp__files__echo"])


# --- one program in both worlds


@RUNTIMES
@pytest.mark.parametrize("newer", [False, True])
def test_the_executable_prints_what_the_same_run_prints_in_a_model_world(place, runtime, newer):
    profile = [name for name in known_profiles() if name.startswith(runtime)][newer]
    place.configure(runtime)
    done = place.run(runtime, *STREAMS[runtime], MCP_FAKE_PLAN=json.dumps(PLAN), MCP_FAKE_PROFILE=profile)
    assert done.returncode == 0
    modelled = in_a_model_world(place, runtime, profile)
    assert [plain(line) for line in done.stdout.splitlines()] == [plain(line) for line in modelled]


def in_a_model_world(place: Place, runtime: str, profile: str) -> Sequence[str]:
    """The lines of stdout of the same run in memory."""
    simulation = Simulation(launcher=lambda argv, env, directory: server_program(Behaviour()))
    for folder in (place.home, place.project):
        simulation.tree.make_directory(str(folder), 0o755, 0, 0.0)
        for path in (".mcp.json", ".codex/config.toml"):
            if (folder / path).exists():
                simulation.tree.make_directory(str((folder / path).parent), 0o755, 0, 0.0)
                simulation.tree.write(str(folder / path), (folder / path).read_bytes(), 0o644, 0, 0.0)
    program = runtime_programs()[runtime](load_profile(profile), read_plan(PLAN))
    argv, directory = (runtime, *STREAMS[runtime]), str(place.project)
    actor = simulation.start(runtime, program, argv, env=place.environment, directory=directory)
    assert simulation.run().verdict == "done"
    return "\n".join(actor.stdout.lines).split("\n")


CHANGING = ("session_id", "thread_id", "timestamp", "duration_ms", "duration_api_ms")


def plain(line: str) -> Any:
    """A line without what differs from run to run."""
    return without_changing(json.loads(line))


def without_changing(value: Any) -> Any:
    """A value without the members that differ from run to run."""
    if isinstance(value, list):
        return [without_changing(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    kept = {key: without_changing(member) for key, member in value.items() if key not in CHANGING}
    if kept.get("type") == "session":
        kept.pop("id")
    return kept


# --- profiles and plans as data


def test_the_known_profiles_are_the_files_that_are_there():
    assert sorted(path.stem for path in Path(DIRECTORY).glob("*.toml")) == sorted(known_profiles())


def test_a_plan_is_read_with_its_defaults():
    plan = read_plan(PLAN)
    assert plan == Plan((Turn((ToolCall("files", "echo"),), 0.0, "I look"), Turn((), 0.0, "Found it.")))
    assert read_plan({"turns": []}) == Plan(())
    assert read_plan([{}]) == AT_ONCE
    assert [turn.words for turn in (Turn(), Turn((ToolCall("a", "b"),)), Turn(text=""))] == ["Done.", "", ""]
    assert Plan((Turn(text="x"), Turn((ToolCall("a", "b"),)))).last_words == "x"
    assert Plan(()).last_words == ""


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (3, "plan"),
        ({"turns": {}}, "plan"),
        ({"turn": []}, "plan"),
        ([3], "turns[0]"),
        ([{}, {"seconds": -1}], "turns[1].seconds"),
        ([{"seconds": True}], "turns[0].seconds"),
        ([{"seconds": 1e999}], "turns[0].seconds"),
        ([{"text": 3}], "turns[0].text"),
        ([{"calls": {}}], "turns[0].calls"),
        ([{"calls": [{"server": 3}]}], "turns[0].calls[0]"),
        ([{"calls": [{"args": []}]}], "turns[0].calls[0].args"),
        ([{"calls": [{"name": "x"}]}], "turns[0].calls[0]"),
    ],
)
def test_a_plan_that_cannot_be_read_is_refused_with_its_place(value, place):
    with pytest.raises(PlanError) as refused:
        read_plan(value)
    assert str(refused.value).startswith(f"{place}: ")
