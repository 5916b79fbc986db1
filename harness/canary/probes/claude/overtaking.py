"""What a renewal does when somebody else has renewed meanwhile, and what a session's call does when a token dies."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.authority import HTML, Asked, Closing, Grant, GuardedDoors, refused
from harness.canary.probes.claude.credentials import allow
from harness.canary.probes.claude.ground import CACHE, SETTLED, STORE, listing, project, results, session, store, stored
from harness.canary.probes.claude.refreshing import GUARDED, NEW_TOKEN, OLD_TOKEN, credential, entries
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial
from harness.world.ports import Request, Response

PUSHED, OTHER = "pushed", "other"
BOTH = Behaviour(requires_bearer=(NEW_TOKEN, PUSHED))
AFFECTS = "OAuth credentials that several processes renew"
REFUSED = refused("invalid_grant")
CASES: Mapping[str, tuple[float, Grant | None]] = {
    "ahead": (-10.0, REFUSED),
    "refused": (7200.0, REFUSED),
    "granted": (-10.0, None),
}


class Overtaking(GuardedDoors):
    """Authorization servers that answer a door's first refresh after somebody has put another pair into the store."""

    trial: Trial

    def token(self, request: Request, door: str) -> Response:
        """Put the other pair there, then answer."""
        if door not in self.refreshes:
            held = self.trial.read_json(STORE)
            for key, entry in held["mcpOAuth"].items():
                if key.startswith(f"{door}|"):
                    entry.update(accessToken=PUSHED, refreshToken=OTHER, expiresAt=int((time.time() + 3600) * 1000))
            self.trial.write_json(STORE, held, mode=0o600)
        return super().token(request, door)


def told(refreshes: list[Asked]) -> list[str | None]:
    """The refresh tokens that were spent, in order."""
    return [asked.form.get("refresh_token") for asked in refreshes]


@probe(
    Claim(
        "claude.refresh.overtaken-ahead",
        "a renewal that is refused after somebody has put another pair into the store takes that pair and connects",
        assumes={"spent": ["once"], "held": [PUSHED, OTHER], "listed": "✔ Connected"},
        relied_on=("store-lock-read-and-write",),
        affects=AFFECTS,
    ),
    Claim(
        "claude.refresh.overtaken-refused",
        "one that follows a refusal spends the other pair as well, and leaves it where it is",
        assumes=lambda seen: seen["spent"] == ["once", OTHER] and seen["held"] == [PUSHED, OTHER],
        affects=AFFECTS,
    ),
    Claim(
        "claude.refresh.overtaken-granted",
        "one that is granted overwrites the other pair",
        assumes={"spent": ["once"], "held": [NEW_TOKEN, "next"], "listed": "✔ Connected"},
        relied_on=("store-lock-read-and-write",),
        affects=AFFECTS,
    ),
    seconds=3.0,
)
def overtaken_refreshes(trial: Trial) -> Mapping[str, Any]:
    """A list for each case, so that no two write the store at the same time."""
    found: dict[str, Any] = {}
    for name, (seconds, grant) in CASES.items():
        doors = Overtaking({name: BOTH}, {} if grant is None else {name: grant})
        doors.trial = trial
        with trial.serving(doors=doors) as urls:
            servers = entries(urls, [name])
            project(trial, servers)
            store(trial, {name: credential(seconds)}, servers)
            shown = listing(trial.run("mcp", "list"))
        entry = stored(trial, servers, name) or {}
        found[f"claude.refresh.overtaken-{name}"] = {
            "spent": told(doors.refreshes.get(name, [])),
            "held": [entry.get("accessToken"), entry.get("refreshToken")],
            "listed": shown.get(name, "").partition(" — ")[0],
        }
    return found


CALLS: Mapping[str, Grant | None] = {"good": None, "dead": REFUSED, "page": Grant("<html>later</html>", 503, HTML)}


@probe(
    Claim(
        "claude.refresh.call-good",
        "a call whose token is refused goes through with a new one, for which is asked once",
        assumes=lambda seen: seen["told"] == ["ok", "ok"] and seen["spent"] == ["once"],
        affects="sessions that outlive a token",
    ),
    Claim(
        "claude.refresh.call-dead",
        "a dead grant ends at the first call, and the entry is emptied",
        assumes=lambda seen: seen["spent"] == ["once"] and seen["held"] == ["", None],
        relied_on=("failure-grant-rejected-retires",),
        affects="sessions that outlive a token",
    ),
    Claim(
        "claude.refresh.call-page",
        "an authorization server that is out of order is asked for one token at the call and one in a new connection",
        assumes=lambda seen: seen["spent"] == ["once", "once"] and seen["held"] == [OLD_TOKEN, "once"],
        affects="sessions that outlive a token",
    ),
    seconds=5.0,
)
def refreshes_of_calls(trial: Trial) -> Mapping[str, Any]:
    """A session for each case, with two calls."""
    call = Turn((Call("one", "echo"),))
    found: dict[str, Any] = {}
    for name, grant in CALLS.items():
        doors = Closing(Behaviour(), GUARDED, {} if grant is None else {"one": grant})
        script = Script((call, call, Turn(text="done")))
        with trial.serving(doors=doors) as urls, trial.modelled(script):
            servers = entries(urls, ["one"])
            project(trial, servers)
            store(trial, {"one": credential(7200.0)}, servers)
            trial.write(CACHE, "{}")
            allow(trial)
            run = session(trial, env=SETTLED)
        entry = stored(trial, servers, "one") or {}
        found[f"claude.refresh.call-{name}"] = {
            "told": [plain(result) for result in results(run)],
            "spent": told(doors.refreshes.get("one", [])),
            "held": [entry.get("accessToken"), entry.get("refreshToken")],
            "cached": {server: "ttlMs" in held for server, held in (trial.read_json(CACHE) or {}).items()},
        }
    return found


def plain(result: Any) -> Any:
    """The text of a result."""
    return result if isinstance(result, str) else result[0]["text"]
