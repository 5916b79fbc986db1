"""`mcp-harness run`: play a scenario, or a failure again, and show who did what when."""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from harness.cli.keeping import keep, require_new, try_folder
from harness.cli.numbers import LARGEST, check_number
from harness.cli.output import deliver, targets_of
from harness.errors import UserInputError
from harness.gate.spawn import Runtime, runtime_asked, runtime_named
from harness.inputs.files import display_path, read_text
from harness.report.masking import MASK, mask
from harness.report.safety import visible
from harness.scenario.agreement import differences
from harness.scenario.duration import require_time
from harness.scenario.failure import (
    Failure,
    failure_of,
    failure_text,
    is_failure_text,
    load_failure,
    parse_decisions,
    replay,
)
from harness.scenario.library import find
from harness.scenario.model import Scenario
from harness.scenario.next_steps import FAILED, Again
from harness.scenario.production import Report, is_claimed, play
from harness.scenario.reading import EXAMPLE, load_scenario
from harness.scenario.rendering import run_document
from harness.scenario.tiers import MODEL, REAL, TIERS
from harness.scenario.timeline import CALM, points, texts
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict, worst
from harness.world.model import Decisions, Replayed, Seeded

SHORTEST_SECRET = 4
FAKE_RUNTIMES = "fake_runtimes."
OF_A_SCENARIO = ("runtime", "seed", "decisions", "variant", "tier", "keep")


class Played(NamedTuple):
    """What was run: each report with its real seconds, who chose the order, which variant was in place, a hint.

    `disputed` are the differences between two tiers, where both were played, `skipped` the runtimes that were asked for
    and that the scenario is not about.
    """

    scenario: Scenario
    reports: list[tuple[Report, float]]
    order: str
    seed: int | None
    variant: str | None
    hint: str = ""
    disputed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


def run(arguments: argparse.Namespace) -> int:
    """0 pass, 1 it fails, 2 unusable or not about that runtime, 3 something is missing, 4 a fault of the harness."""
    targets = targets_of(arguments.format)
    check_number(arguments.seed, "--seed", least=-LARGEST, most=LARGEST)
    path = find(arguments.scenario)
    is_failure = is_failure_text(read_text(path, EXAMPLE))
    played = play_failure(path, arguments) if is_failure else play_scenario(path, arguments)
    verdict = worst([report.verdict for report, _ in played.reports] + [Verdict.FAIL for _ in played.disputed])
    again = asked_again(arguments)
    in_format = {
        "json": lambda: as_json(played, verdict, again),
        "text": lambda: as_text(played, again, with_points=arguments.points),
    }
    deliver(targets, lambda name: in_format[name]())
    for line in hints(played, arguments.save, arguments.keep):
        print(line, file=sys.stderr)
    return verdict.exit_code


def play_scenario(path: Path, arguments: argparse.Namespace) -> Played:
    """A scenario on each runtime that is asked for."""
    scenario = load_scenario(path)
    runtimes = chosen_runtimes(scenario, arguments.runtime or ())
    tiers = chosen_tiers(arguments)
    for runtime, tier in itertools.product(runtimes, tiers):
        require_time(scenario, runtime, tier)
    for runtime, tier in itertools.product(runtimes, tiers) if arguments.keep is not None else ():
        place = kept_place(Path(arguments.keep), scenario, runtime, tier)
        require_new(place, "--keep")
    for option, folder in (("--keep", arguments.keep), ("--save", arguments.save)):
        if folder is not None:
            try_folder(Path(folder), option)
    variant = None if arguments.variant is None else find_variant(arguments.variant)
    if variant is not None and variant.target.startswith(FAKE_RUNTIMES) and REAL in tiers:
        raise UserInputError(
            f"--variant {variant.name} is of a fake runtime: the real one at --tier {REAL} does not notice it",
            fix="Play it at --tier model or --tier process.",
        )
    played = Played(scenario, [], chosen_order(arguments), arguments.seed, variant.name if variant else None)
    with in_place(variant):
        for runtime, tier in itertools.product(runtimes, tiers):
            began = time.perf_counter()
            decisions = chosen_decisions(arguments)
            seed, notes_points = arguments.seed or 0, arguments.points
            report = play(
                scenario,
                runtime,
                decisions,
                seed=seed,
                notes_points=notes_points,
                keeps_files=arguments.keep is not None,
                tier=tier,
            )
            played.reports.append((report, time.perf_counter() - began))
    differing = tuple(disputed([report for report, _ in played.reports]))
    return played._replace(disputed=differing, skipped=skipped(scenario, arguments.runtime or ()))


