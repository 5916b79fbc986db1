"""Changing any line of a profile turns a claim red; a line that no claim reads has to go."""

from __future__ import annotations

import pytest

from fake_runtimes.profile import known_profiles, load_profile
from harness.canary.claims import chosen
from harness.canary.lines import check_lines


@pytest.mark.nightly
@pytest.mark.parametrize("name", known_profiles())
def test_every_line_of_a_profile_is_read_by_a_claim_that_notices_its_change(name):
    profile = load_profile(name)
    noticed = check_lines(profile, chosen(profile.runtime))
    unread = [f"{field}: no claim reads it" for field in noticed.unread]
    unnoticed = [f"{field}: no claim that reads it notices a change" for field in noticed.unnoticed]
    assert [*unread, *unnoticed] == []
