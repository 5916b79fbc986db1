"""Is a server authorized? One predicate for the failure classifier, the session page's banner and the initiate action.

Source: seed 002 "The gate" (`McpOauthServerAuthorization.authorized?`); requirements gate-authorized-predicate,
gate-authorized-key-resolution, gate-authorized-consulted-by-three.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reference.catalog.catalog import Catalog
from harness.reference.catalog.entry import Entry
from harness.reference.credentials import table
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import is_active
from harness.reference.secrets.blank import is_blank
from harness.world import World

ASSUMED_TYPE = "http"
"""What is taken for the type of a server of which only the URL is recorded."""


async def is_server_authorized(world: World, catalog: Catalog, required: Mapping[str, Any]) -> bool:
    """The predicate for an entry of `oauth_required_servers` (or any mapping with `server_name`) as things are now."""
    key = key_of(required, catalog.find(str(required.get("server_name") or "")))
    return key is not None and authorized(await table.find(world, key), world.clock.now())


def authorized(row: Credential | None, now: float) -> bool:
    """A row that exists and is unexpired. Whether the provider still honours it is another question."""
    return row is not None and is_unexpired(row.expires_at, now)


def is_unexpired(expires_at: float | None, now: float) -> bool:
    """No expiry counts as unexpired."""
    return is_active(None if expires_at is None else expires_at - now)


def key_of(required: Mapping[str, Any], entry: Entry | None) -> str | None:
    """The key of an entry's credential: as recorded, else the catalog's, else over the recorded URL; None: none of it.

    Entries of the spawn gate hold their key, those that were written after a failed handshake do not.
    """
    recorded, name, url = (required.get(field) for field in ("credential_key", "server_name", "server_url"))
    if is_text(recorded):
        return str(recorded)
    if not is_text(name):
        return None
    if entry is not None:
        return credential_key(str(name), entry.credential_config())
    return credential_key(str(name), {"type": ASSUMED_TYPE, "url": url}) if is_text(url) else None


def is_text(value: object) -> bool:
    """A text with something in it."""
    return isinstance(value, str) and not is_blank(value)
