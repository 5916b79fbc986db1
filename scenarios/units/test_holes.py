"""The accepted holes: each has a scenario that walks into it, and what would close one is no known-bad variant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli import main
from harness.requirements.holes import load_holes
from harness.requirements.manifest import load_manifest
from harness.requirements.source_tree import import_variants, require_source_root
from harness.requirements.variants import VARIANTS, proposal, variant
from harness.scenario.library import load_all

TEXT = (Path(__file__).parents[2] / "harness" / "scenario" / "HOLES.md").read_text(encoding="utf-8")
SCENARIOS = {scenario.id: scenario for scenario in load_all()}
import_variants(require_source_root())
PROPOSALS = {name: each for name, each in VARIANTS.items() if each.closes}


def rows() -> dict[str, str]:
    """The table's rows by what stands in their first column."""
    lines = (line for line in TEXT.splitlines() if line.startswith("| `"))
    return {line.split("|")[1].strip().strip("`"): line for line in lines}


def test_the_table_has_every_hole_once():
    assert sorted(rows()) == sorted(load_holes())


@pytest.mark.parametrize("name", load_holes())
def test_a_hole_has_a_scenario_that_is_shipped(name):
    named = re.findall(r"`([\w.-]+)`", rows()[name])
    assert set(named[1:]) & set(SCENARIOS)
    assert set(named) <= {name, *SCENARIOS, *VARIANTS}


def test_a_variant_breaks_a_rule_or_closes_a_hole():
    for each in VARIANTS.values():
        assert bool(each.catches) != bool(each.closes), each.name
        assert set(each.catches) <= set(load_manifest().requirements), each.name
        assert set(each.closes) <= set(load_holes()), each.name


@pytest.mark.parametrize("name", PROPOSALS)
def test_a_proposal_is_judged_by_a_scenario(name):
    scenarios = [each.id for each in SCENARIOS.values() if name in {bug.name for bug in each.old_bugs}]
    assert scenarios
    assert all(f"`{each}`" in TEXT for each in scenarios)


def test_what_nothing_could_judge_is_refused():
    with pytest.raises(ValueError, match="breaks no rule"):
        variant("module:name", catches=())
    with pytest.raises(ValueError, match="closes no hole"):
        proposal("module:name", closes=())


def test_proposals_are_no_known_bad_variants(capsys):
    assert main(["dev", "variants", "closing.*"]) == 2
    assert "is a proposal and no bug" in capsys.readouterr().err
