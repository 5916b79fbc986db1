"""May a token or registration endpoint be used? https with a host, loopback included (https-predicate)."""

from __future__ import annotations

import re
from functools import lru_cache

from harness.reference.oauth.urls import is_address

_UNIT = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})"

ENDPOINT = re.compile(
    r"https://"
    rf"(?:(?P<userinfo>(?:{_UNIT}|:)*)@)?"
    rf"(?P<host>\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|{_UNIT}+)"
    r"(?::(?P<port>[0-9]*))?"
    rf"(?P<path>(?:/(?:{_UNIT}|[:@/])*)?)"
    rf"(?P<query>(?:\?(?:{_UNIT}|[:@/?])*)?)"
    rf"(?:#(?:{_UNIT}|[:@/?])*)?",
    re.IGNORECASE | re.ASCII,
)
"""A whole https URI with a host. Matched against the raw text: no blank, line end or stray character is dropped."""

SHOWN_CHARACTERS = 200
MASK = "***"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")


def acceptable_endpoint(endpoint: str | None) -> bool:
    """True for an https URI with a non-empty host. Null and unparseable text are False, never an error."""
    return read_endpoint(endpoint) is not None


def read_endpoint(endpoint: str | None) -> re.Match[str] | None:
    """The parts of an endpoint: userinfo, host, port, path, query; None where it is not acceptable."""
    match = _whole(endpoint) if endpoint is not None else None
    return match if match is not None and is_address(match["ipv6"]) else None


@lru_cache(maxsize=1 << 10)
def _whole(endpoint: str) -> re.Match[str] | None:
    """Its parts by the grammar alone. The few endpoints that there are get asked about at every turn."""
    return ENDPOINT.fullmatch(endpoint)


def shown_endpoint(endpoint: str | None) -> str:
    """An endpoint as a person may read it: no userinfo, no query, one line (https-initiate-flash-names-endpoint).

    What stands before the last `@` is taken for userinfo wherever that is, as a secret may hold any character.
    """
    text = "".join(each if each.isprintable() else "\ufffd" for each in endpoint or "")
    scheme = _SCHEME.match(text)
    start = scheme.end() if scheme is not None else 0
    if "@" in text[start:]:
        text = f"{text[:start]}{MASK}@{text.rpartition('@')[2]}"
    return re.split(r"[?#]", text, maxsplit=1)[0][:SHOWN_CHARACTERS]
