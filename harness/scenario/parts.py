"""What can be taken from a scenario's tree: one part at a time, with everything that speaks of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

from harness.scenario.trees import Tree

ENTRY_KEYS = ("type", "command", "args", "url")
"""Without these a catalog entry is another one, not a smaller one."""
STEP_KEYS = (
    "after_seconds", "environment", "limit_seconds", "mode", "name", "servers", "turns", "wait", "clone",
    "pastes", "repeats", "takes_seconds", "url", "answers", "always",
)  # fmt: skip
TURN_KEYS = ("calls", "seconds")
EXPECT_KEYS = ("run",)
ACTOR_KEYS = ("who", "actor", "kill", "wait_for")
NAMED_TABLES = ("server", "authorization", "registered", "package", "secrets", "environment", "files", "roots")
ROWS = ("fault", "hold", "credential", "expect", "step")
SAID_ABOUT_FILES = ("requirements", "old_bug", "not_at", "tiers")
"""What a scenario file says of itself: nothing of the run depends on it."""

Path = tuple[str | int, ...]


class Part(NamedTuple):
    """A part by its place, and the tree without it."""

    path: Path
    without: Callable[[Tree], Tree]

    def __str__(self) -> str:
        return ".".join(map(str, self.path))


def groups(tree: Tree) -> Iterator[Part]:
    """Whole tables: the first things to try."""
    for name in (*ROWS[:4], *NAMED_TABLES):
        if tree.get(name) and name != "expect":
            yield Part((name,), _cutter((name,)))


def parts(tree: Tree) -> Iterator[Part]:
    """Every part, the larger ones first."""
    for session in _sessions(tree):
        yield Part(("session", session), partial(without_session, name=session))
    for name in tree.get("catalog", {}):
        yield Part(("catalog", name), partial(without_server, name=name))
    for path in _paths(tree):
        yield Part(path, _cutter(path))


def _paths(tree: Tree) -> Iterator[Path]:
    for rows in ROWS:
        for index in reversed(range(len(tree.get(rows, ())))):
            yield (rows, index)
    for index, step in enumerate(tree.get("step", ())):
        yield from _of_step(("step", index), step)
    for index, expectation in enumerate(tree.get("expect", ())):
        yield from (("expect", index, key) for key in EXPECT_KEYS if key in expectation)
    for table in NAMED_TABLES:
        for name, value in tree.get(table, {}).items():
            yield (table, name)
            if isinstance(value, Mapping):
                yield from ((table, name, key) for key in value)
    for name, entry in tree.get("catalog", {}).items():
        yield from (("catalog", name, key) for key in entry if key not in ENTRY_KEYS)


def _of_step(path: Path, step: Mapping[str, Any]) -> Iterator[Path]:
    for key in STEP_KEYS:
        if key in step:
            yield (*path, key)
    if len(step.get("after_seconds", ())) > 1:
        yield from ((*path, "after_seconds", index) for index in reversed(range(len(step["after_seconds"]))))
    for index, turn in reversed(list(enumerate(step.get("turns", ())))):
        yield (*path, "turns", index)
        yield from ((*path, "turns", index, key) for key in TURN_KEYS if key in turn)


def _cutter(path: Path) -> Callable[[Tree], Tree]:
    return lambda tree: without(tree, path)


def without(tree: Tree, path: Path) -> Tree:
    """A copy of the tree without the value at a path; what is empty then goes too."""
    copy = deepcopy(tree)
    holders: list[Any] = [copy]
    for key in path[:-1]:
        holders.append(holders[-1][key])
    del holders[-1][path[-1]]
    for holder, key, inner in zip(holders[-2::-1], path[-2::-1], holders[:0:-1], strict=True):
        if not inner and not isinstance(key, int):
            del holder[key]
    return copy


def without_server(tree: Tree, name: str) -> Tree:
    """A copy without a catalog entry and all that speaks of it."""
    copy = deepcopy(tree)
    for table in ("catalog", "server"):
        copy.get(table, {}).pop(name, None)
    for rows in ("fault", "hold", "credential", "expect"):
        copy[rows] = [row for row in copy.get(rows, ()) if not _speaks_of(row, name)]
    for expectation in copy.get("expect", ()):
        for key in ("offers", "lacks", "pending"):
            if key in expectation:
                expectation[key] = [each for each in expectation[key] if each.partition("/")[0] != name]
    for step in copy.get("step", ()):
        if "servers" in step:
            step["servers"] = [server for server in step["servers"] if server != name]
        for turn in step.get("turns", ()):
            if "calls" in turn:
                turn["calls"] = [call for call in turn["calls"] if call["server"] != name]
    copy["struck"] = [server for server in copy.get("struck", ()) if server != name]
    return {key: value for key, value in copy.items() if value not in ({}, [])}


def _speaks_of(row: Mapping[str, Any], server: str) -> bool:
    named = (row.get("server"), row.get("received"), *(each.get("where", {}).get("server") for each in _matches(row)))
    return server in named or any(each.get("who", "").rpartition("/")[2] == server for each in _matches(row))


def _matches(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What a row says of events: itself, what it waits for, what it comes before."""
    inner = (row.get("until"), row.get("before"), row.get("wait_for"))
    return [row, *(each for each in inner if isinstance(each, Mapping))]


