"""What the clients that are built on MCP's TypeScript library ask of an authorization server, and what they get."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fake_runtimes.discovery import Discovered
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.oauth import JSON, form_request, parsed, split
from fake_runtimes.text import json_stringify, kind
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
FIRST_FAULT, TOO_MANY, FIRST_SERVER_FAULT = 300, 429, 500
TOKENS: Mapping[str, bool] = {
    "access_token": True,
    "id_token": False,
    "token_type": True,
    "expires_in": False,
    "scope": False,
    "refresh_token": False,
}
"""The members of new tokens that are looked at, in order, and whether each must be there. All are texts but one."""
LIFETIME = "expires_in"


class Refused(NamedTuple):
    """No new token. `code` is OAuth's, empty where the answer had none; `lost`: there was no answer.

    `passing`: the same may work in a moment, so a renewal tries again. `unread` is an answer that said nothing of
    OAuth's, which each client tells in words of its own.
    """

    code: str
    text: str
    passing: bool = False
    lost: bool = False
    unread: Response | None = None


class Unfit(NamedTuple):
    """What does not fit in a document: at which member (empty: the whole), what was to be there, and what is."""

    member: str
    expected: str
    found: str


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
    is_good = answer.status < FIRST_FAULT
    if is_good and document is not None and not any(unfit_tokens(document)):
        return document if LIFETIME not in document else {**document, LIFETIME: number(document[LIFETIME])}
    code = None if document is None else document.get("error")
    if not isinstance(code, str) or document is None:
        return Refused("", "", passing=not is_good, unread=answer)
    described = document.get("error_description")
    busy = answer.status == TOO_MANY or answer.status >= FIRST_SERVER_FAULT
    return Refused(code, described if isinstance(described, str) else "", busy or code in PASSING)


def unfit_tokens(document: Any) -> Iterator[Unfit]:
    """What keeps a JSON value from being new tokens."""
    if not isinstance(document, dict):
        yield Unfit("", "object", kind(document))
        return
    for name, is_needed in TOKENS.items():
        if name not in document:
            if is_needed:
                yield Unfit(name, "string", "undefined")
        elif name == LIFETIME:
            if math.isnan(number(document[name])):
                yield Unfit(name, "number", "NaN")
        elif not isinstance(document[name], str):
            yield Unfit(name, "string", kind(document[name]))


def number(value: Any) -> float:
    """The number that JavaScript makes of a JSON value: of null and an empty text 0, of most others none (NaN)."""
    if isinstance(value, int | float):
        return int(value) if isinstance(value, bool) else value
    if value is None or value == []:
        return 0
    try:
        return float(value or 0) if isinstance(value, str) else math.nan
    except ValueError:
        return math.nan
