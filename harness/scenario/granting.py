"""The tables of a scenario file that tell of authorization: its servers, who is behind them, which credentials are
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fake_servers.oauth.answers import ANSWERS
from fake_servers.oauth.authorization import METHODS
from fake_servers.oauth.profiles import profile_names, typed
from fake_servers.oauth.provider import STATUSES, Provider, require_items
from fake_servers.oauth.resource import CHALLENGES, LOCATIONS, Resource
from harness.scenario import model
from harness.scenario.addresses import check_address
from harness.scenario.authorization import WELL_BEHAVED, made
from harness.scenario.document import Document
from harness.scenario.facts import STDIO
from harness.scenario.hints import nearest
from harness.scenario.positions import Path
from harness.scenario.vocabulary import Vocabulary

NOT_OF_THE_SERVER = ("protected_by", "resource")
"""Keys of a server's table that its stand-in does not know of."""
TOKEN = "token"
"""The endpoint that grants something."""
ADDRESSES = ("authorization_endpoint", "token_endpoint", "redirect_uri")
"""The keys of a client registered by hand that are URLs: any, as long as they are ones."""
OMITTED = ("refresh_token", "expires_in")
"""The fields that can be left out of what is granted: a client can do without them."""
WITH_STATUS = ("body", "content_type", "processed")
"""Keys of an answer that say something of what stands in for the rules' own."""


def read_authorization(document: Document, name: str, table: Mapping[str, Any]) -> model.AuthorizationFacts:
    """One `[authorization.NAME]`. Raises UserInputError where no provider can be so."""
    path = ("authorization", name)
    provider = table.get("provider", WELL_BEHAVED)
    if provider not in profile_names():
        what = f"no provider is called {provider!r}"
        document.fail((*path, "provider"), what, nearest(provider, profile_names()))
    check_changed(document, table, path)
    issuer = table.get("issuer", f"https://{name}.test")
    check_address(document, issuer, (*path, "issuer"), f"the issuer of [authorization.{name}]")
    for client in table.get("clients", ()):
        for uri in client.get("redirect_uris", ()):
            check_address(document, uri, (*path, "clients"), f"a redirect URI of {client['client_id']}", ())
    facts = model.AuthorizationFacts(
        name,
        issuer,
        provider,
        table.get("set", {}),
        {endpoint: tuple(each) for endpoint, each in table.get("answers", {}).items()},
        table.get("always", {}),
        tuple(table.get("clients", ())),
        table.get("drawn", False),
    )
    try:
        made(facts)
    except ValueError as error:
        document.fail(path, f"[authorization.{name}] {error}")
    return facts


def check_change(document: Document, facts: model.AuthorizationFacts, change: model.Provide, path: Path) -> None:
    """A step that makes an authorization server another one. Raises UserInputError where none can be so."""
    check_changed(document, document.tree["step"][path[1]], path)
    try:
        made(facts._replace(set={**facts.set, **change.set}, answers=change.answers, always=change.always))
    except ValueError as error:
        document.fail((*path, "provider"), f"[[step]] {int(path[1]) + 1} provider: {error}")


def check_changed(document: Document, table: Mapping[str, Any], path: Path) -> None:
    """What `set`, `answers` and `always` name is there. Raises UserInputError."""
    for fact in table.get("set", {}):
        if fact not in Provider._fields:
            document.fail((*path, "set"), f"a provider has no {fact!r}", nearest(fact, Provider._fields))
    for key in ("answers", "always"):
        for endpoint, given in table.get(key, {}).items():
            if endpoint not in METHODS:
                document.fail((*path, key), f"no endpoint is called {endpoint!r}", nearest(endpoint, METHODS))
            for each in given if isinstance(given, list) else [given]:
                check_answer(document, endpoint, each, (*path, key))


def check_answer(document: Document, endpoint: str, given: str | Mapping[str, Any], path: Path) -> None:
    """A scripted answer that there is, all of whose keys have an effect. Raises UserInputError."""
    if isinstance(given, str):
        if given not in ANSWERS:
            document.fail(path, f"no answer is called {given!r}", nearest(given, ANSWERS))
        return
    for field in given.get("omits", ()):
        if endpoint != TOKEN or field not in OMITTED:
            what = f"an answer to {endpoint} omits no {field!r}"
            fix = nearest(field, OMITTED) if endpoint == TOKEN else "Only tokens are granted without a field."
            document.fail(path, what, fix)
    if "status" not in given:
        lonely = next((key for key in WITH_STATUS if key in given), None)
        if lonely is not None and not (lonely == "processed" and "drops" in given):
            document.fail(path, f"`{lonely}` of an answer has no effect without `status`", "Add status = ...")
    elif "omits" in given and not given.get("processed"):
        what = "`omits` of an answer has no effect beside `status`, which stands in for what is granted"
        document.fail(path, what, "Take one of them away.")


