"""What Claude Code takes for a URL: the WHATWG reading, as far as a server's address needs it."""

from __future__ import annotations

import re

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
SPECIAL_SCHEMES = frozenset({"http", "https", "ws", "wss", "ftp"})
FORBIDDEN_IN_HOST = re.compile(r"[\x00-\x20#%/:<>?@\\^|\x7f\[\]]")
ADDRESS_IN_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.]+\]")
PORT = re.compile(r"[0-9]*")
HIGHEST_PORT = 65535
BLANKS = "".join(map(chr, range(0x21)))


def is_url(text: str) -> bool:
    """Whether `new URL(text)` would accept it. Blanks around the text are no obstacle."""
    found = SCHEME.fullmatch(text.strip(BLANKS).translate({9: None, 10: None, 13: None}))
    if found is None:
        return False
    scheme, rest = found[1].lower(), found[2]
    return scheme not in SPECIAL_SCHEMES or is_authority(re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0])


def is_authority(text: str) -> bool:
    """`user:password@host:port` with a host that is not empty and a port that exists."""
    address = text.rpartition("@")[2]
    bracketed = ADDRESS_IN_BRACKETS.match(address)
    if bracketed:
        rest = address[bracketed.end() :]
        return not rest or (rest.startswith(":") and is_port(rest[1:]))
    host, _, port = address.partition(":")
    return bool(host) and FORBIDDEN_IN_HOST.search(host) is None and is_port(port)


def is_port(text: str) -> bool:
    """Digits up to 65535, or nothing at all."""
    digits = text.lstrip("0")
    return (
        PORT.fullmatch(text) is not None and len(digits) <= len(str(HIGHEST_PORT)) and int(digits or 0) <= HIGHEST_PORT
    )
