"""Vector operations of the selection area."""

from __future__ import annotations

from typing import Any

from harness.reference.selection import patch, session, zimmer
from harness.vectors.registry import operation

NOT_PRODUCTION = zimmer.STAGING


def _existing(given: dict[str, Any]) -> dict[str, str | None]:
    return {entry["name"]: entry["url"] for entry in given["existing"]}


@operation("selection.zimmer_name", requirements=("selection-retarget-by-name",))
def answer_zimmer_name(given: dict[str, Any]) -> bool:
    return zimmer.is_zimmer_name(given["name"])


@operation("selection.self_session_covered", requirements=("selection-self-session-covered",))
def answer_self_session_covered(given: dict[str, Any]) -> bool:
    return zimmer.self_session_covered(_existing(given))


@operation("selection.injected_url", requirements=("selection-self-session-url", "selection-subagent-entry-url"))
def answer_injected_url(given: dict[str, Any]) -> str:
    return zimmer.injected_url(given["base_url"], given.get("tool_groups"), given.get("allowed_agent_roots"))


@operation(
    "selection.inject",
    requirements=(
        "selection-auto-injected",
        "selection-injected-names",
        "selection-subagent-entry-url",
        "selection-existing-zimmer-kept",
        "selection-zimmer-entries-deliberate",
    ),
)
def answer_inject(given: dict[str, Any]) -> dict[str, str]:
    return zimmer.inject(_existing(given), given["default_subagent_roots"], given["base_url"])


@operation("selection.injected_entry", requirements=("selection-injected-transport",))
def answer_injected_entry(given: dict[str, Any]) -> dict[str, Any]:
    return zimmer.injected_entry(given["runtime"], given["url"], given["api_key"])


@operation(
    "selection.retarget",
    requirements=("selection-retarget-every-zimmer", "selection-retarget-key", "selection-retarget-by-name"),
)
def answer_retarget(given: dict[str, Any]) -> dict[str, Any]:
    instance = zimmer.Instance(NOT_PRODUCTION, given["base_url"], given["api_key"])
    return zimmer.retarget(given["name"], given["entry"], instance)


@operation("selection.lost", requirements=())
def answer_lost(given: dict[str, Any]) -> list[str]:
    return list(session.lost_servers(given["selected"], given["injected"], given["mcp_servers_status"]))


@operation(
    "selection.patch",
    requirements=(
        "selection-patch-mutates",
        "selection-patch-max-50",
        "selection-patch-count-before-clean",
        "selection-patch-order-of-checks",
        "selection-patch-clear",
        "selection-patch-log-and-status",
    ),
)
def answer_patch(given: dict[str, Any]) -> dict[str, Any]:
    answer = patch.patch(given["body"], given["before"], given["catalog"], given.get("mcp_servers_status"))
    return {**answer._asdict(), "mcp_servers": list(answer.mcp_servers)}
