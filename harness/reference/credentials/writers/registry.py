"""The writers that there are: one for each runtime, pointed at the stores that a process of that runtime reads.

Source: seed 002 "The runtime credential stores are host-global and shared across sessions", "Pi takes a token by
handoff"; requirements writers-three, writers-*-path, store-keyed-by-home.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.reference.credentials.key import Runtime
from harness.reference.credentials.writers.claude import ClaudeWriter
from harness.reference.credentials.writers.codex import CodexWriter
from harness.reference.credentials.writers.keychain import Keychain
from harness.reference.credentials.writers.pi import PiWriter
from harness.reference.credentials.writers.pi_store import HELPER, PiStore
from harness.reference.credentials.writers.protocol import Writer
from harness.reference.credentials.writers.staging import stage
from harness.reference.secrets.blank import is_blank
from harness.world import World

__all__ = ["forget_refusal", "registered_writers", "session_writer", "stage"]

RUNTIMES: tuple[Runtime, ...] = ("claude", "codex", "pi")
ADAPTER = "npm/node_modules/pi-mcp-adapter"
"""Where Pi keeps the adapter that it was told to install, below its agent directory; a variable says otherwise."""

KEYCTL_VARIABLE = "PI_MCP_ADAPTER_KEYRING_RECOVERY_KEYCTL"
NODE_VARIABLE = "PI_MCP_ADAPTER_KEYRING_RECOVERY_NODE"
HELPER_VARIABLE = "PI_MCP_ADAPTER_KEYRING_RECOVERY_HELPER"


def registered_writers(world: World, keychain: Keychain | None = None) -> tuple[Writer, ...]:
    """Every runtime's writer at its host-global store: for whoever has no session, the refresh job and a retirement."""
    return tuple(session_writer(world, runtime, world.env.variables, keychain=keychain) for runtime in RUNTIMES)


async def forget_refusal(world: World, server_name: str) -> tuple[Runtime, ...]:
    """Make every runtime's host-global store forget that a server wanted a sign-in, once somebody has signed in.

    The runtimes that remembered it; best effort (store-authorize-clears-entry, store-sessionless-clear-at-injection).
    """
    writers = registered_writers(world)
    return tuple([one.runtime for one in writers if await one.clear_needs_auth(world, [server_name])])


def session_writer(
    world: World,
    runtime: Runtime,
    variables: Mapping[str, str],
    *,
    directory: str | None = None,
    keychain: Keychain | None = None,
) -> Writer:
    """The store that a runtime started with these variables reads: its own where they give it one.

    `directory` is the one that it is started in, which a relative path counts from. `variables` must be those that the
    process gets, not those of Zimmer's own (writers-pi-path-fallback).
    """
    place = Place(variables, world.env.variables.get("HOME", "/"), directory or world.env.directory)
    if runtime == "claude":
        return ClaudeWriter(claude_directory(place), keychain)
    if runtime == "codex":
        return CodexWriter(codex_home(place), keychain)
    return PiWriter(pi_directory(place), PiStore(pi_helper(place)))


class Place:
    """Where a process's own directories are looked for."""

    def __init__(self, variables: Mapping[str, str], home: str, directory: str) -> None:
        self.variables, self.directory = variables, directory
        self.home = (variables.get("HOME") or home).rstrip("/")

    def given(self, name: str) -> str | None:
        """A variable's value; None for a blank one."""
        value = self.variables.get(name)
        return None if is_blank(value) else value

    def path(self, name: str) -> str | None:
        """A variable's path, absolute."""
        value = self.given(name)
        return None if value is None else self.below(value)

    def below(self, path: str) -> str:
        """A path as a process takes it."""
        return path if path.startswith("/") else f"{self.directory.rstrip('/')}/{path}"


def claude_directory(place: Place) -> str:
    """Claude's config directory: by HOME, unless the session has one of its own (store-keyed-by-home)."""
    return place.path("CLAUDE_CONFIG_DIR") or f"{place.home}/.claude"


def codex_home(place: Place) -> str:
    """Codex's home."""
    return place.path("CODEX_HOME") or f"{place.home}/.codex"


def pi_directory(place: Place) -> str:
    """Where Pi takes credentials: the variable without the white space around it, else below its agent directory."""
    given = (place.given("MCP_OAUTH_DIR") or "").strip()
    return place.below(given) if given else f"{pi_agent_directory(place)}/mcp-oauth"


def pi_agent_directory(place: Place) -> str:
    """Pi's own directory. `~` is the home here, and only here."""
    given = place.given("PI_CODING_AGENT_DIR") or "~/.pi/agent"
    return place.below(f"{place.home}{given[1:]}" if given == "~" or given.startswith("~/") else given)


def pi_helper(place: Place) -> tuple[str, ...]:
    """How the keyring is asked: the adapter's helper, under a session keyring of its own."""
    keyctl, node = place.given(KEYCTL_VARIABLE) or "keyctl", place.given(NODE_VARIABLE) or "node"
    helper = place.given(HELPER_VARIABLE) or f"{pi_agent_directory(place)}/{ADAPTER}/{HELPER}"
    return (keyctl, "session", "-", node, helper)
