"""MH461 and MH462: servers that uv or pipx fetches and runs."""

from __future__ import annotations

import json

import pytest

from harness.gate.engine import entry_findings as findings_of_engine
from harness.gate.judge import judge
from harness.gate.model import Severity, State
from harness.gate.python_commands import python_command
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only


def launched(command, *args):
    return {"type": "stdio", "command": command, "args": list(args)}


def states(entry):
    context = catalog_context(json.dumps({"a": entry}))
    return {outcome.state for outcome in judge(context.entries["a"], context, touched=True).outcomes}


@pytest.mark.parametrize(
    ("command", "args", "form"),
    [
        ("uvx", [], "uvx"),
        ("uvx", ["--from", "pkg"], "uvx"),
        ("uvx", ["--python", "3.12"], "uvx"),
        ("uvx", [" "], "uvx"),
        ("/usr/bin/uvx", ["-q"], "uvx"),
        ("uv", ["tool", "run"], "uv tool run"),
        ("uv", ["run"], "uv run"),
        ("uv", ["--directory", "/srv", "run", "--no-project"], "uv run"),
        ("pipx", ["run", "--spec", "pkg"], "pipx run"),
    ],
)
def test_without_a_package_nothing_can_start(command, args, form):
    found = only(entry_findings(launched(command, *args), ["MH461"]))
    assert (found.severity, found.place.pointer) == (Severity.ERROR, "/a/args")
    assert found.message.startswith(f"`{form}` is given no ")
    assert states(launched(command, *args)) == {State.FAILS}


GOOD = [
    ("uvx", ["pkg"]),
    ("uvx", ["--from", "pkg==1.0", "tool", "-y"]),
    ("uvx", ["-qv", "-p3.12", "--with", "x", "--refresh", "pkg", "--unknown"]),
    ("uvx", ["--", "pkg"]),
    ("uv", ["run", "--with", "mcp[cli]", "mcp", "run", "server.py"]),
    ("uv", ["run", "--directory", "/srv", "server"]),
    ("uv", ["tool", "run", "--from=pkg", "tool"]),
    ("pipx", ["run", "pkg", "-y"]),
    ("uv", ["sync"]),
    ("uv", []),
    ("pipx", ["list"]),
]


@pytest.mark.parametrize(("command", "args"), GOOD)
def test_a_package_and_known_options_are_no_finding(command, args):
    assert entry_findings(launched(command, *args), ["MH461", "MH462"]) == []
    assert states(launched(command, *args)) == {State.STARTS}


@pytest.mark.parametrize(
    ("command", "args", "becomes"),
    [
        ("uvx", ["-y", "pkg"], ["pkg"]),
        ("uvx", ["--yes", "pkg"], ["pkg"]),
        ("uvx", ["-q", "-y", "pkg"], ["-q", "pkg"]),
        ("uv", ["tool", "run", "-y", "pkg"], ["tool", "run", "pkg"]),
        ("pipx", ["run", "-y", "pkg"], ["run", "pkg"]),
    ],
)
def test_the_consent_that_only_npx_knows_stops_the_launcher(command, args, becomes):
    text = json.dumps({"a": launched(command, *args)}, indent=1)
    found = only(findings(text, ["MH462"]))
    assert found.severity is Severity.ERROR
    assert states(launched(command, *args)) == {State.FAILS}
    result = mended(text, found)
    assert json.loads(result)["a"]["args"] == becomes
    assert findings(result, ["MH461", "MH462"]) == []


def test_any_other_unknown_option_is_a_warning_since_a_newer_version_may_know_it():
    found = only(entry_findings(launched("uvx", "--stdio", "pkg"), ["MH462"]))
    assert (found.severity, found.edits) == (Severity.WARNING, ())
    assert "unless it is newer" in found.message
    assert states(launched("uvx", "--stdio", "pkg")) == {State.STARTS}


def test_an_unknown_option_without_a_package_is_one_finding():
    context = catalog_context(json.dumps({"a": launched("uvx", "-y")}))
    assert [found.rule for found in findings_of_engine(context, context.entries["a"])] == ["MH462"]


@pytest.mark.parametrize(
    ("args", "package"),
    [(["a"], "a"), (["--from", "b", "a"], "b"), (["--from=b", "a"], "b"), (["--with", "b", "a"], "a")],
)
def test_the_package_is_what_from_names_or_the_first_word(args, package):
    run = python_command("uvx", args)
    assert run is not None
    assert run.package == package
