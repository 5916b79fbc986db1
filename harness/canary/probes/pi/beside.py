"""What a session of Pi makes of a credential that another program has renewed in the keyring meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.canary.claims import Claim, probe
from harness.canary.probes.pi.ground import CACHE, configure, credential, hand_in, results, session
from harness.canary.probes.pi.keyring import Keyring, keyring
from harness.canary.probes.pi.refresh import CLIENT, REDIRECTS, Case, Place, place_of
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial

FIRST, OTHER, RENEWED, NONE = "first", "other", "renewed", "none"


class Renewal(NamedTuple):
    """A renewal by another program: whether what was handed in named its issuer, and whether it had read the key."""

    says: str
    assumes: Mapping[str, Any]
    stamped: bool = True
    has_read: bool = True


CASES: Mapping[str, Renewal] = {
    "stamped": Renewal(
        "a session whose credential names its issuer spends its dead refresh token, then the new one, and goes on",
        {"spent": [FIRST, OTHER], "told": ["ok", "ok"], "held": RENEWED},
    ),
    "unstamped": Renewal(
        "one whose credential does not notes the issuer in what it remembers: the new pair is lost",
        {"spent": [FIRST], "told": ["ok", "re-authentication"], "held": FIRST},
        stamped=False,
    ),
    "unread": Renewal(
        "a key of a program that had not read the old one is replaced by that as soon as the session reads it again",
        {"spent": [FIRST], "told": ["ok", "re-authentication"], "held": FIRST},
        has_read=False,
    ),
}


class Overtaken:
    """A server behind whose first call another program renews: the pair of the session is dead from then on."""

    def __init__(self, place: Place, case: Renewal, store: Keyring, name: str) -> None:
        self.place, self.case, self.store, self.name = place, case, store, name
        self.url, self.pair = "", ("", "")
        self.tokens: dict[str, str] = {}

    def handle(self, request: Any, now: float, who: str) -> Any:
        """Answer; the first call, then renew."""
        response = self.place.site.handle(request, now, who)
        if b"tools/call" in request.body and OTHER not in self.tokens.values():
            self.place.authorization.revoke_family(self.pair[1])
            self.store.write(self.name, json.dumps(self.entry(OTHER, stamped=True)), has_read=self.case.has_read)
        return response

    def entry(self, word: str, *, stamped: bool) -> dict[str, Any]:
        """A pair that is good, under that word from then on."""
        authorization, issuer = self.place.authorization, {"issuer": self.url.removesuffix("/mcp")} if stamped else {}
        self.pair = access, refresh = authorization.issue(CLIENT, "read", 3600, resource=self.url, now=time.time())
        self.tokens |= {access: word, refresh: word}
        tokens = {"accessToken": access, "refreshToken": refresh, "scope": "read", **issuer}
        client = {"clientId": CLIENT, "redirectUris": REDIRECTS, **issuer}
        return credential(self.url, access, tokens=tokens, clientInfo=client)

    def spent(self) -> list[str]:
        """The refresh tokens that came, in order."""
        asked = [each.fields for each in self.place.authorization.requests if each.endpoint == "token"]
        return [self.tokens.get(str(fields.get("refresh_token")), RENEWED) for fields in asked]

    def held(self) -> str:
        """Whose pair anybody else finds in the keyring."""
        entry = json.loads(self.store.read(self.name) or "null") or {}
        token = entry.get("tokens", {}).get("refreshToken")
        return NONE if token is None else self.tokens.get(token, RENEWED)


@probe(
    *(
        Claim(
            f"pi.beside.{name}",
            f"{case.says}: which refresh tokens it spends, what the model reads, what is in the keyring in the end",
            "seed 002",
            assumes=case.assumes,
            relied_on=("writers-pi-two-way", "reconcile-pi-process-cache-modelled"),
            affects="credentials that are renewed while a session of Pi runs",
        )
        for name, case in CASES.items()
    ),
    seconds=6.0,
)
def overtaken_sessions(trial: Trial) -> Mapping[str, Any]:
    """A session for each case, with two calls."""
    names = {name: f"canary-{name}" for name in CASES}
    found: dict[str, Any] = {}
    with keyring(trial) as store:
        for case_name, case in CASES.items():
            name = names[case_name]
            behind = Overtaken(place_of(Case("")), case, store, name)
            turn = Turn((Call("", "mcp", {"server": name, "tool": "echo"}),))
            with trial.serving(one=behind) as urls, trial.modelled(Script((turn, turn, Turn(text="done")))):
                behind.url = urls["one"]
                configure(trial, {name: {"url": behind.url}})
                hand_in(trial, name, behind.entry(FIRST, stamped=case.stamped))
                trial.place(CACHE).unlink(missing_ok=True)
                run = session(trial)
            texts = [str(each["text"]) for each in results(run)]
            found[f"pi.beside.{case_name}"] = {
                "spent": behind.spent(),
                "told": ["re-authentication" if "Re-authentication required" in text else text for text in texts],
                "held": behind.held(),
            }
    return found
