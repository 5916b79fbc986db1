"""The probes of Pi give, of the fakes, what was recorded of the real programs: so the fakes stay certified."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fake_runtimes.pi.variables import MEMORY, STORE_VARIABLE
from fake_runtimes.profile import load_profile
from fake_servers.models import Call as Spoken
from harness.canary.claims import chosen
from harness.canary.probes.pi import keyring as pi_keyring
from harness.canary.probes.pi.names import is_of, pinned_names
from harness.canary.profile_writing import derived_fields, fields_of
from harness.canary.records import load_record
from harness.canary.running import NOT_MEASURABLE, Problem, measure
from harness.canary.script import Call
from harness.canary.settings import kept_folder, of_servers, spoken
from harness.canary.subject import fake_of
from harness.canary.trial import Trial, TrialError
from harness.world.outside.keyring import NoKeyringError
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
    moment = re.compile(r"127\.0\.0\.1:\d|mcp-trial|\b20\d\d-\d\d-\d\dT|\b1[67]\d{8,}\b")
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


# --- Pi's keyring


@pytest.fixture
def refusing(monkeypatch):
    """A system that gives nobody a keyring of one's own."""

    def refuse(mark):
        raise NoKeyringError("the system allows no user namespace: Operation not permitted")

    monkeypatch.setattr(pi_keyring, "RunKeyring", refuse)


def test_every_program_of_pi_keeps_credentials_in_its_memory_but_where_its_trial_has_a_keyring(tmp_path):
    with Trial(fake_of(load_profile(VERSIONS[0])), tmp_path) as trial:
        assert trial.environment()[STORE_VARIABLE] == MEMORY
        with pi_keyring.keyring(trial):
            assert STORE_VARIABLE not in trial.environment()
    with Trial(fake_of(load_profile("codex-0.169.0")), tmp_path) as trial:
        assert STORE_VARIABLE not in trial.environment()


def test_where_a_trial_can_have_no_keyring_its_claims_are_not_measurable_and_say_why_in_one_line(refusing):
    real = fake_of(load_profile(VERSIONS[0]))._replace(kind="real", adapter="/nowhere/a/b/c/index.ts")
    (measured,) = measure([(real, chosen("pi", ["pi.store.*", "pi.beside.*", "pi.refresh.stored"]))], workers=1)
    why = "the system allows no user namespace: Operation not permitted"
    told = f"Pi keeps credentials in the kernel's keyring, and a trial can have none of its own: {why}"
    assert len(measured.problems) == 12
    assert set(measured.problems.values()) == {Problem(NOT_MEASURABLE, told)}
    assert (measured.observations, measured.left) == ({}, ())


def test_programs_are_started_by_the_words_that_their_trial_is_inside_of(tmp_path):
    real = fake_of(load_profile(VERSIONS[0]))._replace(kind="real", argv=("/bin/echo", "program"))
    with Trial(real, tmp_path) as trial:
        trial.inside = ("/bin/echo", "inside")
        assert trial.run("word").stdout == "inside /bin/echo program word\n"


def test_a_keyring_that_cannot_be_used_is_told_with_the_last_words_of_who_tried():
    kernel = pi_keyring.Kernel("/nowhere")
    with pytest.raises(TrialError, match=r"^the trial's keyring cannot be used: .*No such file"):
        kernel.read("one")
