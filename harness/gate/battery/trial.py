"""The battery as the gate runs it: over a context, with the outcomes that were judged already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from harness.gate.battery.course import Battery, Trial
from harness.gate.battery.results import Mode, Progress
from harness.gate.context import Context
from harness.gate.judge import outcomes
from harness.gate.model import Judgement, State

COMES_UP = (State.STARTS, State.AUTHORIZE)
"""A server that waits for consent is struck as it will be after it."""


def try_faults(
    context: Context, judged: Mapping[str, Judgement], struck: Sequence[str], mode: Mode, progress: Progress
) -> Trial:
    """Strike these entries. `judged` are the judgements by entry; those without outcomes are judged when needed."""

    @cache
    def starts(name: str) -> frozenset[str]:
        view = context.entries[name]
        known = judged[name].outcomes if name in judged else ()
        return frozenset(each.runtime for each in known or outcomes(view, context) if each.state in COMES_UP)

    entries = {name: view.raw for name, view in context.entries.items() if isinstance(view.raw, dict)}
    wanted = [name for name in struck if name in entries]
    return Battery(entries, wanted, starts, context.runtimes, context.instance, mode).run(progress)
