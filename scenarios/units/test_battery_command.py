"""The battery on the command line: how much is tried, what is written, what the reports say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.cli.gate import Progress
from harness.gate.battery.kinds import kinds_for
from scenarios.report_schemas import validate
from scenarios.units.battery_run import LOCAL, PACKAGE, REMOTE

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
    assert "51 simulated starts with one fault each (7 to 10 kinds x 2 entries x 3 runtimes): the struck" in words
    assert "server failed alone in 48, came through in 3; no other entry was ever hurt" in words
    facts = words.partition("known of the runtimes, not of your catalog: ")[2]
    assert "180 s at most (MH956)" in facts
    assert "179" not in words


def test_an_entry_that_starts_on_two_runtimes_is_not_said_to_be_struck_on_three(gate):
    _, out, _ = gate({"figma": {**SOUND["remote"], "type": "sse"}})
    words = " ".join(out.split())
    assert "20 simulated starts with one fault each (10 kinds x 1 entry x 3 runtimes, where they start)" in words


def test_where_no_entry_was_judged_none_is_said_to_come_up_nowhere(gate):
    assert "no fault was simulated: no entry was judged" in gate({})[1]
    assert "no fault was simulated: no entry comes up anywhere" in gate({"a": {**SOUND["remote"], "url": ""}})[1]


def test_nothing_is_tried_when_the_battery_is_off(gate):
    code, out, _ = gate(SOUND, "--battery", "off", "--format", "json")
    assert (code, report(out)["battery"]) == (0, None)


def test_the_json_report_counts_and_fits_its_schema(gate):
    battery = report(gate(SOUND, "--format", "json", "--battery", "full")[1])["battery"]
    assert (battery["mode"], battery["spawns"], battery["survived"], battery["hurt"]) == ("full", 51, 3, 0)
    assert {fact["rule"] for fact in battery["facts"]} == {"MH956", "MH957"}


def test_the_markdown_comment_says_it_too(gate):
    comment = gate(SOUND, "--format", "markdown")[1]
    assert "51 simulated starts with one fault each (7 to 10 kinds x 2 entries" in comment
    assert "known of the runtimes, not of your catalog" in comment


def test_the_runtimes_facts_name_the_budget_whatever_a_healthy_start_takes(gate):
    tree = {"package": {**PACKAGE}, "remote": REMOTE}
    facts = report(gate(tree, "--format", "json")[1])["battery"]["facts"]
    assert {fact["seconds"] for fact in facts if fact["rule"] == "MH956"} == {180.0}


def test_a_remote_entry_with_a_stray_command_gets_the_faults_of_a_remote_one_and_one_finding(gate):
    broken = {**REMOTE, "url": "https://x.example.com/mcp", "command": "npx -y mcp", "args": ["-y", "x"]}
    _, out, _ = gate({"github": PACKAGE, "broken": broken}, "--format", "json", "--battery", "full")
    said = report(out)
    spawns = 3 * (len(kinds_for("npx")) + len(kinds_for("remote")))
    assert [each["rule"] for each in said["findings"] if each["entry"] == "broken"] == ["MH201"]
    assert (said["battery"]["hurt"], said["battery"]["spawns"]) == (0, spawns)


def test_what_the_battery_found_before_the_change_too_is_marked(gate):
    Path("base.json").write_text(json.dumps(KEYED), encoding="utf-8")
    titled = {**KEYED, "keyed": {**KEYED["keyed"], "title": "Keyed"}}
    added = {**titled, "other": {**KEYED["keyed"], "url": "https://other.example.com/mcp?key=${KEYED_KEY}"}}
    found = report(gate(added, "--base", "base.json", "--format", "json")[1])["findings"]
    assert {each["entry"]: each["new"] for each in found if each["rule"] == "MH953"} == {"keyed": False, "other": True}


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
    Path("out").write_text("a file", encoding="utf-8")
    code, out, err = gate(KEYED, "--format", "json")
    assert "cannot be written" in err
    assert [each["proof"] for each in report(out)["findings"] if each["rule"] == "MH953"] == [None]
    assert code in (0, 1)


def test_a_folder_that_is_named_is_tried_before_anything_is_judged(gate):
    Path("taken").write_text("a file", encoding="utf-8")
    code, out, err = gate(KEYED, "--out", "taken")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "taken: is a file, not a folder. Name another folder with --out." in err
    assert gate(KEYED, "--out", "new/er", "--fail-on", "error", "--battery", "off")[0] in (0, 1)
    assert not Path("new").exists()


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
