"""Every event in a few words: what a timeline says happened."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from harness.scenario.desk import ROTATE_ACCOUNT
from harness.scenario.model import HOME
from harness.scenario.naming import plain
from harness.scenario.session_runs import is_launch
from harness.world.model import Event

WIDTH = 100
LISTED = 6
RUNTIME_DEPTH = 2
"""Parts of a runtime's name: what has more is a server, or started by one."""

Details = Mapping[str, Any]


class Teller:
    """Tells the events of one run, one after the other: what some say depends on what was before.

    `quitters` are servers that end by themselves.
    """

    def __init__(self, quitters: Collection[str] = ()) -> None:
        self.quitters = quitters
        self._launched: set[str] = set()
        self._left_behind: set[str] = set()

    def tell(self, event: Event) -> str:
        """What an event says; empty for one that is left out."""
        if event.name == "spawn" and is_launch(event):
            self._launched.add(event.actor)
        if event.name == "session.ended" and event.actor not in self._launched:
            return f"ends without a run of its runtime ({event.details['exit_code']})"
        if event.name == "left.behind":
            self._left_behind.add(str(event.details["actor"]))
        if event.name == "killed" and event.actor in self._left_behind:
            return f"ended by {event.details['signal']}: the scenario is over"
        return told(event, self.quitters)


def told(event: Event, quitters: Collection[str] = ()) -> str:
    """What an event says by itself; empty for one that is left out."""
    if event.name == "ended":
        return _ended(event, quitters)
    if event.name in UNTOLD:
        return ""
    tell = TELLERS.get(event.name)
    if tell is not None:
        return tell(event.details)
    details = ", ".join(f"{key} {some(value)}" for key, value in event.details.items())
    return f"{event.name.replace('.', ' ')}{f': {details}' if details else ''}"


PURPOSES: Mapping[str, str] = {"keyctl": "to ask Pi's keyring what it holds"}
"""What the orchestrator starts its own tools for: the refresh job looks into every runtime's store, whoever runs."""

UNTOLD = frozenset(
    {"request", "mcp.received", "download", "server.connecting", "run.ended", "install.finished", "oauth.probed"}
)
"""What repeats what other events say, or happens too often to be told."""


def _ended(event: Event, quitters: Collection[str]) -> str:
    """A process below a runtime that ends by itself; one that a signal ended has been told of."""
    code, (*above, name) = event.details.get("exit_code"), plain(event.actor).split("/")
    if code is None or len(above) < RUNTIME_DEPTH or code < 0 or (code == 0 and name not in quitters):
        return ""
    return f"exits {code}"


def _started(details: Details) -> str:
    servers = some(details["servers"]) or "none"
    return f"starts session {details['session']} (servers {servers})"


def _prepared(details: Details) -> str:
    warnings = details.get("warnings") or ()
    return f"writes {home(details['file'])}{f'; warns: {warnings[0]}' if warnings else ''}"


def _guarded(details: Details) -> str:
    """Nothing where the guard had nothing to do."""
    repaired = [home(path) for path in details["repaired"]]
    refused = [home(path) for path in details["refused"]]
    parts = [f"makes executable {some(repaired)}"] if repaired else []
    parts += [f"refuses to touch {some(refused)}"] if refused else []
    return "; ".join(parts)


def _spawned(details: Details) -> str:
    child = plain(details["child"]).rpartition("/")[2]
    command = " ".join(details["argv"])
    if child in PURPOSES:
        return f"starts {child}, {PURPOSES[child]}"
    return f"starts {child}" if command.split(" ")[0] == child else f"starts {child}: {clipped(command)}"


def _request(details: Details) -> str:
    tools, pending = details["tools"], details.get("pending") or ()
    waits = f"; still pending: {some(pending)}" if pending else ""
    return f"model request {details['number']}: {some(tools) or 'no tool'}{waits}"


def _call(details: Details) -> str:
    outcome = "" if details["ok"] else f" fails: {clipped(str(details.get('text', '')))}"
    return f"calls {details['server']}/{details['tool']}{outcome}"


def _connected(details: Details) -> str:
    seconds = details.get("seconds")
    return f"{details['server']} connected{f' after {seconds:.1f} s' if seconds else ''}"


def _server(word: str) -> Callable[[Details], str]:
    def tell(details: Details) -> str:
        text = details.get("text") or details.get("kind") or ""
        return f"{details['server']} {word}{f': {clipped(str(text))}' if text else ''}"

    return tell


def _authorization(details: Details) -> str:
    """In brackets: behind a colon the words would be taken for a header's value, and masked."""
    text = details.get("text") or ""
    return f"{details['server']} needs authorization{f' ({clipped(str(text))})' if text else ''}"


def _install(word: str) -> Callable[[Details], str]:
    def tell(details: Details) -> str:
        code = f" ({details['code']})" if "code" in details else ""
        return f"{word} {home(str(details['tree']))}{code}"

    return tell


def _killing(details: Details) -> str:
    number = len(details["actors"])
    return f"{details['signal']} to {details['actor']} ({number} {'process' if number == 1 else 'processes'})"


def _edited(details: Details) -> str:
    if details["removed"]:
        return f"removes {details['entry']} from the catalog"
    return f"edits {details['entry']}: {some([*details['set'], *(f'without {key}' for key in details['unset'])])}"


def _authorizing(details: Details) -> str:
    session = f", from the page of session {details['session']}" if details["session"] else ""
    return f"a person authorizes {details['server']}{session}"


