"""Reading the resolved tree for a page, a tool or a spawn: an error of the catalog never reaches them.

Source: catalog-readers-degrade-empty, catalog-resolve-type-guard.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.catalog.entry import members
from harness.reference.catalog.roots import Root, read_roots

Resolve = Callable[[], Mapping[str, Any]]
"""Gives the resolved tree, one map of artifacts a kind; raises CatalogError."""


class CatalogError(Exception):
    """The catalog could not be resolved and no earlier tree stands in for it."""


class LogLine(NamedTuple):
    """A line for the application log."""

    level: Literal["warning", "error"]
    text: str


class Servers(NamedTuple):
    """The catalog, empty after a failure, what to log, and the warnings about it that have been told by now."""

    catalog: Catalog
    log: tuple[LogLine, ...]
    told: frozenset[str] = frozenset()


class Roots(NamedTuple):
    """The roots, none after a failure, and what to log."""

    roots: Mapping[str, Root]
    log: tuple[LogLine, ...]


def read_servers(resolve: Resolve, told: frozenset[str] = frozenset()) -> Servers:
    """The servers of the resolved tree.

    A refused budget is warned about once for a server and value, not at each page view: `told` is what the
    reading before has told (startup-timeout-warn-once-per-load).
    """
    tree, failure = resolved(resolve)
    if failure is not None:
        return Servers(Catalog({}), (LogLine("warning", f"MCP servers are not available: {failure}"),), told)
    catalog = read_catalog(artifacts(tree, "mcp"))
    news = untold(catalog.warnings, told)
    return Servers(catalog, tuple(LogLine("warning", text) for text in news), frozenset(catalog.warnings))


def untold(warnings: tuple[str, ...], told: frozenset[str]) -> tuple[str, ...]:
    """The warnings that the log does not hold yet."""
    return tuple(text for text in warnings if text not in told)


def read_agent_roots(resolve: Resolve) -> Roots:
    """The roots of the resolved tree."""
    tree, failure = resolved(resolve)
    if failure is not None:
        return Roots({}, (LogLine("error", f"Agent roots are not available: {failure}"),))
    return Roots(read_roots(artifacts(tree, "roots")), ())


def resolved(resolve: Resolve) -> tuple[Mapping[str, Any], str | None]:
    """The tree, or an empty one and the text of the failure."""
    try:
        return resolve(), None
    except CatalogError as error:
        return {}, str(error)


def artifacts(tree: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The artifacts of one kind. One that is no object is dropped; a kind that is none counts as empty."""
    return {name: raw for name, raw in members(tree.get(kind)).items() if isinstance(raw, Mapping)}
