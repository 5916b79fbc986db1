"""The gate's rules on startup budgets: MH501 and MH512 to MH514."""

from __future__ import annotations

import json

import pytest

from harness.gate.model import Severity
from scenarios.units.gate_fixture import entry_findings, findings, mended, only, where

BUDGETS = {"MH501", "MH512", "MH513", "MH514"}


def budget(seconds):
    return {"type": "stdio", "command": "npx", "startup_timeout_sec": seconds}


@pytest.mark.parametrize(
    ("written", "said", "becomes"),
    [
        ('"20"', "no whole number", 20),
        ("20.0", "no whole number", 20),
        ("2e1", "no whole number", 20),
        ('" 20 "', "no whole number", 20),
        ("20.5", "no whole number", None),
        ('"700"', "no whole number", None),
        ('"soon"', "no whole number", None),
        ("true", "no whole number", None),
        ("[20]", "no whole number", None),
        ("4", "outside 5 to 600 s", None),
        ("601", "outside 5 to 600 s", None),
        ("600.0", "no whole number", 600),
    ],
)
def test_a_refused_budget_falls_back_to_the_default(written, said, becomes):
    text = '{\n  "a": {\n    "startup_timeout_sec": ' + written + ', "type": "stdio", "command": "c"\n  }\n}'
    found = only(findings(text, BUDGETS))
    assert (found.rule, found.entry, found.severity) == ("MH501", "a", Severity.WARNING)
    assert where(found) == (3, 28)
    assert said in found.message
    assert "the server gets 180 s on every runtime" in found.message
    if becomes is None:
        assert found.edits == ()
    else:
        result = mended(text, found)
        assert json.loads(result)["a"]["startup_timeout_sec"] == becomes
        assert findings(result, {"MH501"}) == []


@pytest.mark.parametrize(
    "entry", [budget(None), budget(180), budget(5), budget(600), {"type": "stdio", "command": "c"}]
)
def test_an_accepted_budget_or_none_is_not_refused(entry):
    assert entry_findings(entry, {"MH501"}) == []


@pytest.mark.parametrize("seconds", [5, 20, 179])
def test_a_shorter_budget_is_honoured_by_codex_only(seconds):
    found = only(entry_findings(budget(seconds), {"MH512", "MH513"}))
    assert (found.rule, found.severity) == ("MH512", Severity.WARNING)
    assert f"startup_timeout_sec {seconds} is honoured by codex@0.146.0 only" in found.message
    assert "claude@2.1.268 keeps 180 s; pi@0.84.1+2.32.1 keeps 180 s" in found.message
    assert found.runtimes == ("claude@2.1.268", "pi@0.84.1+2.32.1")


def test_where_only_codex_runs_a_shorter_budget_is_no_surprise():
    assert entry_findings(budget(20), {"MH512"}, runtimes=("codex",)) == []
    found = only(entry_findings(budget(20), {"MH512"}, runtimes=("claude",)))
    assert "none of the runtimes judged" in found.message


@pytest.mark.parametrize("seconds", [181, 600])
def test_a_longer_budget_has_effects_beyond_its_server(seconds):
    found = only(entry_findings(budget(seconds), {"MH512", "MH513"}))
    assert (found.rule, found.severity) == ("MH513", Severity.NOTE)
    assert "raises MCP_TIMEOUT for every server of the session on claude@2.1.268" in found.message
    assert "every tool call of this server take as long on pi@0.84.1+2.32.1" in found.message
    assert entry_findings(budget(seconds), {"MH513"}, runtimes=("codex",)) == []


@pytest.mark.parametrize("value", [180, None, "20", 601])
def test_the_default_and_refused_values_are_neither_shorter_nor_longer(value):
    assert entry_findings(budget(value), {"MH512", "MH513"}) == []


@pytest.mark.parametrize(
    ("runtimes", "hasty"),
    [
        (("claude", "codex", "pi"), ("claude@2.1.268",)),
        (("codex@0.169.0", "codex@0.146.0"), ("codex@0.169.0",)),
        (("claude@2.1.328", "codex@0.169.0"), ("claude@2.1.328", "codex@0.169.0")),
        (("codex", "pi"), ()),
    ],
)
def test_a_runtime_that_asks_the_model_first_is_named_once_for_the_entry(runtimes, hasty):
    found = entry_findings(budget(20), {"MH514"}, runtimes=runtimes)
    assert [each.runtimes for each in found] == ([hasty] if hasty else [])
    assert all(each.severity is Severity.NOTE for each in found)
    assert entry_findings({"type": "stdio", "command": "c"}, {"MH514"}, runtimes=runtimes) == []
