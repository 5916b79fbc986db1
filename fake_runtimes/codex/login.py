"""`codex mcp login`: the sign-in of a person who has nothing to do but to be sent back by the authorization server.

Measured are the registration, what the sign-in and the exchange ask for, and that the tokens are written to the file.
The listener on this machine and the browser are left out: where the authorization server wants a person there is none.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit

from fake_runtimes.codex import bugs
from fake_runtimes.codex.credentials import ISSUER
from fake_runtimes.codex.discovery import Authorization
from fake_runtimes.codex.renewal import LOCKS, Refused, Renewing, granted_by
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.oauth import JSON, form_request, parsed
from harness.world import Ambiguous, NotSent, Request, Response, World, header

SECONDS = 30.0
REDIRECTS = 10
RANDOM_DIGITS = 64
# The program listens on any free port, with a path that nobody can guess.
PORT, PATH_DIGITS = 1455, 32
CLIENT_NAME = "Codex"


class NobodyThereError(Exception):
    """The authorization server wants more than to send a browser back."""


async def sign_in(renewing: Renewing, server: LoadedServer, authorization: Authorization) -> None:
    """Register, be sent back with a code, exchange it, keep the tokens. Raises NobodyThereError."""
    world, url = renewing.world, server.url or ""
    back = f"http://127.0.0.1:{PORT}/callback/{world.entropy.token(PATH_DIGITS)}"
    verifier, state = world.entropy.token(RANDOM_DIGITS), world.entropy.token(RANDOM_DIGITS)
    client = await registered(world, authorization, back)
    asked = {
        "response_type": "code",
        "client_id": client,
        "state": state,
        "code_challenge": challenge(verifier),
        "code_challenge_method": "S256",
        "redirect_uri": back,
        "resource": url,
    }
    code = await sent_back(world, f"{authorization.authorization_endpoint}?{urlencode(asked)}", back, state)
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": back,
        "client_id": client,
        "resource": url,
    }
    granted = granted_by(await asked_for(world, form_request(authorization.token_endpoint, form, renewing.user_agent)))
    if isinstance(granted, Refused):
        raise NobodyThereError
    if bugs.keeps_login(renewing.held.bugs):
        await world.files.make_directory(f"{renewing.held.home}/{LOCKS}")
        await renewing.store(server, entry_of(server, authorization, client, granted, world.clock.now()))


def entry_of(
    server: LoadedServer, authorization: Authorization, client: str, granted: Mapping[str, Any], now_seconds: float
) -> dict[str, Any]:
    """What is stored of a sign-in."""
    seconds = granted.get("expires_in")
    return {
        "server_name": server.name,
        "server_url": server.url or "",
        ISSUER: authorization.issuer,
        "client_id": client,
        "access_token": granted["access_token"],
        "expires_at": int((now_seconds + seconds) * 1000) if isinstance(seconds, int | float) else None,
        "refresh_token": granted.get("refresh_token"),
        "scopes": str(granted.get("scope") or "").split(),
    }


def challenge(verifier: str) -> str:
    """The verifier's digest, as the authorization server is told it."""
    import hashlib  # loads a library, which most runs do not need

    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


async def registered(world: World, authorization: Authorization, back: str) -> str:
    """The id of a new client. Raises NobodyThereError."""
    wanted = {
        "client_name": CLIENT_NAME,
        "redirect_uris": [back],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    }
    headers = {"Content-Type": JSON, "Accept": JSON}
    request = Request("POST", authorization.registration_endpoint, headers, json.dumps(wanted).encode())
    answer = await asked_for(world, request) if authorization.registration_endpoint else None
    client = ((parsed(answer.body) if answer is not None else None) or {}).get("client_id")
    if not isinstance(client, str):
        raise NobodyThereError
    return client


async def sent_back(world: World, url: str, back: str, state: str) -> str:
    """The code with which a browser comes back that goes to this URL. Raises NobodyThereError."""
    for _ in range(REDIRECTS):
        answer = await asked_for(world, Request("GET", url, {"Accept": "text/html"}))
        place = None if answer is None else header(answer.headers, "Location")
        if place is None:
            break
        url = urljoin(url, place)
        if url.partition("?")[0] == back:
            brought = dict(parse_qsl(urlsplit(url).query))
            if brought.get("state") == state and brought.get("code"):
                return brought["code"]
            break
    raise NobodyThereError


async def asked_for(world: World, request: Request) -> Response | None:
    """The answer to a request; None where there is none."""
    try:
        return await world.http.send(request, open_timeout_seconds=SECONDS, read_timeout_seconds=SECONDS)
    except (NotSent, Ambiguous):
        return None
