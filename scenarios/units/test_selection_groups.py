"""Tool groups of a connection to Zimmer's own endpoint, and what the shipped entries reach."""

import json
from pathlib import Path

import pytest

from harness.reference.selection.connection import (
    BACKLOG_QUEUE_TOOLS,
    LEDGER_TOOLS,
    call,
    connect,
    connection_groups,
    session_actions,
    tool_names,
)
from harness.reference.selection.zimmer import is_zimmer_name

CATALOG = json.loads((Path(__file__).parents[2] / "mcp.json").read_text(encoding="utf-8"))
ENTRIES = {name: entry["url"] for name, entry in CATALOG.items() if is_zimmer_name(name)}
BASE_GROUPS = ("sessions", "notifications", "triggers", "health")


def reaching(tools: tuple[str, ...]) -> list[str]:
    return [name for name, url in ENTRIES.items() if set(tools) & set(tool_names(connect(url).groups))]


@pytest.mark.requirement("selection-scope-in-url")
@pytest.mark.parametrize(
    ("name", "groups"),
    [
        ("zimmer-sessions", ("sessions",)),
        ("zimmer-fleet", ("sessions", "health_readonly")),
        ("zimmer-gate-decisions", ("gate_decisions",)),
        ("zimmer-work-backlog", ("work_backlog",)),
    ],
)
def test_each_shipped_entry_names_its_groups_in_its_url(name, groups):
    assert connection_groups(ENTRIES[name]) == groups


@pytest.mark.requirement("selection-gate-separate")
def test_the_sessions_group_has_no_ledger_tool():
    assert not set(LEDGER_TOOLS) & set(tool_names(("sessions",)))
    assert "start_session" in tool_names(("sessions",))


@pytest.mark.requirement("selection-gate-opt-in")
@pytest.mark.parametrize("query", ["", "?tool_groups=", "?tool_groups=+,+", "?allowed_agent_roots=a"])
def test_a_connection_without_a_scope_carries_the_base_groups_and_no_ledger_tool(query):
    connection = connect(f"https://z/mcp{query}")
    assert connection.groups == BASE_GROUPS
    assert not set(LEDGER_TOOLS) & set(tool_names(connection.groups))
    named = connect("https://z/mcp?tool_groups=gate_decisions")
    assert set(LEDGER_TOOLS) <= set(tool_names(named.groups))


@pytest.mark.requirement("selection-gate-only-entry")
def test_the_gate_entry_alone_reaches_the_ledger():
    assert reaching(LEDGER_TOOLS) == ["zimmer-gate-decisions"]


@pytest.mark.requirement("selection-backlog-opt-in")
def test_the_backlog_entry_alone_appends_to_the_queue_and_pulls_from_it():
    assert reaching(BACKLOG_QUEUE_TOOLS) == ["zimmer-work-backlog"]
    assert set(BACKLOG_QUEUE_TOOLS) <= set(tool_names(("work_backlog",)))
    for tool in BACKLOG_QUEUE_TOOLS:
        assert call(connect("https://z/mcp"), tool).error == f"Unknown tool: {tool}"


@pytest.mark.requirement("selection-groups-not-listed-not-callable")
def test_a_tool_outside_the_groups_cannot_be_called():
    connection = connect("https://z/mcp?tool_groups=sessions")
    assert call(connection, "record_gate_decision") == (False, "Unknown tool: record_gate_decision")
    assert call(connection, "start_session") == (True, None)


@pytest.mark.requirement("selection-readonly-variants")
def test_a_readonly_group_leaves_out_the_tools_that_write():
    assert tool_names(("gate_decisions_readonly",)) == ("get_gate_decisions",)
    assert tool_names(("health_readonly",)) == ("get_system_health",)
    assert connection_groups("https://z/mcp?tool_groups=self_session_readonly") == ()


@pytest.mark.requirement("selection-unknown-groups-dropped")
def test_unknown_groups_are_dropped_with_a_warning_and_never_widen_the_scope():
    mixed = connect("https://z/mcp?tool_groups=sessions,bogus")
    assert mixed.groups == ("sessions",)
    assert len(mixed.warnings) == 1
    assert "bogus" in mixed.warnings[0]
    assert tool_names(connect("https://z/mcp?tool_groups=bogus").groups) == ()


@pytest.mark.requirement("selection-self-session-narrowed")
def test_the_action_tool_is_narrowed_unless_sessions_is_named_too():
    assert "change_mcp_servers" not in session_actions(("self_session",))
    assert "change_mcp_servers" in session_actions(("self_session", "sessions"))
    assert session_actions(("health",)) == ()


@pytest.mark.requirement("selection-scope-from-query-only")
def test_a_request_body_does_not_widen_the_scope():
    url = "https://z/mcp?tool_groups=self_session&allowed_agent_roots=a,b"
    body = {"params": {"tool_groups": "sessions", "allowed_agent_roots": "c"}, "tool_groups": "sessions"}
    assert connect(url, body) == connect(url)
    assert connect(url, body).groups == ("self_session",)
    assert connect(url, body).allowed_agent_roots == ("a", "b")


def test_of_a_repeated_scope_the_last_counts():
    assert connection_groups("https://z/mcp?tool_groups=sessions&tool_groups=health") == ("health",)
    assert connection_groups("https://z/mcp?tool_groups=sessions,sessions") == ("sessions",)
