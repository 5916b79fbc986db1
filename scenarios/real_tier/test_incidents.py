"""The shipped scenarios on the real programs: what they claim there is so, and the fakes come out the same.

They need the pinned runtimes in the cache (`mcp-harness canary install all`); without them they fail and say so.
"""

from __future__ import annotations

import pytest

from harness.gate.spawn import runtime_named
from harness.scenario.agreement import differences
from harness.scenario.library import load_all
from harness.scenario.operator import applies
from harness.scenario.production import play
from harness.scenario.tiers import REAL
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from scenarios.playing import told

SCENARIOS = {scenario.id: scenario for scenario in load_all() if REAL in scenario.tiers}
OF_THE_FAKES = "fake_"
"""What variants are called that change a fake: a real program knows nothing of them."""


def test_each_runtime_has_scenarios_that_the_real_program_plays():
    assert {name.partition("@")[0] for each in SCENARIOS.values() for name in each.runtimes} == {
        "claude",
        "codex",
        "pi",
    }


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "runtime"), [(each.id, on) for each in SCENARIOS.values() for on in each.runtimes])
def test_a_shipped_scenario_comes_out_the_same_on_the_real_program(name, runtime):
    real = play(SCENARIOS[name], runtime, tier=REAL)
    assert real.verdict is Verdict.PASS, told(real)
    assert differences(play(SCENARIOS[name], runtime), real) == ()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "runtime", "bug"),
    [
        (each.id, on, bug.name)
        for each in SCENARIOS.values()
        for bug in each.old_bugs
        for on in each.runtimes
        if applies(bug.runtimes, runtime_named(on)) and not bug.name.startswith(OF_THE_FAKES)
    ],
)
def test_an_old_bug_shows_on_the_real_program(name, runtime, bug):
    with in_place(find_variant(bug)):
        report = play(SCENARIOS[name], runtime, tier=REAL)
    assert report.verdict in (Verdict.FAIL, Verdict.TIMEOUT), told(report)
