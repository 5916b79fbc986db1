"""The folders and numbers that commands are given: looked at before anything long begins."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.keeping import keep, require_new, try_folder
from harness.cli.numbers import check_number
from harness.errors import UserInputError
from harness.inputs.files import display_path, is_there


def test_a_folder_is_tried_and_nothing_of_that_is_left(tmp_path):
    try_folder(tmp_path / "a" / "b", "--save")
    try_folder(tmp_path, "--save")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_stays_as_it_is(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_text("x")
    try_folder(tmp_path / "here", "--save")
    assert [each.name for each in (tmp_path / "here").iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["file", "file/below", "pipe\0", "x" * 5_000])
def test_a_place_where_nothing_can_be_kept_is_one_line_that_names_the_option(tmp_path, name):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserInputError) as caught:
        try_folder(tmp_path / name, "--keep")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith("Name another folder with --keep.")
    assert ("is a file, not a folder" in str(caught.value)) == name.startswith("file")


def test_a_folder_that_must_not_be_looked_into_is_refused(tmp_path, monkeypatch):
    def forbidden(_self: Path, **_options: object) -> object:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "stat", forbidden)
    with pytest.raises(UserInputError, match=r"Permission denied. Name another folder with --keep\."):
        require_new(tmp_path / "a", "--keep")
    with pytest.raises(UserInputError, match="Permission denied"):
        try_folder(tmp_path / "a", "--keep")
    assert not is_there(tmp_path)


def test_what_is_there_already_is_not_written_over(tmp_path):
    with pytest.raises(UserInputError, match="is there already"):
        require_new(tmp_path, "--keep")
    require_new(tmp_path / "new", "--keep")


def test_a_file_with_a_name_that_no_system_takes_is_refused(tmp_path):
    for name in ("x" * 5_000, "a\0b"):
        with pytest.raises(UserInputError, match="cannot be written"):
            keep(tmp_path / name, "text", "--save")


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("nan"), 61.0])
def test_a_number_outside_its_bounds_is_refused(value):
    with pytest.raises(UserInputError, match=r"--minutes is .*Give a number above 0 up to 60\."):
        check_number(value, "--minutes", most=60, above=True)


def test_a_number_within_its_bounds_and_none_are_taken():
    for value in (None, 1, 60, 0.5):
        check_number(value, "--minutes", most=60, above=True)
    check_number(0, "--seed", most=5)
    with pytest.raises(UserInputError, match=r"--seed is 10000000000000000000\.\.\.\. Give a number from 0 to 1,000\."):
        check_number(10**4_000, "--seed", most=1_000)


def test_a_path_is_told_as_it_was_typed_or_from_where_one_is(tmp_path, monkeypatch):
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    told = {
        "..": "..", "../x/../y": "../x/../y", "/dev/null": "/dev/null", str(tmp_path): str(tmp_path),
        str(tmp_path / "a" / "x.toml"): "../x.toml", str(tmp_path / "a" / "b" / "x"): "x", "./x": "x",
    }  # fmt: skip
    assert {each: display_path(Path(each)) for each in told} == told


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("gate", "mcp.json", "--runtime", "codex@9.9.9"), 3),
        (("run", "702", "--runtime", "codex@9.9.9"), 3),
        (("canary", "claude", "--against", "codex@9.9.9"), 3),
        (("gate", "mcp.json", "--runtime", "cobra@1"), 2),
        (("run", "702", "--runtime", "cobra@1"), 2),
        (("canary", "claude", "--against", "cobra@1"), 2),
    ],
)
def test_a_version_without_a_profile_is_missing_and_what_is_no_runtime_is_a_mistake(
    arguments, code, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    Path("mcp.json").write_text("{}", encoding="utf-8")
    assert main(list(arguments)) == code
    error = capsys.readouterr().err
    assert "unknown runtime" in error
    assert error.count("\n") == 1


def test_one_line_stays_one_line_of_a_length_that_can_be_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", f"{'x' * 200}/{'y' * 5_000}\x1b[31m.toml"]) == 2
    error = capsys.readouterr().err
    assert len(error) < 1_100
    assert "\x1b" not in error
    assert error.endswith("Check the path and its permissions.\n")


def test_names_and_numbers_of_variants_are_looked_at_before_any_process_is_started(monkeypatch, capsys):
    def no_process(*_: object, **__: object) -> object:
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen", no_process)
    cases = [
        (("no_such_variant*", "--jobs", "40"), "no known-bad variant is named no_such_variant*"),
        (("--jobs", "300"), "--jobs is 300. Give a number from 1 to 64."),
        (("--jobs", "9" * 5_000), "must be a whole number from 1"),
        (("--shard", f"1/{'9' * 5_000}"), "must be I/N with I from 1 to N"),
    ]
    for arguments, words in cases:
        assert main(["dev", "variants", *arguments]) == 2, arguments
        assert words in capsys.readouterr().err
