"""What becomes of one entry on each runtime, told from its spawns. Source: ARCHITECTURE section 8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.gate.context import Context, EntryView
from harness.gate.default_roots import default_roots
from harness.gate.launchers import fetches_at_start
from harness.gate.model import Judgement, Need, Outcome, Severity, State
from harness.gate.places import place
from harness.gate.rule import ENTRY_CHECKS, RULES
from harness.gate.spawn import Spawn
from harness.reference.credentials.key import credential_key

PROMPT_SECONDS = 1.0
"""How soon a server that is at hand answers initialize."""

COLD_START_SECONDS = 18.0
"""The slowest of nine npx servers that install at once into a fresh clone (seed 000): every clone starts cold.
The same is taken for everything else that a launcher fetches first.
"""

_STATE_OF_PROBLEM = {
    "run_killed": State.KILLS_RUN,
    "file_lost": State.SKIPPED,
    "skipped": State.SKIPPED,
    "server_fails": State.FAILS,
}


def judge(view: EntryView, context: Context, *, touched: bool) -> Judgement:
    """Judge one entry. An untouched entry (with a base) is placed and named, but nothing is prepared for it."""
    judged = outcomes(view, context) if touched else ()
    is_authorized = is_waiting(judged) if touched else view.oauth_capable
    return Judgement(
        entry=view.name,
        place=place(context.document, view.pointer),
        default_in_roots=default_roots(context, view.entry),
        needs=tuple(_needs(view, context, is_authorized=is_authorized)),
        outcomes=judged,
        touched=touched,
    )


def outcomes(view: EntryView, context: Context) -> tuple[Outcome, ...]:
    """One entry on each runtime that is judged."""
    stops = never_starts(view, context)
    return tuple(_outcome(view, spawn, stops) for spawn in view.spawns)


def is_waiting(judged: Iterable[Outcome]) -> bool:
    """Whether a human's consent makes an entry start on any of these runtimes; elsewhere nothing comes of one."""
    return any(outcome.state is State.AUTHORIZE for outcome in judged)


def outcomes_as_written(view: EntryView) -> tuple[Outcome, ...]:
    """The same without what rules say against a start: what each runtime alone makes of the entry's form."""
    return tuple(_outcome(view, spawn, {}) for spawn in view.spawns)


def never_starts(view: EntryView, context: Context) -> Mapping[str, str]:
    """The runtimes on which a rule says that the server cannot start, each with its first rule's words."""
    stops: dict[str, str] = {}
    for identifier, rule in RULES.items():
        if not rule.never_starts:
            continue
        for hit in ENTRY_CHECKS[identifier](context, view):
            if (hit.severity or rule.severity) is Severity.ERROR:
                for label in hit.runtimes or [runtime.label for runtime in context.runtimes]:
                    stops.setdefault(label, hit.message)
    return stops


def _outcome(view: EntryView, spawn: Spawn, stops: Mapping[str, str]) -> Outcome:
    state, detail = _state(view, spawn, stops)
    return Outcome(
        runtime=spawn.runtime.label,
        state=state,
        first_request=_first_request(view, spawn) if state is State.STARTS else "never",
        tool_room=spawn.tool_name_room,
        credential_key=spawn.credential_key if view.oauth_capable else None,
        written=spawn.written,
        detail=detail,
    )


def _needs(view: EntryView, context: Context, *, is_authorized: bool) -> Iterator[Need]:
    if view.entry is None:
        return
    if view.entry.unavailable:
        yield Need("declaration", view.entry.unavailable)
        return
    known = context.secrets.names or frozenset()
    for name in view.variables.required:
        if name not in known:
            yield Need("secret", name)
    if is_authorized:
        yield Need("consent", credential_key(view.name, view.entry.credential_config()))


def _state(view: EntryView, spawn: Spawn, stops: Mapping[str, str]) -> tuple[State, str]:
    if view.entry is not None and view.entry.unavailable:
        return State.UNAVAILABLE, view.entry.unavailable
    if spawn.written is None:
        return State.NOT_WRITTEN, spawn.error or "; ".join(spawn.warnings)
    for problem in spawn.problems:
        if problem.code in _STATE_OF_PROBLEM:
            return _STATE_OF_PROBLEM[problem.code], problem.text
    if spawn.server is None:
        return State.SKIPPED, ""
    if spawn.unreachable:
        return State.FAILS, spawn.unreachable
    if spawn.runtime.label in stops:
        return State.FAILS, stops[spawn.runtime.label]
    return (State.AUTHORIZE if view.oauth_capable else State.STARTS), ""


def _first_request(view: EntryView, spawn: Spawn) -> str:
    return spawn.in_first_request(COLD_START_SECONDS if fetches_at_start(view.fields) else PROMPT_SECONDS)
