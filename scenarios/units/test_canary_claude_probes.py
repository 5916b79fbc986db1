"""The probes of Claude Code give, of the fakes, what was recorded of the real programs: so the fakes stay certified."""

from __future__ import annotations

import pytest

from harness.canary.records import load_record
from scenarios.canary_records import broken, claims_of, compared

VERSIONS = ("claude-2.1.268", "claude-2.1.328", "claude-2.1.332")
AT_A_TIME = 6
"""Most of a probe's time is waiting."""
CLAIMS = claims_of("claude")
KNOWN_BROKEN = {
    "claude.log.auth-shaped.wall": VERSIONS,
    "claude.log.auth-shaped.wall-sse": VERSIONS,
    "claude.log.auth-shaped.alone": VERSIONS[1:],
    "claude.refresh.grant-text-unexpired": VERSIONS,
}
"""Claims that do not hold of the real programs, and of which versions."""


@pytest.mark.parametrize("label", VERSIONS)
def test_the_fake_does_what_was_recorded_of_the_real_program(label):
    found = compared(label, AT_A_TIME)
    assert found.differing == {}
    assert found.left == ()


@pytest.mark.parametrize("label", VERSIONS)
def test_every_claim_is_recorded_and_holds_but_for_those_that_are_known_not_to(label):
    record = load_record(label)
    assert set(record) == set(CLAIMS)
    assert broken(CLAIMS, record) == {name for name, versions in KNOWN_BROKEN.items() if label in versions}


def test_a_token_under_a_wrong_key_is_named_by_the_form_of_that_key():
    from harness.canary.probes.claude.keys import form_of

    assert form_of("3:_headers_sorted", 3) == "headers sorted"
    assert form_of("3:_headers_sorted", 4) is None
    assert form_of(None, 3) is None
