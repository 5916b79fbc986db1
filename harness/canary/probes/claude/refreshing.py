"""When a stored credential is renewed, how that is asked for, what is written back, and what a refusal leaves."""

from __future__ import annotations

import base64
import re
import stat
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.behaviour import Behaviour
from harness.canary.claims import UNSTATED, Claim, probe
from harness.canary.probes.claude.authority import (
    CUT_PAIR,
    HTML,
    SECRET,
    Dropping,
    Grant,
    GuardedDoors,
    granted,
    refused,
)
from harness.canary.probes.claude.ground import CACHE, STORE, listing, log, project, said, store, stored
from harness.canary.trial import Trial

NOT_THERE = False
OLD_TOKEN, NEW_TOKEN = "old", "new"
DROPPED_WITHOUT_RETRIES = 2
"""A renewal that the layer below posts twice."""
AFFECTS = "OAuth credentials with a refresh token"
GUARDED = Behaviour(requires_bearer=(NEW_TOKEN,))
SECONDS = re.compile(r"-?\b\d+s\b")
FAILED = "Token refresh failed: "
TELLING = (
    "Token refresh failed",
    "Invalidated credentials",
    "Token expires in",
    "Unauthorized",
    "Authentication required",
)


def credential(expires_in_seconds: float | None, **more: Any) -> dict[str, Any]:
    """A stored credential that can be renewed."""
    expires = {} if expires_in_seconds is None else {"expiresAt": int((time.time() + expires_in_seconds) * 1000)}
    return {"accessToken": OLD_TOKEN, "refreshToken": "once", "clientId": "client", "scope": "read", **expires, **more}


def entries(urls: Mapping[str, str], names: Any) -> dict[str, dict[str, Any]]:
    """A server at each door."""
    base = urls["doors"].removesuffix("/mcp")
    return {name: {"type": "http", "url": f"{base}/{name}"} for name in names}


def stated(name: str, says: str, assumes: Any, *relied_on: str, affects: str = AFFECTS, **lines: Any) -> Claim:
    """A claim of this module."""
    return Claim(f"claude.refresh.{name}", says, assumes=assumes, relied_on=relied_on, affects=affects, **lines)


# --- what works


