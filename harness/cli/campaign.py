"""`mcp-harness campaign`: many runs of a family of scenarios, in several processes, as long as is asked."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

from harness.cli.arguments.campaign import FAMILIES, FOLDER, MINUTES
from harness.cli.interrupting import ended_by_signals
from harness.cli.keeping import keep, try_folder
from harness.cli.numbers import LARGEST, LONGEST_MINUTES, MOST_PROCESSES, MOST_RUNS, check_number
from harness.cli.output import deliver, targets_of
from harness.errors import UserInputError
from harness.inputs.files import display_path, is_there, read_text
from harness.next_steps import Step, step_values
from harness.scenario.campaign import Batch, Kept, Tally, run_batch, tally_from
from harness.scenario.failure import failure_text
from harness.scenario.families import Family, family_named
from harness.scenario.timeline import closing
from harness.scenario.variants import find_variant, in_place

SCHEMA = "mcp-harness/campaign-report/1"
STATE = "campaign.json"
BATCH_RUNS = 40
TELL_SECONDS = 5.0
AHEAD = 2
"""So many batches a process are given out before their answers are needed."""


def run(arguments: argparse.Namespace) -> int:
    """0 nothing failed and every mark was reached, 1 otherwise, 2 unusable, 4 a fault of the harness."""
    check_numbers(arguments)
    targets = targets_of(arguments.format)
    tally, folder = begun(arguments)
    family = family_named(tally.family)
    variant = None if tally.variant is None else find_variant(tally.variant)
    deadline = None if arguments.runs is not None else time.monotonic() + 60.0 * (arguments.minutes or MINUTES)
    last_run = None if arguments.runs is None else tally.runs + arguments.runs
    with in_place(variant), ended_by_signals():
        campaign(family, tally, folder, arguments.processes or os.cpu_count() or 1, deadline, last_run)
    ended = exit_code(family, tally)
    in_format = {
        "json": lambda: json.dumps(document(family, tally, folder, ended), indent=2),
        "text": lambda: "\n".join(lines(family, tally, folder, ended)),
    }
    deliver(targets, lambda name: in_format[name]())
    return ended


def check_numbers(arguments: argparse.Namespace) -> None:
    """Raises UserInputError for what is no length and no number of processes."""
    check_number(arguments.minutes, "--minutes", most=LONGEST_MINUTES, above=True)
    check_number(arguments.runs, "--runs", least=1, most=MOST_RUNS)
    check_number(arguments.processes, "--processes", least=1, most=MOST_PROCESSES)
    check_number(arguments.seed, "--seed", least=-LARGEST, most=LARGEST)


def begun(arguments: argparse.Namespace) -> tuple[Tally, Path]:
    """A new campaign, or the one of a folder, and where it is kept. Raises UserInputError."""
    if arguments.resume is not None:
        for name in ("scenario_family", "seed", "variant", "save"):
            if getattr(arguments, name) is not None:
                option = name.replace("_", "-")
                raise UserInputError(f"--{option} does not go with --resume", fix="The folder says it itself.")
        folder = Path(arguments.resume)
        if is_there(folder):
            fix = "Name the folder of a campaign, which holds a campaign.json."
            raise UserInputError("is a file, not a folder", file=display_path(folder), fix=fix)
        try_folder(folder, "--resume")
        return read_tally(folder / STATE), folder
    if arguments.scenario_family is None:
        raise UserInputError("--scenario-family is missing", fix=f"There are {', '.join(FAMILIES)}.")
    family, seed = family_named(arguments.scenario_family), arguments.seed or 0
    variant = None if arguments.variant is None else find_variant(arguments.variant).name
    folder = Path(arguments.save or f"{FOLDER}/{family.name}-seed{seed}")
    try_folder(folder, "--save")
    if is_there(folder / STATE):
        fix = f"Go on with --resume {display_path(folder)}, or name another folder with --save."
        raise UserInputError("holds a campaign already", file=display_path(folder), fix=fix)
    return Tally(family.name, seed, variant), folder


def read_tally(path: Path) -> Tally:
    """The campaign of a state file. Raises UserInputError."""
    try:
        state = json.loads(read_text(path))
    except (ValueError, RecursionError):
        state = None
    return tally_from(state, display_path(path))


# --- the work


def campaign(
    family: Family, tally: Tally, folder: Path, processes: int, deadline: float | None, last_run: int | None
) -> None:
    """Play until the time or the runs are over. State and failures are kept after each batch."""
    began, before, told = time.monotonic(), tally.seconds, time.monotonic()
    for batch in batches(tally, processes, deadline, last_run):
        for failure in tally.add(batch):
            keep(folder / failure.name, failure_text(failure), "--save")
        now = time.monotonic()
        tally.seconds = before + now - began
        keep(folder / STATE, json.dumps(tally.state(), indent=2) + "\n", "--save")
        if now - told >= TELL_SECONDS:
            told = now
            print(f"campaign: {so_far(family, tally)}", file=sys.stderr)


def batches(tally: Tally, processes: int, deadline: float | None, last_run: int | None) -> Iterator[Batch]:
    """The batches from the next run on, in order."""
    sizes = batch_sizes(tally.runs, deadline, last_run)
    if processes == 1:
        family = family_named(tally.family)
        yield from (run_batch(family, tally.seed, first, runs, tally.variant) for first, runs in sizes)
        return
    with ProcessPoolExecutor(processes, get_context("spawn"), _start_worker, (tally.variant,)) as pool:
        waiting: deque[Future[Batch]] = deque()
        for first, runs in sizes:
            waiting.append(pool.submit(_batch_of_worker, tally.family, tally.seed, first, runs, tally.variant))
            if len(waiting) >= AHEAD * processes:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def batch_sizes(first: int, deadline: float | None, last_run: int | None) -> Iterator[tuple[int, int]]:
    """The first run and the number of runs of each batch, as long as there are runs to play."""
    while (last_run is None or first < last_run) and (deadline is None or time.monotonic() < deadline):
        runs = BATCH_RUNS if last_run is None else min(BATCH_RUNS, last_run - first)
        yield first, runs
        first += runs


_WORKER = ExitStack()
"""What is in place in a worker process as long as it lives."""


def _start_worker(variant: str | None) -> None:
    """In a worker process: put the variant in place. Who is interrupted is the parent, which keeps what there is; a
    worker ends with it, whatever ended that.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    if variant is not None:
        _WORKER.enter_context(in_place(find_variant(variant)))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _batch_of_worker(family: str, seed: int, first: int, runs: int, variant: str | None) -> Batch:
    return run_batch(family_named(family), seed, first, runs, variant)


