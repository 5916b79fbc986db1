"""Properties of the gate before a spawn and of the resume after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.catalog.catalog import read_catalog
from harness.reference.oauth.capability import oauth_capable
from harness.reference.prepare.request import Prepared, Record
from harness.reference.session.blocking import MARKER, UNDELIVERED, Blocked, Turn, blocked_lines, blocked_values
from harness.reference.session.gate import listed_servers
from harness.reference.session.prepare import PreparedClone
from harness.reference.session.prompts import FixedPrompts, is_nudge
from harness.reference.session.resume_decision import Facts, decide
from scenarios.units.spawn_gate_run import order_of

HEADERS = st.dictionaries(
    st.sampled_from(["Authorization", "X-API-Key", "X-Trace-Id", "X-Author", "PRIVATE-TOKEN"]),
    st.sampled_from(["v", "", "  "]),
    max_size=2,
)
ENTRIES = st.fixed_dictionaries(
    {"type": st.sampled_from(["stdio", "http", "streamable-http", "sse", "ws"])},
    optional={
        "url": st.just("https://h.test/mcp"),
        "headers": HEADERS,
        "unavailable": st.sampled_from(["No discovery.", "", " "]),
    },
)
CATALOGS = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), ENTRIES, max_size=4)


@pytest.mark.requirement("gate-single-predicate", "gate-skips-declared-unavailable", "gate-selection-is-session-set")
@given(CATALOGS, st.sets(st.sampled_from(["a", "b", "c", "d", "gone"])), st.sets(st.sampled_from(["a", "b"])))
def test_the_gate_lists_exactly_the_capable_servers_that_are_selected(tree, selected, injected):
    prepared = Prepared((), {name: {} for name in selected}, tuple(sorted(injected)), (), Record(), (), ())
    ready = PreparedClone(prepared, None, {}, tuple(sorted(selected)), frozenset())
    catalog = read_catalog(tree)
    assert [server.name for server in listed_servers(order_of(tree), ready)] == [
        name
        for name in sorted(selected - injected)
        if name in catalog.entries
        and oauth_capable(catalog.entries[name].raw)
        and "url" in tree[name]
        and not str(tree[name].get("unavailable", "")).strip()
    ]


PROMPTS = FixedPrompts("Carry on.", "Heartbeat.")
SERVERS = (Blocked("a", "https://a.test/mcp"),)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.sampled_from(["Carry on.", "Carry on.\n\n(x)", "Heartbeat.", "m1", "m2", "m3"])),
        st.tuples(st.just("authorize"), st.booleans()),
        st.tuples(st.just("first"), st.none()),
        st.tuples(st.just("deliver"), st.none()),
    ),
    max_size=12,
)


@pytest.mark.requirement(
    "resume-prompt-conservation", "resume-silent-substitution-forbidden", "resume-nudge-keeps-older-marker"
)
@given(STEPS, st.sampled_from([None, "uuid"]))
def test_no_message_of_a_human_disappears_and_none_is_delivered_twice(steps, session_id):
    values: Mapping[str, Any] = {"status": "running", "session_id": session_id, "metadata": {}}
    sent, delivered = 0, []
    quoted: list[str] = []
    jobs: list[str | None] = []
    human: list[str] = []
    for kind, what in steps:
        if kind in ("turn", "first"):
            text = None if kind == "first" else what if is_nudge(what, PROMPTS) else f"{what} number {sent}"
            turn = Turn(text, is_nudge(text, PROMPTS))
            sent += 1
            human += [turn.owed] if turn.owed is not None else []
            quoted += [line.text for line in blocked_lines(values, SERVERS, turn)]
            values, jobs = blocked_values(values, SERVERS, turn), []
        elif kind == "authorize":
            decided = decide(values, Facts(authorized=lambda _: what, now=0.0))  # noqa: B023 - called at once
            values = decided.values
            quoted += [line.text for line in decided.lines]
            jobs += [decided.job.prompt] if decided.job is not None else []
        elif jobs:
            prompt = jobs.pop()
            if prompt is not None:
                delivered.append(prompt)
                values = {**values, "metadata": {k: v for k, v in values["metadata"].items() if k != MARKER}}
    for text in human:
        pending = values["metadata"].get(MARKER) == text
        told = any(line.endswith(text) for line in quoted)
        assert (delivered.count(text), pending or told or text in delivered) in ((0, True), (1, True))
        assert not (pending and text in delivered)
    if values["metadata"].get(UNDELIVERED) is not None:
        assert any(line.endswith(values["metadata"][UNDELIVERED]) for line in quoted)
