"""Choosing formats and writing reports."""

from __future__ import annotations

import stat
import subprocess
import sys

import pytest

from harness.errors import HarnessFault, UserInputError
from harness.report.formats import FORMATS, Target, check_targets, load_formats, parse_target, write_reports
from scenarios.units.report_events import clean_run, finding, rules, stream


def test_the_formats_are_found_by_themselves():
    assert {"github", "json", "junit", "markdown", "sarif", "text"} <= set(load_formats())
    assert set(FORMATS) == set(load_formats())


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("text", Target("text", None)),
        ("github=-", Target("github", None)),
        ("sarif=out.sarif", Target("sarif", "out.sarif")),
        ("json=a=b.json", Target("json", "a=b.json")),
    ],
)
def test_a_target_is_a_format_with_an_optional_path(text, target):
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["xml", "", "=out", "Text", "text =x"])
def test_an_unknown_format_is_answered_with_the_known_ones(text):
    with pytest.raises(UserInputError, match="github, json, junit, markdown, sarif, text"):
        parse_target(text)


def test_a_target_with_an_empty_path_is_refused():
    with pytest.raises(UserInputError, match="names no file"):
        parse_target("json=")


def test_two_reports_cannot_share_standard_output():
    with pytest.raises(UserInputError, match="text and github would both go to standard output"):
        check_targets([Target("text", None), Target("json", "x.json"), Target("github", None)])


def test_two_reports_cannot_share_a_file_however_it_is_spelled(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "a.out")
    for other in (f"{tmp_path}/./a.out", f"{tmp_path}/link"):
        with pytest.raises(UserInputError, match="would both go to"):
            check_targets([Target("json", f"{tmp_path}/a.out"), Target("sarif", other)])


def test_files_are_written_and_standard_output_is_returned(tmp_path):
    targets = [Target("json", f"{tmp_path}/r.json"), Target("text", None), Target("junit", f"{tmp_path}/r.xml")]
    text = write_reports(clean_run(), targets, rules)
    assert text == FORMATS["text"](clean_run(), rules)
    assert (tmp_path / "r.json").read_text("utf-8") == FORMATS["json"](clean_run(), rules)
    assert (tmp_path / "r.xml").read_text("utf-8") == FORMATS["junit"](clean_run(), rules)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "r.xml"]


def test_nothing_is_returned_when_all_reports_go_to_files(tmp_path):
    assert write_reports(clean_run(), [Target("text", f"{tmp_path}/r.txt")], rules) == ""


def test_a_report_replaces_the_old_one_as_a_whole(tmp_path):
    old = tmp_path / "r.txt"
    old.write_text("old report " * 1000)
    with old.open() as reader:
        write_reports(clean_run(), [Target("text", str(old))], rules)
        assert reader.read() == "old report " * 1000
    assert old.read_text("utf-8") == FORMATS["text"](clean_run(), rules)


def test_a_report_has_the_permissions_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    write_reports(clean_run(), [Target("text", f"{tmp_path}/r.txt")], rules)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1


def test_a_left_over_temporary_file_is_not_touched(tmp_path):
    left_over = tmp_path / ".mcp-harness-0.tmp"
    left_over.write_text("somebody else's")
    write_reports(clean_run(), [Target("text", f"{tmp_path}/r.txt")], rules)
    assert left_over.read_text() == "somebody else's"
    assert (tmp_path / "r.txt").exists()


def test_a_symlink_stays_one_and_its_target_is_written(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real.txt")
    write_reports(clean_run(), [Target("text", f"{tmp_path}/link")], rules)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real.txt").read_text("utf-8").startswith("mcp.json")


def test_a_device_can_be_a_target():
    assert write_reports(clean_run(), [Target("json", "/dev/null")], rules) == ""


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing/r.json", "folder does not exist.*mkdir -p"),
        (".", "this is a folder.*Name a file inside it"),
        ("file/r.json", "folder does not exist"),
        ("x" * 300, "cannot be written"),
        ("a\0b", "cannot be written"),
    ],
)
def test_a_place_that_cannot_be_written_is_told_before_anything_is(tmp_path, path, message):
    (tmp_path / "file").touch()
    targets = [Target("text", f"{tmp_path}/good.txt"), Target("json", f"{tmp_path}/{path}")]
    with pytest.raises(UserInputError, match=message) as caught:
        write_reports(clean_run(), targets, rules)
    assert caught.value.exit_code == 2
    assert caught.value.file == targets[1].path
    if "\0" not in path and len(path) < 255:
        assert not (tmp_path / "good.txt").exists()


@pytest.mark.parametrize("name", ["github", "json", "junit", "markdown", "sarif", "text"])
def test_every_format_ends_with_a_line_break_and_is_the_same_each_time(name):
    load_formats()
    assert FORMATS[name](clean_run(), rules) == FORMATS[name](clean_run(), rules)
    assert FORMATS[name](clean_run(), rules).endswith("\n")


@pytest.mark.parametrize("name", ["github", "json", "junit", "markdown", "sarif", "text"])
def test_lone_surrogates_in_a_message_can_be_written(tmp_path, name):
    events = stream(finding(message="bad \ud800 char"))
    write_reports(events, [Target(name, f"{tmp_path}/out")], rules)
    assert "ud800" in (tmp_path / "out").read_text("utf-8")


@pytest.mark.parametrize("events", [[], clean_run()[1:], clean_run()[:-1]], ids=["empty", "no start", "no end"])
def test_a_stream_without_its_ends_is_the_harness_own_fault(events):
    load_formats()
    with pytest.raises(HarnessFault, match="Started"):
        FORMATS["text"](events, rules)


def test_the_formats_need_no_heavy_library():
    program = (
        "import sys; from harness.report.formats import load_formats; load_formats();"
        "heavy = {'jsonschema', 'pydantic', 'tree_sitter', 'tomlkit', 'xml', 'tempfile', 'asyncio', 'html'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
