"""The gate against a git revision: from files in a repository to what it says of a change."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import pytest

from harness.errors import CannotRunError, UserInputError
from harness.gate.assemble import GateOptions, assemble
from harness.gate.engine import run_gate
from harness.gate.events import Changed, Event, Started
from scenarios.units.gate_run import REMOTE, STDIO, finished
from scenarios.units.test_git_inputs import git

TODAY = datetime.date(2026, 7, 1)


def write(tree: Any, path: str = "mcp.json") -> None:
    Path(path).write_text(json.dumps(tree, indent=2), encoding="utf-8")


def commit(text: str) -> str:
    git(Path(), "add", ".")
    git(Path(), "commit", "-qm", text)
    return git(Path(), "rev-parse", "--short=7", "HEAD")


def events(**options: Any) -> list[Event]:
    return list(run_gate(assemble(GateOptions(**options), TODAY).request, lambda: 0.0))


def altered(stream: list[Event]) -> list[tuple[str, str]]:
    return [(event.change.kind, event.change.entry) for event in stream if isinstance(event, Changed)]


def label(stream: list[Event]) -> str | None:
    return next(event.base for event in stream if isinstance(event, Started))


@pytest.fixture
def behind(tmp_path, monkeypatch):
    """A work tree on a branch that adds one entry; main has added another one since. The first commit's short id."""
    monkeypatch.chdir(tmp_path)
    git(tmp_path, "init", "-q")
    write({"a": STDIO})
    first = commit("first")
    git(tmp_path, "checkout", "-qb", "work")
    git(tmp_path, "checkout", "-q", "main")
    write({"a": STDIO, "theirs": REMOTE})
    commit("theirs")
    git(tmp_path, "checkout", "-q", "work")
    write({"a": STDIO, "mine": REMOTE})
    return first


def test_what_was_added_on_main_meanwhile_is_not_shown_as_removed(behind):
    stream = events(base="main")
    assert altered(stream) == [("added", "mine")]
    assert label(stream) == f"main@{behind} (merge base)"


def test_a_commit_of_the_branch_itself_is_named_without_a_note(behind):
    assert label(events(base="HEAD")) == f"HEAD@{behind}"


def test_a_folder_called_like_a_branch_is_no_base(behind):
    Path("main").mkdir()
    assert altered(events(base="main")) == [("added", "mine")]


def test_roots_alone_may_change_and_the_entries_they_concern_are_judged(behind):
    write({"a": {**STDIO, "default_in_roots": ["ops"]}, "b": STDIO})
    write({"main": {}}, "roots.json")
    commit("roots")
    write({"main": {}, "ops": {}}, "roots.json")
    stream = events(base="HEAD")
    assert altered(stream) == [("changed", "a")]
    assert finished(stream).judged == 1


@pytest.mark.parametrize("base", ["", " "])
def test_an_empty_base_is_a_clear_line(behind, base):
    with pytest.raises(UserInputError, match="--base is empty"):
        events(base=base)


def test_all_without_a_base_is_a_clear_line(behind):
    with pytest.raises(UserInputError, match="without --base there is nothing to compare with"):
        events(every_entry=True)
    assert finished(events(every_entry=True, base="HEAD")).judged == 2


def test_a_broken_base_is_named_by_its_commit(behind):
    Path("mcp.json").write_text("{")
    broken = commit("broken")
    write({"a": STDIO})
    with pytest.raises(UserInputError, match=rf"HEAD@{broken}:mcp\.json:1:2: not JSON"):
        events(base="HEAD")


def test_a_base_that_is_not_there_cannot_be_run(behind):
    with pytest.raises(CannotRunError, match="--base nobody: this clone does not have it"):
        events(base="nobody")
