"""`mcp-harness dev requirements`: which rules are checked, which are not, and why."""

from __future__ import annotations

import argparse
import difflib
import json
from typing import Any

from harness.cli.output import deliver, targets_of
from harness.errors import CannotRunError, UserInputError
from harness.requirements.coverage import load_matrix
from harness.requirements.manifest import Manifest, load_manifest
from harness.requirements.matrix import Fault, Matrix
from harness.requirements.source_tree import find_source_root
from harness.scenario.library import load_all
from harness.scenario.tiers import TIERS

REPORT_SCHEMA = "mcp-harness/requirements-report/1"
LIST_SCHEMA = "mcp-harness/requirements-list/1"
NOT_KNOWN = "-"
HEAD = ("AREA", "STATUS", "MUST", "SHOULD", "MAY", "DEFERRED", "PENDING")


def run(args: argparse.Namespace) -> int:
    """0: the manifest and what answers for it agree; 1: they do not; 3: only the source tree can tell."""
    targets = targets_of(args.format)
    manifest = load_manifest()
    bare = Matrix(manifest, {}, {})
    areas = _areas(bare, args.areas)
    root = find_source_root()
    if root is None:
        in_format = {
            "json": lambda: _bare_json(manifest, areas),
            "text": lambda: _table(bare, areas, with_coverage=False),
        }
        deliver(targets, lambda name: in_format[name]())
        raise CannotRunError(
            "only the manifest is listed: the checks live in the source tree, and no scenarios folder is here"
        )
    matrix = load_matrix(root)
    faults = [fault for fault in matrix.faults() if not args.areas or fault.area in areas]
    exit_code = 1 if faults else 0
    in_format = {
        "json": lambda: _as_json(matrix, areas, faults, exit_code),
        "text": lambda: "\n".join(_text(matrix, areas, faults, exit_code, missing=args.missing)),
    }
    deliver(targets, lambda name: in_format[name]())
    return exit_code


def _areas(matrix: Matrix, asked: list[str]) -> list[str]:
    names = matrix.area_names()
    for area in asked:
        if area not in names:
            near = difflib.get_close_matches(area, names, n=1)
            raise UserInputError(
                f"no area {area!r} in the manifest",
                fix=f"Did you mean {near[0]!r}?" if near else f"Areas: {', '.join(names)}",
            )
    return [name for name in names if name in asked] if asked else names


def _text(matrix: Matrix, areas: list[str], faults: list[Fault], exit_code: int, *, missing: bool) -> list[str]:
    lines = _missing(matrix, areas) if missing else [_table(matrix, areas, with_coverage=True), *_tiers()]
    lines += ["", *(fault.message for fault in faults)] if faults else []
    sums = [matrix.summary(area) for area in areas]
    counts = (
        f"must {sum(each.must_covered for each in sums)}/{sum(each.must for each in sums)}, "
        f"should {sum(each.should_covered for each in sums)}/{sum(each.should for each in sums)}, "
        f"{sum(each.deferred for each in sums)} deferred, {sum(each.pending for each in sums)} pending"
    )
    verdict = "FAIL" if faults else "PASS"
    return [*lines, f"{verdict}  {len(faults)} faults in {len(areas)} areas; {counts}; exit {exit_code}"]


def _tiers() -> list[str]:
    """How many scenarios are played at which tier, and why some are not."""
    scenarios = load_all()
    counts = ", ".join(f"{sum(tier in each.tiers for each in scenarios)} at tier {tier}" for tier in TIERS)
    lines = [f"{each.id} is not at tier {tier}: {why}" for each in scenarios for tier, why in each.not_at.items()]
    return ["", f"{len(scenarios)} scenarios: {counts}", *(f"  {line}" for line in lines)]


def _table(matrix: Matrix, areas: list[str], *, with_coverage: bool) -> str:
    rows: list[tuple[str, ...]] = [HEAD]
    for area in areas:
        each = matrix.summary(area)
        covered = (each.must_covered, each.should_covered, each.may_covered) if with_coverage else (NOT_KNOWN,) * 3
        shares = (f"{done}/{all_}" for done, all_ in zip(covered, (each.must, each.should, each.may), strict=True))
        rows.append((area, each.status.value, *shares, str(each.deferred), str(each.pending)))
    return "\n".join(
        f"{row[0]:<18} {row[1]:<8} {row[2]:>8} {row[3]:>8} {row[4]:>6} {row[5]:>9} {row[6]:>8}" for row in rows
    )


def _missing(matrix: Matrix, areas: list[str]) -> list[str]:
    lines = []
    for area in areas:
        gaps = matrix.gaps(area)
        lines += [f"{area} ({matrix.standing_of(area).status}): {len(gaps)} not covered"] if gaps else []
        for rule, lacks, accepted in gaps:
            reason = f"  [{accepted}]" if accepted else ""
            lines.append(f"  {rule.level:<6} {rule.id}: no {' and no '.join(lacks)}{reason}")
            lines.append(f"         {rule.statement}")
    return lines


def _as_json(matrix: Matrix, areas: list[str], faults: list[Fault], exit_code: int) -> str:
    document = {
        "schema": REPORT_SCHEMA,
        "areas": [matrix.summary(area)._asdict() for area in areas],
        "missing": [
            {"id": rule.id, "area": rule.area, "level": rule.level, "lacks": lacks, "accepted": accepted}
            for area in areas
            for rule, lacks, accepted in matrix.gaps(area)
        ],
        "scenarios": [{"id": each.id, "tiers": list(each.tiers), "not_at": dict(each.not_at)} for each in load_all()],
        "faults": [fault._asdict() for fault in faults],
        "exit_code": exit_code,
    }
    return json.dumps(document, indent=1, ensure_ascii=False)


def _bare_json(manifest: Manifest, areas: list[str]) -> str:
    rules: list[dict[str, Any]] = [rule._asdict() for rule in manifest.requirements.values() if rule.area in areas]
    document = {"schema": LIST_SCHEMA, "requirements": rules, "exit_code": CannotRunError.exit_code}
    return json.dumps(document, indent=1, ensure_ascii=False)
