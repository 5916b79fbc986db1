"""`air resolve` and `air prepare` as functions of a catalog, an argument list and file texts."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from . import adapters, toml_text, transforms

CONFIG_FILES = {"claude": ".mcp.json", "codex": ".codex/config.toml"}
LISTED_IDS = 8
LIST_FLAGS = ("--mcp-server", "--without-mcp-server", "--plugin", "--root")

Tree = Mapping[str, Any]


class AirResult(NamedTuple):
    """What one run of `air prepare` leaves behind.

    `entries` are the translated servers that AIR adds or replaces, `settings` the top-level keys beside them,
    `rewritten` the repository's own servers as its transforms left them, where they changed anything,
    `document` the config file on disk (its path and what it holds; also after a failed check; None where none is
    written), `manifest` the short names AIR owns.
    """

    exit_code: int
    entries: dict[str, Any]
    settings: dict[str, Any]
    rewritten: dict[str, Any]
    document: tuple[str, dict[str, Any]] | None
    manifest: tuple[str, ...]
    stderr: str

    @property
    def files(self) -> dict[str, str]:
        """The same file as path to text. Made when asked for: a preparation takes the entries as data."""
        if self.document is None:
            return {}
        path, document = self.document
        if path == CONFIG_FILES["codex"]:
            return {path: toml_text.emit(document)}
        return {path: json.dumps(document, indent=2, ensure_ascii=False) + "\n"}


def resolve(catalog_tree: object) -> dict[str, Any]:
    """`air resolve --json --no-scope`: every entry verbatim, unknown fields included.

    `$schema` is no entry, and a name that JavaScript objects swallow is lost on the way.
    """
    if not isinstance(catalog_tree, Mapping):
        return {}
    return {name: entry for name, entry in catalog_tree.items() if name not in ("$schema", "__proto__")}


def activated(argv: Sequence[str], roots: Tree, plugins: Tree) -> tuple[str, ...]:
    """The servers a run activates: root defaults unless `--without-defaults`, added, removed, then plugins'.

    A plugin's servers come after the removals, so a plugin can bring back a removed one.
    """
    flags = flag_values(argv)
    names: list[str] = []
    if "--without-defaults" not in argv:
        names += [name for root in flags["--root"] for name in named_list(roots.get(root), "default_mcp_servers")]
    names += flags["--mcp-server"]
    kept = [name for name in names if name not in flags["--without-mcp-server"]]
    kept += [name for plugin in flags["--plugin"] for name in named_list(plugins.get(plugin), "mcp_servers")]
    return tuple(dict.fromkeys(kept))


def flag_values(argv: Sequence[str]) -> dict[str, list[str]]:
    """The values of the repeatable flags, in order."""
    values: dict[str, list[str]] = {flag: [] for flag in LIST_FLAGS}
    for flag, value in pairwise(argv):
        if flag in values:
            values[flag].append(value)
    return values


def named_list(artifact: object, field: str) -> list[str]:
    """The texts in a list field of a root or plugin."""
    listed = artifact.get(field) if isinstance(artifact, Mapping) else None
    return [name for name in listed if isinstance(name, str)] if isinstance(listed, list | tuple) else []


def prepare(
    argv: Sequence[str],
    catalog_tree: object,
    *,
    target: str,
    existing: Mapping[str, str],
    environment: Mapping[str, str],
    secrets_file: Mapping[str, str] | None = None,
    manifest: Sequence[str] = (),
    roots: Tree | None = None,
    plugins: Tree | None = None,
    keeps_local_entries: bool = True,
    codex_adapter: Literal["checked", "real"] = "checked",
) -> AirResult:
    """`air prepare <adapter> …`. `existing` maps config paths to their text; `manifest` is the last run's."""
    adapter = argv[1]
    catalog = resolve(catalog_tree)
    names = activated(argv, roots or {}, plugins or {})
    unknown = [name for name in names if not isinstance(catalog.get(name), Mapping)]
    if unknown:
        return AirResult(1, {}, {}, {}, None, tuple(manifest), unknown_text(unknown, list(catalog)))
    local = {
        name: entry for name, entry in local_servers(adapter, existing).items() if name in names or name not in manifest
    }
    selected = {name: catalog[name] for name in names if not keeps(name, local, manifest, keeps_local_entries)}
    forwards = adapter == "codex" and codex_adapter == "real"
    entries = {name: translate(adapter, entry, forwards=forwards) for name, entry in selected.items()}
    present = local
    if not forwards:
        entries = transforms.interpolate(entries, environment, secrets_file)
        present = transforms.interpolate(local, environment, secrets_file)
    settings = codex_settings(selected) if adapter == "codex" else {}
    # Pi's adapter writes no servers, so AIR owns none there; what it was asked to prepare is only checked.
    written = {} if adapter == "pi" else entries
    unresolved = () if forwards else transforms.survivors({**present, **entries})
    return AirResult(
        exit_code=1 if unresolved else 0,
        entries=written,
        settings=settings,
        rewritten={name: entry for name, entry in present.items() if entry != local[name] and name not in entries},
        document=config_document(adapter, existing, {**present, **entries}, settings),
        manifest=tuple(written),
        stderr=transforms.error_text(target, unresolved) if unresolved else "",
    )


