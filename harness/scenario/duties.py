"""Which stores an actor of the orchestrator has to look into before it presents a token, and whether it did in time.

The scheduled job reads every store that all sessions of the host share; a spawn reads the one that its runtime will
(seed 002 "Capturing the token the runtime rotates"). What these rules leave unread is an accepted hole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from harness.scenario import holes
from harness.scenario.stores import KEYRING, is_host_global

OWN_DIRECTORY = {
    "claude": ("CLAUDE_CONFIG_DIR",),
    "codex": ("CODEX_HOME",),
    "pi": ("MCP_OAUTH_DIR", "PI_CODING_AGENT_DIR"),
}
"""Variables by which a session's runtime has a directory of its own."""
LOOK_SECONDS = 300.0
"""An older look belongs to an earlier decision. In between is at most the wait for a row: a request takes 60 s."""


class Look(NamedTuple):
    """An actor has read a store: when, at which arrival, what stood there, whether a fault kept
    it from that.
    """

    actor: str
    at: float
    arrival: int
    held: Mapping[Any, Any]
    failed: bool


class Seeker(NamedTuple):
    """For whom an actor looks: the family of a session's runtime, empty for a job; the session's own directory."""

    family: str = ""
    directory: str = ""


def seeker_of(job: Any) -> Seeker:
    """For whom the process of a session looks; None is no session's."""
    if job is None:
        return Seeker()
    family = job.runtime.family
    given = (job.environment.get(name) for name in OWN_DIRECTORY[family])
    return Seeker(family, next((path for path in given if path), ""))


def duty(seeker: Seeker, store: str, family: str) -> str:
    """Empty where the store has to be looked into; else the hole that comes of leaving it out."""
    if seeker.family and seeker.family != family:
        return holes.OTHER_RUNTIME
    if seeker.directory and not store.startswith(KEYRING):
        return "" if store.startswith(seeker.directory) else holes.ONE_SESSION
    return "" if is_host_global(store) else holes.ONE_SESSION


def seen_in_time(looks: Sequence[Look], since: int, now: float) -> list[Look]:
    """The looks that count for a decision at a time: those after an earlier one, and none that is too old."""
    return [look for look in looks if look.arrival > since and now - look.at <= LOOK_SECONDS]
