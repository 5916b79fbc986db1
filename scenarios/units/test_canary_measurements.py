"""What was measured of each real program is what the reference relies on. The records were made by real runs alone."""

from __future__ import annotations

import pytest

from fake_runtimes.profile import PINNED
from harness.canary.records import load_record
from scenarios.canary_records import claims_of

LABELS = tuple(PINNED.values())


def relied_on(label: str, requirement: str) -> dict[str, object]:
    """Of each claim that a rule of the reference rests on, whether the recorded run bears it out (None: unjudged)."""
    record, claims = load_record(label), claims_of(label.partition("-")[0])
    return {
        name: claim.holds(record[name])
        for name, claim in claims.items()
        if requirement in claim.relied_on and name in record
    }


@pytest.mark.requirement("credential-key-canary-real-runtime")
@pytest.mark.parametrize("label", ["claude-2.1.268", "codex-0.146.0"])
def test_the_real_program_was_found_to_look_under_the_key_that_is_computed(label):
    seen = relied_on(label, "credential-key-canary-real-runtime")
    assert len(seen) >= (15 if label.startswith("claude") else 1)
    assert set(seen.values()) == {True}


@pytest.mark.requirement("credential-key-canary-real-runtime")
def test_the_keys_of_both_header_orders_of_other_types_and_of_odd_texts_were_among_them():
    seen = relied_on("claude-2.1.268", "credential-key-canary-real-runtime")
    wanted = ("plain", "headers-order", "sse", "streamable-http", "trailing-slash", "unicode", "colon-and-comma")
    assert {f"claude.key.{name}" for name in wanted} <= set(seen)


@pytest.mark.requirement("prepare-canary-budgets")
@pytest.mark.parametrize("label", LABELS)
def test_each_pinned_program_was_found_to_wait_as_its_budget_says(label):
    seen = relied_on(label, "prepare-canary-budgets")
    assert len(seen) >= 2
    assert False not in seen.values()
    assert True in seen.values()
