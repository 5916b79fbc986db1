"""What a scenario says of events, actors and tools, held against what there can be: a slip is told, never silent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from harness.scenario.document import DOCS
from harness.scenario.document import kind as kind_of
from harness.scenario.happenings import ANYBODY, HAPPENINGS, WORDS, Happening
from harness.scenario.hints import few, meant, nearest
from harness.scenario.model import Match
from harness.scenario.naming import is_meant
from harness.scenario.positions import Path
from harness.scenario.vocabulary import Vocabulary
from harness.world.sites import ACTIONS, SIGNAL_NUMBERS

_REPEATED = re.compile(r"#(\d+|[*?])")
_RUN_OF_SESSION = re.compile(r"(?:session )?([^/# ]+)#(\d+)")

TYPES = {"truth": "true or false", "number": "a number"}


def read_match(names: Vocabulary, table: Mapping[str, Any], path: Path) -> Match:
    """Which events a table means. Raises UserInputError where none can ever be meant."""
    pattern = table["event"]
    found = happenings_like(pattern)
    if not found:
        hint = meant(pattern, HAPPENINGS) or f"{DOCS} lists them all."
        names.document.fail((*path, "event"), f"no event is called {pattern!r}", hint)
    where = table.get("where", {})
    check_where(names, pattern, found, where, (*path, "where"))
    if "who" in table:
        roles = [role for each in found for role in each.roles]
        check_actor(names, table["who"], (*path, "who"), tuple(dict.fromkeys(roles)), pattern)
    return Match(pattern, table.get("who", "*"), where)


@lru_cache(maxsize=1024)
def happenings_like(pattern: str) -> tuple[Happening, ...]:
    """What a name or glob means of all that can happen."""
    return tuple(each for name, each in HAPPENINGS.items() if fnmatchcase(name, pattern))


def check_where(
    names: Vocabulary, pattern: str, found: Iterable[Happening], where: Mapping[str, Any], path: Path
) -> None:
    """The fields that are asked for are those of one event, and their values are possible."""
    kinds = list(found)
    known = dict.fromkeys(field for each in kinds for field in each.fields)
    for key in where:
        if key not in known:
            hint = nearest(key, known, lead="It has")
            names.document.fail((*path, key), f"the event {pattern} has no field `{key}`", hint)
    whole = next((each.fields for each in kinds if all(key in each.fields for key in where)), None)
    if whole is None:
        names.document.fail(path, f"no event {pattern} has all of {', '.join(where)}", f"{DOCS} lists them all.")
    for key, value in where.items():
        check_value(names, whole[key], key, value, (*path, key))


def check_value(names: Vocabulary, kind: str, key: str, value: Any, path: Path) -> None:
    """A value that the field can have."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {"truth": isinstance(value, bool), "number": is_number or isinstance(value, str)}
    if not fits.get(kind, isinstance(value, str)):
        names.document.fail(path, f"`{key}` is never {kind_of(value)}", f"It is {TYPES.get(kind, 'a text')}.")
    match kind:
        case "server":
            names.server(value, path, is_glob=True)
        case "tool":
            one_of(names, "tool", value, {tool for tools in names.tools.values() for tool in tools}, path)
        case "session":
            one_of(names, "session", value, names.sessions, path)
        case "entry":
            one_of(names, "server", value, names.servers, path)
        case "package":
            one_of(names, "package", value, names.packages, path)
        case "signal":
            one_of(names, "signal", value, SIGNAL_NUMBERS, path)
        case "action":
            one_of(names, "action", value, ACTIONS, path)
        case "authorization":
            one_of(names, "authorization server", value, names.authorizations, path)
        case "actor":
            check_actor(names, value, path)
        case word if word in WORDS:
            one_of(names, word, value, WORDS[word], path)


def one_of(names: Vocabulary, what: str, pattern: str, known: Iterable[str], path: Path) -> None:
    """The glob means at least one of what there is."""
    there = list(known) if isinstance(known, tuple) else sorted(known)
    if not any(fnmatchcase(name, pattern) for name in there):
        names.document.fail(path, f"no {what} is called {pattern!r}", nearest(pattern, there) or f"See {DOCS}.")


def check_actor(names: Vocabulary, pattern: str, path: Path, roles: tuple[str, ...] = ANYBODY, event: str = "") -> None:
    """An actor of one of these roles can be meant. Numbers of repetitions count for sessions alone:
    how often a runtime is started again nobody knows before.
    """
    run = _RUN_OF_SESSION.match(pattern)
    if run and run[1] in names.runs and int(run[2]) > names.runs[run[1]]:
        runs = names.runs[run[1]]
        who = run[1] if run[1] in names.desk else f"session {run[1]}"
        what = f"{who} has {runs} {'run' if runs == 1 else 'runs'}, so there is no {run[1]}#{run[2]}"
        names.document.fail(
            path, what, f"Use {'a further step' if run[1] in names.desk else 'follow_up'} for one more."
        )
    bare = _REPEATED.sub("", pattern)
    if any(is_meant(bare, actor) for role in roles for actor in names.actors[role]):
        return
    elsewhere = next((role for role in ANYBODY if any(is_meant(bare, each) for each in names.actors[role])), None)
    if elsewhere is not None:
        wanted = " or a ".join(roles)
        names.document.fail(
            path, f"{event} never happens to {pattern!r}, a {elsewhere}", f"It happens to a {wanted}; see {DOCS}."
        )
    known = {part for role in roles for actor in names.actors[role] for part in (actor, actor.rpartition("/")[2])}
    shown = few([*names.sessions, *names.desk, *names.families])
    below = f"{next(iter(names.sessions), 'S')}/*"
    hint = meant(bare, known) or f"There are {shown}, servers, and globs such as {below}."
    names.document.fail(path, f"nobody can be called {pattern!r}", hint)


def check_tool(names: Vocabulary, written: str, path: Path) -> None:
    """`server` or `server/tool`: both are there."""
    server, slash, tool = written.partition("/")
    names.server(server, path)
    known = names.tools.get(server)
    if slash and known is not None and tool not in known:
        hint = nearest(tool, sorted(known), lead="It has", before=f"{server}/") or "It has none."
        names.document.fail(path, f"server {server} has no tool {tool!r}", hint)
