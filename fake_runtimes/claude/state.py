"""What one headless session knows while it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fake_runtimes.claude import needs_auth
from fake_runtimes.claude.bearer import FILE_NAME as STORE_NAME
from fake_runtimes.claude.logs import ServerLog, file_name, log_directory
from fake_runtimes.claude.sources import Homes, Sourced, Sources, read_text
from fake_runtimes.claude.startup import attempt_seconds
from fake_runtimes.claude.wording import WORDINGS, milliseconds
from fake_runtimes.client import Connection, Identity
from fake_runtimes.loaded import LoadedServer, Problem
from fake_runtimes.profile import ClaudeProfile
from harness.world import Child, World

PENDING, CONNECTED, DISABLED = "pending", "connected", "disabled"
# A server that a list of servers does not contact.
UNAPPROVED = "unapproved"
PROTOCOL_VERSION = "2025-11-25"
# The older transport is tried where the protocol's own rule says so; 404 is the one that was measured.
FALLBACK_STATUSES = (400, 404, 405)


class ServerState:
    """One server of the session. `status` is as the init line shows it, `child` a process not yet connected.

    `reason` is why it did not connect, as a list of servers tells it.
    """

    def __init__(self, sourced: Sourced, log: ServerLog) -> None:
        self.server, self.source, self.log = sourced.server, sourced.source, log
        self.status = DISABLED if sourced.disabled else PENDING
        self.connection: Connection | None = None
        self.child: Child | None = None
        self.began_seconds: float | None = None
        self.rejected_token: str | None = None
        self.reason = ""


class SessionState:
    """The session: its servers in order, and what they share."""

    def __init__(
        self,
        world: World,
        profile: ClaudeProfile,
        homes: Homes,
        sources: Sources,
        real_directory: str,
        session_id: str,
    ) -> None:
        self.world, self.profile, self.homes = world, profile, homes
        self.wording = WORDINGS[profile.log_wording]
        self.sources = sources
        self.environment: Mapping[str, str] = sources.environment
        self.directory, self.session_id = world.env.directory, session_id
        self.identity = identity(profile)
        self.needs_auth_text: str | None = None
        self._needs_auth_changes: dict[str, Mapping[str, int] | None] = {}
        self._needs_auth_writing = False
        log_name = file_name(world.clock.now())
        self.servers = {
            name: ServerState(
                sourced,
                ServerLog(
                    world,
                    f"{log_directory(homes.cache, real_directory, name)}/{log_name}",
                    session_id,
                    self.directory,
                ),
            )
            for name, sourced in sources.servers.items()
        }

    @property
    def problems(self) -> Sequence[Problem]:
        """What was wrong with the files."""
        return self.sources.problems

    def budget_seconds(self, server: LoadedServer) -> float:
        """The budget of one start attempt."""
        return attempt_seconds(server, self.environment, self.profile)

    def limit_ms(self, server: LoadedServer) -> int:
        """The same as the log prints it."""
        return milliseconds(self.budget_seconds(server))

    async def store_text(self) -> str | None:
        """The credential store as it is now."""
        return await read_text(self.world, f"{self.homes.config}/{STORE_NAME}")

    async def read_needs_auth(self) -> None:
        """Read the needs-auth cache, once at the start."""
        self.needs_auth_text = await read_text(self.world, f"{self.homes.config}/{needs_auth.FILE_NAME}")

    async def remember_refusal(self, name: str, *, passing: bool = False) -> None:
        """Write down that a server wants a sign-in; `passing` where it may do without one in a while."""
        await self._change_needs_auth(name, needs_auth.refusal(int(self.world.clock.now() * 1000), passing=passing))

    async def forget_refusal(self, name: str) -> None:
        """A connected server is struck off; nothing is read or written when it was not there at the start."""
        held = needs_auth.entries(self.needs_auth_text)
        if isinstance(held, dict) and name in held:
            await self._change_needs_auth(name, None)

    async def _change_needs_auth(self, name: str, entry: Mapping[str, int] | None) -> None:
        """Changes of one session never overtake each other; another process's may be lost, as there is no lock."""
        self._needs_auth_changes[name] = entry
        if self._needs_auth_writing:
            return
        self._needs_auth_writing = True
        path = f"{self.homes.config}/{needs_auth.FILE_NAME}"
        while self._needs_auth_changes:
            changes, self._needs_auth_changes = self._needs_auth_changes, {}
            text = needs_auth.updated(await read_text(self.world, path), changes)
            if text is not None:
                await write_text(self.world, path, text)
        self._needs_auth_writing = False


def identity(profile: ClaudeProfile) -> Identity:
    """What this version says it is."""
    probing = profile.stdio_probe_ms > 0
    return Identity(
        "claude-code",
        profile.version,
        PROTOCOL_VERSION,
        probe=probing,
        respawn_on_probe_exit=probing,
        user_agent=f"claude-code/{profile.version} (sdk-cli)",
        capabilities={"roots": {"listChanged": True}, "elicitation": {}},
        client_info={
            "title": "Claude Code",
            "description": "Anthropic's agentic coding tool",
            "websiteUrl": "https://claude.com/claude-code",
        },
        fallback_statuses=FALLBACK_STATUSES,
        opens_stream=True,
    )


async def write_text(world: World, path: str, text: str) -> None:
    """Write a file of the configuration directory; a failure is passed over."""
    try:
        await world.files.make_directory(path.rpartition("/")[0])
        await world.files.write(path, text.encode("utf-8", "replace"))
    except OSError:
        return
