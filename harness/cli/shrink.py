"""`mcp-harness shrink`: make a failure small, then say it without any decision."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from harness.cli.keeping import keep, try_folder
from harness.cli.numbers import LONGEST_MINUTES, check_number
from harness.cli.output import deliver, targets_of
from harness.gate.spawn import runtime_asked
from harness.inputs.files import display_path
from harness.next_steps import Step, step_values
from harness.requirements.patching import Patch
from harness.requirements.variants import Variant
from harness.scenario.failure import SUFFIX, Failure, failure_text, load_failure
from harness.scenario.holds import Proposal, Search
from harness.scenario.proposals import incident_text, origin, passes
from harness.scenario.shrinking import Choice, DoesNotFailError, Progress, Shrinker, Shrunk, chosen
from harness.scenario.signature import Signature
from harness.scenario.trees import Tree
from harness.scenario.variants import find_variant

SCHEMA = "mcp-harness/shrink-report/1"
SMALL = ".small"


class Result(NamedTuple):
    """What was found, what came of it, and where that was written. `scenario` is empty where no proposal was found.

    `others` is what fell besides what was kept.
    """

    found: Failure
    shrunk: Shrunk
    proposal: Proposal | None
    small: str
    scenario: str
    seconds: float
    others: tuple[Signature, ...] = ()


def run(arguments: argparse.Namespace) -> int:
    """0 it is smaller (or cannot be), 1 it does not fail as the file says, 2 unusable, 3 its variant is not here."""
    check_number(arguments.seconds, "--seconds", most=60 * LONGEST_MINUTES, above=True)
    targets = targets_of(arguments.format)
    path = Path(arguments.failure)
    failure = load_failure(path)
    runtime_asked(failure.runtime, f"{display_path(path)}: runtime")
    folder = path.parent if arguments.save is None else Path(arguments.save)
    try_folder(folder, "--save")
    rule = Rule(None if failure.variant is None else find_variant(failure.variant))
    with rule:
        try:
            choice = chosen(failure, arguments.keep)
            is_other = choice.failure.signature != failure.signature
            small = folder / small_name(choice.failure.name if is_other else path.name)
            result = shrink(choice, small, rule, arguments.seconds)
        except DoesNotFailError:
            print(
                f"{display_path(path)}: it does not fail any more as the file says ({failure.signature}); "
                f"see mcp-harness run {display_path(path)}",
                file=sys.stderr,
            )
            return 1
    in_format = {"json": lambda: json.dumps(document(result), indent=2), "text": lambda: "\n".join(lines(result))}
    deliver(targets, lambda name: in_format[name]())
    return 0


class Rule:
    """The known-bad variant in place of the right rule, or, for a moment, the right rule again."""

    def __init__(self, variant: Variant | None) -> None:
        self.patch = None if variant is None else Patch(variant)

    def __enter__(self) -> Rule:
        if self.patch is not None:
            self.patch.apply()
        return self

    def __exit__(self, *_: object) -> None:
        if self.patch is not None:
            self.patch.undo()

    def passes_right(self, tree: Tree, values: Sequence[int] = (), *, failure: Failure) -> bool:
        """Whether the scenario, and these choices of it, pass with the right rule; True where there is no other."""
        if self.patch is None:
            return True
        self.patch.undo()
        try:
            return passes(tree, failure.runtime, values, failure.seed)
        finally:
            self.patch.apply()


def shrink(choice: Choice, small: Path, rule: Rule, seconds: float) -> Result:
    """Shrink, search for holds in the time that is left (at least a third of it), and write both beside each other."""
    began = time.monotonic()
    failure, folder = choice.failure, small.parent
    is_right = partial(rule.passes_right, failure=failure)
    shrinker = Shrinker(
        failure,
        is_over=over(began + seconds),
        tell=tell(began),
        keep=lambda smaller: keep(small, failure_text(smaller), "--save"),
        accepts=is_right,
    )
    shrunk = shrinker.run()
    print(f"shrink: {progress(shrunk.after)}; now looking for holds", file=sys.stderr)
    search = Search(
        shrunk.failure,
        is_over=over(max(began + seconds, time.monotonic() + seconds / 3)),
        accepts=is_right,
        cost=shrunk.cost,
    )
    proposal = search.run()
    scenario = ""
    if proposal is not None:
        name = f"{shrunk.failure.name.removesuffix(SUFFIX)}.toml"
        keep(folder / name, incident_text(shrunk.failure, proposal, name.removesuffix(".toml"), failure), "--save")
        scenario = display_path(folder / name)
    return Result(failure, shrunk, proposal, display_path(small), scenario, time.monotonic() - began, choice.others)


def small_name(name: str) -> str:
    """What the smaller failure is called; one that is small already keeps its name."""
    stem = name.removesuffix(SUFFIX).removesuffix(".toml")
    return f"{stem.removesuffix(SMALL)}{SMALL}{SUFFIX}"


def over(deadline: float) -> Callable[[], bool]:
    """Whether that time has come."""
    return lambda: time.monotonic() >= deadline


def tell(began: float) -> Callable[[Progress], None]:
    """Progress on stderr."""
    return lambda now: print(f"shrink: {progress(now)}, {time.monotonic() - began:.1f} s", file=sys.stderr)


def progress(now: Progress) -> str:
    """How far it is, in words."""
    return f"{now.runs} runs, {now.parts} parts and {now.choices} choices left"


def lines(result: Result) -> Iterator[str]:
    """The report as text."""
    shrunk, proposal = result.shrunk, result.proposal
    before, after = shrunk.before, shrunk.after
    lost = f", and the chain that is lost by {' and '.join(sorted(shrunk.cost))}" if shrunk.cost else ""
    yield f"keeps  {shrunk.failure.signature}{lost}"
    yield from (f"  not kept   {each}" for each in result.others)
    if result.others:
        yield "             (--keep RULE or --keep WHO keeps another one)"
    yield f"on {shrunk.failure.runtime}{f', with {shrunk.failure.variant}' if shrunk.failure.variant else ''}"
    yield ""
    yield f"  parts of the scenario   {before.parts:>5} -> {after.parts}"
    yield f"  choices that count      {before.choices:>5} -> {after.choices}"
    yield f"  steps of the run        {before.steps:>5} -> {after.steps}"
    yield f"  smaller failure   {replaying(result).command}"
    if proposal is not None:
        yield f"  without choices   {without_choices(result).command}"
        yield from (f"    {word}" for word in proposal.fixed)
        yield from (f"    {hold_words(hold)}" for hold in proposal.holds)
    else:
        yield "  without choices   nothing found in time that shows it in the calmest order"
    state = "MINIMAL" if shrunk.failure.minimal else "SMALLER"
    yield (
        f"{state}  {after.parts} parts, {after.choices} choices; {shrunk.runs} runs to shrink, "
        f"{proposal.runs if proposal else 'no'} for holds; {result.seconds:.1f} s; found {origin(result.found)}; exit 0"
        + ("" if shrunk.failure.minimal else f"   (the time was over: go on with {going_on(result).command})")
    )


def next_steps(result: Result) -> Iterator[Step]:
    """What to do now."""
    yield replaying(result)
    if result.proposal is not None:
        yield without_choices(result)
    if not result.shrunk.failure.minimal:
        yield going_on(result)


def replaying(result: Result) -> Step:
    """The smaller failure again."""
    return Step(f"mcp-harness run {shlex.quote(result.small)}", "the smaller failure, choice by choice")


def without_choices(result: Result) -> Step:
    """The scenario that was found."""
    command = f"mcp-harness run {shlex.quote(result.scenario)}{variant_option(result.shrunk.failure)}"
    return Step(command, "the same without any choice")


def going_on(result: Result) -> Step:
    """Shrinking that was not done in time."""
    return Step(f"mcp-harness shrink {shlex.quote(result.small)}", "the time was over: goes on")


def variant_option(failure: Failure) -> str:
    """How to put the failure's variant in place."""
    return f" --variant {failure.variant}" if failure.variant else ""


def hold_words(hold: Any) -> str:
    """A hold as a sentence."""
    return f"hold {hold['actor']} at {hold['at']!r} until {hold['until']['event']} by {hold['until']['who']}"


def document(result: Result) -> dict[str, Any]:
    """The report as JSON."""
    shrunk, proposal = result.shrunk, result.proposal
    return {
        "schema": SCHEMA,
        "signature": shrunk.failure.signature._asdict(),
        "not_kept": [each._asdict() for each in result.others],
        "chains_lost": sorted(shrunk.cost),
        "runtime": shrunk.failure.runtime,
        "variant": shrunk.failure.variant,
        "minimal": shrunk.failure.minimal,
        "before": shrunk.before._asdict(),
        "after": shrunk.after._asdict(),
        "runs": shrunk.runs,
        "failure_file": result.small,
        "scenario_file": result.scenario or None,
        "fixed": list(proposal.fixed) if proposal else [],
        "holds": [dict(hold) for hold in proposal.holds] if proposal else [],
        "seconds": round(result.seconds, 3),
        "next": step_values(next_steps(result)),
        "exit_code": 0,
    }
