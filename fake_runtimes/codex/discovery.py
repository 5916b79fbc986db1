"""How Codex looks for the authorization server behind a URL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness.world import Ambiguous, NotSent, Request, Response, World, header

SECONDS = 5.0
RESOURCE = "/.well-known/oauth-protected-resource"
SERVER, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
NAMED_METADATA = re.compile(r'resource_metadata="?([^",\s]+)')


class Authorization(NamedTuple):
    """An authorization server as it describes itself."""

    issuer: str
    token_endpoint: str


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
    return Authorization(str(found.get("issuer", "")), str(found["token_endpoint"]))


def resource_places(url: str) -> tuple[str, ...]:
    """Where the metadata of a resource may be, as nobody names its place."""
    origin, path = split(url)
    return tuple(dict.fromkeys((f"{origin}{RESOURCE}{path}", f"{origin}{path}{RESOURCE}", f"{origin}{RESOURCE}")))


def server_places(issuer: str) -> tuple[str, ...]:
    """Where the metadata of an authorization server may be."""
    origin, path = split(issuer)
    places = (f"{SERVER}{path}", f"{OPENID}{path}", f"{path}{OPENID}", SERVER)
    return tuple(dict.fromkeys(f"{origin}{place}" for place in places))


def is_url(text: str) -> bool:
    """Whether a text can be taken apart as a URL."""
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def split(url: str) -> tuple[str, str]:
    """Origin, and path without a slash at its end."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")


async def first_document(world: World, places: Iterable[str], user_agent: str) -> dict[str, Any] | None:
    """The first JSON object that is served."""
    for place in places:
        answer = await fetched(world, place, user_agent)
        document = None if answer is None or answer.status != 200 else parsed(answer.body)
        if document is not None:
            return document
    return None


async def fetched(world: World, url: str, user_agent: str) -> Response | None:
    """The answer to a GET; None where there is none."""
    request = Request("GET", url, {"Accept": "application/json", "User-Agent": user_agent})
    try:
        return await world.http.send(request, open_timeout_seconds=SECONDS, read_timeout_seconds=SECONDS)
    except (NotSent, Ambiguous):
        return None


def parsed(body: bytes) -> dict[str, Any] | None:
    """The JSON object of a body; None for anything else."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
