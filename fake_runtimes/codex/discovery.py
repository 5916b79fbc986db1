"""How Codex looks for the authorization server behind a URL."""

from __future__ import annotations

import re
from typing import NamedTuple

from fake_runtimes.oauth import OPENID, RESOURCE, SERVER, fetched, first_document, is_url, split
from harness.world import World, header

NAMED_METADATA = re.compile(r'resource_metadata="?([^",\s]+)')


class Authorization(NamedTuple):
    """An authorization server as it describes itself."""

    issuer: str
    token_endpoint: str
    authorization_endpoint: str = ""
    registration_endpoint: str = ""


class UnreachableError(Exception):
    """Nobody answers at the URL."""


async def discover(world: World, url: str, user_agent: str) -> Authorization | None:
    """One round: the URL itself, whose refusal may name the metadata; the resource's, then the server's metadata.

    None where nothing is described. Raises UnreachableError, also for what is no URL.
    """
    if not is_url(url):
        raise UnreachableError
    told = await fetched(world, url, user_agent)
    if told is None:
        raise UnreachableError
    named = NAMED_METADATA.search(header(told.headers, "WWW-Authenticate") or "")
    resource = await first_document(world, [named[1]] if named else resource_places(url), user_agent)
    servers = (resource or {}).get("authorization_servers")
    issuer = servers[0] if isinstance(servers, list) and servers and isinstance(servers[0], str) else url
    if not is_url(issuer):
        return None
    found = await first_document(world, server_places(issuer), user_agent)
    if found is None or not {"authorization_endpoint", "token_endpoint"} <= found.keys():
        return None
    return Authorization(
        str(found.get("issuer", "")),
        str(found["token_endpoint"]),
        str(found["authorization_endpoint"]),
        str(found.get("registration_endpoint", "")),
    )


def resource_places(url: str) -> tuple[str, ...]:
    """Where the metadata of a resource may be, as nobody names its place."""
    origin, path = split(url)
    return tuple(dict.fromkeys((f"{origin}{RESOURCE}{path}", f"{origin}{path}{RESOURCE}", f"{origin}{RESOURCE}")))


def server_places(issuer: str) -> tuple[str, ...]:
    """Where the metadata of an authorization server may be."""
    origin, path = split(issuer)
    places = (f"{SERVER}{path}", f"{OPENID}{path}", f"{path}{OPENID}", SERVER)
    return tuple(dict.fromkeys(f"{origin}{place}" for place in places))
