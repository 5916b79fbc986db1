"""The cache of servers that need authentication: who honours it, for how long, what it blocks, what clears it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.authority import GuardedDoors
from harness.canary.probes.claude.ground import CACHE, SETTLED, listing, log, project, said, session, statuses, store
from harness.canary.probes.doors import Doors
from harness.canary.probes.witnesses import witness
from harness.canary.trial import Trial

MINUTE_MS = 60_000
BLOCKED, CONNECTED = {"status": "needs-auth", "contacted": False}, {"status": "connected", "contacted": True}


class Case(NamedTuple):
    """An entry of the cache, by its age and its own lifetime, and what a session then does with the server."""

    says: str
    age_ms: int
    assumes: Mapping[str, Any] = BLOCKED
    ttl_ms: int | None = None
    headers: Mapping[str, str] = {}
    token: bool = False
    transport: str = "http"
    raw: Any = None


CASES: Mapping[str, Case] = {
    "fresh": Case("a fresh entry keeps a session from the server", 1000),
    "valid-token": Case("it does so even where a valid token is stored", 1000, token=True),
    "own-authorization": Case(
        "it does so even with a configured Authorization header", 1000, headers={"Authorization": "Bearer x"}
    ),
    "other-header": Case("it does so even with another credential header", 1000, headers={"X-API-Key": "x"}),
    "sse": Case("it does so over sse", 1000, transport="sse"),
    "stdio": Case("it does not keep a session from a stdio server", 1000, CONNECTED, transport="stdio"),
    "15-minutes-young": Case("an entry lives for nearly 15 minutes", 14 * MINUTE_MS + 45_000),
    "15-minutes-old": Case("an entry is dead after 15 minutes", 15 * MINUTE_MS + 5_000, CONNECTED),
    "own-lifetime-young": Case("an entry's own ttlMs keeps it alive", 60 * MINUTE_MS, ttl_ms=120 * MINUTE_MS),
    "own-lifetime-old": Case("an entry's own ttlMs lets it die", 95_000, CONNECTED, ttl_ms=90_000),
    "future": Case("a time stamp in the future is not honoured", -10 * MINUTE_MS, CONNECTED),
    "no-object": Case("an entry that is no object is not honoured", 0, CONNECTED, raw=1796028691091),
}


def claim(name: str, case: Case) -> Claim:
    """The claim of a case."""
    return Claim(
        f"claude.needs-auth.{name}",
        case.says,
        "seed 002",
        assumes=case.assumes,
        relied_on=("status-claude-needs-auth-skip", "store-needs-auth-global", "store-needs-auth-skips-network"),
        affects="remote servers after a credential was renewed",
    )


@probe(
    *(claim(name, case) for name, case in CASES.items()),
    Claim(
        "claude.needs-auth.skip-line",
        "the log of a server that is kept away says so in a debug line, and nothing else",
        assumes=[["debug", "Skipping connection (cached needs-auth)"]],
        relied_on=("status-claude-needs-auth-skip",),
        affects="the status of such servers",
    ),
    Claim(
        "claude.needs-auth.cleared-by-session",
        "a session strikes off the servers to which it connects, and no others",
        assumes=sorted(name for name, case in CASES.items() if case.assumes == BLOCKED),
        relied_on=("reconnect-live-clears-needs-auth", "store-inject-clears-entry", "store-clear-only-named"),
        affects="remote servers after a credential was renewed",
    ),
    seconds=3.0,
)
def cached_refusals(trial: Trial) -> Mapping[str, Any]:
    """All cases in one session, at servers that would let everybody in."""
    doors = Doors(
        {name: Behaviour() for name, case in CASES.items()}, sse=[n for n, c in CASES.items() if c.transport == "sse"]
    )
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        servers = {
            name: witness(trial, name)
            if case.transport == "stdio"
            else {"type": case.transport, "url": f"{base}/{name}", "headers": dict(case.headers)}
            for name, case in CASES.items()
        }
        project(trial, servers)
        store(trial, {name: {"accessToken": "stored"} for name, case in CASES.items() if case.token}, servers)
        now_ms = int(time.time() * 1000)
        trial.write_json(CACHE, {name: cached(case, now_ms) for name, case in CASES.items()})
        shown = statuses(session(trial, env=SETTLED))
    held = trial.read_json(CACHE)
    contacted = {name: doors.visited(name) or case.transport == "stdio" for name, case in CASES.items()}
    return {
        **{f"claude.needs-auth.{name}": {"status": shown.get(name), "contacted": contacted[name]} for name in CASES},
        "claude.needs-auth.skip-line": [list(line) for line in said(log(trial, "fresh"))],
        "claude.needs-auth.cleared-by-session": sorted(held),
    }


def cached(case: Case, now_ms: int) -> Any:
    """The entry of a case."""
    if case.raw is not None:
        return case.raw
    lifetime = {} if case.ttl_ms is None else {"ttlMs": case.ttl_ms}
    return {"timestamp": now_ms - case.age_ms, **lifetime}


@probe(
    Claim(
        "claude.needs-auth.format",
        "a refusal with 401 or 403 is noted under the bare name of the server, with a time stamp in milliseconds",
        assumes={"refused": ["timestamp"], "forbidden": ["timestamp"]},
        relied_on=("reconnect-live-clears-needs-auth", "status-claude-403-is-needs-auth"),
        affects="remote servers that refuse",
    ),
    Claim(
        "claude.needs-auth.list-ignores",
        "`claude mcp list` contacts a server that is in the cache, and leaves its entry where it connects",
        assumes={"status": "✔ Connected", "kept": True},
        relied_on=("status-inferred-not-probed",),
        affects="whoever looks at `claude mcp list` to see whether a session would connect",
    ),
    seconds=2.0,
)
def refusals_of_a_list(trial: Trial) -> Mapping[str, Any]:
    """Two servers that refuse and one that does not, but is in the cache."""
    refusing = {"refused": Behaviour(status=401, body="no"), "forbidden": Behaviour(status=403, body="no")}
    doors = GuardedDoors(refusing)
    with trial.serving(doors=doors) as urls:
        base = urls["doors"].removesuffix("/mcp")
        project(trial, {name: {"type": "http", "url": f"{base}/{name}"} for name in (*refusing, "good")})
        began_ms = int(time.time() * 1000)
        trial.write_json(CACHE, {"good": {"timestamp": began_ms - 1000}})
        shown = listing(trial.run("mcp", "list"))
        ended_ms = int(time.time() * 1000)
    held = trial.read_json(CACHE)
    fresh = {name: held.get(name, {}) for name in refusing}
    right = all(began_ms <= entry.get("timestamp", 0) <= ended_ms for entry in fresh.values())
    return {
        "claude.needs-auth.format": {name: sorted(entry) for name, entry in fresh.items()} if right else held,
        "claude.needs-auth.list-ignores": {"status": shown.get("good"), "kept": "good" in held},
    }


@probe(
    Claim(
        "claude.needs-auth.corrupt",
        "a corrupt cache blocks nothing and stays as it is after a session that connects",
        assumes={"status": "connected", "text": "{oops"},
        relied_on=("store-clear-tolerant",),
        affects="sessions after a cache was cut off",
    ),
    Claim(
        "claude.needs-auth.list-shaped",
        "a cache that is a JSON list blocks nothing, and a refusal is not noted in it",
        assumes={"status": "needs-auth", "text": "[]"},
        affects="sessions after a cache was overwritten",
    ),
    seconds=4.0,
)
def broken_caches(trial: Trial) -> Mapping[str, Any]:
    """Two sessions, each with a cache that is none."""
    doors = GuardedDoors({"refused": Behaviour(status=401)})
    found: dict[str, Any] = {}
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        for claim_name, door, text in (("corrupt", "good", "{oops"), ("list-shaped", "refused", "[]")):
            project(trial, {door: {"type": "http", "url": f"{base}/{door}"}})
            trial.write(CACHE, text)
            status = statuses(session(trial, env=SETTLED)).get(door)
            found[f"claude.needs-auth.{claim_name}"] = {"status": status, "text": trial.read(CACHE)}
    return found
