"""Whether each line of a profile is noticed, with toys; `scenarios/canary` asks it of the real probes, at night."""

from __future__ import annotations

import pytest

from fake_runtimes.profile import ProfileError, known_profiles, load_profile, profile_at, profile_text
from harness.canary.claims import Claim
from harness.canary.lines import check_lines
from harness.canary.profile_writing import lines_of, mutations, new_profile
from scenarios.units.canary_toys import asking

PROFILE = load_profile("claude-2.1.268")
EMPTY = Claim("claude.toy.empty", "an empty file is an error", reads=("empty_file_is_absent", "stdio_at_a_time"))
TYPES = Claim("claude.toy.types", "a web socket is no server", reads=("websocket_entries",), not_modelled="a toy")


def reads_an_empty_file(trial):
    trial.write(".mcp.json", "")
    trial.write_json("~/.claude/settings.json", {"enableAllProjectMcpServers": True})
    run = trial.run("mcp", "list")
    return {EMPTY.id: trial.normal(run.stdout + run.stderr), TYPES.id: 1}


def test_a_line_that_is_changed_is_told_by_a_claim_that_depends_on_it_and_by_no_other():
    noticed = check_lines(PROFILE, [asking(reads_an_empty_file, EMPTY, TYPES)])
    assert noticed.told_by == {"empty_file_is_absent": (EMPTY.id,)}
    assert noticed.unnoticed == ("stdio_at_a_time",)
    assert set(noticed.unread) == set(lines_of(PROFILE)) - {"empty_file_is_absent", "stdio_at_a_time"}


@pytest.mark.parametrize("name", known_profiles())
def test_every_line_has_other_values_and_each_makes_a_profile_in_which_it_alone_is_another(name, tmp_path):
    profile = load_profile(name)
    seen = set()
    for number, (field, text) in enumerate(mutations(profile)):
        place = tmp_path / f"{number}.toml"
        place.write_text(text)
        other = profile_at(str(place))
        changed = [each for each in profile._fields if getattr(profile, each) != getattr(other, each)]
        assert [each for each in changed if each != "name"] == [field]
        seen.add(field)
    assert seen == set(lines_of(profile))


def test_a_profile_file_may_be_called_anything_but_must_be_one(tmp_path):
    place = tmp_path / "any.toml"
    place.write_text(profile_text("pi-0.84.1+2.32.1"))
    assert profile_at(str(place)) == load_profile("pi-0.84.1+2.32.1")
    for text in ("[", "x = 1", ""):
        place.write_text(text)
        with pytest.raises(ProfileError):
            profile_at(str(place))


def derived(derive, observed=7, before=None, reads=()):
    """A new profile from one claim."""
    claim = Claim("claude.toy.x", "", derive=derive, reads=reads)
    return new_profile(PROFILE, "9.9.9", [claim], {claim.id: observed}, before or {})


def test_a_line_is_taken_from_what_was_observed_and_says_from_which_claim():
    written = derived({"default_timeout_ms": lambda observed: observed * 1000})
    assert (written.derived, written.changed) == (("default_timeout_ms",), ("default_timeout_ms",))
    assert "default_timeout_ms = 7000 # claude.toy.x\n" in written.text
    assert "stdio_at_a_time = 3 # MCP_SERVER_CONNECTION_BATCH_SIZE overrides it; not measured on this" in written.text
    assert written.text.startswith("# claude 9.9.9: written by mcp-harness canary from claude-2.1.268.\n")


def test_a_line_that_is_measured_as_it_was_keeps_its_comment():
    written = derived({"default_timeout_ms": lambda observed: 30_000})
    assert (written.derived, written.changed) == (("default_timeout_ms",), ())
    assert "default_timeout_ms = 30000\n" in written.text


def test_a_line_whose_claims_see_what_was_recorded_is_confirmed():
    reads = ("default_timeout_ms",)
    assert "default_timeout_ms" not in derived({}, 7, {"claude.toy.x": 7}, reads).kept
    assert "default_timeout_ms" in derived({}, 7, {"claude.toy.x": 8}, reads).kept


@pytest.mark.parametrize(
    "derive",
    [
        {"default_timeout_ms": lambda observed: observed["x"]},
        {"default_timeout_ms": lambda observed: "7"},
        {"default_timeout_ms": lambda observed: True},
        {"reserved_names": lambda observed: [1]},
        {"no_such_line": lambda observed: 1},
    ],
    ids=["raises", "text", "truth", "numbers", "unknown"],
)
def test_what_an_observation_does_not_give_is_kept_and_told(derive):
    written = derived(derive)
    assert (written.derived, len(written.problems)) == ((), 1)
    assert "default_timeout_ms = 30000 # not measured on this version" in written.text


def test_a_list_is_written_as_a_list():
    written = derived({"reserved_names": lambda observed: ("one", "two")})
    assert 'reserved_names = ["one", "two"] # claude.toy.x\n' in written.text
