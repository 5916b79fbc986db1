"""One entry alone in a session, on one runtime: what is written for it and what the runtime makes of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from fake_runtimes import runtimes as fakes
from fake_runtimes.loaded import LoadedServer, Problem
from fake_runtimes.pi.config import oauth_considered
from fake_runtimes.profile import PINNED, Profile, UnknownProfileError, load_profile, parse_runtime
from harness.errors import CannotRunError, UserInputError
from harness.preparation import RUNTIMES, written_config
from harness.reference.prepare.failures import PreparationError
from harness.reference.prepare.request import Runtime as Family
from harness.reference.secrets.placeholders import MissingVariableError

if TYPE_CHECKING:
    from harness.gate.context import Context, EntryView

CLONE = "/clone"
"""Where the session's clone would lie; only the shape of paths below it matters."""

NO_SSE = "speaks streamable HTTP only, not SSE"
NO_OAUTH = "never considers OAuth for an entry with headers"

_FIRST_DYNAMIC_PORT, _DYNAMIC_PORTS = 49_152, 16_384


class Runtime(NamedTuple):
    """A runtime at a profiled version; `label` is the one spelling everywhere, e.g. `claude@2.1.268`."""

    family: Family
    label: str
    profile: Profile


class Spawn(NamedTuple):
    """`written` is the entry in the runtime's file, with `${NAME}` where a value would stand (None: not in the file).

    `problems` are the runtime's own words about this entry (or about the whole file); `warnings` and
    `error` are Zimmer's. `unreachable` says why a loaded server cannot connect all the same.
    """

    runtime: Runtime
    written: Mapping[str, Any] | None
    server: LoadedServer | None
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    error: str | None
    unreachable: str | None
    is_sse: bool

    @property
    def tool_name_room(self) -> int | None:
        """How many characters a tool name has left; None where the runtime sets no limit."""
        return fakes.tool_name_room(self.runtime.profile, self.server.name) if self.server else None

    @property
    def credential_key(self) -> str | None:
        """Where the runtime looks for a stored credential."""
        return fakes.lookup_key(self.runtime.profile, self.server) if self.server and self.server.url else None

    def in_first_request(self, ready_after_seconds: float) -> str:
        """Whether the tools of a server that is ready after that time are in the first model request."""
        if self.server is None:
            return "never"
        return fakes.in_first_request(self.runtime.profile, self.server, {}, ready_after_seconds)


def runtime_named(text: str) -> Runtime:
    """The runtime for `claude`, `codex@0.169.0` and the like. Raises fake_runtimes.profile.UnknownProfileError."""
    name = parse_runtime(text)
    family = next(family for family in RUNTIMES if name.startswith(f"{family}-"))
    return Runtime(family, name.replace("-", "@", 1), load_profile(name))


def runtime_asked(text: str, where: str) -> Runtime:
    """The runtime that a user names; `where` is for the message.

    Raises CannotRunError for a version of which there is no profile, and UserInputError for what is no runtime at all.
    """
    try:
        return runtime_named(text)
    except UnknownProfileError as error:
        if text.partition("@")[0] in PINNED:
            raise CannotRunError(f"{where}: {error}") from None
        raise UserInputError(f"{where}: {error}") from None


def marker(name: str) -> str:
    """The synthetic value that stands for a secret: fit for a host name, a path and a header."""
    if name.endswith("PORT"):
        return str(_FIRST_DYNAMIC_PORT + crc32(name.encode("utf-8")) % _DYNAMIC_PORTS)
    return f"marker-{name}-marker"


def spawn_entry(view: EntryView, runtime: Runtime, context: Context) -> Spawn:
    """Prepare a session that carries only this entry, and read its config as the runtime does."""
    required = frozenset(view.variables.required)
    is_sse = view.fields.get("type") == "sse"
    try:
        written = written_config(
            runtime.family,
            (view.name,),
            {view.name: view.raw},
            values=lambda name: marker(name) if name in required else None,
            clone=CLONE,
            instance=context.instance,
        )
    except (PreparationError, MissingVariableError) as error:
        return Spawn(runtime, None, None, (), (), str(error), None, is_sse)
    entry = written.servers.get(view.name)
    loaded = fakes.read(runtime.profile, written.text, {})
    server = next((server for server in loaded.servers if server.name == view.name), None)
    return Spawn(
        runtime=runtime,
        written=None if entry is None else _with_placeholders(entry, view.variables.required),
        server=server,
        problems=tuple(problem for problem in loaded.problems if problem.server in (view.name, None)),
        warnings=tuple(warning for warning in written.warnings if view.name in warning),
        error=None,
        unreachable=_unreachable(view, runtime, server),
        is_sse=is_sse,
    )


def _unreachable(view: EntryView, runtime: Runtime, server: LoadedServer | None) -> str | None:
    """Why a server that loads well cannot connect on this runtime all the same."""
    if server is None:
        return None
    if runtime.family == "codex" and view.fields.get("type") == "sse":
        return NO_SSE
    if runtime.family == "pi" and view.oauth_capable and not oauth_considered(server):
        return NO_OAUTH
    return None


def _with_placeholders(value: Any, names: tuple[str, ...]) -> Any:
    """`value` with every marker turned back into the placeholder it stands for."""
    if isinstance(value, str):
        for name in names:
            value = value.replace(marker(name), f"${{{name}}}")
        return value
    if isinstance(value, Mapping):
        return {key: _with_placeholders(item, names) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_placeholders(item, names) for item in value]
    return value
