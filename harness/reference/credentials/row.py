"""A stored OAuth credential, and its table. One row for each credential key.

Source: seed 002 "MCP server OAuth"; requirements https-credential-*, authorize-replace-in-place. Every change goes
through `table.change`: under the row's lock, validated, its time noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from harness.reference.credentials.key import Runtime
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.secrets.blank import is_blank

TABLE = "mcp_oauth_credentials"


class InvalidCredentialError(ValueError):
    """A row that may not be saved. The text names the server, never the endpoint: that may hold a secret."""


@dataclass(frozen=True, slots=True)
class Credential:
    """Times are seconds since the epoch; `expires_at` None: no expiry. `scopes` is one text, `resource` "" none.

    `runtime_keys` are the keys of the runtimes' stores, as they were when the credential was stored or last injected,
    `server_url` is the URL then. `runtime_urls` are those of the runtimes whose copy was written for another one.
    """

    credential_key: str
    server_name: str
    server_url: str = field(repr=False)
    client_id: str
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    client_secret: str | None = field(default=None, repr=False)
    token_endpoint: str | None = field(default=None, repr=False)
    scopes: str | None = None
    resource: str | None = None
    issuer: str | None = None
    redirect_uri: str | None = None
    expires_at: float | None = None
    refresh_token_unsupported: bool = False
    runtime_keys: Mapping[Runtime, str] = field(default_factory=dict)
    updated_at: float = 0.0
    runtime_urls: Mapping[Runtime, str] = field(default_factory=dict, repr=False)


COLUMNS = tuple(column.name for column in fields(Credential))


def row_values(row: Credential) -> dict[str, Any]:
    """A credential as the table keeps it."""
    values = {column: getattr(row, column) for column in COLUMNS}
    return {**values, "runtime_keys": dict(row.runtime_keys), "runtime_urls": dict(row.runtime_urls)}


def credential_of(values: Mapping[str, Any]) -> Credential:
    """A credential from the table's values; what is no column of ours is left out."""
    return Credential(**{column: values[column] for column in COLUMNS if column in values})


def storable_endpoint(endpoint: str | None) -> bool:
    """Whether a credential with this token endpoint may be saved: https, or blank.

    Blank means that it cannot be renewed, so authorize again (https-credential-blank-legal).
    """
    return is_blank(endpoint) or acceptable_endpoint(endpoint)


def require_storable(row: Credential) -> None:
    """Raise InvalidCredentialError where the row may not be saved (https-credential-refuses-save)."""
    if not storable_endpoint(row.token_endpoint):
        raise InvalidCredentialError(f"The token endpoint of '{row.server_name}' must be an https URL")
