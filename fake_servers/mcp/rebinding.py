"""What keeps web pages away from a server of one's own machine: the names by which it lets itself be called.

A page whose host name was pointed at 127.0.0.1 after it was loaded (DNS rebinding) has the browser send requests that
say the page's name in `Host` and `Origin`. Whoever means the server says a loopback name.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from harness.world.ports import Request, Response, header

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
TEXT = {"Content-Type": "text/plain"}


def rebound(request: Request) -> Response | None:
    """The refusal of what a browser was tricked into sending; None for all else.

    A server that is called by another name than a loopback one knows nothing of this attack. A missing header is
    borne: programs send no Origin.
    """
    if hostname(request.url) not in LOOPBACK:
        return None
    host = header(request.headers, "Host")
    if host is not None and hostname(f"//{host}") not in LOOPBACK:
        return Response(421, TEXT, b"Invalid Host header")
    origin = header(request.headers, "Origin")
    if origin is not None and hostname(origin) not in LOOPBACK:
        return Response(403, TEXT, b"Invalid Origin header")
    return None


def hostname(url: str) -> str | None:
    """The host of a URL in lower case; None where it has none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
