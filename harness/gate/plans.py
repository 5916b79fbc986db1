"""What is to be done before and after a change is merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from harness.gate.consents import consent_change
from harness.gate.context import Context, EntryView
from harness.gate.events import Planned
from harness.gate.wording import joined
from harness.reference.prepare.budgets import CODEX_LOCAL_KEYS, PI_KEY

_BUDGET_KEYS = (*CODEX_LOCAL_KEYS, PI_KEY)


class Pair(NamedTuple):
    """One entry on both sides; `before` is None where it is added, `after` where it is removed."""

    name: str
    before: EntryView | None
    after: EntryView | None


def plan(base: Context, head: Context, altered: Sequence[Pair]) -> Iterator[Planned]:
    """Secrets, authorizations, sessions that exist already, and what is left behind."""
    consents = {pair.name: consent_change(pair.before, pair.after, head) for pair in altered}
    again = [name for name, consent in consents.items() if consent.new is not None]
    orphans = [name for name, consent in consents.items() if consent.orphan is not None]
    yield from _secrets_to_store(base, head)
    if again:
        yield Planned("before", f"tell users of {', '.join(again)} to authorize at /connectors")
    yield from _budgets_kept(altered)
    if orphans:
        yield Planned("after", f"delete the credentials of {', '.join(orphans)} that nothing uses now, at /connectors")
    yield from _secrets_to_retire(base, head)


def _secrets_to_store(base: Context, head: Context) -> Iterator[Planned]:
    fresh = [name for name in head.variable_names if name not in base.variable_names]
    unset = [name for name in fresh if head.secrets.names is None or name not in head.secrets.names]
    if unset:
        names = "its name" if len(unset) == 1 else "their names"
        yield Planned("before", f"seed {', '.join(unset)} in the secret store (or correct {names} in the catalog)")


def _secrets_to_retire(base: Context, head: Context) -> Iterator[Planned]:
    gone = [name for name in base.variable_names if name not in head.variable_names]
    if gone:
        them = "it" if len(gone) == 1 else "them"
        yield Planned("after", f"retire {plural('secret', len(gone))} {', '.join(gone)}: no entry needs {them}")


def _budgets_kept(altered: Sequence[Pair]) -> Iterator[Planned]:
    """Source: startup-timeout-earlier-prepare-wins."""
    budgets = {pair.name: budgets_moved(pair) for pair in altered}
    families = list(dict.fromkeys(family for moved in budgets.values() for family in moved))
    if families:
        names = ", ".join(name for name, moved in budgets.items() if moved)
        yield Planned(
            "after",
            f"sessions that exist already keep the old start-up limit of {names} on {joined(families)} until their"
            " config is written anew",
        )


def budgets_moved(pair: Pair) -> tuple[str, ...]:
    """The runtimes whose file gets another budget for the entry than before; Claude's stands in no file."""
    if pair.before is None or pair.after is None or _accepted(pair.before) == _accepted(pair.after):
        return ()
    sides = zip(pair.before.spawns, pair.after.spawns, strict=True)
    return tuple(
        dict.fromkeys(
            old.runtime.family
            for old, new in sides
            if old.written is not None and new.written is not None and _budget(old.written) != _budget(new.written)
        )
    )


def _accepted(view: EntryView) -> int | None:
    return view.entry.startup_timeout_sec if view.entry else None


def _budget(written: Mapping[str, Any]) -> list[object]:
    return [written.get(key) for key in _BUDGET_KEYS]


def plural(noun: str, count: int) -> str:
    """`secret`, or `secrets`."""
    return noun if count == 1 else f"{noun}s"
