"""The JSON reader that remembers places: every refusal is one typed error with its place."""

from __future__ import annotations

import json

import pytest

from harness.errors import UserInputError
from harness.inputs import document as reader
from harness.inputs.document import Document, Position, pointer_parts, pointer_text
from harness.inputs.limits import MAXIMUM_DEPTH, MAXIMUM_FILE_BYTES, MAXIMUM_NUMBER_CHARACTERS

TEXT = '{\n  "a": {"b": [1, "x"]},\r\n  "é": {"c": "ü", "d": null},\n  "a": 3\n}'


def parsed(text: str) -> Document:
    return Document.parse("mcp.json", text.encode())


def refusal(content: bytes) -> UserInputError:
    with pytest.raises(UserInputError) as caught:
        Document.parse("mcp.json", content)
    assert caught.value.exit_code == 2
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("mcp.json")
    return caught.value


def test_a_member_is_found_by_its_pointer_with_line_and_column_in_code_points():
    document = parsed(TEXT)
    assert document.position(document.span_of(("a",)).start) == Position(4, 3)
    assert document.position(document.span_of(("é", "d")).start) == Position(3, 19)
    assert document.position(document.find(("é", "c")).value.start) == Position(3, 14)


def test_what_a_dropped_occurrence_holds_is_not_found():
    document = parsed('{"a": {"b": 1}, "a": {"c": 2}}')
    assert document.find(("a", "c")).pointer == ("a", "c")
    assert document.find(("a", "b")).value == document.find(("a",)).value


def test_a_list_item_is_placed_at_its_value():
    document = parsed('{"a": [10, 20]}')
    member = document.find(("a", 1))
    assert document.text[slice(*member.value)] == "20"
    assert member.key is None


def test_a_pointer_that_the_text_lacks_leads_to_the_nearest_value_above():
    document = parsed('{"a": {"b": 1}}')
    assert document.find(("a", "missing", 3)).pointer == ("a",)
    assert document.find(("nobody",)).pointer == ()


def test_a_key_written_three_times_gives_two_dropped_occurrences_and_the_last_one_counts():
    document = parsed('{"a": 1, "a": 2, "b": {"x": 1, "x": 2}, "a": 3}')
    shown = [
        (pointer_text(old.pointer), document.text[slice(*old.value)], document.text[slice(*new.value)])
        for old, new in document.duplicates
    ]
    assert sorted(shown) == [("/a", "1", "3"), ("/a", "2", "3"), ("/b/x", "1", "2")]
    assert document.tree == {"a": 3, "b": {"x": 2}}


def test_pointers_escape_tilde_and_slash():
    assert pointer_text(("a/b", "c~d", 0)) == "/a~1b/c~0d/0"
    assert pointer_parts("/a~1b/c~0d/0") == ("a/b", "c~d", "0")


def test_a_byte_order_mark_is_remembered_and_does_not_shift_columns():
    document = Document.parse("mcp.json", b'\xef\xbb\xbf{"a": 1}')
    assert document.has_byte_order_mark
    assert document.position(document.span_of(("a",)).start) == Position(1, 2)
    assert not parsed('{"a": 1}').has_byte_order_mark


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"", None, "empty"),
        (b" \n\t", None, "empty"),
        (b"\xef\xbb\xbf", None, "empty"),
        (b'{"a": 1,}', 1, "not JSON"),
        (b'{"a": 1\n "b": 2}', 2, "not JSON"),
        (b'{\n<<<<<<< HEAD\n"a": 1}', 2, "This line is a marker of a merge conflict: resolve it first."),
        (b'{"a": 1,\n=======\n"b": 2}', 2, "merge conflict"),
        (b'{"a": NaN}', None, "NaN is no JSON value"),
        (b'{"a": -Infinity}', None, "-Infinity is no JSON value"),
        (b'{"a": 1e999}', None, "too large"),
        (b'{"a": "\xff"}', 1, "not UTF-8"),
        (b'{\n"a": "\xff"}', 2, "not UTF-8"),
        (b'{"a": "\\ud800"}', None, "lone surrogate"),
        (b'{"\\udfff": 1}', None, "lone surrogate"),
        (b"// no\n{}", 1, "not JSON"),
        (b"no json at all", 1, "not JSON"),
        (b'{"a": "tab\tinside"}', 1, "not JSON"),
    ],
)
def test_unusable_content_is_one_line_with_its_place(content, line, words):
    error = refusal(content)
    assert words in str(error)
    assert error.line == line


def test_a_surrogate_pair_is_a_character():
    assert parsed('{"a": "\\ud83d\\ude00"}').tree == {"a": "😀"}


def test_nesting_up_to_the_limit_is_read_and_one_level_more_is_refused():
    assert parsed("[" * MAXIMUM_DEPTH + "]" * MAXIMUM_DEPTH).tree
    error = refusal(b"[" * (MAXIMUM_DEPTH + 1) + b"]" * (MAXIMUM_DEPTH + 1))
    assert (error.line, error.column) == (1, MAXIMUM_DEPTH + 1)
    assert refusal(b'{"a":' * 100_000)


def test_brackets_inside_strings_are_no_nesting():
    assert parsed(json.dumps({"a": "[" * 500 + '\\"{'})).tree


def test_a_number_up_to_the_limit_is_read_and_one_digit_more_is_refused():
    assert parsed('{"a": ' + "9" * MAXIMUM_NUMBER_CHARACTERS + "}").tree
    refusal(b'{"a": ' + b"9" * (MAXIMUM_NUMBER_CHARACTERS + 1) + b"}")


def test_a_file_up_to_the_limit_is_read_and_one_byte_more_is_refused(monkeypatch):
    monkeypatch.setattr(reader, "MAXIMUM_FILE_BYTES", 20)
    assert Document.parse("mcp.json", b"{" + b" " * 18 + b"}").tree == {}
    assert "more than the limit of 20 bytes" in str(refusal(b"{" + b" " * 19 + b"}"))
    assert MAXIMUM_FILE_BYTES == 8 * 1024 * 1024
