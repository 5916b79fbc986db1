"""What a server advertised about OAuth, recorded, so that a page that cannot ask reads a fact.

Source: seed 002 "What the server advertised, recorded". Deciding wrongly that a server needs no OAuth is silent, so
only one kind of answer says so, and for seven days alone.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast, get_args

from harness.reference.oauth.metadata import has_bearer_challenge
from harness.reference.secrets.blank import is_blank
from harness.world import Ambiguous, NotSent, Response, Transaction, World, header

TABLE = "mcp_server_oauth_requirements"

Determination = Literal["advertised_required", "advertised_not_required", "undetermined"]
DETERMINATIONS: tuple[str, ...] = get_args(Determination)
UNDETERMINED: Determination = "undetermined"

NOT_REQUIRED_FOR_SECONDS = 7 * 24 * 60 * 60
MCP_TYPES = frozenset({"application/json", "text/event-stream"})
DETAIL_CHARACTERS = 255

Answer = Response | NotSent | Ambiguous


class Record(NamedTuple):
    """One server config's last answer. `recorded_at` in seconds since the epoch; `detail` a status or an error."""

    server_name: str
    credential_key: str
    determination: str
    recorded_at: float
    detail: str | None = None


def determination(answer: Answer) -> Determination:
    """What the unauthenticated GET says, once no document led to an authorization server."""
    if not isinstance(answer, Response):
        return UNDETERMINED
    if answer.status == 401 and has_bearer_challenge(header(answer.headers, "WWW-Authenticate")):
        return "advertised_required"
    if 200 <= answer.status < 300 and is_mcp_type(header(answer.headers, "Content-Type")):
        return "advertised_not_required"
    return UNDETERMINED


def is_mcp_type(content_type: str | None) -> bool:
    """Whether an answer has the type of an MCP server's, parameters and case left out."""
    return (content_type or "").partition(";")[0].strip(" \t").lower() in MCP_TYPES


def effective(record: Record | None, now: float) -> Determination:
    """What a record says now: nothing recorded, or a "not required" of seven days and more, says nothing."""
    if record is None or record.determination not in DETERMINATIONS:
        return UNDETERMINED
    if record.determination == "advertised_not_required" and now - record.recorded_at >= NOT_REQUIRED_FOR_SECONDS:
        return UNDETERMINED
    return cast("Determination", record.determination)


def oauth_required_for(record: Record | None, now: float) -> bool | None:
    """Whether OAuth is required; None: unknown, which every reader takes for "it might be"."""
    return {"advertised_required": True, "advertised_not_required": False}.get(effective(record, now))


def log_line(server_name: str, determination: str, error: str | None = None) -> str:
    """What a spawn's log says of an answer; "not required" and "could not tell" are never told alike."""
    if determination == "advertised_required":
        return f"MCP server '{server_name}': advertised: required"
    if determination == "advertised_not_required":
        return f"MCP server '{server_name}': advertised: not required"
    why = "" if error is None else f" ({error})"
    return f"MCP server '{server_name}': could not determine whether OAuth is required{why}"


def is_recordable(server_name: str | None, credential_key: str | None, determination: str) -> bool:
    """Whether an answer can be kept: of a named config, and one of the three values."""
    return not is_blank(server_name) and not is_blank(credential_key) and determination in DETERMINATIONS


def kept_detail(detail: str | None) -> str | None:
    """The text that is stored beside an answer."""
    return None if is_blank(detail) else str(detail)[:DETAIL_CHARACTERS]


async def record(
    world: World, server_name: str | None, credential_key: str | None, determination: str, detail: str | None = None
) -> None:
    """Keep an answer in place of the one before it, best effort: nothing that goes wrong here disturbs the caller."""
    if not is_recordable(server_name, credential_key, determination):
        return
    values = {
        "server_name": server_name,
        "determination": determination,
        "detail": kept_detail(detail),
        "recorded_at": world.clock.now(),
    }
    try:
        await write(await world.store.begin(), str(credential_key), values)
    except (OSError, sqlite3.Error):
        world.events.emit("log", level="warn", text=f"MCP server '{server_name}': its OAuth answer was not recorded")


async def write(transaction: Transaction, credential_key: str, values: Mapping[str, Any]) -> None:
    """Replace a row; a lock on it never outlives a failure."""
    try:
        await transaction.put(TABLE, credential_key, values)
        await transaction.commit()
    except (OSError, sqlite3.Error):
        await transaction.rollback()
        raise


async def recorded(world: World, credential_key: str) -> Record | None:
    """The last answer of exactly this config."""
    transaction = await world.store.begin()
    row = await transaction.get(TABLE, credential_key)
    await transaction.rollback()
    return None if row is None else read_record(credential_key, row.values)


async def all_recorded(world: World) -> dict[str, Record]:
    """All answers by credential key."""
    return {row.key: read_record(row.key, row.values) for row in await world.store.rows(TABLE)}


def read_record(credential_key: str, values: Mapping[str, Any]) -> Record:
    """A row as it was stored."""
    return Record(
        server_name=values["server_name"],
        credential_key=credential_key,
        determination=values["determination"],
        recorded_at=values["recorded_at"],
        detail=values.get("detail"),
    )
