"""Whatever two JSON objects the gate is given, it answers with a well-formed stream; and it listens to every fake."""

from __future__ import annotations

import importlib
import json
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_runtimes.loaded import EntryError, Loaded
from fake_runtimes.pi.expansion import Expanded
from fake_runtimes.profile import known_profiles
from harness.gate.edits import applied
from harness.gate.events import Event, Finished, Judged, Started
from harness.gate.model import Place
from harness.inputs.document import Document
from scenarios.units.gate_run import REMOTE, STDIO, as_text, context_of, events_of, finished, found

NAMES = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    [
        *("a", "a-b", "a_b", "a.b", "a__b", "zimmer", "zimmer-self-session", "workspace", "$schema", "mcpServers"),
        *("__proto__", "1", "a[b]", "x" * 101, " a", "é", "😀"),
    ]
)
WORDS = st.sampled_from(
    [
        *("npx", "NPX", "bunx", "sh", "-c", "-y", "npx -y p", "pkg@latest", "pkg@1.0.0", "@s/p", "main", "ghost", "*"),
        *(
            "${A}",
            "${a_b}",
            "${A:-d}",
            "x${A}y",
            "${",
            "https://x.example.com/mcp",
            "https://${A}:${P_PORT}/",
            "no url",
        ),
        *("stdio", "http", "streamable-http", "sse", "ws", "Bearer ${T}", "Authorization", "NPM_CONFIG_CACHE", "\n"),
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=8)
    | WORDS
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | WORDS, inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    [
        *("type", "command", "args", "env", "url", "headers", "oauth", "default_in_roots", "unavailable", "title"),
        *("startup_timeout_sec", "description", "cwd", "timeout"),
    ]
)
TIDY = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["stdio", "http", "streamable-http", "sse"]),
        "command": WORDS,
        "url": WORDS,
        "args": st.lists(WORDS, max_size=3),
        "env": st.dictionaries(WORDS, WORDS, max_size=2),
        "headers": st.dictionaries(WORDS, WORDS, max_size=2),
        "default_in_roots": st.lists(WORDS, max_size=3),
        "startup_timeout_sec": st.integers(0, 700),
        "unavailable": st.text(max_size=4),
    },
)
CATALOGS = st.dictionaries(NAMES, TIDY | st.dictionaries(FIELDS, VALUES, max_size=5) | VALUES, max_size=4)
ROOTS = st.none() | st.dictionaries(
    NAMES | WORDS,
    st.dictionaries(st.sampled_from(["default_mcp_servers", "default_subagent_roots"]), VALUES, max_size=2) | VALUES,
    max_size=3,
)
LEVELS = st.sampled_from(["error", "warning", "note"])


def inside(place: Place, document: Document) -> bool:
    """Whether a place lies in the document, begins before it ends, and points at the value that it names."""
    lines = re.split(r"\r\n|\n|\r", document.text)
    start, end = (place.line, place.column), (place.end_line, place.end_column)
    columns = all(1 <= column <= len(lines[line - 1]) + 1 for line, column in (start, end) if line <= len(lines))
    return 1 <= place.line <= place.end_line <= len(lines) and start <= end and columns


def check_stream(events: list[Event], documents: dict[str, Document], fail_on: str) -> None:
    """The parts that every run has, each agreeing with the others."""
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert sum(isinstance(event, Started | Finished) for event in events) == 2
    assert [event.judgement.entry for event in events if isinstance(event, Judged)] == [
        name for name in documents["mcp.json"].tree if name != "$schema"
    ]
    for finding in found(events):
        assert inside(finding.place, documents[finding.place.file]), finding
        assert finding.message.strip()
        assert finding.fix
        assert finding.entry is None or finding.entry in documents["mcp.json"].tree
    end = finished(events)
    counts = Counter(str(finding.severity) for finding in found(events))
    assert (end.errors, end.warnings, end.notes, end.allowed) == (
        *(counts[level] for level in ("error", "warning", "note")),
        0,
    )
    levels = ("error", "warning", "note")
    failing = sum(counts[level] for level in levels[: levels.index(fail_on) + 1])
    assert (end.exit_code, end.verdict) == ((1, "FAIL") if failing else (0, "PASS"))


@given(CATALOGS, ROOTS, LEVELS)
def test_any_catalog_and_any_roots_are_judged_on_every_profile(tree, roots, fail_on):
    context = context_of(tree, roots, runtimes=known_profiles())
    documents = {"mcp.json": context.document}
    if context.roots_document is not None:
        documents["roots.json"] = context.roots_document
    check_stream(events_of(context, fail_on=fail_on), documents, fail_on)


@given(CATALOGS, CATALOGS, ROOTS, ROOTS, st.booleans())
def test_any_two_catalogs_can_be_compared(head, base, roots, base_roots, every_entry):
    shared = {name: value for index, (name, value) in enumerate(head.items()) if index % 2}
    context = context_of(head, roots)
    documents = {"mcp.json": context.document}
    if context.roots_document is not None:
        documents["roots.json"] = context.roots_document
    events = events_of(context, context_of({**base, **shared}, base_roots), every_entry=every_entry)
    check_stream(events, documents, "error")