@probe(
    stated("margin", "a token is renewed when less than 300 seconds are left", {"290": True, "310": False}),
    stated(
        "request",
        "it is asked for with a form that names the grant, the resource and the client, and no scope",
        {
            "fields": ["client_id", "grant_type", "refresh_token", "resource"],
            "grant_type": "refresh_token",
            "client_id": "client",
            "resource": "$URL",
            "authorization": None,
        },
    ),
    stated(
        "client-secret",
        "a stored client secret proves the client in the header, and the form does not name the client",
        {"authorization": "client:secret", "client_id": None},
    ),
    stated(
        "written-back",
        "token, expiry, refresh token and scope of the answer are written into the entry; unknown fields stay",
        {
            "accessToken": NEW_TOKEN,
            "refreshToken": "next",
            "scope": "read write",
            "clientId": "client",
            "expires": 3600,
            "harness": 1,
        },
        "reconcile-claude-millis",
    ),
    stated("no-new-refresh-token", "without a new refresh token the old one is kept", "once"),
    stated("no-expiry", "without expires_in the entry has no expiry", NOT_THERE),
    stated("no-scope", "without a scope the entry has none", NOT_THERE),
    stated(
        "file",
        "the store is written with mode 0600, and everything else in it stays",
        {"mode": "0o600", "others": True},
    ),
    stated("once", "a good refresh is asked for once", 1),
    stated(
        "unexpired-refused",
        "a token that is refused although it has not expired is renewed once, and the server connects",
        {"asked": 1, "listed": "✔ Connected"},
    ),
    stated(
        "fields",
        "the fields of an entry that was renewed after a refusal, and of what it says of the authorization server",
        UNSTATED,
        "reconcile-claude-millis",
        reads=("stamps_issuer",),
        derive={"stamps_issuer": lambda seen: "issuer" in seen["entry"]},
    ),
    stated(
        "no-client",
        "without a stored client id one is registered and named in the refresh",
        {"registered": 1, "client_id": "client-of-no-client"},
    ),
    seconds=4.0,
)
def good_refreshes(trial: Trial) -> Mapping[str, Any]:
    """All in one `claude mcp list`."""
    cases: dict[str, tuple[float | None, Grant | None, dict[str, Any]]] = {
        "soon": (290.0, None, {"harness": 1}),
        "later": (310.0, None, {}),
        "secret": (-10.0, None, {"clientSecret": "secret"}),
        "bare": (-10.0, granted(), {}),
        "unexpired": (7200.0, None, {}),
        "no-client": (-10.0, None, {"clientId": None}),
    }
    both = Behaviour(requires_bearer=(OLD_TOKEN, NEW_TOKEN))
    behaviours = {name: both if name == "later" else GUARDED for name in cases}
    doors = GuardedDoors(behaviours, {name: grant for name, (_, grant, _) in cases.items() if grant})
    with trial.serving(doors=doors) as urls:
        servers = entries(urls, cases)
        project(trial, servers)
        held = {name: credential(seconds, **more) for name, (seconds, _, more) in cases.items()}
        store(trial, {name: {k: v for k, v in entry.items() if v is not None} for name, entry in held.items()}, servers)
        trial.write_json(STORE, {**(trial.read_json(STORE) or {}), "claudeAiOauth": {"kept": True}}, mode=0o644)
        began = time.time()
        shown = listing(trial.run("mcp", "list"))
    soon, bare = stored(trial, servers, "soon") or {}, stored(trial, servers, "bare") or {}
    unexpired = stored(trial, servers, "unexpired") or {}
    asked, secret = first(doors, "soon"), first(doors, "secret")
    lifetime = soon.get("expiresAt", 0) / 1000 - began
    return {
        "claude.refresh.margin": {"290": "soon" in doors.refreshes, "310": "later" in doors.refreshes},
        "claude.refresh.request": {
            "fields": sorted(asked),
            **{name: asked.get(name) for name in ("grant_type", "client_id")},
            "resource": "$URL" if asked.get("resource") == servers["soon"]["url"] else asked.get("resource"),
            "authorization": proof(doors, "soon"),
        },
        "claude.refresh.client-secret": {"authorization": proof(doors, "secret"), "client_id": secret.get("client_id")},
        "claude.refresh.written-back": {
            **{name: soon.get(name) for name in ("accessToken", "refreshToken", "scope", "clientId", "harness")},
            "expires": 3600 if 3590 < lifetime < 3700 else lifetime,
        },
        "claude.refresh.no-new-refresh-token": bare.get("refreshToken"),
        "claude.refresh.no-expiry": "expiresAt" in bare,
        "claude.refresh.no-scope": "scope" in bare,
        "claude.refresh.file": {
            "mode": oct(stat.S_IMODE(trial.place(STORE).stat().st_mode)),
            "others": (trial.read_json(STORE) or {}).get("claudeAiOauth") == {"kept": True},
        },
        "claude.refresh.once": len(doors.refreshes.get("soon", ())),
        "claude.refresh.unexpired-refused": {
            "asked": len(doors.refreshes.get("unexpired", ())),
            "listed": shown.get("unexpired"),
        },
        "claude.refresh.fields": {
            "entry": sorted(unexpired),
            "discovered": sorted(unexpired.get("discoveryState", {})),
        },
        "claude.refresh.no-client": {
            "registered": len(doors.registrations.get("no-client", ())),
            "client_id": first(doors, "no-client").get("client_id"),
        },
    }


def first(doors: GuardedDoors, door: str) -> Mapping[str, str]:
    """The form of the first refresh at a door; empty when there was none."""
    return next((asked.form for asked in doors.refreshes.get(door, ())), {})


def proof(doors: GuardedDoors, door: str) -> str | None:
    """How the client proved itself in the header of the first refresh."""
    given = next((asked.authorization for asked in doors.refreshes.get(door, ())), None)
    kind, _, encoded = (given or "").partition(" ")
    return base64.b64decode(encoded).decode() if kind == "Basic" else given


# --- what fails


class Failure(NamedTuple):
    """An answer to a refresh, and what must be so of its trace for the reference to be right."""

    says: str
    grant: Grant
    assumes: Callable[[Mapping[str, Any]], bool]
    seconds: float = -10.0
    relied_on: tuple[str, ...] = ()
    derive: Mapping[str, Callable[[Any], Any]] = {}


def emptied(trace: Mapping[str, Any]) -> bool:
    """The grant is asked for once and is gone from the entry."""
    return bool(trace["asked"] == 1 and trace["entry"]["accessToken"] == "" and not trace["entry"]["refreshToken"])


