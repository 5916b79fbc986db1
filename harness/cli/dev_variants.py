"""`mcp-harness dev variants`: put every known-bad variant in place; its own checks must catch it."""

from __future__ import annotations

import argparse
import dataclasses
import fnmatch
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.cli.numbers import MOST_PROCESSES, check_number
from harness.cli.output import deliver, targets_of
from harness.errors import HarnessFault, UserInputError
from harness.requirements.judging import Verdict
from harness.requirements.scan import scan_tree
from harness.requirements.source_tree import import_variants, require_source_root
from harness.requirements.variants import VARIANTS, Variant
from harness.scenario.hints import few, meant
from harness.scenario.library import load_all
from harness.scenario.model import Scenario
from harness.vectors.loading import load_operations, registered

if TYPE_CHECKING:
    from harness.report.formats import Target

SCHEMA = "mcp-harness/variants-report/1"
LIST_SCHEMA = "mcp-harness/variants-list/1"
LONGEST_SHARD = len("10000/10000")
WORST_FIRST = tuple(Verdict)


@dataclasses.dataclass(frozen=True)
class Result:
    """All judgements as JSON objects, worst first, and what was in the way of judging."""

    variants: list[dict[str, Any]]
    broken: dict[str, str]
    seconds: float

    @property
    def counts(self) -> Counter[str]:
        return Counter(variant["verdict"] for variant in self.variants)

    @property
    def exit_code(self) -> int:
        return 0 if self.counts[Verdict.CAUGHT] == len(self.variants) and not self.broken else 1


def run(args: argparse.Namespace) -> int:
    """0: every variant was caught; 1: some was not, or a test fails without any variant."""
    targets = targets_of(args.format)
    if args.list:
        return list_variants(args.names, require_source_root(args.root), targets)
    started = time.monotonic()
    check_number(args.jobs, "--jobs", least=1, most=MOST_PROCESSES)
    part, parts = _shard(args.shard)
    root = require_source_root(args.root)
    if not args.names and parts == 1:
        print("every variant is run, which takes minutes; with --list they are only told", file=sys.stderr)
    if args.jobs > 1:
        import_variants(root)
        chosen = _selected(args.names)  # names that are none are refused before any process is started
        variants, broken = _run_in_processes(args, min(args.jobs, len(chosen)))
    else:
        variants, broken = _run_here(args.names, root, part, parts)
    variants.sort(key=lambda variant: (WORST_FIRST.index(variant["verdict"]), variant["name"]))
    result = Result(variants, broken, time.monotonic() - started)
    in_format = {"json": lambda: _as_json(result), "text": lambda: _as_text(result, list_caught=bool(args.names))}
    deliver(targets, lambda name: in_format[name]())
    return result.exit_code


def list_variants(words: list[str], root: Path, targets: Sequence[Target]) -> int:
    """Every variant and proposal of which a word (or a glob on its name) is true; 0. Raises UserInputError."""
    broken = {module.module: module.error for module in import_variants(root)}
    found = [
        VARIANTS[name] for name in sorted(VARIANTS) if not words or any(map(partial(is_about, VARIANTS[name]), words))
    ]
    if not found:
        near = next(filter(None, (meant(word, VARIANTS) for word in words)), "")
        raise UserInputError(f"no variant is about {' or '.join(words)}", fix=near or "Leave the word out to see all.")
    in_format = {"json": lambda: _list_json(found, broken), "text": lambda: "\n".join(_list_lines(found, broken))}
    deliver(targets, lambda name: in_format[name]())
    return 1 if broken else 0


def is_about(variant: Variant, word: str) -> bool:
    """Whether a glob is its name, or a word is in its name, in what it breaks, in a rule that catches it or a hole that
    it closes, or in the id or the incidents of a scenario that shows it.
    """
    shown = (text for each in scenarios_by_variant().get(variant.name, ()) for text in (each.id, *each.incidents))
    texts = (variant.name, breaks(variant), variant.target, *variant.catches, *variant.closes, *shown)
    wanted = word.casefold().replace("-", "_")
    return fnmatch.fnmatchcase(variant.name, word) or any(wanted in text.casefold().replace("-", "_") for text in texts)


@cache
def scenarios_by_variant() -> Mapping[str, Sequence[Scenario]]:
    """The shipped scenarios by the old bugs that they show."""
    found: dict[str, list[Scenario]] = {}
    for scenario in load_all():
        for bug in scenario.old_bugs:
            found.setdefault(bug.name, []).append(scenario)
    return found


def breaks(variant: Variant) -> str:
    """Which bug it is, in a line."""
    lines = (variant.replacement.__doc__ or "").strip().split("\n\n")[0].split()
    return " ".join(lines)


def _list_lines(found: list[Variant], broken: dict[str, str]) -> Iterator[str]:
    yield from (f"cannot be imported: {module}: {error}" for module, error in sorted(broken.items()))
    for variant in found:
        yield f"{variant.name}  {breaks(variant)}".rstrip()
        told = f"caught by {few(variant.catches)}" if variant.catches else f"no bug: closes {few(variant.closes)}"
        shown = [scenario.id for scenario in scenarios_by_variant().get(variant.name, ())]
        yield f"    {told}{f'; shown by the scenario {few(shown)}' if shown else ''}"
    bugs = sum(not variant.closes for variant in found)
    more = f" and {len(found) - bugs} proposals" if len(found) > bugs else ""
    try_one = "; try one with: mcp-harness run SCENARIO --variant NAME"
    yield f"{bugs} variant{'' if bugs == 1 else 's'}{more}{try_one}; exit {1 if broken else 0}"


