"""Vectors of the area `gate` before a spawn: who is looked at, how each is judged, what a block leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.reference.catalog.entry import read_entry
from harness.reference.credentials import table
from harness.reference.credentials.authorized import authorized, key_of
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.row import Credential
from harness.reference.credentials.writers.protocol import RuntimePair, StagedCredential
from harness.reference.oauth.requirement import UNDETERMINED, log_line
from harness.reference.session import rows
from harness.reference.session.blocking import MARKER, REASON, REQUIRED, Blocked, Turn, blocked_lines, blocked_values
from harness.reference.session.gate import Status, adopted, blocks, is_listed, renewed, status_of, verdict
from harness.vectors.registry import operation
from harness.world import Request, Response, World
from harness.world.model import Fault, Simulation

NOW = 1_800_000_000.0
NAME, KEY, URL = "server", "server|0123456789abcdef", "https://mcp.example.com/mcp"
TOKEN_ORIGIN = "https://as.example.com"
FAULTS = {"refused": "refused", "timeout": "slow", "dns": "dns", "tls": "tls", "reset": "reset-after"}
"""An error of the token endpoint as the fault of the model's that causes it."""
UNSENT = ("refused", "dns", "tls")
"""With these the endpoint never knows of a request."""
ENDLESS_SECONDS = 3600.0
PHRASES = ("advertised: not required", "could not determine whether OAuth is required")


@operation(
    "gate.listed",
    requirements=(
        "gate-looks-at-remote-types-only",
        "gate-skips-static-header-servers",
        "gate-skips-declared-unavailable",
    ),
)
def _listed(given: dict[str, Any]) -> Any:
    return is_listed(read_entry(NAME, given["entry"]))


@operation(
    "gate.spawn",
    requirements=(
        "gate-requires-reauth-blocks",
        "gate-refresh-failed-blocks",
        "gate-preregistered-blocks-no-probe",
        "gate-valid-credential-skips-probe",
        "gate-advertised-required-blocks",
        "gate-not-required-proceeds",
    ),
)
def _spawn(given: dict[str, Any]) -> Any:
    status = Status(**given["status"])
    judged = verdict(status)
    if judged != "ask":
        injected = judged == "usable"
        return {"blocked": not injected, "probed": False, "injected": injected, "recorded": None, "log_phrase": None}
    found = (given["probe"] or {}).get("determination", UNDETERMINED)
    line = log_line(NAME, found)
    return {
        "blocked": blocks(found),
        "probed": True,
        "injected": False,
        "recorded": found,
        "log_phrase": next((phrase for phrase in PHRASES if phrase in line), None),
    }


@operation(
    "gate.block",
    requirements=(
        "gate-blocked-session-fails-fast",
        "gate-blocked-records-servers",
        "gate-clears-running-job-on-block",
        "resume-door-first-turn-owes-nothing",
        "resume-door-follow-up-owes-message",
        "resume-nudge-dropped",
        "resume-nudge-keeps-older-marker",
    ),
)
def _block(given: dict[str, Any]) -> Any:
    standing = given["pending_follow_up_prompt"]
    before = {"running_job_id": "job", "metadata": {} if standing is None else {MARKER: standing}}
    turn = Turn(given["prompt"] if given["turn"] == "follow_up" else None, given["nudge"])
    servers = [Blocked(each["server_name"], each["server_url"]) for each in given["blocked"]]
    after = blocked_values(before, servers, turn)
    metadata = rows.metadata(after)
    return {
        "status": after["status"],
        "failure_reason": metadata[REASON],
        "oauth_required_servers": metadata[REQUIRED],
        "running_job_id": after["running_job_id"],
        "pending_follow_up_prompt": metadata.get(MARKER),
        "undelivered_notice": any(line.kind == "not_delivered" for line in blocked_lines(before, servers, turn)),
    }


@operation("gate.authorized", requirements=("gate-authorized-predicate", "gate-authorized-key-resolution"))
def _authorized(given: dict[str, Any]) -> Any:
    entry, config = given["entry"], given["config"]
    key = key_of(entry, None if config is None else read_entry(entry["server_name"], config))
    stored = None if key is None else given["rows"].get(key)
    return stored is not None and authorized(credential(stored, key or ""), NOW)


def credential(row: Mapping[str, Any], key: str = KEY) -> Credential:
    """A row that holds what a vector gives; times in it are seconds from now."""
    expires = row["expires_in_s"]
    return Credential(
        credential_key=key,
        server_name=NAME,
        server_url=URL,
        client_id="client",
        access_token="access",
        refresh_token=row.get("refresh_token"),
        token_endpoint=row.get("token_endpoint"),
        expires_at=None if expires is None else NOW + expires,
    )


# --- the judgement of one server, with its requests


class Copy:
    """A runtime's store that holds one pair, or none."""

    runtime: Runtime = "claude"
    enumerable = True

    def __init__(self, given: Mapping[str, Any] | None) -> None:
        self.pairs: dict[str, RuntimePair] = {}
        if given is not None:
            expires = NOW + given["expires_in_s"]
            self.pairs[KEY] = RuntimePair(given["access_token"], given["refresh_token"], expires, URL)

    def key_for(self, row: Credential) -> str:
        return row.credential_key

    async def read(self, world: World, keys: Sequence[str] | None = None) -> Mapping[str, RuntimePair]:  # noqa: ARG002
        return self.pairs

    async def write(self, world: World, credentials: Sequence[StagedCredential]) -> str | None:  # noqa: ARG002
        return None

    async def delete(self, world: World, keys: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def clear_needs_auth(self, world: World, names: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002
        return ()


class TokenEndpoint:
    """Answers every request alike."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        self.answer, self.requests = answer, 0

    def handle(self, request: Request, now: float, who: str) -> Response:  # noqa: ARG002
        self.requests += 1
        headers = {"Content-Type": "application/json", **self.answer.get("headers", {})}
        text = json.dumps(self.answer["json"]) if "json" in self.answer else self.answer.get("text", "")
        return Response(self.answer.get("status", 200), headers, text.encode())


@operation(
    "gate.status",
    requirements=(
        "gate-expired-refresh-before-judging",
        "gate-near-expiry-not-blocking",
        "gate-requires-reauth-blocks",
        "gate-refresh-failed-blocks",
    ),
)
def _status(given: dict[str, Any]) -> Any:
    answer = given["token_answer"] or {}
    endpoint = TokenEndpoint(answer)
    simulation = Simulation(
        start_seconds=NOW,
        servers={TOKEN_ORIGIN: endpoint},
        faults=[] if "error" not in answer else [Fault(FAULTS[answer["error"]], port="http", seconds=ENDLESS_SECONDS)],
    )
    judged: list[Any] = []

    async def judge(world: World, _argv: Sequence[str]) -> int:
        if given["row"] is not None:
            await table.insert_unchecked(world, credential(given["row"]))
        row = await adopted(world, Reconciler(world, (Copy(given.get("runtime")),)), KEY)
        renewed_rows = await renewed(world, {} if row is None else {NAME: row})
        judged.append((status_of(renewed_rows.get(NAME), world.clock.now()), renewed_rows.get(NAME)))
        return 0

    simulation.start("gate", judge)
    outcome = simulation.run()
    status, row = judged[0]
    return {
        "has_credential": status.has_credential,
        "credential_valid": status.credential_valid,
        "refresh_failed": status.refresh_failed,
        "requires_reauth": status.requires_reauth,
        "posts": endpoint.requests + sum(event.details.get("action") in UNSENT for event in outcome.events),
        "refresh_token": None if row is None else row.refresh_token,
    }