def kept(trace: Mapping[str, Any]) -> bool:
    """Both tokens are still in the entry."""
    return bool(trace["entry"]["accessToken"] == OLD_TOKEN and trace["entry"]["refreshToken"])


QUICK: Mapping[str, Failure] = {
    "invalid-grant": Failure(
        "invalid_grant empties the entry after one request",
        refused("invalid_grant", error_description="Invalid refresh token"),
        emptied,
        relied_on=("failure-grant-rejected-retires",),
    ),
    "invalid-client": Failure(
        "invalid_client empties it, and forgets the client",
        refused("invalid_client", 401),
        emptied,
        derive={"forgotten_has_expired": lambda seen: seen["entry"]["expiresAt"] == "zero"},
    ),
    "unauthorized-client": Failure("unauthorized_client does the same", refused("unauthorized_client"), emptied),
    "invalid-grant-with-200": Failure(
        "invalid_grant with status 200 empties it too", Grant('{"error": "invalid_grant"}'), emptied
    ),
    "invalid-request": Failure("invalid_request leaves the entry", refused("invalid_request"), kept),
    "invalid-grant-unexpired": Failure(
        "invalid_grant for a token that is refused before it expires empties the entry",
        refused("invalid_grant"),
        emptied,
        seconds=7200.0,
    ),
    "invalid-grant-early": Failure(
        "invalid_grant within the margin throws a token away that was still good",
        refused("invalid_grant"),
        emptied,
        seconds=120.0,
    ),
}
LAST = "last"
"""A server that is done after all others: what 2.1.268 notes of the last one is sometimes lost at its end."""
SLOW: Mapping[str, Failure] = {
    "dropped": Failure(
        "a connection that breaks leaves the entry; `asked` is how often before the server is, in spite of it",
        Grant(""),
        kept,
        derive={"retries_lost_renewal": lambda seen: seen["asked"] > DROPPED_WITHOUT_RETRIES},
    ),
    "page": Failure("400 with a web page leaves the entry", Grant("<html>no</html>", 400, HTML), kept),
    "rate-limited": Failure(
        "429 leaves the entry",
        refused("rate_limited", 429),
        kept,
        derive={"unknown_refusal_is_final": lambda seen: seen["listed"] == "✘ Failed to connect"},
    ),
    "unavailable": Failure("503 leaves the entry", Grant("<html>later</html>", 503, HTML), kept),
    "cut": Failure("400 with JSON that is cut off leaves the entry", Grant(CUT_PAIR, 400), kept),
}


def failure_claims(cases: Mapping[str, Failure]) -> list[Claim]:
    """The claims of these cases."""
    return [
        stated(name, case.says, case.assumes, *case.relied_on, reads=tuple(case.derive), derive=case.derive)
        for name, case in cases.items()
    ]


@probe(
    *failure_claims(QUICK),
    stated(
        "grant-text",
        "the log tells of a rejected grant in the words that the reference looks for",
        lambda told: any("Token refresh failed with invalid_grant" in line for line in told),
        "failure-grant-rejected-pattern",
    ),
    stated(
        "grant-text-unexpired",
        "it does so as well where the token had not expired",
        lambda told: any("Token refresh failed" in line and "invalid_grant" in line for line in told),
        "failure-grant-rejected-pattern",
    ),
    seconds=4.0,
)
def refused_refreshes(trial: Trial) -> Mapping[str, Any]:
    """All answers that end a grant at once, in one `claude mcp list`."""
    found = traces(trial, QUICK, GuardedDoors(dict.fromkeys(QUICK, GUARDED), {n: c.grant for n, c in QUICK.items()}))
    return {
        **found,
        "claude.refresh.grant-text": telling(trial, "invalid-grant"),
        "claude.refresh.grant-text-unexpired": telling(trial, "invalid-grant-unexpired"),
    }


