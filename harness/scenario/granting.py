"""The tables of a scenario file that tell of authorization: its servers, who is behind them, which credentials are
there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.scenario import model
from harness.scenario.authorization import WELL_BEHAVED, made
from harness.scenario.document import Document
from harness.scenario.positions import Path
from harness.scenario.vocabulary import Vocabulary

NOT_OF_THE_SERVER = ("protected_by", "resource")
"""Keys of a server's table that its stand-in does not know of."""


def read_authorization(document: Document, name: str, table: Mapping[str, Any]) -> model.AuthorizationFacts:
    """One `[authorization.NAME]`. Raises UserInputError where no provider can be so."""
    facts = model.AuthorizationFacts(
        name,
        table.get("issuer", f"https://{name}.test"),
        table.get("provider", WELL_BEHAVED),
        table.get("set", {}),
        {endpoint: tuple(each) for endpoint, each in table.get("answers", {}).items()},
        table.get("always", {}),
        tuple(table.get("clients", ())),
    )
    try:
        made(facts)
    except ValueError as error:
        document.fail(("authorization", name), f"[authorization.{name}] {error}")
    return facts


def check_change(document: Document, facts: model.AuthorizationFacts, change: model.Provide, path: Path) -> None:
    """A step that makes an authorization server another one. Raises UserInputError where none can be so."""
    try:
        made(facts._replace(set={**facts.set, **change.set}, answers=change.answers, always=change.always))
    except ValueError as error:
        document.fail((*path, "provider"), f"[[step]] {path[1]} provider: {error}")


def read_protections(
    document: Document, names: Vocabulary, servers: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, model.Protection]]:
    """Which servers are behind an authorization server. Raises UserInputError."""
    for name, table in servers.items():
        place = ("server", name, "protected_by")
        if "protected_by" in table:
            if "requires_bearer" in table:
                what = f"[server.{name}] has both `protected_by` and `requires_bearer`"
                document.fail(place, what, "Keep one of them.")
            by = names.authorization(table["protected_by"], place)
            yield name, model.Protection(by, table.get("resource", {}))
        elif "resource" in table:
            document.fail(("server", name, "resource"), f"[server.{name}] is not protected", "Add protected_by.")


def read_credential(document: Document, names: Vocabulary, index: int, table: Mapping[str, Any]) -> model.Credential:
    """One `[[credential]]`: with a token of its own, or with those of an authorization server. Raises
    UserInputError.
    """
    path = ("credential", index)
    names.server(table["server"], path)
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
    for name in tree.get("registered", {}):
        names.server(name, ("registered", name))
    for name in tree.get("authorization", {}):
        if name in names.servers:
            what = f"{name} is a server's name already"
            document.fail(("authorization", name), what, "Call the authorization server otherwise.")
