"""What the canary found of names, at the gate: it judges by the profile, so each version's own names are told."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.profile import ClaudeProfile, known_profiles, load_profile
from scenarios.units.gate_fixture import findings

CLAUDES = [name for name in known_profiles() if name.startswith("claude-")]
"""`__proto__` is not among them: AIR loses it before any runtime sees it (MH106)."""


def reserved(label: str) -> set[str]:
    profile = load_profile(label)
    assert isinstance(profile, ClaudeProfile)
    return {*profile.reserved_names} - {"__proto__"}


@pytest.mark.parametrize("label", CLAUDES)
def test_every_name_that_a_version_keeps_for_itself_is_told_as_a_skipped_entry(label):
    version = label.replace("-", "@", 1)
    entries = {name: {"type": "stdio", "command": "tool"} for name in sorted({*reserved(label), "mine"})}
    found = findings(json.dumps(entries), ["MH802"], runtimes=[version])
    assert {finding.entry for finding in found} == reserved(label)
    assert {finding.runtimes for finding in found} == {(version,)}


def test_names_that_only_a_newer_version_keeps_are_told_where_that_is_judged():
    entries = {"__defineGetter__": {"type": "stdio", "command": "tool"}}
    assert findings(json.dumps(entries), ["MH802"], runtimes=["claude@2.1.268"]) == []
    assert len(findings(json.dumps(entries), ["MH802"], runtimes=["claude@2.1.328"])) == 1
