"""McpOauthProbe: asks the servers of a session anew whenever its selection changes (seed 002).

It and the gate before a spawn are the only ones that ask; every page reads what they recorded
(requirement-two-askers).
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.reference.oauth.capability import oauth_capable
from harness.reference.oauth.check import check_oauth_requirement, record_check
from harness.reference.oauth.consent import hosted_callback
from harness.reference.oauth.requirement import Determination
from harness.reference.oauth.server import RemoteServer
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.selection.session import Session
from harness.world import World


async def probe_after_edit(
    world: World,
    before: Session,
    after: Session,
    servers: Sequence[RemoteServer],
    settings: OAuthSettings,
) -> tuple[str, ...]:
    """Probe a session's servers where an edit changed its selection; the names that definitely require OAuth.

    Only those may cost an idle session anything: a server that could not be asked never does
    (requirement-blip-keeps-session).
    """
    found = await probe_servers(world, servers, settings) if selection_changed(before, after) else {}
    return tuple(name for name, determination in found.items() if is_definite(determination))


def selection_changed(before: Session, after: Session) -> bool:
    """Whether an edit changed the chosen servers or those that plugins bring; the order says nothing."""
    return set(before.chosen) != set(after.chosen) or set(before.plugin_servers) != set(after.plugin_servers)


def is_definite(determination: Determination) -> bool:
    """Whether an answer is more than a failure to ask."""
    return determination == "advertised_required"


async def probe_servers(
    world: World, servers: Sequence[RemoteServer], settings: OAuthSettings
) -> dict[str, Determination]:
    """Ask each server that OAuth can apply to, without a token, and record its answer. Never raises.

    Emits `oauth.probed` (server, determination) for each. No client is registered: none would be used.
    """
    return {server.name: await probe(world, server, settings) for server in servers if oauth_capable(server.entry.raw)}


async def probe(world: World, server: RemoteServer, settings: OAuthSettings) -> Determination:
    """Ask one server and record what it says."""
    check = await check_oauth_requirement(
        world,
        server,
        configured=None,
        redirect_uri=hosted_callback(settings.app_host),
        registers=False,
        path_forms=settings.path_forms,
    )
    world.events.emit("oauth.probed", server=server.name, determination=check.determination)
    await record_check(world, server, check)
    return check.determination
