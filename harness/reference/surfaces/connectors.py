"""The rows of the Connectors page: every catalog server, its state and the way out of it (seed 002)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.credentials.key import credential_key
from harness.reference.readiness.probe import Status
from harness.reference.readiness.states import State, by_severity, needs_attention

Instructions = Callable[[str], str]
"""Where the value of a variable has to be put, as told to a human."""


class ConnectorRow(NamedTuple):
    """One row. `reason` is the Markdown form; `instructions` are filled in missing_configuration alone."""

    name: str
    title: str
    state: State
    label: str
    reason: str | None
    authorizable: bool
    instructions: tuple[str, ...]
    error_message: str | None


def rows(statuses: Iterable[Status], where_to_set: Instructions) -> list[ConnectorRow]:
    """All rows, worst first; within one severity by title, whatever its case, as the page was rendered."""
    rendered = sorted((row(status, where_to_set) for status in statuses), key=lambda each: each.title.casefold())
    return by_severity(rendered, lambda each: each.state)


def row(status: Status, where_to_set: Instructions) -> ConnectorRow:
    """One server's row."""
    return ConnectorRow(
        name=status.name,
        title=status.title,
        state=status.state,
        label=status.label,
        reason=status.reason_markdown,
        authorizable=offers_authorize(status),
        instructions=instructions(status, where_to_set),
        error_message=status.error_message,
    )


def offers_authorize(status: Status) -> bool:
    """Whether the row has an Authorize button: only where a click is the fix."""
    return status.authorizable


def instructions(status: Status, where_to_set: Instructions) -> tuple[str, ...]:
    """Where to put each missing value; nothing for a name whose status could not be read."""
    if status.state is not State.MISSING_CONFIGURATION:
        return ()
    return tuple(where_to_set(name) for name in status.missing_variables)


def unclaimed(catalog: Catalog, stored_keys: Iterable[str]) -> tuple[str, ...]:
    """The stored credential keys that no server of the catalog has now: listed apart, counted nowhere."""
    claimed = {credential_key(name, entry.credential_config()) for name, entry in catalog.entries.items()}
    return tuple(key for key in stored_keys if key not in claimed)


def attention(states: Sequence[str]) -> int:
    """How many rows need attention."""
    return sum(needs_attention(state) for state in states)


def attention_line(states: Sequence[str]) -> str:
    """The page's count."""
    count = attention(states)
    if not count:
        return "Everything is configured"
    return f"{count} {'needs' if count == 1 else 'need'} attention, listed first"
