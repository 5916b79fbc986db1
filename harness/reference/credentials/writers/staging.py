"""What of a stored credential a runtime gets, and which are not given to any.

Source: seed 002 "MCP server OAuth"; requirements writers-input-resolved-credential, writers-no-credential-not-written.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from harness.reference.credentials.key import Runtime
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.protocol import StagedCredential
from harness.reference.oauth.server import RemoteServer
from harness.reference.secrets.blank import is_blank

MILLISECONDS = 1000
LAST_MILLISECOND = 8_640_000_000_000_000
"""The last one that JavaScript has a date for. Beyond, a runtime finds an entry without a time, or can read none."""


def stage(row: Credential, server: RemoteServer, runtime: Runtime) -> StagedCredential:
    """A row as a runtime's writer takes it: the URL as the runtime reads it, under that runtime's own key.

    `server_url` is byte for byte what the runtime's config says, not the resource that the token is for: Pi compares
    the two (writers-pi-serverurl-exact).
    """
    return StagedCredential(
        credential_key=server.runtime_keys[runtime],
        server_name=server.name,
        server_url=server.url,
        client_id=row.client_id,
        access_token=row.access_token,
        refresh_token=row.refresh_token,
        expires_at_ms=None if row.expires_at is None else in_milliseconds(row.expires_at),
        scope=row.scopes,
        issuer=row.issuer,
        redirect_uris=() if row.redirect_uri is None else (row.redirect_uri,),
    )


def usable(credentials: Iterable[StagedCredential], now: float) -> tuple[StagedCredential, ...]:
    """Those that a runtime may get at a time (seconds)."""
    return tuple(one for one in credentials if is_writable(one) and is_active(one, now))


def is_writable(credential: StagedCredential) -> bool:
    """Whether there is a token, and a name to file it under."""
    return not is_blank(credential.access_token) and not is_blank(credential.server_name)


def is_active(credential: StagedCredential, now: float) -> bool:
    """Whether its access token still counts; one without expiry always does."""
    return credential.expires_at_ms is None or credential.expires_at_ms > now * MILLISECONDS


def given(**members: Any) -> dict[str, Any]:
    """The members that have a value: an absent one is left out, never null, empty or invented."""
    return {name: value for name, value in members.items() if not is_missing(value)}


def is_missing(value: Any) -> bool:
    """None, a blank text, an empty list."""
    return value is None or (isinstance(value, str) and is_blank(value)) or value == []


def in_milliseconds(seconds: float) -> int:
    """A row's expiry as a runtime has it: never later, else our own copy would look newer than its row.

    (reconcile-stamp-roundtrip-noop). A provider may name any lifetime, so it ends where a calendar does: a number that
    Codex cannot read costs it its whole file (writers-codex-invalid-entry-kills-file).
    """
    if not -LAST_MILLISECOND < seconds * MILLISECONDS < LAST_MILLISECOND:
        return LAST_MILLISECOND if seconds > 0 else -LAST_MILLISECOND
    milliseconds = round(seconds * MILLISECONDS)
    return milliseconds - 1 if milliseconds / MILLISECONDS > seconds else milliseconds


def in_seconds(milliseconds: Any) -> float | None:
    """A runtime's expiry, which is in milliseconds, as seconds; None where it is no number."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    try:
        seconds = milliseconds / MILLISECONDS
    except OverflowError:
        return None
    return seconds if math.isfinite(seconds) else None
