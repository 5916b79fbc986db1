"""Running probes: as many at a time as told, each in a trial of its own, and nothing of them is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from harness.canary import running
from harness.canary.claims import Claim
from harness.canary.running import NOT_MEASURABLE, TIMED_OUT, Problem, measure
from harness.canary.trial import MARK_VARIABLE, TrialError
from harness.world.outside.reaping import marked
from scenarios.units.canary_toys import asking, claim, toy

SOURCES = Path(__file__).parents[2]
PATIENCE_SECONDS = 20.0
SAID, OTHER = claim("said"), claim("other")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    inner = tmp_path / "tmp"
    inner.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inner))
    return inner


def left_in(folder: Path) -> list[str]:
    """What of any run is still there."""
    return [*map(str, marked(f"{MARK_VARIABLE}={folder}/")), *(path.name for path in folder.iterdir())]


def says_hello(trial):
    return {SAID.id: trial.run("say", "hello").stdout}


def test_each_subject_is_asked_by_each_probe(tmp_path, folder):
    def says_more(trial):
        return {OTHER.id: [trial.subject.version, trial.run("say", "more").exit_code]}

    subjects = [toy(tmp_path, "1.0.0"), toy(tmp_path, "2.0.0")]
    probes = (asking(says_hello, SAID), asking(says_more, OTHER))
    results = measure([(each, probes) for each in subjects])
    assert [each.observations for each in results] == [
        {SAID.id: "hello\n", OTHER.id: [version, 0]} for version in ("1.0.0", "2.0.0")
    ]
    assert [(each.label, each.kind, each.problems, each.left) for each in results] == [
        ("claude-1.0.0", "real", {}, ()),
        ("claude-2.0.0", "real", {}, ()),
    ]
    assert set(results[0].seconds) == {"says-hello", "says-more"}
    assert left_in(folder) == []


def test_a_probe_that_raises_says_why_in_a_line(tmp_path):
    def breaks(trial):
        raise ValueError("two\nlines")

    def cannot_be_made(trial):
        raise TrialError("no keyring here")

    (found,) = measure([(toy(tmp_path), (asking(breaks, SAID), asking(cannot_be_made, OTHER)))])
    assert found.problems == {
        SAID.id: Problem(NOT_MEASURABLE, "ValueError: two lines"),
        OTHER.id: Problem(NOT_MEASURABLE, "no keyring here"),
    }
    assert found.observations == {}


@pytest.mark.parametrize("answer", [{}, {SAID.id: object()}], ids=["nothing", "no JSON"])
def test_a_claim_without_an_answer_is_not_measurable(tmp_path, answer):
    (found,) = measure([(toy(tmp_path), (asking(lambda trial: answer, SAID),))])
    assert found.problems[SAID.id].kind == NOT_MEASURABLE


def test_an_observation_is_what_a_file_of_it_would_give_back(tmp_path):
    (found,) = measure([(toy(tmp_path), (asking(lambda trial: {SAID.id: (1, {2: ()})}, SAID),))])
    assert found.observations == {SAID.id: [1, {"2": []}]}


def test_a_probe_that_is_late_is_tried_again_alone_and_ended(tmp_path, folder):
    beside = []

    def hangs(trial):
        beside.append(threading.active_count())
        trial.run("leave-a-child", "and-hang")
        return {SAID.id: "an answer that is no answer"}

    def goes_on(trial):
        for _ in range(4):
            trial.run("say", "x")
        return {OTHER.id: 1}

    (found,) = measure([(toy(tmp_path), (asking(hangs, SAID, limit_seconds=0.6), asking(goes_on, OTHER)))], workers=2)
    assert found.problems == {SAID.id: Problem(TIMED_OUT, "no answer in 0.6 s, tried again alone")}
    assert found.observations == {OTHER.id: 1}
    assert (len(beside), found.alone, found.left) == (2, ("hangs",), ())
    assert left_in(folder) == []


def test_what_answers_when_it_is_alone_counts(tmp_path):
    tries = []

    def slow_at_first(trial):
        tries.append(1)
        return {SAID.id: trial.run(*(["hang"] if len(tries) == 1 else ["say", "yes"])).stdout}

    (found,) = measure([(toy(tmp_path), (asking(slow_at_first, SAID, limit_seconds=5.0),))])
    assert (found.observations, found.alone) == ({SAID.id: "yes\n"}, ("slow-at-first",))


def test_a_probe_that_does_not_come_back_is_left_behind_with_nothing(tmp_path, folder, monkeypatch):
    monkeypatch.setattr(running, "PATIENCE_SECONDS", 0.2)
    gate = threading.Event()

    def waits(trial):
        trial.write("file", "text")
        gate.wait(60)
        return {}

    began = time.monotonic()
    try:
        (found,) = measure([(toy(tmp_path), (asking(waits, SAID, limit_seconds=0.2),))])
    finally:
        gate.set()
    assert found.problems[SAID.id].kind == TIMED_OUT
    assert time.monotonic() - began < 30
    assert left_in(folder) == []


def test_no_more_probes_run_at_a_time_than_there_are_workers(tmp_path):
    lock, now, most = threading.Lock(), [0], [0]

    def counts(number):
        def ask(trial):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            trial.run("say", "x")
            with lock:
                now[0] -= 1
            return {f"claude.toy.{number}": 1}

        ask.__name__ = f"counts_{number}"
        return asking(ask, claim(str(number)))

    (found,) = measure([(toy(tmp_path), tuple(counts(number) for number in range(6)))], workers=2)
    assert len(found.observations) == 6
    assert most[0] == 2


def test_a_child_that_hides_in_a_group_of_its_own_is_ended_too(tmp_path, folder):
    def leaves(trial):
        return {SAID.id: trial.run("leave-a-child").stdout}

    (found,) = measure([(toy(tmp_path), (asking(leaves, SAID),))])
    assert (found.observations, found.left) == ({SAID.id: "left\n"}, ())
    assert left_in(folder) == []


MEASURING = """
import sys
sys.path.insert(0, {sources!r})
from pathlib import Path
from harness.canary.running import measure
from harness.cli.interrupting import ended_by_signals
from harness.cli.ending import Ending
from scenarios.units.canary_toys import asking, claim, toy

def hangs(trial):
    print("ready", flush=True)
    trial.run("leave-a-child", "and-hang")
    trial.run("hang")
    return {{}}

with Ending("canary") as ending, ended_by_signals():
    measure([(toy(Path({place!r})), (asking(hangs, claim("x")),))])
sys.exit(ending.exit_code)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)], ids=["INT", "TERM", "KILL"]
)
def test_nothing_is_left_by_who_is_interrupted(tmp_path, folder, number, code):
    program = MEASURING.format(sources=str(SOURCES), place=str(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, "TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        until = time.monotonic() + PATIENCE_SECONDS
        while len(marked(f"{MARK_VARIABLE}={folder}/")) < 2 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == code
    until = time.monotonic() + PATIENCE_SECONDS
    while left_in(folder) and time.monotonic() < until:
        time.sleep(0.02)
    assert left_in(folder) == []


def test_a_claim_belongs_to_the_runtime_that_its_id_begins_with():
    assert Claim("codex.key.x", "").family == "codex"
