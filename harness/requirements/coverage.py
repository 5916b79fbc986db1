"""Gather what the matrix needs from a source tree.

Marks of tests, operations that have cases, registered variants.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from harness.requirements.manifest import load_manifest
from harness.requirements.matrix import Matrix
from harness.requirements.scan import scan_tree
from harness.requirements.source_tree import import_variants
from harness.requirements.variants import VARIANTS
from harness.vectors.loading import load_operations, operations_with_cases


def load_matrix(root: Path) -> Matrix:
    """The matrix of the source tree at `root`.

    Nothing of it is run, but its variants and operations are imported.
    """
    scan = scan_tree(root)
    broken = (*import_variants(root), *load_operations())
    checks = [(check.requirement, f"{check.file}:{check.line}") for check in scan.checks]
    checks += [
        (identifier, f"vectors of {operation.name}")
        for operation in operations_with_cases()
        for identifier in operation.requirements
    ]
    variants = [(identifier, variant.name) for variant in VARIANTS.values() for identifier in variant.catches]
    unusable = [f"{fault.file}:{fault.line}: {fault.message}" for fault in scan.faults]
    unusable += [f"{module.module}: {module.error}" for module in broken]
    return Matrix(load_manifest(), _by_id(checks), _by_id(variants), tuple(unusable))


def _by_id(pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    named: dict[str, list[str]] = {}
    for identifier, place in pairs:
        named.setdefault(identifier, []).append(place)
    return {identifier: tuple(places) for identifier, places in named.items()}
