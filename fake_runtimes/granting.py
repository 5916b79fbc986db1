"""What the clients that are built on MCP's TypeScript library ask of an authorization server, and what they get."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.discovery import Discovered
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.oauth import JSON, form_request, parsed, split
from fake_runtimes.text import json_stringify
from harness.world import Ambiguous, NotSent, Request, Response, World

TOKEN_SECONDS = 30.0
REFUSED_GRANT, REFUSED_CLIENT = "invalid_grant", ("invalid_client", "unauthorized_client")
SERVER_ERROR = "server_error"
PASSING = (SERVER_ERROR, "temporarily_unavailable", "too_many_requests")
KNOWN = (
    REFUSED_GRANT,
    *REFUSED_CLIENT,
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "access_denied",
    "unsupported_grant_type",
    "unsupported_response_type",
    "unsupported_token_type",
    "invalid_token",
    "invalid_client_metadata",
    "insufficient_scope",
)
NO_REGISTRATION = "Incompatible auth server: does not support dynamic client registration"
TOO_MANY, FIRST_SERVER_FAULT = 429, 500


class Refused(NamedTuple):
    """No new token. `code` is OAuth's, empty where the answer had none; `lost`: there was no answer.

    `passing`: the same may work in a moment, so a renewal tries again.
    """

    code: str
    text: str
    passing: bool = False
    lost: bool = False


class Client(NamedTuple):
    """Who asks."""

    client_id: str
    secret: str | None = None


async def renewed(
    world: World,
    server: LoadedServer,
    found: Discovered,
    client: Client,
    refresh_token: str,
    user_agent: str,
    resends_after_seconds: float | None = None,
) -> Mapping[str, Any] | Refused:
    """One refresh; the tokens as they came, or why there are none.

    Where a connection breaks, the layer below some clients posts once more after a moment.
    """
    form = {"grant_type": "refresh_token", "refresh_token": refresh_token}
    if found.has_resource:
        form["resource"] = server.url or ""
    proof = None
    if client.secret is None:
        form["client_id"] = client.client_id
    else:
        proof = f"Basic {base64.b64encode(f'{client.client_id}:{client.secret}'.encode()).decode()}"
    endpoint = f"{split(found.server_url)[0]}/token" if found.metadata is None else found.metadata.token_endpoint
    request = form_request(endpoint, form, user_agent, proof)
    answer = await posted(world, request)
    if answer is None and resends_after_seconds is not None:
        await world.clock.sleep(resends_after_seconds)
        answer = await posted(world, request)
    return tokens_of(answer)


async def registered(
    world: World, found: Discovered, told: Mapping[str, Any], user_agent: str
) -> Mapping[str, Any] | Response | Refused:
    """A client of one's own: what was registered, the answer that refused it, or why nobody was asked."""
    endpoint: str | None = f"{split(found.server_url)[0]}/register"
    if found.metadata is not None:
        endpoint = found.metadata.registration_endpoint
    if endpoint is None:
        return Refused("", NO_REGISTRATION)
    headers = {"Content-Type": JSON, "User-Agent": user_agent}
    answer = await posted(world, Request("POST", endpoint, headers, json_stringify(told).encode()))
    if answer is None:
        return Refused("", "", lost=True)
    client = parsed(answer.body) if answer.status < 300 else None
    return client if client is not None and isinstance(client.get("client_id"), str) else answer


def rejection(answer: Response) -> str:
    """What newer editions of the library say of a registration that was refused."""
    return f"Dynamic Client Registration rejected (HTTP {answer.status}): {answer.body.decode(errors='replace')}"


async def posted(world: World, request: Request) -> Response | None:
    """The answer; None where there is none."""
    try:
        return await world.http.send(request, open_timeout_seconds=TOKEN_SECONDS, read_timeout_seconds=TOKEN_SECONDS)
    except (NotSent, Ambiguous):
        return None


def tokens_of(answer: Response | None) -> Mapping[str, Any] | Refused:
    """The tokens of an answer, or why there are none. A refusal counts as one whatever its status is."""
    if answer is None:
        return Refused("", "", passing=True, lost=True)
    document = parsed(answer.body)
    if document is not None and answer.status < 300 and isinstance(document.get("access_token"), str):
        return document
    code = None if document is None else document.get("error")
    if not isinstance(code, str) or document is None:
        return Refused("", unreadable(answer), passing=True)
    described = document.get("error_description")
    busy = answer.status == TOO_MANY or answer.status >= FIRST_SERVER_FAULT
    return Refused(code, described if isinstance(described, str) else "", busy or code in PASSING)


def unreadable(answer: Response) -> str:
    """What is said of an answer that is no error of OAuth."""
    body = answer.body.decode(errors="replace")
    fault = "Unexpected EOF" if not body else f"Unrecognized token '{body[0]}'"
    return (
        f"HTTP {answer.status}: Invalid OAuth error response: SyntaxError: JSON Parse error: {fault}. Raw body: {body}"
    )
