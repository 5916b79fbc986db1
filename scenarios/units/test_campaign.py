"""Campaigns: the same runs whoever plays them, each way to fail once, resumable, and every reach mark or it fails."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from harness.cli import campaign as command
from harness.cli import main
from harness.cli.numbers import MOST_PROCESSES
from harness.errors import UserInputError
from harness.scenario.campaign import Kept, Tally, play_seed, run_batch, run_one, run_seed, tally_from
from harness.scenario.failure import load_failure, replay
from harness.scenario.families import families, family_named
from harness.scenario.holes import Walked
from harness.scenario.reach import Mark
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from scenarios.report_schemas import validate
from scenarios.shipped import ROOT

PATIENCE_SECONDS = 120.0

BUG = "npx.repairs_nothing"
CODEX_BUG = "scenario.codex_is_left_to_its_own_budget"
FAMILY = "bin-guard"
HASH_SEEDS = [str(seed) for seed in (0, 1, 2, 3, 5, 8, 13, 21, 34, 4_000_000_000)]


@pytest.fixture
def campaign(tmp_path, monkeypatch, capsys):
    """Run the command in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str) -> tuple[int, str, str]:
        code = main(["campaign", *arguments])
        output = capsys.readouterr()
        return code, output.out, output.err

    return go


def played(family: str, runs: int, *sizes: int) -> Tally:
    """A campaign of so many runs, in batches of these sizes."""
    tally = Tally(family, 0)
    for size in sizes:
        tally.add(run_batch(family_named(family), 0, tally.runs, size))
    assert tally.runs == runs
    return tally


def traces() -> str:
    """The traces of some runs of every family."""
    return json.dumps(
        [
            [name, number, play_seed(family, run_seed(0, name, number)).trace_digest]
            for name, family in families().items()
            for number in range(3)
        ]
    )


def test_a_seed_gives_one_trace_in_fresh_processes_under_ten_hash_seeds():
    program = "from scenarios.units.test_campaign import traces; print(traces())"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": "", "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in HASH_SEEDS
    ]
    assert {process.communicate()[0].strip() for process in processes} == {traces()}


def test_what_a_campaign_adds_up_to_does_not_depend_on_its_batches():
    assert played(FAMILY, 12, 12).state() == played(FAMILY, 12, 5, 1, 6).state()


def test_a_batch_out_of_turn_is_refused():
    tally = played(FAMILY, 2, 2)
    with pytest.raises(ValueError, match="next run is 2"):
        tally.add(run_batch(family_named(FAMILY), 0, 5, 1))


def test_a_state_is_read_back_and_a_damaged_one_is_told():
    tally = played(FAMILY, 4, 4)
    assert tally_from(json.loads(json.dumps(tally.state())), "x").state() == tally.state()
    damages: list[object] = [None, [], {}, tally.state() | {"format": "9"}, tally.state() | {"verdicts": {"good": 1}}]
    for damaged in damages:
        with pytest.raises(UserInputError, match=r"state\.json: is no state of a campaign"):
            tally_from(damaged, "state.json")


def test_two_runs_of_one_signature_are_kept_as_the_first():
    with in_place(find_variant(BUG)):
        batch = run_batch(family_named(FAMILY), 0, 0, 12, BUG)
        numbers = [number for number in range(12) if run_one(family_named(FAMILY), 0, number, BUG).failure]
    assert len(batch.failures) == 1
    [(first, _)] = batch.failures.values()
    assert first == numbers[0]
    assert sum(batch.failed.values()) == len(numbers)


