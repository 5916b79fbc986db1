"""From a failure that needs decisions to one that needs none: what was drawn is written down, and a race becomes holds.

Three steps, each only if the one before was not enough. The drawn start times and faults of the failing run are
written into the scenario. Then its switch points are looked at: where an actor came to a point and others did
something before it went on, a hold that keeps it there until they have is tried, then two of them together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import combinations
from typing import Any, NamedTuple

from harness.scenario.failure import Failure
from harness.scenario.naming import OPERATOR, plain
from harness.scenario.production import Report, play
from harness.scenario.shrinking import OutOfTime
from harness.scenario.signature import falls_alike
from harness.scenario.trees import Tree, fits
from harness.world.model import Calm, Decision, Decisions, Event, Listed
from harness.world.model.decisions import FAULT, START

OCCURRENCES = 6
PAIRED = 40
"""So many of the likeliest holds are tried in pairs."""
UNSPEAKING = ("request", "mcp.received", "server.connecting", "stalled")
_BLOCKING = re.compile(r"(stdin|stdout|stderr|signal|wait)\b")
"""Places where an actor waits for another one by itself."""
_DRAWN_NAME = re.compile(r"[0-9a-f]{8,}")


class Proposal(NamedTuple):
    """A scenario that fails without any decision. `holds` are those that it took, `fixed` what was drawn before,
    `shows` what is then seen.
    """

    tree: Tree
    holds: tuple[Mapping[str, Any], ...]
    fixed: tuple[str, ...]
    runs: int
    shows: str


class Candidate(NamedTuple):
    """A hold that may do it: `delay` is for how many events the failing run kept the actor there."""

    hold: Mapping[str, Any]
    delay: int


class Search:
    """Looks for a proposal. `is_over` tells when to stop; `accepts` may refuse a tree that fails (as when the right
    rule does not pass on it), `cost` names the accepted holes that have to cost a chain in it.
    """

    def __init__(
        self,
        failure: Failure,
        *,
        is_over: Callable[[], bool],
        accepts: Callable[[Tree], bool] = lambda _: True,
        cost: frozenset[str] = frozenset(),
    ) -> None:
        self.failure, self.is_over, self.accepts, self.cost = failure, is_over, accepts, cost
        self.runs = 0
        self.shows = ""

    def run(self) -> Proposal | None:
        """The first proposal that fails in the calmest run; None where none was found in time."""
        try:
            return self._search()
        except OutOfTime:
            return None

    def _search(self) -> Proposal | None:
        tree, decisions = self.failure.scenario, self.failure.decisions
        if self._is_enough(tree):
            return self._proposal(tree, (), ())
        fixed = list(self._fixed(tree, decisions))
        for words, candidate, _ in fixed:
            if self._is_enough(candidate):
                return self._proposal(candidate, (), words)
        for words, candidate, rest in fixed or [((), tree, decisions)]:
            found = self._with_holds(candidate, rest)
            if found is not None:
                return self._proposal(*found, words)
        return None

    def _proposal(self, tree: Tree, holds: Sequence[Mapping[str, Any]], words: Sequence[str]) -> Proposal:
        return Proposal(tree, tuple(holds), tuple(words), self.runs, self.shows)

    # --- tries

    def _play(self, tree: Tree, decisions: Decisions, *, notes_points: bool = False) -> Report | None:
        if self.is_over():
            raise OutOfTime
        scenario = fits(tree)
        if scenario is None:
            return None
        self.runs += 1
        return play(scenario, self.failure.runtime, decisions, seed=self.failure.seed, notes_points=notes_points)

    def _fails(self, report: Report | None) -> bool:
        return report is not None and falls_alike(report, self.failure.signature, self.cost)

    def _is_enough(self, tree: Tree) -> bool:
        report = self._play(tree, Calm())
        if report is None or not self._fails(report) or not self.accepts(tree):
            return False
        self.shows = report.failures[0] if report.failures else report.detail
        return True

    # --- what was drawn

    def _fixed(
        self, tree: Tree, decisions: Sequence[Decision]
    ) -> Iterator[tuple[tuple[str, ...], Tree, tuple[Decision, ...]]]:
        """Trees in which drawn faults strike for certain, and drawn starts are the only ones; the decisions left."""
        for words, with_faults in self._faults_fixed(tree):
            without_faults = tuple(each for each in decisions if each.kind != FAULT) if words else tuple(decisions)
            starts, with_starts = starts_fixed(with_faults, without_faults)
            rest = tuple(each for each in without_faults if each.kind != START) if starts else without_faults
            if (words or starts) and self._fails(self._play(with_starts, Listed(each.value for each in rest))):
                yield (*words, *starts), with_starts, rest

    def _faults_fixed(self, tree: Tree) -> Iterator[tuple[tuple[str, ...], Tree]]:
        drawn = [index for index, fault in enumerate(tree.get("fault", ())) if fault.get("drawn")]
        if not drawn:
            yield (), tree
            return
        for nth in (None, *range(1, OCCURRENCES + 1)):
            copy = deepcopy(tree)
            for index in drawn:
                fault = copy["fault"][index]
                del fault["drawn"]
                if nth is not None:
                    fault["nth"] = nth
            where = "wherever it can" if nth is None else f"at occurrence {nth}"
            yield (f"the fault strikes {where}",), copy
        yield from self._faults_at_place(tree, drawn)

    def _faults_at_place(self, tree: Tree, drawn: Sequence[int]) -> Iterator[tuple[tuple[str, ...], Tree]]:
        """At the very places where they struck in the failing run."""
        report = self._play(tree, Listed(each.value for each in self.failure.decisions))
        struck = [event for event in (report.events if report else ()) if event.name == "fault"]
        for event in struck:
            copy = deepcopy(tree)
            for index in drawn:
                fault = copy["fault"][index]
                if fault["action"] == event.details["action"]:
                    fault["at"] = anywhere(str(event.details["at"]))
                    fault["times"] = 1
                    del fault["drawn"]
            yield (f"the fault strikes at {anywhere(str(event.details['at']))}",), copy

    # --- holds

    def _with_holds(self, tree: Tree, rest: Sequence[Decision]) -> tuple[Tree, list[Mapping[str, Any]]] | None:
        failing = self._play(tree, Listed(each.value for each in rest), notes_points=True)
        calm = self._play(tree, Calm(), notes_points=True)
        if failing is None or calm is None:
            return None
        likely = sorted(candidates(failing, calm), key=lambda each: -each.delay)
        choices: list[tuple[Candidate, ...]] = [(each,) for each in likely]
        choices += list(combinations(likely[:PAIRED], 2))
        for chosen in choices:
            holds = [each.hold for each in chosen]
            held = {**tree, "hold": [*tree.get("hold", ()), *holds]}
            if self._is_enough(held):
                return held, holds
        return None


def starts_fixed(tree: Tree, decisions: Sequence[Decision]) -> tuple[tuple[str, ...], Tree]:
    """The tree with each offered start time replaced by the one that was drawn, and what that says."""
    drawn = iter(each.value for each in decisions if each.kind == START)
    copy = deepcopy(tree)
    words = []
    for step in copy["step"]:
        offered = step.get("after_seconds", ())
        if len(offered) > 1:
            chosen = offered[next(drawn, 0) % len(offered)]
            step["after_seconds"] = [chosen]
            session = step.get("start") or step.get("follow_up")
            words.append(f"session {session} starts after {chosen:g} s")
    return tuple(words), copy


def candidates(failing: Report, calm: Report) -> Iterator[Candidate]:
    """Holds that the failing run suggests and that would change the calm one, each once."""
    told: set[str] = set()
    early = dict(visits(calm, keep_first=True))
    for (actor, label), (arrived, left) in visits(failing):
        if plain(actor) == OPERATOR or _BLOCKING.match(label):
            continue
        for number in range(left - 1, arrived - 1, -1):
            event = failing.events[number]
            if event.actor == actor or event.name in UNSPEAKING:
                continue
            hold = hold_for(actor, label, event)
            before = early.get((actor, label))
            key = repr(hold)
            if key in told or (before is not None and happened(hold["until"], calm.events[: before[0]])):
                continue
            told.add(key)
            yield Candidate(hold, left - arrived)


Visit = tuple[tuple[str, str], tuple[int, int]]


def visits(report: Report, *, keep_first: bool = False) -> list[Visit]:
    """Each arrival of an actor at a point, with how many events had happened then, and when it came to its next.

    An actor comes to its first point when it is started, however long it stays away before it runs.
    """
    found: list[Visit] = []
    started = {event.details["child"]: number for number, event in enumerate(report.events) if event.name == "spawn"}
    open_visits: dict[str, tuple[str, int]] = {}
    for point in report.points:
        if point.actor in open_visits:
            label, arrived = open_visits[point.actor]
            found.append(((point.actor, label), (arrived, point.events)))
            open_visits[point.actor] = (point.label, point.events)
        else:
            open_visits[point.actor] = (point.label, started.get(point.actor, point.events))
    found += [((actor, label), (arrived, len(report.events))) for actor, (label, arrived) in open_visits.items()]
    return list(dict(reversed(found)).items()) if keep_first else found


def hold_for(actor: str, label: str, event: Event) -> dict[str, Any]:
    """Keep the actor at the point until such an event of the other one; drawn names become globs."""
    until = {"event": event.name, "who": plain(event.actor) if "#" not in event.actor else event.actor}
    return {"actor": actor if "#" in actor else plain(actor), "at": anywhere(label), "until": until}


def anywhere(label: str) -> str:
    """A switch point's label without the folders and drawn names that another clone, or another rule, would change."""
    verb, space, path = label.partition(" ")
    if not space or "/" not in path or "://" in path:
        return label
    _, to, target = path.partition(" to ")
    kept = "/".join((target if to else path).split("/")[-2:])
    return _DRAWN_NAME.sub("*", f"{verb} *{' to *' if to else ''}/{kept}")


def happened(until: Mapping[str, Any], events: Sequence[Event]) -> bool:
    """Whether such an event is among these."""
    return any(event.name == until["event"] and until["who"] in (event.actor, plain(event.actor)) for event in events)
