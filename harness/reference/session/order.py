"""What the orchestrator is asked to run: one session on one runtime in one clone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from harness.reference.catalog.catalog import Catalog
from harness.reference.npx.containment import clones_base
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.prepare.request import PrepareRequest, Runtime
from harness.reference.secrets.placeholders import Lookup
from harness.reference.selection.zimmer import Instance
from harness.reference.session.prompts import FixedPrompts
from harness.world import World

AirStep = Callable[[World, PrepareRequest], Awaitable[PrepareRequest]]
"""`air prepare`: the request with what AIR translated in it. Raises PreparationError where AIR refuses."""


@dataclass(frozen=True, slots=True)
class Order:
    """One session. `session` is the key of its row, which holds its server list and what is remembered of it.

    `argv` starts the runtime and is followed by the turn's words, `stdin` are lines that it is sent before its stdin is
    closed. `lookup` is the whole secrets chain. The environment, home included, is that of the orchestrator's own
    process. `prompt` is the session's own, with which its first turn begins; None: `argv` and `stdin` say all that is
    to be said. `follow_up` is the message that this turn delivers; None: it is the first one.
    """

    session: str
    runtime: Runtime
    clone: str
    argv: tuple[str, ...]
    catalog: Catalog
    instance: Instance
    lookup: Lookup
    air: AirStep
    plugin_servers: tuple[str, ...] = ()
    other_artifacts: bool = False
    default_subagent_roots: tuple[str, ...] = ()
    elicitation: Mapping[str, str] = field(default_factory=dict)
    stdin: tuple[str, ...] = ()
    oauth: OAuthSettings = field(default_factory=OAuthSettings)
    prompt: str | None = None
    follow_up: str | None = None
    prompts: FixedPrompts = field(default_factory=FixedPrompts)


def home(world: World) -> str:
    """The home directory of the orchestrator's user."""
    return world.env.variables.get("HOME", "/")


def base_of_clones(world: World) -> str:
    """The directory that all clones lie in."""
    return clones_base(home(world), world.env.variables.get("AGENT_CLONES_DIR"))
