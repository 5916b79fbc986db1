"""`pi --mode rpc`: commands on stdin, one JSON object a line; answers, events and the adapter's requests on stdout.

Measured are the adapter's requests before any prompt and the answer to `/mcp status`. The commands and their answers
are the vendor's description's, as far as a headless host needs them; one is answered after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fake_runtimes.pi.arguments import RPC
from fake_runtimes.pi.session import Run
from fake_runtimes.pi.texts import Status, counted
from fake_runtimes.plan import Plan
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import JsonTextError, parse_json
from harness.world.ports import Task, World

PROMPT, STATE, ABORT = "prompt", "get_state", "abort"
STATUS_COMMAND = "/mcp"
HEAD = (
    "MCP Server Status:",
    "",
    "Shared MCP config: .mcp.json for this project/team or ~/.config/mcp/mcp.json for all projects.",
    "Pi-owned files hold compatibility imports and adapter-specific overrides.",
    "",
)


async def serve(world: World, profile: PiProfile, argv: Sequence[str], plan: Plan) -> int:
    """Answer until stdin ends; the answer is the exit code."""
    run = Run(world, profile, argv, RPC)
    await run.load()
    starting = run.launch()
    while (line := await world.processes.read_line()) is not None:
        if line.strip():
            await take(run, plan, starting, line)
    await run.close()
    return run.ended()


async def take(run: Run, plan: Plan, starting: Task, line: str) -> None:
    """One command."""
    try:
        command = parse_json(line)
    except JsonTextError:
        command = None
    if not isinstance(command, dict):
        reason = "Failed to parse command: no JSON object"
        await run.front.say({"type": "response", "command": "parse", "success": False, "error": reason})
        return
    kind = str(command.get("type"))
    if kind not in (PROMPT, STATE, ABORT):
        await respond(run, command, success=False, error=f"Unknown command: {kind}")
        return
    await respond(run, command, success=True, **({"data": state(run)} if kind == STATE else {}))
    if kind == PROMPT:
        text = str(command.get("message", ""))
        if text.split()[:1] == [STATUS_COMMAND]:
            await run.world.tasks.wait([starting])
            await run.front.notify("\n".join((*HEAD, *map(status_line, run.servers.statuses()))), "info")
        else:
            await run.answer(plan, text, starting)


async def respond(run: Run, command: Mapping[str, Any], **fields: Any) -> None:
    """The answer to a command."""
    identified = {"id": command["id"]} if "id" in command else {}
    await run.front.say({**identified, "type": "response", "command": str(command.get("type")), **fields})


def state(run: Run) -> Mapping[str, Any]:
    """What a host is told of the session."""
    return {"isStreaming": False, "messageCount": run.requests, "model": {"id": "m", "provider": "fake"}}


def status_line(server: Status) -> str:
    """One server in the answer to `/mcp status`."""
    if server.state == "connected":
        return f"✓ {server.name}: connected; legacy notification path ({counted(server.tools)})"
    if server.state == "failed":
        reason = f" — {server.reason}" if server.reason else ""
        return f"✗ {server.name}: failed {round(server.failed_seconds_ago)}s ago{reason}"
    if server.state == "disabled":
        return f"⊘ {server.name}: disabled (run /mcp enable {server.name}, then /reload)"
    if server.state == "needs-auth":
        return f"⚠ {server.name}: needs auth ({counted(server.tools)})"
    return f"○ {server.name}: {server.state}"
