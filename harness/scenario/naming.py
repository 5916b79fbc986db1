"""Names of actors: what a scenario writes, and what the simulation calls them.

A session `S` is an actor of its own; its runtime is `S/claude`, a server of that `S/claude/notion`. A second of one
name is `S#2`. In a scenario a name means every actor whose full name, full name without numbers, or last part is that;
the names that a timeline prints (`claude#2`, `S claude#2`) mean just that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from harness.scenario.model import Match
from harness.world.model import Event, Fault, Hold

OPERATOR = "operator"
GLOB = frozenset("*?[")
_NUMBER = re.compile(r"#\d+")


def plain(actor: str) -> str:
    """A name without the numbers of repetitions."""
    return _NUMBER.sub("", actor) if "#" in actor else actor


@lru_cache(maxsize=4096)
def is_meant(pattern: str, actor: str) -> bool:
    """Whether a scenario's name or glob means this actor."""
    if pattern in ("*", actor):
        return True
    bare = plain(actor)
    if any(fnmatchcase(name, pattern) for name in (actor, bare, bare.rpartition("/")[2])):
        return True
    return ("#" in pattern or " " in pattern) and any(fnmatchcase(name, pattern) for name in printed(actor))


def printed(actor: str) -> Iterator[str]:
    """The names that a timeline shows an actor by: `claude#2`, `S claude#2`, `session S#2`."""
    session, slash, _ = actor.partition("/")
    if not slash:
        yield f"session {actor}"
        return
    for name in (actor, plain(actor)):
        last = name.rpartition("/")[2]
        yield last
        yield f"{session} {last}"


def session_of(actor: str) -> str:
    """The session that an actor belongs to; the operator is its own."""
    return plain(actor.partition("/")[0])


def matching(match: Match, events: Iterable[Event]) -> Iterator[Event]:
    """The events that are meant."""
    return (event for _, event in numbered(match, events))


def numbered(match: Match, events: Iterable[Event]) -> Iterator[tuple[int, Event]]:
    """The same, each with its number. A name that is no glob is found before anything else is compared."""
    named: Iterable[tuple[int, Event]] = enumerate(events)
    if not is_glob(match.event):
        named = [each for each in named if each[1].name == match.event]
    return (each for each in named if is_match(match, each[1]))


@lru_cache(maxsize=4096)
def is_glob(pattern: str) -> bool:
    """Whether a pattern may mean another text than itself."""
    return not GLOB.isdisjoint(pattern)


def is_match(match: Match, event: Event) -> bool:
    """Whether an event is meant: texts of its details are compared as globs, lists by any of their items."""
    return (
        is_like(event.name, match.event)
        and is_meant(match.who, event.actor)
        and details_match(match.where, event.details)
    )


@lru_cache(maxsize=4096)
def is_like(name: str, pattern: str) -> bool:
    """Whether a glob means this name."""
    return fnmatchcase(name, pattern)


def details_match(where: Mapping[str, Any], details: Mapping[str, Any]) -> bool:
    """Whether all details are as wanted."""
    return all(key in details and _detail_matches(wanted, details[key]) for key, wanted in where.items())


def _detail_matches(wanted: Any, found: Any) -> bool:
    if isinstance(found, list | tuple):
        return any(_detail_matches(wanted, item) for item in found)
    if isinstance(wanted, str):
        return fnmatchcase(str(found), wanted) if is_glob(wanted) else str(found) == wanted
    return bool(wanted == found) and isinstance(wanted, bool) == isinstance(found, bool)


class NamedFault(Fault):
    """A fault whose actor is written as scenarios write names."""

    __slots__ = ()

    def is_meant(self, actor: str) -> bool:
        """As a fault's, once the name is resolved."""
        return is_meant(self.actor, actor)


class NamedHold(Hold):
    """A hold whose actor is written as scenarios write names."""

    __slots__ = ()

    def matches(self, actor: str, label: str) -> bool:
        """Whether it holds this actor here."""
        return is_meant(self.actor, actor) and fnmatchcase(label, self.at)
