"""The scenario file of a trouble: the same session, the same fault, and an expectation that falls. Played before it
is offered: a file that does not show what it was written for is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.errors import UserInputError
from harness.gate.battery.course import Trouble
from harness.gate.battery.judging import DELAYED, ENDLESS, HURT, LEAKED, SLACK_SECONDS, TOGETHER, UNTOLD
from harness.gate.battery.kinds import CORRUPT, DNS, EACCES, ENOENT, REFUSED, SLOW, SLOW_INSTALL_SECONDS
from harness.gate.battery.sessions import SESSION, TOOL
from harness.gate.battery.spawning import half_files, packages_of
from harness.scenario.model import FORMAT
from harness.scenario.production import Report, play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from harness.scenario.writing import toml_text

ACTIONS: Mapping[str, str] = {ENOENT: "enoent", EACCES: "eacces-exec", REFUSED: "refused", DNS: "dns"}
LONGEST_NAME = 60
_OTHER = re.compile(r"[^a-z0-9]+")


class Proof(NamedTuple):
    """A scenario file: its name, its text, and the ids of the events of its run that prove the trouble."""

    name: str
    text: str
    events: tuple[int, ...]


def proof_of(trouble: Trouble) -> Proof | None:
    """The file, or None where a scenario cannot show it."""
    expected = list(expectations(trouble))
    if not expected or is_of_one_package(trouble) or strikes_others(trouble):
        return None
    name = file_stem(trouble)
    text = toml_text(_without_none(scenario_tree(trouble, name, expected)), comment(trouble))
    try:
        report = play(read_scenario(text, f"{name}.toml"), trouble.runtime)
    except UserInputError:
        return None  # what the entry holds has no place in a scenario file
    events = proving(report)
    if events is None:
        return None
    return Proof(f"{name}.toml", text, events or events_of(report, trouble.entry))


def is_of_one_package(trouble: Trouble) -> bool:
    """Whether the one who is hurt runs the struck one's package: scenarios describe such servers by their package."""
    servers = trouble.session.servers
    struck, other = servers.get(trouble.entry), servers.get(trouble.hurt.other)
    if trouble.kind is None or trouble.kind.install == CORRUPT or struck is None or other is None:
        return False
    return bool(set(packages_of(struck)) & set(packages_of(other)))


def strikes_others(trouble: Trouble) -> bool:
    """Whether the scenario's fault would strike the one who is hurt as well: one at a program's start is everybody's
    who starts that program, and npx that is not there is there for nobody.
    """
    servers = trouble.session.servers
    struck = servers.get(trouble.entry)
    if trouble.kind is None or not trouble.kind.spawn or struck is None:
        return False
    hurt = {trouble.hurt.other} if trouble.hurt.other else set(servers) - {trouble.entry}
    return any(servers[name].command == struck.command for name in hurt & set(servers))


def proving(report: Report) -> tuple[int, ...] | None:
    """The events that make it fall; None when it does not."""
    if report.verdict in (Verdict.DEADLOCK, Verdict.TIMEOUT, Verdict.CRASH):
        return (len(report.events) - 1,) if report.events else ()
    fallen = [each.seen.events for each in report.judged if not each.seen.met]
    fallen += [each.events for each in report.invariants if each.name == "no-secret-shown" and each.holds is False]
    if report.verdict is not Verdict.FAIL or not fallen:
        return None
    return tuple(dict.fromkeys(event for events in fallen for event in events))


def events_of(report: Report, server: str) -> tuple[int, ...]:
    """What became of a server: for what shows in a file and in no event."""
    return tuple(
        number
        for number, event in enumerate(report.events)
        if event.name.startswith("server.") and event.details.get("server") == server
    )


def file_stem(trouble: Trouble) -> str:
    """`mh950-linear-pi`: the rule, the entry, the runtime."""
    words = (trouble.hurt.rule, trouble.entry, trouble.runtime.family)
    return _OTHER.sub("-", "-".join(words).lower())[:LONGEST_NAME].strip("-")


def comment(trouble: Trouble) -> str:
    """What the file is, in two lines."""
    fault = f"the server of {trouble.entry} {trouble.kind.says}" if trouble.kind else "nothing is struck"
    rule = trouble.hurt.rule
    return f"Written by the gate's battery: {fault}.\n{rule} is explained by: mcp-harness explain {rule}"


def scenario_tree(trouble: Trouble, name: str, expected: list[dict[str, Any]]) -> dict[str, Any]:
    """The whole scenario as a tree."""
    session, kind = trouble.session, trouble.kind
    server = session.servers.get(trouble.entry)
    tree: dict[str, Any] = {
        "schema": FORMAT,
        "id": name,
        "title": f"{trouble.entry} on {trouble.runtime.label}: {trouble.hurt.text}".replace("\n", " ")[:200],
        "runtime": trouble.runtime.label,
        "tiers": ["model"],
        "watched": False,
        "struck": [trouble.entry],
        "secrets": dict(session.secrets),
        "catalog": {entry: dict(fields) for entry, fields in session.catalog.items()},
    }
    if kind is not None and server is not None:
        if kind.behaviour:
            tree["server"] = {trouble.entry: {key: _plain(value) for key, value in kind.behaviour.items()}}
        if kind.install == SLOW:
            tree["package"] = {each: {"install_seconds": SLOW_INSTALL_SECONDS} for each in packages_of(server)}
        if kind.install == CORRUPT:
            tree["files"] = dict.fromkeys(half_files(session, server), "")
        action = ACTIONS.get(kind.spawn or kind.network)
        if action is not None:
            tree["fault"] = [{"action": action, "server": trouble.entry}]
    turns = [turn_table(turn.seconds, [call.server for call in turn.calls]) for turn in session.plan.turns]
    tree["step"] = [{"start": SESSION, "servers": list(session.catalog), "turns": turns}]
    tree["expect"] = expected
    return tree


def turn_table(seconds: float, servers: list[str]) -> dict[str, Any]:
    """One model request, and whose tool it calls."""
    calls = [{"server": server, "tool": TOOL} for server in servers]
    return {"seconds": seconds, "calls": calls} if calls else {"seconds": seconds}


def expectations(trouble: Trouble) -> Iterator[dict[str, Any]]:
    """What must be seen and is not."""
    other = trouble.hurt.other
    match trouble.hurt.rule:
        case rule if rule == HURT and other:
            yield {"server": other, "is": "connected"}
            yield {"event": "tool.call", "where": {"server": other, "ok": True}}
        case rule if rule in (HURT, ENDLESS):
            yield {"exit": 0}
        case rule if rule == DELAYED:
            yield {"request": 1, "offers": [other], "between": [0, trouble.allowed_seconds + SLACK_SECONDS]}
        case rule if rule == TOGETHER:
            yield {"server": trouble.entry, "is": "connected"}
        case rule if rule == LEAKED:
            yield {"invariant": "no-secret-shown"}
        case rule if rule == UNTOLD and trouble.runtime.family == "pi":
            if other:
                yield {"output": "stderr", "lacks": other}
            else:
                yield {"output": "stderr", "contains": trouble.entry}


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _without_none(value: Any) -> Any:
    """TOML has no null: a key that holds one is as good as absent for everybody who reads an entry."""
    if isinstance(value, Mapping):
        return {str(key): _without_none(item) for key, item in value.items() if item is not None}
    return [_without_none(item) for item in value if item is not None] if isinstance(value, list | tuple) else value
