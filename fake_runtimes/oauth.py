"""What all clients of OAuth do alike: ask for a document of metadata, post a form, read a JSON object."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from harness.world import Ambiguous, NotSent, Request, Response, World

SECONDS = 5.0
RESOURCE = "/.well-known/oauth-protected-resource"
SERVER, OPENID = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


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
        document = await document_at(world, place, user_agent)
        if document is not None:
            return document
    return None


async def document_at(world: World, place: str, user_agent: str) -> dict[str, Any] | None:
    """The JSON object that is served at a place."""
    answer = await fetched(world, place, user_agent)
    return None if answer is None or answer.status != 200 else parsed(answer.body)


async def fetched(world: World, url: str, user_agent: str) -> Response | None:
    """The answer to a GET; None where there is none."""
    request = Request("GET", url, {"Accept": JSON, "User-Agent": user_agent})
    try:
        return await world.http.send(request, open_timeout_seconds=SECONDS, read_timeout_seconds=SECONDS)
    except (NotSent, Ambiguous):
        return None


def form_request(url: str, form: Mapping[str, str], user_agent: str, authorization: str | None = None) -> Request:
    """A form to post, as OAuth's endpoints take it."""
    proof = {} if authorization is None else {"Authorization": authorization}
    headers = {"Content-Type": FORM, "Accept": JSON, "User-Agent": user_agent, **proof}
    return Request("POST", url, headers, urlencode(form).encode())


def parsed(body: bytes) -> dict[str, Any] | None:
    """The JSON object of a body; None for anything else."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None
