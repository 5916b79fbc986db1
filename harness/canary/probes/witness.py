"""A stdio MCP server that notes what happens to it: `python -IS witness.py NOTES BEHAVIOUR`, both given by a probe.

BEHAVIOUR is a JSON object: `starts_after` seconds pass before it listens, `stderr` is printed first, `exits` ends it at
once with this code, `discover` is "never" where the newer probe is ignored, `initialize` is "never" where it hangs,
`tools` are the names of its tools, `dies_on_call` ends it on the first call, `deaf` has it pass over the end of its
stdin and all signals that it can, `stays` over the end of stdin alone, `child` has it start a process that outlives it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

PATIENCE_SECONDS = 30
DOES: dict[str, Any] = {}


def note(kind: str, **more: Any) -> None:
    """Append a line."""
    with open(sys.argv[1], "a", encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes long to load
        file.write(json.dumps({"note": kind, "at": time.time(), "pid": os.getpid(), **more}) + "\n")


def signalled(number: int, _: object) -> None:
    """Note a signal; without `deaf` it ends the server."""
    note("signal", name=signal.Signals(number).name)
    if not DOES.get("deaf"):
        os._exit(0)


def begin() -> None:
    """All that happens before the server listens."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signalled)
    here = {"parent": os.getppid(), "group": os.getpgrp(), "directory": os.getcwd()}  # noqa: PTH109
    note("start", environment=dict(os.environ), args=sys.argv[3:], **here)
    if DOES.get("child"):
        child = subprocess.Popen(["/bin/sleep", str(PATIENCE_SECONDS)], stdin=subprocess.DEVNULL)
        note("child", child=child.pid)
    if "stderr" in DOES:
        sys.stderr.write(DOES["stderr"])
        sys.stderr.flush()
    if "exits" in DOES:
        sys.exit(DOES["exits"])
    time.sleep(DOES.get("starts_after", 0))


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    """The result or error of a request; None where there is no answer."""
    method, params = message.get("method"), message.get("params", {})
    if "id" not in message:
        return None
    if method == "server/discover" and DOES.get("discover") == "never":
        return None
    if method == "initialize":
        if DOES.get("initialize") == "never":
            return None
        information = {"name": "witness", "version": "1.0.0"}
        version = params.get("protocolVersion")
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": information}}
    if method == "tools/list":
        names = DOES.get("tools", ["echo"])
        return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}}
    if method == "tools/call":
        if DOES.get("dies_on_call"):
            os._exit(1)
        return {"result": {"content": [{"type": "text", "text": "ok"}]}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def serve() -> None:
    """One message a line, until stdin ends."""
    for line in sys.stdin:
        message = json.loads(line)
        note("received", method=message.get("method"), params=message.get("params"), id=message.get("id"))
        answered = answer(message)
        if answered is not None:
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answered}) + "\n")
            sys.stdout.flush()
    note("end")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (DOES.get("deaf") or DOES.get("stays")) and time.monotonic() < deadline:
        time.sleep(0.05)


if __name__ == "__main__":
    DOES.update(json.loads(sys.argv[2]))
    begin()
    serve()
