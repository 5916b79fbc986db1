"""Which roots get a server by default."""

from __future__ import annotations

from typing import Any

import pytest

from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.catalog.roots import default_mcp_servers, read_roots, unknown_default_roots
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.selection.session import backfill, create, seed
from harness.reference.surfaces.roster import root_defaults


def catalog_of(**roots_by_server: Any) -> Catalog:
    """A catalog of stdio servers, each with its default_in_roots."""
    return read_catalog(
        {
            name: {"type": "stdio", "command": "npx", "default_in_roots": roots}
            for name, roots in roots_by_server.items()
        }
    )


@pytest.mark.requirement("catalog-default-in-roots-seeds")
def test_the_defaults_of_a_root_are_the_entries_that_name_it():
    catalog = catalog_of(a=["r"], b=None, c=["r", "s"])
    roots = read_roots({"r": {"default_mcp_servers": ["b"]}, "s": {"default_mcp_servers": ["a", "b"]}, "t": {}})
    assert default_mcp_servers("r", catalog, roots) == ("a", "c")
    assert default_mcp_servers("s", catalog, roots) == ("c",)
    assert default_mcp_servers("t", catalog, roots) == ()


@pytest.mark.requirement("catalog-default-order")
def test_defaults_keep_catalog_order_without_duplicates():
    assert default_mcp_servers("r", catalog_of(c=["r"], a=["r", "r"]), ["r"]) == ("c", "a")


@pytest.mark.requirement("catalog-default-unknown-root")
def test_a_default_for_an_unknown_root_is_ignored_and_told():
    catalog = catalog_of(a=["ghost"], b=["r", "ghost", "ghost"])
    assert default_mcp_servers("ghost", catalog, ["r", "s"]) == ()
    assert default_mcp_servers("r", catalog, ["r", "s"]) == ("b",)
    assert default_mcp_servers("s", catalog, ["r", "s"]) == ()
    assert catalog.names == ("a", "b")
    assert unknown_default_roots(catalog, ["r", "s"]) == (("a", "ghost"), ("b", "ghost"))


@pytest.mark.requirement("catalog-default-star")
def test_a_star_means_every_root_where_that_reading_is_on():
    catalog = catalog_of(a=["*"], b=["r"])
    assert default_mcp_servers("r", catalog, ["r", "s"]) == ("b",)
    assert default_mcp_servers("r", catalog, ["r", "s"], star=True) == ("a", "b")
    assert default_mcp_servers("s", catalog, ["r", "s"], star=True) == ("a",)
    assert unknown_default_roots(catalog, ["r", "s"]) == (("a", "*"),)
    assert unknown_default_roots(catalog, ["r", "s"], star=True) == ()


@pytest.mark.requirement("catalog-default-unavailable-kept")
def test_a_default_that_cannot_start_now_is_still_a_default():
    catalog = read_catalog(
        {
            "a": {"type": "stdio", "command": "npx", "default_in_roots": ["r"]},
            "broken": {
                "type": "stdio",
                "command": "npx",
                "default_in_roots": ["r"],
                "unavailable": "Retired.",
            },
            "unset": {"type": "stdio", "command": "npx", "default_in_roots": ["r"], "env": {"T": "${T}"}},
        }
    )
    defaults = default_mcp_servers("r", catalog, ["r"])
    statuses = judge_all(catalog, SecretsLoader().resolution, lambda _: None)
    assert defaults == ("a", "broken", "unset")
    assert seed(None, defaults).chosen == ("a", "broken", "unset")
    assert root_defaults(defaults, statuses) == "`a`, `broken` (unavailable), `unset` (unavailable)"


@pytest.mark.requirement("catalog-default-in-roots-only-defaults")
def test_a_new_default_changes_no_session_that_exists():
    before, after = catalog_of(a=[], b=["r"]), catalog_of(a=["r"], b=["r"])
    session = seed(None, default_mcp_servers("r", before, ["r"]))
    assert session.chosen == ("b",)
    assert backfill(session, default_mcp_servers("r", after, ["r"]), after.names) == session
    assert seed(None, default_mcp_servers("r", after, ["r"])).chosen == ("a", "b")


@pytest.mark.requirement("catalog-default-in-roots-only-defaults")
def test_any_root_may_pick_a_server_that_is_the_default_of_another():
    catalog = catalog_of(a=["r"], b=["q"])
    created = create(["a"], default_mcp_servers("q", catalog, ["q", "r"]), catalog.names)
    assert created.status == 201
    assert created.session is not None
    assert created.session.chosen == ("a",)