def without_session(tree: Tree, name: str) -> Tree:
    """A copy without a session: its starts, who waits for it, what is expected of it."""
    copy = deepcopy(tree)
    for rows in ("step", "expect", "hold", "fault"):
        copy[rows] = [row for row in copy.get(rows, ()) if not _of_session(row, name)]
    return {key: value for key, value in copy.items() if value not in ({}, [])}


def _of_session(row: Mapping[str, Any], session: str) -> bool:
    named = (row.get("start"), row.get("follow_up"), row.get("wait_for"), row.get("session"), row.get("select"))
    actors = (row.get("actor"), row.get("kill"), *(each.get("who") for each in _matches(row)))
    return session in named or any(str(each).partition("/")[0].partition("#")[0] == session for each in actors)


def runs(tree: Tree) -> Iterator[Part]:
    """Each step that begins a run of a session, with lower numbers for the later ones that something is said of.

    What number its own run has depends on what happens, as an authorization begins one too: each that can be is tried.
    """
    for index, step in enumerate(tree.get("step", ())):
        session = step.get("follow_up") or step.get("start")
        for first in _numbered_runs(tree, session) if session else ():
            yield Part(("step", index, "run", first), partial(_with_fewer_runs, index=index, first=first))


def _numbered_runs(tree: Tree, session: str) -> list[int]:
    """The numbers, from 2, of the runs of a session that something is said of."""
    found: set[int] = set()

    def note(number: int) -> int:
        found.add(number)
        return number

    for rows in ROWS:
        for row in tree.get(rows, ()):
            _renumbered(row, session, note, is_default=_first_session(tree) == session)
    return sorted(number for number in found if number > 1)


def _with_fewer_runs(tree: Tree, index: int, first: int) -> Tree:
    """A copy without the step that begins a run; those from `first` on are each the one before."""
    step = tree["step"][index]
    session = step.get("follow_up") or step["start"]
    copy = without(tree, ("step", index))
    is_default = _first_session(tree) == session
    for rows in ROWS:
        if rows in copy:
            copy[rows] = [
                _renumbered(row, session, lambda number: number - (number >= first), is_default=is_default)
                for row in copy[rows]
            ]
    return copy


def _first_session(tree: Tree) -> str | None:
    """Whom an expectation is about that names nobody."""
    return next((step["start"] for step in tree.get("step", ()) if "start" in step), None)


def _renumbered(row: Mapping[str, Any], session: str, change: Callable[[int], int], *, is_default: bool) -> Tree:
    """A row with other numbers of the runs of a session: `run` of an expectation, `S#2` of an actor."""
    numbered = re.compile(rf"(?<![\w-]){re.escape(session)}#(\d+)(?!\w)")

    def named(found: re.Match[str]) -> str:
        number = change(int(found[1]))
        return f"{session}#{number}" if number > 1 else session

    renumbered: Tree = {}
    for key, value in row.items():
        if key in ACTOR_KEYS and isinstance(value, str):
            renumbered[key] = numbered.sub(named, value)
        elif isinstance(value, Mapping):
            renumbered[key] = _renumbered(value, session, change, is_default=False)
        elif key == "run" and (row.get("session", session if is_default else None) == session):
            renumbered[key] = change(value)
        else:
            renumbered[key] = value
    return renumbered


def _sessions(tree: Tree) -> list[str]:
    names = [step["start"] for step in tree.get("step", ()) if "start" in step]
    return names if len(names) > 1 else []


def size(tree: Tree) -> int:
    """How many parts it has."""
    return sum(1 for _ in parts(tree))
