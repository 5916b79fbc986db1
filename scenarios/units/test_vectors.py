"""The test vectors: every own case is answered as it expects, and the frame around them can fail."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.cli import main
from harness.vectors.checking import Recorded, answer_problems, check, input_fault
from harness.vectors.loading import (
    case_files,
    load_operations,
    output_validator,
    own_vectors,
    registered,
    table,
)
from harness.vectors.matching import ABSENT, mismatches
from harness.vectors.reading import MAX_LINE_BYTES, Unreadable, Vector, read_vectors
from harness.vectors.registry import OPERATIONS, Operation

BROKEN_MODULES = load_operations()
READS = own_vectors()
VECTORS = [read for read in READS if isinstance(read, Vector)]


@pytest.mark.parametrize(
    "vector",
    [
        pytest.param(
            vector,
            id=f"{vector.op}: {vector.case}",
            marks=pytest.mark.requirement(*registered()[vector.op].requirements),
        )
        for vector in VECTORS
        if vector.op in registered()
    ],
)
def test_a_vector_is_answered_as_it_expects(vector):
    assert input_fault(vector) == ""
    assert answer_problems(vector) == ()
    answer = registered()[vector.op].answer(json.loads(json.dumps(vector.input)))
    assert [error.message for error in output_validator(vector.op).iter_errors(answer)] == []


def test_every_operation_module_can_be_imported():
    assert BROKEN_MODULES == ()


def test_the_table_and_the_registered_operations_name_the_same():
    assert set(registered()) == set(table())


def test_every_operation_has_a_case_and_stands_in_the_file_of_its_area():
    cases = Counter(vector.op for vector in VECTORS)
    assert [name for name in table() if not cases[name]] == []
    assert [v for v in VECTORS if v.file != f"{v.op.partition('.')[0]}.jsonl"] == []


def test_no_case_stands_twice_and_every_line_can_be_read():
    assert [read for read in READS if isinstance(read, Unreadable)] == []
    cases = Counter((vector.op, vector.case) for vector in VECTORS)
    assert [case for case, times in cases.items() if times > 1] == []


SAME: list[tuple[Any, Any]] = [
    (1, 1.0),
    (10**30, 10**30),
    (None, None),
    ("a", "a"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ([], []),
    ({}, {}),
]
DIFFERENT = [
    (1, True),
    (0, False),
    (1, "1"),
    (None, False),
    (None, 0),
    ("", None),
    (1, 2),
    ("e\u0301", "\u00e9"),
    ([1], [1, 1]),
    ([1, 2], [2, 1]),
    ([], {}),
    ({}, []),
    ([], None),
    ({"a": None}, {}),
    ({"a": [{"b": 1}]}, {"a": [{"b": True}]}),
]


@pytest.mark.parametrize(("expected", "got"), SAME)
@pytest.mark.parametrize("subset", [True, False])
def test_equal_answers_match_by_either_rule(expected, got, subset):
    assert list(mismatches(expected, got, subset=subset)) == []


@pytest.mark.parametrize(("expected", "got"), DIFFERENT)
@pytest.mark.parametrize("subset", [True, False])
def test_different_answers_match_by_neither_rule(expected, got, subset):
    assert list(mismatches(expected, got, subset=subset)) != []


@pytest.mark.parametrize(
    ("expected", "got"),
    [({}, {"a": 1}), ({"a": {}}, {"a": {"b": 1}, "c": 2}), ([{"a": 1}], [{"a": 1, "b": None}])],
)
def test_a_subset_ignores_other_keys_at_every_depth_and_an_exact_match_does_not(expected, got):
    assert list(mismatches(expected, got, subset=True)) == []
    assert list(mismatches(expected, got, subset=False)) != []


def test_an_array_keeps_its_length_in_a_subset():
    assert list(mismatches([{}], [{}, {}], subset=True)) != []


def test_a_mismatch_names_its_place_and_both_values():
    assert list(mismatches({"a/b": [1, {"c": 2}]}, {"a/b": [1, {}]}, subset=False)) == [("/a~1b/1/c", 2, ABSENT)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_whatever_is_written_as_json_matches_itself(value):
    assert list(mismatches(value, json.loads(json.dumps(value)), subset=False)) == []


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_vectors_or_named_as_unreadable(content):
    reads = list(read_vectors("any", content))
    assert all(isinstance(read, (Vector, Unreadable)) for read in reads)
    assert len(reads) == sum(bool(line.strip()) for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"))


def line(**members) -> bytes:
    return json.dumps({"op": "x.y", "case": "c", "input": {}, "expected": None, **members}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"1",
        b'{"op":"x.y","op":"x.z","case":"c","input":{},"expected":1}',
        b'{"op":"x.y","case":"c","input":{"a":1,"a":2},"expected":1}',
        b'{"op":"x.y","case":"c","input":{"a":NaN},"expected":1}',
        b'{"op":"x.y","case":"c","input":{"a":-Infinity},"expected":1}',
        b'{"op":"x.y","case":"c","input":{}}',
        b'{"op":"x.y","case":"c","input":{},"expected":"\xff"}',
        b'{"op":"x.y","case":"c","input":' + b"[" * 100_000 + b"]" * 100_000 + b',"expected":1}',
        line(match="loose"),
        line(match=None),
        line(note="n"),
        line(op=1),
        line(case=None),
        b" " * MAX_LINE_BYTES + line(),
    ],
)
def test_a_line_that_is_no_vector_is_named_with_its_number(content):
    (read,) = read_vectors("f", b"\n\r\n" + content + b"\n")
    assert isinstance(read, Unreadable)
    assert (read.file, read.line) == ("f", 3)
    assert "\n" not in read.why


def test_numbers_keep_their_spelling_and_texts_their_line_separators():
    (read,) = read_vectors(
        "f", b'{"op":"x.y","case":"\xe2\x80\xa8","input":[60.0,60,1e2,' + b"9" * 400 + b'],"expected":{}}'
    )
    assert isinstance(read, Vector)
    assert [type(number) for number in read.input] == [float, int, float, int]
    assert read.input[3] == 10**400 - 1
    assert read.case == "\u2028"
    assert not read.subset


def test_a_byte_order_mark_and_carriage_returns_are_no_fault():
    reads = list(read_vectors("f", b"\xef\xbb\xbf" + line() + b"\r\n" + line(match="subset") + b"\r\n"))
    assert [(type(read), getattr(read, "subset", None)) for read in reads] == [
        (Vector, False),
        (Vector, True),
    ]


ECHO_SCHEMA = {
    "type": "object",
    "properties": {"say": {}},
    "required": ["say"],
    "additionalProperties": False,
}


def say(question):
    """Answers with what it was asked, or raises where it was asked nothing."""
    if question["say"] is None:
        raise ZeroDivisionError("nothing\nto say")
    question["say"], answer = "changed", question["say"]
    return answer


@pytest.fixture
def echo(monkeypatch):
    """One operation `test.say` that stands in the registry and the table."""
    shape = next(iter(table().values()))._replace(name="test.say", input=ECHO_SCHEMA, output={})
    monkeypatch.setitem(OPERATIONS, "test.say", Operation("test.say", (), say))
    monkeypatch.setitem(table(), "test.say", shape)


def echo_line(value, expected, *, op="test.say", case="c", **members) -> str:
    return json.dumps({"op": op, "case": case, "input": {"say": value}, "expected": expected, **members}) + "\n"


@pytest.mark.usefixtures("echo")
def test_a_check_prints_each_mismatch_and_a_total_for_each_operation(tmp_path, capsys):
    file = tmp_path / "v.jsonl"
    file.write_text(echo_line({"a": 1}, {"a": True}, case="bad") + echo_line(1, 1) + echo_line(None, 1, case="raises"))
    assert main(["dev", "vectors", "check", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{file}:1: test.say: bad: /a: expected true, got 1",
        f"{file}:3: test.say: raises: no answer: ZeroDivisionError: nothing to say",
        "  test.say                                 1 passed, 2 failed",
        "FAIL  1 passed, 2 failed, 0 unreadable, 0 of an unknown operation; exit 1",
    ]


@pytest.mark.usefixtures("echo")
def test_unreadable_lines_and_unknown_operations_are_apart_from_failures_and_exit_2(tmp_path, capsys):
    file = tmp_path / "v.jsonl"
    file.write_text(
        echo_line(1, 1) + "{\n" + echo_line(1, 1, op="no.such") + '{"op":"test.say","case":"c","input":{},"expected":1}'
    )
    assert main(["dev", "vectors", "check", str(file), "--format", "json"]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out) == {
        "passed": 1,
        "failed": 0,
        "unknown_op": 1,
        "unreadable": 2,
        "by_op": {"test.say": {"passed": 1, "failed": 0}},
    }
    named = captured.err.splitlines()
    assert [text.removeprefix(f"{file}:")[:13] for text in named] == [
        "2: unreadable",
        "4: unreadable",
        "3: unknown op",
    ]
    assert "does not fit the operation" in named[1]


@pytest.mark.usefixtures("echo")
def test_an_unreadable_line_beside_a_mismatch_exits_2():
    reads = list(read_vectors("f", (echo_line(1, 2) + "{").encode()))
    assert check(reads).exit_code == 2
    assert check(reads[:1]).exit_code == 1


@pytest.mark.usefixtures("echo")
def test_a_glob_leaves_other_operations_out_but_a_check_of_nothing_is_refused(tmp_path, capsys):
    file = tmp_path / "v.jsonl"
    file.write_text(echo_line(1, 1) + echo_line(1, 1, op="no.such"))
    assert main(["dev", "vectors", "check", str(file), "--op", "test.*"]) == 0
    assert main(["dev", "vectors", "check", str(file), "--op", "other.*"]) == 2
    assert "hold no vector of an operation other.*" in capsys.readouterr().err
    file.write_text("\n")
    assert main(["dev", "vectors", "check", str(file)]) == 2


@pytest.mark.usefixtures("echo")
def test_junit_has_a_suite_for_each_operation_and_survives_characters_that_xml_cannot_hold(tmp_path, capsys):
    from xml.etree import ElementTree

    file = tmp_path / "v.jsonl"
    file.write_text(echo_line("\u0000<", "\ud800", case="\u0001 & co") + echo_line(1, 1) + "{\n")
    assert main(["dev", "vectors", "check", str(file), "--format", "junit"]) == 2
    suites = ElementTree.fromstring(capsys.readouterr().out)  # noqa: S314 - our own output
    assert dict(suites.attrib) == {"tests": "3", "failures": "1", "errors": "1"}
    assert [(suite.get("name"), len(suite)) for suite in suites] == [("test.say", 2), ("not answered", 1)]
    assert suites[0][0].get("name") == "\\u0001 & co"


def test_a_missing_file_is_unusable_input_in_one_line(tmp_path, capsys):
    assert main(["dev", "vectors", "check", str(tmp_path / "none.jsonl")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_the_list_tells_the_schemas_and_requirements_of_every_operation(capsys):
    assert main(["dev", "vectors", "list", "--format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)["operations"]
    assert [operation["name"] for operation in listed] == sorted(table())
    members = {"name", "decides", "areas", "input", "output", "requirements"}
    assert all(set(operation) == members for operation in listed)
    assert main(["dev", "vectors", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [name for name in table() if name not in lines] == []


def test_the_exported_vectors_are_the_own_ones_and_pass_a_check(tmp_path, capsys):
    assert main(["dev", "vectors", "export", str(tmp_path / "new" / "folder")]) == 0
    written = [line for line in capsys.readouterr().out.splitlines() if line.endswith(".jsonl")]
    assert len(written) == len(case_files()) > 0
    assert (tmp_path / "new" / "folder" / "OPS.toml").read_text(encoding="utf-8").count("[[op]]") == len(table())
    assert main(["dev", "vectors", "check", *written]) == 0


def test_an_export_onto_a_file_is_unusable_input(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["dev", "vectors", "export", str(tmp_path / "file")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_only_ordinary_errors_of_an_operation_are_recorded():
    with Recorded() as recorded:
        raise ValueError("x")
    assert isinstance(recorded.raised, ValueError)
    with pytest.raises(KeyboardInterrupt), Recorded():
        raise KeyboardInterrupt


def test_a_number_beyond_the_range_of_floats_is_still_compared():
    assert list(mismatches(math.inf, 10**400, subset=False)) != []
