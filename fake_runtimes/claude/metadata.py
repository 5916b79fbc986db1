"""How Claude Code looks for the authorization server of a server, with what an earlier run has found."""

from __future__ import annotations

from fake_runtimes.discovery import (
    Discovered,
    after_refusal,
    first_metadata,
    resource_places,
    server_of,
    server_places,
)
from fake_runtimes.oauth import document_at, is_url, split
from harness.world import World


async def for_renewal(
    world: World, url: str, known: tuple[str, str | None] | None, user_agent: str
) -> Discovered | None:
    """All places, the most likely first; what an earlier run has found goes before. None: nothing is described."""
    if known is not None:
        metadata = await first_metadata(world, server_places(known[0]), user_agent)
        if metadata is not None:
            return Discovered(known[0], metadata, known[1], has_resource=True)
    for place in resource_places(url):
        named = server_of(await document_at(world, place, user_agent))
        if named is not None:
            metadata = await first_metadata(world, server_places(named), user_agent)
            return None if metadata is None else Discovered(named, metadata, place, has_resource=True)
    origin, _ = split(url)
    metadata = await first_metadata(world, [*server_places(origin), *server_places(url)], user_agent)
    return None if metadata is None else Discovered(f"{origin}/", metadata, has_resource=True)


async def for_refusal(
    world: World, url: str, challenge: str | None, known: tuple[str, str | None] | None, user_agent: str
) -> Discovered:
    """As any client of the library; with what an earlier run has found the server is asked first, then the resource."""
    if known is None or not is_url(known[0]):
        return await after_refusal(world, url, challenge, user_agent)
    metadata = await first_metadata(world, server_places(known[0]), user_agent)
    place = known[1] or resource_places(url)[0]
    named = server_of(await document_at(world, place, user_agent))
    return Discovered(known[0], metadata, place, named is not None)
