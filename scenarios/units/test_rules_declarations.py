"""The gate's rules on declared and hidden unavailability: MH901 to MH903."""

from __future__ import annotations

import json

import pytest

from harness.gate.model import Severity
from harness.reference.readiness.probe import judge
from harness.reference.secrets.loader import Resolution
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, only, where


def described(description, **fields):
    return {"type": "stdio", "command": "c", "description": description, **fields}


def state_of(entry):
    context = catalog_context(json.dumps({"a": entry}))
    return judge(
        "a",
        context.entries["a"].entry,
        resolution=lambda _: Resolution("absent", "Unresolved"),
        credential=lambda _: None,
        instance=context.instance,
    )


@pytest.mark.requirement("unavailable-non-string-finding")
@pytest.mark.parametrize(
    ("written", "shown"),
    [("true", "true"), ("false", "false"), ("0", "0"), ('["down"]', "a list"), ('{"why": "hunter2"}', "an object")],
)
def test_an_unavailable_that_is_no_text_declares_nothing_and_is_told_at_its_line(written, shown):
    text = '{\n  "a": {\n    "type": "stdio", "command": "c",\n    "unavailable": ' + written + "\n  }\n}"
    found = only(findings(text, {"MH901"}))
    assert (found.entry, found.severity) == ("a", Severity.WARNING)
    assert where(found) == (4, 20)
    assert f"unavailable is {shown}, which declares nothing" in found.message
    assert "hunter2" not in found.message
    assert "Write one sentence" in found.fix
    assert state_of(json.loads(text)["a"]) == state_of({"type": "stdio", "command": "c"})


@pytest.mark.requirement("unavailable-non-string-finding")
@pytest.mark.parametrize("value", ["", None, "  ", "The vendor closed the API."])
def test_a_text_or_null_is_no_finding(value):
    assert entry_findings(described("x", unavailable=value), {"MH901"}) == []
    assert entry_findings(described("x"), {"MH901"}) == []


@pytest.mark.requirement("unavailable-description-lint")
@pytest.mark.parametrize(
    "prose",
    [
        "⚠️ NOT USABLE YET",
        "Reads mail. ⚠ Needs a new token.",
        "Not working at the moment.",
        "Broken: the vendor closed the API.",
        "BROKEN since May",
        "Searches files (broken)",
        "This server is currently down.",
        "Do not use.",
        "Don't use this server.",
        "Does not work on Linux.",
        "Deprecated. Use linear.",
        "[DEPRECATED] Old tracker",
        "The API is deprecated",
    ],
)
def test_prose_that_warns_of_the_server_is_one_hint_at_the_field(prose):
    found = only(entry_findings(described(prose), {"MH902"}))
    assert (found.severity, found.place.pointer) == (Severity.NOTE, "/a/description")
    assert "`unavailable`" in found.message
    assert "unavailable" in found.fix


@pytest.mark.requirement("unavailable-description-lint")
@pytest.mark.parametrize(
    "prose",
    [
        "Manage unusable invoices",
        "Finds broken links on a site.",
        "Lists deprecated packages and their replacements.",
        "Marks rooms that cannot be used.",
        "Shows who is down the hall.",
        "Lists accounts that are disabled and a key that is broken.",
        "Drops downloads that fail.",
        "Do not use up the quota: reads are billed.",
    ],
)
def test_prose_about_a_servers_work_is_no_hint(prose):
    assert entry_findings(described(prose), {"MH902"}) == []


def test_a_declared_reason_needs_no_hint_and_a_title_can_give_one():
    assert entry_findings(described("Broken.", unavailable="The API is closed."), {"MH902"}) == []
    assert len(entry_findings(described("Broken.", unavailable=" "), {"MH902"})) == 1
    found = only(entry_findings(described("Reads mail.", title="Mail (broken)"), {"MH902"}))
    assert found.place.pointer == "/a/title"


@pytest.mark.parametrize(
    ("reason", "severities"),
    [
        ("r" * 201, [Severity.WARNING]),
        ("r" * 200, []),
        ("r " * 100, []),
        ("One.\nTwo.", [Severity.NOTE]),
        ("One.\n", []),
        (["r" * 300], []),
    ],
)
def test_a_reason_that_is_not_shown_as_written_is_told(reason, severities):
    found = entry_findings(described("x", unavailable=reason), {"MH903"})
    assert [each.severity for each in found] == severities