@given(CATALOGS, CATALOGS, ROOTS)
def test_the_same_input_gives_the_same_stream(head, base, roots):
    one, other = (events_of(context_of(head, roots), context_of(base, roots)) for _ in range(2))
    assert one == other


@given(CATALOGS, ROOTS)
def test_a_catalog_compared_with_itself_brings_nothing_new(tree, roots):
    events = events_of(context_of(tree, roots), context_of(as_text(tree, None), roots))
    assert found(events) == []
    assert finished(events).judged == 0
    assert {type(event) for event in events} <= {Started, Judged, Finished}


@given(CATALOGS)
def test_every_edit_leaves_json_and_other_entries_as_they_were(tree):
    context = context_of(tree)
    for finding in found(events_of(context)):
        if finding.edits and finding.rule.startswith(("MH4", "MH7", "MH8")):
            mended = json.loads(applied(context.document.text, finding.edits))
            assert mended != tree
            assert {k: v for k, v in mended.items() if k != finding.entry} == {
                k: v for k, v in tree.items() if k != finding.entry
            }


NO_TYPE = {"url": "https://x.example.com/mcp"}
INVERSIONS: list[tuple[str, str, Any, dict[str, Any]]] = [
    (
        "Claude takes a url without a type",
        "fake_runtimes.claude.entries:untyped_transport",
        lambda *_: "http",
        {"a": NO_TYPE},
    ),
    (
        "Claude takes values of any type",
        "fake_runtimes.claude.config:checked_entry",
        lambda *_: None,
        {"a": {**REMOTE, "oauth": {"authServerMetadataUrl": "http://x"}}},
    ),
    (
        "Claude takes any text for a URL",
        "fake_runtimes.claude.entries:is_url",
        lambda _: True,
        {"a": {**REMOTE, "url": "no url"}},
    ),
    (
        "Claude hashes nothing",
        "fake_runtimes.claude.credentials:lookup_key",
        lambda server: server.name,
        {"a": REMOTE},
    ),
    (
        "Claude keeps odd characters in tool names",
        "fake_runtimes.claude.names:sanitise",
        lambda text: text,
        {"a$b": STDIO, "a_b": STDIO},
    ),
    (
        "Claude waits for every server",
        "fake_runtimes.claude.startup:first_request_wait_seconds",
        lambda *_: None,
        {"a": STDIO},
    ),
    (
        "Codex refuses a remote entry's headers",
        "fake_runtimes.codex.config:check_entry",
        lambda entry, _: refuse("http_headers is not supported", when="http_headers" in entry),
        {"a": {**REMOTE, "headers": {"X-A": "1"}}},
    ),
    (
        "Codex reads no project file",
        "fake_runtimes.codex.config:counts",
        lambda **_: False,
        {"a": STDIO},
    ),
    (
        "Codex has room for any tool name",
        "fake_runtimes.codex.names:tool_name_room",
        lambda *_: 1000,
        {"x" * 50: STDIO},
    ),
    (
        "Codex keeps dashes in namespaces",
        "fake_runtimes.codex.names:sanitise",
        lambda text: text,
        {"a-b": STDIO, "a_b": STDIO},
    ),
    (
        "Codex hashes the name alone",
        "fake_runtimes.codex.credentials:lookup_key",
        lambda server: server.name,
        {"a": REMOTE},
    ),
    (
        "Codex gives every server one second",
        "fake_runtimes.codex.startup:attempt_seconds",
        lambda *_: 1.0,
        {"a": STDIO},
    ),
    (
        "Pi authorizes beside headers",
        "harness.gate.spawn:oauth_considered",
        lambda _: True,
        {"a": {**REMOTE, "headers": {"X-A": "1"}}},
    ),
    (
        "Pi takes values of any type",
        "fake_runtimes.pi.values:record",
        lambda *_: {},
        {"a": {**STDIO, "env": {"A": 3}}},
    ),
    (
        "Pi leaves an unset variable in a url alone",
        "fake_runtimes.pi.values:expand",
        lambda text, _: Expanded(text, ()),
        {"a": {**REMOTE, "url": "https://x.example.com/$env:A"}, "b": {**REMOTE, "url": "https://${a}.example.com"}},
    ),
    (
        "Pi keeps odd characters in names",
        "fake_runtimes.pi.names:namespace",
        lambda server, _: server,
        {"a.b": STDIO, "a-b": STDIO, "a_b": STDIO},
    ),
    (
        "Pi gives every request one second",
        "fake_runtimes.pi.startup:request_seconds",
        lambda *_: 1.0,
        {"a": STDIO},
    ),
    (
        "no runtime holds anything",
        "fake_runtimes.runtimes:read",
        lambda *_: Loaded(),
        {"a": STDIO},
    ),
]


def refuse(text: str, *, when: bool) -> str:
    if when:
        raise EntryError(text)
    return "http"


@pytest.mark.parametrize(
    ("target", "stand_in", "tree"), [case[1:] for case in INVERSIONS], ids=[c[0] for c in INVERSIONS]
)
def test_another_behaviour_of_a_fake_changes_what_the_gate_says(monkeypatch, target, stand_in, tree):
    before = events_of(context_of(tree))
    module, _, name = target.partition(":")
    monkeypatch.setattr(importlib.import_module(module), name, stand_in)
    assert events_of(context_of(tree)) != before
