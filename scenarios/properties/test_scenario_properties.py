"""What holds of every scenario text and every order of events."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserInputError
from harness.scenario.library import load_all
from harness.scenario.positions import positions
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from harness.world.model import Listed, Replayed, Seeded
from scenarios.playing import short

ROOT = Path(__file__).parents[2]
SCENARIOS = {scenario.id: scenario for scenario in load_all()}
TEXT = short("[[expect]]\nexit = 0\nafter = 1")
TABLES = ("[[step]]", "[[expect]]", "[server.a]", "start = 'S'", "exit = 0", "x = 1", "a.b")
MARKS = ("=", "[", "{", "}", "'''", '"', "\n", "#", "1", "\x00", "\u00e9")
PIECES = st.sampled_from((*TABLES, *MARKS))
DIGESTS = """
import sys
from harness.scenario.library import load_all
from harness.scenario.production import play
from harness.world.model import Seeded
for scenario in load_all():
    for runtime in scenario.runtimes:
        print(play(scenario, runtime, Seeded(11), seed=11).trace_digest)
"""


@st.composite
def changed_texts(draw: st.DrawFn) -> str:
    """A good scenario with pieces put in and stretches taken out."""
    text = TEXT
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(PIECES) + text[at + draw(st.integers(0, 12)) :]
    return text


@given(st.one_of(changed_texts(), st.text(max_size=60)))
def test_a_text_is_a_scenario_or_one_line_of_ours(text):
    message = refusal(text)
    assert message is None or (message.startswith("x.toml") and "\n" not in message)


def refusal(text: str) -> str | None:
    """What is said of a text; None where it is a scenario."""
    try:
        read_scenario(text, "x.toml")
    except UserInputError as error:
        return str(error)
    return None


@given(st.text(alphabet="[]{}\"'=#.\n ab1\\", max_size=80))
def test_positions_are_found_in_any_text(text):
    assert all(1 <= line <= text.count("\n") + 1 for line in positions(text).lines.values())


@settings(max_examples=40)
@given(st.sampled_from(sorted(SCENARIOS)), st.lists(st.integers(0, 5), max_size=200), st.data())
def test_a_run_is_a_function_of_its_decisions_and_can_be_replayed(identifier, values, data):
    scenario = SCENARIOS[identifier]
    runtime = data.draw(st.sampled_from(scenario.runtimes))
    drawn = play(scenario, runtime, Listed(values))
    replayed = play(scenario, runtime, Replayed(drawn.decisions, complete=True))
    assert drawn.verdict not in (Verdict.CRASH, Verdict.HARNESS_ERROR, Verdict.DEADLOCK, Verdict.TIMEOUT), drawn.detail
    assert replayed._replace(decisions=()) == drawn._replace(decisions=())


@settings(max_examples=30)
@given(st.sampled_from(sorted(SCENARIOS)), st.integers(0, 2**32))
def test_no_invariant_falls_whatever_runs_first(identifier, seed):
    scenario = SCENARIOS[identifier]
    for runtime in scenario.runtimes:
        report = play(scenario, runtime, Seeded(seed), seed=seed)
        assert [each for each in report.invariants if each.holds is False] == []


def test_the_same_seed_gives_the_same_trace_in_fresh_processes():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", DIGESTS],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert len(next(iter(outputs)).split()) >= 5
