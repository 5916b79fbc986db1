"""The MCP section of get_configs: what an agent can attach, and a short roster of what exists and cannot start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.reference.catalog.catalog import Catalog
from harness.reference.readiness.probe import Status

NO_SERVERS = "*No MCP servers available.*"
NONE_USABLE = "*Every catalog server is currently unavailable — see below.*"


def mcp_section(catalog: Catalog, statuses: Iterable[Status]) -> str:
    """The section's Markdown, in catalog order, for one computation of the statuses.

    A server without a status counts as usable: not knowing never takes a server off the list.
    """
    known = {status.name: status for status in statuses}
    blocked = [known[name] for name in catalog.names if name in known and is_blocked(known[name])]
    usable = [name for name in catalog.names if name not in {status.name for status in blocked}]
    lines = ["## MCP Servers", "", header(len(usable), len(blocked)), ""]
    for name in usable:
        lines += [*item(name, catalog.entries[name].title, catalog.entries[name].description), ""]
    if blocked:
        lines += ["### Unavailable", "", roster_note(len(blocked)), "", *map(roster_line, blocked), ""]
    return "\n".join(lines)


def is_blocked(status: Status) -> bool:
    """Whether a server moves from the list to the roster."""
    return not status.available


def header(usable: int, blocked: int) -> str:
    """The line that counts, or the one that says there is nothing to count."""
    if not usable:
        return NONE_USABLE if blocked else NO_SERVERS
    others = "other 1 is" if blocked == 1 else f"other {blocked} are"
    total = f" (of {usable + blocked} in the catalog; the {others} unavailable, listed below)" if blocked else ""
    return f"Found {usable} usable server{'' if usable == 1 else 's'}{total}:"


def item(name: str, title: str, description: str | None) -> list[str]:
    """The lines of a usable server."""
    lines = [f"### {title}", f"- **Name:** `{name}`"]
    return lines if description is None else [*lines, f"- **Description:** {description}"]


def roster_line(status: Status) -> str:
    """One line a server: its name and the compact reason, nothing else of the entry."""
    return f"- `{status.name}` — unavailable: {status.reason_markdown}"


def roster_note(blocked: int) -> str:
    """What a reader must know of the roster: the servers exist, and what attaching one would cost."""
    subject, they, them = (
        ("1 catalog server", "It exists", "it")
        if blocked == 1
        else (f"{blocked} catalog servers", "They exist", "them")
    )
    return (
        f"{subject} cannot be attached right now. {they}, so do not register a replacement, and do not pass "
        f"{them} to `start_session`. An unresolved variable fails the whole session while it is prepared; a "
        "missing OAuth authorization parks the session until someone authorizes it; a server that is "
        "declared unavailable only leaves the session without its tools."
    )


def root_defaults(defaults: Sequence[str], statuses: Iterable[Status]) -> str:
    """A root's default servers, those that cannot start marked; the mark is no part of the name."""
    blocked = {status.name for status in statuses if is_blocked(status)}
    return ", ".join(f"`{name}` (unavailable)" if name in blocked else f"`{name}`" for name in defaults)
