"""McpServerOptions: the one payload behind the pickers and the REST lists (seed 000, "Availability")."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.readiness.contained import contained
from harness.reference.readiness.probe import Status


class Option(NamedTuple):
    """One server as it is offered. `unavailable_reason` is plain text, and None exactly when it can start."""

    name: str
    title: str
    description: str | None
    unavailable: bool
    unavailable_reason: str | None
    startup_timeout_sec: int | None


def computed_statuses(compute: Callable[[], Sequence[Status]]) -> Sequence[Status]:
    """The statuses of a request; none at all where the computation as a whole cannot run (offer-options-fallback)."""
    return contained(compute).answer or ()


def options(catalog: Catalog, statuses: Iterable[Status]) -> tuple[Option, ...]:
    """All servers in catalog order, never filtered. A server without a status carries no flag."""
    known = {status.name: status for status in statuses}
    return tuple(
        Option(
            name=name,
            title=entry.title,
            description=entry.description,
            unavailable=unavailable(known.get(name)),
            unavailable_reason=unavailable_reason(known.get(name)),
            startup_timeout_sec=entry.startup_timeout_sec,
        )
        for name, entry in catalog.entries.items()
    )


def unavailable(status: Status | None) -> bool:
    """The flag of an option."""
    return status is not None and not status.available


def unavailable_reason(status: Status | None) -> str | None:
    """The plain reason of an option, None where it can start."""
    return None if status is None else status.reason_plain


class Picker(NamedTuple):
    """Names in the order of a picker, and those that carry the Unavailable badge, in that order."""

    order: tuple[str, ...]
    badged: tuple[str, ...]


def picker(servers: Iterable[tuple[str, bool]]) -> Picker:
    """A picker over (name, unavailable) in catalog order: nothing is dropped, unavailable ones go last."""
    ordered = sorted(servers, key=lambda server: server[1])
    return Picker(tuple(name for name, _ in ordered), tuple(name for name, flagged in ordered if flagged))


def mcp_servers_answer(offered: Iterable[Option]) -> dict[str, Any]:
    """The body of GET /api/v1/mcp_servers."""
    return {"mcp_servers": server_list(offered)}


def configs_answer(
    offered: Iterable[Option],
    *,
    agent_roots: Sequence[Mapping[str, Any]] = (),
    runtime_models: Sequence[Any] = (),
    goals: Sequence[Any] = (),
) -> dict[str, Any]:
    """The body of GET /api/v1/configs. Roots keep the plain names of their default servers."""
    return {
        "mcp_servers": server_list(offered),
        "agent_roots": [dict(root) for root in agent_roots],
        "runtime_models": list(runtime_models),
        "goals": list(goals),
    }


def server_list(offered: Iterable[Option]) -> list[dict[str, Any]]:
    """The servers of a REST answer: the same list on both endpoints."""
    return [option._asdict() for option in offered]
