"""Hostile names and messages break no format and forge no line."""

from __future__ import annotations

import json
import unicodedata
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate.events import Changed, Planned
from harness.gate.model import Change, Need
from harness.report.formats import FORMATS, load_formats
from harness.report.safety import count, display_width, pad, shorten, visible
from scenarios.units.report_events import finding, finished, judgement, place, rules, started, stream

ACTING = ["\n", "\r\n", "\x1b[2J", "\u202e", "\u2066", "\u2028", "\x85", "\x00", "\x07", "\u200b", "\ufeff", "\ud800"]


def run_with(text):
    """A run that shows `text` wherever someone else chooses the words."""
    judged = judgement(text, roots=(text,), needs=(Need("secret", text), Need("declaration", text)))
    found = finding(entry=text, message=text, fix=text, where=place(3, file=text or "x"))
    return [
        started(base=text)._replace(catalog=text or "x"),
        *stream(found, judgements=(judged,))[1:-1],
        Changed(Change("changed", text, (text,), {"codex@1": f"+{text}"})),
        Planned("before", text),
        finished(errors=1),
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ä 漢字 \U0001f600", "plain ä 漢字 \U0001f600"),
        ("a\nb\r\tc", r"a\nb\r\tc"),
        ("\x1b[31m", r"\x1b[31m"),
        ("a\u202eb\u200d", r"a\u202eb\u200d"),
        ("\xa0", r"\xa0"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_what_has_no_glyph_becomes_an_escape(text, shown):
    assert visible(text) == shown
    assert visible(shown) == shown


@pytest.mark.parametrize("name", ["github", "json", "junit", "markdown", "sarif", "text"])
@pytest.mark.parametrize("acting", ACTING)
def test_acting_characters_reach_no_report(name, acting):
    load_formats()
    text = FORMATS[name](run_with(f"before{acting}after"), rules)
    for char in set(acting) - set("[2J"):
        assert char == "\n" or char not in text
    assert "before" in text


@pytest.mark.parametrize("name", ["github", "text"])
def test_a_name_adds_no_line(name):
    load_formats()
    calm, hostile = (FORMATS[name](run_with(text), rules) for text in ("a", "\n"))
    assert len(calm.splitlines()) == len(hostile.splitlines())


@pytest.mark.parametrize("command", ["::error file=x::y", "::add-mask::x", "##[error]x", "##[add-path]/x"])
def test_no_line_of_a_log_is_taken_for_a_command(command):
    load_formats()
    wrapped = "word " * 17 + command + " word" * 30
    for text in (command, wrapped, "x\n" + command):
        for line in FORMATS["text"](run_with(text), rules).splitlines():
            assert not line.lstrip().startswith("::")
            assert "##[" not in line
        last = FORMATS["github"](run_with(text), rules).splitlines()[-1]
        assert last.startswith("FAIL")
        assert "##[" not in last


@given(st.text())
def test_any_text_gives_reports_that_can_be_read(text):
    load_formats()
    events = run_with(text)
    assert json.loads(FORMATS["json"](events, rules))["entries"]
    assert json.loads(FORMATS["sarif"](events, rules))["runs"]
    assert len(ElementTree.fromstring(FORMATS["junit"](events, rules))) == 1  # noqa: S314 - written by ourselves
    for name in ("text", "github", "markdown"):
        for line in FORMATS[name](events, rules).split("\n"):
            assert line.isprintable()


def test_wide_characters_take_two_columns():
    assert display_width("漢字") == 4
    assert display_width("e\u0301") == 1
    assert pad("漢", 4) == "漢  "
    assert unicodedata.east_asian_width("漢") == "W"


@pytest.mark.parametrize(("limit", "result"), [(10, "abcdefghij"), (9, "abc...hij"), (8, "abc...ij")])
def test_long_text_loses_its_middle(limit, result):
    assert shorten("abcdefghij", limit) == result


def test_counts_agree_with_their_nouns():
    assert [count(n, "entry", "entries") for n in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
    assert [count(n, "error") for n in (1, 3)] == ["1 error", "3 errors"]
