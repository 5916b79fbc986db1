"""The authorization servers of a scenario: made from its tables, changed by its steps, asked by its judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fake_servers.oauth import Answer, AuthorizationServer, Client, Provider
from fake_servers.oauth.profiles import profile_named, typed
from fake_servers.oauth.provider import require_known
from harness.scenario.model import AuthorizationFacts, Credential, Scenario

WELL_BEHAVED = "well-behaved"
CLIENT = "a-client"
"""Whose tokens a credential holds that is there before the run."""


class Authorizations:
    """Those of one run, by name. They remember what they received and gave out, so a run has its own.

    `revoked` are the chains that a step has ended: the server's name and the number of the family.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.servers = {name: made(facts) for name, facts in scenario.authorizations.items()}
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

    def change(
        self, name: str, facts: Mapping[str, Any], answers: Mapping[str, Any], always: Mapping[str, Any]
    ) -> None:
        """An authorization server is another one from now on."""
        server = self.servers[name]
        server.provider = changed(server.provider, facts)
        for endpoint, each in answers.items():
            server.answer_next(endpoint, *map(answer, each))
        for endpoint, each in always.items():
            server.answer_always(endpoint, answer(each))

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
