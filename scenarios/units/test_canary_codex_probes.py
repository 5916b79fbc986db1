"""The probes of Codex give, of the fakes, what was recorded of the real programs: so the fakes stay certified."""

from __future__ import annotations

import re

import pytest

from fake_runtimes.codex.bugs import LOGIN_IS_LOST, REFRESH_IS_UNUSED
from fake_runtimes.profile import load_profile
from harness.canary.claims import chosen
from harness.canary.judging import judge
from harness.canary.probes.codex.names import limit
from harness.canary.probes.codex.parsing import PLACE, without_place
from harness.canary.probes.codex.refresh import after
from harness.canary.profile_writing import derived_fields, fields_of
from harness.canary.records import load_record
from harness.canary.running import Measured, measure
from harness.canary.subject import fake_of
from harness.canary.workarounds import Need, evidence
from scenarios.canary_records import broken, claims_of, compared

VERSIONS = ("codex-0.146.0", "codex-0.169.0", "codex-0.171.0")
AT_A_TIME = 8
"""Most of a probe's time is waiting."""
CLAIMS = claims_of("codex")
KNOWN_BROKEN = {
    "codex.wait.optional": VERSIONS[1:],
    "codex.wait.hang": VERSIONS[1:],
    **dict.fromkeys(
        ("codex.key.plain", "codex.key.headers", "codex.key.trailing-slash", "codex.key.ampersand"), VERSIONS[2:]
    ),
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


@pytest.mark.parametrize("label", VERSIONS)
def test_every_line_of_the_profile_follows_from_what_was_recorded(label):
    profile = load_profile(label)
    derived, problems = derived_fields(profile, CLAIMS.values(), load_record(label))
    told = {name: tuple(each.value) if isinstance(each.value, list) else each.value for name, each in derived.items()}
    expected = {field: getattr(profile, field) for field in fields_of(profile) if field != "version"}
    assert (told, problems) == (expected, [])


def test_no_observation_holds_anything_of_the_moment():
    moment = re.compile(r"127\.0\.0\.1:\d|mcp-trial|\b20\d\d-\d\d-\d\dT|\b1[67]\d{8,}\b")
    for label in VERSIONS:
        record = load_record(label)
        assert [name for name, value in record.items() if moment.search(str(value))] == []


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize("label", VERSIONS)
def test_of_each_real_program_the_record_says_which_of_the_two_bugs_it_still_has(label):
    rows = judge(list(CLAIMS.values()), before={}, real=of_record(label), fake=None)
    needs = {each.workaround.bug: each.need for each in evidence(rows)}
    without_issuer = Need.NO_LONGER if label == "codex-0.146.0" else Need.STILL
    assert needs == {LOGIN_IS_LOST: Need.NO_LONGER, REFRESH_IS_UNUSED: without_issuer}


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize(
    ("bug", "broken_by_it"),
    [(LOGIN_IS_LOST, {"codex.login.kept", "codex.login.renewed"}), (REFRESH_IS_UNUSED, {"codex.login.renewed"})],
)
def test_a_program_that_has_a_bug_shows_it_to_the_claims_about_it(bug, broken_by_it):
    right = fake_of(load_profile("codex-0.169.0"))
    subject = right._replace(argv=(*right.argv, "--fake-bugs", bug))
    (measured,) = measure([(subject, chosen("codex", ["codex.login.*"]))], workers=1)
    claims = {name: CLAIMS[name] for name in ("codex.login.kept", "codex.login.renewed")}
    assert broken(claims, measured.observations) == broken_by_it
    rows = judge(list(claims.values()), before={}, real=measured, fake=None)
    assert bug in {each.workaround.bug for each in evidence(rows) if each.need is Need.STILL}


def of_record(label):
    """What was recorded, as if it had been measured now."""
    return Measured(fake_of(load_profile(label)), load_record(label), {}, {}, 0.0)


def test_a_limit_is_read_off_the_first_name_that_was_cut():
    whole, cut = "mcp__a/" + "s" * 52, "mcp__a/ttt_0123456789ab"
    assert limit([whole, cut]) == len("mcp__a") + len("ttt_0123456789ab") + 2
    with pytest.raises(IndexError):
        limit([whole])


def test_places_in_files_do_not_count():
    said = "0: $HOME/.codex/config.toml:4:1: url is not supported for stdio"
    assert PLACE.sub(r"\1", said) == "url is not supported for stdio"
    assert PLACE.sub(r"\1", "Error: $HOME/.codex/config.toml:1:1: unknown field") == "Error: unknown field"
    assert without_place("failed to load: /x/config.toml:4:1: bad") == "failed to load: bad"


def test_what_became_of_an_entry_is_told_by_the_fields_that_changed():
    before = {"server_name": "a", "server_url": "u", "access_token": "x", "expires_at": 1, "more": 1}
    now = {**before, "access_token": "y", "expires_at": 1_800_000_000_000}
    del now["more"]
    assert after(before, {"k": now}) == {"access_token": "another", "expires_at": "milliseconds", "more": None}
    assert after(before, {"k": now, "l": before}) == "2 entries"
    assert after(before, None) == "0 entries"
