"""`mcp-harness canary` with toys in place of the runtimes that it installs."""

from __future__ import annotations

import json

import jsonschema
import pytest

from fake_runtimes.profile import ClaudeProfile, profile_at
from harness.canary import bisecting, checking, claims, records
from harness.canary.bisecting import bisect, looks
from harness.canary.cache import NotInstalledError, untold
from harness.canary.claims import Probe
from harness.canary.installing import Installed, parse_wanted
from harness.cli import canary as command
from harness.cli import main
from harness.report.canary.changes import foretold
from scenarios.report_schemas import validate
from scenarios.units.canary_toys import asking, claim, toy

PINNED = "claude-2.1.268"
VERSION = claim("version", assumes=True, relied_on=("credential-key-preimage",), affects="every entry")
SPEAKS = claim("speaks", derive={"default_timeout_ms": lambda observed: observed * 1000})
UNFAKED = claim("unfaked", not_modelled="nobody needs it")


def starts(trial):
    run = trial.run("--version")
    known = {"1.0.0": 45, "9.9.8": 60, "9.9.9": 60, "9.9.7": 50}
    return {
        VERSION.id: trial.subject.version in run.stdout and trial.subject.version < "9.9.9",
        SPEAKS.id: known.get(trial.subject.version, 45),
        UNFAKED.id: trial.subject.kind,
    }


@pytest.fixture
def toys(tmp_path, monkeypatch):
    """One probe, no records, and whatever is wanted is a toy; the folder of the records."""
    probes: tuple[Probe, ...] = (asking(starts, VERSION, SPEAKS, UNFAKED),)
    for module in (claims, command):
        monkeypatch.setattr(module, "all_probes", lambda: probes)
    folder = tmp_path / "measured"
    folder.mkdir()
    for module in (records, command):
        monkeypatch.setattr(module, "record_folder", lambda: folder)

    def installed(wanted, cache, environment, tell):
        if wanted.version == "6.6.6":
            raise NotInstalledError(f"{wanted.label} was not installed: no network")
        argv = toy(tmp_path, wanted.version).argv
        return Installed(wanted.label, wanted.family, wanted.version, argv, None, None, "ab" * 32)

    for module in (checking, bisecting):
        monkeypatch.setattr(module, "installed", installed)
    monkeypatch.setattr(bisecting, "published", lambda *_: ["1.0.0", "2.0.0", "6.6.6", "9.9.8", "9.9.9"])
    monkeypatch.setattr(command, "published", bisecting.published)
    return folder


def record(folder, **observed):
    """What is recorded of the pinned version."""
    observations = {f"claude.toy.{name}": value for name, value in observed.items()}
    (folder / f"{PINNED}.json").write_text(json.dumps(observations))


def outcome(capsys, *words):
    """Exit code, the lines of stdout, the last line of stderr."""
    code = main(["canary", *words])
    said = capsys.readouterr()
    return code, said.out.splitlines(), (said.err.splitlines() or [""])[-1]


def test_an_upgrade_that_changes_nothing_passes(toys, capsys):
    record(toys, version=True, speaks=45, unfaked="real")
    code, lines, _ = outcome(capsys, "claude@2.0.0")
    assert code == 0
    assert lines[0].startswith("claude@2.0.0 against the pinned claude@2.1.268: 3 claims by 1 probe in ")
    assert lines[-1].startswith("PASS  3 held; ")
    assert lines[-1].endswith("; seed none; exit 0")


def test_an_upgrade_that_breaks_what_is_relied_on_fails(toys, capsys):
    record(toys, version=True, speaks=45, unfaked="real")
    code, lines, _ = outcome(capsys, "claude@9.9.9")
    assert code == 1
    broken = next(at for at, line in enumerate(lines) if "BREAKS" in line)
    assert lines[broken + 1 : broken + 4] == [
        "  ! claude.toy.version the toy does version",
        "      was true, now false",
        "      rules: credential-key-preimage",
    ]
    assert "  ~ claude.toy.speaks the toy does speaks" in lines
    assert "  FOR A CATALOG   every entry" in lines
    assert "  next: mcp-harness explain claude.toy.version" in lines
    assert "        mcp-harness canary claude@9.9.9 --write-profile" in lines
    assert lines[-1].startswith("FAIL  1 broken, 1 changed, 1 held; ")


