"""What a runtime does to any session with a fault in it, told once for the runtime and not of each entry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness.gate.battery.judging import SILENT, SLACK_SECONDS, WAITS, Reference
from harness.gate.battery.kinds import KINDS
from harness.gate.battery.results import Fact
from harness.gate.spawn import Runtime

SHOWN_KINDS = 3


def facts_of(references: Mapping[tuple[str, str, str], Reference], runtimes: Sequence[Runtime]) -> tuple[Fact, ...]:
    """The facts of each runtime, from (runtime, transport, kind) to what befell a plain entry."""
    found: list[Fact] = []
    for runtime in runtimes:
        own = {key[1:]: each for key, each in references.items() if key[0] == runtime.label}
        found += [fact for fact in (_hides(runtime, own) or _holds(runtime, own), _silent(runtime, own)) if fact]
    return tuple(found)


Own = Mapping[tuple[str, str], Reference]


def _hides(runtime: Runtime, own: Own) -> Fact | None:
    late = {kind: known.hidden_seconds for (_, kind), known in own.items() if known.hidden_seconds > SLACK_SECONDS}
    if not late:
        return None
    seconds = max(late.values())
    text = f"offers nobody's tools until a hanging server is given up, {seconds:.0f} s at most"
    return Fact(WAITS, runtime.label, text, seconds, in_order(late))


def _holds(runtime: Runtime, own: Own) -> Fact | None:
    held = {kind: known.held_seconds for (_, kind), known in own.items() if known.held_seconds > SLACK_SECONDS}
    if not held:
        return None
    seconds = max(held.values())
    text = f"does not ask the model until a hanging server is given up, {seconds:.0f} s at most"
    return Fact(WAITS, runtime.label, text, seconds, in_order(held))


def _silent(runtime: Runtime, own: Own) -> Fact | None:
    silent = in_order({kind for (_, kind), known in own.items() if known.named is False})
    if not silent:
        return None
    shown = (
        ", ".join(silent)
        if len(silent) <= SHOWN_KINDS
        else f"{len(silent)} of {len({kind for _, kind in own})} kinds of fault"
    )
    text = f"names no failed server in what it prints and logs ({shown})"
    return Fact(SILENT, runtime.label, text, 0.0, silent)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Names of kinds in the order of the list of kinds."""
    wanted = set(names)
    return tuple(kind.name for kind in KINDS if kind.name in wanted)
