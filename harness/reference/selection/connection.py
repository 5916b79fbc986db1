"""A connection to Zimmer's own MCP endpoint: the scope its URL names and the tools that scope reaches.

Sources: seed 000 "Selection is per session" (scoped entries, opt-in groups); requirements selection-gate-*,
selection-backlog-opt-in, selection-self-session-powers, selection-scope-from-query-only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl

BASE_GROUPS = ("sessions", "notifications", "triggers", "health")
OPT_IN_GROUPS = ("gate_decisions", "work_backlog")
SELF_SESSION_GROUP = "self_session"
READONLY_SUFFIX = "_readonly"

ACTION_TOOL = "action_session"
SELF_ACTIONS = ("archive", "update_title")
FULL_ACTIONS = (*SELF_ACTIONS, "follow_up", "pause", "restart", "unarchive", "change_mcp_servers")


class Tool(NamedTuple):
    """A tool of the endpoint; one that writes is missing from a read-only group."""

    name: str
    writes: bool


def reads(name: str) -> Tool:
    """A tool that changes nothing."""
    return Tool(name, writes=False)


def writes(name: str) -> Tool:
    """A tool that changes something."""
    return Tool(name, writes=True)


TOOLS: dict[str, tuple[Tool, ...]] = {
    "sessions": (
        reads("search_sessions"),
        reads("get_session"),
        reads("get_configs"),
        writes("start_session"),
        writes(ACTION_TOOL),
    ),
    "notifications": (reads("get_notifications"), writes("send_push_notification")),
    "triggers": (reads("search_triggers"), writes("action_trigger")),
    "health": (reads("get_system_health"), writes("action_health")),
    "gate_decisions": (reads("get_gate_decisions"), writes("record_gate_decision")),
    "work_backlog": (
        reads("get_work_backlog"),
        writes("append_work_backlog_item"),
        writes("pull_work_backlog_item"),
    ),
    SELF_SESSION_GROUP: (reads("get_session"), writes(ACTION_TOOL), writes("wake_me_up_later")),
}
LEDGER_TOOLS = ("get_gate_decisions", "record_gate_decision")
BACKLOG_QUEUE_TOOLS = ("append_work_backlog_item", "pull_work_backlog_item")


class Connection(NamedTuple):
    """What a request's URL scopes it to; `warnings` name the groups that do not exist."""

    groups: tuple[str, ...]
    allowed_agent_roots: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class ToolAnswer(NamedTuple):
    """The outcome of a tools/call: `error` is None when the tool may run."""

    allowed: bool
    error: str | None = None


def query_list(url: str, key: str) -> tuple[str, ...] | None:
    """The comma list a URL's query gives for `key`; None when absent or blank. Of repeated keys the last counts."""
    query = url.partition("#")[0].partition("?")[2]
    values = [value for name, value in parse_qsl(query, keep_blank_values=True) if name == key]
    items = tuple(item.strip() for item in values[-1].split(",") if item.strip()) if values else ()
    return items or None


def named_groups(url: str) -> tuple[str, ...] | None:
    """The tool groups a URL names, known or not; None when it names none."""
    return query_list(url, "tool_groups")


def is_known_group(group: str) -> bool:
    """Is there such a group? Every domain group has a read-only variant, self_session has none."""
    return group in TOOLS or (group.endswith(READONLY_SUFFIX) and domain_group(group) in (*BASE_GROUPS, *OPT_IN_GROUPS))


def domain_group(group: str) -> str:
    """The group a read-only variant belongs to; any other group is its own."""
    return group.removesuffix(READONLY_SUFFIX)


def connection_groups(url: str) -> tuple[str, ...]:
    """The groups of a connection: the known ones its URL names, or the four base groups when it names none at all.

    A list of unknown names gives no group: a misspelt scope must not widen to the base groups.
    """
    named = named_groups(url)
    if named is None:
        return unscoped_groups()
    return tuple(dict.fromkeys(group for group in named if is_known_group(group)))


def unscoped_groups() -> tuple[str, ...]:
    """What a connection without tool_groups carries: never an opt-in group (selection-gate-opt-in)."""
    return BASE_GROUPS


def connect(url: str, body: Mapping[str, object] | None = None) -> Connection:
    """The scope of a request. `body` is the JSON-RPC message: it is not asked
    (selection-scope-from-query-only).
    """
    del body
    unknown = [group for group in named_groups(url) or () if not is_known_group(group)]
    warnings = tuple(f"Unknown tool group dropped: {group}" for group in unknown)
    return Connection(connection_groups(url), query_list(url, "allowed_agent_roots") or (), warnings)


def group_tools(group: str) -> tuple[str, ...]:
    """The tools of one group; a read-only variant leaves out those that write."""
    tools = TOOLS.get(domain_group(group), ())
    return tuple(tool.name for tool in tools if not (tool.writes and group.endswith(READONLY_SUFFIX)))


def tool_names(groups: Iterable[str]) -> tuple[str, ...]:
    """The tools that a connection with these groups lists, each once."""
    return tuple(dict.fromkeys(name for group in groups for name in group_tools(group)))


def session_actions(groups: Iterable[str]) -> tuple[str, ...]:
    """What action_session may do: everything through sessions, only the caller's own session through self_session."""
    carried = tuple(groups)
    if "sessions" in carried:
        return FULL_ACTIONS
    return SELF_ACTIONS if SELF_SESSION_GROUP in carried else ()


def call(connection: Connection, tool: str) -> ToolAnswer:
    """May the connection call `tool`? What it does not list, it cannot call
    (selection-groups-not-listed-not-callable).
    """
    if tool in tool_names(connection.groups):
        return ToolAnswer(allowed=True)
    return ToolAnswer(allowed=False, error=f"Unknown tool: {tool}")
