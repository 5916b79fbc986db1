"""Calls of tools in a run of Codex: which run, how they are told, and where the tools stand in a request."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour, Tool
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import Claim, probe
from harness.canary.probes.codex.asking import FULL_ACCESS, MODES, configure, executed
from harness.canary.script import Call, Script, Turn
from harness.canary.trial import Trial

SLOWLY = 0.25
"""The fake's `tool_timeout_sec` is over late, so that a busy machine's answers are in time."""
TOOLS = ("look", "change", "approved", "prompted", "slow", "missing")


TELLING = ("mcp_tool_call_end", "item_completed", "function_call_output")
"""What a reader of transcripts looks at: the events for a call's end in any version, and its output."""


def event_of(seen: Mapping[str, list[str]]) -> str:
    """The transcript's own event for a call's end."""
    kinds = [kind for kind in seen["naming the server"] if kind.startswith("event_msg ")]
    return kinds[0].removeprefix("event_msg ")


DERIVED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "reading": {"refusal_text": lambda seen: seen["change"].removeprefix("failed: ")},
    "rollout": {
        "call_event": event_of,
        "names_servers_of_calls": lambda seen: "response_item function_call_output" in seen["naming the server"],
    },
}


def call_claim(name: str, says: str, reads: tuple[str, ...] = (), assumes: Any = ...) -> Claim:
    """A claim about calls of tools."""
    assumed = {} if assumes is ... else {"assumes": assumes}
    return Claim(
        f"codex.call.{name}", says, affects="calls of tools", reads=reads, derive=DERIVED.get(name, {}), **assumed,
        relied_on=("status-codex-call-end-event", "status-codex-names") if name in ("item", "rollout") else (),
    )  # fmt: skip


@probe(
    *(
        call_claim(name, f"which calls run when nobody can be asked, {name} the disk", ("refusal_text",))
        for name in MODES
    ),
    call_claim("item", "a call is an item of the output, under the server's and the tool's own names"),
    call_claim("rollout", "how a call stands in the transcript", ("call_event", "names_servers_of_calls")),
    call_claim("timeout", "`tool_timeout_sec` ends a call"),
    call_claim("no-tool", "a tool that is not offered"),
    seconds=4.0,
)
def calls(trial: Trial) -> Mapping[str, Any]:
    """The same calls in each sandbox."""
    tools = (
        Tool("look", read_only=True),
        Tool("change"),
        Tool("approved"),
        Tool("prompted", read_only=True),
        Tool("slow", answers_after_seconds=3),
    )
    script = Script((Turn(calls=tuple(Call("my-srv", tool, {"a": 1}) for tool in TOOLS)), Turn(text="done")))
    seen: dict[str, Any] = {}
    fields = {
        "required": True,
        "tool_timeout_sec": 0.6,
        "tools": {"approved": {"approval_mode": "approve"}, "prompted": {"approval_mode": "prompt"}},
    }
    trial.hurry(SLOWLY)
    for name, settings in MODES.items():
        with trial.serving(server=HttpServer(Behaviour(tools=tools))) as urls, trial.modelled(script):
            configure(trial, {"my-srv": {"url": urls["server"], **fields}}, **settings)
            run = executed(trial)
        items = [line["item"] for line in run.lines if line.get("type") == "item.completed"]
        ended = {item["tool"]: item for item in items if item.get("type") == "mcp_tool_call"}
        seen[f"codex.call.{name}"] = {tool: words_of(ended[tool]) for tool in TOOLS if tool in ended and tool != "slow"}
    seen["codex.call.item"] = {key: value for key, value in ended.get("look", {}).items() if key != "id"}
    seen["codex.call.timeout"] = ended.get("slow", {}).get("error")
    seen["codex.call.no-tool"] = "missing" in ended
    seen["codex.call.rollout"] = rollout_kinds(trial)
    return seen


def words_of(item: Mapping[str, Any]) -> str:
    """How a call ended, and with which words."""
    if item["status"] == "completed":
        return "completed"
    return f"{item['status']}: {(item.get('error') or {}).get('message')}"


def rollout_kinds(trial: Trial) -> Any:
    """The last transcript: what names the server besides the errors of calls, and by which names tools were called."""
    files = sorted((trial.home / ".codex" / "sessions").rglob("rollout-*.jsonl"))
    if not files:
        return None
    lines = files[-1].read_text(encoding="utf-8").splitlines()
    entries = [(each["type"], each["payload"], "my-srv" in line) for line in lines if (each := json.loads(line))]
    naming = {
        f"{kind} {payload.get('type')}"
        for kind, payload, names in entries
        if names and payload.get("type") in TELLING and "tool call error" not in str(payload)
    }
    asked = [payload for _, payload, _ in entries if payload.get("type") == "function_call"]
    called = {f"{payload.get('namespace')}/{payload['name']}" for payload in asked if payload["name"] in TOOLS[:-1]}
    return {"naming the server": sorted(naming), "called": sorted(called)}


@probe(
    Claim(
        "codex.request.default-model",
        "where a request to the program's own default model offers the tools of servers",
        relied_on=("status-codex-drift-canary", "status-codex-namespace-field"),
        affects="whoever reads names of tools from a transcript",
        not_modelled="the fake's model is one that the program does not know, which is offered namespaces",
    ),
)
def default_model(trial: Trial) -> Mapping[str, Any]:
    """One run without a word about the model; in which parts of the request the tool's name is found, and how."""
    tool = "findme"
    with trial.serving(server=HttpServer(Behaviour(tools=(Tool(tool),)))) as urls, trial.modelled():
        configure(trial, {"my-srv": {"url": urls["server"], "required": True}}, **FULL_ACCESS)
        executed(trial, model="")
        if trial.subject.is_fake:
            return {}
        body = trial.models[-1].requests[0].body
    places = {}
    for part, value in body.items():
        found = sorted({*re.findall(rf"\w*{tool}\w*", json.dumps(value))})
        if found:
            places[part] = found
    return {"codex.request.default-model": {"has tools": "tools" in body, "found in": places}}
