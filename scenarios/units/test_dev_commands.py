"""The command line: how commands are found, what they may import, and how each of them ends."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import harness.cli
from harness.cli import COMMANDS, Parser, main
from harness.cli.arguments.campaign import FAMILIES
from harness.cli.arguments.gate import GATE_FORMATS
from harness.errors import CannotRunError, HarnessFault, UserInputError
from harness.report.formats import load_formats
from harness.scenario.families import families

HEAVY = ("pydantic", "pytest", "jsonschema", "tomlkit", "hypothesis", "tree_sitter", "harness.reference")
MOST_OF_OURS = 15
"""So many modules of the project help may import: what a command does its work with is hundreds."""
HELPS = ("", *(name for commands in COMMANDS.values() for name in commands))
HELPS += ("dev requirements", "dev variants", "dev vectors")


def python(*arguments: str, **settings) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=60, check=False, **settings
    )


@pytest.mark.parametrize("words", [f"{command} --help" for command in HELPS] + ["gate --no-such-option"])
def test_help_and_a_mistyped_option_import_nothing_that_the_work_is_done_with(words):
    code = f"import sys, harness.cli; harness.cli.main({words.split()!r}); print('\\n', *sys.modules)"
    imported = python("-c", code).stdout.splitlines()[-1].split()
    assert set(imported).isdisjoint(HEAVY)
    ours = [name for name in imported if name.partition(".")[0] in ("harness", "fake_runtimes", "fake_servers")]
    assert "harness.cli" in ours
    assert len(ours) <= MOST_OF_OURS


def test_what_help_names_without_importing_it_is_what_there_is():
    assert load_formats() == GATE_FORMATS
    assert list(FAMILIES) == list(families())


def test_the_help_groups_the_commands_by_the_jobs_and_lists_each_once(capsys):
    assert main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for title, commands in COMMANDS.items():
        start = lines.index(f"{title}:")
        listed = [line.split()[0] for line in lines[start + 1 : start + 1 + len(commands)]]
        assert listed == list(commands)


@pytest.mark.parametrize("module", ["harness", "harness.cli"])
def test_both_packages_run_as_a_module(module):
    done = python("-m", module, "--version")
    assert (done.returncode, done.stdout) == (0, f"mcp-harness {harness.__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "holds"),
    [
        ([], "no command given"),
        (["gaet"], "did you mean 'gate'?"),
        (["dve"], "did you mean 'dev'?"),
        (["replay"], "choose one of gate, explain, run"),
        (["--bogus"], "--bogus"),
        (["dev"], "SUBJECT"),
        (["dev", "nothing"], "nothing"),
        (["dev", "requirements", "--format", "xml"], "xml"),
        (["dev", "requirements", "--miss"], "--miss"),
        (["dev", "requirements", "no-area"], "no area 'no-area'"),
        (["dev", "variants", "--jobs", "0"], "'0'"),
        (["dev", "variants", "--jobs", "many"], "'many'"),
        (["dev", "vectors", "check"], "FILE"),
    ],
)
def test_unusable_arguments_end_with_one_line_and_exit_code_2(arguments, holds, capsys):
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("mcp-harness: error: ")
    assert captured.err.count("\n") == 1
    assert holds in captured.err


@pytest.mark.parametrize(
    ("is_terminal", "columns", "widest"), [(True, "72", 72), (True, "200", 120), (False, "72", 100)]
)
@pytest.mark.parametrize(
    "words", ["explain MH203", "gate mcp.json --battery off --format text --format text=report.txt"]
)
def test_what_is_shown_fits_the_terminal_and_what_goes_elsewhere_is_always_the_same(
    words, is_terminal, columns, widest, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", columns)
    long_words = "word " * 100
    tree = {"$schema": "https://pulsemcp.github.io/air/schemas/mcp.schema.json", "a": {"unavailable": long_words}}
    Path("mcp.json").write_text(json.dumps(tree), encoding="utf-8")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    main(words.split())
    shown = capsys.readouterr().out.splitlines()[:-1]
    assert widest - 20 < max(map(len, shown)) <= widest
    if "report.txt" in words:
        assert 80 < max(map(len, Path("report.txt").read_text("utf-8").splitlines()[:-1])) <= 100


class FakeCommand:
    """Stands for a command's module: takes one argument, and ends as it is told."""

    def __init__(self, end: object) -> None:
        self.end = end
        self.arguments_asked = 0

    def add_arguments(self, parser: Parser) -> None:
        self.arguments_asked += 1
        parser.add_argument("file")

    def run(self, _args) -> int:
        if isinstance(self.end, BaseException):
            raise self.end
        assert isinstance(self.end, int)
        return self.end


