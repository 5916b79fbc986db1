"""Annotations: what the runner of GitHub Actions reads from the lines."""

from __future__ import annotations

import re

import pytest

from harness.gate.events import Started
from harness.gate.model import Allowance, Place, Severity
from harness.report.formats import FORMATS, load_formats
from harness.report.github import SHOWN_A_LEVEL
from scenarios.units.report_events import clean_run, finding, pull_request_run, rules, stream


def read(text):
    """What the runner makes of the output: (level, properties, message) of each command, then plain lines."""
    commands, others = [], []
    for line in text.splitlines():
        match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
        if match is None:
            others.append(line)
            continue
        properties = dict(part.split("=", 1) for part in match[2].split(","))
        commands.append(
            (match[1], {name: decode(value, "%3A%2C") for name, value in properties.items()}, decode(match[3]))
        )
    return commands, others


def decode(text, more=""):
    codes = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}
    for code, char in codes.items():
        if code in "%0D%0A" + more:
            text = text.replace(code, char)
    return text.replace("%25", "%")


def render(*findings):
    load_formats()
    return read(FORMATS["github"](stream(*findings), rules))


def test_each_finding_is_annotated_where_it_stands():
    commands, others = render(finding(fix="write x"))
    place = {"file": "mcp.json", "line": "48", "endLine": "48", "col": "7", "endColumn": "17"}
    title = {"title": "MH203 a type that the schema does not know"}
    assert commands == [("error", place | title, "acme-search: the runtime refuses the entry. Fix: write x")]
    assert others[-1].startswith("FAIL  1 error")


def test_a_finding_over_several_lines_has_no_columns():
    ((_, properties, _),), _ = render(finding(where=Place("./mcp.json", 3, 5, 9, 2, "")))
    assert {"file": "mcp.json", "line": "3", "endLine": "9"}.items() <= properties.items()
    assert not {"col", "endColumn"} & set(properties)


@pytest.mark.parametrize("hostile", ["100% : , done", "%0A::error::x", "%25", "a::b", "a,b:c", "::stop-commands::x"])
def test_messages_and_places_survive_the_runner_as_they_are(hostile):
    hurt = finding(message=hostile, where=Place(hostile, 1, 1, 1, 2, ""), rule="MH9")
    ((level, properties, message),), others = render(hurt)
    assert (level, properties["file"], message) == ("error", hostile, f"acme-search: {hostile}")
    assert len(others) == 1


def test_line_breaks_cannot_start_another_command():
    hurt = finding(message="x\n::error file=a::forged\r\n##[error]y", entry="a\nb")
    text = FORMATS["github"](stream(hurt), rules)
    assert len(text.splitlines()) == 2
    assert r"a\nb: x\n::error" in text


def test_levels_follow_severity_and_an_allowed_error_is_a_notice():
    allowed = finding("MH8", allowance=Allowance("mcp-harness.toml:4", "known", None))
    commands, _ = render(finding("MH3", Severity.NOTE), allowed, finding("MH2", Severity.WARNING), finding())
    assert [level for level, _, _ in commands] == ["error", "warning", "notice", "notice"]
    assert commands[-1][2].startswith("allowed by mcp-harness.toml:4 (known): acme-search")


def test_ten_of_a_level_need_no_closing_notice():
    commands, _ = render(*(finding(entry=f"e{n}") for n in range(SHOWN_A_LEVEL)))
    assert len(commands) == SHOWN_A_LEVEL
    assert "not annotated" not in commands[-1][2]


def test_what_the_service_would_drop_is_counted_in_a_last_notice():
    errors = [finding(entry=f"e{n}") for n in range(25)]
    notes = [finding("MH3", Severity.NOTE, entry=f"n{n}") for n in range(30)]
    commands, _ = render(*errors, finding("MH2", Severity.WARNING), *notes)
    levels = [level for level, _, _ in commands]
    assert [levels.count(level) for level in ("error", "warning", "notice")] == [10, 1, 10]
    assert [message[:3] for _, _, message in commands[:10]] == [f"e{n}:" for n in range(10)]
    assert commands[-1][2].startswith("36 more findings not annotated here")
    assert "25 errors, 1 warning, 30 notes, 0 allowed" in commands[-1][2]


@pytest.mark.parametrize(("notes", "shown"), [(3, 4), (9, 10), (10, 10), (30, 10)])
def test_what_is_not_right_about_the_base_is_a_notice_that_is_never_the_one_too_many(notes, shown):
    load_formats()
    first, *rest = stream(*(finding(severity=Severity.NOTE, entry=f"e{n}") for n in range(notes)))
    assert isinstance(first, Started)
    text = FORMATS["github"]([first._replace(base="main@1", caution="compared with the tip"), *rest], rules)
    commands, _ = read(text)
    assert commands[0] == ("notice", {"title": "mcp-harness gate"}, "Compared with the tip.")
    assert len(commands) == shown
    assert commands[-1][2].startswith(f"{notes - 8} more findings") == (notes > 9)


def test_both_fixed_runs_end_with_the_verdict():
    for run, verdict in ((clean_run(), "PASS"), (pull_request_run(), "FAIL")):
        assert FORMATS["github"](run, rules).splitlines()[-1].startswith(verdict)