# --- the report


def exit_code(family: Family, tally: Tally) -> int:
    """0 when nothing failed and every mark was reached."""
    if tally.verdicts.get("harness-error"):
        return 4
    return 1 if tally.failing_runs or tally.unreached(family.marks) else 0


def so_far(family: Family, tally: Tally) -> str:
    """One line of progress."""
    reached = len(family.marks) - len(tally.unreached(family.marks))
    return (
        f"{tally.runs:,} runs ({rate(tally.runs, tally.seconds)} a second), {tally.failing_runs:,} failed in "
        f"{len(tally.corpus)} ways, {reached}/{len(family.marks)} marks reached, {tally.seconds:.0f} s"
    )


def rate(count: int, seconds: float) -> str:
    """How many a second."""
    return f"{count / seconds:,.0f}" if seconds > 0 else "0"


def lines(family: Family, tally: Tally, folder: Path, ended: int) -> Iterator[str]:
    """The report as text: ways to fail first."""
    with_variant = f", with {tally.variant}" if tally.variant else ""
    yield f"{family.name}  {family.says} ({', '.join(family.incidents)}){with_variant}"
    yield ""
    for kept in by_runs(tally):
        yield f"  FAIL  {kept.runs:>6}x  {kept.says}{f'; {kept.runtime}' if kept.runtime else ''}"
        yield f"                 first in run {kept.first_run}: {replaying(kept, folder).command}"
    for mark in tally.unreached(family.marks):
        yield f"  NEVER REACHED  {mark.name}: {mark.says}"
    declared = {mark.name: mark.says for mark in family.marks}
    for name, count in sorted(tally.marks.items(), key=lambda item: item[1]):
        yield f"  reached {count:>6}x  {name}{f': {declared[name]}' if name in declared else ''}"
    for name, walked in sorted(tally.holes.items(), key=lambda item: item[1]):
        yield f"  hole    {walked.met:>6}x  {name}: {walked.lost} chains lost; closed by: {closing(name)}"
    yield ""
    yield (
        f"{'FAIL' if ended else 'PASS'}  {tally.runs:,} runs, "
        f"{tally.failing_runs:,} failed in {len(tally.corpus)} ways; "
        f"{len(family.marks) - len(tally.unreached(family.marks))}/{len(family.marks)} marks reached; "
        f"{rate(tally.runs, tally.seconds)} runs and {rate(tally.steps, tally.seconds)} steps a second; "
        f"{tally.seconds:.1f} s; seed {tally.seed}; exit {ended}   (go on: {resuming(folder).command})"
    )


def replaying(kept: Kept, folder: Path) -> Step:
    """How to play a failure again."""
    file = shlex.quote(display_path(folder / kept.file))
    return Step(f"mcp-harness run {file}", f"what fell first in run {kept.first_run}")


def resuming(folder: Path) -> Step:
    """How to go on."""
    return Step(f"mcp-harness campaign --resume {shlex.quote(display_path(folder))}", "goes on with it")


def next_steps(tally: Tally, folder: Path) -> Iterator[Step]:
    """What to do now: play each failure again, or go on."""
    yield from (replaying(kept, folder) for kept in by_runs(tally))
    yield resuming(folder)


def by_runs(tally: Tally) -> list[Kept]:
    """The ways to fail, the most frequent first."""
    return sorted(tally.corpus.values(), key=lambda kept: -kept.runs)


def document(family: Family, tally: Tally, folder: Path, ended: int) -> dict[str, Any]:
    """The report as JSON."""
    return {
        "schema": SCHEMA,
        "family": family.name,
        "seed": tally.seed,
        "variant": tally.variant,
        "folder": display_path(folder),
        "runs": tally.runs,
        "steps": tally.steps,
        "seconds": round(tally.seconds, 3),
        "verdicts": dict(sorted(tally.verdicts.items())),
        "failures": [kept._asdict() for kept in tally.corpus.values()],
        "marks": [
            {"name": mark.name, "says": mark.says, "runs": tally.marks.get(mark.name, 0)} for mark in family.marks
        ],
        "holes": {name: walked._asdict() for name, walked in sorted(tally.holes.items())},
        "next": step_values(next_steps(tally, folder)),
        "exit_code": ended,
    }
