"""What a stored OAuth credential is worth now. Times are relative unless said: seconds from now, None for no expiry."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from harness.reference.credentials.row import Credential
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.secrets.blank import is_blank

DUE_WITHIN_SECONDS = 15 * 60
"""A credential that expires in less than this is refreshed before a spawn uses it."""


@dataclass(frozen=True)
class StoredCredential:
    """A row as far as readiness reads it. The token is kept out of the representation (readiness-no-secret-values)."""

    expires_in_s: float | None
    refresh_token: str | None = field(default=None, repr=False)
    token_endpoint: str | None = None
    refresh_token_unsupported: bool = False


class CredentialState(NamedTuple):
    """`requires_periodic_reauth`: the server issues no refresh token, and none is stored."""

    active: bool
    needs_refresh: bool
    can_refresh: bool
    requires_reauth: bool
    requires_periodic_reauth: bool


def credential_state(
    expires_in_s: float | None,
    refresh_token: str | None,
    token_endpoint: str | None,
    refresh_token_unsupported: bool,
) -> CredentialState:
    """The state of a credential from its row. A refresh needs an https endpoint, loopback included."""
    active = is_active(expires_in_s)
    renewable = can_refresh(refresh_token, token_endpoint)
    return CredentialState(
        active=active,
        needs_refresh=is_due(expires_in_s),
        can_refresh=renewable,
        requires_reauth=not active and not renewable,
        requires_periodic_reauth=refresh_token_unsupported and is_blank(refresh_token),
    )


def state_of(row: StoredCredential) -> CredentialState:
    """The same for a row."""
    return credential_state(row.expires_in_s, row.refresh_token, row.token_endpoint, row.refresh_token_unsupported)


def expires_in(row: Credential, now: float) -> float | None:
    """Seconds until the access token of a table's row expires; None where it does not."""
    return None if row.expires_at is None else row.expires_at - now


def state_at(row: Credential, now: float) -> CredentialState:
    """What a table's row is worth at a time, in seconds since the epoch."""
    return credential_state(expires_in(row, now), row.refresh_token, row.token_endpoint, row.refresh_token_unsupported)


def is_active(expires_in_s: float | None) -> bool:
    """Usable now: no expiry, or one that lies ahead. At the very moment it has expired (readiness-oauth-ready)."""
    return expires_in_s is None or expires_in_s > 0


def is_due(expires_in_s: float | None) -> bool:
    """Whether a refresh is due: expired, or about to."""
    return expires_in_s is not None and expires_in_s < DUE_WITHIN_SECONDS


def can_refresh(refresh_token: str | None, token_endpoint: str | None) -> bool:
    """Whether it can be renewed without a human (https-can-refresh-false-for-cleartext)."""
    return not is_blank(refresh_token) and acceptable_endpoint(token_endpoint)
