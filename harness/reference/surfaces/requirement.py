"""Why a row of the Connectors page asks for authorization: assumed, advertised, another key, no refresh token.

Source: seed 002 "What the server advertised, recorded". Read from what is recorded; nothing is asked, and the record
changes no button (requirement-button-independent).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.catalog.entry import Entry
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.lookup import explain_lookup
from harness.reference.credentials.state import StoredCredential, state_of
from harness.reference.oauth.requirement import Record, all_recorded, effective
from harness.reference.readiness.probe import Status
from harness.reference.readiness.states import State
from harness.reference.surfaces.authorization import ONE_SHOT_NOTE
from harness.reference.surfaces.connectors import offers_authorize
from harness.world import World

Cause = Literal["advertised", "assumed", "recorded_open", "key_mismatch", "no_refresh_token"]

TEXTS: Mapping[Cause, str | None] = {
    "advertised": None,
    "assumed": "Zimmer is assuming that this server requires OAuth: it has not said whether it does.",
    "recorded_open": "The server last answered without a token.",
    "key_mismatch": "A credential of this server is stored under another key: its type, URL or headers were changed.",
    "no_refresh_token": ONE_SHOT_NOTE,
}


class RequirementRow(NamedTuple):
    """Button, cause (for machines) and text (for people; None: nothing to add) of a row."""

    authorizable: bool
    cause: Cause | None
    text: str | None


async def requirement_rows(
    world: World,
    catalog: Catalog,
    statuses: Iterable[Status],
    credentials: Mapping[str, StoredCredential],
) -> dict[str, RequirementRow]:
    """The rows of the page by server, from what is stored: no server is contacted (requirement-two-askers)."""
    records, now = await all_recorded(world), world.clock.now()
    return {
        status.name: requirement_row(status, catalog.require(status.name), records, credentials, now)
        for status in statuses
    }


def requirement_row(
    status: Status,
    entry: Entry,
    records: Mapping[str, Record],
    credentials: Mapping[str, StoredCredential],
    now: float,
) -> RequirementRow:
    """What a row says of authorization. `records` and `credentials` are by credential key."""
    cause = authorization_cause(status, entry, records, credentials, now)
    return RequirementRow(offers_authorize(status), cause, None if cause is None else cause_text(cause))


def cause_text(cause: Cause) -> str | None:
    """A cause for people: silent where the server advertised the requirement (requirement-row-says-assumed)."""
    return TEXTS[cause]


def authorization_cause(
    status: Status,
    entry: Entry,
    records: Mapping[str, Record],
    credentials: Mapping[str, StoredCredential],
    now: float,
) -> Cause | None:
    """Which branch a row took (requirement-three-causes-distinct); None where nobody has to authorize anything."""
    key = credential_key(entry.name, entry.credential_config())
    stored = credentials.get(key)
    if stored is not None and state_of(stored).requires_periodic_reauth:
        return "no_refresh_token"
    if status.state is not State.NEEDS_AUTHORIZATION:
        return None
    if is_under_another_key(key, credentials):
        return "key_mismatch"
    return requirement_cause(record_of(entry, records), now)


def is_under_another_key(key: str, stored_keys: Iterable[str]) -> bool:
    """Whether a credential of the same name is stored, but not where it is looked up."""
    return explain_lookup(key, stored_keys).verdict == "key_mismatch"


def record_of(entry: Entry, records: Mapping[str, Record]) -> Record | None:
    """The record of exactly this config (requirement-page-reads-record)."""
    return records.get(credential_key(entry.name, entry.credential_config()))


def requirement_cause(record: Record | None, now: float) -> Cause:
    """What the recorded answer says at this moment."""
    said = effective(record, now)
    if said == "undetermined":
        return "assumed"
    return "advertised" if said == "advertised_required" else "recorded_open"