def disputed(reports: Iterable[Report]) -> Iterable[str]:
    """What the tiers do not agree on, a line for each."""
    for label, group in itertools.groupby(reports, lambda report: report.runtime.label):
        first, *others = group
        for other in others:
            yield from (f"{label}: {line}" for line in differences(first, other))


def chosen_tiers(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Each once, the model first. Raises UserInputError for what real processes cannot do."""
    tiers = tuple(tier for tier in TIERS if tier in (arguments.tier or (MODEL,)))
    given = next((name for name in ("seed", "decisions", "save") if getattr(arguments, name) is not None), None)
    steered = next((tier for tier in tiers if tier != MODEL), None)
    if steered is not None and given is not None:
        raise UserInputError(
            f"--{given} does not go with --tier {steered}: the operating system chooses what runs first",
            fix="Leave one of them out; holds keep an order at every tier.",
        )
    return tiers


def play_failure(path: Path, arguments: argparse.Namespace) -> Played:
    """A failure again, as it was."""
    given = next((name for name in OF_A_SCENARIO if getattr(arguments, name) is not None), None)
    if given is not None:
        raise UserInputError(
            f"--{given} does not go with a failure file, which says it itself", fix="Leave the option out."
        )
    failure = load_failure(path)
    runtime_asked(failure.runtime, f"{display_path(path)}: runtime")
    variant = None if failure.variant is None else find_variant(failure.variant)
    with in_place(variant):
        began = time.perf_counter()
        again = replay(failure, notes_points=arguments.points)
        seconds = time.perf_counter() - began
    shown = display_path(path)
    report = again.report._replace(scenario=again.report.scenario._replace(file=shown))
    return Played(report.scenario, [(report, seconds)], "replayed decisions", failure.seed, failure.variant, again.hint)


def chosen_runtimes(scenario: Scenario, named: Iterable[str]) -> list[Runtime]:
    """Those asked for that the scenario is about, else all that it names. Raises UserInputError where none is left."""
    asked = [runtime_asked(name, "--runtime") for name in named or scenario.runtimes]
    runtimes = [runtime for runtime in asked if is_claimed(scenario, runtime)]
    if not runtimes:
        raise UserInputError(
            f"is about {about(scenario)}, not about {' and '.join(runtime.label for runtime in asked)}",
            file=scenario.file,
            fix=f"Use --runtime {scenario.runtimes[0]}.",
        )
    return runtimes


def about(scenario: Scenario) -> str:
    """The runtimes that a scenario says something of."""
    return " and ".join(filter(None, [", ".join(scenario.runtimes[:-1]), scenario.runtimes[-1]]))


def skipped(scenario: Scenario, named: Iterable[str]) -> tuple[str, ...]:
    """The runtimes that were asked for and that the scenario is not about."""
    return tuple(name for name in named if not is_claimed(scenario, runtime_named(name)))


def chosen_decisions(arguments: argparse.Namespace) -> Decisions | None:
    """The source of choices; None: the calmest order."""
    if arguments.decisions is not None:
        return read_decisions(Path(arguments.decisions))
    return None if arguments.seed is None else Seeded(arguments.seed)


def read_decisions(path: Path) -> Decisions:
    """What replays a list of decisions, written as failure files write them. Raises UserInputError."""
    try:
        return Replayed(parse_decisions(read_text(path, "decisions.txt")))
    except ValueError as error:
        raise UserInputError(
            f"holds no decisions: {error}", file=display_path(path), fix="Write them as run.3=1 stall*12."
        ) from None


def chosen_order(arguments: argparse.Namespace) -> str:
    """Who chose what runs first, as the report says it."""
    if arguments.decisions is not None:
        return f"decisions of {arguments.decisions}"
    return CALM if arguments.seed is None else f"seed {arguments.seed}"


def asked_again(arguments: argparse.Namespace) -> Again:
    """How to ask for the same run once more."""
    given = [(name, getattr(arguments, name)) for name in ("seed", "decisions")]
    options = [word for name, value in given if value is not None for word in (f"--{name}", str(value))]
    return Again(tuple(options), arguments.save)


def as_text(played: Played, again: Again, *, with_points: bool) -> str:
    """The timelines."""
    before = [line for report, _ in played.reports if with_points for line in (*points(report), "")]
    lines = [*before, *texts(played.reports, played.order, again).split("\n")]
    return "\n".join(visible(without_secrets(line, played.scenario)) for line in lines)


def as_json(played: Played, verdict: Verdict, again: Again) -> str:
    """The document, indented by two."""
    document = run_document(
        played.reports,
        seed=played.seed,
        variant=played.variant,
        disputed=played.disputed,
        verdict=verdict,
        exit_code=verdict.exit_code,
        again=again,
    )
    return json.dumps(masked(document, played.scenario), indent=2, allow_nan=False)


def hints(played: Played, folder: str | None, kept: str | None) -> Iterable[str]:
    """What else is to be said; failure files and the files of a run are written here."""
    yield from (f"mcp-harness: warning: {line}" for line in played.scenario.warnings)
    if played.skipped:
        number = f"{len(played.skipped)} runtime{'s' if len(played.skipped) > 1 else ''}"
        yield f"mcp-harness: {number} skipped ({', '.join(played.skipped)}): it is about {about(played.scenario)}"
    yield from (f"mcp-harness: the tiers disagree: {line}" for line in played.disputed)
    if len({report.tier for report, _ in played.reports}) > 1 and not played.disputed:
        yield "mcp-harness: the tiers agree on verdict, expectations, invariants and the end of each session"
    if played.hint:
        yield played.hint
    for report, _ in played.reports:
        if kept is not None:
            yield f"kept: {keep_files(report, Path(kept))}"
        if folder is not None and report.verdict in FAILED:
            saved = save(failure_of(report, seed=played.seed or 0, variant=played.variant), Path(folder))
            yield f"reproduce: mcp-harness run {saved}   smaller: mcp-harness shrink {saved}"


def save(failure: Failure, folder: Path) -> str:
    """Write a failure file; the answer is its path. Raises UserInputError."""
    path = folder / failure.name
    keep(path, failure_text(failure), "--save")
    return display_path(path)


def kept_place(folder: Path, scenario: Scenario, runtime: Runtime, tier: str) -> Path:
    """The folder of one run."""
    return folder / f"{scenario.id}-{runtime.label}-{tier}"


def keep_files(report: Report, folder: Path) -> str:
    """Write what a run left, below a folder of its own; the answer is its path. Raises UserInputError.

    `root` is the run's whole file system, `rows` the orchestrator's store, a file for each table, `printed` what each
    process printed.
    """
    place = kept_place(folder, report.scenario, report.runtime, report.tier)
    found = {f"root{path}": content.decode("utf-8", "replace") for path, content in report.files.items()}
    found |= {
        f"rows/{table}.json": json.dumps(rows, indent=2, ensure_ascii=False, default=str) + "\n"
        for table, rows in report.rows.items()
    }
    found |= {f"printed/{name.replace('/', '.').replace(' ', '.')}": text for name, text in report.printed.items()}
    for path, text in found.items():
        keep(place / path, without_secrets(text, report.scenario, report.issued), "--keep")
    return display_path(place)


def without_secrets(text: str, scenario: Scenario, issued: Iterable[str] = ()) -> str:
    """A text with the secrets of the scenario and those issued in its run masked, and what else looks like one."""
    values = [*scenario.secrets.values(), *issued]
    values += [value for each in scenario.credentials for value in (each.access_token, each.refresh_token) if value]
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SHORTEST_SECRET:
            text = text.replace(value, MASK)
    return mask(text)


def masked(value: object, scenario: Scenario) -> object:
    """A document with every text in it masked."""
    if isinstance(value, str):
        return without_secrets(value, scenario)
    if isinstance(value, dict):
        return {key: masked(item, scenario) for key, item in value.items()}
    return [masked(item, scenario) for item in value] if isinstance(value, list) else value
