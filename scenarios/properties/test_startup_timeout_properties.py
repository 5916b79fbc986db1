"""What holds of every declared startup budget."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.startup_timeout import accept
from harness.reference.prepare.budgets import claude_mcp_timeout, codex_table, pi_entry
from harness.reference.surfaces.options import configs_answer, mcp_servers_answer, options

JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-10, 700),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=4),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=4), inner, max_size=2)),
    max_leaves=3,
)
BUDGETS = st.one_of(st.integers(-10, 700), JSON_VALUES)
ENTRIES = st.sampled_from([{"command": "npx"}, {"url": "https://x.test/mcp"}])


def is_acceptable(value: object) -> bool:
    """The rule, written a second time: by the JSON spelling."""
    spelling = json.dumps(value)
    return spelling.isdecimal() and 5 <= int(spelling) <= 600


@pytest.mark.requirement("startup-timeout-integer-5-600", "startup-timeout-nonintegers-refused")
@given(BUDGETS)
@example(5)
@example(600)
@example(4)
@example(601)
@example(60.0)
@example(value=True)
@example("60")
def test_exactly_the_integers_from_5_to_600_are_accepted(value):
    accepted = accept(value)
    assert (accepted.seconds is not None) == is_acceptable(value)
    assert accepted.seconds in (None, value)
    assert (accepted.refused is None) == (accepted.seconds is not None or value is None)


@pytest.mark.requirement("startup-timeout-refusal-falls-to-default")
@given(BUDGETS, ENTRIES)
@example(2, {"command": "npx"})
@example(900, {"command": "npx"})
def test_a_refused_budget_is_like_none_on_every_runtime(value, entry):
    declared = None if not is_acceptable(value) else value
    assert codex_table(entry, value) == codex_table(entry, declared)
    assert pi_entry(entry, value) == pi_entry(entry, declared)


@pytest.mark.requirement("startup-timeout-pi-lengthens-only")
@given(BUDGETS, ENTRIES)
@example(180, {"url": "https://x.test/mcp"})
@example(181, {"url": "https://x.test/mcp"})
def test_pi_never_gets_less_than_the_default(value, entry):
    written = pi_entry(entry, value).get("requestTimeoutMs")
    if is_acceptable(value) and value > 180:
        assert written == value * 1000
    else:
        assert written == (180_000 if "command" in entry else None)


@pytest.mark.requirement("startup-timeout-claude-process-max", "startup-timeout-claude-no-server-starved")
@given(st.lists(BUDGETS, max_size=6))
@example([15])
@example([300, 15])
@example([200, 400, 300])
def test_no_claude_server_gets_less_than_it_asked_for_or_than_the_default(budgets):
    raw = {
        f"s{number}": {"type": "stdio", "command": "npx", "startup_timeout_sec": budget}
        for number, budget in enumerate(budgets)
    }
    milliseconds = claude_mcp_timeout(json.dumps({"mcpServers": raw}), read_catalog(raw))
    asked = [budget for budget in budgets if is_acceptable(budget)]
    assert milliseconds == str(1000 * max([180, *asked]))
    assert all(int(milliseconds) / 1000 >= budget for budget in asked)


@pytest.mark.requirement("startup-timeout-rest-reports-accepted", "startup-timeout-rest-both-equal")
@given(st.lists(BUDGETS, max_size=6))
@example([20, 900, "20", None])
def test_both_rest_lists_report_what_was_accepted_of_any_declaration(budgets):
    raw = {
        f"s{number}": {"type": "stdio", "command": "npx", "startup_timeout_sec": budget}
        for number, budget in enumerate(budgets)
    }
    offered = options(read_catalog(raw), ())
    one, other = mcp_servers_answer(offered)["mcp_servers"], configs_answer(offered)["mcp_servers"]
    expected = [budget if is_acceptable(budget) else None for budget in budgets]
    assert [server.get("startup_timeout_sec", "no key") for server in one] == expected
    assert one == other


@pytest.mark.requirement("startup-timeout-claude-unreadable-config")
@given(
    st.one_of(st.text(), JSON_VALUES.map(json.dumps), JSON_VALUES.map(lambda value: json.dumps({"mcpServers": value})))
)
def test_no_text_of_a_config_makes_a_spawn_fail(text):
    slow = read_catalog({"slow server": {"type": "stdio", "command": "npx", "startup_timeout_sec": 300}})
    try:
        milliseconds = claude_mcp_timeout(text, slow)
    except (ValueError, TypeError, RecursionError) as error:
        pytest.fail(f"the spawn failed: {error}")
    assert milliseconds == "180000"
