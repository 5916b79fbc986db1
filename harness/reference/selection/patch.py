"""Changing a session's server list: PATCH /api/v1/sessions/:id/mcp_servers, and the session page's editor.

Source: seed 000 "Selection is per session" (max 50); requirements selection-patch-*, selection-ui-mutates.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from harness.reference.selection.session import Session, unknown_names

MAXIMUM_SERVERS = 50
MAXIMUM_NAME_CHARACTERS = 100
UPDATED = "MCP servers updated"


class PatchAnswer(NamedTuple):
    """The answer and the session afterwards: 200 or 422, list, deliberate emptiness, status map, info log line."""

    status: int
    error: str | None
    message: str
    mcp_servers: tuple[str, ...]
    explicitly_empty: bool
    mcp_servers_status: dict[str, Any]
    log: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """The error envelope of a refusal; of a change, what the answer says beside the session."""
        if self.error is None:
            return {"message": self.message}
        return {"error": self.error, "message": self.message, "messages": [self.message]}


class Changed(NamedTuple):
    """An answer, and the session after it."""

    answer: PatchAnswer
    session: Session


class Refusal(NamedTuple):
    """Why a list is not accepted."""

    error: str
    message: str


def patch(
    body: Mapping[str, Any],
    before: Sequence[str],
    catalog_names: Collection[str],
    status: Mapping[str, Any] | None = None,
    *,
    explicitly_empty: bool = False,
) -> PatchAnswer:
    """Replace the list by `body["mcp_servers"]`; a missing key or null clears it, a refusal changes nothing.

    Checks in this order: array, length as sent, cleaning, catalog membership. Readiness is not asked.
    """
    statuses = dict(status or {})
    requested = requested_list(body)
    refusal = refuse_form(requested)
    cleaned = clean(requested) if refusal is None else ()
    refusal = refusal or refuse_unknown(cleaned, catalog_names)
    if refusal is not None:
        return PatchAnswer(422, *refusal, tuple(before), explicitly_empty, statuses)
    kept = {name: value for name, value in statuses.items() if name in cleaned or name not in before}
    return PatchAnswer(200, None, UPDATED, cleaned, not cleaned, kept, log_line(before, cleaned))


def change(session: Session, body: Mapping[str, Any], catalog_names: Collection[str]) -> Changed:
    """`patch` on a session: a refusal leaves it as it was."""
    empty = session.explicitly_empty
    answer = patch(body, session.chosen, catalog_names, explicitly_empty=empty)
    after = session._replace(chosen=answer.mcp_servers, explicitly_empty=answer.explicitly_empty)
    return Changed(answer, after)


def edit_on_page(session: Session, names: Sequence[str], catalog_names: Collection[str]) -> Changed:
    """What the session page's editor does: the same change of the same list as the API's
    (selection-ui-mutates).
    """
    return change(session, {"mcp_servers": list(names)}, catalog_names)


def shown_on_page(session: Session) -> tuple[str, ...]:
    """The list the session page's editor starts from."""
    return session.chosen


def requested_list(body: Mapping[str, Any]) -> object:
    """The list a body asks for; none at all is an empty one (selection-patch-clear)."""
    value = body.get("mcp_servers")
    return [] if value is None else value


def refuse_form(requested: object) -> Refusal | None:
    """What is wrong with the list as sent; blanks still count towards the limit
    (selection-patch-count-before-clean).
    """
    if not isinstance(requested, list | tuple):
        return Refusal("Invalid parameter", "mcp_servers must be an array")
    if len(requested) > MAXIMUM_SERVERS:
        return Refusal("Too many servers", f"Maximum {MAXIMUM_SERVERS} MCP servers")
    return None


def refuse_unknown(names: Sequence[str], catalog_names: Collection[str]) -> Refusal | None:
    """Refuses names that the catalog does not have."""
    unknown = unknown_names(names, catalog_names)
    return Refusal("Invalid servers", f"Invalid MCP servers: {', '.join(unknown)}") if unknown else None


def clean(requested: object) -> tuple[str, ...]:
    """The names in the order sent: blanks dropped, ends trimmed, cut to the longest name; repeated names stay."""
    items = requested if isinstance(requested, list | tuple) else ()
    return tuple(name for name in (cleaned_name(item) for item in items) if name)


def cleaned_name(item: object) -> str:
    """One name as it is stored; an item that is no text is refused later under its JSON spelling, null is a blank."""
    text = item if isinstance(item, str) else "" if item is None else json.dumps(item)
    return text.strip()[:MAXIMUM_NAME_CHARACTERS]


def log_line(before: Sequence[str], after: Sequence[str]) -> str | None:
    """The info line about a change of membership, None when no name came or went
    (selection-patch-log-and-status).
    """
    changes = (
        ("added", [name for name in after if name not in before]),
        ("removed", [name for name in before if name not in after]),
    )
    parts = [f"{what}: {', '.join(names)}" for what, names in changes if names]
    return f"{UPDATED} via API ({'; '.join(parts)})" if parts else None
