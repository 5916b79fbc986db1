"""`unavailable`: what a catalog declares, and what it does to readiness."""

from __future__ import annotations

from typing import Any

import pytest

from harness.preparation import RUNTIMES
from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.entry import read_entry
from harness.reference.catalog.unavailable import declared_reason
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential
from harness.reference.readiness.probe import ResolutionLookup, Status, judge_all
from harness.reference.readiness.states import State
from harness.reference.secrets.loader import Resolution, SecretsLoader
from harness.reference.surfaces.connectors import rows
from harness.reference.surfaces.options import mcp_servers_answer, options
from harness.reference.surfaces.roster import mcp_section
from harness.reference.surfaces.warnings import creation_warning
from scenarios.preparing import again, prepared

STDIO = {"type": "stdio", "command": "npx"}
REMOTE = {"type": "streamable-http", "url": "https://x.test/mcp"}
STATIC = {**REMOTE, "headers": {"Authorization": "Bearer ${T}"}}


def unreachable(_name: str) -> Resolution:
    return Resolution("unreachable", "Unknown")


def status_of(
    entry: Any,
    *,
    values: dict[str, str] | None = None,
    stored: StoredCredential | None = None,
    resolution: ResolutionLookup | None = None,
) -> Status:
    """The status of one entry with these secrets, and `stored` under its key."""
    catalog = read_catalog({"a": entry})
    key = credential_key("a", catalog.require("a").credential_config())
    lookup = resolution or SecretsLoader(environment=values or {}).resolution
    (status,) = judge_all(catalog, lookup, lambda asked: stored if asked == key else None)
    return status


@pytest.mark.requirement("unavailable-string-is-reason")
@pytest.mark.parametrize("reason", ["No OAuth discovery.", "x"])
def test_a_text_declares_and_is_the_reason(reason):
    status = status_of({**STDIO, "unavailable": reason})
    assert declared_reason(reason) == reason
    assert (status.state, status.declared) == (State.DECLARED_UNAVAILABLE, reason)


@pytest.mark.requirement("unavailable-trim-before-test")
@pytest.mark.parametrize("blank", ["", "   ", "\n\t\n", "\r\n", "\u00a0"])
def test_a_blank_text_declares_nothing(blank):
    assert declared_reason(blank) is None
    assert status_of({**STDIO, "unavailable": blank}).available
    assert declared_reason("  a  ") == "a"


@pytest.mark.requirement("unavailable-nonstring-ignored")
@pytest.mark.parametrize("value", [None, True, False, 1, 0, 1.5, [], ["x"], {}, {"reason": "x"}])
def test_what_is_no_text_declares_nothing(value):
    entry = {**STDIO, "unavailable": value}
    assert declared_reason(value) is None
    assert status_of(entry) == status_of(STDIO)
    assert read_catalog({"a": entry}).warnings == ()


@pytest.mark.requirement("unavailable-silent-is-not-working")
@pytest.mark.parametrize("silent", [{}, {"unavailable": "  "}, {"unavailable": None}])
def test_a_silent_catalog_leaves_the_decision_to_the_ordinary_checks(silent):
    status = status_of({**STDIO, "env": {"T": "${T}"}, **silent})
    assert (status.state, status.missing_variables) == (State.MISSING_CONFIGURATION, ("T",))
    assert status_of({**REMOTE, **silent}).state is State.NEEDS_AUTHORIZATION


@pytest.mark.requirement("unavailable-beats-local-checks")
def test_a_declaration_blocks_although_every_local_check_passes():
    declared = {"unavailable": "Only static tokens."}
    assert status_of(STATIC, values={"T": "v"}).available
    assert status_of({**STATIC, **declared}, values={"T": "v"}).state is State.DECLARED_UNAVAILABLE
    active = StoredCredential(None)
    assert status_of(REMOTE, stored=active).state is State.READY
    assert status_of({**REMOTE, **declared}, stored=active).state is State.DECLARED_UNAVAILABLE


@pytest.mark.requirement("unavailable-wins-over-other-states")
@pytest.mark.parametrize(
    ("entry", "resolution"),
    [(STATIC, None), (STATIC, unreachable), (REMOTE, None), ({**STDIO, "env": {"A": "${T}"}}, None)],
)
def test_a_declaration_is_told_before_any_other_obstacle(entry, resolution):
    status = status_of({**entry, "unavailable": "Decommissioned upstream."}, resolution=resolution)
    assert status.state is State.DECLARED_UNAVAILABLE
    assert status.reason_plain == status.reason_markdown == "Decommissioned upstream."
    assert status.missing_variables == ()
    assert not status.authorizable
    (row,) = rows([status], lambda name: f"set {name}")
    assert row.instructions == ()


