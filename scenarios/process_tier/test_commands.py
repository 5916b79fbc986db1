"""The tier `process` on the command line: comparison with the model, files that are kept, what is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.cli import main
from scenarios.playing import short
from scenarios.report_schemas import validate

pytest_plugins = ["pytester"]

PASSING = "[[expect]]\nserver = 'a'\nis = 'connected'"
SECRET = "s3cret-value-of-a"
WITH_SECRET = f"""
[secrets]
A_TOKEN = "{SECRET}"

[catalog.c]
type = "stdio"
command = "/opt/c"
env = {{ TOKEN = "${{A_TOKEN}}" }}
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Write a scenario, run it on Claude: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str, text: str = short(PASSING)) -> tuple[int, str, str]:
        Path("mine.toml").write_text(text, encoding="utf-8")
        code = main(["run", "mine.toml", "--runtime", "claude", *arguments])
        output = capsys.readouterr()
        return code, output.out, output.err

    return go


def test_two_tiers_are_played_and_compared(run):
    code, out, _ = run("--tier", "process", "--tier", "model", "--format", "json")
    document = json.loads(out)
    validate("run-report", document)
    assert (code, document["disagreements"]) == (0, [])
    assert [each["tier"] for each in document["runs"]] == ["model", "process"]


def test_what_the_tiers_do_not_agree_on_fails_the_run(run, monkeypatch):
    monkeypatch.setattr("harness.cli.run.differences", lambda *_: ("the verdict: pass at one, fail at the other",))
    code, _, err = run("--tier", "process", "--tier", "model")
    assert code == 1
    assert "mcp-harness: the tiers disagree: claude@2.1.268: the verdict: pass at one, fail at the other" in err


def test_all_that_was_written_and_printed_is_kept_without_secrets(run, tmp_path):
    code, _, err = run("--tier", "process", "--keep", "kept", text=short(WITH_SECRET, PASSING))
    place = tmp_path / "kept" / "short-claude@2.1.268-process"
    assert (code, err) == (0, f"kept: {Path('kept', place.name)}\n")
    config = place / "root/home/agent/.zimmer/clones/S/.mcp.json"
    assert "***" in config.read_text(encoding="utf-8")
    assert '"type":"result"' in (place / "printed/S.claude.stdout").read_text(encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for path in place.rglob("*") if path.is_file()]
    assert not any(SECRET in text or str(tmp_path) in text for text in texts)


def test_what_is_kept_never_mixes_with_what_was(run):
    assert run("--keep", "kept")[0] == 0
    code, out, err = run("--keep", "kept")
    assert (code, out) == (2, "")
    assert err == (
        "mcp-harness: error: kept/short-claude@2.1.268-model: is there already. Name another folder with --keep.\n"
    )


@pytest.mark.parametrize("given", [("--seed", "3"), ("--decisions", "mine.toml"), ("--save", "out")])
def test_what_only_the_model_can_do_is_refused(run, given):
    code, out, err = run("--tier", "process", *given)
    assert (code, out) == (2, "")
    assert err.startswith(f"mcp-harness: error: {given[0]} does not go with --tier process: the operating system ")


def test_a_package_that_is_missing_is_named(run, monkeypatch):
    for name in [name for name in sys.modules if name.startswith(("harness.scenario.process", "trustme"))]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.startswith("fake_servers.mounts")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "trustme", None)
    code, out, err = run("--tier", "process")
    assert (code, out) == (3, "")
    assert err == (
        "mcp-harness: error: the tier process needs the package trustme, which is not installed: "
        "pip install 'mcp-harness[process]'\n"
    )


def test_pytest_plays_both_tiers_as_two_tests(pytester):
    pytester.makefile(".toml", mine=short(PASSING).replace('"claude", "codex", "pi"', '"claude"'))
    options = ("-p", "no:cacheprovider", "-p", "no:randomly", "-v", "--mcp-tier", "model", "--mcp-tier", "process")
    out = pytester.runpytest_subprocess(*options, "mine.toml").stdout.str()
    assert "mine.toml::claude@2.1.268 PASSED" in out
    assert "mine.toml::claude@2.1.268-process PASSED" in out


def test_a_temporary_folder_too_deep_for_a_socket_is_named(run, tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(deep))
    code, _, err = run("--tier", "process")
    assert code == 2
    assert err == (
        f"mcp-harness: error: TMPDIR: {deep} is too long a path for sockets below it. Name a shorter folder.\n"
    )
    assert list(deep.iterdir()) == []


def test_what_cannot_be_kept_anywhere_is_told_before_anything_runs(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = run("--keep", "file/kept")
    assert (code, out) == (2, "")
    assert "file/kept: is a file, not a folder. Name another folder with --keep." in err
