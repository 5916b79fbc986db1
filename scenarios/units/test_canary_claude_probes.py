"""The probes of Claude Code give, of the fakes, what was recorded of the real programs: so the fakes stay certified."""

from __future__ import annotations

import pytest

from fake_runtimes.profile import load_profile
from harness.canary.claims import chosen
from harness.canary.judging import alike
from harness.canary.records import load_record
from harness.canary.running import measure
from harness.canary.subject import fake_of

VERSIONS = ("claude-2.1.268", "claude-2.1.328")
AT_A_TIME = 6
"""Most of a probe's time is waiting."""
CLAIMS = {claim.id: claim for probe in chosen("claude") for claim in probe.claims}
KNOWN_BROKEN = {
    "claude.log.auth-shaped.wall": VERSIONS,
    "claude.log.auth-shaped.wall-sse": VERSIONS,
    "claude.log.auth-shaped.alone": VERSIONS[1:],
    "claude.refresh.grant-text-unexpired": VERSIONS,
}
"""Claims that do not hold of the real programs, and of which versions."""


@pytest.mark.parametrize("label", VERSIONS)
def test_the_fake_does_what_was_recorded_of_the_real_program(label):
    (measured,) = measure([(fake_of(load_profile(label)), chosen("claude"))], workers=AT_A_TIME)
    record = load_record(label)
    modelled = [name for name, claim in CLAIMS.items() if not claim.not_modelled]
    differing = {
        name: (record.get(name), measured.observations.get(name))
        for name in modelled
        if name not in measured.observations or not alike(record.get(name), measured.observations[name])
    }
    assert differing == {}
    assert measured.left == ()


@pytest.mark.parametrize("label", VERSIONS)
def test_every_claim_is_recorded_and_holds_but_for_those_that_are_known_not_to(label):
    record = load_record(label)
    assert set(record) == set(CLAIMS)
    broken = {name for name, claim in CLAIMS.items() if claim.holds(record[name]) is False}
    assert broken == {name for name, versions in KNOWN_BROKEN.items() if label in versions}


def test_a_token_under_a_wrong_key_is_named_by_the_form_of_that_key():
    from harness.canary.probes.claude.keys import form_of

    assert form_of("3:_headers_sorted", 3) == "headers sorted"
    assert form_of("3:_headers_sorted", 4) is None
    assert form_of(None, 3) is None