def test_ways_to_fail_are_told_apart_by_their_runtime(tmp_path):
    tally = Tally("token-chain", 0)
    for number, runtime in enumerate(("claude@2.1.268", "pi@0.84.1+2.32.1")):
        tally.corpus[str(number)] = Kept(f"{number}.failure.toml", "fail: no-orphans on S", number, 1, runtime)
    told = [line for line in command.lines(family_named("token-chain"), tally, tmp_path, 1) if "FAIL  " in line]
    assert [line.split("no-orphans on S; ")[1] for line in told[:2]] == ["claude@2.1.268", "pi@0.84.1+2.32.1"]
    state = tally.state()
    for kept in state["corpus"]:
        del kept["runtime"]  # as older states are
    assert [kept.runtime for kept in tally_from(state, "x").corpus.values()] == ["", ""]


def test_of_a_hole_that_a_campaign_walked_into_it_says_what_closes_it(tmp_path):
    tally = Tally("token-chain", 0)
    tally.holes["answer-lost"] = Walked(2, 1)
    (line,) = (each for each in command.lines(family_named("token-chain"), tally, tmp_path, 0) if "  hole " in each)
    assert "answer-lost: 1 chains lost; closed by: nothing on our side; a provider's grace" in line


def test_with_the_right_rules_nothing_fails_and_every_mark_is_reached(campaign):
    code, out, _ = campaign("--scenario-family", FAMILY, "--runs", "60", "--processes", "1")
    assert code == 0, out
    assert "reached" in out
    assert out.splitlines()[-1].startswith("PASS  60 runs, 0 failed in 0 ways; 4/4 marks reached; ")


def test_an_old_bug_fails_and_its_failure_file_replays(campaign):
    arguments = ("--scenario-family", FAMILY, "--runs", "10", "--variant", BUG, "--processes", "1", "--save", "kept")
    code, out, _ = campaign(*arguments)
    assert code == 1
    assert "FAIL" in out
    [path] = Path("kept").glob("*.failure.toml")
    assert f"mcp-harness run {path}" in out
    failure = load_failure(path)
    assert failure.variant == BUG
    with in_place(find_variant(BUG)):
        assert replay(failure).report.verdict is Verdict.FAIL
    assert main(["run", str(path)]) == 1


def test_two_processes_find_what_one_finds(campaign):
    arguments = ("--scenario-family", "codex-budget", "--runs", "45", "--variant", CODEX_BUG)
    campaign(*arguments, "--processes", "1", "--save", "one")
    campaign(*arguments, "--processes", "2", "--save", "two")
    one, two = (json.loads(Path(folder, "campaign.json").read_text()) for folder in ("one", "two"))
    assert one | {"seconds": 0} == two | {"seconds": 0}
    for path in Path("one").glob("*.toml"):
        assert path.read_text() == Path("two", path.name).read_text()


def test_a_campaign_that_goes_on_is_one_campaign(campaign):
    arguments = ("--scenario-family", "codex-budget", "--variant", CODEX_BUG, "--processes", "1")
    campaign(*arguments, "--runs", "12", "--save", "parts")
    code, _, _ = campaign("--resume", "parts", "--runs", "13", "--processes", "1")
    assert code == 1
    campaign(*arguments, "--runs", "25", "--save", "whole")
    parts, whole = (json.loads(Path(folder, "campaign.json").read_text()) for folder in ("parts", "whole"))
    assert parts | {"seconds": 0} == whole | {"seconds": 0}


def test_a_mark_that_no_run_reached_fails_the_campaign(campaign, monkeypatch):
    family = family_named(FAMILY)
    marks = (*family.marks, Mark("blue-moon", "what never happens", lambda _: False))
    monkeypatch.setattr(command, "family_named", lambda _: family._replace(marks=marks))
    code, out, _ = campaign("--scenario-family", FAMILY, "--runs", "60", "--processes", "1")
    assert code == 1
    assert "NEVER REACHED  blue-moon: what never happens" in out
    assert "4/5 marks reached" in out.splitlines()[-1]


