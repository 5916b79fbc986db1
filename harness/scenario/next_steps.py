"""What to do about a run that failed: the commands that keep it, make it smaller, and explain what fell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from harness.inputs.files import display_path
from harness.scenario.failure import SUFFIX, failure_name
from harness.scenario.library import shipped
from harness.scenario.model import MODEL, Scenario
from harness.scenario.production import Report
from harness.scenario.signature import signature
from harness.scenario.verdicts import Verdict

FAILED = (Verdict.FAIL, Verdict.TIMEOUT, Verdict.DEADLOCK, Verdict.CRASH)
"""These can be played again and made smaller: the others say nothing of who is tested."""
FOLDER = "out"
LEAD = "next:"


class Again(NamedTuple):
    """How a run was asked for: the options that make it the same once more, and the folder its failure is kept in."""

    options: tuple[str, ...] = ()
    folder: str | None = None


def next_steps(report: Report, again: Again) -> list[str]:
    """A line for each; none where the run did not fail."""
    if report.verdict not in FAILED:
        return []
    steps = [*_to_replay(report, again), *_to_explain(report)]
    return [f"  {'' if number else LEAD:<6}{step}" for number, step in enumerate(steps)]


def _to_replay(report: Report, again: Again) -> Iterator[str]:
    if report.scenario.file.endswith(SUFFIX):
        yield f"mcp-harness shrink {shlex.quote(report.scenario.file)}"
        return
    options = [*again.options, *(["--variant", report.variant] if report.variant else [])]
    command = " ".join(
        [f"mcp-harness run {named(report.scenario)} --runtime {report.runtime.label}", *map(shlex.quote, options)]
    )
    fallen = signature(report)
    if report.tier != MODEL or fallen is None:
        yield f"{command} --tier {report.tier} --keep {FOLDER}   (writes every file, and what each process printed)"
        return
    folder = again.folder or FOLDER
    name = failure_name(report.scenario.id, fallen, report.runtime.label, report.variant or None)
    kept = shlex.quote(f"{folder.rstrip('/')}/{name}")
    if again.folder is None:
        yield f"{command} --save {FOLDER}   (keeps this run as a file)"
    yield f"mcp-harness run {kept}   (that run again, choice by choice)"
    yield f"mcp-harness shrink {kept}   (the same with nothing in it that it does not need)"


def _to_explain(report: Report) -> Iterator[str]:
    """Of what fell: invariants, and the holes that cost a chain; else the scenario, where it is shipped."""
    ids = [each.name for each in report.invariants if each.holds is False]
    ids += [name for name, walked in report.holes.items() if walked.lost]
    if not ids and is_shipped(report.scenario):
        ids = [report.scenario.id]
    if ids:
        yield f"mcp-harness explain {' '.join(ids)}"


def named(scenario: Scenario) -> str:
    """What to call a scenario by on the command line: a shipped one by its id, else its file."""
    return scenario.id if is_shipped(scenario) or not scenario.file else shlex.quote(scenario.file)


def is_shipped(scenario: Scenario) -> bool:
    """Whether it is one of those that come with the harness."""
    path = shipped().get(scenario.id)
    return path is not None and display_path(path) == scenario.file
