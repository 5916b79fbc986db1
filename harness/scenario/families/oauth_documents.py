"""Metadata as nobody should write it, drawn: of an authorization server (RFC 8414) and of a resource (RFC 9728)."""

from __future__ import annotations

import json
from typing import Any

from harness.scenario.draws import Draws

HIDDEN = "endpoint-password-7"
"""Stands in endpoints as a password, and may be shown nowhere."""
NO_DOCUMENTS = (
    "",
    "null",
    "[]",
    "7",
    '"text"',
    "{}",
    '{"token_endpoint"',
    "<html>",
    "[" * 5000,
    '{"a":' * 3000,
    "\ufeff{}",
    "NaN",
)
WRONG_KINDS: tuple[Any, ...] = (None, 7, True, "", " ", [], {}, ["https://desk-as.test/token"], "\ud800", "x" * 20000)
WRONG_URLS = (
    "javascript:alert(1)",
    "file:///etc/passwd",
    "ftp://desk-as.test/token",
    "//desk-as.test/token",
    "/token",
    "https://",
    "https:///token",
    "https:desk-as.test/token",
    " https://desk-as.test/token",
    "https://desk-as.test/token\n",
    "https://desk-as.test /token",
    "https://desk-as.test:99999/token",
    "https://desk-as.test:x/token",
    "https://[::1",
    "https://ä.test/token",
    "http://127.0.0.1:9155/token",
    "HTTP://127.0.0.1:9155/token",
    "http://afar.test/token",
    "http:\\\\afar.test\\token",
    f"http://user:{HIDDEN}@127.0.0.1:9155/token",
)
ODD_URLS = (
    "HTTPS://desk-as.test/token",
    "https://desk-as.test/token#fragment",
    "https://desk-as.test/token?a=b",
    "https://desk-as.test:443/token",
    "https://desk-as.test/nowhere",
    "https://nobody.test/token",
    f"https://user:{HIDDEN}@desk-as.test/token",
    f"https://{HIDDEN}@desk-as.test/token",
)
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint")
SCOPES: tuple[Any, ...] = (["read"], ["read", 7, None, ""], "read", {"read": 1}, ["a b", 'x"y', "z\n"], ["s"] * 3000)
SECONDS_LISTED = 200


def server_metadata(draws: Draws, issuer: str) -> str:
    """The text of a document: none at all, or one with some members that are wrong, odd, missing or huge."""
    if draws.chance("no document", 20):
        return draws.choice("text", NO_DOCUMENTS)
    document: dict[str, Any] = {"issuer": issuer}
    document |= {
        name: f"{issuer}/{path}" for name, path in zip(ENDPOINTS, ("authorize", "token", "register"), strict=True)
    }
    for name in (*ENDPOINTS, "issuer"):
        if draws.chance(f"{name} is touched", 35):
            document[name] = touched(draws, name)
    if draws.chance("scopes", 40):
        document["scopes_supported"] = draws.choice("scopes are", SCOPES)
    if draws.chance("methods", 30):
        document["token_endpoint_auth_methods_supported"] = draws.choice("methods are", (*SCOPES, ["private_key_jwt"]))
    if draws.chance("more", 20):
        document |= {f"member-{number}": "x" * 100 for number in range(500)}
    left_out = draws.choice("left out", (*ENDPOINTS, *("",) * 6))
    return json.dumps({name: value for name, value in document.items() if name != left_out})


def touched(draws: Draws, name: str) -> Any:
    """A value that this member should not have."""
    kinds = draws.choice(f"{name} kind", (WRONG_KINDS, WRONG_URLS, WRONG_URLS, ODD_URLS))
    return draws.choice(f"{name} value", kinds)


def resource_facts(draws: Draws, kind: str, neighbour: str) -> dict[str, Any]:
    """What a server says of itself; `neighbour` is an authorization server that is not to be asked.

    foreign: it is the document of another host. resource: whom it names as its authorization server cannot be.
    """
    if kind == "foreign":
        return {
            "resource": draws.choice(
                "foreign", ("https://other.test/mcp", "https://other.test", "https://desk.test.other.test/mcp")
            )
        }
    first = draws.choice(
        "first",
        ("https://gone.test", "ftp://gone.test", "javascript:alert(1)", " ", "https://gone.test/a b", "https://[::1"),
    )
    return {"authorization_servers": [first, *[neighbour] * draws.choice("listed", (1, 3, SECONDS_LISTED))]}
