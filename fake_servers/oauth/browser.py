"""A person's browser that is sent to an authorization server: it follows redirects and stops where it is sent back."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple
from urllib.parse import parse_qsl, urljoin, urlsplit

from harness.world.errors import Ambiguous, NotSent
from harness.world.ports import Request, Response, World, header
from harness.world.sites import origin

LIMIT = 10
TIMEOUT_SECONDS = 60.0
REDIRECTS = (301, 302, 303, 307, 308)
HEADERS = {"Accept": "text/html,application/xhtml+xml", "User-Agent": "Mozilla/5.0 (fake)"}


class Landed(NamedTuple):
    """Where the browser has come to rest.

    `url` is the whole URL to which it was sent back, and which nobody was asked for; None where it was not. `status`
    and `page` are the last answer, status 0 where there was none. `visited` are the URLs that were asked for.
    """

    url: str | None
    status: int
    page: str
    visited: tuple[str, ...] = ()

    @property
    def parameters(self) -> dict[str, str]:
        """What the redirect brought; of a name that comes twice the first."""
        return dict(reversed(parse_qsl(urlsplit(self.url or "").query, keep_blank_values=True)))


async def consent(
    world: World, url: str, *, origins: Collection[str] | None = None, limit: int = LIMIT
) -> Landed:  # fmt: skip
    """Go to an authorization URL as its user would, through at most `limit` redirects.

    Whatever is at one of `origins` (of the URL alone when None) and is not the URL's own `redirect_uri` is asked for;
    any other redirect is where the browser has landed. A page is left as it is: whoever has to log in has not landed.
    """
    inside = {origin(each) for each in (origins if origins is not None else (url,))}
    back = dict(reversed(parse_qsl(urlsplit(url).query))).get("redirect_uri", "")
    visited: list[str] = []
    while True:
        visited.append(url)
        response = await _fetched(world, url)
        page = response.body.decode(errors="replace")
        place = header(response.headers, "Location") if response.status in REDIRECTS else None
        if place is None:
            return Landed(None, response.status, page, tuple(visited))
        url = urljoin(url, place)
        if origin(url) not in inside or is_return(url, back):
            return Landed(url, response.status, page, tuple(visited))
        if len(visited) > limit:
            return Landed(None, response.status, f"more than {limit} redirects", tuple(visited))


def is_return(url: str, redirect_uri: str) -> bool:
    """Whether a URL is that of a callback, whatever was added to its query."""
    there, back = urlsplit(url), urlsplit(redirect_uri)
    return bool(redirect_uri) and (there.scheme, there.netloc, there.path) == (back.scheme, back.netloc, back.path)


async def _fetched(world: World, url: str) -> Response:
    request = Request("GET", url, HEADERS)
    try:
        return await world.http.send(
            request, open_timeout_seconds=TIMEOUT_SECONDS, read_timeout_seconds=TIMEOUT_SECONDS
        )
    except (NotSent, Ambiguous) as error:
        return Response(0, {}, str(error).encode())