def codex_settings(selected: Tree) -> dict[str, Any]:
    """The one top-level key that the Codex adapter may write."""
    callback = adapters.callback_url(selected)
    return {} if callback is None else {"mcp_oauth_callback_url": callback}


def keeps(name: str, local: Tree, manifest: Sequence[str], keeps_local_entries: bool) -> bool:
    """Does AIR leave the entry of this name alone? Newer versions do when it is there and not theirs."""
    return keeps_local_entries and name in local and name not in manifest


def translate(adapter: str, entry: Tree, *, forwards: bool) -> dict[str, Any]:
    """One entry through an adapter. Pi has no output of its own: its servers are only checked."""
    if adapter != "codex":
        return adapters.claude_entry(entry)
    return adapters.codex_forwarding_entry(entry) if forwards else adapters.codex_entry(entry)


def unknown_text(unknown: Sequence[str], known: Sequence[str]) -> str:
    """The refusal of ids that no catalog provides; nothing has been written then."""
    listed = ", ".join(f"@local/{name}" for name in known[:LISTED_IDS]) or "(none)"
    more = f" … ({len(known)} total)" if len(known) > LISTED_IDS else ""
    lines = [f'Unknown MCP server ID "{name}". Available: {listed}{more}.' for name in unknown]
    return f"Error: {lines[0]}" if len(lines) == 1 else "Error: Activation errors:\n  - " + "\n  - ".join(lines)


def local_servers(adapter: str, existing: Mapping[str, str]) -> dict[str, Any]:
    """The servers of the config that is already there; an unreadable file counts as empty."""
    text = existing.get(CONFIG_FILES.get(adapter, ""))
    servers = parsed(adapter, text).get("mcp_servers" if adapter == "codex" else "mcpServers", {})
    return dict(servers) if isinstance(servers, Mapping) else {}


def parsed(adapter: str, text: str | None) -> dict[str, Any]:
    """A config text as a document; {} where there is none or it cannot be read."""
    if text is None:
        return {}
    try:
        document = tomllib.loads(text) if adapter == "codex" else json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def config_document(
    adapter: str, existing: Mapping[str, str], servers: Tree, settings: Tree
) -> tuple[str, dict[str, Any]] | None:
    """The config file as AIR leaves it: other top-level keys kept, servers as given. None for Pi."""
    if adapter == "pi":
        return None
    path = CONFIG_FILES[adapter]
    document = parsed(adapter, existing.get(path))
    if adapter == "claude":
        return path, {**document, "mcpServers": servers}
    return path, {**document, **settings, "mcp_servers": servers}
