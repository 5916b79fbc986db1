"""The probes of Pi give, of the fakes, what was recorded of the real programs: so the fakes stay certified."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fake_runtimes.profile import load_profile
from fake_servers.models import Call as Spoken
from harness.canary.probes.pi.keyring import parts
from harness.canary.probes.pi.names import is_of, pinned_names
from harness.canary.profile_writing import derived_fields, fields_of
from harness.canary.records import load_record
from harness.canary.script import Call
from harness.canary.settings import kept_folder, of_servers, spoken
from harness.canary.subject import fake_of
from harness.canary.trial import Trial
from harness.world.outside.setting import TIME_SCALE_VARIABLE
from scenarios.canary_records import broken, claims_of, compared

VERSIONS = ("pi-0.84.1+2.32.1", "pi-0.86.1+2.36.0", "pi-1.6.0+2.36.0")
AT_A_TIME = 5
"""Most of a probe's time is waiting."""
CLAIMS = claims_of("pi")
KNOWN_BROKEN = {
    **dict.fromkeys(
        ("pi.proxy.dots", "pi.proxy.letters", "pi.proxy.blanks", "pi.proxy.slash", "pi.proxy.encoded"), VERSIONS[1:]
    ),
    **dict.fromkeys(("pi.proxy.longer", "pi.proxy.longer-hyphens", "pi.proxy.longer-dots"), VERSIONS[1:]),
    "pi.stderr.nothing-else": VERSIONS[2:],
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
    expected = {field: getattr(profile, field) for field in fields_of(profile) if field != "version"}
    assert ({name: each.value for name, each in derived.items()}, problems) == (expected, [])


def test_no_observation_holds_anything_of_the_moment():
    moment = re.compile(r"127\.0\.0\.1:\d|mcp-trial|\b20\d\d-\d\d-\d\dT|\b1[67]\d{8,}\b|canary-[0-9a-f]{8}")
    for label in VERSIONS:
        assert [name for name, value in load_record(label).items() if moment.search(str(value))] == []


def test_a_call_is_spoken_as_each_runtime_offers_it():
    call = Call("my srv-x", "a.b", {"a": 1})
    assert spoken("claude", call) == Spoken("mcp__my_srv-x__a_b", {"a": 1})
    assert spoken("codex", call) == Spoken("a_b", {"a": 1}, "mcp__my_srv_x")
    assert spoken("pi", call) == Spoken("mcp", {"server": "my srv-x", "tool": "a.b", "args": '{"a": 1}'})
    assert [spoken("pi", Call("", tool)).name for tool in ("", "mcp__srv")] == ["mcp", "mcp__srv"]


def test_only_what_is_there_for_servers_counts_as_offered():
    assert of_servers("claude", ["Read", "mcp__b__x", "mcp__a__x"]) == ["mcp__a__x", "mcp__b__x"]
    assert of_servers("codex", ["shell", "mcp__a/x", "web_search"]) == ["mcp__a/x"]
    assert of_servers("pi", ["read", "bash", "edit", "write", "mcp", "srv_x"]) == ["mcp", "srv_x"]


def test_what_a_real_program_makes_of_itself_is_kept_beside_it_and_a_fake_s_time_alone_is_hurried(tmp_path):
    fake = fake_of(load_profile(VERSIONS[0]))
    real = fake._replace(kind="real", adapter="/cache/pi/node_modules/pi-mcp-adapter/index.ts")
    assert kept_folder(real, tmp_path) == Path("/cache/pi/kept")
    assert kept_folder(fake, tmp_path) == tmp_path / "kept" / fake.label
    for subject, scale in ((fake, 5), (real, 1)):
        with Trial(subject, tmp_path) as trial:
            trial.hurry(5)
            assert trial.pace.scale == scale
            assert trial.environment().get(TIME_SCALE_VARIABLE) == {5: "5", 1: None}[scale]


def test_a_proxy_is_known_by_each_form_of_its_server_s_name_and_by_no_other():
    assert pinned_names(["my-srv"]) == ["mcp__my_srv"]
    assert pinned_names(["a-b", "a_b"]) == []
    assert is_of("mcp___mcpns_61_20_62", "a b")
    assert is_of("mcp___mcpns_a_20_b", "a b")
    assert not is_of("mcp__ab", "a b")


def test_an_entry_in_parts_is_forgotten_with_all_of_them():
    assert list(parts("sha256-x", '{"chunkCount": 2, "chunkDigest": "d"}')) == [
        "sha256-x.chunk.d.0",
        "sha256-x.chunk.d.1",
    ]
    assert len(list(parts("sha256-x", '{"chunkCount": 1000000}'))) == 64
    for text in (None, "{", "[]", "{}"):
        assert list(parts("sha256-x", text)) == []
