"""A spawn with a fault against the same one without: who else was hurt, what was told, what leaked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from typing import NamedTuple

from harness.gate.battery.kinds import Kind
from harness.gate.battery.observing import Observation, Seen

HURT, DELAYED, UNTOLD, LEAKED, ENDLESS, TOGETHER = "MH950", "MH951", "MH952", "MH953", "MH954", "MH955"
HURTING = (HURT, DELAYED, ENDLESS, TOGETHER)
"""The rules that speak of another server's loss."""
WAITS, SILENT = "MH956", "MH957"

SLACK_SECONDS = 5.0
"""Less than anybody would call a delay: one more turn in a queue, a wait that a runtime has anyway."""


class Reference(NamedTuple):
    """What befalls plain entries by the same fault: the runtime's own doing. Seconds behind the run without it.

    `held_seconds`: how much later the first model request leaves; `hidden_seconds`: how much later the others'
    tools come, where that is more; `named` tells whether an output names the struck server (None: it did not fail).
    """

    held_seconds: float = 0.0
    hidden_seconds: float = 0.0
    named: bool | None = None

    @property
    def seconds(self) -> float:
        """How late the others may be."""
        return max(self.held_seconds, self.hidden_seconds)

    def by_budget(self, seconds: float) -> Reference:
        """With the budget of a server's start where a wait is that but for the time that a healthy start takes."""
        held, hidden = (
            seconds if abs(wait - seconds) <= SLACK_SECONDS < wait else wait
            for wait in (self.held_seconds, self.hidden_seconds)
        )
        return self._replace(held_seconds=held, hidden_seconds=hidden)


class Hurt(NamedTuple):
    """One thing that went wrong: the rule, whom it befell, in words that follow `other` (or "the run").

    `events` are ids of the spawn's events. `other` is the server that was hurt (empty: none in particular).
    """

    rule: str
    other: str
    text: str
    events: tuple[int, ...] = ()


def reference(struck: str, calm: Observation, faulty: Observation) -> Reference:
    """What the runtime does to plain companions."""
    others = [name for name in calm.servers if name != struck]
    late = max((lateness(name, struck, calm, faulty) or 0.0 for name in others), default=0.0)
    held = first(faulty) - first(calm)
    named = struck in faulty.named if has_failed(faulty.servers[struck]) else None
    return Reference(max(held, 0.0), late if late > held + SLACK_SECONDS else 0.0, named)


def judge(
    struck: str,
    kind: Kind,
    calm: Observation,
    faulty: Observation,
    known: Reference,
    *,
    more_seconds: float = 0.0,
    tied: Set[str] = frozenset(),
) -> Iterator[Hurt]:
    """What is wrong with a spawn. `known` is what the runtime does to everybody.

    `more_seconds` is how much more patience the entry asks for than a plain one; `tied` names those that are
    struck in the same install.
    """
    if faulty.ended != "done":
        yield Hurt(ENDLESS, "", f"the run does not end: {faulty.ended}", faulty.request_events[-1:])
        return
    if faulty.exit_code != calm.exit_code:
        yield Hurt(HURT, "", f"the run of all servers ends with exit code {faulty.exit_code}")
    for name, before in calm.servers.items():
        if name != struck:
            after = faulty.servers[name]
            lost = loss(before, after)
            if lost:
                yield Hurt(HURT, name, lost, after.events)
            elif not (kind.install and name in tied):
                late = lateness(name, struck, calm, faulty)
                if late is not None and late > known.seconds + more_seconds + SLACK_SECONDS:
                    text = f"gets its tools {late:.0f} s later (a plain entry with this fault: {known.seconds:.0f} s)"
                    yield Hurt(DELAYED, name, text, (*after.events[:1], *faulty.request_events[:1]))
    yield from told(struck, calm, faulty, known)


def has_failed(server: Seen) -> bool:
    """Whether a server did not connect, or its tool could not be called."""
    return server.state != "connected" or not server.answered


def loss(before: Seen, after: Seen) -> str:
    """What a companion lost; empty: nothing."""
    if before.state == "connected" and after.state != "connected":
        return became(after)
    if any(before.offered) and not any(after.offered):
        return "loses its tools, which are never offered"
    if before.answered and not after.answered:
        return "loses its tools, which cannot be called"
    return ""


def became(server: Seen) -> str:
    """What became of a server that did not connect, with the runtime's words."""
    what = {"failed": "fails", "needs-auth": "asks for consent", "skipped": "is skipped"}
    return what.get(server.state, "never comes up") + (f": {server.text}" if server.text else "")


def lateness(name: str, struck: str, calm: Observation, faulty: Observation) -> float | None:
    """How much later a companion's tools are offered; None where they never are.

    Between the second and the last request nobody asks. There it is the server's own time that counts, or, when that
    had passed at the request before, the time at which the struck one had its outcome and hid it no more.
    """
    then, now = offered_seconds(name, struck, calm), offered_seconds(name, struck, faulty)
    return None if then is None or now is None else max(now - then, 0.0)


def offered_seconds(name: str, struck: str, seen: Observation) -> float | None:
    """When a server's tools are offered first."""
    at = next((number for number, offered in enumerate(seen.servers[name].offered) if offered), None)
    if at is None:
        return None
    if at < len(seen.requests) - 1 or at == 0:
        return seen.requests[at]
    asked = seen.requests[at - 1]
    own = seen.servers[name].settled_seconds or 0.0
    return own if own >= asked else max(asked, seen.servers[struck].settled_seconds or 0.0)


def first(seen: Observation) -> float:
    """When the first model request leaves."""
    return seen.requests[0] if seen.requests else 0.0


def told(struck: str, calm: Observation, faulty: Observation, known: Reference) -> Iterator[Hurt]:
    """Whether the outputs name the struck server, and nobody else, as failed."""
    server = faulty.servers[struck]
    if has_failed(server) and struck not in faulty.named and known.named:
        yield Hurt(UNTOLD, "", "nothing that the runtime prints or logs tells that it failed", server.events)
    for name in sorted(faulty.named - calm.named - {struck}):
        if faulty.servers[name].state == "connected" and log_name(name) != log_name(struck):
            yield Hurt(
                UNTOLD, name, "is blamed: the runtime's own report says that it failed", faulty.servers[name].events
            )


def log_name(server: str) -> str:
    """What a server's name is in the names of log folders: who shares one is told apart by nobody (MH704)."""
    return re.sub("[^A-Za-z0-9]", "-", server)


def leaked(owned: Set[str], seen: Observation, before: Observation | None = None) -> Iterator[Hurt]:
    """Markers of the `owned` variables in an output, save those that `before` (the run without the fault) held too."""
    known = {leak.variable for leak in before.leaks} if before is not None else set()
    for leak in seen.leaks:
        if leak.variable in owned and leak.variable not in known:
            text = f"the value of ${{{leak.variable}}} is in {place(leak.where)}"
            yield Hurt(LEAKED, leak.variable, text, (leak.event,) if leak.event is not None else ())


def place(where: str) -> str:
    """Where a marker was found, without the folders that every run names differently."""
    if where.startswith("/"):
        parts = where.rpartition("/mcp-logs-")
        return f"the log mcp-logs-{parts[2].partition('/')[0]}" if parts[1] else f"the file {where}"
    return where
