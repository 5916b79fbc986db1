"""MH471 to MH474: paths in a command line."""

from __future__ import annotations

import json

import pytest

from harness.gate.judge import judge
from harness.gate.model import Severity, State
from scenarios.units.gate_fixture import catalog_context, entry_findings, only


def started(command, *args, **env):
    return {"type": "stdio", "command": command, "args": list(args), "env": env}


@pytest.mark.parametrize(
    ("entry", "pointer", "severity"),
    [
        (started("node", "./dist/index.js"), "/a/args/0", Severity.NOTE),
        (started("node", "dist/index.js"), "/a/args/0", Severity.NOTE),
        (started("node", "--inspect", "server.mjs"), "/a/args/1", Severity.NOTE),
        (started("python3", "src\\server.py"), "/a/args/0", Severity.NOTE),
        (started("bun", "run", "server.ts"), "/a/args/1", Severity.NOTE),
        (started("./server"), "/a/command", Severity.NOTE),
        (started("../server"), "/a/command", Severity.WARNING),
        (started("npx", "-y", "p@1.0.0", "--root=../x"), "/a/args/2", Severity.WARNING),
        (started("uv", "--directory", "./server", "run", "x"), "/a/args/1", Severity.NOTE),
    ],
)
def test_a_relative_path_is_one_of_the_sessions_clone(entry, pointer, severity):
    found = only(entry_findings(entry, ["MH471"]))
    assert (found.place.pointer, found.severity) == (pointer, severity)
    assert "on every runtime" in found.message


@pytest.mark.parametrize(
    "entry",
    [
        started("node", "/opt/server/index.js"),
        started("node", "C:\\server\\index.js"),
        started("node", "${SERVER}/index.js"),
        started("npx", "-y", "@scope/p@1.0.0", "config.js", "."),
        started("python", "-m", "server"),
        started("docker", "run", "-i", "img:1", "./in/the/container"),
        {"type": "sse", "url": "https://x.test", "command": "./x"},
    ],
)
def test_absolute_paths_packages_and_paths_in_a_container_are_no_finding(entry):
    assert entry_findings(entry, ["MH471"]) == []


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        (started("/Users/jane/bin/server"), "/a/command"),
        (started("node", "/home/jane/x/index.js"), "/a/args/0"),
        (started("node", "C:\\Users\\Jane\\x\\index.js"), "/a/args/0"),
        (started("server", "--root=/Users/jane/x"), "/a/args/0"),
        (started("server", "file:///home/jane/x"), "/a/args/0"),
        (started("server", DATA="/Users/jane/x"), "/a/env/DATA"),
        (started("docker", "run", "-i", "-v", "/Users/jane/x:/data", "img:1"), "/a/args/3"),
    ],
)
def test_a_home_directory_of_one_person_is_a_warning(entry, pointer):
    found = only(entry_findings(entry, ["MH472"]))
    assert (found.place.pointer, found.severity) == (pointer, Severity.WARNING)
    assert "jane" not in found.message.lower()


@pytest.mark.parametrize(
    "entry",
    [
        started("node", "/opt/x/index.js", "/home/node/x", "/Users/Shared/x", "/home/${USER}/x"),
        started("docker", "run", "-i", "-v", "/srv/x:/home/jane", "img:1", "/home/jane/x"),
        started("server", "https://x.test/home/jane", DATA="/data/home/jane"),
    ],
)
def test_accounts_that_machines_have_are_no_finding(entry):
    assert entry_findings(entry, ["MH472"]) == []


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        (started("npx", "-y", "p@1.0.0", "~/notes"), "/a/args/2"),
        (started("server", "--root=~/notes"), "/a/args/0"),
        (started("server", "~"), "/a/args/0"),
        (started("server", DATA="~/x"), "/a/env/DATA"),
    ],
)
def test_a_tilde_reaches_the_server_as_it_is(entry, pointer):
    found = only(entry_findings(entry, ["MH473"]))
    assert (found.place.pointer, found.severity) == (pointer, Severity.WARNING)


@pytest.mark.parametrize(
    "entry",
    [
        started("sh", "-c", "~/bin/server"),
        started("server", "a~b", "~name", "~1.2"),
        started("docker", "run", "-i", "-v", "~/x:/x", "img:1"),  # MH456
    ],
)
def test_a_shell_and_other_meanings_of_a_tilde_are_no_finding(entry):
    assert entry_findings(entry, ["MH473"]) == []


@pytest.mark.parametrize("command", ["~/bin/server", "$HOME/bin/server", "%USERPROFILE%\\server", "$(which node)"])
def test_a_command_that_only_a_shell_could_read_never_starts(command):
    context = catalog_context(json.dumps({"a": started(command)}))
    found = only(entry_findings(started(command), ["MH474"]))
    assert (found.place.pointer, found.severity) == ("/a/command", Severity.ERROR)
    outcomes = judge(context.entries["a"], context, touched=True).outcomes
    assert {outcome.state for outcome in outcomes} == {State.FAILS}


@pytest.mark.parametrize("command", ["server", "/opt/x~y/server", "C:\\Progra~1\\server"])
def test_a_plain_command_is_no_finding(command):
    assert entry_findings(started(command), ["MH474"]) == []
