"""`mcp-harness run` and `mcp-harness scenarios`, and scenario files named to pytest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from harness.cli import main
from harness.next_steps import Step
from harness.scenario.failure import decisions_text
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.world.model import Decision
from scenarios.playing import HEAD, short
from scenarios.report_schemas import validate

pytest_plugins = ["pytester"]

PASSING = "[[expect]]\nexit = 0"
FAILING = "[[expect]]\nexit = 1\nsays = 'it exits otherwise'"
SECRET = "s3cret-value-of-a"


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Write a scenario, run the command in its folder: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str, text: str | None = None) -> tuple[int, str, str]:
        if text is not None:
            Path("mine.toml").write_text(text, encoding="utf-8")
        code = main(["run", *arguments])
        output = capsys.readouterr()
        return code, output.out, output.err

    return go


def test_a_scenario_of_ones_own_runs_on_each_runtime_that_it_names(run):
    code, out, err = run("mine.toml", text=short(PASSING))
    assert (code, err) == (0, "")
    ends = [line for line in out.splitlines() if line.startswith("PASS")]
    assert re.findall(r"on (\S+):", " ".join(ends)) == ["claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1"]
    assert all(end.endswith("exit 0") for end in ends)
    assert out.startswith('mine.toml  "A short one"\n')


def test_what_fails_says_what_was_seen_and_where_the_file_says_otherwise(run):
    code, out, _ = run("mine.toml", "--runtime", "codex@0.169.0", text=short(FAILING))
    assert code == 1
    line = next(line for line in out.splitlines() if line.startswith("  expect"))
    assert re.fullmatch(r"  expect  it exits otherwise \.+ FAIL  it exits 0 \(line \d+\)", line)
    assert out.splitlines()[-1].startswith("FAIL  short on codex@0.169.0: 0/1 expectations")
    assert out.splitlines()[-1].endswith("exit 1")


def test_the_json_report_fits_its_schema(run):
    for text, expected in ((short(PASSING), 0), (short(FAILING), 1)):
        code, out, _ = run("mine.toml", "--format", "json", text=text)
        document = json.loads(out)
        validate("run-report", document)
        assert code == expected == document["exit_code"]
        assert document["runs"][0]["runtime"] == "claude@2.1.268"
        assert any(event["text"] for event in document["runs"][0]["events"])


def test_the_json_report_has_the_next_steps_of_the_text(run):
    arguments = ("mine.toml", "--seed", "3", "--save", "kept", "--format", "json=run.json", "--format", "text")
    _, out, _ = run(*arguments, text=short(FAILING))
    document = json.loads(Path("run.json").read_text())
    validate("run-report", document)
    steps = [Step(**each) for told in document["runs"] for each in told["next"]]
    assert [line[8:] for line in out.splitlines() if "mcp-harness" in line] == [str(step) for step in steps]
    assert len(steps) == 2 * len(document["runs"])
    passed = json.loads(run("mine.toml", "--format", "json", text=short(PASSING))[1])
    assert [each["next"] for each in passed["runs"]] == [[]] * len(passed["runs"])


def test_equal_seeds_give_equal_traces_and_the_report_says_which(run):
    documents = [
        json.loads(run("mine.toml", "--seed", seed, "--format", "json", text=short(PASSING))[1])
        for seed in ("5", "5", "6")
    ]
    digests = [[each["trace_digest"] for each in document["runs"]] for document in documents]
    assert digests[0] == digests[1]
    assert digests[0] != digests[2]
    assert [document["seed"] for document in documents] == [5, 5, 6]


def test_decisions_are_replayed_strictly(run, tmp_path):
    (tmp_path / "calm.txt").write_text(decisions_text([]))
    (tmp_path / "other.txt").write_text(decisions_text([Decision("start", 7, 3)]))
    assert run("mine.toml", "--runtime", "pi", "--decisions", "calm.txt", text=short(PASSING))[0] == 0
    code, out, _ = run("mine.toml", "--runtime", "pi", "--decisions", "other.txt")
    assert code == 1
    assert "divergence: decision 0: recorded start of 7, met " in out


@pytest.mark.parametrize("content", ["rum", "run.2=2", "run.x", "{}"])
def test_a_file_that_holds_no_decisions_is_refused_in_one_line(run, tmp_path, content):
    (tmp_path / "bad.txt").write_text(content)
    code, out, err = run("mine.toml", "--decisions", "bad.txt", text=short(PASSING))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "bad.txt: holds no decisions" in err


def test_a_run_that_fails_is_saved_and_fails_again(run, tmp_path):
    code, _, err = run("mine.toml", "--runtime", "codex", "--seed", "3", "--save", "out", text=short(FAILING))
    (saved,) = (tmp_path / "out").iterdir()
    assert code == 1
    assert f"reproduce: mcp-harness run out/{saved.name}" in err
    code, out, err = run(f"out/{saved.name}")
    assert (code, err) == (1, "")
    assert "replayed decisions; exit 1" in out
    code, out, err = run(f"out/{saved.name}", "--seed", "1")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert run("mine.toml", "--save", "out2", text=short(PASSING))[2] == ""


def test_a_known_bad_variant_brings_the_old_bug_back_for_one_run(run):
    for name in ("scenario.codex_is_left_to_its_own_budget", "codex-is-left-to-its-own-budget"):
        code, out, _ = run("702", "--variant", name)
        assert code == 1
        assert "lacks playwright" in out
        assert out.count("with scenario.codex_is_left_to_its_own_budget") == 2
    code, out, _ = run("702")
    assert (code, "with scenario." in out) == (0, False)
    code, _, err = run("702", "--variant", "codex-is-left-to-its-own-badget")
    assert code == 2
    assert "Did you mean scenario.codex_is_left_to_its_own_budget?" in err


def test_a_bug_of_a_fake_runtime_is_not_looked_for_in_the_real_one(run):
    code, out, err = run(
        "runtime-rotates", "--tier", "real", "--variant", "fake_claude.a_lapsed_token_is_never_renewed"
    )
    assert (code, out) == (2, "")
    assert "is of a fake runtime" in err


@pytest.mark.parametrize("name", ["702", "#702", "claude-pending"])
def test_a_shipped_scenario_is_found_by_its_id(run, name):
    assert run(name)[0] == 0


def test_what_cannot_be_run_says_why_in_one_line(run):
    cases = [
        (("703",), 2, "no scenario is called '703'. Did you mean 702?"),
        (("nothing.toml",), 2, "nothing.toml: no such file"),
        (("702", "--runtime", "claude"), 2, "702.toml: is about codex, not about claude@2.1.268. Use --runtime codex."),
        (("689", "--runtime", "codex", "--runtime", "pi"), 2, "not about codex@0.146.0 and pi@0.84.1+2.32.1"),
        (("702", "--format", "xml"), 2, 'there is no format "xml". Known formats: text, json.'),
        (("702", "--format", "sarif"), 2, "Known formats: text, json."),
        (("702", "--format", "json="), 2, "names no file"),
        (("702", "--format", "json", "--format", "text"), 2, "would both go to standard output"),
        (("702", "--format", "json=no/where.json"), 2, "no/where.json: the report cannot be written"),
        (("702", "--runtime", "codex@1"), 3, "--runtime: unknown runtime 'codex@1'"),
        (("702", "--runtime", "cobra"), 2, "--runtime: unknown runtime 'cobra'"),
        (("702", "--seed", "9" * 40), 2, "--seed is 99999999999999999999..."),
        (("x" * 5_000,), 2, "no scenario is called"),
        (("702", "--keep", "x" * 5_000), 2, "nothing can be written there: File name too long"),
        (("702", "--save", "/dev/null"), 2, "/dev/null: is a file, not a folder. Name another folder with --save."),
        (("702", "--keep", "/dev/null"), 2, "/dev/null: is a file, not a folder"),
        (("702", "--decisions", "x" * 5_000), 2, "cannot be read: File name too long"),
        (("..",), 2, "..: is a folder. Name the file, for instance ../mine.toml."),
        (("702", "--decisions", ".."), 2, "..: is a folder. Name the file, for instance ../decisions.txt."),
        (("702", "--seed", "x"), 2, "invalid int value"),
        (("702", "--seed", "1", "--decisions", "x"), 2, "not allowed with"),
    ]
    for arguments, expected, words in cases:
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (expected, "", 1), arguments
        assert words in err


def test_of_several_runtimes_those_that_it_is_not_about_are_skipped_and_counted(run):
    code, out, err = run("702", "--runtime", "claude", "--runtime", "codex", "--runtime", "pi@0.86.1+2.36.0")
    assert code == 0
    assert [line for line in out.splitlines() if line.startswith("PASS")] == [out.splitlines()[-1]]
    told = "mcp-harness: 2 runtimes skipped (claude, pi@0.86.1+2.36.0): it is about codex\n"
    assert told in err
    assert "skipped" not in run("702", "--runtime", "codex")[2]


def test_a_report_can_go_to_a_file_beside_the_one_on_stdout(run, tmp_path):
    code, out, _ = run("mine.toml", "--format", "text", "--format", "json=report.json", text=short(PASSING))
    document = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    validate("run-report", document)
    assert (code, document["exit_code"]) == (0, 0)
    assert out.startswith('mine.toml  "A short one"\n')
    code, out, _ = run("mine.toml", "--format", "text=report.txt")
    assert (code, out) == (0, "")
    assert (tmp_path / "report.txt").read_text(encoding="utf-8").splitlines()[-1].endswith("exit 0")


def test_a_report_that_could_not_be_written_is_told_before_anything_is_played(run, monkeypatch):
    monkeypatch.setattr("harness.cli.run.play", lambda *_, **__: pytest.fail("it was played"))
    assert run("mine.toml", "--format", "json=no/where.json", text=short(PASSING))[0] == 2


def test_what_cannot_fit_into_a_tier_is_told_before_any_tier_is_played(run, monkeypatch):
    monkeypatch.setattr("harness.cli.run.play", lambda *_, **__: pytest.fail("it was played"))
    long = short(PASSING, "[[step]]\nadvance = 10800", session="")
    code, out, err = run("mine.toml", "--tier", "model", "--tier", "process", "--runtime", "pi", text=long)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "its steps wait 10800 s on pi@0.84.1+2.32.1, but the tier process has 90 s" in err


KEPT = """
[authorization.as-b]
[server.b]
protected_by = "as-b"
[[credential]]
server = "b"
issued_by = "as-b"
expires_in_seconds = 600
[[credential]]
server = "c"
access_token = "t0ken-of-c-itself"
[catalog.c]
type = "streamable-http"
url = "https://c.test/mcp"
"""


def test_the_rows_of_the_store_are_kept_with_their_secrets_masked(run, tmp_path):
    text = short(PASSING, KEPT)
    report = play(read_scenario(text), "claude", keeps_files=True)
    issued = {row["access_token"] for row in report.rows["mcp_oauth_credentials"].values()}
    assert len(issued) == 2
    assert run("mine.toml", "--runtime", "claude", "--keep", "out", text=text)[0] == 0
    (folder,) = (tmp_path / "out").iterdir()
    rows = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in (folder / "rows").iterdir()}
    assert {row["server_name"] for row in rows["mcp_oauth_credentials.json"].values()} == {"b", "c"}
    assert {row["access_token"] for row in rows["mcp_oauth_credentials.json"].values()} == {"***"}
    assert rows["sessions.json"]["S"]["mcp_servers"] == ["a", "b", "c"]
    kept = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file())
    secret = [value for value in (*report.issued, *issued) if value in kept]
    assert report.issued
    assert secret == []


def test_switch_points_can_be_listed(run):
    _, out, _ = run("mine.toml", "--runtime", "claude", "--points", text=short(PASSING))
    assert re.search(r"^   00:00\.0   S +spawn claude$", out, re.M)
    assert re.search(r"^   00:00\.0   S/claude +POST https://b\.test/mcp$", out, re.M)


def test_secrets_of_a_scenario_are_in_no_output(run):
    head = HEAD.replace('command = "/opt/a"', 'command = "/opt/a"\nargs = ["${KEY}"]')
    text = short(PASSING, f"[secrets]\nKEY = '{SECRET}'", f"[server.a]\nstderr = ['got {SECRET}']", head=head)
    for arguments in ((), ("--points",), ("--format", "json")):
        _, out, err = run("mine.toml", *arguments, text=text)
        assert SECRET not in out + err
        assert "FAIL" in out or '"fail"' in out


def test_the_shipped_scenarios_are_listed(capsys):
    assert main(["scenarios"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(re.match(r"702 +A cold npx server", line) for line in lines)
    how = "play one with: mcp-harness run ID, with an old bug: mcp-harness run ID --variant NAME; exit 0"
    assert re.fullmatch(rf"\d+ scenarios; {how}", lines[-1])
    assert main(["scenarios", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate("scenarios-list", document)
    assert "#702" in [incident for each in document["scenarios"] for incident in each["incidents"]]


def test_a_scenario_is_listed_with_the_old_bugs_under_which_it_falls(capsys):
    assert main(["scenarios", "702"]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == [
        "702  A cold npx server that needs 45 s is not dropped by Codex",
        "#702; codex; tier model, process; 1 requirement",
        "--variant scenario.codex_is_left_to_its_own_budget: playwright is dropped at 30 s",
    ]
    assert lines[3].startswith("1 scenario; ")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["#595"], "595"),
        (["COLD npx"], "702"),
        (["prepare-codex-default-stdio"], "702"),
        (["nothing-is-adopted"], "deploy-restart-stale-token"),
        (["no such thing", "reconcile.codex_is_left_out_by_name"], "runtime-rotates"),
        (["pi@0.86.1"], "pi-rotates"),
        (["dropped at 30 s"], "702"),
        (["permission denied"], "467"),
    ],
)
def test_a_word_finds_the_scenarios_that_it_is_about(capsys, words, found):
    assert main(["scenarios", *words, "--format", "json"]) == 0
    ids = [each["id"] for each in json.loads(capsys.readouterr().out)["scenarios"]]
    assert found in ids
    assert len(ids) < 30


def test_a_word_that_no_scenario_is_about_is_one_line(capsys):
    assert main(["scenarios", "chains.nothing_is_adoptedd"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == (
        "mcp-harness: error: no scenario is about chains.nothing_is_adoptedd. Did you mean chains.nothing_is_adopted?\n"
    )


def test_pytest_plays_a_scenario_that_is_named(pytester):
    pytester.makefile(".toml", mine=short(PASSING, FAILING + "\nonly_on = ['pi']"), other="x = 1")
    options = ("-p", "no:cacheprovider", "-p", "no:randomly", "-v")
    done = pytester.runpytest_inprocess(*options, "mine.toml")
    out = done.stdout.str()
    assert done.ret == 1
    assert re.search(r"mine\.toml::codex@0\.146\.0 PASSED", out)
    assert re.search(r"mine\.toml::pi@0\.84\.1\+2\.32\.1 FAILED", out)
    assert "  expect  it exits otherwise" in out
    assert "Traceback" not in out
    assert int(pytester.runpytest_inprocess(*options, ".").ret) == int(pytest.ExitCode.NO_TESTS_COLLECTED)


def test_pytest_tells_in_one_line_that_a_tier_has_too_little_time(pytester):
    pytester.makefile(".toml", mine=short(PASSING, "[[step]]\nadvance = 10800", session=""))
    options = ("-p", "no:cacheprovider", "-p", "no:randomly", "--mcp-tier", "process")
    done = pytester.runpytest_inprocess(*options, "mine.toml::claude@2.1.268-process")
    assert done.ret == 1
    assert "its steps wait 10800 s on claude@2.1.268, but the tier process has 90 s" in done.stdout.str()
    assert "Traceback" not in done.stdout.str()
    assert "duration.py" not in done.stdout.str()


def test_pytest_tells_what_is_wrong_with_a_scenario_in_one_line(pytester):
    pytester.makefile(".toml", mine=short(PASSING).replace("[[expect]]", "[[expects]]"))
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider", "mine.toml")
    assert done.ret == int(pytest.ExitCode.INTERRUPTED)
    done.stdout.fnmatch_lines(["*mine.toml:*the file has no key `expects`. Did you mean expect?*"])


def test_the_words_of_a_refused_server_survive_in_every_format(run):
    text = short(PASSING, "[[fault]]\naction = 'answer'\nserver = 'b'\nstatus = 403")
    words = "b needs authorization (Authentication required for HTTP server)"
    for arguments in ((), ("--format", "json")):
        assert words in run("mine.toml", "--runtime", "claude", *arguments, text=text)[1]


def test_the_json_report_has_the_fields_of_every_event_and_no_secret(run):
    head = HEAD.replace('command = "/opt/a"', 'command = "/opt/a"\nargs = ["${KEY}"]')
    hold = "[[hold]]\nactor = 'claude'\nat = 'spawn /opt/a'\nuntil = { event = 'spawn', who = 'S' }"
    text = short(PASSING, f"[secrets]\nKEY = '{SECRET}'", hold, head=head)
    _, out, _ = run("mine.toml", "--runtime", "claude", "--format", "json", text=text)
    document = json.loads(out)
    validate("run-report", document)
    (played,) = document["runs"]
    spawned = next(event for event in played["events"] if event["fields"].get("child") == "S/claude/a")
    assert spawned["fields"]["argv"] == ["/opt/a", "***"]
    assert SECRET not in out
    assert [each["actor"] for each in played["holds"]] == ["S/claude"] * 2
    assert max(event["at_seconds"] for event in played["events"]) == played["simulated_seconds"]


def test_a_table_that_changes_nothing_is_one_warning_line(run):
    code, _, err = run("mine.toml", "--runtime", "pi", text=short(PASSING, "[package.p]\nsteps = 2"))
    assert code == 0
    assert err == "mcp-harness: warning: mine.toml:17: [package.p]: no entry starts this package\n"


def test_the_line_of_an_old_bug_uses_the_file_that_was_given(run, tmp_path):
    bug = "[[old_bug]]\nname = 'npx.walks_the_shared_root_only'\nshows = 'it breaks'"
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "x.toml").write_text(short(PASSING, bug))
    _, out, _ = run("a folder/x.toml", "--runtime", "pi")
    assert "  old bug: mcp-harness run 'a folder/x.toml' --runtime pi@0.84.1+2.32.1 --variant npx.walks" in out
    assert "  old bug: mcp-harness run 702 --runtime codex" in run("702")[1]


def test_a_number_that_is_too_long_is_one_line(run):
    code, out, err = run("mine.toml", text=short(PASSING, "[server.a]\nexit_code = 1" + "0" * 5000))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "mine.toml:18: holds a number that is too long" in err
