"""What a comparison says of the fields of an entry: item by item, and no credential among it."""

from __future__ import annotations

from typing import Any

import pytest

from harness.gate.field_changes import MAXIMUM_ARGUMENT_CHANGES, MAXIMUM_COMPARED_ARGUMENTS, field_changes
from harness.gate.shown_values import HIDDEN, argument_text, cut, may_be_secret, member_text, pair_text, plain
from scenarios.units.gate_run import REMOTE, context_of

NODE = {"type": "stdio", "command": "node"}
VENDOR = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
RANDOM = "q9Zx7Lm2Vt4Kp8Rw1Nd6"


def told(before: Any, after: Any) -> list[str]:
    sides = [context_of({"a": entry}).entries["a"] for entry in (before, after)]
    return list(field_changes(*sides))


def of_args(before: Any, after: Any) -> list[str]:
    return told({**NODE, "args": before}, {**NODE, "args": after})


ARGUMENTS = [
    (["run", "-i", "--rm", "x:1"], ["run", "-i", "--rm", "evil:9"], ["args[3] x:1 -> evil:9"]),
    (["run", "x"], ["run", "--privileged", "x"], ["args[1] added: --privileged"]),
    (["run", "--read-only", "x"], ["run", "x"], ["args[1] removed: --read-only"]),
    (["x"], ["-v", "/:/host", "x"], ["args[0] to [1] added: -v /:/host"]),
    (["a", "b", "c"], ["a", "x", "y", "z", "c"], ["args[1] removed: b", "args[1] to [3] added: x y z"]),
    (["a", "b"], ["b", "a"], ["args[0] a -> b", "args[1] b -> a"]),
    (["a", "b", "c", "d"], ["b", "c", "d", "e"], ["args[0] removed: a", "args[3] added: e"]),
    (["a"], ["b"], ["args[0] a -> b"]),
    (["a", ""], ["a", "b c"], ['args[1] "" -> "b c"']),
    ([1, True], [True, True], ["args[0] 1 -> true"]),
    ([{"x": 1}], [{"x": 2}], ["args[0] changed (what differs is not shown)"]),
    (None, ["x"], ["args[0] added: x"]),
    (["x"], None, ["args[0] removed: x"]),
    (None, [], ["args (absent) -> a list"]),
    ("x", ["x"], ["args x -> a list"]),
]


@pytest.mark.parametrize(("before", "after", "lines"), ARGUMENTS)
def test_arguments_are_compared_one_by_one_with_their_places(before, after, lines):
    one, other = ({**NODE, **({} if args is None else {"args": args})} for args in (before, after))
    assert told(one, other) == lines


@pytest.mark.parametrize(("count", "more"), [(MAXIMUM_ARGUMENT_CHANGES, 0), (MAXIMUM_ARGUMENT_CHANGES + 3, 3)])
def test_many_argument_changes_are_cut_with_their_number(count, more):
    lines = of_args([f"a{n}" for n in range(count)], [f"b{n}" for n in range(count)])
    assert lines[0] == "args[0] a0 -> b0"
    assert lines[MAXIMUM_ARGUMENT_CHANGES:] == ([f"args: {more} more changes"] if more else [])


@pytest.mark.parametrize("count", [MAXIMUM_COMPARED_ARGUMENTS, MAXIMUM_COMPARED_ARGUMENTS + 1])
def test_lists_too_long_for_a_command_line_are_told_by_their_lengths(count):
    lines = of_args(["x"] * count, ["y", *["x"] * (count - 1)])
    is_long = count > MAXIMUM_COMPARED_ARGUMENTS
    assert lines == [f"args differ: {count} of them before, {count} now" if is_long else "args[0] x -> y"]


def test_a_long_run_of_arguments_is_told_in_sentences_that_can_be_read():
    lines = of_args([], [f"--option-number-{n:02}" for n in range(12)])
    assert [line.partition(":")[0] for line in lines] == ["args[0] to [5] added", "args[6] to [11] added"]


TABLES = [
    ("env", {"A": "1"}, {"A": "2"}, ["env A changed: 1 -> 2"]),
    ("env", {}, {"DOCKER_HOST": "tcp://evil:2375"}, ["env DOCKER_HOST added: tcp://evil:2375"]),
    ("env", {"NODE_OPTIONS": "x"}, {}, ["env NODE_OPTIONS removed"]),
    ("env", {"A": "${A}"}, {"A": "${B}"}, ["env A changed: ${A} -> ${B}"]),
    ("env", {"A": "1"}, {"A": 1}, ["env A changed (what differs is not shown)"]),
    ("env", {"A": "1"}, {"A": None}, ["env A changed: 1 -> null"]),
    ("env", {"A": "1", "B": "2"}, {"B": "2", "A": "1"}, ["env: the same ones in another order"]),
    ("env", {"A B": "1"}, {}, ['env "A B" removed']),
    ("env", {"API_KEY": "one"}, {"API_KEY": "two"}, ["env API_KEY changed (value not shown)"]),
    ("env", {}, {"API_KEY": "one"}, ["env API_KEY added (value not shown)"]),
    ("env", {"API_KEY": "one"}, {"API_KEY": "${API_KEY}"}, ["env API_KEY changed: *** -> ${API_KEY}"]),
    ("env", {"A": "1"}, "x", ["env an object -> x"]),
    ("env", None, {}, ["env null -> an object"]),
    ("headers", {"X-Team": "a"}, {}, ["header X-Team removed"]),
    ("headers", {}, {"Authorization": "Bearer ${T}"}, ['header Authorization added: "Bearer ${T}"']),
    ("headers", {}, {"Authorization": "Bearer abc"}, ["header Authorization added (value not shown)"]),
]


