"""A run of processes whose time is over: the steps that were left are none, and nothing is looked at after them."""

from __future__ import annotations

import pytest

from harness.scenario.process.production import ProcessProduction
from harness.scenario.production import CUT_OFF, play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from scenarios.playing import short

STEPS = """
[[step]]
advance = 1

[[step]]
name = "cut"
advance = 60

[[step]]
advance = 1

[[step]]
start = "S"
"""
NEVER = "[[expect]]\nevent = 'session.prepared'\nnever = true"
AFTER = (f"{NEVER}\nafter = {{}}").format


def test_nothing_is_looked_at_once_the_time_of_a_run_is_over(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ProcessProduction, "limit_seconds", 2.0)
    checks = [NEVER, AFTER(1), AFTER("'cut'"), AFTER(3), AFTER(4)]
    report = play(read_scenario(short(*checks, session=STEPS)), "claude", tier="process")
    assert report.verdict is Verdict.TIMEOUT, report.detail
    assert [each.seen.met for each in report.judged] == [False, True, False, False, False]
    assert [each.seen.instead for each in report.judged] == [
        CUT_OFF,
        "",
        *(f"step {number} was not reached" for number in (2, 3, 4)),
    ]
