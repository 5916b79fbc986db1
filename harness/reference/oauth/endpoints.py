"""May a token or registration endpoint be used? https with a host, loopback included (https-predicate)."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv6Address

_UNIT = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})"

ENDPOINT = re.compile(
    r"https://"
    rf"(?:(?:{_UNIT}|:)*@)?"
    rf"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|{_UNIT}+)"
    r"(?::[0-9]*)?"
    rf"(?:/(?:{_UNIT}|[:@/])*)?"
    rf"(?:\?(?:{_UNIT}|[:@/?])*)?"
    rf"(?:#(?:{_UNIT}|[:@/?])*)?",
    re.IGNORECASE | re.ASCII,
)
"""A whole https URI with a host. Matched against the raw text: no blank, line end or stray character is dropped."""


def acceptable_endpoint(endpoint: str | None) -> bool:
    """True for an https URI with a non-empty host. Null and unparseable text are False, never an error."""
    match = ENDPOINT.fullmatch(endpoint) if endpoint is not None else None
    return match is not None and (match["ipv6"] is None or _is_ipv6(match["ipv6"]))


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except AddressValueError:
        return False
    return True
