"""A session's own server list: seeding, keeping, showing, losing."""

from itertools import pairwise

import pytest

from harness.reference.prepare.argv import prepare_argv
from harness.reference.selection import session as rules
from harness.reference.selection.patch import patch
from harness.reference.selection.session import Session
from harness.reference.selection.zimmer import inject

CATALOG = ("context7", "playwright-custom", "a", "b", "digitalocean")
BASE_URL = "http://localhost:3000"


@pytest.mark.requirement("selection-seeded-from-root")
def test_a_session_without_a_list_starts_with_a_copy_of_its_roots_defaults():
    defaults = ["context7"]
    session = rules.seed(None, defaults)
    defaults.append("a")
    assert session.chosen == ("context7",)
    assert session.explicitly_empty is False


@pytest.mark.requirement("selection-explicit-list-replaces")
def test_a_list_given_at_creation_is_used_exactly():
    assert rules.seed(["context7"], ["playwright-custom"]) == Session(("context7",))


@pytest.mark.requirement("selection-explicit-empty-means-none")
def test_an_empty_list_is_deliberate_and_stays_empty():
    session = rules.seed([], ["context7"])
    assert (session.chosen, session.explicitly_empty) == ((), True)
    for _ in range(3):
        session = rules.backfill(session, ["context7"], CATALOG)
    assert (session.chosen, session.explicitly_empty) == ((), True)


@pytest.mark.requirement("selection-only-arrays-explicit")
@pytest.mark.parametrize(
    ("requested", "chosen", "empty"),
    [(None, ("context7",), False), ("a", ("context7",), False), ({"0": "a"}, ("context7",), False), ([], (), True)],
)
def test_only_an_array_counts_as_a_given_list(requested, chosen, empty):
    session = rules.seed(requested, ["context7"])
    assert (session.chosen, session.explicitly_empty) == (chosen, empty)


@pytest.mark.requirement("selection-owned-after-seeding")
def test_later_defaults_do_not_reach_a_session_that_has_a_list():
    session = rules.seed(None, ["context7"])
    for later_defaults in (["a", "b"], [], ["b"]):
        session = rules.backfill(session, later_defaults, CATALOG)
        assert rules.effective_servers(session) == ("context7",)


def test_a_list_that_is_empty_by_accident_gets_the_defaults_that_exist():
    assert rules.backfill(Session(), ["gone", "a"], CATALOG).chosen == ("a",)
    assert rules.backfill(Session(), ["gone"], CATALOG).chosen == ()


@pytest.mark.requirement("selection-create-unknown-refused")
def test_creating_with_an_unknown_name_is_refused_and_names_it():
    refused = rules.create(["nope", "context7", "zip"], [], CATALOG)
    assert (refused.status, refused.error, refused.session) == (422, "Validation failed", None)
    assert refused.message == "Mcp servers contains invalid server(s): nope, zip"
    assert rules.create(["nope"], [], CATALOG).tool_error == (
        "Validation failed: Mcp servers contains invalid server(s): nope"
    )
    created = rules.create(["context7"], [], CATALOG)
    assert (created.status, created.tool_error) == (201, None)


@pytest.mark.requirement("selection-names-in-order")
def test_the_order_given_is_kept_and_does_not_count_in_a_comparison():
    assert rules.seed(["b", "a"], []).chosen == ("b", "a")
    assert patch({"mcp_servers": ["b", "a"]}, ["a"], CATALOG).mcp_servers == ("b", "a")
    assert rules.same_servers(["b", "a"], ["a", "b"])
    assert not rules.same_servers(["a", "a"], ["a", "b"])


@pytest.mark.requirement("selection-flags-name-effective-set")
def test_air_gets_one_flag_for_each_chosen_and_each_plugin_server():
    bundled = ("figma", "image-diff", "svg-tracer", "playwright-custom")
    argv = prepare_argv("claude", "/clone", chosen=("remote-fs-screenshots",), plugin_servers=bundled)
    named = [value for flag, value in pairwise(argv) if flag == "--mcp-server"]
    assert named == ["remote-fs-screenshots", *bundled]
    assert "--mcp-server" not in prepare_argv("claude", "/clone")


@pytest.mark.requirement("selection-plugin-readds")
def test_a_plugin_brings_its_server_in_without_choosing_it():
    bundled = rules.plugin_servers(["p", "gone"], {"p": ["b"]})
    session = Session((), explicitly_empty=True, plugin_servers=bundled)
    assert rules.effective_servers(session) == ("b",)
    assert rules.session_json(session)["all_mcp_servers"] == ["b"]
    assert rules.session_json(session)["mcp_servers"] == []


@pytest.mark.requirement("selection-auto-injected", "selection-injected-recorded")
def test_a_session_without_servers_still_gets_the_self_session_server():
    session = Session((), explicitly_empty=True)
    assert rules.session_json(session)["injected_mcp_servers"] == []
    prepared = rules.record_injected(session, inject({}, [], BASE_URL))
    assert rules.session_json(prepared)["injected_mcp_servers"] == ["zimmer-self-session"]


@pytest.mark.requirement("selection-injected-recorded")
def test_a_chosen_zimmer_server_is_not_reported_as_injected():
    session = rules.record_injected(Session(("zimmer-sessions",)), ["zimmer-self-session"])
    assert rules.session_json(session)["injected_mcp_servers"] == ["zimmer-self-session"]


@pytest.mark.requirement("selection-three-json-fields")
def test_session_json_shows_chosen_injected_and_all():
    session = rules.record_injected(Session(("digitalocean",)), ["zimmer-self-session"])
    assert rules.session_json(session) == {
        "mcp_servers": ["digitalocean"],
        "injected_mcp_servers": ["zimmer-self-session"],
        "all_mcp_servers": ["digitalocean", "zimmer-self-session"],
    }


@pytest.mark.requirement("selection-all-is-union")
def test_all_servers_are_chosen_then_plugin_then_injected_each_once():
    session = Session(
        ("remote-fs-screenshots",),
        plugin_servers=("playwright-custom", "remote-fs-screenshots"),
        injected=("zimmer-self-session",),
    )
    expected = ("remote-fs-screenshots", "playwright-custom", "zimmer-self-session")
    assert rules.all_mcp_servers(session) == expected


@pytest.mark.requirement("selection-injected-not-chosen")
def test_injected_servers_are_not_chosen_not_counted_and_not_removable():
    fifty = tuple(f"s{n}" for n in range(50))
    session = rules.record_injected(Session(fifty), ["zimmer-self-session"])
    assert session.chosen == fifty
    assert patch({"mcp_servers": list(fifty)}, session.chosen, fifty).status == 200
    cleared = patch({"mcp_servers": []}, session.chosen, fifty)
    assert "zimmer-self-session" in inject(dict.fromkeys(cleared.mcp_servers), [], BASE_URL)


@pytest.mark.parametrize(
    ("statuses", "lost"),
    [
        ({"a": "connected", "b": "pending", "c": "failed"}, ("a",)),
        ({"b": "failed"}, ("b",)),
        ({"zimmer-self-session": "connected"}, ()),
        ({"t": "connected", "b": "failed", "c": "connected"}, ("t", "b")),
        ({}, ()),
    ],
)
def test_lost_servers_were_there_once_and_are_carried_no_more(statuses, lost):
    shown = {name: {"status": status} for name, status in statuses.items()}
    assert rules.lost_servers(["c"], ["zimmer-self-session"], shown) == lost


def test_a_session_without_a_history_has_lost_nothing():
    assert rules.lost_servers([], [], None) == ()
