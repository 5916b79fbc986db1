"""PATCH /api/v1/sessions/:id/mcp_servers and the editor of the session page."""

import pytest

from harness.reference.selection.patch import change, edit_on_page, patch, shown_on_page
from harness.reference.selection.session import Session, session_json
from scenarios.preparing import REMOTE, again, prepared, servers

CATALOG = ("context7", "a", "b", "c")


def send(*names: object, before: tuple[str, ...] = ("a",), **status: object):
    return patch({"mcp_servers": list(names)}, before, CATALOG, status)


@pytest.mark.requirement("selection-patch-mutates")
def test_a_patch_replaces_the_list_in_the_order_sent():
    answer = send("c", "b")
    assert (answer.status, answer.error, answer.message) == (200, None, "MCP servers updated")
    assert answer.mcp_servers == ("c", "b")
    assert answer.explicitly_empty is False


@pytest.mark.requirement("selection-patch-max-50")
def test_fifty_servers_are_taken_and_fifty_one_refused():
    names = tuple(f"s{n}" for n in range(51))
    assert patch({"mcp_servers": list(names[:50])}, ["a"], names).mcp_servers == names[:50]
    refused = patch({"mcp_servers": list(names)}, ["a"], names)
    assert refused.status == 422
    assert refused.mcp_servers == ("a",)
    assert refused.body == {
        "error": "Too many servers",
        "message": "Maximum 50 MCP servers",
        "messages": ["Maximum 50 MCP servers"],
    }


@pytest.mark.requirement("selection-patch-count-before-clean")
def test_blanks_count_towards_the_limit():
    assert send("context7", *[""] * 50).error == "Too many servers"
    assert send("context7", *[""] * 49).mcp_servers == ("context7",)


@pytest.mark.requirement("selection-patch-order-of-checks")
@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ([f"unknown{n}" for n in range(51)], "Too many servers", "Maximum 50 MCP servers"),
        ("context7", "Invalid parameter", "mcp_servers must be an array"),
        ("", "Invalid parameter", "mcp_servers must be an array"),
        (False, "Invalid parameter", "mcp_servers must be an array"),
        ({"0": "a"}, "Invalid parameter", "mcp_servers must be an array"),
        (["context7", "nope", "zip"], "Invalid servers", "Invalid MCP servers: nope, zip"),
        (["a", 5, True], "Invalid servers", "Invalid MCP servers: 5, true"),
        (["zimmer-self-session"], "Invalid servers", "Invalid MCP servers: zimmer-self-session"),
        (["x" * 101], "Invalid servers", "Invalid MCP servers: " + "x" * 100),
    ],
)
def test_the_first_check_that_fails_refuses_the_list(value, error, message):
    answer = patch({"mcp_servers": value}, ["a"], CATALOG, {"a": {"status": "connected"}})
    assert (answer.status, answer.error, answer.message) == (422, error, message)
    assert (answer.mcp_servers, answer.explicitly_empty, answer.log) == (("a",), False, None)
    assert answer.mcp_servers_status == {"a": {"status": "connected"}}


@pytest.mark.requirement("selection-patch-order-of-checks")
def test_names_are_cleaned_before_the_catalog_is_asked():
    long_name = "n" * 100
    assert send("", " ", " context7 ", None).mcp_servers == ("context7",)
    assert patch({"mcp_servers": [long_name + "m"]}, [], [long_name]).mcp_servers == (long_name,)


@pytest.mark.requirement("selection-patch-clear")
@pytest.mark.parametrize("body", [{}, {"mcp_servers": None}, {"mcp_servers": []}, {"mcp_servers": ["", " "]}])
def test_a_patch_without_names_clears_the_list_deliberately(body):
    answer = patch(body, ["a"], CATALOG)
    assert (answer.status, answer.mcp_servers, answer.explicitly_empty) == (200, (), True)


@pytest.mark.requirement("selection-patch-no-availability-gate")
def test_a_server_that_cannot_start_is_taken_without_a_warning():
    answer = send("b", b={"status": "failed", "error": "missing_configuration"})
    assert answer.status == 200
    assert answer.body == {"message": "MCP servers updated"}


@pytest.mark.requirement("selection-patch-log-and-status")
@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (("a", "b"), ("b", "c"), "MCP servers updated via API (added: c; removed: a)"),
        (("a",), ("a", "c", "b"), "MCP servers updated via API (added: c, b)"),
        (("a", "b"), (), "MCP servers updated via API (removed: a, b)"),
        (("a", "b"), ("a", "b"), None),
        (("a", "b"), ("b", "a"), None),
        ((), (), None),
    ],
)
def test_a_change_of_membership_is_logged(before, after, line):
    assert send(*after, before=before).log == line


@pytest.mark.requirement("selection-patch-log-and-status")
def test_removed_names_leave_the_status_map_and_others_stay():
    statuses = {"a": {"status": "failed"}, "b": {"status": "connected"}, "injected": {"status": "connected"}}
    answer = patch({"mcp_servers": ["b", "c"]}, ["a", "b"], CATALOG, statuses)
    assert set(answer.mcp_servers_status) == {"b", "injected"}
    assert set(statuses) == {"a", "b", "injected"}


@pytest.mark.requirement("selection-ui-mutates")
def test_page_and_api_edit_one_list_by_the_same_rules():
    on_page = edit_on_page(Session(("a",)), ["c", "b"], CATALOG).session
    assert session_json(on_page)["mcp_servers"] == ["c", "b"]
    over_rest = change(on_page, {"mcp_servers": ["context7"]}, CATALOG).session
    assert shown_on_page(over_rest) == ("context7",)
    refused = edit_on_page(over_rest, ["nope"], CATALOG)
    assert refused.answer.message == "Invalid MCP servers: nope"
    assert refused.session == over_rest
    assert edit_on_page(over_rest, [], CATALOG).session == Session((), explicitly_empty=True)


@pytest.mark.requirement("selection-patch-not-in-place")
@pytest.mark.parametrize("runtime", ["claude", "codex", "pi"])
def test_a_patch_changes_the_list_and_the_next_preparation_the_whole_file(runtime):
    tree = {"a": REMOTE, "b": REMOTE}
    written = prepared(runtime, ["a"], tree)
    text = written.text
    patched = change(Session(("a",)), {"mcp_servers": ["b"]}, tuple(tree)).session
    assert patched.chosen == ("b",)
    assert written.text == text
    assert set(servers(written)) == {"a", "zimmer-self-session"}
    assert set(servers(again(runtime, list(patched.chosen), tree, written))) == {"b", "zimmer-self-session"}