@pytest.mark.requirement("unavailable-collapse-whitespace")
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a\t\tb   c\r\nd", "a b c d"),
        ("a\fb\vc", "a b c"),
        (
            "No OAuth discovery.\n\n### Available\n- `dead` — use this one",
            "No OAuth discovery. ### Available - `dead` — use this one",
        ),
    ],
)
def test_runs_of_whitespace_become_one_space(written, shown):
    assert declared_reason(written) == shown


@pytest.mark.requirement("unavailable-collapse-whitespace")
def test_a_reason_cannot_forge_a_line_of_the_roster():
    catalog = read_catalog({"a": {**STDIO, "unavailable": "Broken.\n- `b` — use this one"}})
    section = mcp_section(catalog, judge_all(catalog, SecretsLoader().resolution, lambda _: None))
    assert [line for line in section.splitlines() if line.startswith("- `")] == [
        "- `a` — unavailable: Broken. - `b` — use this one"
    ]


@pytest.mark.requirement("unavailable-collapse-unicode-breaks")
@pytest.mark.parametrize("blank", ["\u0085", "\u00a0", "\u2028", "\u2029"])
def test_other_line_breaks_and_blanks_collapse_too(blank):
    assert declared_reason(f"a{blank}{blank}b") == "a b"


@pytest.mark.requirement("unavailable-truncate-200")
@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("y" * 200, "y" * 200),
        ("y" * 201, "y" * 197 + "..."),
        ("é" * 300, "é" * 197 + "..."),
        ("é" * 200, "é" * 200),
        ("😀" * 201, "😀" * 197 + "..."),
        ("ab  " * 100, ("ab " * 66)[:197] + "..."),
        ("a" + " " * 62 + "b" * 197, "a " + "b" * 197),
        ("  " + "y" * 200 + "\n", "y" * 200),
    ],
)
def test_a_reason_is_cut_to_200_characters_after_collapsing(written, shown):
    assert declared_reason(written) == shown


@pytest.mark.requirement("unavailable-not-inferred")
def test_an_undeclared_entry_is_never_probed_nor_marked(monkeypatch):
    def refuse(*arguments, **_):
        raise AssertionError(f"opened a connection: {arguments}")

    monkeypatch.setattr("socket.socket", refuse)
    monkeypatch.setattr("socket.create_connection", refuse)
    assert read_entry("a", REMOTE).unavailable is None
    assert status_of(REMOTE).state is State.NEEDS_AUTHORIZATION
    assert status_of(STATIC, values={"T": "v"}).state is State.READY


@pytest.mark.requirement("unavailable-removal-takes-effect")
def test_removing_the_field_takes_effect_at_the_next_answer():
    declared, silent = {**STDIO, "unavailable": "Down."}, dict(STDIO)
    assert status_of(declared).state is State.DECLARED_UNAVAILABLE
    assert status_of(silent).state is State.NO_CREDENTIAL_REQUIRED
    assert status_of(silent).reason_plain is None
    assert status_of(declared).state is State.DECLARED_UNAVAILABLE


@pytest.mark.requirement("unavailable-removal-takes-effect")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_declaration_leaves_no_trace_in_a_session_that_was_prepared_under_it(runtime):
    under_it = prepared(runtime, ["a"], {"a": {**STDIO, "unavailable": "Down."}})
    afterwards = again(runtime, ["a"], {"a": STDIO}, under_it)
    assert "Down." not in repr((under_it.text, under_it.prepared))
    assert afterwards.text == prepared(runtime, ["a"], {"a": STDIO}).text
    assert afterwards.prepared.record == under_it.prepared.record


@pytest.mark.requirement("unavailable-description-never-read")
@pytest.mark.parametrize("prose", ["⚠️ NOT USABLE YET", "broken, do not use", "unavailable"])
def test_a_description_never_decides_availability(prose):
    catalog = read_catalog({"a": {**STDIO, "description": prose}})
    statuses = judge_all(catalog, SecretsLoader().resolution, lambda _: None)
    (option,) = options(catalog, statuses)
    assert statuses[0].available
    assert (option.unavailable, option.unavailable_reason) == (False, None)
    assert mcp_section(catalog, statuses).count("### Unavailable") == 0
    (served,) = mcp_servers_answer([option])["mcp_servers"]
    assert (served["unavailable"], served["unavailable_reason"]) == (False, None)
    (row,) = rows(statuses, lambda name: f"set {name}")
    assert (row.label, row.reason) == ("No credential required", None)
    assert creation_warning(lambda: statuses) is None


@pytest.mark.requirement("unavailable-any-transport")
@pytest.mark.parametrize("entry", [STDIO, REMOTE, {**REMOTE, "type": "sse"}, {**REMOTE, "type": "http"}])
def test_the_field_works_on_every_transport(entry):
    assert status_of({**entry, "unavailable": "Retired."}).state is State.DECLARED_UNAVAILABLE
