"""What all claims must be, and what is recorded of them."""

from __future__ import annotations

import pytest

from fake_runtimes.profile import PINNED, age, known_profiles, load_profile
from harness.canary.claims import FAMILIES, Claim, Probe, all_probes, chosen, probe
from harness.canary.effects import unknown_requirements
from harness.canary.profile_writing import lines_of
from harness.canary.records import load_record, record_text, recorded_labels
from harness.canary.subjects import fake_for, nearest_profile
from harness.errors import HarnessFault

CLAIMS = tuple(claim for each in all_probes() for claim in each.claims)


def test_claims_rest_on_requirements_that_there_are():
    assert unknown_requirements(CLAIMS) == ()


def test_claims_read_and_give_lines_that_profiles_have():
    fields = {family: set(lines_of(load_profile(PINNED[family]))) for family in FAMILIES}
    unknown = {claim.id: {*claim.reads, *claim.derive} - fields[claim.family] for claim in CLAIMS}
    assert {name: found for name, found in unknown.items() if found} == {}


def test_what_is_recorded_is_of_known_versions_and_claims():
    known = {claim.id for claim in CLAIMS}
    for label in recorded_labels():
        assert label in known_profiles()
        assert set(load_record(label)) - known == set()


def test_a_claim_is_answered_by_one_probe_of_its_runtime():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS)
    for each in all_probes():
        assert {claim.family for claim in each.claims} == {each.family}


def test_a_claim_of_another_probe_or_of_two_runtimes_is_refused():
    first = next(iter(CLAIMS))
    with pytest.raises(ValueError, match="answered twice"):
        probe(first)(lambda trial: {})
    with pytest.raises(ValueError, match="must be about one of"):
        probe(Claim("gemini.a.b", ""))(lambda trial: {})


def test_globs_choose_the_probes_with_only_the_claims_that_fit():
    found = chosen("claude", ["claude.key.plain", "claude.key.s*"])
    assert {claim.id.split(".")[1] for each in found for claim in each.claims} == {"key"}
    assert all(isinstance(each, Probe) for each in found)
    assert chosen("codex", ["claude.*"]) == ()


def test_a_version_without_a_profile_speaks_the_dialect_of_the_nearest_one():
    names = {version: nearest_profile(f"claude-{version}").name for version in ("2.1.1", "2.1.268", "2.1.300", "9.9.9")}
    assert names == {
        "2.1.1": "claude-2.1.268",
        "2.1.268": "claude-2.1.268",
        "2.1.300": "claude-2.1.268",
        "9.9.9": [name for name in known_profiles() if name.startswith("claude-")][-1],
    }
    assert fake_for("claude-9.9.9") is None
    assert sorted(known_profiles(), key=age) == list(known_profiles())


def test_a_record_keeps_what_was_not_asked_and_forgets_what_is_no_claim(tmp_path):
    text = record_text({"a": 2, "é": None}, {"a": 1, "b": [1], "gone": 0}, {"a", "b", "é"})
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    assert load_record("x", tmp_path) == {"a": 2, "b": [1], "é": None}
    assert load_record("y", tmp_path) == {}
    for broken in ("{", "[]"):
        (tmp_path / "x.json").write_text(broken)
        with pytest.raises(HarnessFault):
            load_record("x", tmp_path)