def _providing(details: Details) -> str:
    parts = [f"changes: {clipped(details['says'])}"] if details["says"] else []
    parts += [f"revokes the tokens of {details['revokes']}"] if details["revokes"] else []
    return f"{details['authorization']} {' and '.join(parts)}"


def _working(details: Details) -> str:
    """Once, or by the clock: then nobody knows yet whether anything comes due."""
    if details["job"] == ROTATE_ACCOUNT:
        return "the account that Claude is signed in with becomes another"
    if not details["seconds"]:
        return f"the scheduler runs the job {details['job']} once"
    return f"the scheduler works for {details['seconds']:g} s: the job {details['job']} whenever it comes due"


def _answered(details: Details) -> str:
    text = f": {clipped(details['text'])}" if details["text"] else ""
    return f"{details['step']} is answered {details['status']} ({details['page']}){text}"


def _attempted(details: Details) -> str:
    """A refresh token is presented; what is odd about it in brackets."""
    odd = [f"fresher in {some([home(store) for store in details['fresher']])}"] if details["fresher"] else []
    odd += [word for word in (details["wrong"], details["hole"]) if word]
    what = f"presents generation {details['generation']} to {details['authorization']}"
    return f"{what} ({'; '.join(odd)})" if odd else what


JUDGED: Mapping[str, str] = {
    "usable": "authorized", "blocked": "in need of authorization", "proceeds": "open, as far as it tells",
}  # fmt: skip
"""What the check before a spawn found, in words; a verdict that is not here is a word already."""

TELLERS: Mapping[str, Callable[[Details], str]] = {
    "step.start": _started,
    "step.advance": lambda details: f"waits {details['seconds']:g} s",
    "step.kill": lambda details: _killing(details),
    "step.edit": _edited,
    "step.select": lambda details: f"session {details['session']} gets servers {some(details['servers']) or 'none'}",
    "step.write": lambda details: f"writes {home(details['path'])}",
    "step.remove": lambda details: f"removes {home(details['path'])}",
    "session.prepared": _prepared,
    "step.authorize": _authorizing,
    "step.job": _working,
    "step.provider": _providing,
    "session.blocked": lambda details: f"is not started: {some(details['servers'])} must be authorized first",
    "session.resumed": lambda details: f"lets the session go on: {some(details['servers'])} is authorized",
    "gate.judged": lambda details: f"finds {details['server']} {JUDGED.get(details['verdict'], details['verdict'])}",
    "oauth.started": lambda details: (
        f"starts a flow for {details['server']}{', to be completed by pasting' if details['manual'] else ''}"
    ),
    "oauth.refused": lambda details: f"starts no flow for {details['server']}: {clipped(details['text'])}",
    "oauth.completed": lambda details: f"completes the flow for {details['server']}",
    "oauth.failed": lambda details: f"the flow for {details['server']} fails: {clipped(details['text'])}",
    "web.answered": _answered,
    "credential.stored": lambda details: f"stores the credential of {details['server']}",
    "credential.refreshed": lambda details: f"renews the credential of {details['server']}",
    "credential.refresh_failed": lambda details: (
        f"cannot renew the credential of {details['server']} ({details['kind']})"
    ),
    "credential.adopted": lambda details: f"takes over what {details['runtime']} holds for {details['server']}",
    "credential.injected": lambda details: f"hands {details['runtime']} the credentials of {some(details['servers'])}",
    "credential.retired": lambda details: f"retires the credential of {details['server']}",
    "needs_auth.cleared": lambda details: f"has {some(details['servers'])} forgotten as wanting a sign-in",
    "attempt": _attempted,
    "log": lambda details: f"logs ({details['level']}): {clipped(details['text'])}",
    "session.failed": lambda details: f"cannot be started: {clipped(details['text'])}",
    "session.ended": lambda details: f"its runtime exits {details['exit_code']}",
    "session.retry": lambda details: f"tries again in {details['after_seconds']} s: {some(details['servers'])} failed",
    "session.degraded": lambda details: f"leaves out {some(details['servers'])} and goes on",
    "session.warning": lambda details: f"warns: {clipped(details['text'])}",
    "heal.ran": lambda details: f"removes broken installs: {some([home(path) for path in details['removed']])}",
    "guard.ran": _guarded,
    "spawn": _spawned,
    "server.connected": _connected,
    "server.failed": _server("FAILED"),
    "server.needs_auth": _authorization,
    "server.skipped": _server("skipped"),
    "model.request": _request,
    "tool.call": _call,
    "install.started": _install("installs into"),
    "install.reused": _install("finds its package in"),
    "install.failed": _install("install FAILED in"),
    "fault": lambda details: f"FAULT {details['action']} at {clipped(details['at'])}",
    "killed": lambda details: f"ended by {details['signal']}",
    "left.behind": lambda details: f"still runs: {plain(details['actor'])}; the end of the scenario ends it",
}


def some(value: Any) -> str:
    """A value in a line: of a list the first few."""
    if not isinstance(value, list | tuple):
        return clipped(str(value))
    items = [str(item) for item in value[:LISTED]]
    return ", ".join([*items, *([f"and {len(value) - LISTED} more"] if len(value) > LISTED else [])])


def clipped(text: str) -> str:
    """One line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def home(path: str) -> str:
    """A path with `~` for the home directory."""
    return f"~{path.removeprefix(HOME)}" if path.startswith(f"{HOME}/") else path
