"""Vectors of the area `warnings`: which servers are warned about, and the sentence."""

from __future__ import annotations

from typing import Any

from harness.reference.catalog.catalog import read_catalog
from harness.reference.readiness.probe import judge_named
from harness.reference.surfaces.warnings import CannotStart, cannot_start, sentence
from harness.vectors.operations.offer import credentials_of
from harness.vectors.operations.readiness import resolution_of
from harness.vectors.registry import operation


@operation("warnings.judge", requirements=("warnings-order-and-dedup", "warnings-plain-reasons"))
def _judge(given: dict[str, Any]) -> Any:
    catalog = read_catalog(given["catalog"])
    rows = credentials_of(catalog, given.get("credentials", {}))
    judged = judge_named(catalog, given["servers"], resolution_of(given["variables"]), rows)
    return {"unavailable": [server._asdict() for server in cannot_start(judged)], "probed": len(judged)}


@operation(
    "warnings.sentence",
    requirements=(
        "warnings-sentence-head",
        "warnings-branch-on-worst",
        "warnings-missing-text",
        "warnings-oauth-text",
        "warnings-declared-text",
        "warnings-points-at-connectors",
        "warnings-says-which-and-why",
    ),
)
def _sentence(given: dict[str, Any]) -> Any:
    return sentence([CannotStart(**server) for server in given["unavailable"]])