def test_what_would_fail_is_measured_once_more_alone(toys, capsys, monkeypatch):
    tries = []

    def is_late_at_first(trial):
        tries.append(trial.subject.kind)
        return {VERSION.id: len(tries) > 1}

    for module in (claims, command):
        monkeypatch.setattr(module, "all_probes", lambda: (asking(is_late_at_first, VERSION),))
    code, lines, _ = outcome(capsys, "claude@2.0.0")
    assert (code, tries) == (0, ["real", "real"])
    said = " ".join(" ".join(lines).split())
    assert "MEASURED TWICE 1 probe (is-late-at-first): what a first run says of a change or a failure may be" in said
    assert "only the answers of that run are told here" in said


def test_what_is_broken_already_is_told_and_does_not_fail(toys, capsys):
    record(toys, version=False, speaks=60, unfaked="real")
    code, lines, _ = outcome(capsys, "claude@9.9.9")
    assert (code, "1 broken as recorded" in lines[-1]) == (0, True)


def test_a_run_of_some_claims_knows_which_it_left_out(toys, monkeypatch):
    monkeypatch.setattr(claims, "all_probes", lambda: (asking(starts, VERSION, SPEAKS, UNFAKED),))
    asked = checking.Asked((parse_wanted("claude@2.0.0"),), ("*.version",))
    (checked,) = checking.run_canary(asked, {}, untold).checked
    assert [row.claim.id for row in checked.rows] == [VERSION.id]
    assert [claim.id for claim in checked.unasked] == [SPEAKS.id, UNFAKED.id]


def test_globs_choose_claims_and_one_that_fits_nothing_is_unusable(toys, capsys):
    code, lines, _ = outcome(capsys, "claude@2.0.0", "--claims", "*.version", "--claims", "*.nothing")
    assert (code, lines[-1].startswith("PASS  1 held;")) == (0, True)
    code, _, error = outcome(capsys, "claude@2.0.0", "--claims", "*.nothing")
    assert code == 2
    assert error.endswith("no claim about claude is called *.nothing. mcp-harness canary list names all.")


def test_what_cannot_be_had_is_exit_3_and_one_line(toys, capsys):
    code, lines, error = outcome(capsys, "claude@6.6.6")
    assert (code, lines) == (3, [])
    assert error == "mcp-harness: error: claude-6.6.6 was not installed: no network"


def test_a_version_without_a_profile_is_nothing_to_hold_another_against(toys, capsys):
    code, lines, error = outcome(capsys, "claude@2.0.0", "--against", "claude@0.0.1")
    assert (code, lines) == (3, [])
    assert "--against: unknown runtime 'claude@0.0.1': known are claude@2.1.268, " in error


def test_the_others_are_measured_all_the_same(toys, capsys):
    code, lines, _ = outcome(capsys, "claude@2.0.0", "claude@6.6.6")
    assert code == 3
    assert lines[0].startswith("NOT MEASURED  claude@6.6.6: ")
    assert lines[-1].startswith("NOT RUN  2 not recorded, 1 held, 1 runtime not there;")


def test_a_fake_must_answer_as_the_program_does(toys, capsys):
    code, lines, _ = outcome(capsys, "claude@2.1.268", "--fakes")
    assert code == 0
    assert "  FAKE            2/2 claims agree with the fake; 1 not modelled" in lines
    assert "    - not modelled, nobody needs it: claude.toy.unfaked" in lines


def test_fakes_alone_are_held_against_the_records(toys, capsys):
    record(toys, version=True, speaks=44)
    code, lines, _ = outcome(capsys, "--fakes")
    assert code == 1
    assert lines[0].startswith("the fake claude@2.1.268 against what was recorded of claude@2.1.268: 3 claims")
    assert "        real 44, fake 45" in lines
    record(toys, version=True, speaks=45)
    code, lines, _ = outcome(capsys, "--fakes")
    assert code == 0
    (toys / f"{PINNED}.json").unlink()
    code, lines, _ = outcome(capsys, "--fakes")
    assert (code, lines[-1].split("  ")[0]) == (3, "NOT RUN")


