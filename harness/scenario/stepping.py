"""The steps of a scenario file."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from typing import Any

from fake_runtimes.plan import ToolCall, Turn
from harness.scenario import model
from harness.scenario.desk import ACTORS
from harness.scenario.document import Document, kind_of
from harness.scenario.model import Step
from harness.scenario.paths import checked_path
from harness.scenario.positions import Path
from harness.scenario.vocabulary import checked_runtime, checked_runtimes, plain_match

NOT_IN_A_NAME = ("/", "#")
LONGEST_NAME = 100
"""A session's name is that of its folder, and part of its processes' names."""
OF_A_PERSON = ("session", "user", "pastes", "repeats", "wait", "url", "takes_seconds")


def read_step(document: Document, index: int, table: Mapping[str, Any]) -> Step:
    """One `[[step]]`. Raises UserInputError."""
    path = ("step", index)
    kind = kind_of("step", table) or ""
    action = read_action(document, kind, table, path)
    only_on = checked_runtimes(document, table, "only_on", path)
    return Step(action, table.get("name", ""), only_on, document.places.line((*path, kind)))


def read_action(document: Document, kind: str, table: Mapping[str, Any], path: Path) -> model.Action:
    """What is done."""
    match kind:
        case "start" | "follow_up":
            return read_start(document, table, path, again=kind == "follow_up")
        case "advance":
            return model.Advance(float(table["advance"]))
        case "kill":
            return model.Kill(table["kill"], table.get("signal", "SIGKILL"))
        case "edit":
            unset = tuple(table.get("unset", ()))
            return model.Edit(table["edit"], table.get("set", {}), unset, table.get("delete", False))
        case "select":
            return model.Select(table["select"], tuple(table["servers"]))
        case "write":
            return model.Write(table["write"], table["text"], table.get("session"), table.get("mode", 0o644))
        case "remove":
            return model.Remove(table["remove"], table.get("session"))
        case "authorize" | "job" | "provider":
            return read_without_session(document, kind, table, path)
    wanted, limit = table["wait_for"], table.get("limit_seconds")
    if isinstance(wanted, str):
        return model.Await(None, wanted, limit)
    return model.Await(plain_match(wanted), None, limit)


def read_without_session(document: Document, kind: str, table: Mapping[str, Any], path: Path) -> model.Action:
    """What is done that belongs to no session."""
    if kind == "authorize":
        given = {key: table[key] for key in OF_A_PERSON if key in table}
        return model.Authorize(table["authorize"], **given)
    if kind == "job":
        return model.RunJob(table["job"], float(table.get("seconds", 0.0)), table.get("wait", True))
    answers = {endpoint: tuple(each) for endpoint, each in table.get("answers", {}).items()}
    changes = (table.get("set", {}), answers, table.get("always", {}), table.get("revokes", ""))
    if not any(changes):
        document.fail(path, f"nothing changes for {table['provider']}", "Add set, answers, always or revokes.")
    return model.Provide(table["provider"], *changes, table.get("drawn", False))


def read_start(document: Document, table: Mapping[str, Any], path: Path, *, again: bool) -> model.Start:
    """A run of a session."""
    session = table["follow_up" if again else "start"]
    if session in ACTORS:
        what = f"{session!r} is the orchestrator's own, no name for a session"
        document.fail(path, what, "Call the session otherwise.")
    is_word = session.strip(". ") and session.isprintable() and len(session) <= LONGEST_NAME
    if any(mark in session for mark in NOT_IN_A_NAME) or not is_word:
        document.fail(path, f"{session!r} is no name for a session", "Use letters, digits and dashes.")
    if "servers" in table and "root" in table:
        document.fail((*path, "root"), "a step has both `servers` and `root`", "Keep one of them.")
    if "runtime" in table:
        checked_runtime(document, table["runtime"], (*path, "runtime"))
    clone = table.get("clone", "")
    if clone.startswith("~/"):
        clone = f"{model.HOME}/{clone[2:]}"
    if clone and not clone.startswith("/"):
        document.fail((*path, "clone"), f"`clone` is {clone!r}", f"Write an absolute path; ~/ is {model.HOME}.")
    if clone:
        checked_path(document, clone, (*path, "clone"), is_file=False)
    return model.Start(
        session,
        again,
        tuple(table["servers"]) if "servers" in table else None,
        table.get("root"),
        posixpath.normpath(clone) if clone else "",
        table.get("runtime"),
        tuple(map(read_turn, table["turns"])) if "turns" in table else (Turn(),),
        table.get("environment", {}),
        table.get("wait", True),
        tuple(map(float, table.get("after_seconds", (0.0,)))),
    )


def read_turn(table: Mapping[str, Any]) -> Turn:
    """One model request and the calls that follow."""
    calls = tuple(ToolCall(call["server"], call["tool"], call.get("args", {})) for call in table.get("calls", ()))
    return Turn(calls, float(table.get("seconds", 1.0)))


def check_order(document: Document, steps: Sequence[Step]) -> None:
    """A session is started once, and before it is followed up; a name is one step's."""
    started: set[str] = set()
    named: set[str] = set()
    for index, step in enumerate(steps):
        action, path = step.action, ("step", index)
        if step.name and step.name in named:
            document.fail((*path, "name"), f"two steps are called {step.name!r}", "Give each a name of its own.")
        named.add(step.name)
        if isinstance(action, model.Start):
            if action.again and action.session not in started:
                document.fail(path, f"session {action.session} was not started before", "Use start first.")
            if not action.again and action.session in started and not step.only_on:
                document.fail(path, f"session {action.session} is started twice", "Use follow_up.")
            started.add(action.session)
