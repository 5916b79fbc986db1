"""The battery on the command line: how much is tried, what is written, what the reports say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.cli.gate import Progress
from scenarios.report_schemas import validate
from scenarios.units.battery_run import LOCAL, REMOTE

SOUND = {"local": LOCAL, "remote": REMOTE}
KEYED = {**SOUND, "keyed": {"type": "streamable-http", "url": "https://keyed.example.com/mcp?key=${KEYED_KEY}"}}


@pytest.fixture
def gate(tmp_path, monkeypatch, capsys):
    """Run the command in an empty folder on a catalog: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(tree: object, *arguments: str) -> tuple[int, str, str]:
        Path("mcp.json").write_text(json.dumps(tree), encoding="utf-8")
        code = main(["gate", "mcp.json", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def report(out: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(out)
    validate("gate-report", document)
    return document


def test_the_text_says_what_was_tried_and_what_the_runtimes_do(gate):
    code, out, _ = gate(SOUND)
    words = " ".join(out.split())
    assert code == 0
    assert "faults tried: 7 to 10 kinds x 2 entries x 3 runtimes = 51 spawns; 48 failed, every one alone" in words
    assert "(no other entry was hurt); 3 came through" in words
    assert "(MH956)" in words


def test_nothing_is_tried_when_the_battery_is_off(gate):
    code, out, _ = gate(SOUND, "--battery", "off", "--format", "json")
    assert (code, report(out)["battery"]) == (0, None)


def test_the_json_report_counts_and_fits_its_schema(gate):
    battery = report(gate(SOUND, "--format", "json", "--battery", "full")[1])["battery"]
    assert (battery["mode"], battery["spawns"], battery["survived"], battery["hurt"]) == ("full", 51, 3, 0)
    assert {fact["rule"] for fact in battery["facts"]} == {"MH956", "MH957"}


def test_the_markdown_comment_says_it_too(gate):
    assert "faults tried: 7 to 10 kinds x 2 entries" in gate(SOUND, "--format", "markdown")[1]


def test_without_a_finding_nothing_is_written(gate):
    gate(SOUND)
    assert [path.name for path in Path().iterdir()] == ["mcp.json"]


def test_a_finding_writes_the_scenario_that_shows_it_and_says_how_to_play_it(gate):
    _, out, _ = gate(KEYED, "--format", "json")
    (finding,) = [each for each in report(out)["findings"] if each["rule"] == "MH953"]
    assert finding["proof"] == "out/mh953-keyed-claude.toml"
    assert finding["events"]
    assert main(["run", finding["proof"]]) == 1


def test_the_text_names_the_command_that_plays_it(gate):
    words = " ".join(gate(KEYED, "--out", "proofs")[1].split())
    assert "Proof: mcp-harness run proofs/mh953-keyed-claude.toml" in words
    assert Path("proofs/mh953-keyed-claude.toml").is_file()


def test_a_folder_that_cannot_be_written_costs_the_proof_and_not_the_verdict(gate):
    Path("taken").write_text("a file", encoding="utf-8")
    code, out, err = gate(KEYED, "--out", "taken", "--format", "json")
    assert "cannot be written" in err
    assert [each["proof"] for each in report(out)["findings"] if each["rule"] == "MH953"] == [None]
    assert code in (0, 1)


def test_a_secret_written_out_in_the_catalog_is_masked_in_the_scenario(gate):
    tree = {"keyed": {**KEYED["keyed"], "headers": {"Authorization": "Bearer sk-live-0123456789abcdef0123"}}}
    gate(tree)
    written = [path.read_text(encoding="utf-8") for path in Path("out").glob("*.toml")]
    assert written
    assert not any("sk-live-0123456789abcdef0123" in text for text in written)


def test_progress_is_told_once_it_takes_long_and_never_at_the_end(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("harness.cli.gate.time.monotonic", lambda: now[0])
    progress = Progress()
    for done, at in ((1, 1.0), (2, 2.5), (3, 3.0), (4, 9.0)):
        now[0] = at
        progress(done, 4)
    assert capsys.readouterr().err == "trying faults: 2 of 4 entries\n"


@pytest.mark.parametrize("rule", [f"MH95{number}" for number in range(8)])
def test_every_rule_of_the_battery_is_explained(rule, capsys):
    assert main(["explain", rule]) == 0
    assert rule in capsys.readouterr().out
