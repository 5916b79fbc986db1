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
from pathlib import Path
from typing import Any

from harness.errors import HarnessFault, UserInputError
from harness.requirements.judging import Verdict
from harness.requirements.scan import scan_tree
from harness.requirements.source_tree import import_variants, require_source_root
from harness.requirements.variants import VARIANTS, Variant
from harness.vectors.loading import load_operations, registered

SCHEMA = "mcp-harness/variants-report/1"
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
    started = time.monotonic()
    part, parts = _shard(args.shard)
    root = require_source_root(args.root)
    if args.jobs > 1:
        variants, broken = _run_in_processes(args)
    else:
        variants, broken = _run_here(args.names, root, part, parts)
    variants.sort(key=lambda variant: (WORST_FIRST.index(variant["verdict"]), variant["name"]))
    result = Result(variants, broken, time.monotonic() - started)
    print(_as_json(result) if args.format == "json" else _as_text(result, list_caught=bool(args.names)))
    return result.exit_code


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
            fix="Names are <file of scenarios/variants>.<function>, such as 'catalog.*'",
        )
    return bugs


def _run_in_processes(args: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    command = [sys.executable, "-m", "harness.cli", "dev", "variants", *args.names, "--format", "json"]
    command += ["--root", args.root] if args.root is not None else []
    workers = [
        subprocess.Popen(  # noqa: S603 - our own program, with the arguments that this process was given
            [*command, "--shard", f"{part}/{args.jobs}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for part in range(1, args.jobs + 1)
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
    if slash and part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts):
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
