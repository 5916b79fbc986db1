"""Campaigns: many runs of one family, each from a seed of its own, and what they add up to.

Run `n` of a campaign is the same on every machine and however many processes share the work. What is kept of a
campaign is small: counts, reach marks, and for each way to fail the first run that showed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.errors import UserInputError
from harness.scenario.draws import Draws
from harness.scenario.failure import Failure, failure_of
from harness.scenario.families import Family
from harness.scenario.garbage import seldom_collected
from harness.scenario.holes import Walked, summed
from harness.scenario.production import Report, play
from harness.scenario.reach import Mark, never, reached
from harness.scenario.signature import signature
from harness.scenario.trees import scenario_from
from harness.scenario.verdicts import Verdict
from harness.world.model import Seeded

FORMAT = "mcp-harness/campaign/1"
RATES = {
    "run": (0.0, 0.1, 0.3, 0.6),
    "stall": (0.0, 0.02, 0.05, 0.15),
    "fault": (0.0, 0.3, 0.6),
    "start": (0.0, 0.5, 0.9),
}
"""How often a run does anything but go on, drawn for each run: some are calm in one way and wild in another."""


class Outcome(NamedTuple):
    """What one run adds to a campaign. `failure` where it failed."""

    number: int
    seed: int
    verdict: str
    steps: int
    marks: tuple[str, ...]
    failure: Failure | None
    holes: Mapping[str, Walked] = {}


class Batch(NamedTuple):
    """What some runs in a row add up to. `failures` maps each signature to the first run that showed it."""

    first: int
    runs: int
    steps: int
    verdicts: Mapping[str, int]
    marks: Mapping[str, int]
    failures: Mapping[str, tuple[int, Failure]]
    failed: Mapping[str, int]
    holes: Mapping[str, Walked] = {}


def decisions_of(seed: int) -> Seeded:
    """The decisions of a run, at rates of its own."""
    draws = Draws("rates", seed)
    rates = {kind: draws.choice(kind, choices) for kind, choices in RATES.items()}
    return Seeded(seed, **rates)


def run_seed(campaign_seed: int, family: str, number: int) -> int:
    """The seed of a campaign's `number`-th run."""
    return Draws("campaign", family, campaign_seed).seed(str(number))


def play_seed(family: Family, seed: int) -> Report:
    """The run of a seed: its scenario and its decisions both come from it."""
    scenario = scenario_from(family.tree(seed), family.name)
    return play(scenario, scenario.runtimes[0], decisions_of(seed), seed=seed)


def run_one(family: Family, campaign_seed: int, number: int, variant: str | None = None) -> Outcome:
    """The `number`-th run of a campaign."""
    seed = run_seed(campaign_seed, family.name, number)
    report = play_seed(family, seed)
    failed = signature(report) is not None
    failure = failure_of(report, seed=seed, variant=variant, tree=family.tree(seed)) if failed else None
    return Outcome(
        number, seed, report.verdict.value, report.steps, reached(family.marks, report), failure, report.holes
    )


def run_batch(family: Family, campaign_seed: int, first: int, runs: int, variant: str | None = None) -> Batch:
    """Some runs in a row. What one of them leaves is found during the next."""
    with seldom_collected():
        return batch_of(first, (run_one(family, campaign_seed, first + each, variant) for each in range(runs)))


def batch_of(first: int, outcomes: Iterable[Outcome]) -> Batch:
    """What outcomes add up to."""
    runs = steps = 0
    verdicts: dict[str, int] = {}
    marks: dict[str, int] = {}
    failures: dict[str, tuple[int, Failure]] = {}
    failed: dict[str, int] = {}
    holes: dict[str, Walked] = {}
    for outcome in outcomes:
        summed(holes, outcome.holes)
        runs, steps = runs + 1, steps + outcome.steps
        verdicts[outcome.verdict] = verdicts.get(outcome.verdict, 0) + 1
        for mark in outcome.marks:
            marks[mark] = marks.get(mark, 0) + 1
        if outcome.failure is not None:
            name = outcome.failure.name
            failures.setdefault(name, (outcome.number, outcome.failure))
            failed[name] = failed.get(name, 0) + 1
    return Batch(first, runs, steps, verdicts, marks, failures, failed, holes)


class Kept(NamedTuple):
    """A way to fail that a campaign has seen: the file's name, what fell, the first run, how many, on which runtime."""

    file: str
    says: str
    first_run: int
    runs: int
    runtime: str = ""


class Tally:
    """A campaign so far. Batches are added in the order of their runs, so that what is kept is always a beginning."""

    def __init__(self, family: str, seed: int, variant: str | None = None) -> None:
        self.family, self.seed, self.variant = family, seed, variant
        self.runs = self.steps = 0
        self.seconds = 0.0
        self.verdicts: dict[str, int] = {}
        self.marks: dict[str, int] = {}
        self.corpus: dict[str, Kept] = {}
        self.holes: dict[str, Walked] = {}

    def add(self, batch: Batch) -> tuple[Failure, ...]:
        """Add the next runs; returns the failures that were not known before."""
        if batch.first != self.runs:
            raise ValueError(f"the next run is {self.runs}, not {batch.first}")
        self.runs, self.steps = self.runs + batch.runs, self.steps + batch.steps
        for into, more in ((self.verdicts, batch.verdicts), (self.marks, batch.marks)):
            for name, count in more.items():
                into[name] = into.get(name, 0) + count
        summed(self.holes, batch.holes)
        new = [failure for name, (_, failure) in batch.failures.items() if name not in self.corpus]
        for name, (number, failure) in batch.failures.items():
            kept = self.corpus.get(name) or Kept(name, str(failure.signature), number, 0, failure.runtime)
            self.corpus[name] = kept._replace(runs=kept.runs + batch.failed[name])
        return tuple(new)

    @property
    def failing_runs(self) -> int:
        """How many runs failed."""
        return sum(count for name, count in self.verdicts.items() if Verdict(name).exit_code)

    def unreached(self, marks: Iterable[Mark]) -> tuple[Mark, ...]:
        """The marks that no run has reached."""
        return never(marks, self.marks)

    def state(self) -> dict[str, Any]:
        """Everything that going on later needs, for a file."""
        return {
            "format": FORMAT,
            "family": self.family,
            "seed": self.seed,
            "variant": self.variant,
            "runs": self.runs,
            "steps": self.steps,
            "seconds": round(self.seconds, 3),
            "verdicts": dict(sorted(self.verdicts.items())),
            "marks": dict(sorted(self.marks.items())),
            "corpus": [kept._asdict() for kept in self.corpus.values()],
            "holes": {name: walked._asdict() for name, walked in sorted(self.holes.items())},
        }


def tally_from(state: Any, name: str) -> Tally:
    """The campaign that a state file tells of. Raises UserInputError."""
    try:
        tally = Tally(str(state["family"]), int(state["seed"]), state["variant"])
        known = state["format"] == FORMAT
        tally.runs, tally.steps, tally.seconds = int(state["runs"]), int(state["steps"]), float(state["seconds"])
        tally.verdicts = {Verdict(key).value: int(count) for key, count in state["verdicts"].items()}
        tally.marks = {str(key): int(count) for key, count in state["marks"].items()}
        tally.corpus = {kept["file"]: Kept(**kept) for kept in state["corpus"]}
        tally.holes = {str(name): Walked(**walked) for name, walked in state.get("holes", {}).items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        known = False
    if not known:
        raise UserInputError("is no state of a campaign", file=name, fix="Start anew in an empty folder.")
    return tally