def test_the_report_as_json_fits_its_schema(campaign):
    code, out, _ = campaign("--scenario-family", "codex-budget", "--runs", "10", "--processes", "1", "--format", "json")
    document = json.loads(out)
    validate("campaign-report", document)
    assert document["runs"] == 10
    assert document["exit_code"] == code
    assert [each["command"] for each in document["next"]] == [f"mcp-harness campaign --resume {document['folder']}"]


def test_the_report_as_json_says_how_to_play_each_failure_again_as_the_text_does(campaign):
    both = ("--format", "json=report.json", "--format", "text")
    _, out, _ = campaign(
        "--scenario-family", "codex-budget", "--runs", "45", "--processes", "1", "--variant", CODEX_BUG, *both
    )
    document = json.loads(Path("report.json").read_text())
    validate("campaign-report", document)
    *again, _ = [each["command"] for each in document["next"]]
    assert again == [line.partition(": ")[2] for line in out.splitlines() if "first in run" in line]
    assert len(again) == len(document["failures"]) > 0


def test_progress_is_told_on_stderr(campaign, monkeypatch):
    monkeypatch.setattr(command, "TELL_SECONDS", 0.0)
    _, _, err = campaign("--scenario-family", "codex-budget", "--runs", "10", "--processes", "1")
    assert err.startswith("campaign: 10 runs (")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--scenario-family is missing"),
        (("--scenario-family", "bin-gard"), "Did you mean bin-guard?"),
        (("--scenario-family", FAMILY, "--minutes", "0"), "--minutes is 0"),
        (("--scenario-family", FAMILY, "--minutes", "nan"), "--minutes is nan"),
        (("--scenario-family", FAMILY, "--minutes", "inf"), "--minutes is inf. Give a number above 0 up to 10,080."),
        (("--scenario-family", FAMILY, "--minutes", "1e400"), "--minutes is inf"),
        (("--scenario-family", FAMILY, "--seed", "9" * 30), "--seed is 99999999999999999999..."),
        (("--scenario-family", FAMILY, "--save", "a-file"), "a-file: is a file, not a folder"),
        (("--scenario-family", FAMILY, "--save", "x" * 5_000), "nothing can be written there: File name too long"),
        (("--resume", "a-file"), "a-file: is a file, not a folder"),
        (("--scenario-family", FAMILY, "--runs", "-1"), "--runs is -1"),
        (("--scenario-family", FAMILY, "--processes", "65"), "--processes is 65"),
        (("--scenario-family", FAMILY, "--variant", "nothing_like_it"), "--variant nothing_like_it"),
        (("--resume", "nowhere"), "nowhere/campaign.json"),
        (("--resume", "nowhere", "--seed", "3"), "--seed does not go with --resume"),
    ],
)
def test_unusable_arguments_end_with_2_in_one_line(campaign, arguments, words):
    Path("a-file").write_text("x", encoding="utf-8")
    code, out, err = campaign(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_a_folder_that_holds_a_campaign_is_not_written_over(campaign):
    arguments = ("--scenario-family", "codex-budget", "--runs", "5", "--processes", "1", "--save", "here")
    campaign(*arguments)
    code, _, err = campaign(*arguments)
    assert code == 2
    assert "--resume here" in err


def test_the_largest_number_of_processes_is_allowed():
    command.check_numbers(Namespace(minutes=None, runs=1, seed=None, processes=MOST_PROCESSES))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -9)], ids=["INT", "TERM", "KILL"]
)
def test_no_worker_outlives_a_campaign_that_is_ended_by_a_signal(tmp_path, number, code):
    words = ("campaign", "--scenario-family", "cold-npx-race", "--minutes", "60", "--processes", "2")
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", *words, "--save", str(tmp_path / "kept")],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    state = tmp_path / "kept" / "campaign.json"
    until = time.monotonic() + PATIENCE_SECONDS
    while not state.exists() and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_SECONDS)  # its stderr ends when no worker holds it any more
    assert process.returncode == code
    assert json.loads(state.read_text(encoding="utf-8"))["runs"] >= command.BATCH_RUNS
