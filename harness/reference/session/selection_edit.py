"""An edit of a session's servers or plugins (`Sessions::UpdateCatalogSelection`), and the door into `failed` behind it.

Source: seed 002 "Which prompt the resume delivers", "What the server advertised, recorded"; requirements
resume-three-doors, resume-door-edit-*, requirement-probe-on-selection-change, requirement-blip-keeps-session.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.reference.credentials import table
from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import state_at
from harness.reference.oauth.clients import registered_client
from harness.reference.oauth.deps import OAuthDeps
from harness.reference.oauth.probe import probe_after_edit, selection_changed
from harness.reference.oauth.server import RemoteServer, remote_server
from harness.reference.prepare.request import Runtime
from harness.reference.secrets.loader import StoreUnavailableError
from harness.reference.secrets.placeholders import MissingVariableError
from harness.reference.selection.session import Session, effective_servers
from harness.reference.session import rows
from harness.reference.session.blocking import Blocked, Turn, blocked_lines, blocked_values
from harness.reference.session.gate import NEEDS_SIGN_IN, listed_entry
from harness.reference.session.ladder import PAUSED_BY
from harness.reference.session.live_store import runtime_of
from harness.reference.session.timeline import Line, noted, tell
from harness.world import World

IDLE = "needs_input"
SERVERS, PLUGIN_SERVERS = "mcp_servers", "plugin_servers"
NOBODYS_TURN = Turn()
"""An edit is no turn: what was owed before stands as it stood, and nothing new is (resume-door-edit-no-owed-turn)."""


async def edit_selection(
    world: World,
    session: str,
    deps: OAuthDeps,
    *,
    servers: Sequence[str] | None = None,
    plugin_servers: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Replace the session's own servers, those of its plugins, or both (None: as they are), and look at them anew.

    The servers that an idle session is failed for; a session that runs never is. Emits `oauth.probed` (server,
    determination) for each that was asked, and `session.blocked` (servers).
    """
    lists = {SERVERS: servers, PLUGIN_SERVERS: plugin_servers}
    given = {name: list(names) for name, names in lists.items() if names is not None}
    before = await replaced(world, session, given)
    after = selection_of({**before, **given})
    listed = remote_servers(deps, runtime_of(before), effective_servers(after))
    required = await probe_after_edit(world, selection_of(before), after, listed, deps.settings)
    if not selection_changed(selection_of(before), after):
        return ()
    blocked = [blocked_by(server) for server in listed if await needs_sign_in(world, deps, server, required)]
    return await fail_idle(world, session, blocked) if blocked else ()


async def replaced(world: World, session: str, given: rows.Values) -> rows.Values:
    """Write the lists; the row as it was."""
    seen: list[rows.Values] = []

    def changed(values: rows.Values) -> rows.Values:
        seen.append(values)
        return {**values, **given}

    await rows.change(world, session, changed)
    return seen[-1]


def selection_of(values: rows.Values) -> Session:
    """A row's lists."""
    return Session(rows.chosen(values), plugin_servers=tuple(values.get(PLUGIN_SERVERS) or ()))


def remote_servers(deps: OAuthDeps, runtime: Runtime, names: Iterable[str]) -> tuple[RemoteServer, ...]:
    """Those that the gate will look at. One whose address cannot be resolved now is the next preparation's matter."""
    found = (resolved(deps, runtime, name) for name in names)
    return tuple(server for server in found if server is not None)


def resolved(deps: OAuthDeps, runtime: Runtime, name: str) -> RemoteServer | None:
    """A server as a runtime will read it; None where nobody can ask it."""
    entry = listed_entry(deps.catalog, runtime, name)
    if entry is None:
        return None
    try:
        return remote_server(entry, deps.lookup)
    except (MissingVariableError, StoreUnavailableError):
        return None


def blocked_by(server: RemoteServer) -> Blocked:
    """As the session's list has it."""
    return Blocked(server.name, server.entry.url, server.credential_key, NEEDS_SIGN_IN)


async def needs_sign_in(world: World, deps: OAuthDeps, server: RemoteServer, required: Sequence[str]) -> bool:
    """Whether the next spawn would certainly be blocked by it. What could not be asked costs nobody anything."""
    row = await table.find(world, server.credential_key)
    is_known = registered_client(deps.settings, server.name) is not None
    return not serves(row, world.clock.now()) and (row is not None or is_known or server.name in required)


def serves(row: Credential | None, now: float) -> bool:
    """Whether a stored credential is good, or will be renewed before a spawn."""
    if row is None:
        return False
    state = state_at(row, now)
    return state.active or state.can_refresh


async def fail_idle(world: World, session: str, blocked: Sequence[Blocked]) -> tuple[str, ...]:
    """Fail the session if it is idle at this moment; the servers that it is failed for."""
    now, told = world.clock.now(), list[Line]()

    def changed(values: rows.Values) -> rows.Values:
        told[:] = blocked_lines(values, blocked, NOBODYS_TURN) if is_idle(values) else []
        return noted(blocked_values(values, blocked, NOBODYS_TURN), told, now) if told else values

    await rows.change(world, session, changed)
    if not told:
        return ()
    tell(world, told)
    names = tuple(server.server_name for server in blocked)
    world.events.emit("session.blocked", servers=list(names))
    return names


def is_idle(values: rows.Values) -> bool:
    """It waits for a message of a human. One that waits for its next try goes on by itself."""
    return values.get("status") == IDLE and PAUSED_BY not in rows.metadata(values)
