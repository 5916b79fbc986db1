"""The program that the official suite tests as a client: the reference authorizes, then the server is used once.

    python reference_client.py [--path-forms] http://localhost:PORT/mcp

What starts a flow, takes its answer and stores the tokens is the reference's own code, over a live world behind a
`Seam`. The user consents as `fake_servers.oauth.browser` does. The few MCP messages at the end stand in for a runtime.
`--path-forms` turns on the reference's own option to ask for the path-inserted documents first, which the seeds leave
off. The exit code is 0 whatever the flow came to: it is the suite that judges.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from fake_servers.mcp.protocol import META_VERSION, MODERN_VERSION
from fake_servers.oauth.browser import consent
from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.table import find
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.oauth.web import OAuthDeps, callback, initiate
from harness.world import Ambiguous, NotSent, Request, World
from harness.world.live import run
from scenarios.certification.official.seam import behind, secured

NAME = "suite"
PATH_FORMS = "--path-forms"
CONTEXT_VARIABLE = "MCP_CONFORMANCE_CONTEXT"
VERSION_VARIABLE = "MCP_CONFORMANCE_PROTOCOL_VERSION"
HANDSHAKE_VERSION = "2025-11-25"
TIMEOUT_SECONDS = 20.0
REDIRECTED = 300
TOOL = "test-tool"


async def client(world: World, argv: Sequence[str]) -> int:
    """Authorize for the server at a URL, and use it."""
    variables, world = world.env.variables, behind(world)
    url = secured(argv[-1])
    entry = entry_of(url, json.loads(variables.get(CONTEXT_VARIABLE) or "{}"))
    settings = OAuthSettings(app_host="zimmer.test", path_forms=PATH_FORMS in argv)
    deps = OAuthDeps(read_catalog({NAME: entry}), lambda _name: None, settings)
    started = await initiate(world, deps, server_name=NAME)
    if started.location is None or started.flow_state is None:
        return await told(world, f"no flow: {started.message}")
    landed = await consent(world, started.location)
    if landed.url is None:
        return await told(world, f"no consent: {landed.status} {landed.page[:200]}")
    answer = await callback(world, deps, landed.parameters)
    catalogued = deps.catalog.require(NAME)
    row = await find(world, credential_key(NAME, catalogued.credential_config()))
    if row is None:
        return await told(world, f"no tokens: {answer.message}")
    await use(world, url, row.access_token, variables.get(VERSION_VARIABLE) or HANDSHAKE_VERSION)
    return await told(world, "authorized")


def entry_of(url: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """The catalog's entry: its client, where the scenario has one for it."""
    entry: dict[str, Any] = {"type": "http", "url": url}
    if "client_secret" in context:
        entry["oauth"] = {"clientId": context["client_id"], "clientSecret": context["client_secret"]}
    return entry


async def use(world: World, url: str, token: str, version: str) -> None:
    """What a runtime does with the token: begin, list the tools, call one. It gives up at the first refusal."""
    meta = {"_meta": {META_VERSION: version}} if version == MODERN_VERSION else {}
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "runtime", "version": "1"}}
    handshake = [("initialize", hello, 1), ("notifications/initialized", {}, None)]
    messages: list[tuple[str, dict[str, Any], int | None]] = [
        *(handshake if not meta else []),
        ("tools/list", meta, 2),
        ("tools/call", {"name": TOOL, "arguments": {}, **meta}, 3),
    ]
    session: dict[str, str] = {}
    for method, params, number in messages:
        body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
        headers = {
            "Authorization": f"Bearer {token}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", **session,
        }  # fmt: skip
        if method != "initialize":
            headers["MCP-Protocol-Version"] = version
        if meta:
            headers |= {"Mcp-Method": method, **({"Mcp-Name": TOOL} if method == "tools/call" else {})}
        request = Request("POST", url, headers, json.dumps(body).encode())
        try:
            response = await world.http.send(
                request, open_timeout_seconds=TIMEOUT_SECONDS, read_timeout_seconds=TIMEOUT_SECONDS
            )
        except (NotSent, Ambiguous) as error:
            await told(world, f"{method}: {error!r}")
            return
        await told(world, f"{method}: {response.status}")
        if response.status >= REDIRECTED:
            return
        given = {name.lower(): value for name, value in response.headers.items()}
        if "mcp-session-id" in given:
            session = {"Mcp-Session-Id": given["mcp-session-id"]}


async def told(world: World, text: str) -> int:
    """Say it on stderr."""
    await world.processes.write_error(text)
    return 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        code = run(client, sys.argv, store=f"{folder}/rows.sqlite")
    sys.exit(code)