def read_protections(
    document: Document, names: Vocabulary, servers: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, model.Protection]]:
    """Which servers are behind an authorization server. Raises UserInputError."""
    for name, table in servers.items():
        place = ("server", name, "protected_by")
        if "protected_by" in table:
            if names.transports.get(name) == STDIO:
                what = f"[server.{name}] is a process: nobody signs in to it, so `protected_by` has no effect"
                document.fail(place, what, "Take it away, or give the entry a url.")
            if "requires_bearer" in table:
                what = f"[server.{name}] has both `protected_by` and `requires_bearer`"
                document.fail(place, what, "Keep one of them.")
            by = names.authorization(table["protected_by"], place)
            check_resource(document, table.get("resource", {}), ("server", name, "resource"))
            yield name, model.Protection(by, table.get("resource", {}))
        elif "resource" in table:
            document.fail(("server", name, "resource"), f"[server.{name}] is not protected", "Add protected_by.")


def check_resource(document: Document, table: Mapping[str, Any], path: Path) -> None:
    """What a protected server says of itself can be said. Raises UserInputError."""
    told: dict[str, Any] = {}
    for key, value in table.items():
        if key not in Resource._fields:
            document.fail(path, f"a protected server says no {key!r} of itself", nearest(key, Resource._fields))
        try:
            told[key] = typed(value, Resource._field_defaults, key, "a protected server")
        except ValueError as error:
            document.fail((*path, key), str(error))
    resource = Resource(**told)
    try:
        require_items(resource)
    except ValueError as error:
        document.fail(path, f"a protected server: {error}")
    if resource.status not in STATUSES:
        what = f"a protected server refuses with a status from {STATUSES[0]} to {STATUSES[-1]}, not {resource.status}"
        document.fail((*path, "status"), what)
    for place in resource.metadata_at:
        if place not in LOCATIONS and not place.startswith("/"):
            what = f"`metadata_at` may hold {', '.join(LOCATIONS)} or a path, not {place!r}"
            document.fail((*path, "metadata_at"), what)
    if "url" in table:
        check_address(document, str(table["url"]), (*path, "url"), "the resource's `url`", ())
    challenge = table.get("challenge", CHALLENGES[0])
    if challenge not in CHALLENGES:
        document.fail(path, f"no challenge is called {challenge!r}", nearest(challenge, CHALLENGES))


def read_credential(document: Document, names: Vocabulary, index: int, table: Mapping[str, Any]) -> model.Credential:
    """One `[[credential]]`: with a token of its own, or with those of an authorization server. Raises
    UserInputError.
    """
    path = ("credential", index)
    names.server(table["server"], path)
    if names.transports.get(table["server"]) == STDIO:
        what = f"{table['server']} is a process: nobody signs in to it, so it has no credential"
        document.fail((*path, "server"), what, "Take the table away, or give the entry a url.")
    if ("access_token" in table) == ("issued_by" in table):
        what = f"[[credential]] {index + 1} needs one of access_token and issued_by"
        document.fail(path, what, "Name the token, or who issues it.")
    if "issued_by" in table:
        names.authorization(table["issued_by"], (*path, "issued_by"))
        if "refresh_token" in table:
            what = "who issues the tokens issues the refresh token too"
            document.fail((*path, "refresh_token"), what, "Take it away.")
    return model.Credential(**{**table, "held_by": tuple(table.get("held_by", model.HOLDERS))})


def check_names(document: Document, names: Vocabulary, tree: Mapping[str, Any]) -> None:
    """Servers and authorization servers can be told apart; a client by hand is some server's. Raises
    UserInputError.
    """
    for name, table in tree.get("registered", {}).items():
        names.server(name, ("registered", name))
        for key in ADDRESSES:
            if key in table:
                check_address(document, table[key], ("registered", name, key), f"[registered.{name}] `{key}`", ())
        if names.transports.get(name) == STDIO:
            what = f"{name} is a process: nobody signs in to it, so no client is registered for it"
            document.fail(("registered", name), what, "Take the table away, or give the entry a url.")
    for name in tree.get("authorization", {}):
        if name in names.servers:
            what = f"{name} is a server's name already"
            document.fail(("authorization", name), what, "Call the authorization server otherwise.")
