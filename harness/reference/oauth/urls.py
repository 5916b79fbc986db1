"""The URLs that discovery may ask: http or https, with a host, read without repairing anything.

Source: requirements flow-discovery-order, flow-discovery-challenge-metadata, flow-resource-indicator.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple

MAXIMUM_URL_CHARACTERS = 8_192
"""A longer one in a metadata document is no URL."""
DEFAULT_PORTS = {"http": "80", "https": "443"}

_UNIT = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})"
_URL = re.compile(
    r"(?P<scheme>https?)://"
    rf"(?:(?P<userinfo>(?:{_UNIT}|:)*)@)?"
    rf"(?P<host>\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|{_UNIT}+)"
    r"(?::(?P<port>[0-9]*))?"
    rf"(?P<path>(?:/(?:{_UNIT}|[:@/])*)?)"
    r"(?P<query>(?:\?[!-\"$-~]*)?)"
    r"(?:#[!-~]*)?",
    re.IGNORECASE | re.ASCII,
)


class Url(NamedTuple):
    """The parts of a URL. `scheme` in lower case, `port` None where it is the scheme's own, `query` with its `?`.

    Userinfo and fragment are not kept: nothing that discovery sends carries them.
    """

    scheme: str
    host: str
    port: str | None
    path: str
    query: str

    @property
    def origin(self) -> str:
        """Scheme, host as written, and a port that is not the default."""
        return f"{self.scheme}://{self.host}" + ("" if self.port is None else f":{self.port}")

    @property
    def text(self) -> str:
        """The URL as it is asked for."""
        return f"{self.origin}{self.path}{self.query}"


def read_url(text: object) -> Url | None:
    """The parts of an http or https URL; None for anything else. Never raises."""
    if not isinstance(text, str) or len(text) > MAXIMUM_URL_CHARACTERS:
        return None
    return parts_of(text)


@lru_cache(maxsize=1 << 10)
def parts_of(text: str) -> Url | None:
    """The same of a text of a length that a URL may have."""
    match = _URL.fullmatch(text)
    if match is None or not is_address(match["ipv6"]):
        return None
    scheme = match["scheme"].lower()
    return Url(scheme, match["host"], own_port(scheme, match["port"]), match["path"], match["query"])


def own_port(scheme: str, written: str | None) -> str | None:
    """A port that has to be named; None for none and for the scheme's own."""
    if not written:
        return None
    port = written.lstrip("0") or "0"
    return None if port == DEFAULT_PORTS[scheme] else port


def is_address(ipv6: str | None) -> bool:
    """Whether what stands between brackets is an address; None: the host is a name."""
    try:
        return ipv6 is None or bool(IPv6Address(ipv6).compressed)
    except AddressValueError:
        return False
