"""The authorization servers of a scenario: made from its tables, changed by its steps, asked by its judges."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fake_servers.oauth import Answer, AuthorizationServer, Client, Provider
from fake_servers.oauth.authorization import METHODS
from fake_servers.oauth.profiles import profile_named, typed
from fake_servers.oauth.provider import require_known
from harness.scenario.model import AuthorizationFacts, Credential, Provide, Scenario

WELL_BEHAVED = "well-behaved"
CLIENT = "a-client"
"""Whose tokens a credential holds that is there before the run."""


class Scripted(NamedTuple):
    """An answer that a scenario has scripted for an endpoint: for one request, or (`goes_on`) for all from then on.

    `says` tells which and where it is written, `since` how many requests the endpoint had answered by then.
    """

    server: str
    endpoint: str
    says: str
    since: int = 0
    goes_on: bool = False


class Authorizations:
    """Those of one run, by name. They remember what they received and gave out, so a run has its own.

    `revoked` are the chains that a step has ended: the server's name and the number of the family. `scripted` are the
    answers that have to come into play.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.servers = {name: made(facts) for name, facts in scenario.authorizations.items()}
        self.scripted: list[Scripted] = []
        for name, facts in scenario.authorizations.items():
            self._note(name, facts, f"[authorization.{name}]")
        self.issued: dict[str, tuple[str, str]] = {}
        self.revoked: list[tuple[str, int]] = []

    def issue(self, credential: Credential, resource: str, now: float) -> Credential:
        """The credential with tokens in it, where an authorization server has to issue them."""
        if credential.issued_by is None:
            return credential
        if credential.server not in self.issued:
            server = self.servers[credential.issued_by]
            scope = " ".join(server.provider.scopes)
            self.issued[credential.server] = server.issue(
                CLIENT, scope, credential.expires_in_seconds, resource=resource, now=now
            )
        access, refresh = self.issued[credential.server]
        return credential._replace(access_token=access, refresh_token=refresh or None)

    def change(self, change: Provide, place: str) -> None:
        """An authorization server is another one from now on; `place` says where that is written."""
        server = self.servers[change.authorization]
        self._note(change.authorization, change, place)
        server.provider = changed(server.provider, change.set)
        for endpoint, each in change.answers.items():
            server.answer_next(endpoint, *map(answer, each))
        for endpoint, each in change.always.items():
            server.answer_always(endpoint, answer(each))

    def _note(self, name: str, facts: AuthorizationFacts | Provide, place: str) -> None:
        """What has to come into play from now on. Drawn answers are kept too: they come before later ones."""
        for endpoint, answers in facts.answers.items():
            since = answered(self.servers[name], endpoint)
            for number, each in enumerate(answers, 1):
                says = "" if facts.drawn else f"answer {number} to {endpoint} of {place} ({worded(each)})"
                self.scripted.append(Scripted(name, endpoint, says, since))
        for endpoint, each in facts.always.items():
            since = answered(self.servers[name], endpoint)
            says = "" if facts.drawn else f"what {place} always answers to {endpoint} ({worded(each)})"
            self.scripted.append(Scripted(name, endpoint, says, since, goes_on=True))

    def unmet(self) -> Iterator[str]:
        """The scripted answers that no request has met, and that are not drawn: a line for each."""
        for name, endpoint in dict.fromkeys((each.server, each.endpoint) for each in self.scripted):
            scripted = [each for each in self.scripted if (each.server, each.endpoint) == (name, endpoint)]
            met = taken(scripted, answered(self.servers[name], endpoint))
            yield from (f"{each.says} was met by no request" for each in scripted if each.says and each not in met)

    def revoke(self, name: str, tokens: Sequence[str]) -> bool:
        """End all that came of the grants of these access tokens; False where none is that server's."""
        server = self.servers[name]
        known = [(token, found.family) for token in tokens if (found := server.generation(token)) is not None]
        for token, family in known:
            server.revoke_family(token)
            self.revoked.append((name, family))
        return bool(known)

    def secrets(self) -> list[tuple[str, str]]:
        """Everything that was given out, and may stand nowhere but where it is kept: what it is, and its value."""
        found: list[tuple[str, str]] = []
        for name, server in self.servers.items():
            for tokens in server.tokens:
                found.append((f"an access token of {name}", tokens.access))
                found += [(f"a refresh token of {name}", tokens.refresh)] if tokens.refresh else []
            found += [(f"a code of {name}", code) for code in server.codes]
            found += [(f"a client secret of {name}", each.secret) for each in server.clients.values() if each.secret]
            found += [
                (f"a code verifier sent to {name}", str(each.fields["code_verifier"]))
                for each in server.requests
                if each.fields.get("code_verifier")
            ]
        return found


