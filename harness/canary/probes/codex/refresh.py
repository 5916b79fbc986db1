"""When Codex renews a stored token, what it sends, and what it writes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

from fake_runtimes.codex.bugs import REFRESH_IS_UNUSED
from fake_servers.mcp.http import HttpServer, bearer, default_challenge
from fake_servers.oauth import AuthorizationServer, Protected, Resource, Site
from harness.canary.claims import UNSTATED, Claim, probe
from harness.canary.probes.codex.asking import (
    FULL_ACCESS,
    STORE,
    Told,
    configure,
    entry,
    executed,
    now_ms,
    statuses,
    talking,
)
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial
from harness.reference.credentials.key import runtime_key
from harness.world.ports import Request, Response

CLIENT = "a-client"
SCOPES = ["read", "write"]
PAST, SOON, LATER = -60_000, 20_000, 40_000
"""Milliseconds from now."""


class Case(NamedTuple):
    """A stored token. `expires` counts milliseconds from now, or is a value; `answers` is what the next request for a
    token gets. With `revoked` the server does not take the token.
    """

    says: str
    expires: Any = PAST
    answers: tuple[str, ...] = ()
    fields: Mapping[str, Any] = {}
    revoked: bool = False


CASES: Mapping[str, Case] = {
    "expired": Case("a token that has expired"),
    "soon": Case("a token that expires in 20 seconds", SOON),
    "later": Case("a token that expires in 40 seconds", LATER),
    "seconds": Case("an expiry in seconds", "seconds"),
    "never": Case("an expiry of null", None),
    "no-refresh-token": Case("an expired token without a refresh token", fields={"refresh_token": None}),
    "unexpired-401": Case("a token that is good by its expiry, and refused", 3_600_000, revoked=True),
    "invalid-grant": Case("invalid_grant", answers=("invalid_grant",)),
    "invalid-client": Case("invalid_client", answers=("invalid_client",)),
    "429": Case("429 for an answer", answers=("429",) * 3),
    "500": Case("500 for an answer", answers=("500-html",) * 3),
    "400-html": Case("400 with a page", answers=("400-html",) * 3),
    "200-error": Case("an error under 200", answers=("200-error",)),
    "400-json": Case("400 without an error code", answers=("400-json",)),
    "dropped": Case("a connection that is dropped", answers=("drop-before",) * 3),
    "unread-page": Case("a page under 200", answers=("200-html",) * 3),
    "unread-cut": Case("an answer that is cut off", answers=("ok-truncated",) * 3),
    "unread-empty": Case("an empty answer", answers=("200-empty",) * 3),
    "unread-list": Case("a list for an answer", answers=("200-list",) * 3),
    "unread-no-token": Case("an answer without an access token", answers=("ok-access-absent",) * 3),
    "unread-no-type": Case("an answer without a token type", answers=("ok-type-absent",) * 3),
    "created": Case("an answer under 201", answers=("ok-created",) * 3),
    "time-words": Case("an answer with words for its time", answers=("ok-expires-words",) * 3),
    "time-text": Case("an answer with its time in quotes", answers=("ok-expires-text",) * 3),
    "time-null": Case("an answer with null for its time", answers=("ok-expires-unsaid",) * 3),
    "time-negative": Case("an answer with a time below 0", answers=("ok-expires-negative",) * 3),
    "time-fraction": Case("an answer with a fraction for its time", answers=("ok-expires-fraction",) * 3),
    "same-refresh": Case("an answer without a refresh token", answers=("ok-without-refresh",)),
    "no-expiry": Case("an answer without an expiry", answers=("ok-without-expiry",)),
}
ISSUERS: Mapping[str, str] = {
    "right": "its issuer",
    "wrong": "another issuer",
    "slash": "its issuer and a slash",
}


class Realm(NamedTuple):
    """One authorization server, and the server that it protects."""

    authorization: AuthorizationServer
    protected: Protected

    @property
    def token_calls(self) -> int:
        """How often a token was asked for."""
        return len(self.authorization.received("token"))


def realm(path: str, case: Case) -> Realm:
    """On paths of their own, whatever the origin."""
    authorization = AuthorizationServer(f"/as/{path}", token_answers=case.answers)
    return Realm(authorization, Protected(HttpServer(), authorization, Resource(f"/{path}")))


def site(realms: Mapping[str, Realm]) -> Site:
    """All of them on one origin."""
    return Site(*(each for one in realms.values() for each in one))


def stored(name: str, base: str, one: Realm, case: Case, issuer: str = "") -> dict[str, Any]:
    """The entry of a case."""
    now = now_ms()
    access, refresh = one.authorization.issue(CLIENT, " ".join(SCOPES), resource=f"{base}/{name}", now=now / 1000)
    if case.revoked:
        one.authorization.revoke_access(access)
    expires = now // 1000 + 86_400 if case.expires == "seconds" else case.expires
    if isinstance(case.expires, int):
        expires = now + case.expires
    given = {"access_token": access, "refresh_token": refresh, "expires_at": expires, "client_id": CLIENT}
    issued = {"issuer": base + issuer} if issuer else {}
    return entry(name, f"{base}/{name}", **{**given, "scopes": SCOPES, **issued, **case.fields})


def after(before: Mapping[str, Any], store: Mapping[str, Any] | None) -> Any:
    """What became of an entry: which fields changed, and into what kind of value."""
    name, url = before["server_name"], before["server_url"]
    found = [each for each in (store or {}).values() if (each["server_name"], each["server_url"]) == (name, url)]
    if len(found) != 1:
        return f"{len(found)} entries"
    now = found[0]
    return {field: kind_of(now.get(field)) for field in sorted({*before, *now}) if before.get(field) != now.get(field)}


def kind_of(value: Any) -> Any:
    """A value without what differs each time."""
    if isinstance(value, int):
        return "milliseconds" if value > 10**12 else "seconds"
    return "another" if isinstance(value, str) else value


def outcome(trial: Trial, told: Told, one: Realm, before: Mapping[str, Any], store: Any) -> dict[str, Any]:
    """Everything that a case shows."""
    return {
        "status": told.status,
        "reason": told.reason,
        "text": None if told.error is None else trial.normal(told.error),
        "token requests": one.token_calls,
        "store": after(before, store),
    }


def assumed(case: str, issuer: str) -> Any:
    """What the reference relies on: a token of its own making is used as it is, what was renewed is written back."""
    if case == "later":
        return lambda seen: seen["status"] == "ready" and seen["token requests"] == 0
    if case in ("expired", "soon") and issuer:
        return lambda seen: seen["status"] == "ready" and {"access_token", "refresh_token"} <= set(seen["store"])
    return UNSTATED


DERIVED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "expired": {"renewal_needs_issuer": lambda seen: seen["token requests"] == 0},
    "no-refresh-token": {"reauthentication_text": lambda seen: seen["text"].replace("no-refresh-token", "{name}")},
    "issuer-invalid-grant": {"drops_refused_grant": lambda seen: "refresh_token" in seen["store"]},
    "issuer-500": {
        "renewal_failure_text": lambda seen: (
            seen["text"]
            .partition("MCP startup failed: ")[2]
            .partition("OAuth token refresh failed")[0]
            .replace("issuer-500", "{name}")
        )
    },
}


def claim(case: str, issuer: str) -> Claim:
    """The claim about one case."""
    name = f"issuer-{case}" if issuer else case
    whose = " with its issuer stored" if issuer else ""
    relied_on = {
        "later": ("writers-codex-zimmer-refreshes",),
        "expired": (
            "reconcile-codex-rotation-adopted",
            "writers-codex-issuer-field",
            "writers-codex-workaround-bugs",  # as long as it is renewed, nothing has to be renewed in Codex's place
        ),
        "soon": ("reconcile-codex-rotation-adopted",),
        "invalid-grant": ("gate-rejected-grant-known-misses", "failure-auth-runtime-texts"),
    }
    assumes = assumed(case, issuer)
    told = assumes is not UNSTATED
    shows = {REFRESH_IS_UNUSED: lambda seen: seen["token requests"] == 0} if case == "expired" else {}
    return Claim(
        f"codex.refresh.{name}",
        f"what becomes of {CASES[case].says}{whose}",
        assumes=assumes,
        relied_on=relied_on.get(case, ()) if told or case == "invalid-grant" else (),
        affects="remote entries with a stored credential",
        reads=("renewal_needs_issuer", "reauthentication_text", "renewal_failure_text", "drops_refused_grant"),
        derive=DERIVED.get(name, {}),
        shows=shows,
    )


@probe(*(claim(case, issuer) for case in CASES for issuer in ("", "right")), seconds=3.0, limit_seconds=90.0)
def renewals(trial: Trial) -> Mapping[str, Any]:
    """All cases in one start, each with and without its issuer."""
    cases = {**CASES, **{f"issuer-{name}": case for name, case in CASES.items()}}
    realms = {name: realm(name, case) for name, case in cases.items()}
    with trial.serving(site=site(realms)) as urls:
        base = urls["site"].removesuffix("/mcp")
        issued = {name: f"/as/{name}" if name.startswith("issuer-") else "" for name in cases}
        before = {name: stored(name, base, realms[name], case, issued[name]) for name, case in cases.items()}
        write(trial, before)
        told = statuses(trial, *cases, seconds=40)
        store = trial.read_json(STORE)
    return {f"codex.refresh.{name}": outcome(trial, told[name], realms[name], before[name], store) for name in cases}


def write(trial: Trial, entries: Mapping[str, dict[str, Any]], **settings: Any) -> None:
    """Servers and store."""
    configure(trial, {name: {"url": each["server_url"]} for name, each in entries.items()}, **settings)
    keys = {name: runtime_key("codex", name, {"url": each["server_url"]}, {}) for name, each in entries.items()}
    trial.write_json(STORE, {keys[name]: each for name, each in entries.items()}, mode=0o600)


@probe(
    *(
        Claim(
            f"codex.issuer.{case}",
            f"what becomes of an expired token that is stored with {says}",
            assumes=assumed("expired", says) if case == "right" else UNSTATED,
            relied_on=("writers-codex-issuer-field",) if case == "right" else (),
            affects="remote entries with a stored credential",
            reads=("renewal_needs_issuer", "reauthentication_text"),
        )
        for case, says in ISSUERS.items()
    ),
    Claim("codex.issuer.wrong-unexpired", "a wrong issuer does not matter to a token that is good"),
    Claim(
        "codex.refresh.request",
        "what is sent for a new token",
        reads=("renewal_names_resource",),
        derive={"renewal_names_resource": lambda seen: "resource" in seen},
    ),
    Claim(
        "codex.refresh.discovery",
        "what is asked for before that",
        reads=("renewal_lookups",),
        derive={"renewal_lookups": lambda seen: seen.count("GET /keyless")},
    ),
    Claim("codex.refresh.used", "what is asked for before a token that is good is used"),
    Claim(
        "codex.refresh.again",
        "a refused refresh token: how often it is presented in two starts, and what `mcp list` says then",
        reads=("renewal_needs_issuer",),
        parts=("how often it is presented, by starts", "what `mcp list` says"),
    ),
    Claim(
        "codex.refresh.wrong-key",
        "a renewed entry under a wrong key is written under the right one as well, or stays where it was found",
        affects="whoever looks for an entry by its key",
        reads=("entries_by_address",),
        derive={"entries_by_address": lambda seen: "right" not in seen},
    ),
    Claim(
        "codex.refresh.neighbours",
        "which fields the other entries of the store lose",
        affects="whoever keeps fields of its own there",
    ),
    Claim("codex.refresh.mode", "the store is written with mode 0600", assumes="0o600"),
    Claim(
        "codex.refresh.locks", "three processes that start at once ask for one token, and all connect", assumes=[1, 3]
    ),
    seconds=4.0,
)
def renewal_details(trial: Trial) -> Mapping[str, Any]:
    """A few starts, one after the other; the last is three at once."""
    good = Case("")
    names = [*ISSUERS, "wrong-unexpired", "refused", "keyless", "used", "shared"]
    realms = {
        name: realm(name, good._replace(answers=("invalid_grant",) * 3) if name == "refused" else good)
        for name in names
    }
    place = site(realms)
    with trial.serving(site=place) as urls:
        base = urls["site"].removesuffix("/mcp")
        issuers = {
            "wrong": "/as/other",
            "slash": "/as/slash/",
            "wrong-unexpired": "/as/other",
        }
        before = {}
        for name in names:
            case = good._replace(expires=3_600_000) if name in ("wrong-unexpired", "used") else good
            before[name] = stored(name, base, realms[name], case, issuers.get(name, f"/as/{name}"))
        seen: dict[str, Any] = {}
        seen |= by_issuer(trial, realms, before)
        seen |= again(trial, realms["refused"], before["refused"])
        place.requests.clear()
        seen |= keyless(trial, before)
        asked = [f"{method} {url.removeprefix(base)}" for _, _, method, url, _ in place.requests]
        place.requests.clear()
        write(trial, {"used": before["used"]})
        statuses(trial, "used")
        used = [f"{method} {url.removeprefix(base)}" for _, _, method, url, _ in place.requests]
        seen |= together(trial, realms["shared"], before["shared"])
    token = "POST /as/keyless/token"
    seen["codex.refresh.discovery"] = asked[: asked.index(token) + 1] if token in asked else None
    seen["codex.refresh.used"] = used[: used.index("POST /used") + 1] if "POST /used" in used else None
    sent = realms["right"].authorization.received("token")
    seen["codex.refresh.request"] = {
        field: value.replace(base, "") if field == "resource" else "..." if field == "refresh_token" else value
        for field, value in sorted(sent[0].fields.items())
    } if sent else None  # fmt: skip
    return seen


def by_issuer(trial: Trial, realms: Mapping[str, Realm], before: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """One start of the servers whose issuers differ, beside an entry that nothing happens to."""
    names = [*ISSUERS, "wrong-unexpired"]
    write(trial, {name: before[name] for name in names})
    store = trial.read_json(STORE)
    bystander = entry("bystander", "https://one.example.com/mcp", client_id="another", more="kept")
    trial.write_json(STORE, {**store, "a-bystander": bystander}, mode=0o600)
    told = statuses(trial, *names)
    store = trial.read_json(STORE)
    seen: dict[str, Any] = {}
    seen |= {f"codex.issuer.{name}": outcome(trial, told[name], realms[name], before[name], store) for name in names}
    kept = {key: each for key, each in store.items() if each["server_name"] == "bystander"}
    seen["codex.refresh.neighbours"] = {
        key: {field: value for field, value in bystander.items() if each.get(field) != value}
        for key, each in kept.items()
    }
    seen["codex.refresh.mode"] = oct(trial.place(STORE).stat().st_mode & 0o777)
    return seen


def again(trial: Trial, one: Realm, before: dict[str, Any]) -> dict[str, Any]:
    """Two starts with a refresh token that is refused."""
    write(trial, {"refused": before})
    calls: list[int] = []
    for _ in range(2):
        statuses(trial, "refused")
        calls.append(one.token_calls)
    listed = json.loads(trial.run("mcp", "list", "--json").stdout or "[]")
    return {"codex.refresh.again": [calls, listed[0]["auth_status"]]}


def keyless(trial: Trial, before: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """A start with an expired token under a key of no meaning."""
    write(trial, {"keyless": before["keyless"]})
    right = next(iter(trial.read_json(STORE)))
    trial.write_json(STORE, {"a-key": before["keyless"]}, mode=0o600)
    statuses(trial, "keyless")
    store = trial.read_json(STORE)
    changed = {key: each["access_token"] != before["keyless"]["access_token"] for key, each in store.items()}
    return {"codex.refresh.wrong-key": {"right" if key == right else key: new for key, new in changed.items()}}


def together(trial: Trial, one: Realm, before: dict[str, Any]) -> dict[str, Any]:
    """Three processes, which are told to start their servers in one moment."""
    write(trial, {"shared": before})
    with ExitStack() as all_talks:
        talks = [all_talks.enter_context(talking(trial)) for _ in range(3)]
        for talk in talks:
            talk.introduce()
        for talk in talks:
            talk.ask_later("thread/start", {"cwd": str(trial.project)})
        told = [talk.settle("shared")["shared"] for talk in talks]
    return {"codex.refresh.locks": [one.token_calls, sum(each.status == "ready" for each in told)]}


class RefusesOnce(NamedTuple):
    """A server that takes a token for everything but a call: who calls with it is told to bring another."""

    server: HttpServer
    authorization: AuthorizationServer

    def handle(self, request: Request, now: float, who: str) -> Response:
        """End the token at the first call, before the server is asked."""
        token = bearer(request)
        if b"tools/call" in request.body and len(self.authorization.tokens) == 1 and token:
            self.authorization.revoke_access(token)
            return Response(401, {"WWW-Authenticate": default_challenge(request.url)})
        return self.server.handle(request, now, who)


@probe(
    *(
        Claim(
            f"codex.refresh.{name}",
            f"a token that is refused at a call, {says}: how the call ends, and how often a token is asked for",
            affects="remote entries with a stored credential",
            reads=("renews_refused",) if name == "call-issuer" else (),
            derive={"renews_refused": lambda seen: seen[-1] == 1} if name == "call-issuer" else {},
            parts=("how the call ends", "how often a token is asked for"),
        )
        for name, says in (("call", "stored without its issuer"), ("call-issuer", "stored with its issuer"))
    ),
    seconds=2.0,
)
def refused_calls(trial: Trial) -> Mapping[str, Any]:
    """One run for each."""
    seen: dict[str, Any] = {}
    for name in ("call", "call-issuer"):
        authorization = AuthorizationServer(f"/as/{name}")
        server = RefusesOnce(HttpServer(), authorization)
        one = Realm(authorization, Protected(server, authorization, Resource(f"/{name}")))
        script = Script((Turn(calls=(Call(name, "echo"),)), Turn(text="done")))
        with trial.serving(site=site({name: one})) as urls, trial.modelled(script):
            base = urls["site"].removesuffix("/mcp")
            issuer = f"/as/{name}" if name == "call-issuer" else ""
            before = stored(name, base, one, Case("", 3_600_000), issuer)
            write(trial, {name: before}, **FULL_ACCESS)
            configure(trial, {name: {"url": before["server_url"], "required": True}}, **FULL_ACCESS)
            items = [line.get("item", {}) for line in executed(trial).lines if line.get("type") == "item.completed"]
        calls = [item for item in items if item.get("type") == "mcp_tool_call"]
        ends = [[item["status"], words_of(trial, item)] for item in calls]
        seen[f"codex.refresh.{name}"] = [*ends, one.token_calls]
    return seen


def words_of(trial: Trial, item: Mapping[str, Any]) -> str:
    """What a call's item says, without the types of the program's transport."""
    error, result = item.get("error") or {}, item.get("result") or {}
    told = error.get("message") or " ".join(each.get("text", "") for each in result.get("content", ()))
    return re.sub(r"Transport \[.*\]", "Transport [..]", trial.normal(told))
