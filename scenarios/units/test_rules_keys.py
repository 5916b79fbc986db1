"""The gate's rule on the key of a stored credential: MH910."""

from __future__ import annotations

import json

import pytest

from harness.gate.model import Severity
from scenarios.units.gate_fixture import entry_findings, findings, only

URL = "https://mcp.example.com/v1/mcp"


def remote(url=URL, kind="streamable-http", **headers):
    return {"type": kind, "url": url, "headers": headers}


CATALOG = {
    "note": remote(**{"X-Note": "a: b, c"}),
    "query": remote(f"{URL}?a=1&b=2"),
    "unsorted": remote(**{"X-B": "2", "X-A": "1"}),
    "routine": remote(**{"X-Team": "${TEAM}"}),
    "plain": remote(**{"X-A": "1", "X-B": "2"}),
}
SAYS = {
    "note": "taken out of values",
    "query": "\\u0026",
    "unsorted": "sorted by name",
    "routine": "placeholders hashed as written",
}


@pytest.mark.requirement("credential-key-runtime-mode")
def test_each_entry_whose_key_comes_out_wrong_is_told_with_the_way():
    found = findings(json.dumps(CATALOG), {"MH910"})
    assert [each.entry for each in found] == list(SAYS)
    for each in found:
        told = [entry for entry, words in SAYS.items() if words in each.message]
        assert told == [each.entry]
        assert each.severity is Severity.NOTE
        assert each.message.startswith("only if your orchestrator computes credential keys with")


def test_an_entry_with_several_ways_names_all_of_them():
    found = only(entry_findings(remote(f"{URL}?a=1&b=2", **{"X-B": "a, b", "X-A": "${T}"}), {"MH910"}))
    assert all(words in found.message for words in SAYS.values())


@pytest.mark.requirement("credential-key-runtime-mode")
@pytest.mark.parametrize(
    "entry",
    [
        remote(f"{URL}?a=1&b=2", Authorization="Bearer ${T}"),
        {"type": "stdio", "command": "c", "url": f"{URL}?a=1&b=2"},
        {"url": f"{URL}?a=1&b=2"},
        remote(),
    ],
)
def test_where_no_credential_is_stored_no_key_can_be_wrong(entry):
    assert entry_findings(entry, {"MH910"}) == []
