"""What a deployment says of OAuth: where browsers reach it, and the clients that were registered by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """`app_host` is APP_HOST (None: unset); `registered` is the section `mcp_oauth_clients` of the encrypted
    credentials, server name to its client; an absent section is an empty one (flow-client-config-from-credentials).
    `path_forms` asks for the documents of RFC 9728 and 8414 below a server's path first, which the documents of the
    system leave off (flow-discovery-path-forms).
    """

    app_host: str | None = None
    registered: Mapping[str, Any] = field(default_factory=dict, repr=False)
    path_forms: bool = False
