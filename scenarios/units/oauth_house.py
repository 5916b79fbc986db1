"""A deployment's OAuth endpoints over a world in memory, with a provider behind and a browser in front of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from fake_servers.oauth.browser import Landed, consent
from fake_servers.oauth.profiles import Stage, profile_named
from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.credentials.row import Credential, row_values
from harness.reference.oauth.flows import TABLE as FLOWS
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.oauth.web import Answer, OAuthDeps, callback, complete, initiate
from harness.world import Request, Response, World
from scenarios.units.oauth_run import START_SECONDS, Answers, Ran, run_world

HOSTED = "https://zimmer.example.com/mcp_oauth/callback"
LOOPBACK = "http://localhost:3118/callback"
SLACK_CLIENT = "1601185624273.8899143856786"
NOTION = {"notion": {"type": "streamable-http", "url": "https://notion.test/mcp"}}
SLACK = {"slack": {"type": "http", "url": "https://mcp.slack.test/mcp"}}
SLACK_ENTRY = {
    "client_id": SLACK_CLIENT,
    "authorization_endpoint": "https://slack.test/oauth/v2_user/authorize",
    "token_endpoint": "https://slack.test/api/oauth.v2.user.access",
    "scopes": "search:read,channels:history",
    "redirect_uri": LOOPBACK,
    "manual": True,
    "resource": "",
}
NOTION_KEY = credential_key("notion", read_catalog(NOTION).require("notion").credential_config())
JSON = {"Content-Type": "application/json"}
REGISTER = {"registration_endpoint": "https://notion.test/register"}
DISCOVERY = "/.well-known/oauth-authorization-server"
PLACES = [(None, "/connectors"), ("7", "/sessions/7")]
Item = TypeVar("Item")
Rows = Mapping[tuple[str, str], Mapping[str, Any]]


def deployment(
    tree: Mapping[str, Any] = NOTION,
    *,
    app_host: str | None = "zimmer.example.com",
    registered: Mapping[str, Any] | None = None,
    variables: Mapping[str, str] | None = None,
) -> OAuthDeps:
    """What a deployment with this catalog gives to the endpoints."""
    settings = OAuthSettings(app_host, {} if registered is None else registered)
    return OAuthDeps(read_catalog(tree), (variables or {}).get, settings)


def stage_of(profile: str, **options: Any) -> Stage:
    """The servers of a provider."""
    return profile_named(profile).stage(**options)


async def consented(world: World, started: Answer, stage: Stage) -> Landed:
    """A browser that goes where the answer sends it, or where the link of the paste page leads."""
    return await consent(world, str(started.location or started.link), origins=[stage.authorization.issuer])


async def finish(world: World, deps: OAuthDeps, started: Answer, stage: Stage) -> Answer:
    """Consent, and come back in the way that the flow wants."""
    landed = await consented(world, started, stage)
    if started.page == "paste":
        return await complete(world, deps, state=started.flow_state, pasted=landed.url)
    return await callback(world, deps, landed.parameters)


def whole_flow(
    deps: OAuthDeps, stage: Stage, name: str, session: str | None = None
) -> Callable[[World], Awaitable[list[Answer]]]:
    """A program: from the click to the end. Its result are the answers of both endpoints."""

    async def program(world: World) -> list[Answer]:
        started = await initiate(world, deps, server_name=name, session=session)
        return [started, await finish(world, deps, started, stage)]

    return program


def only(items: Iterable[Item]) -> Item:
    """The one item that there is."""
    found = list(items)
    assert len(found) == 1
    return found[0]


def parameters_of(url: str | None) -> dict[str, str]:
    """The query of a URL."""
    return dict(parse_qsl(urlsplit(url or "").query, keep_blank_values=True))


def flow_rows(ran: Ran) -> list[dict[str, Any]]:
    """The flows that are left."""
    return [dict(values) for values in ran.rows(FLOWS).values()]


def credential_rows(ran: Ran) -> dict[str, Mapping[str, Any]]:
    """The stored credentials by key."""
    return ran.rows(CREDENTIALS)


def parked(session: str, *servers: str, **values: Any) -> Rows:
    """The row of a session that waits until these servers are authorized."""
    required = [{"server_name": name, "server_url": None, "error": "sign-in needed"} for name in servers]
    metadata = {"failure_reason": "oauth_required", "oauth_required_servers": required}
    row = {"status": "failed", "mcp_servers": list(servers), "prompt": "go on", "metadata": metadata, **values}
    return {("sessions", session): row}


WAITING = parked("7", "notion")


def stored_flow(state: str = "S1", **changed: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The row of a pending flow for Notion, as an earlier process left it."""
    row = {
        "state": state,
        "server_name": "notion",
        "server_url": "https://notion.test/mcp",
        "code_verifier": "verifier-of-" + state,
        "authorization_endpoint": "https://notion.test/authorize",
        "token_endpoint": "https://notion.test/token",
        "registration_endpoint": None,
        "client_id": "client-0",
        "client_secret": None,
        "redirect_uri": HOSTED,
        "expires_at": START_SECONDS + 3600,
        "mcp_server_config": {"type": "streamable-http", "url": "https://notion.test/mcp"},
        "credential_key": "notion|0123456789abcdef",
        "runtime_keys": {},
        "session": None,
        "scopes": "read write",
        "resource": "https://notion.test/mcp",
        "issuer": "https://notion.test",
        "manual": False,
    }
    return {(FLOWS, state): {**row, **changed}}