@pytest.fixture
def end_with(monkeypatch):
    """Put a fake command in place of `gate`."""

    def put(end: object) -> FakeCommand:
        command = FakeCommand(end)
        for module in ("harness.cli.arguments.gate", "harness.cli.gate"):
            monkeypatch.setitem(sys.modules, module, command)
        return command

    return put


@pytest.mark.parametrize(
    ("end", "exit_code", "error"),
    [
        (0, 0, ""),
        (1, 1, ""),
        (
            UserInputError("no name", file="mcp.json", line=3, column=5, fix="Give one"),
            2,
            "mcp.json:3:5: no name. Give one",
        ),
        (UserInputError("two\nlines"), 2, "two lines"),
        (CannotRunError("no such base"), 3, "no such base"),
        (HarnessFault("a broken promise"), 4, "a broken promise"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_each_end_of_a_command_has_its_exit_code_and_at_most_one_line(end_with, end, exit_code, error, capsys):
    end_with(end)
    assert main(["gate", "mcp.json"]) == exit_code
    assert capsys.readouterr().err == (f"mcp-harness: error: {error}\n" if error else "")


@pytest.mark.parametrize(("code", "exit_code"), [(None, 0), (3, 3), ("a text", 1)])
def test_a_system_exit_keeps_its_code(end_with, code, exit_code):
    end_with(SystemExit(code))
    assert main(["gate", "mcp.json"]) == exit_code


def test_any_other_exception_names_a_crash_file_that_holds_the_traceback_and_no_arguments(
    end_with, capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    end_with(KeyError("sk-secret"))
    assert main(["gate", "https://user:hidden@host/mcp.json"]) == 4
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "sk-secret" not in error
    (crash_file,) = tmp_path.iterdir()
    assert str(crash_file) in error
    text = crash_file.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "KeyError" in text
    assert "hidden" not in text


def test_the_arguments_of_a_command_are_asked_for_only_when_it_is_invoked(end_with):
    command = end_with(0)
    main(["--help"])
    main(["dev", "requirements", "no-area"])
    assert command.arguments_asked == 0
    main(["gate", "mcp.json"])
    assert command.arguments_asked == 1


def test_a_reader_that_goes_away_ends_the_command_quietly():
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "harness", "dev", "requirements", "catalog", "--missing"],
            stdout=write_end,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_cannot_show_a_character_gets_an_escape(encoding, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding, errors="strict"))
    main(["--version"])
    sys.stdout.write("\u2713 \ud800")
    sys.stdout.flush()
    assert raw.getvalue().decode(encoding).endswith("\u2713 \\ud800" if encoding == "utf-8" else "\\u2713 \\ud800")


def test_the_requirements_are_told_as_a_table_whose_last_line_says_verdict_and_exit_code(capsys):
    exit_code = main(["dev", "requirements", "catalog", "gate"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["AREA", "catalog", "gate"]
    assert lines[-1].startswith("PASS" if exit_code == 0 else "FAIL")
    assert lines[-1].endswith(f"exit {exit_code}")


def test_the_requirements_are_told_as_json(capsys):
    exit_code = main(["dev", "requirements", "zcode-config", "--format", "json"])
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] == exit_code
    (area,) = told["areas"]
    uncovered = area["must"] - area["must_covered"] + area["should"] - area["should_covered"]
    assert len([gap for gap in told["missing"] if gap["level"] != "may"]) == uncovered


def test_the_missing_rules_are_listed_with_what_they_lack(capsys):
    main(["dev", "requirements", "zcode-config", "--missing"])
    lines = capsys.readouterr().out.splitlines()
    main(["dev", "requirements", "zcode-config", "--format", "json"])
    missing = json.loads(capsys.readouterr().out)["missing"]
    assert f"zcode-config (planned): {len(missing)} not covered" in lines
    assert sum(": no check" in line or ": no variant" in line for line in lines) == len(missing)


@pytest.mark.parametrize("report_format", ["text", "json"])
def test_without_a_source_tree_the_manifest_is_listed_and_the_exit_code_is_3(
    report_format, monkeypatch, tmp_path: Path, capsys
):
    package = tmp_path / "site-packages" / "harness"
    package.mkdir(parents=True)
    monkeypatch.setattr(harness, "__file__", str(package / "__init__.py"))
    assert main(["dev", "requirements", "catalog", "--format", report_format]) == 3
    captured = capsys.readouterr()
    assert "source tree" in captured.err
    assert captured.err.count("\n") == 1
    if report_format == "json":
        assert json.loads(captured.out)["requirements"][0]["id"].startswith("catalog-")
    else:
        assert captured.out.splitlines()[1].split()[0] == "catalog"