def answered(server: AuthorizationServer, endpoint: str) -> int:
    """How many requests to an endpoint have used up what is scripted for it: a wrong method does not."""
    return sum(each.endpoint == endpoint and each.method in METHODS[endpoint] for each in server.requests)


def taken(scripted: Iterable[Scripted], requests: int) -> set[Scripted]:
    """Which of the answers for one endpoint so many requests have met."""
    coming, waiting, met = deque(scripted), deque[Scripted](), set[Scripted]()
    going_on: Scripted | None = None
    for number in range(requests):
        while coming and coming[0].since <= number:
            each = coming.popleft()
            if each.goes_on:
                going_on = each
            else:
                waiting.append(each)
        now = waiting.popleft() if waiting else going_on
        met |= set() if now is None else {now}
    return met


def worded(given: str | Mapping[str, Any]) -> str:
    """A scripted answer in a few words: its name, or what it says otherwise."""
    if isinstance(given, str):
        return given
    shown = (key for key in given if key not in ("body", "headers"))
    return ", ".join(f"{key} = {toml(given[key])}" for key in shown) or ", ".join(given) or "ok"


def changes(change: Provide) -> str:
    """What an authorization server changes to, in words."""
    parts = [f"{fact} = {toml(value)}" for fact, value in change.set.items()]
    for endpoint, each in change.answers.items():
        number = f"the next {len(each)} requests" if len(each) > 1 else "the next request"
        parts.append(f"answers {number} to {endpoint} with {', '.join(map(worded, each))}")
    parts += [f"answers {endpoint} with {worded(each)} from now on" for endpoint, each in change.always.items()]
    return "; ".join(parts)


def toml(value: Any) -> str:
    """A value nearly as a scenario file writes it."""
    return json.dumps(value, ensure_ascii=False, default=str)


def made(facts: AuthorizationFacts) -> AuthorizationServer:
    """One authorization server. Raises ValueError that says which fact cannot be."""
    profile = profile_named(facts.provider)
    server = AuthorizationServer(
        facts.issuer,
        changed(profile.provider, facts.set),
        clients=(*profile.clients, *map(client, facts.clients)),
        name=facts.name,
    )
    for endpoint, answers in facts.answers.items():
        server.answer_next(endpoint, *map(answer, answers))
    for endpoint, each in facts.always.items():
        server.answer_always(endpoint, answer(each))
    return server


def changed(provider: Provider, facts: Mapping[str, Any]) -> Provider:
    """A provider with other facts; those that are tables are added to. Raises ValueError."""
    if not facts:
        return provider
    merged: dict[str, Any] = {}
    for field, value in facts.items():
        given = typed(value, Provider._field_defaults, field, "a provider")
        before = getattr(provider, field)
        merged[field] = {**before, **given} if isinstance(before, Mapping) else given
    other = provider._replace(**merged)
    require_known(other)
    return other


def answer(given: str | Mapping[str, Any]) -> str | Answer:
    """A scripted answer: a name, or a table of its facts."""
    if isinstance(given, str):
        return given
    return Answer(**{**given, "omits": tuple(given.get("omits", ()))})


def client(table: Mapping[str, Any]) -> Client:
    """A client that is registered already."""
    secret = table.get("secret")
    method = table.get("auth_method", "none" if secret is None else "client_secret_post")
    return Client(table["client_id"], secret, tuple(table.get("redirect_uris", ())), method)
