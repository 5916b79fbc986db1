"""What a change makes of an entry on each runtime: its state before and after, and whether that is worse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.gate.context import Context, EntryView
from harness.gate.judge import outcomes
from harness.gate.model import Outcome, State
from harness.gate.wording import joined

_GOOD = frozenset({State.STARTS, State.AUTHORIZE})


class Moved(NamedTuple):
    """An entry's outcomes on one runtime, before and after, where the states differ."""

    before: Outcome
    after: Outcome

    @property
    def is_worse(self) -> bool:
        """Whether it worked and works no more, or hurts the other servers of a session now.

        A declaration (`unavailable`) is no worsening: somebody meant it.
        """
        if self.after.state is State.UNAVAILABLE or self.after.state in _GOOD:
            return False
        return self.before.state in _GOOD or self.after.state is State.KILLS_RUN


def outcome_changes(before: EntryView, after: EntryView, base: Context, head: Context) -> tuple[Moved, ...]:
    """The runtimes on which the entry's state changes, in the order in which they are judged."""
    pairs = map(Moved, outcomes(before, base), outcomes(after, head))
    return tuple(moved for moved in pairs if moved.before.state is not moved.after.state)


def authorizing(view: EntryView, context: Context) -> tuple[str, ...]:
    """The runtimes, by their short names, on which a user's authorization makes the entry start."""
    return tuple(
        short_names(
            [outcome.runtime for outcome in outcomes(view, context) if outcome.state is State.AUTHORIZE], context
        )
    )


def state_sentences(moves: tuple[Moved, ...], head: Context) -> Iterator[str]:
    """`pi: authorize -> fails`; runtimes that fare alike share a sentence."""
    groups: dict[tuple[State, State], list[str]] = {}
    for moved in moves:
        groups.setdefault((moved.before.state, moved.after.state), []).append(moved.after.runtime)
    for (old, new), runtimes in groups.items():
        yield f"{joined(short_names(runtimes, head))}: {old.value} -> {new.value}"


def short_names(runtimes: list[str], context: Context) -> list[str]:
    """`claude`, or `claude@2.1.328` where several versions of it are judged."""
    judged: list[str] = [runtime.family for runtime in context.runtimes]
    families: dict[str, str] = {runtime.label: runtime.family for runtime in context.runtimes}
    return [label if judged.count(families[label]) > 1 else families[label] for label in runtimes]
