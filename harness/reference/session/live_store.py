"""The credential store of a session that is there already, found from its row: for an authorization while it runs.

Source: requirements reconnect-live-injects-now, reconnect-live-injects-that-server, reconnect-live-clears-needs-auth,
gate-initiate-short-circuit-retries.
"""

from __future__ import annotations

from typing import Protocol, get_args

from harness.reference.catalog.catalog import Catalog
from harness.reference.credentials.writers.registry import session_writer
from harness.reference.oauth.server import remote_server
from harness.reference.prepare.dotenv import read_dotenv
from harness.reference.prepare.request import Runtime
from harness.reference.prepare.spawn import CLAUDE_SETTINGS, codex_spawn, pi_spawn, without_zimmer_secrets
from harness.reference.secrets.placeholders import Lookup
from harness.reference.session import rows
from harness.reference.session.gate import listed_entry
from harness.reference.session.injection import clear_needs_auth, hand_over
from harness.reference.session.order import home
from harness.reference.session.prepare import DOTENV, text_if_there
from harness.world import World

RUNTIMES: tuple[Runtime, ...] = get_args(Runtime)
DEFAULT_RUNTIME: Runtime = "claude"


class Deployment(Protocol):
    """What an action outside a session knows of the deployment."""

    @property
    def catalog(self) -> Catalog: ...

    @property
    def lookup(self) -> Lookup: ...


class NotInjectedError(Exception):
    """The credential did not reach the runtime's store."""


async def inject_into_session(world: World, session: str, deployment: Deployment, server_name: str) -> None:
    """Hand one server's credential to the session's runtime, and clear that runtime's memory of it.

    Only this server's: what a running process may be renewing at this moment is left alone. A server that no spawn
    hands a credential for has nothing to be handed over. Raises NotInjectedError, and MissingVariableError or
    StoreUnavailableError where the server's address cannot be resolved.
    """
    values = await rows.read(world, session)
    entry = listed_entry(deployment.catalog, runtime_of(values), server_name)
    if entry is None:
        return
    clone = values.get("clone")
    variables = await store_variables(world, values)
    writer = session_writer(world, runtime_of(values), variables, directory=clone if isinstance(clone, str) else None)
    written = await hand_over(world, writer, [remote_server(entry, deployment.lookup)])
    await clear_needs_auth(world, writer, [server_name])
    if not written:
        raise NotInjectedError(f"the credential of {server_name} could not be handed to the runtime")


def runtime_of(values: rows.Values) -> Runtime:
    """The runtime of a session's last spawn."""
    return next((runtime for runtime in RUNTIMES if runtime == values.get("runtime")), DEFAULT_RUNTIME)


async def store_variables(world: World, values: rows.Values) -> dict[str, str]:
    """The variables of the session's process as far as they say where its credentials lie."""
    clone = values.get("clone")
    dotenv = read_dotenv(await text_if_there(world, f"{clone}/{DOTENV}")) if isinstance(clone, str) else {}
    parent = world.env.variables
    match runtime_of(values):
        case "codex":
            return codex_spawn(parent, dotenv, home(world)).variables
        case "pi":
            return pi_spawn(parent, dotenv).variables
    return {**without_zimmer_secrets(parent), **CLAUDE_SETTINGS, **dotenv}
