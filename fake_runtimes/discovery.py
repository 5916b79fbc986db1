"""How the clients that are built on MCP's TypeScript library look for an authorization server after a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urljoin

from fake_runtimes.oauth import OPENID, RESOURCE, SERVER, document_at, is_url, split
from harness.world import World

NAMED_METADATA = re.compile(r'resource_metadata="?([^",\s]+)')
OF_OAUTH = ("issuer", "authorization_endpoint", "token_endpoint", "response_types_supported")
OF_OPENID = (*OF_OAUTH, "jwks_uri", "subject_types_supported", "id_token_signing_alg_values_supported")


class Metadata(NamedTuple):
    """An authorization server as it describes itself."""

    issuer: str
    token_endpoint: str
    registration_endpoint: str | None


class Discovered(NamedTuple):
    """Where the authorization server is. `metadata` None: it describes itself nowhere.

    `has_resource` is whether the server's own metadata name it, `resource_url` where those were looked for.
    """

    server_url: str
    metadata: Metadata | None = None
    resource_url: str | None = None
    has_resource: bool = False

    @property
    def issuer(self) -> str:
        """By what name a credential remembers it."""
        return self.server_url if self.metadata is None else self.metadata.issuer


async def after_refusal(world: World, url: str, challenge: str | None, user_agent: str) -> Discovered:
    """The place that the refusal names, or the usual ones; then the server named there, or the origin itself."""
    told = NAMED_METADATA.search(challenge or "")
    places = (urljoin(url, told[1]),) if told else resource_places(url)
    for place in places:
        named = server_of(await document_at(world, place, user_agent))
        if named is not None:
            metadata = await first_metadata(world, server_places(named), user_agent)
            return Discovered(named, metadata, place, has_resource=True)
    origin, _ = split(url)
    metadata = await first_metadata(world, server_places(origin), user_agent)
    return Discovered(f"{origin}/", metadata, places[0] if told else None)


def resource_places(url: str) -> tuple[str, ...]:
    """Where the metadata of a server may be, as nobody names their place."""
    origin, path = split(url)
    return tuple(dict.fromkeys((f"{origin}{RESOURCE}{path}", f"{origin}{RESOURCE}")))


def server_places(url: str) -> tuple[str, ...]:
    """Where the metadata of an authorization server may be."""
    origin, path = split(url)
    return tuple(dict.fromkeys((f"{origin}{SERVER}{path}", f"{origin}{OPENID}{path}", f"{origin}{path}{OPENID}")))


def server_of(document: dict[str, Any] | None) -> str | None:
    """The authorization server that a server's metadata name first."""
    servers = None if document is None else document.get("authorization_servers")
    named = servers[0] if isinstance(servers, list) and servers else None
    return named if isinstance(named, str) and is_url(named) else None


async def first_metadata(world: World, places: Iterable[str], user_agent: str) -> Metadata | None:
    """The first description that has all that it must have."""
    for place in places:
        document = await document_at(world, place, user_agent)
        needed = OF_OPENID if OPENID in place else OF_OAUTH
        if document is not None and all(name in document for name in needed):
            endpoint = document.get("registration_endpoint")
            registration = endpoint if isinstance(endpoint, str) else None
            return Metadata(str(document["issuer"]), str(document["token_endpoint"]), registration)
    return None
