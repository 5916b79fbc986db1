"""How Codex introduces itself to a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import configure, statuses
from harness.canary.trial import Trial
from harness.world.ports import Request, Response, header


class Listening(HttpServer):
    """A good server that keeps the bodies too."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Request] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        """Keep it, then answer."""
        self.heard.append(request)
        return super().handle(request, now, who)


@probe(
    Claim(
        "codex.wire.version",
        "it tells servers and whoever asks on the command line which version it is",
        assumes=[True, True],
        reads=("version",),
    ),
    Claim("codex.wire.handshake", "what it asks for at the handshake, and what follows", affects="servers that care"),
    seconds=0.5,
)
def introduction(trial: Trial) -> Mapping[str, Any]:
    """One start, and one question."""
    server = Listening()
    with trial.serving(one=server) as urls:
        configure(trial, {"one": {"url": urls["one"]}})
        statuses(trial, "one")
    told = trial.run("--version").stdout.strip()
    first = server.heard[0]
    asked = parse(first.body)
    agent = header(first.headers, "User-Agent") or ""
    version = trial.subject.version
    known = asked.get("params", {})
    return {
        "codex.wire.version": [told == f"codex-cli {version}", agent.rpartition("/")[2] == version],
        "codex.wire.handshake": {
            "agent": agent.rpartition("/")[0],
            "protocol": known.get("protocolVersion"),
            "client": known.get("clientInfo", {}).get("name"),
            "accept": sorted((header(first.headers, "Accept") or "").split(", ")),
            "then": [each.rpc_method for each in server.requests if each.rpc_method][:3],
        },
    }


def parse(body: bytes) -> dict[str, Any]:
    """A JSON object."""
    found = json.loads(body)
    return found if isinstance(found, dict) else {}
