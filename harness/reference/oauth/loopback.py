"""Does a redirect URI point at this very host? Nothing asks: whether a flow completes by itself is decided otherwise.

Source: seed 002 "The loopback check has no production caller"; requirements store-loopback-*.
"""

from __future__ import annotations

import re

LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]"})

_UNIT = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})"

REDIRECT = re.compile(
    r"[A-Za-z][A-Za-z0-9+.\-]*://"
    rf"(?:(?:{_UNIT}|:)*@)?"
    rf"(?P<host>\[[0-9A-Fa-f:.]+\]|{_UNIT}*)"
    r"(?::[0-9]*)?"
    rf"(?:/(?:{_UNIT}|[:@/])*)?"
    rf"(?:\?(?:{_UNIT}|[:@/?])*)?"
    rf"(?:#(?:{_UNIT}|[:@/?])*)?",
    re.ASCII,
)
"""A whole URI with an authority. `localhost:3000/callback` has none: its scheme is `localhost`."""


def localhost_flow(redirect_uri: str | None) -> bool:
    """True exactly for the hosts localhost, 127.0.0.1 and ::1, in any case; what is no URI is False."""
    match = REDIRECT.fullmatch(redirect_uri) if redirect_uri is not None else None
    return match is not None and match["host"].lower() in LOOPBACK_HOSTS