def _list_json(found: list[Variant], broken: dict[str, str]) -> str:
    document = {
        "schema": LIST_SCHEMA,
        "variants": [
            {
                "name": variant.name,
                "breaks": breaks(variant),
                "target": variant.target,
                "catches": list(variant.catches),
                "closes": list(variant.closes),
                "scenarios": [scenario.id for scenario in scenarios_by_variant().get(variant.name, ())],
            }
            for variant in found
        ],
        "broken": broken,
        "exit_code": 1 if broken else 0,
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def _run_here(globs: list[str], root: Path, part: int, parts: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    from harness.requirements.variant_runs import files_to_collect, run_variants  # needs what the tests need

    broken = {module.module: module.error for module in (*import_variants(root), *load_operations())}
    variants = _selected(globs)[part - 1 :: parts]
    vector_ids = frozenset(identifier for operation in registered().values() for identifier in operation.requirements)
    files = files_to_collect(variants, scan_tree(root), vector_ids, root)
    report = run_variants(variants, files, root)
    judgements = [
        {**judgement._asdict(), "verdict": judgement.verdict.value, "crashed": dict(judgement.crashed)}
        for judgement in report.judgements
    ]
    return judgements, broken | report.broken


def _selected(globs: list[str]) -> list[Variant]:
    chosen = [
        VARIANTS[name]
        for name in sorted(VARIANTS)
        if not globs or any(fnmatch.fnmatchcase(name, pattern) for pattern in globs)
    ]
    bugs = [variant for variant in chosen if not variant.closes]
    if chosen and not bugs:
        raise UserInputError(
            f"{chosen[0].name} is a proposal and no bug: it closes {', '.join(chosen[0].closes)} and breaks no rule",
            fix="harness/scenario/HOLES.md names the scenario: mcp-harness run SCENARIO --variant NAME",
        )
    if not chosen:
        raise UserInputError(
            f"no known-bad variant is named {' or '.join(globs) or '*'}",
            fix="Names are <file of scenarios/variants>.<function>, such as 'catalog.*'; --list WORD finds one",
        )
    return bugs


def _run_in_processes(args: argparse.Namespace, jobs: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    command = [sys.executable, "-m", "harness.cli", "dev", "variants", *args.names, "--format", "json"]
    command += ["--root", args.root] if args.root is not None else []
    workers = [
        subprocess.Popen(  # noqa: S603 - our own program, with the arguments that this process was given
            [*command, "--shard", f"{part}/{jobs}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for part in range(1, jobs + 1)
    ]
    variants: list[dict[str, Any]] = []
    broken: dict[str, str] = {}
    for worker, (output, errors) in [(worker, worker.communicate()) for worker in workers]:
        if worker.returncode not in (0, 1):
            raise HarnessFault(f"a worker ended with exit code {worker.returncode}: {errors.strip()[-500:]}")
        answer = json.loads(output)
        variants += answer["variants"]
        broken |= answer["broken"]
    return variants, broken


def _shard(text: str) -> tuple[int, int]:
    part, slash, parts = text.partition("/")
    are_numbers = slash and part.isdecimal() and parts.isdecimal() and len(text) <= LONGEST_SHARD
    if are_numbers and 1 <= int(part) <= int(parts):
        return int(part), int(parts)
    raise UserInputError(f"--shard {text}: must be I/N with I from 1 to N")


def _as_json(result: Result) -> str:
    document = {
        "schema": SCHEMA,
        "variants": result.variants,
        "counts": {verdict.value: result.counts[verdict] for verdict in WORST_FIRST},
        "broken": result.broken,
        "seconds": round(result.seconds, 3),
        "exit_code": result.exit_code,
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def _as_text(result: Result, *, list_caught: bool) -> str:
    lines = [f"broken without any variant: {test}: {error}" for test, error in sorted(result.broken.items())]
    for variant in result.variants:
        if list_caught or variant["verdict"] != Verdict.CAUGHT:
            lines += _lines_of(variant)
    counts = ", ".join(f"{result.counts[verdict]} {verdict.value}" for verdict in reversed(WORST_FIRST))
    verdict = "PASS" if result.exit_code == 0 else "FAIL"
    broken = f", {len(result.broken)} tests or modules broken" if result.broken else ""
    lines.append(
        f"{verdict}  {len(result.variants)} variants: {counts}{broken}; {result.seconds:.1f} s; exit {result.exit_code}"
    )
    return "\n".join(lines)


def _lines_of(variant: dict[str, Any]) -> list[str]:
    bug = f"  ({variant['bug']})" if variant["bug"] else ""
    lines = [f"{variant['verdict']:<14} {variant['name']}{bug}"]
    if variant["problem"]:
        lines.append(f"    {variant['problem']}")
    for identifier in variant["survived"]:
        told = "no test names" if identifier in variant["untested"] else "no assertion failed for"
        lines.append(f"    {told} {identifier}")
    lines += [f"    {identifier}: only crashed: {error}" for identifier, error in variant["crashed"].items()]
    lines += [f"    smoke test {failure}" for failure in variant["smoke"]]
    return lines