@probe(
    *failure_claims(SLOW),
    stated(
        "cut-said",
        "what the log says of it: the answer, but for what is called like a secret",
        lambda told: told and not any(SECRET in line for line in told),
        "failure-record-no-secret-values",
        affects="whoever reads the log of a server that failed",
    ),
    seconds=25.0,
    limit_seconds=90.0,
)
def ambiguous_refreshes(trial: Trial) -> Mapping[str, Any]:
    """All answers after which nobody knows, in one `claude mcp list`: the program tries again and again."""
    grants = {**{name: case.grant for name, case in SLOW.items()}, LAST: SLOW["page"].grant}
    dropping = Dropping()
    with trial.serving(token=dropping) as urls:
        doors = GuardedDoors(dict.fromkeys(grants, GUARDED), grants, token_urls={"dropped": urls["token"]})
        counted = {"dropped": lambda: dropping.before(doors.visits["dropped"][0].at)}
        found = traces(trial, SLOW, doors, counted, LAST)
    said_of_it = {line for line in telling(trial, "cut") if line.startswith(FAILED)}
    return {**found, "claude.refresh.cut-said": sorted(said_of_it)}


def traces(
    trial: Trial,
    cases: Mapping[str, Failure],
    doors: GuardedDoors,
    counted: Mapping[str, Callable[[], int]] | None = None,
    *more: str,
) -> dict[str, Any]:
    """What each refusal leaves: how often it was asked for, the entry, the cache, and how the list shows the server."""
    with trial.serving(doors=doors) as urls:
        servers = entries(urls, [*cases, *more])
        project(trial, servers)
        lapsed = {name: credential(-10.0) for name in more}
        store(trial, {**{name: credential(case.seconds) for name, case in cases.items()}, **lapsed}, servers)
        shown = listing(trial.run("mcp", "list", limit_seconds=80.0))
    cached = trial.read_json(CACHE) or {}
    found = {}
    for name in cases:
        entry = stored(trial, servers, name) or {}
        asked = counted[name]() if counted and name in counted else len(doors.refreshes.get(name, ()))
        found[f"claude.refresh.{name}"] = {
            "asked": asked,
            "entry": {
                "accessToken": entry.get("accessToken"),
                **{field: field in entry for field in ("refreshToken", "clientId", "scope")},
                "expiresAt": "none" if "expiresAt" not in entry else "zero" if entry["expiresAt"] == 0 else "set",
            },
            "cached": sorted(cached[name].items() - {("timestamp", cached[name]["timestamp"])})
            if name in cached
            else None,
            "listed": shown.get(name, "").partition(" — ")[0],
        }
    return found


def telling(trial: Trial, name: str) -> list[str]:
    """The lines about the refresh."""
    texts = (SECONDS.sub("N s", trial.normal(text)).partition("\n")[0] for _, text in said(log(trial, name)))
    return [text for text in texts if text.startswith(TELLING)]


# --- several processes


@probe(
    stated(
        "several-processes",
        "of three processes that start at once one alone asks for a new token, and all of them connect",
        {"asked": 1, "connected": 3},
        "store-lock-read-and-write",
        affects="sessions that share a home",
    ),
    seconds=3.0,
)
def several_processes(trial: Trial) -> Mapping[str, Any]:
    """Three lists at once over one expired token."""
    doors = GuardedDoors({"one": GUARDED})
    with trial.serving(doors=doors) as urls:
        servers = entries(urls, ["one"])
        project(trial, servers)
        store(trial, {"one": credential(-10.0)}, servers)
        running = [trial.start("mcp", "list") for _ in range(3)]
        printed = [process.communicate(b"")[0].decode() for process in running]
    connected = sum("✔ Connected" in text for text in printed)
    return {"claude.refresh.several-processes": {"asked": len(doors.refreshes.get("one", ())), "connected": connected}}


# --- who has never signed in


@probe(
    stated(
        "registration",
        "a server without a stored client is not registered with before somebody signs in; only where it is, is kept",
        {"registered": 0, "entry": ["accessToken", "discoveryState", "serverName", "serverUrl"], "token": ""},
        "readiness-needs-authorization",
        affects="servers that nobody has signed in to: the store has an entry without a token",
    ),
    seconds=1.5,
)
def first_refusal(trial: Trial) -> Mapping[str, Any]:
    """A list with an empty store."""
    doors = GuardedDoors({"one": GUARDED})
    with trial.serving(doors=doors) as urls:
        servers = entries(urls, ["one"])
        project(trial, servers)
        trial.run("mcp", "list")
    entry = stored(trial, servers, "one") or {}
    return {
        "claude.refresh.registration": {
            "registered": len(doors.registrations.get("one", ())),
            "entry": sorted(entry),
            "token": entry.get("accessToken"),
        }
    }
