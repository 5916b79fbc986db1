"""What to do about a run that failed: the commands that keep it, make it smaller, and explain what fell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from harness.inputs.files import display_path
from harness.next_steps import Step
from harness.scenario.failure import SUFFIX, failure_name
from harness.scenario.library import shipped
from harness.scenario.model import Scenario
from harness.scenario.production import Report
from harness.scenario.signature import signature
from harness.scenario.tiers import MODEL
from harness.scenario.verdicts import Verdict

FAILED = (Verdict.FAIL, Verdict.TIMEOUT, Verdict.DEADLOCK, Verdict.CRASH)
"""These can be played again and made smaller: the others say nothing of who is tested."""
FOLDER = "out"


class Again(NamedTuple):
    """How a run was asked for: the options that make it the same once more, and the folder its failure is kept in."""

    options: tuple[str, ...] = ()
    folder: str | None = None


def next_steps(report: Report, again: Again) -> list[Step]:
    """In order; none where the run did not fail, save for a hold or a fault that found nobody."""
    if report.verdict is Verdict.UNTESTABLE:
        return list(_to_aim(report, again))
    return [*_to_replay(report, again), *_to_explain(report)] if report.verdict in FAILED else []


def _to_aim(report: Report, again: Again) -> Iterator[Step]:
    """Where a hold or a fault could have found somebody."""
    scenario = report.scenario
    if report.tier == MODEL and (scenario.holds or scenario.faults):
        yield Step(f"{_command(report, again)} --points", "every place where a hold or a fault can find somebody")


def _command(report: Report, again: Again) -> str:
    """The run once more."""
    file = report.scenario.file
    if file.endswith(SUFFIX):
        return f"mcp-harness run {shlex.quote(file)}"
    options = [*again.options, *(["--variant", report.variant] if report.variant else [])]
    command = f"mcp-harness run {named(report.scenario)} --runtime {report.runtime.label}"
    return " ".join([command, *map(shlex.quote, options)])


def _to_replay(report: Report, again: Again) -> Iterator[Step]:
    if report.scenario.file.endswith(SUFFIX):
        yield Step(f"mcp-harness shrink {shlex.quote(report.scenario.file)}")
        return
    command = _command(report, again)
    fallen = signature(report)
    if report.tier != MODEL or fallen is None:
        keeping = f"{command} --tier {report.tier} --keep {FOLDER}"
        yield Step(keeping, "writes every file, and what each process printed")
        return
    folder = again.folder or FOLDER
    name = failure_name(report.scenario.id, fallen, report.runtime.label, report.variant or None)
    kept = shlex.quote(f"{folder.rstrip('/')}/{name}")
    if again.folder is None:
        yield Step(f"{command} --save {FOLDER}", "keeps this run as a file")
    yield Step(f"mcp-harness run {kept}", "that run again, choice by choice")
    yield Step(f"mcp-harness shrink {kept}", "the same with nothing in it that it does not need")


def _to_explain(report: Report) -> Iterator[Step]:
    """Of what fell: invariants, and the holes that cost a chain; else the scenario, where it is shipped."""
    ids = [each.name for each in report.invariants if each.holds is False]
    ids += [name for name, walked in report.holes.items() if walked.lost]
    if not ids and is_shipped(report.scenario):
        ids = [report.scenario.id]
    if ids:
        yield Step(f"mcp-harness explain {' '.join(ids)}")


def named(scenario: Scenario) -> str:
    """What to call a scenario by on the command line: a shipped one by its id, else its file."""
    return scenario.id if is_shipped(scenario) or not scenario.file else shlex.quote(scenario.file)


def is_shipped(scenario: Scenario) -> bool:
    """Whether it is one of those that come with the harness."""
    path = shipped().get(scenario.id)
    return path is not None and display_path(path) == scenario.file
