"""What each server is expected to show in each check, and how what it shows differs from that, both ways."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from scenarios.certification.official.running import BEST_FIRST, Check, Played, rank

BASELINE = Path(__file__).with_name("baseline.toml")
NEED_NO_REASON = ("SUCCESS", "INFO")
ABSENT = "ABSENT"
"""Of a server that is like another: a check that the suite does not make of this one."""

KEYS = {"suites", "servers", "status", "why", "checks"}


class Baseline(NamedTuple):
    """What is expected: of servers that are certified, and which scenarios are known to prove nothing."""

    groups: tuple[Group, ...]
    idle: frozenset[str] = frozenset()


class Group(NamedTuple):
    """Checks of which the same is expected for the same reason. No suites, no servers: all of them."""

    status: str
    checks: tuple[str, ...]
    why: str = ""
    suites: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()


class Difference(NamedTuple):
    """A check that is not as expected: fails, passes (a stale entry), differs, missing, or unknown to the baseline."""

    kind: str
    key: str
    expected: str
    found: str
    message: str = ""

    def __str__(self) -> str:
        said = f": {self.message}" if self.message else ""
        return f"{self.kind} {self.key}: expected {self.expected}, found {self.found}{said}"


def read_baseline(text: str) -> Baseline:
    """A baseline file. Raises ValueError."""
    tables = tomllib.loads(text)
    return Baseline(tuple(read_group(table) for table in tables["expected"]), frozenset(tables.get("idle", ())))


def read_group(table: Mapping[str, Any]) -> Group:
    """One group. Raises ValueError for what it cannot mean."""
    unknown = sorted(set(table) - KEYS)
    if unknown:
        raise ValueError(f"a group of the baseline has no {unknown[0]!r}")
    lists = {key: tuple(table.get(key, ())) for key in ("checks", "suites", "servers")}
    group = Group(status=table.get("status", ""), why=table.get("why", ""), **lists)
    if group.status not in (*BEST_FIRST, ABSENT):
        raise ValueError(f"a status is one of {', '.join(BEST_FIRST)}, {ABSENT}, not {group.status!r}")
    if group.status not in NEED_NO_REASON and not group.why:
        raise ValueError(f"{group.checks[:1]}: {group.status} needs a reason (why)")
    return group


def expected(groups: Iterable[Group], suite: str, server: str, like: str = "") -> dict[str, str]:
    """The status that is expected of each check of a server; of one that is `like` another, where it differs.

    Raises ValueError for a check that is named twice, or named again though it is as in the other server.
    """
    base = expected(groups, suite, like) if like else {}
    own: dict[str, str] = {}
    for group in groups:
        if group.suites and suite not in group.suites:
            continue
        if server not in group.servers and (group.servers or like):
            continue
        for key in group.checks:
            if key in own or base.get(key) == group.status:
                raise ValueError(f"the baseline says twice what {server} shows in {key} of {suite}")
            own[key] = group.status
    return {key: status for key, status in (base | own).items() if status != ABSENT}


def compare(wanted: Mapping[str, str], found: Mapping[str, Check]) -> Iterator[Difference]:
    """Every check that is not as expected."""
    for key in sorted(wanted.keys() | found.keys()):
        if key not in found:
            yield Difference("missing", key, wanted[key], "nothing")
        elif key not in wanted:
            yield Difference("unknown", key, "nothing", found[key].status, found[key].message)
        elif found[key].status != wanted[key]:
            check = found[key]
            yield Difference(kind(wanted[key], check.status), key, wanted[key], check.status, check.message)


def kind(wanted: str, found: str) -> str:
    """The word for a status that differs."""
    if rank(found) > rank(wanted) and found not in NEED_NO_REASON:
        return "fails"
    return "passes" if found == "SUCCESS" else "differs"


def unmoved(played: Iterable[Played], idle: Collection[str]) -> Iterator[str]:
    """What is wrong with scenarios that were run against a server which does nothing: one that finds no fault with it
    proves nothing of any other server either, and is named in the baseline (`idle`)."""
    for each in played:
        proves = any(check.status == "FAILURE" for check in each.checks)
        if proves and each.scenario in idle:
            yield f"passes {each.scenario}: it does find fault with a server that does nothing"
        elif not proves and each.scenario not in idle:
            yield f"fails {each.scenario}: it finds no fault with a server that does nothing"
