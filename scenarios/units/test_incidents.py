"""The shipped scenarios: each passes on every runtime that it names, and fails with its old bug back in place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.gate.spawn import runtime_named
from harness.requirements.manifest import load_manifest
from harness.requirements.scan import Check, scan_scenario, scan_tree
from harness.scenario.library import load_all, shipped
from harness.scenario.operator import applies
from harness.scenario.production import play
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import BROKEN, Verdict
from harness.world.model import Seeded
from scenarios.playing import told

SCENARIOS = {scenario.id: scenario for scenario in load_all()}
SEEDS = range(3)
ROOT = Path(__file__).parents[2]


def on_every_runtime() -> list[Any]:
    """Each scenario with each of its runtimes, marked with the ids that it decides."""
    return [
        pytest.param(scenario.id, runtime, marks=pytest.mark.requirement(*scenario.requirements or ("",)))
        for scenario in SCENARIOS.values()
        for runtime in scenario.runtimes
    ]


def with_every_old_bug() -> list[tuple[str, str, str]]:
    """Each scenario with each of its old bugs on each runtime where that shows."""
    return [
        (scenario.id, runtime, bug.name)
        for scenario in SCENARIOS.values()
        for bug in scenario.old_bugs
        for runtime in scenario.runtimes
        if applies(bug.runtimes, runtime_named(runtime))
    ]


@pytest.mark.parametrize(("identifier", "runtime"), on_every_runtime())
def test_a_shipped_scenario_passes(identifier, runtime):
    report = play(SCENARIOS[identifier], runtime)
    assert report.verdict is Verdict.PASS, told(report)


@pytest.mark.parametrize(("identifier", "runtime", "bug"), with_every_old_bug())
def test_an_old_bug_shows(identifier, runtime, bug):
    with in_place(find_variant(bug)):
        report = play(SCENARIOS[identifier], runtime)
    assert report.verdict not in (Verdict.PASS, Verdict.WARN, *BROKEN), told(report)


@pytest.mark.parametrize("identifier", SCENARIOS)
def test_a_shipped_scenario_is_complete(identifier):
    scenario = SCENARIOS[identifier]
    assert Path(scenario.file).stem == identifier
    assert scenario.old_bugs, "without an old bug nothing tells that it can fail"
    assert scenario.expectations
    assert set(scenario.tiers) | set(scenario.not_at) >= {"model", "process"}
    assert set(scenario.requirements) <= set(load_manifest().requirements)
    for bug in scenario.old_bugs:
        assert set(find_variant(bug.name).catches) & set(scenario.requirements) or not scenario.requirements


@pytest.mark.parametrize("identifier", [each.id for each in SCENARIOS.values() if not each.holds])
def test_a_shipped_scenario_holds_whatever_runs_first(identifier):
    """Seeds draw the order of events and who stalls; a scenario must not hang on that, unless holds fix it."""
    for runtime in SCENARIOS[identifier].runtimes:
        for seed in SEEDS:
            report = play(SCENARIOS[identifier], runtime, Seeded(seed), seed=seed)
            assert report.verdict is Verdict.PASS, (seed, *told(report))


def test_the_files_of_the_source_tree_are_the_shipped_ones():
    assert list(shipped()) == list(SCENARIOS)
    assert {"702", "113"} <= set(SCENARIOS)


def test_a_scenario_counts_as_a_check_of_the_ids_that_it_names():
    text = 'schema = 1\nrequirements = [\n  "a-rule",\n]\ntitle = "x"\n'
    (check,) = scan_scenario("scenarios/incidents/x.toml", text).checks
    assert check == Check("a-rule", "scenarios/incidents/x.toml", 2, "x")
    for broken in ("requirements = 1", "requirements = ["):
        (fault,) = scan_scenario("x.toml", broken).faults
        assert fault.line == 1
    named = {(each.file, each.requirement) for each in scan_tree(ROOT).checks}
    assert ("scenarios/incidents/702.toml", "prepare-codex-default-stdio") in named


def test_a_scenario_alone_can_catch_a_known_bad_variant():
    """In a process of its own, as the runner of variants takes pytest's place."""
    program = """
import sys
from pathlib import Path
from harness.requirements.source_tree import import_variants
from harness.requirements.variant_runs import run_variants
from harness.requirements.variants import VARIANTS
root = Path(sys.argv[1])
import_variants(root)
files = ["scenarios/incidents/702.toml", "scenarios/units/test_smoke.py"]
report = run_variants([VARIANTS["scenario.codex_is_left_to_its_own_budget"]], files, root)
print(report.judgements[0].verdict, report.judgements[0].tests, report.broken)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(ROOT)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "caught 1 {}"
