"""What may go wrong, and where actors are held back: data that the ports ask at their switch points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from harness.world.errors import WorldFault
from harness.world.model.decisions import FAULT, Decisions
from harness.world.sites import ACTIONS, ANSWERS


class Site(NamedTuple):
    """One place where a fault may strike: which port call, by whom, on what, when, for the how-manieth time.

    `content` is what a request carries; empty elsewhere.
    """

    port: str
    actor: str
    label: str
    now: float
    occurrence: int
    content: str = ""


class Fault(NamedTuple):
    """A fault strikes where its port, actor, label and content (globs) match, at occurrence `nth` (None: at each).

    It strikes only where its action can have its effect. Occurrences are counted for each actor and label apart.
    `drawn` leaves it to the decisions whether it strikes; else it always does. `times` limits how often.
    `after_seconds` and `before_seconds` are virtual time since the start of the run.
    `seconds` is the delay of `slow`, `answer` the response of `answer` and `answer-after`.
    """

    action: str
    port: str = "*"
    actor: str = "*"
    label: str = "*"
    nth: int | None = None
    after_seconds: float = 0.0
    before_seconds: float = float("inf")
    drawn: bool = False
    times: int | None = None
    seconds: float = 0.0
    answer: Any = None
    content: str = "*"

    def matches(self, site: Site) -> bool:
        """Whether it may strike here."""
        return (
            self.is_at(site.port, site.actor, site.label)
            and self.nth in (None, site.occurrence)
            and self.after_seconds <= site.now <= self.before_seconds
            and fits(site.content, self.content)
        )

    def is_at(self, port: str, actor: str, label: str) -> bool:
        """Whether it may strike there at any time."""
        return self.is_meant(actor) and fits(port, self.port) and fits(label, self.label)

    def is_meant(self, actor: str) -> bool:
        """Whether it may strike this actor."""
        return fits(actor, self.actor)


def fits(text: str, pattern: str) -> bool:
    """Whether a glob means a text; most mean any."""
    return pattern == "*" or fnmatchcase(text, pattern)


class FaultPlan:
    """The faults of one run. Without faults it never asks the decisions anything.

    `actions` are all that its faults may do: where none of them can strike nobody need ask.
    """

    def __init__(self, faults: Sequence[Fault] = ()) -> None:
        self.faults = tuple(faults)
        for fault in self.faults:
            if fault.action not in ACTIONS:
                raise WorldFault(f"no fault has the action {fault.action!r}; there are {', '.join(sorted(ACTIONS))}")
            if fault.action in ANSWERS and fault.answer is None:
                raise WorldFault(f"a fault {fault.action!r} needs its answer")
        self.actions = frozenset(fault.action for fault in self.faults)
        self._struck = [0] * len(self.faults)
        self._met: dict[tuple[str, str, str], int] = {}
        self._concerned: dict[tuple[str, str, str], bool] = {}
        self._of_port: dict[str, tuple[Fault, ...]] = {}

    def concerns(self, port: str, actor: str, label: str) -> bool:
        """Whether any of its faults may strike there at any time: where none can, `strike` need not be asked."""
        key = (port, actor, label)
        known = self._concerned.get(key)
        if known is None:
            faults = self._of_port.get(port)
            if faults is None:
                faults = self._of_port[port] = tuple(fault for fault in self.faults if fits(port, fault.port))
            known = self._concerned[key] = bool(faults) and any(fault.is_at(port, actor, label) for fault in faults)
        return known

    def strike(
        self,
        port: str,
        actor: str,
        label: str,
        now: float,
        decisions: Decisions,
        actions: frozenset[str] = ACTIONS,
        content: str = "",
    ) -> Fault | None:
        """The fault that strikes at this site, if any; `actions` are those that can strike here."""
        key = (port, actor, label)
        occurrence = self._met.get(key, 0) + 1
        self._met[key] = occurrence
        site = Site(port, actor, label, now, occurrence, content)
        for index, fault in enumerate(self.faults):
            if fault.action not in actions or (fault.times is not None and self._struck[index] >= fault.times):
                continue
            if fault.matches(site) and (not fault.drawn or decisions.choose(FAULT, 2)):
                self._struck[index] += 1
                return fault
        return None


class Event(NamedTuple):
    """Something that happened: emitted by an actor, or by a port on its behalf. Times in virtual seconds."""

    at_seconds: float
    actor: str
    name: str
    details: dict[str, Any]


class Hold(NamedTuple):
    """Keeps an actor (glob) at a switch point (glob on its label) until an event has happened.

    An event that happened before the actor got there counts too, so that the order is the same whoever is first;
    with `after_arrival` it does not. It holds the first `times` arrivals, each until an event of its own.
    After `limit_seconds` of virtual time it lets go, and the run tells so: a hold that only its limit ended no longer
    says what it was written to say.
    """

    actor: str
    at: str
    until: Callable[[Event], bool]
    limit_seconds: float = 300.0
    times: int = 1
    after_arrival: bool = False

    def matches(self, actor: str, label: str) -> bool:
        """Whether it holds this actor here."""
        return fnmatchcase(actor, self.actor) and fnmatchcase(label, self.at)
