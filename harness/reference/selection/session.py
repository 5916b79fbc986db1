"""A session's server list: how it is seeded, changed, kept and shown.

Sources: seed 000 "Selection is per session"; requirements selection-seeded-from-root to
selection-injected-recorded, selection-patch-*, floor-lost-*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

PENDING = "pending"


class Session(NamedTuple):
    """What a session stores of its servers, each list in the order it was given.

    `chosen` is `mcp_servers`; `explicitly_empty` is `mcp_servers_explicitly_empty`; `plugin_servers` are
    those its plugins bundle; `injected` is what the last prepare injected.
    """

    chosen: tuple[str, ...] = ()
    explicitly_empty: bool = False
    plugin_servers: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()


class Creation(NamedTuple):
    """The outcome of creating a session: `status` 201 or 422; `tool_error` is the text of the tool's answer."""

    status: int
    session: Session | None = None
    error: str | None = None
    message: str | None = None

    @property
    def tool_error(self) -> str | None:
        return None if self.error is None else f"{self.error}: {self.message}"


def seed(requested: object, root_defaults: Iterable[str]) -> Session:
    """A new session's list: a copy of the root's defaults, or exactly the list that was given.

    Only an array is a given list; None (absent or null) and anything else mean the defaults. An empty
    array is a deliberate emptiness that nothing later fills again.
    """
    if isinstance(requested, list | tuple):
        return Session(tuple(requested), explicitly_empty=not requested)
    return Session(tuple(root_defaults))


def create(requested: object, root_defaults: Iterable[str], catalog: Collection[str]) -> Creation:
    """Create a session; a name that is not in the catalog is refused, whatever a server's readiness."""
    session = seed(requested, root_defaults)
    unknown = unknown_names(session.chosen, catalog)
    if unknown:
        message = f"Mcp servers contains invalid server(s): {', '.join(unknown)}"
        return Creation(422, error="Validation failed", message=message)
    return Creation(201, session)


def unknown_names(names: Iterable[str], catalog: Collection[str]) -> tuple[str, ...]:
    """The names that the catalog does not have, in the order given."""
    return tuple(name for name in names if name not in catalog)


def backfill(session: Session, root_defaults: Iterable[str], catalog: Collection[str]) -> Session:
    """The session as a prepare finds it: an empty list that nobody meant gets the root's defaults (those that exist).

    A list with anything in it, or emptied on purpose, stays as the session owns it
    (selection-owned-after-seeding).
    """
    if session.chosen or session.explicitly_empty:
        return session
    return session._replace(chosen=tuple(name for name in root_defaults if name in catalog))


def effective_servers(session: Session) -> tuple[str, ...]:
    """What a prepare hands to AIR: the chosen servers, then those of plugins that are not yet listed."""
    return union(session.chosen, session.plugin_servers)


def all_mcp_servers(session: Session) -> tuple[str, ...]:
    """Every server the session can use: chosen, plugin, injected, each name once (selection-all-is-union)."""
    return union(session.chosen, session.plugin_servers, session.injected)


def union(*lists: Iterable[str]) -> tuple[str, ...]:
    """The lists one after the other, each name at its first place."""
    return tuple(dict.fromkeys(name for names in lists for name in names))


def plugin_servers(plugins: Iterable[str], catalog: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The servers that a session's plugins bundle, in plugin order; an unknown plugin bundles none."""
    return union(*(catalog.get(plugin, ()) for plugin in plugins))


def record_injected(session: Session, injected: Iterable[str]) -> Session:
    """The session after a prepare that injected these servers; the chosen list does not change."""
    return session._replace(injected=tuple(injected))


def custom_metadata(session: Session) -> dict[str, list[str]]:
    """What the session's metadata keeps of its last prepare: no key where nothing was injected
    (prepare-injected-recorded).
    """
    return {"injected_mcp_servers": list(session.injected)} if session.injected else {}


def session_json(session: Session) -> dict[str, list[str]]:
    """The three fields of session_json (selection-three-json-fields)."""
    return {
        "mcp_servers": list(session.chosen),
        "injected_mcp_servers": list(session.injected),
        "all_mcp_servers": list(all_mcp_servers(session)),
    }


def same_servers(first: Iterable[str], second: Iterable[str]) -> bool:
    """Are two lists the same selection? Order does not count in a comparison with defaults."""
    return sorted(first) == sorted(second)


def lost_servers(
    selected: Iterable[str], injected: Iterable[str], statuses: Mapping[str, Mapping[str, Any]] | None
) -> tuple[str, ...]:
    """The servers the session used to have and no longer carries, in the order of its status map.

    A pending server was never there; a failed one was (floor-lost-skips-pending, floor-lost-counts-failed).
    """
    carried = {*selected, *injected}
    known = (statuses or {}).items()
    return tuple(name for name, status in known if name not in carried and status.get("status") != PENDING)
