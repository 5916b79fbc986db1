"""When and how Pi's adapter renews a token by itself, and what it makes of a renewal that fails."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.http import HttpServer
from fake_servers.oauth import AuthorizationServer, Protected, Provider, Resource, Site
from harness.canary.claims import Claim, probe
from harness.canary.probes.pi.ground import CACHE, configure, credential, hand_in, results, session, told_of
from harness.canary.probes.pi.keyring import keyring
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial

CLIENT = "a-client"
REDIRECTS = ["http://localhost:19876/callback"]


class Case(NamedTuple):
    """A stored credential whose access token its server refuses, unless it is `valid`.

    `client` is what is known of the client, `answers` what the token endpoint is scripted to give, `entry` what the
    configuration says besides. `assumes` is what the token endpoint sees, by grant and generation, and its client.
    """

    says: str
    client: Mapping[str, Any] | None = {"clientId": CLIENT, "redirectUris": REDIRECTS}
    tokens: Mapping[str, Any] = {}
    valid: bool = False
    dead: bool = False
    answers: tuple[str, ...] = ()
    entry: Mapping[str, Any] = {}
    absent: tuple[str, ...] = ()
    stored: bool = True
    relied_on: tuple[str, ...] = ()


CASES: Mapping[str, Case] = {
    "valid": Case("a token that has expired by its own time is borne as long as the server takes it", valid=True,
                  tokens={"expiresAt": 1_600_000_000}),
    "refused": Case("a token that the server refuses is renewed, by the client of the credential",
                    relied_on=("writers-pi-rotates-like-claude",)),
    "stub": Case("a client without redirect URIs counts as none: another one is registered, and renews",
                 client={"clientId": CLIENT}, relied_on=("writers-pi-entry",)),
    "no-client": Case("so it is without any client", client=None, relied_on=("writers-pi-entry",)),
    "configured": Case("a client of the configuration goes before that of the credential", client=None,
                       entry={"oauth": {"clientId": CLIENT}}),
    "secret": Case("a client with a secret authenticates", client={"clientId": CLIENT, "clientSecret": "s",
                                                                    "redirectUris": REDIRECTS}),
    "no-refresh": Case("without a refresh token nothing is renewed", tokens={"refreshToken": None}),
    "dead": Case("a refresh token that is refused", dead=True),
    "429": Case("a token endpoint that answers 429", answers=("429",)),
    "500": Case("a token endpoint that answers 500 with a page", answers=("500-html",)),
    "503": Case("a token endpoint that answers 503 with a page", answers=("503-html",)),
    "dropped": Case("an answer of the token endpoint that is lost", answers=("drop-after",)),
    "no-rotation": Case("an answer without a refresh token keeps the old one", answers=("ok-without-refresh",)),
    "unread-page": Case("an answer that is a page", answers=("200-html",)),
    "unread-cut": Case("an answer that is cut off", answers=("ok-truncated",)),
    "unread-empty": Case("an empty answer", answers=("200-empty",)),
    "unread-list": Case("an answer that is a list", answers=("200-list",)),
    "unread-no-token": Case("an answer without an access token", answers=("ok-access-absent",)),
    "unread-no-type": Case("an answer without a token type", answers=("ok-type-absent",)),
    "unread-time": Case("an answer with words for its time", answers=("ok-expires-words",)),
    "no-time": Case("an answer with null for its time", answers=("ok-expires-unsaid",)),
    "other-issuer": Case("a credential of another issuer", tokens={"issuer": "https://other.test"}),
    "same-issuer": Case("a credential that says its issuer", tokens={"issuer": "ISSUER"}),
    "nothing": Case("a server that wants a token and nothing stored: a client is registered, no human asked",
                    stored=False, relied_on=("writers-pi-unattended",)),
    "no-registration": Case("the same where no client can be registered", stored=False, absent=("register",)),
}  # fmt: skip


class Place(NamedTuple):
    """A server behind its own authorization server."""

    authorization: AuthorizationServer
    site: Site


def place_of(case: Case) -> Place:
    """Both at one origin."""
    authorization = AuthorizationServer("", Provider(absent=case.absent), token_answers=case.answers)
    protected = Protected(HttpServer(), authorization, Resource("/mcp"))
    return Place(authorization, Site(authorization, protected))


def staged(case: Case, place: Place, url: str) -> dict[str, Any]:
    """The credential as it is handed in."""
    issuer = url.removesuffix("/mcp")
    access, refresh = place.authorization.issue(CLIENT, "read", 3600, resource=url, now=time.time())
    if not case.valid:
        place.authorization.revoke_access(access)
    if case.dead:
        place.authorization.revoke_family(refresh)
    tokens = {"accessToken": access, "refreshToken": refresh, "scope": "read", **case.tokens}
    whole = {key: value for key, value in tokens.items() if value is not None}
    text = json.dumps(credential(url, access, tokens=whole, clientInfo=case.client))
    entry: dict[str, Any] = json.loads(text.replace("ISSUER", issuer))
    return entry


def endpoint_requests(place: Place) -> list[Any]:
    """What the authorization server was asked, metadata aside: the endpoint, the fields, and how it went."""
    found: list[Any] = []
    for each in place.authorization.requests:
        if each.endpoint in ("token", "register", "authorize"):
            fields = sorted(name for name in each.fields) if each.endpoint == "token" else []
            found.append([each.endpoint, whose(each), fields])
    return found


def whose(received: Any) -> str:
    """The client that asked, in a word."""
    if received.endpoint == "register":
        return "registers"
    client = received.client_id or ""
    return "known client" if client == CLIENT else "registered client" if client else "no client"


@probe(
    *(
        Claim(
            f"pi.refresh.{name}",
            f"{case.says}: what the authorization server is asked, in this session and the next, and what is told",
            "seed 002",
            relied_on=case.relied_on,
            affects="every server with OAuth",
        )
        for name, case in CASES.items()
    ),
    Claim(
        "pi.refresh.wire",
        "which requests a renewal is made of, in order",
        affects="every server with OAuth",
    ),
    Claim(
        "pi.refresh.stored",
        "after a renewal the keyring holds the new pair, with its time in seconds and its issuer",
        "seed 002",
        assumes=lambda seen: bool(seen) and seen["new"] and seen["expiresAt"] == "in an hour",
        relied_on=("writers-pi-two-way", "writers-pi-rotates-like-claude", "reconcile-pi-types-checked"),
        affects="every server with OAuth",
    ),
    seconds=8.0,
    limit_seconds=90.0,
)
def renewals(trial: Trial) -> Mapping[str, Any]:
    """All cases in two sessions after each other; the second shows what was kept."""
    names = {name: f"canary-{name}" for name in CASES}
    places = {name: place_of(case) for name, case in CASES.items()}
    seen: dict[str, list[Any]] = {name: [] for name in CASES}
    with (
        keyring(trial) as store,
        trial.serving(**{name.replace("-", "_"): place.site for name, place in places.items()}) as urls,
        trial.modelled(),
    ):
        url = {name: urls[name.replace("-", "_")] for name in CASES}
        configure(trial, {names[name]: {"url": url[name], **case.entry} for name, case in CASES.items()})
        for name, case in CASES.items():
            if case.stored:
                hand_in(trial, names[name], staged(case, places[name], url[name]))
        for _ in range(2):
            trial.place(CACHE).unlink(missing_ok=True)
            before = {name: len(endpoint_requests(place)) for name, place in places.items()}
            run = session(trial, env={"BROWSER": "true"})
            for name, place in places.items():
                line = told_of(trial, run, names[name])
                said = None if line is None else line.replace(names[name], "NAME")
                seen[name].append([endpoint_requests(place)[before[name] :], said])
        kept = json.loads(store.read(names["refused"]) or "null")
        wire = [f"{method} {where(asked)} {status}" for _, _, method, asked, status in places["refused"].site.requests]
    first = places["refused"].authorization.tokens
    return {
        **{f"pi.refresh.{name}": each for name, each in seen.items()},
        "pi.refresh.wire": wire[: wire.index("POST /mcp 200") + 1] if "POST /mcp 200" in wire else wire,
        "pi.refresh.stored": stored_shape(kept, [each.access for each in first[1:]]),
    }


def where(url: str) -> str:
    """The path of a URL."""
    return "/" + url.partition("://")[2].partition("/")[2]


def stored_shape(entry: Any, renewed: Iterable[str]) -> Mapping[str, Any]:
    """What there is to say of a stored entry without its secrets."""
    if not entry or "tokens" not in entry:
        return {"new": False, "expiresAt": None}
    tokens, client = entry["tokens"], entry.get("clientInfo", {})
    left = tokens.get("expiresAt", 0) - time.time()
    return {
        "new": tokens.get("accessToken") in set(renewed),
        "expiresAt": "in an hour" if 3000 < left < 3700 else "otherwise",
        "members": sorted(tokens),
        "client": sorted(client),
    }


@probe(
    Claim(
        "pi.refresh.in-session",
        "a token that is refused in the middle of a session is renewed, and the call made again",
        assumes=["ok", "ok"],
        relied_on=("writers-pi-rotates-like-claude",),
        affects="every server with OAuth",
    ),
    Claim(
        "pi.refresh.in-session-dead",
        "what the model reads when that fails",
        affects="every server with OAuth",
    ),
    seconds=4.0,
)
def mid_session(trial: Trial) -> Mapping[str, Any]:
    """Two servers that refuse their tokens after the first call, one with a dead refresh token."""
    places = {"good": place_of(Case("")), "dead": place_of(Case(""))}
    calls = [("good", "echo"), ("dead", "echo"), ("good", "echo"), ("dead", "echo")]
    turns = [Turn((Call("", "mcp", {"server": server, "tool": tool}),)) for server, tool in calls]
    with trial.serving(**{name: Revoking(place, name) for name, place in places.items()}) as urls:
        configure(trial, {name: {"url": urls[name]} for name in places})
        for name, place in places.items():
            hand_in(trial, name, staged(Case("", valid=True), place, urls[name]))
        with trial.modelled(Script((*turns, Turn(text="done")))):
            run = session(trial)
    told = [each["text"].partition("\n")[0] for each in results(run)]
    return {"pi.refresh.in-session": told[::2], "pi.refresh.in-session-dead": told[1::2]}


class Revoking:
    """A place that ends the access token with the first call, and for the dead one the whole family."""

    def __init__(self, place: Place, name: str) -> None:
        self.place, self.name, self.done = place, name, False

    def handle(self, request: Any, now: float, who: str) -> Any:
        """Answer, then revoke."""
        response = self.place.site.handle(request, now, who)
        if b"tools/call" in request.body and not self.done:
            self.done = True
            authorization = self.place.authorization
            given = authorization.tokens[0]
            if self.name == "dead":
                authorization.revoke_family(given.access)
            else:
                authorization.revoke_access(given.access)
        return response
