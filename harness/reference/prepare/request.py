"""What a preparation is asked to do and what it answers. Frozen values; texts in, texts out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.secrets.placeholders import Lookup
from harness.reference.selection.zimmer import Instance

Runtime = Literal["claude", "codex", "pi"]

JSON_FILE = ".mcp.json"
CODEX_FILE = ".codex/config.toml"
CONFIG_FILES: Mapping[Runtime, str] = MappingProxyType({"claude": JSON_FILE, "codex": CODEX_FILE, "pi": JSON_FILE})
SERVERS_KEYS: Mapping[Runtime, str] = MappingProxyType(
    {"claude": "mcpServers", "codex": "mcp_servers", "pi": "mcpServers"}
)
CREATED_MODE = 0o600
"""A file that holds resolved secrets is its owner's alone where Zimmer creates it
(prepare-secret-file-mode).
"""


class Record(NamedTuple):
    """What the last preparation of the same clone left in its file: servers it owns, servers it injected.

    Without a record everything found in the file counts as the repository's own.
    """

    owned: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()


NO_RECORD = Record()


@dataclass(frozen=True, slots=True)
class PrepareRequest:
    """One preparation of one clone for one runtime.

    `clone` is the absolute working directory. `chosen` and `plugin_servers` are the session's servers,
    `other_artifacts` whether it also has skills, hooks or plugins. `translated` and `settings` are what
    AIR adds to the config (empty for Pi, where AIR writes nothing), `rewritten` the repository's own
    entries whose placeholders it replaced. `files` are the clone's config
    texts before AIR ran. `lookup` is the whole secrets chain. `elicitation` are the values that go into
    every stdio entry's env (`elicitation.values`), `dotenv` the clone's `.env`, which beats them.
    `degraded` is the session's `mcp_degraded_servers`.
    """

    runtime: Runtime
    clone: str
    catalog: Catalog
    instance: Instance
    lookup: Lookup
    chosen: tuple[str, ...] = ()
    plugin_servers: tuple[str, ...] = ()
    other_artifacts: bool = False
    translated: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    rewritten: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    default_subagent_roots: tuple[str, ...] = ()
    earlier: Record = NO_RECORD
    elicitation: Mapping[str, str] = field(default_factory=dict)
    dotenv: Mapping[str, str] = field(default_factory=dict)
    degraded: Mapping[str, str] = field(default_factory=dict)

    @property
    def selected(self) -> tuple[str, ...]:
        """The session's servers: chosen, then what its plugins bundle, each once."""
        return selected_servers(self)

    @property
    def config_text(self) -> str | None:
        """The text of the runtime's config before this preparation; None: no such file."""
        return self.files.get(CONFIG_FILES[self.runtime])


def selected_servers(request: PrepareRequest) -> tuple[str, ...]:
    """The servers that are written: what the session selects, whatever is declared or recorded about them.

    A declaration is told elsewhere and a degrade record goes into the prompt; a server that is fixed
    meanwhile connects at the next spawn (unavailable-not-filtered-from-prepare, prepare-degraded-still-written).
    """
    return tuple(dict.fromkeys((*request.chosen, *request.plugin_servers)))


class FileWrite(NamedTuple):
    """A file to write in one piece (temporary file, then rename). `path` is relative to the clone.

    `mode` is None where the file exists and keeps the mode it has.
    """

    path: str
    text: str
    mode: int | None


@dataclass(frozen=True, slots=True)
class Prepared:
    """The answer: files to write (none on the baseline path without injections), and what to remember.

    `servers` are the entries as they stand in the file, `local` the names that are the repository's own,
    `record` goes into the next request, `excluded` are paths to keep out of commits, `steps` the trace.
    """

    writes: tuple[FileWrite, ...]
    servers: Mapping[str, Any]
    injected: tuple[str, ...]
    local: tuple[str, ...]
    record: Record
    warnings: tuple[str, ...]
    steps: tuple[str, ...]
    excluded: tuple[str, ...] = ()
