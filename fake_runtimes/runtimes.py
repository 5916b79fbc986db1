"""One face for the three fake runtimes. Dispatches on the profile; the rules live with each runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import fake_runtimes.claude.config as claude_config
import fake_runtimes.claude.credentials as claude_credentials
import fake_runtimes.claude.names as claude_names
import fake_runtimes.claude.startup as claude_startup
import fake_runtimes.codex.config as codex_config
import fake_runtimes.codex.credentials as codex_credentials
import fake_runtimes.codex.names as codex_names
import fake_runtimes.codex.startup as codex_startup
import fake_runtimes.pi.config as pi_config
import fake_runtimes.pi.credentials as pi_credentials
import fake_runtimes.pi.names as pi_names
import fake_runtimes.pi.startup as pi_startup
from fake_runtimes.budgets import CONNECTED, Attempt, Budget, Call
from fake_runtimes.loaded import Loaded, LoadedServer
from fake_runtimes.profile import ClaudeProfile, CodexProfile, Profile

YES, LATE, NEVER = "yes", "late", "never"


class Offered(NamedTuple):
    """What the model is offered: names by (server, tool), and the tools that are dropped.

    Codex names a tool by two fields, written here `namespace/tool`. All tools behind a Pi proxy have the
    proxy's name.
    """

    names: dict[tuple[str, str], str]
    dropped: tuple[tuple[str, str], ...]


def config_path(profile: Profile) -> str:
    """The file in a session's directory that the runtime reads, relative to it."""
    if isinstance(profile, ClaudeProfile):
        return claude_config.CONFIG_PATH
    return codex_config.CONFIG_PATH if isinstance(profile, CodexProfile) else pi_config.CONFIG_PATH


def read(profile: Profile, text: str | None, environment: Mapping[str, str]) -> Loaded:
    """What the runtime holds after reading that file (None: absent) and no other. Never raises.

    A Codex project counts as trusted here.
    """
    if isinstance(profile, ClaudeProfile):
        return claude_config.read_config(text, environment, profile)
    if isinstance(profile, CodexProfile):
        return codex_config.read_config(text, environment, profile)
    return pi_config.read_config(text, environment, profile)


def lookup_key(profile: Profile, server: LoadedServer) -> str | None:
    """The key of the server's stored credential: Claude and Codex `<name>|<hash>`, Pi the keyring account.

    None for a server without a url.
    """
    if server.url is None:
        return None
    if isinstance(profile, ClaudeProfile):
        return claude_credentials.lookup_key(server)
    return codex_credentials.lookup_key(server) if isinstance(profile, CodexProfile) else pi_credentials.account(server)


def offered(
    profile: Profile,
    tools: Mapping[str, Sequence[str]],
    servers: Sequence[LoadedServer] = (),
) -> Offered:
    """The names of all tools (lists of tool names by server) together: they depend on each other.

    `servers` is needed only for Pi's direct tools.
    """
    if isinstance(profile, ClaudeProfile):
        return Offered(*claude_names.offered(tools))
    if isinstance(profile, CodexProfile):
        names = codex_names.offered(tools, profile)
        return Offered({tool: f"{name.namespace}/{name.tool}" for tool, name in names.items()}, ())
    return Offered(*pi_names.offered(tools, profile, {server.name: server for server in servers}))


def tool_name_room(profile: Profile, server_name: str) -> int | None:
    """How many characters a tool name of the server may have before it is cut or hashed; None is no limit."""
    return codex_names.tool_name_room(server_name, profile) if isinstance(profile, CodexProfile) else None


def server_label(profile: Profile, server_name: str) -> str:
    """The server's part in tool names: two servers with one label meet."""
    if isinstance(profile, ClaudeProfile):
        return claude_names.sanitise(server_name)
    if isinstance(profile, CodexProfile):
        return codex_names.namespace(server_name)
    return pi_names.namespace(server_name, profile)


def start_budget(profile: Profile, server: LoadedServer, environment: Mapping[str, str]) -> Budget:
    """The budget of one request of a start attempt, and whether tool calls stand under it too."""
    if isinstance(profile, ClaudeProfile):
        return Budget(claude_startup.attempt_seconds(server, environment, profile), covers_calls=False)
    if isinstance(profile, CodexProfile):
        return Budget(codex_startup.attempt_seconds(server, profile), covers_calls=False)
    return Budget(pi_startup.request_seconds(server, profile), covers_calls=True)


def attempt(
    profile: Profile,
    server: LoadedServer,
    environment: Mapping[str, str],
    answers_after_seconds: float | None,
    *,
    lists_tools_after_seconds: float | None = 0.0,
    ignores_probe: bool = False,
) -> Attempt:
    """One start attempt of a server that answers initialize so long after its spawn (None: never).

    `lists_tools_after_seconds` is not looked at for Claude, whose budget was measured for connecting alone;
    `ignores_probe` matters only where a version probes before initialize.
    """
    if isinstance(profile, ClaudeProfile):
        return claude_startup.attempt(server, environment, profile, answers_after_seconds, ignores_probe=ignores_probe)
    if isinstance(profile, CodexProfile):
        return codex_startup.attempt(server, profile, answers_after_seconds, lists_tools_after_seconds)
    return pi_startup.attempt(server, profile, answers_after_seconds, lists_tools_after_seconds)


def call(profile: Profile, server: LoadedServer, tool: str, answers_after_seconds: float | None) -> Call | None:
    """One tool call on a connected server; None where the runtime's limit was not measured."""
    if isinstance(profile, ClaudeProfile):
        return None
    if isinstance(profile, CodexProfile):
        return codex_startup.call(server, tool, answers_after_seconds)
    return pi_startup.call(server, profile, answers_after_seconds)


def first_request_wait_seconds(profile: Profile, server: LoadedServer, environment: Mapping[str, str]) -> float | None:
    """How long the first model request waits for this server; None means until its attempt has ended."""
    if isinstance(profile, ClaudeProfile):
        return claude_startup.first_request_wait_seconds(environment, profile)
    if isinstance(profile, CodexProfile):
        return codex_startup.first_request_wait_seconds(server, profile)
    return pi_startup.first_request_wait_seconds(profile)


def in_first_request(
    profile: Profile, server: LoadedServer, environment: Mapping[str, str], ready_after_seconds: float | None
) -> str:
    """Whether the server's tools are in the first model request (yes), come later (late) or not at all (never).

    Judged alone; on Pi a slower neighbour holds all servers back, see `fake_runtimes.launch`.
    """
    ended = attempt(profile, server, environment, ready_after_seconds)
    if ended.outcome != CONNECTED:
        return NEVER
    wait = first_request_wait_seconds(profile, server, environment)
    return YES if wait is None or ended.at_seconds <= wait else LATE