def document(**members: Any) -> Response:
    """A JSON answer."""
    return Response(200, JSON, json.dumps(members).encode())


def advertising(**members: Any) -> Answers:
    """Notion with this metadata (None takes a member away); it registers nobody by default."""
    usual = {
        "issuer": "https://notion.test",
        "authorization_endpoint": "https://notion.test/authorize",
        "token_endpoint": "https://notion.test/token",
    }
    told = {name: value for name, value in {**usual, **members}.items() if value is not None}
    return Answers({f"GET https://notion.test{DISCOVERY}": document(**told)})


def click(
    deps: OAuthDeps | None = None,
    servers: Mapping[str, Any] | None = None,
    rows: Mapping[tuple[str, str], Mapping[str, Any]] | None = None,
    **request: Any,
) -> Ran:
    """One POST to initiate."""
    asked = {"server_name": "notion", **request}
    return run_world(
        lambda world: initiate(world, deps or deployment(), **asked),
        servers=servers if servers is not None else advertising().origins(),
        rows={**WAITING, **(rows or {})},
    )


def come_back(parameters: Mapping[str, str], servers: Mapping[str, Any] | None = None, **flow: Any) -> Ran:
    """One GET of the callback for a stored flow."""
    return run_world(
        lambda world: callback(world, deployment(), parameters),
        servers=servers or {},
        rows={**WAITING, **stored_flow("S1", **flow)},
    )


def paste(pasted: str | None, servers: Mapping[str, Any] | None = None, state: str | None = "S1", **flow: Any) -> Ran:
    """One POST to complete for a stored flow."""
    return run_world(
        lambda world: complete(world, deployment(), state=state, pasted=pasted),
        servers=servers or {},
        rows={**WAITING, **stored_flow("S1", **{"manual": True, "redirect_uri": LOOPBACK, **flow})},
    )


def granting(body: str = '{"access_token":"a","refresh_token":"r"}', status: int = 200, **headers: str) -> Answers:
    """A token endpoint of Notion that always answers so."""
    answer = Response(status, {**JSON, **headers}, body.encode())
    return Answers({"POST https://notion.test/token": answer})


def stored(expires_in: float | None = 3600.0, **members: Any) -> dict[tuple[str, str], dict[str, Any]]:
    """The row of Notion's credential."""
    row = Credential(
        NOTION_KEY, "notion", "https://notion.test/mcp", "client-old", "access-old",
        expires_at=None if expires_in is None else START_SECONDS + expires_in, **members,
    )  # fmt: skip
    return {(CREDENTIALS, NOTION_KEY): row_values(row)}


def form_of(request: Request) -> dict[str, str]:
    """The form that was posted."""
    return parameters_of("?" + request.body.decode())
