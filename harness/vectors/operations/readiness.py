"""Vectors of the area `readiness`, and the given states that other operations share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.reference.catalog.entry import Entry, read_entry
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential
from harness.reference.readiness.probe import CredentialLookup, ResolutionLookup, Status, judge
from harness.reference.readiness.states import by_severity, needs_attention, rank
from harness.reference.secrets.loader import ABSENT, UNREACHABLE, Resolution
from harness.reference.surfaces.connectors import attention
from harness.vectors.registry import operation

ANSWERS = {"found": Resolution("found", "ENV"), "absent": ABSENT, "unreachable": UNREACHABLE}


@operation("readiness.rank", requirements=("readiness-severity-ranks",))
def _rank(given: dict[str, Any]) -> Any:
    return {"rank": rank(given["state"]), "attention": needs_attention(given["state"])}


@operation("readiness.sort", requirements=("readiness-severity-ranks",))
def _sort(given: dict[str, Any]) -> Any:
    ordered = by_severity(given["rows"], lambda row: row["state"])
    return {
        "order": [row["name"] for row in ordered],
        "attention": attention([row["state"] for row in ordered]),
    }


@operation(
    "readiness.state",
    requirements=(
        "readiness-token-expired-not-blocking",
        "readiness-could-not-find-out-usable",
        "readiness-store-not-missing",
        "readiness-probe-isolated",
        "readiness-missing-names-all",
        "readiness-default-not-missing",
        "readiness-needs-authorization",
        "readiness-needs-reauth",
        "readiness-oauth-ready",
        "readiness-oauth-exact-key",
        "readiness-oauth-capability",
        "readiness-static-header-resolved",
        "readiness-no-credential",
        "readiness-check-order",
        "readiness-unreachable-beats-absent",
        "readiness-reason-forms",
        "readiness-labels",
    ),
)
def _state(given: dict[str, Any]) -> Any:
    entry = read_entry(given["name"], given["entry"])
    raised = given.get("probe_raises")
    if raised is None:
        lookups = (resolution_of(given["variables"]), credential_of(entry, given["credential"]))
        return answer(judge(entry.name, entry, *lookups))
    error = type(raised["class"], (Exception,), {})(raised["message"])
    broken = replace(entry, raw=UnreadableEntry(error), unavailable=None)
    return answer(judge(entry.name, broken, resolution_of({}), credential_of(entry, None)))


def answer(status: Status | None) -> Any:
    """A status in the shape of the operation's output."""
    if status is None:
        return None
    told = {
        "state": status.state.value,
        "label": status.label,
        "available": status.available,
        "missing_variables": list(status.missing_variables),
        "reason_plain": status.reason_plain,
        "reason_markdown": status.reason_markdown,
    }
    return told if status.error_message is None else {**told, "error_message": status.error_message}


def resolution_of(variables: Mapping[str, str]) -> ResolutionLookup:
    """A lookup over outcomes by name; a name that is not listed is absent."""
    return lambda name: ANSWERS[variables.get(name, "absent")]


def credential_of(entry: Entry, row: Mapping[str, Any] | None) -> CredentialLookup:
    """A lookup over one stored row, filed under its own `credential_key` or else under the entry's current key."""
    if row is None:
        return lambda _: None
    filed_under = row.get("credential_key", credential_key(entry.name, entry.credential_config()))
    return lambda key: stored(row) if key == filed_under else None


def stored(row: Mapping[str, Any]) -> StoredCredential:
    """A row as readiness reads it."""
    return StoredCredential(row["expires_in_s"], row.get("refresh_token"), row.get("token_endpoint"))


class UnreadableEntry(dict[str, Any]):
    """The raw data of an entry that cannot be read: whatever the probe asks of it raises."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ARG002  the signature of a mapping
        raise self._error
