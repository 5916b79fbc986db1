"""The battery's parts: who sits with whom, what counts as named, which forms of a marker are hunted."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

import pytest

from fake_runtimes.loaded import LoadedServer
from harness.gate.battery.course import Trouble
from harness.gate.battery.hits import whom
from harness.gate.battery.judging import Hurt, Reference
from harness.gate.battery.kinds import KINDS
from harness.gate.battery.observing import in_base64, marker_forms, named_failures
from harness.gate.battery.parties import Neighbourhood, plain_name, same_server, shape_of, transport_held, transport_of
from scenarios.units.battery_run import LOCAL, PACKAGE, REMOTE, tried
from scenarios.units.gate_fixture import rule_findings
from scenarios.units.gate_run import context_of

if TYPE_CHECKING:
    from harness.gate.battery.sessions import Session


def everybody(_name: str) -> bool:
    return True


def local(number: int) -> dict[str, object]:
    return {**LOCAL, "command": f"/opt/tools/{number}"}


def test_every_entry_sits_in_some_pair():
    tree = {f"{letter}{letter}": local(number) for number, letter in enumerate("abcdefg")}
    around = Neighbourhood(tree)
    pairs = {frozenset((name, partner)) for name in tree for partner in around.partners(name, everybody)}
    assert {name for pair in pairs for name in pair} == set(tree)
    assert len(pairs) == len(tree)


def test_entries_that_share_a_package_sit_together():
    tree = {"one": PACKAGE, "far": local(1), "away": local(2), "two": {**PACKAGE, "args": ["-y", "pkg@2.0.0"]}}
    assert "two" in Neighbourhood(tree).partners("one", everybody)
    assert "one" in Neighbourhood(tree).partners("two", everybody)


@pytest.mark.parametrize(("one", "other"), [("my-tool", "my.tool"), ("my-tool", "MyTool"), ("tool-1", "tool-2")])
def test_entries_whose_names_read_alike_sit_together(one, other):
    tree = {one: local(1), "far": local(2), "away": local(3), other: local(4)}
    assert other in Neighbourhood(tree).partners(one, everybody)


def test_nobody_sits_with_who_may_not():
    tree = {"one": local(1), "two": local(2), "three": local(3)}
    assert Neighbourhood(tree).partners("one", lambda name: name != "two") == ("three",)


def test_two_entries_of_one_address_are_one_server_and_no_pair():
    assert same_server(REMOTE, dict(REMOTE))
    assert not same_server(REMOTE, {**REMOTE, "url": f"{REMOTE['url']}?group=a"})
    assert not same_server(PACKAGE, dict(PACKAGE))
    assert Neighbourhood({"one": REMOTE, "two": dict(REMOTE)}).partners("one", everybody) == ()


def test_entries_of_one_shape_differ_in_names_and_addresses_alone():
    assert shape_of("one", REMOTE) == shape_of("two", {**REMOTE, "url": "https://other.example.com/mcp"})
    others = [
        {**REMOTE, "headers": {"Authorization": "Bearer ${A}"}},
        {**REMOTE, "headers": {"X-Key": "${A}"}},
        {**REMOTE, "startup_timeout_sec": 20},
        LOCAL,
        PACKAGE,
        {**PACKAGE, "env": {"A": "${A}"}},
    ]
    shapes = [shape_of("one", entry) for entry in (REMOTE, *others)]
    assert len(set(shapes)) == len(shapes)
    assert shape_of("a b", REMOTE) != shape_of("a-b", REMOTE)


def test_plain_entries_take_names_that_are_free():
    assert plain_name("stdio", {"plain-stdio", "plain-stdio-x"}) == "plain-stdio-x-x"


def test_transports_are_told_by_what_an_entry_starts():
    entries = (LOCAL, PACKAGE, REMOTE, {"type": "sse", "url": "https://a.example.com/sse"})
    assert [transport_of(entry) for entry in entries] == ["stdio", "npx", "remote", "sse"]


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "Bearer "])
def test_a_marker_is_found_in_every_form(before):
    value = 'mcp-harness-marker "A"/?'
    text = before + value
    forms = [form for _, form in marker_forms({"A": value})]
    for shown in (text, quote(text, safe=""), json.dumps(text), base64.b64encode(f"{text} and more".encode()).decode()):
        assert any(form in shown for form in forms), shown
    assert not any(form in "mcp-harness-marker" for form in forms)


def test_the_base64_of_a_marker_does_not_depend_on_what_follows():
    for form in in_base64("secret-value"):
        encoded = [base64.b64encode(b"x" * 4 + b"secret-value" + end).decode() for end in (b"", b"1", b"22")]
        assert sum(form in each for each in encoded) in (0, 3)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("MCP: Failed to connect to one: Connection closed", {"one"}),
        ("MCP: Failed to connect to one-more: Connection closed", set()),
        ("error: ENOENT /clones/one/x", set()),
        ("all is well with one", set()),
        ("MCP: Failed to connect to one.", {"one"}),
    ],
)
def test_a_line_names_a_server_by_a_word_of_its_own(line, named):
    assert set(named_failures([("stderr", line)], ["one", "two"])) == named


def test_a_log_is_its_servers_and_a_healthy_one_names_nobody():
    folder = "/home/agent/.cache/claude-cli-nodejs/-c/mcp-logs-one/1.jsonl"
    good = '{"debug":"Successfully connected (transport: stdio) in 3ms; timeoutMs 60000"}'
    bad = '{"error":"Connection failed (ENOENT): not found"}'
    assert set(named_failures([(folder, good)], ["one"])) == set()
    assert set(named_failures([(folder, bad)], ["one", "two"])) == {"one"}


def test_the_init_line_names_whom_it_lists_as_failed():
    line = json.dumps({"mcp_servers": [{"name": "one", "status": "failed"}, {"name": "two", "status": "connected"}]})
    assert set(named_failures([("stdout", line)], ["one", "two"])) == {"one"}


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({**REMOTE, "command": "npx"}, "remote"),
        ({**REMOTE, "type": "sse", "command": "npx"}, "sse"),
        ({**PACKAGE, "url": "https://x.example.com"}, "npx"),
        ({"url": "https://x.example.com"}, "remote"),
    ],
)
def test_a_type_tells_the_transport_whatever_stray_fields_there_are(entry, transport):
    assert transport_of(entry) == transport


def test_what_a_runtime_holds_decides_between_an_address_and_a_program():
    held = LoadedServer("s", "http", url="https://x.example.com")
    assert transport_held(PACKAGE, held) == "remote"
    assert transport_held(PACKAGE, held._replace(transport="sse")) == "sse"
    assert transport_held(PACKAGE, LoadedServer("s", "stdio", command="sh")) == "npx"
    assert transport_held(REMOTE, LoadedServer("s", "stdio", command="a")) == "stdio"


def test_companions_that_no_catalog_holds_are_neither_named_nor_counted():
    assert whom("plain-stdio", ()) == "any other server of its session"
    assert whom("plain-stdio", ("github",)) == "github"
    assert whom("github", ("github", "figma")) == "github (and 1 more)"


def test_a_late_companion_is_told_in_words_that_fit_the_struck_entry(monkeypatch):
    monkeypatch.setattr("harness.gate.battery.hits.proof_of", lambda _: None)
    tree = {"far": REMOTE, "near": LOCAL, "third": local(3)}
    context = context_of(tree)
    trial = tried(tree, struck=["near"])
    hurts = [Hurt("MH951", other, "gets its tools 30 s later") for other in ("plain-stdio", "third")]
    kind = next(kind for kind in KINDS if kind.name == "hangs")
    session = cast("Session", None)
    context.trial = trial._replace(
        troubles=tuple(
            Trouble(name, context.runtimes[0], kind, hurt, session) for name in ("far", "near") for hurt in hurts
        )
    )
    far, near = rule_findings(context, ["MH951"])
    assert far.message == ("if this entry's server never answers initialize, third gets its tools 30 s later")
    assert near.message == far.message
    assert "startup_timeout_sec" in near.fix
    assert "startup_timeout_sec" not in far.fix


@pytest.mark.parametrize(
    ("entry", "is_told"),
    [
        (LOCAL, True),
        ({**LOCAL, "title": ""}, True),
        ({**REMOTE, "type": "http"}, True),
        ({**REMOTE, "command": "npx"}, False),
        ({**LOCAL, "env": {"A": 1}}, False),
        ({**REMOTE, "type": "ws"}, False),
        ({"command": "npx"}, False),
    ],
)
def test_where_an_error_says_that_the_transport_is_wrong_its_consequences_are_not_told(entry, is_told, monkeypatch):
    monkeypatch.setattr("harness.gate.battery.hits.proof_of", lambda _: None)
    context = context_of({"s": entry, "other": LOCAL})
    session = cast("Session", None)
    hurts = (Hurt("MH950", "other", "fails"), Hurt("MH953", "TOKEN", "the value of ${TOKEN} is in stdout"))
    troubles = tuple(Trouble("s", context.runtimes[0], None, hurt, session) for hurt in hurts)
    context.trial = tried({"other": LOCAL})._replace(troubles=troubles)
    assert len(rule_findings(context, ["MH950"])) == int(is_told)
    assert len(rule_findings(context, ["MH953"])) == 1


def test_a_wait_that_is_the_budget_but_for_a_healthy_start_is_the_budget():
    assert Reference(179.2, 0.0).by_budget(180.0) == Reference(180.0, 0.0)
    assert Reference(0.0, 58.9).by_budget(180.0) == Reference(0.0, 58.9)
    assert Reference(0.0, 0.0).by_budget(3.0) == Reference(0.0, 0.0)