def test_what_was_observed_is_recorded(toys, capsys):
    (toys / "claude-2.0.0.json").write_text('{"claude.toy.gone": 1, "claude.toy.version": false}')
    assert outcome(capsys, "claude@2.0.0", "--record")[0] == 0
    assert json.loads((toys / "claude-2.0.0.json").read_text()) == {
        "claude.toy.speaks": 45,
        "claude.toy.unfaked": "real",
        "claude.toy.version": True,
    }


def test_a_new_profile_is_written_and_its_fake_is_asked(toys, capsys, tmp_path):
    record(toys, version=True, speaks=45)
    place = tmp_path / "profiles"
    code, lines, _ = outcome(capsys, "claude@9.9.9", "--write-profile", "--profiles", str(place))
    assert code == 1
    written = profile_at(str(place / "claude-9.9.9.toml"))
    assert isinstance(written, ClaudeProfile)
    assert (written.version, written.default_timeout_ms) == ("9.9.9", 60_000)
    assert "default_timeout_ms = 60000 # claude.toy.speaks" in (place / "claude-9.9.9.toml").read_text()
    assert any(line.startswith("  SCENARIOS       ") for line in lines)
    assert any(line.startswith("  FAKE            2/2 claims agree") for line in lines)
    assert any(
        "1 line measured, 1 changed (default_timeout_ms)" in " ".join(lines[at : at + 2]) for at in range(len(lines))
    )


def test_another_version_may_be_what_it_is_held_against(toys, capsys):
    (toys / "claude-2.1.328.json").write_text('{"claude.toy.speaks": 60, "claude.toy.version": false}')
    code, lines, _ = outcome(capsys, "claude@9.9.9", "--against", "claude@2.1.328")
    assert (code, lines[0].startswith("claude@9.9.9 against claude@2.1.328: ")) == (0, True)


