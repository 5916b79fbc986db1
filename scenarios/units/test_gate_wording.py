"""What the gate's rules share: edits that keep a document valid, did-you-mean, and words that show no secret."""

from __future__ import annotations

import json

import pytest

from harness.gate.edits import applied, insert_first, remove_later, rename_key, set_value
from harness.gate.nearness import MAXIMUM_CANDIDATES, did_you_mean, near_misses, one_edit_apart
from harness.gate.rules.secrets import SUGGESTIONS
from harness.gate.wording import LISTED, SHOWN_CHARACTERS, joined, placeholder_shown, shown
from harness.inputs.document import Document
from scenarios.units.gate_fixture import findings


def document(text):
    return Document.parse("x.json", text.encode("utf-8"))


def test_edits_change_their_member_and_nothing_else():
    text = '{\n  "é": {"a": 1 , "b": [2, 3]},\n  "c": {}\n}'
    read = document(text)
    assert applied(text, set_value(read, ("é", "b", 1), "x")) == text.replace("3", '"x"')
    assert applied(text, rename_key(read, ("é", "a"), "z")) == text.replace('"a"', '"z"')
    assert applied(text, remove_later(read, read.find(("é", "b")))) == text.replace(' , "b": [2, 3]', "")
    assert applied(text, insert_first(read, (), "k", 1)) == text.replace("{\n", '{\n  "k": 1,\n', 1)
    assert applied(text, insert_first(read, ("c",), "k", 1)) == text.replace("{}", '{"k": 1}')


def test_what_the_text_does_not_hold_gets_no_edit():
    read = document('{"a": {"b": 1}}')
    assert set_value(read, ("a", "z"), 1) == ()
    assert rename_key(read, ("a", "z"), "y") == ()
    assert remove_later(read, read.find(("a", "b"))) == ()


def test_several_edits_are_made_from_the_end():
    text = '{"a": 1, "b": 2}'
    read = document(text)
    edits = (*set_value(read, ("a",), "long text"), *set_value(read, ("b",), None))
    assert json.loads(applied(text, edits)) == {"a": "long text", "b": None}


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("abc", "abc", False),
        ("abc", "abd", True),
        ("abc", "ab", True),
        ("abc", "xabc", True),
        ("abcd", "abdc", True),
        ("abcd", "bacd", True),
        ("abcd", "badc", False),
        ("abc", "abcde", False),
        ("abcd", "abyz", False),
    ],
)
def test_one_slip_of_the_finger(one, other, apart):
    assert one_edit_apart(one, other) is apart
    assert one_edit_apart(other, one) is apart


def test_near_misses_name_each_pair_once():
    names = ["ACME_TOKEN", "ACME_TOKEM", "ACME_TOKEN_", "SLACK_TOKEN"]
    assert list(near_misses(names)) == [("ACME_TOKEM", "ACME_TOKEN"), ("ACME_TOKEN", "ACME_TOKEN_")]


def test_among_very_many_names_only_those_of_the_same_beginning_are_compared():
    few = [f"OTHER_{number:05d}" for number in range(MAXIMUM_CANDIDATES - 1)]
    assert did_you_mean("ZACME_TOKEN", [*few, "ACME_TOKEN"]) == "ACME_TOKEN"
    assert did_you_mean("ZACME_TOKEN", [*few, "MORE", "ACME_TOKEN"]) is None
    assert did_you_mean("ACME_TOKEN_", [*few, "MORE", "ACME_TOKEN"]) == "ACME_TOKEN"


def test_so_many_unknown_variables_get_a_suggestion():
    names = [f"{chr(65 + number // 26)}{chr(65 + number % 26)}_ACME_SECRET" for number in range(SUGGESTIONS + 1)]
    entries = {f"s{number}": {"env": {"K": f"${{{name}}}"}} for number, name in enumerate(names)}
    messages = [found.message for found in findings(json.dumps(entries), {"MH310"}, names={"ACME_SECRET"})]
    assert ["Did you mean" in message for message in messages] == [True] * SUGGESTIONS + [False]


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (1, "0"), (2, "0 and 1"), (LISTED, "0, 1, 2, 3 and 4"), (LISTED + 1, "0, 1, 2, 3, 4 and 1 more")],
)
def test_a_list_of_names_stays_short(count, text):
    assert joined(str(number) for number in range(count)) == text


def test_only_short_flat_values_are_shown():
    assert shown("x" * (SHOWN_CHARACTERS - 2)) == f'"{"x" * (SHOWN_CHARACTERS - 2)}"'
    assert shown("x" * (SHOWN_CHARACTERS - 1)) == "a text"
    assert [shown(value) for value in (True, 1.5, None)] == ["true", "1.5", "null"]
    assert (shown({}), shown([1])) == ("an object", "a list")


@pytest.mark.parametrize(
    ("braced", "text"),
    [
        ("${lower}", "${lower}"),
        ("${V:?say it}", "${V:?…}"),
        ("${V-d}", "${V-…}"),
        ("${ V }", "${…}"),
        ("${env:V}", "${env:V}"),
        ("${" + "v" * SHOWN_CHARACTERS + "}", "${…}"),
        ("${" + "v" * (SHOWN_CHARACTERS + 1) + ":-d}", "${…}"),
    ],
)
def test_of_a_placeholder_only_the_name_is_shown(braced, text):
    assert placeholder_shown(braced) == text
