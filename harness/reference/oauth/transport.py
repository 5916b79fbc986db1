"""The one door from OAuth to the network: what is asked, what is posted, and to whom nothing is ever posted.

Source: seed 002 "The token endpoint must be https", "Public clients (no client_secret)". Nothing else in
`reference.oauth` and `reference.credentials` sends a request. No request follows a redirect; TLS is on wherever the URL
says https, as there is nothing but the URL to say so.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlencode

from harness.reference.oauth.endpoints import acceptable_endpoint, read_endpoint, shown_endpoint
from harness.reference.oauth.urls import own_port, read_url
from harness.world import Ambiguous, NotSent, Request, Response, World

REQUEST_TIMEOUT_SECONDS = 30.0
"""For connecting and for every silence afterwards."""
TOTAL_TIMEOUT_SECONDS = 90.0
"""For a whole request, however steadily its answer trickles in (flow-trickling-as-bounded)."""
MOST_BODY_BYTES = 1 << 20
"""What is read of an answer. The longest that anybody sends in earnest, a provider's metadata, has some kilobytes."""
UNREAD = b"(longer than is read)"
"""What stands for a longer body: no JSON, no form, no token. Its beginning might pass for the whole."""
USER_AGENT = "Zimmer/1.0"
JSON_TYPE = "application/json"
FORM_TYPE = "application/x-www-form-urlencoded"

REASONS = {
    "refused": "connection refused",
    "dns": "the host cannot be found",
    "tls": "no trusted TLS connection",
    "timeout": "timed out",
    "reset": "the connection broke off",
}
AGENT_HEADERS = {"User-Agent": USER_AGENT}


class InsecureEndpointError(Exception):
    """An endpoint that nothing may be posted to. The message names it without userinfo and query."""

    def __init__(self, endpoint: str | None) -> None:
        super().__init__(f"the endpoint {shown_endpoint(endpoint)} is not an https URL; nothing was sent to it")


class Target(NamedTuple):
    """Where a post goes: a URL without userinfo, and the Authorization header that the userinfo gave."""

    url: str
    authorization: str | None = None

    def __repr__(self) -> str:
        return f"Target(url={self.url!r}, authorization={'***' if self.authorization else None})"


def form_target(endpoint: str | None) -> Target:
    """The target of a post to an endpoint. Raises InsecureEndpointError before anything could be opened."""
    match = read_endpoint(endpoint) if acceptable_endpoint(endpoint) else None
    if match is None:
        raise InsecureEndpointError(endpoint)
    port = own_port("https", match["port"])
    suffix = "" if port is None else f":{port}"
    url = f"https://{match['host']}{suffix}{match['path'] or '/'}{match['query']}"
    return Target(url, basic_authorization(match["userinfo"]))


def basic_authorization(userinfo: str | None) -> str | None:
    """Userinfo as HTTP Basic credentials, percent-decoded; None where there is none (https-userinfo-is-basic-auth)."""
    user, _, password = (userinfo or "").partition(":")
    if not user and not password:
        return None
    pair = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)
    return f"Basic {b64encode(pair).decode('ascii')}"


async def get(world: World, url: str) -> Response:
    """An unauthenticated GET. Raises NotSent or Ambiguous, and NotSent where the URL is not http or https."""
    parts = read_url(url)
    if parts is None:
        raise NotSent("dns")
    return await send(world, Request("GET", parts.text, {**AGENT_HEADERS, "Accept": JSON_TYPE}))


async def post_form(
    world: World, endpoint: str | None, form: Mapping[str, str], *, authorization: str | None = None
) -> Response:
    """Post a form. `authorization` wins over the endpoint's userinfo.

    Raises InsecureEndpointError (nothing is opened), NotSent or Ambiguous.
    """
    target = form_target(endpoint)
    basic = authorization or target.authorization
    headers = {**AGENT_HEADERS, "Content-Type": FORM_TYPE, **({} if basic is None else {"Authorization": basic})}
    return await send(world, Request("POST", target.url, headers, encoded_form(form)))


async def post_json(world: World, endpoint: str | None, body: Mapping[str, Any]) -> Response:
    """Post a JSON object. Raises as `post_form`."""
    target = form_target(endpoint)
    basic = {} if target.authorization is None else {"Authorization": target.authorization}
    headers = {**AGENT_HEADERS, "Accept": JSON_TYPE, "Content-Type": JSON_TYPE, **basic}
    return await send(world, Request("POST", target.url, headers, json.dumps(body).encode()))


def encoded_form(form: Mapping[str, str]) -> bytes:
    """A form as it is posted. What is no Unicode text is replaced: no server can have issued it."""
    return urlencode(dict(form), errors="replace").encode("ascii")


async def send(world: World, request: Request) -> Response:
    """Send one request within its limits. Past the total one the answer is waited for no longer: Ambiguous.

    Its connection is there until its server or this process ends: nothing in a world is cancelled.
    """
    sending = world.tasks.start(outcome(world, request), "request")
    await world.tasks.wait([sending], timeout_seconds=TOTAL_TIMEOUT_SECONDS)
    came: Response | NotSent | Ambiguous = sending.result() if sending.done else Ambiguous("timeout")
    if isinstance(came, Exception):
        raise came
    return bounded(came)


async def outcome(world: World, request: Request) -> Response | NotSent | Ambiguous:
    """What came of it, as a value: an error that comes when nobody waits any more must not end the process."""
    try:
        return await exchange(world, request)
    except (NotSent, Ambiguous) as error:
        return error


def bounded(response: Response) -> Response:
    """An answer with no more in it than is read. Its status counts all the same, as it does for any other body."""
    return response if len(response.body) <= MOST_BODY_BYTES else response._replace(body=UNREAD)


async def exchange(world: World, request: Request) -> Response:
    """The request over the world, connecting and each silence bounded (flow-timeouts-30s)."""
    return await world.http.send(
        request,
        open_timeout_seconds=REQUEST_TIMEOUT_SECONDS,
        read_timeout_seconds=REQUEST_TIMEOUT_SECONDS,
    )


def reason(error: NotSent | Ambiguous) -> str:
    """An error of a request in words, without what was sent."""
    return REASONS.get(error.reason, "no answer")