def test_bisecting_takes_away_what_it_has_installed_and_leaves_what_was_there(toys, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("MCP_HARNESS_CACHE", str(tmp_path / "cache"))
    runtimes, install = tmp_path / "cache/runtimes", vars(bisecting)["installed"]
    (runtimes / "claude-1.0.0").mkdir(parents=True)

    def installed(wanted, cache, environment, tell):
        program = install(wanted, cache, environment, tell)
        folder = cache / "runtimes" / wanted.label
        folder.mkdir(exist_ok=True)
        (folder / "program").write_text("x" * 2_000_000)
        return program

    monkeypatch.setattr(bisecting, "installed", installed)
    assert main(["canary", "--bisect", "claude.toy.speaks", "1.0.0..9.9.9"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [path.name for path in runtimes.iterdir()] == ["claude-1.0.0"]
    gone = [line for line in told if "removed again" in line]
    assert gone[0] == "canary: claude-9.9.9: removed again, 2 MB"
    assert {line.split(":")[1].strip() for line in gone} == {"claude-9.9.9", "claude-9.9.8", "claude-2.0.0"}


def test_bisecting_finds_the_version_and_passes_over_what_cannot_be_had(toys, capsys):
    code, lines, _ = outcome(capsys, "--bisect", "claude.toy.speaks", "1.0.0..9.9.9")
    assert code == 0
    assert lines[0] == "claude.toy.speaks: 5 versions of claude, 1.0.0..9.9.9"
    assert "  6.6.6: cannot be measured, passed over" in lines
    assert lines[-1].startswith(
        "FOUND  claude@9.9.8 changed it (or one of 6.6.6, which cannot be measured), 2.0.0 is as"
    )
    assert "  looked at: 1.0.0, 2.0.0, 9.9.8, 9.9.9" in lines
    assert "  cannot be measured: 6.6.6" in lines
    code, lines, _ = outcome(capsys, "--bisect", "claude.toy.speaks", "9.9.8..9.9.9")
    assert (code, lines[-1].startswith("SAME  claude 9.9.8..9.9.9: both ends answer alike; ")) == (0, True)
    assert not any("not looked at" in line for line in lines)
    code, _, error = outcome(capsys, "--bisect", "claude.toy.speaks", "6.6.6..9.9.9")
    assert (code, "6.6.6 cannot be measured" in error) == (3, True)


def test_bisecting_a_claim_that_changed_twice_finds_both_and_says_so(toys, capsys, monkeypatch):
    monkeypatch.setattr(command, "published", lambda *_: ["1.0.0", "2.0.0", "3.0.0", "9.9.7", "9.9.8", "9.9.9"])
    code, lines, _ = outcome(capsys, "--bisect", "claude.toy.speaks", "1.0.0..9.9.9")
    assert code == 0
    assert lines[-1].startswith("FOUND  it changes 2 times: first at claude@9.9.7, last at claude@9.9.8; ")
    first, last = (
        lines.index(f"  claude@{new}, after {old}:") for new, old in (("9.9.7", "3.0.0"), ("9.9.8", "9.9.7"))
    )
    assert lines[first + 1 : first + 3] == ["    was 45", "    now 50"]
    assert lines[last + 1 : last + 3] == ["    was 50", "    now 60"]


def test_bisecting_between_ends_that_are_alike_says_what_it_did_not_look_at(toys, capsys):
    code, lines, _ = outcome(capsys, "--bisect", "claude.toy.speaks", "1.0.0..2.0.0")
    assert (code, lines[-1].startswith("SAME  claude 1.0.0..2.0.0: both ends answer alike; ")) == (0, True)
    code, lines, _ = outcome(capsys, "--bisect", "claude.toy.unfaked", "1.0.0..9.9.9")
    assert "  not looked at: 3 others; what changed and changed back among these does not show" in lines, lines


def test_the_claims_are_listed_with_where_they_are_known(toys, capsys):
    record(toys, version=False, speaks=45)
    code, lines, _ = outcome(capsys, "list", "--claims", "*e*")
    assert code == 0
    assert lines[0] == "claude.toy.version  the toy does version"
    assert lines[1].strip() == f"measured; broken: {PINNED}"
    assert lines[3].strip() == f"measured; recorded: {PINNED}"
    assert lines[5].strip() == "measured; not recorded; not modelled: nobody needs it"
    assert lines[-1].startswith("3 claims; ")


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        ([], {PINNED: "seen", "claude-2.1.328": "seen"}),
        (["claude"], {PINNED: "seen", "claude-2.1.328": "seen"}),
        (["all"], {PINNED: "seen", "claude-2.1.328": "seen"}),
        (["claude@2.1.328"], {"claude-2.1.328": "seen"}),
    ],
)
def test_a_list_is_about_the_runtimes_and_versions_that_are_named(toys, capsys, words, recorded):
    record(toys, version=False, speaks=45)
    (toys / "claude-2.1.328.json").write_text('{"claude.toy.speaks": 60, "claude.toy.version": true}')
    assert main(["canary", "list", *words, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    validate("canary-list", document)
    listed = {each["id"]: each for each in document["claims"]}
    assert set(listed) == {VERSION.id, SPEAKS.id, UNFAKED.id}
    assert listed[SPEAKS.id]["versions"] == recorded
    assert listed[VERSION.id]["versions"] == {
        label: {PINNED: "broken", "claude-2.1.328": "holds"}[label] for label in recorded
    }
    document["claims"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        validate("canary-list", document)


def test_a_list_of_a_version_without_a_record_says_so_and_which_have_one(toys, capsys):
    record(toys, version=False, speaks=45)
    (toys / "codex-0.146.0.json").write_text("{}")
    for words in (["claude@0.0.1"], ["claude", "claude@0.0.1"], ["claude@0.0.1", "--format", "json"]):
        code, lines, error = outcome(capsys, "list", *words)
        assert (code, lines) == (2, [])
        assert error == (
            "mcp-harness: error: nothing is recorded of claude@0.0.1. There are records of claude@2.1.268. "
            "mcp-harness canary claude@0.0.1 measures it; with --record it has a record from then on."
        )


def test_bisecting_says_beforehand_how_many_versions_it_will_install_and_how_much_that_is(
    toys, capsys, monkeypatch, tmp_path
):
    monkeypatch.setenv("MCP_HARNESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache/runtimes/claude-1.0.0").mkdir(parents=True)
    _, lines, _ = outcome(capsys, "--bisect", "claude.toy.speaks", "1.0.0..9.9.9")
    assert lines[1] == ("  asks 2 versions where both ends answer alike, about 4 to find one change, more for several")
    assert lines[2] == (
        "  1 of these 5 versions is there already; each other one is installed and removed again: about 120 MB to "
        "download, 480 MB for 4"
    )
    assert lines[3].startswith("  1.0.0: ")


def test_what_is_there_already_is_not_foretold_as_a_download():
    assert list(foretold("codex", 2, 2)) == [
        "asks both",
        "2 of these 2 versions are there already; nothing is downloaded",
    ]
    assert list(foretold("codex", 2, 0))[1].endswith("about 140 MB to download, 280 MB for 2")
    assert list(foretold("pi", 60, 58))[1].endswith("about 80 MB to download, 160 MB for 2")


@pytest.mark.parametrize("versions", range(2, 40))
def test_one_change_is_found_by_no_more_looks_than_were_foretold(versions):
    names = [str(number) for number in range(versions)]

    def looked_at(first):
        return len(bisect(names, lambda at: int(at) >= first, untold).asked)

    asked = [looked_at(first) for first in range(1, versions)]
    assert max(asked) == looks(versions)


def test_reports_go_where_they_are_told(toys, capsys, tmp_path):
    place = tmp_path / "report.json"
    code, lines, _ = outcome(capsys, "claude@2.0.0", "--format", f"json={place}", "--format", "markdown")
    assert (code, lines[0].startswith("**PASS")) == (0, True)
    assert json.loads(place.read_text())["summary"]["exit_code"] == 0


def test_an_empty_cache_is_clean(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("MCP_HARNESS_CACHE", str(tmp_path / "cache"))
    code, lines, _ = outcome(capsys, "clean")
    assert (code, lines) == (0, [f"nothing to remove in {tmp_path / 'cache'}"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no runtime is named"),
        (["gemini@1.0.0"], "unknown runtime 'gemini@1.0.0'"),
        (["claude@latest-and-greatest"], "names no version"),
        (["--fakes", "--record"], "Name a runtime"),
        (["claude@2.0.0", "--against", "gemini@0.0.1"], "--against: unknown runtime"),
        (["claude@2.0.0", "--against", "codex"], "is no profile of claude"),
        (["claude@2.0.0", "--profiles", "x"], "Give both"),
        (["claude@2.0.0", "--workers", "0"], "from 1 to 64"),
        (["claude@2.0.0", "--format", "xml"], '--format: there is no format "xml"'),
        (["claude@2.0.0", "--format", "text", "--format", "json"], "both go to standard output"),
        (["clean", "claude"], "takes no runtime"),
        (["clean", "--format", "json"], "canary clean does not take --format. It takes no option."),
        (["install", "claude", "--claims", "x"], "canary install does not take --claims"),
        (
            ["list", "--record", "--workers", "2"],
            "canary list does not take --record, --workers. It takes --claims, --f",
        ),
        (["list", "gemini"], "unknown runtime 'gemini'"),
        (["claude@2.0.0", "--details", "--format", "json"], "--details is about the text"),
        (["list", "--details"], "canary list does not take --details"),
        (["list", "codex"], "no claim about codex is called *"),
        (["list", "--claims", "x"], "no claim about any runtime is called x"),
        (["list", "--format", "junit"], "Known formats: text, json."),
        (["--bisect", "claude.toy.speaks", "1.0.0..2.0.0", "--format", "json"], "--bisect does not take --format"),
        (["--bisect", "claude.toy.nothing", "1.0.0..2.0.0"], "there is no claim"),
        (["--bisect", "claude.toy.speaks", "2.0.0..1.0.0"], "Name the older version first"),
        (["--bisect", "claude.toy.speaks", "2.0.0"], "is no interval"),
        (["claude@2.0.0", "--bisect", "claude.toy.speaks", "1.0.0..2.0.0"], "Leave out claude@2.0.0"),
    ],
)
def test_unusable_arguments_are_one_line_and_exit_2(toys, capsys, words, said):
    code, lines, error = outcome(capsys, *words)
    assert (code, lines) == (2, [])
    assert said in error
