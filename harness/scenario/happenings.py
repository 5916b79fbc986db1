"""Every event of a run: who it happens to, and which fields it has. What a scenario says of events is held against it.

A field's kind tells what its values are: the name of something that the scenario defines (`server`, `tool`, `session`,
`actor`, `entry`, `package`, `authorization`), one of a fixed list (`signal`, `action`, a key of WORDS), or a text, a
number, a truth. A list counts as its items.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from harness.reference.oauth.requirement import DETERMINATIONS
from harness.scenario import holes

OPERATOR_ROLE, SESSION, RUNTIME, SERVER = "operator", "session", "runtime", "server"
RUNTIMES = ("claude", "codex", "pi")
HTTP_METHODS = ("GET", "POST", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS")
RPC_METHODS = (
    "initialize", "notifications/initialized", "ping", "tools/list", "tools/call", "server/discover",
    "notifications/cancelled", "notifications/progress", "notifications/roots/list_changed", "prompts/list",
    "prompts/get", "resources/list", "resources/templates/list", "resources/read", "resources/subscribe",
    "resources/unsubscribe", "completion/complete", "logging/setLevel",
)  # fmt: skip
"""What a client asks of an MCP server, by the revisions of the protocol, or tells it."""
JOBS = ("refresh", "rotate-account")
WORDS: Mapping[str, tuple[str, ...]] = {
    "method": RPC_METHODS,
    "job": JOBS,
    "runtime": RUNTIMES,
    "verdict": ("usable", "blocked", "proceeds"),
    "determination": DETERMINATIONS,
    "step": ("initiate", "consent", "callback", "complete"),
    "hole": ("", *holes.NAMES),
}
"""Kinds of fields whose values are words of a list."""
PROCESSES = (SESSION, RUNTIME, SERVER)
ANYBODY = (OPERATOR_ROLE, *PROCESSES)


class Happening(NamedTuple):
    """Who an event of that name happens to, and the kinds of its fields. A server's role includes what it started."""

    roles: tuple[str, ...]
    fields: Mapping[str, str]


def _of(*roles: str, **fields: str) -> Happening:
    return Happening(roles, fields)


HAPPENINGS: Mapping[str, Happening] = {
    "step.start": _of(OPERATOR_ROLE, session="session", servers="server"),
    "step.advance": _of(OPERATOR_ROLE, seconds="number"),
    "step.kill": _of(OPERATOR_ROLE, actor="text", signal="signal", actors="actor"),
    "step.edit": _of(OPERATOR_ROLE, entry="entry", set="text", unset="text", removed="truth"),
    "step.select": _of(OPERATOR_ROLE, session="session", servers="server"),
    "step.write": _of(OPERATOR_ROLE, path="text"),
    "step.remove": _of(OPERATOR_ROLE, path="text"),
    "step.authorize": _of(OPERATOR_ROLE, server="server", session="session"),
    "step.job": _of(OPERATOR_ROLE, job="job", seconds="number"),
    "step.provider": _of(OPERATOR_ROLE, authorization="authorization", set="text", says="text", revokes="text"),
    "left.behind": _of(OPERATOR_ROLE, actor="actor"),
    "session.prepared": _of(SESSION, servers="server", file="text", warnings="text"),
    "session.failed": _of(SESSION, text="text"),
    "session.ended": _of(SESSION, exit_code="number"),
    "session.retry": _of(SESSION, servers="server", after_seconds="number"),
    "session.degraded": _of(SESSION, servers="server"),
    "session.warning": _of(SESSION, text="text"),
    "session.blocked": _of(SESSION, servers="server"),
    "session.resumed": _of(SESSION, servers="server"),
    "log": _of(SESSION, level="text", text="text"),
    "oauth.probed": _of(SESSION, server="server", determination="determination"),
    "gate.judged": _of(SESSION, server="server", verdict="verdict"),
    "oauth.started": _of(SESSION, server="server", manual="truth"),
    "oauth.refused": _of(SESSION, server="server", text="text"),
    "oauth.completed": _of(SESSION, server="server"),
    "oauth.failed": _of(SESSION, server="server", text="text"),
    "credential.stored": _of(SESSION, server="server"),
    "credential.refreshed": _of(SESSION, server="server"),
    "credential.refresh_failed": _of(SESSION, server="server", kind="text"),
    "credential.adopted": _of(SESSION, server="server", runtime="runtime"),
    "credential.injected": _of(SESSION, servers="server", runtime="runtime"),
    "credential.retired": _of(SESSION, server="server"),
    "needs_auth.cleared": _of(SESSION, servers="server"),
    "web.answered": _of(SESSION, step="step", status="number", page="text", text="text"),
    "heal.ran": _of(SESSION, removed="text"),
    "guard.ran": _of(SESSION, repaired="text", refused="text", log="text"),
    "server.connecting": _of(RUNTIME, server="server"),
    "server.connected": _of(RUNTIME, server="server", seconds="number"),
    "server.failed": _of(RUNTIME, server="server", kind="text", text="text"),
    "server.needs_auth": _of(RUNTIME, server="server", text="text", cached="truth"),
    "server.skipped": _of(RUNTIME, server="server", text="text"),
    "config.lost": _of(RUNTIME, text="text"),
    "resolver.killed": _of(RUNTIME, server="server"),
    "model.request": _of(RUNTIME, number="number", tools="text", pending="server", extra="text", deferred="truth"),
    "tool.call": _of(RUNTIME, server="server", tool="tool", ok="truth", text="text", error="text", name="text"),
    "run.refused": _of(RUNTIME, text="text"),
    "run.ended": _of(RUNTIME, exit_code="number"),
    "attempt": _of(
        SESSION,
        RUNTIME,
        SERVER,
        authorization="authorization",
        generation="number",
        fresher="text",
        hole="hole",
        wrong="text",
    ),
    "mcp.received": _of(SERVER, method="method", tool="tool"),
    "install.started": _of(SERVER, tree="text", packages="text"),
    "install.finished": _of(SERVER, tree="text"),
    "install.reused": _of(SERVER, tree="text"),
    "install.failed": _of(SERVER, tree="text", code="text"),
    "install.incomplete": _of(SERVER, tree="text", missing="text"),
    "download": _of(SERVER, package="package", version="text", cache="text"),
    "spawn": _of(*PROCESSES, argv="text", child="actor"),
    "request": _of(*PROCESSES, at="text", status="number"),
    "killed": _of(*PROCESSES, signal="signal"),
    "ended": _of(*ANYBODY, exit_code="number"),
    "fault": _of(*ANYBODY, action="action", at="text"),
    "reached": _of(*ANYBODY, mark="text"),
}


def role_of(actor: str) -> str:
    """The role of an actor by its name; the operator's is told by whoever knows its name."""
    return (SESSION, RUNTIME, SERVER)[min(actor.count("/"), 2)]