@pytest.mark.parametrize(("field", "before", "after", "lines"), TABLES)
def test_variables_and_headers_are_told_one_by_one(field, before, after, lines):
    entry = NODE if field == "env" else REMOTE
    assert told({**entry, field: before}, {**entry, field: after}) == lines


ONE_VALUE: list[tuple[str, Any, Any, str]] = [
    ("command", "node", "evil", "command node -> evil"),
    ("command", "node", None, "command node -> (absent)"),
    ("title", "One", "Two words", 'title One -> "Two words"'),
    ("cwd", "/a", "/b", "cwd /a -> /b"),
    ("startup_timeout_sec", 20, 30, "startup_timeout_sec 20 -> 30"),
    ("startup_timeout_sec", True, 1, "startup_timeout_sec true -> 1"),
    ("disabled", False, True, "disabled false -> true"),
    ("tools", ["a"], ["b"], "tools changed (what differs is not shown)"),
    ("apiKey", "one", "two", "apiKey changed (what differs is not shown)"),
]


@pytest.mark.parametrize(("field", "before", "after", "line"), ONE_VALUE)
def test_every_other_field_that_differs_is_told(field, before, after, line):
    assert told({**NODE, field: before}, {**NODE, field: after}) == [line]


def test_of_two_long_texts_the_part_where_they_begin_to_differ_is_shown():
    head = "x" * 300
    (line,) = told({**NODE, "description": f"{head} is safe"}, {**NODE, "description": f"{head} is evil"})
    assert "safe" in line
    assert "evil" in line
    assert len(line) < 200
    assert pair_text("a" * 300, "a" * 301).count("…") >= 2


SECRET_ARGUMENTS = [
    (["--api-key", "abc"], "--api-key ***"),
    (["--token=abc"], "--token=***"),
    (["--db-pass=abc"], "--db-pass=***"),
    (["API_TOKEN=abc"], "API_TOKEN=***"),
    (["--header", "Authorization: Bearer abc"], '--header "Authorization: ***"'),
    (["-e", "SESSION_COOKIE=abc def"], "-e SESSION_COOKIE=***"),
    ([VENDOR], "***"),
    ([f"prefix-{VENDOR}"], "prefix-***"),
    ([RANDOM], "***"),
    (["https://u:pw@h.example.com/x"], "https://u:***@h.example.com/x"),
    (["https://h.example.com/x?api_key=abc&y=1"], "https://h.example.com/x?api_key=***&y=1"),
    ([f"https://h.example.com/s/{RANDOM}/mcp"], "https://h.example.com/s/***/mcp"),
    (["-c", "TOKEN=abc node x --password foo"], '-c "TOKEN=*** node x --password ***"'),
    (["${KEY:-q9Zx7Lm2Vt4Kp8Rw1Nd6}"], "${KEY:-***}"),
    (["-----BEGIN RSA PRIVATE KEY-----\nabc"], "***"),
    (["--key-file", "/etc/key"], "--key-file /etc/key"),
    (["--api-key", "${API_KEY}"], "--api-key ${API_KEY}"),
    (["--port", "8080"], "--port 8080"),
]


@pytest.mark.parametrize(("args", "shown"), SECRET_ARGUMENTS)
def test_a_credential_among_the_arguments_is_hidden_and_the_rest_is_shown(args, shown):
    line = of_args([], args)[0]
    assert line.partition(" added: ")[2] == shown


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("MODE", "fast", "fast"),
        ("EMPTY_KEY", "", '""'),
        ("ENABLE_AUTH", "true", "true"),
        ("DB_PASS", "hunter2", HIDDEN),
        ("LICENSE", "abc", HIDDEN),
        ("TOKEN", "Bearer ${T}", '"Bearer ${T}"'),
        ("TOKEN", "x${T}", HIDDEN),
        ("TOKEN", "${T:-abc}", HIDDEN),
        ("MODE", "${M:-abc}", "${M:-abc}"),
        ("MODE", RANDOM, HIDDEN),
        ("MODE", f"a {VENDOR}", '"a ***"'),
        ("OPENAPI_MCP_HEADERS", '{"Authorization": "Bearer abc"}', HIDDEN),
        ("DATABASE_URL", "postgres://u:pw@h/db", "postgres://u:***@h/db"),
        ("TOKEN_FILE", "/run/token", "/run/token"),
        ("LIST", ["a"], "a list"),
        ("NUMBER", 3, "3"),
    ],
)
def test_the_value_of_a_variable_is_shown_where_it_is_plainly_harmless(name, value, shown):
    assert member_text(name, value) == shown


def test_a_long_value_is_cut_and_a_url_loses_its_credentials():
    assert cut("x" * 60) == "x" * 60
    assert cut("x" * 61) == f"{'x' * 60}…"
    assert plain("https://x.example.com/mcp?x=1") == "https://x.example.com/mcp?x=1"
    one, other = ({**REMOTE, "url": f"https://x.example.com/mcp?key={value}"} for value in ("one", "two"))
    assert told(one, other) == ["url changed (what differs is not shown)"]


@pytest.mark.parametrize("name", ["API_KEY", "DB_PASS", "sessionCookie", "X-Auth", "GITHUB_PAT", "signature", "DSN"])
def test_a_name_that_may_stand_for_a_credential_hides_its_value(name):
    assert may_be_secret(name)


@pytest.mark.parametrize("name", ["MODE", "KEY_FILE", "TOKEN_ENDPOINT", "AUTH_TYPE", "HOST", "", "keyboard"])
def test_a_name_that_tells_something_else_hides_nothing(name):
    assert not may_be_secret(name)


def test_an_argument_that_is_no_text_is_shown_by_its_kind():
    assert [argument_text(value) for value in (1, None, {"x": "y"})] == ["1", "null", "an object"]
