"""A stored OAuth credential, and its table. One row for each credential key.

Source: seed 002 "MCP server OAuth"; requirements https-credential-*, authorize-replace-in-place. Every change goes
through `change`: under the row's lock, validated, its time noted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.reference.credentials.key import Runtime

TABLE = "mcp_oauth_credentials"


@dataclass(frozen=True, slots=True)
class Credential:
    """Times are seconds since the epoch; `expires_at` None: no expiry. `scopes` is one text, `resource` "" none.

    `runtime_keys` are the keys of the runtimes' stores, as they were when the credential was stored or last injected.
    """

    credential_key: str
    server_name: str
    server_url: str
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
