"""What an observation means, and how the reports tell it."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import combinations
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema

from fake_runtimes.codex.bugs import LOGIN_IS_LOST, REFRESH_IS_UNUSED
from harness.canary.claims import Claim, all_probes
from harness.canary.differing import differences
from harness.canary.judging import NOTHING, Likeness, Verdict, alike, judge
from harness.canary.records import load_record, recorded_labels
from harness.canary.result import Canary, Missing
from harness.canary.running import NOT_MEASURABLE, Problem
from harness.canary.subject import FAKE, REAL
from harness.canary.workarounds import Need, evidence
from harness.cli.arguments.canary import CANARY_FORMATS
from harness.next_steps import Step, step_lines
from harness.report.canary.formats import FORMATS, formats
from harness.report.canary.json import SCHEMA
from harness.report.canary.summary import changed_parts, excerpts, is_news, rests_on, what_changed, workaround_line
from scenarios.report_schemas import schema, validate
from scenarios.units.canary_results import BEFORE, NOW, SECRET, checked, clean, measured, upgrade

XSD = xmlschema.XMLSchema((files("harness.report") / "schemas/junit.xsd").read_text("utf-8"))


def row_of(claim, *, before=NOTHING, real=NOTHING, fake=NOTHING, problem=None):
    """The row of one claim; what is NOTHING is not there."""

    def given(value):
        return {} if value is NOTHING else {claim.id: value}

    (row,) = judge(
        [claim],
        before=given(before),
        real=None if real is NOTHING and problem is None else measured(REAL, given(real), problem or {}),
        fake=None if fake is NOTHING else measured(FAKE, given(fake), {}),
    )
    return row


ASSUMED = Claim("claude.a.b", "", assumes=True, relied_on=("x",))
CONDITION = Claim("claude.a.b", "", assumes=lambda observed: observed > 3)
FREE, RESTED_ON = Claim("claude.a.b", ""), Claim("claude.a.b", "", relied_on=("x",))


@pytest.mark.parametrize(
    ("claim", "before", "observed", "verdict"),
    [
        (ASSUMED, NOTHING, True, Verdict.HOLDS),
        (ASSUMED, False, True, Verdict.HOLDS),
        (ASSUMED, NOTHING, False, Verdict.BROKEN),
        (ASSUMED, True, False, Verdict.BROKEN),
        (ASSUMED, False, False, Verdict.KNOWN),
        (ASSUMED, False, None, Verdict.KNOWN),
        (CONDITION, 4, 5, Verdict.HOLDS),
        (CONDITION, 4, 3, Verdict.BROKEN),
        (CONDITION, 2, 3, Verdict.KNOWN),
        (FREE, NOTHING, 1, Verdict.UNRECORDED),
        (FREE, None, None, Verdict.SAME),
        (FREE, 1, 2, Verdict.CHANGED),
        (FREE, 1, True, Verdict.CHANGED),
        (RESTED_ON, 1, 2, Verdict.BROKEN),
        (RESTED_ON, 1, 1, Verdict.SAME),
    ],
)
def test_a_verdict_is_of_the_assumption_first_and_then_of_the_record(claim, before, observed, verdict):
    assert row_of(claim, before=before, real=observed).verdict is verdict


def test_a_claim_without_observation_never_holds():
    row = row_of(ASSUMED, before=True, problem={ASSUMED.id: Problem(NOT_MEASURABLE, "no macOS here")})
    assert (row.verdict, row.reason, row.fails) == (Verdict.NOT_MEASURABLE, "no macOS here", False)


@pytest.mark.parametrize(
    ("claim", "before", "real", "fake", "likeness"),
    [
        (FREE, NOTHING, {"a": 1, "b": 2}, {"b": 2, "a": 1}, Likeness.AGREES),
        (FREE, 1, 2, 1, Likeness.DIFFERS),
        (FREE, 1, NOTHING, 1, Likeness.AGREES),
        (FREE, 1, NOTHING, 2, Likeness.DIFFERS),
        (FREE, NOTHING, NOTHING, 2, Likeness.NOT_COMPARED),
        (FREE._replace(not_modelled="why"), 1, 2, 1, Likeness.NOT_MODELLED),
    ],
)
def test_a_fake_is_held_against_the_program_or_against_its_record(claim, before, real, fake, likeness):
    assert row_of(claim, before=before, real=real, fake=fake).likeness is likeness


def test_a_fake_without_an_answer_differs():
    row = judge([FREE], before={FREE.id: 1}, real=None, fake=measured(FAKE, {}, {FREE.id: Problem("x", "KeyError")}))[0]
    assert (row.likeness, row.fake_reason, row.fails) == (Likeness.DIFFERS, "KeyError", True)


def test_differences_are_told_by_their_smallest_parts():
    old = {"same": 1, "list": [1, {"x": 2}], "gone": 0, "longer": [1]}
    new = {"same": 1, "list": [1, {"x": 3}], "came": 0, "longer": [1, 2]}
    assert [tuple(each) for each in differences(old, new)] == [
        ("list (2 of 2).x", 2, 3),
        ("gone", 0, NOTHING),
        ("longer", [1], [1, 2]),
        ("came", NOTHING, 0),
    ]
    assert list(differences(old, old)) == []
    assert not alike([True], [1])


def test_long_texts_are_shown_where_they_differ():
    one, other = excerpts(f"{'a' * 300}, code 429{'b' * 300}", f"{'a' * 300}, code 430: later{'b' * 300}")
    assert one == f"...{'a' * 22}, code 429{'b' * 30}..."
    assert other == f"...{'a' * 22}, code 430: later{'b' * 30}..."
    assert excerpts("short", "shorter") == ("short", "shorter")


# --- exit codes and last lines


def test_what_broke_makes_it_1_what_is_missing_3_and_nothing_decided_never_passes():
    missing = (Missing("codex@1.0.0", "why"),)
    assert upgrade().exit_code == 1
    assert clean().exit_code == 0
    assert clean()._replace(missing=missing).exit_code == 3
    assert upgrade()._replace(missing=missing).exit_code == 1
    undecided = checked(None, measured(FAKE, NOW, {}), before={})
    assert Canary((undecided,), (), 1.0, 2).exit_code == 3


def test_what_is_left_behind_fails():
    left = clean().checked[0]
    real = measured(REAL, {}, {}, left=("process 7 of keys",))
    assert Canary((left._replace(real=real),), (), 1.0, 2).exit_code == 1


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("run", [upgrade(), clean()], ids=["upgrade", "clean"])
def test_reports_look_as_they_did(name, run, snapshot):
    assert FORMATS[name](run) == snapshot


def test_the_text_is_narrow_and_ends_with_verdict_counts_time_seed_and_exit_code():
    lines = FORMATS["text"](upgrade()).splitlines()
    assert lines[-1].startswith("FAIL  2 broken, 1 failing scenario, ")
    assert "; fakes: 1 differs, 2 not compared, 1 not modelled, 12 agree; " in lines[-1]
    assert lines[-1].endswith("; 97.0 s; seed none; exit 1")
    assert max(map(len, lines[:-1])) <= 100


def titles(run):
    """The claims below each title of a text, in order."""
    found: dict[str, list[str]] = {}
    for line in FORMATS["text"](run).splitlines():
        if line[:2] == "  " and line[2:3].isupper() and line.strip().split()[0].isupper():
            found[line.strip()] = []
        elif line[:2] == "  " and line[2:3] in "!~?-":
            found[list(found)[-1]].append(line.split()[1])
    return {title: claims for title, claims in found.items() if claims}


def many(rows=20):
    """An upgrade in which so many claims changed that something hangs on, each in a way of its own."""
    claims = [FREE._replace(id=f"claude.many.{number}", reads=("log_wording",)) for number in range(rows)]
    before, now = (({claim.id: [at, number] for number, claim in enumerate(claims)}) for at in (0, 1))
    (one,) = upgrade().checked
    more = judge(claims, before=before, real=measured(REAL, now, {}), fake=None)
    return upgrade()._replace(checked=(one._replace(rows=(*one.rows, *more)),))


def test_long_lists_are_counted_and_shown_where_they_are_asked_for():
    short, long = (formats(details=details)["text"](many()).splitlines() for details in (False, True))
    told = "  ~ CHANGED, and a line of a profile or a rule hangs on it: 21 claims; --details lists them"
    assert told in short
    assert told not in long
    assert not any("claude.many." in line for line in short)
    assert sum(line.startswith("  ~ claude.many.") for line in long) == 20
    assert len(long) > len(short) + 40
    assert [line for line in short if line.startswith("  ! ")] == [line for line in long if line.startswith("  ! ")]
    markdown = FORMATS["markdown"](many())
    assert "<details><summary>CHANGED, and a line of a profile or a rule hangs on it: 21 claims</summary>" in markdown
    assert markdown.count("- `claude.many.") == 20


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_what_breaks_comes_first_then_what_follows_from_it_then_the_lists(name):
    text = FORMATS[name](many())
    words = ("BREAKS", "workaround", "scenarios", "CHANGED, and", "explain claude.log.closed")
    places = [text.lower().index(word.lower()) for word in words]
    assert places == sorted(places)


def test_alike_changes_of_several_claims_are_one():
    claims = [FREE._replace(id=f"claude.a.{number}", assumes=lambda seen: bool(seen)) for number in range(3)]
    rows = judge(
        claims,
        before={claim.id: ["x", 1] for claim in claims},
        real=measured(REAL, {claim.id: ["y", 1] for claim in claims}, {}),
        fake=None,
    )
    (one,) = clean().checked
    text = FORMATS["text"](clean()._replace(checked=(one._replace(rows=rows),)))
    assert '  ~ claude.a.0, claude.a.1, claude.a.2  was ["x", 1], now ["y", 1]' in text.splitlines()


def test_positions_are_told_by_what_they_are_called():
    claim = FREE._replace(parts=("exit code", "what is said"))
    assert what_changed(row_of(claim, before=[2, ["a"]], real=[0, ["b"]])) == (
        'exit code: was 2, now 0; what is said: was "a", now "b"'
    )
    assert what_changed(row_of(claim, before=[2, ["a", "c"]], real=[2, ["b", "c"]])) == (
        'what is said (1 of 2): was "a", now "b"'
    )
    long = "x y " * 60
    assert what_changed(row_of(FREE, before=[long, 1], real=[long, 2])) == "(2 of 2): was 1, now 2"


def test_every_change_between_recorded_versions_names_the_position_or_shows_the_whole():
    nameless = set()
    records = {label: load_record(label) for label in recorded_labels()}
    for claim in (claim for probe in all_probes() for claim in probe.claims):
        seen = [record[claim.id] for record in records.values() if claim.id in record]
        for old, new in combinations(seen, 2):
            if re.search(r"(^|; )\(\d+ of", changed_parts(old, new, claim.parts)):
                nameless.add(claim.id)
    assert nameless == {"claude.log.call-died"}, "but for the lines of a log, which have no names"


def test_every_list_of_names_of_parts_is_as_long_as_what_was_observed():
    for claim in (claim for probe in all_probes() for claim in probe.claims if claim.parts):
        seen = [record[claim.id] for label in recorded_labels() if claim.id in (record := load_record(label))]
        assert any(len(each) == len(claim.parts) for each in seen), claim.id


def test_a_letter_that_is_repeated_for_long_is_told_with_how_often():
    old, new = f"mcp__P/{'t' * 41}_457de8c957ff", f"mcp__P/{'t' * 53}"
    assert what_changed(row_of(FREE, before=old, real=new)) == 'was "mcp__P/t{41}_457de8c957ff", now "mcp__P/t{53}"'
    assert what_changed(row_of(FREE, before="t" * 11, real="u")) == f'was "{"t" * 11}", now "u"'


@pytest.mark.requirement("writers-codex-workaround-bugs")
def test_a_workaround_is_told_as_what_the_version_has_and_what_follows():
    lines = {found.workaround.bug: workaround_line(found) for found in evidence(upgrade().checked[0].rows)}
    assert lines[LOGIN_IS_LOST] == (
        "openai/codex#15122: this version has no longer the bug that Codex has forgotten at its next start what "
        "somebody has signed in to with it (not shown by codex.login.kept); no longer needed for that: Zimmer writes "
        "Codex's store at every spawn"
    )
    assert lines[REFRESH_IS_UNUSED].startswith("openai/codex#17265: this version has the bug that Codex does not use a")
    assert "; still needed for that: Zimmer renews tokens" in lines[REFRESH_IS_UNUSED]


def test_what_matters_most_for_an_upgrade_comes_first():
    assert list(titles(upgrade()).items())[:4] == [
        ("BREAKS what Zimmer relies on", ["claude.log.closed", "claude.budget.silent"]),
        ("CHANGED, and a line of a profile or a rule hangs on it", ["claude.log.started"]),
        ("ANSWERS OTHERWISE, and what is relied on of it still holds", ["claude.retry.often"]),
        ("CHANGED, nothing of ours hangs on it", ["claude.protocol.probe", "codex.refresh.expired"]),
    ]


def test_what_was_broken_before_is_news_where_it_is_broken_otherwise():
    rows = {each: row_of(ASSUMED, before=False, real=each) for each in (False, None)}
    assert {each: row.verdict for each, row in rows.items()} == {False: Verdict.KNOWN, None: Verdict.KNOWN}
    assert {each: is_news(row) for each, row in rows.items()} == {False: False, None: True}


@pytest.mark.parametrize(
    ("before", "observed", "line"),
    [
        (1, 2, "was 1, now 2"),
        ({"a": 1, "b": 2, "c": 0}, {"a": 3, "c": 0}, "a: was 1, now 3; b: was 2, now nothing"),
        (
            [1, 2, 3, 4, 5],
            [0, 0, 0, 0, 0],
            "was [1, 2, 3, 4, 5], now [0, 0, 0, 0, 0]",
        ),
        ("a\nb", "a\nc", 'was "a\\nb", now "a\\nc"'),
    ],
)
def test_the_old_and_the_new_answer_are_one_line(before, observed, line):
    assert what_changed(row_of(FREE, before=before, real=observed)) == line


def test_an_answer_that_changed_is_told_with_what_hangs_on_it():
    claim = FREE._replace(relied_on=("x-y",), reads=("line_a",), derive={"line_b": bool, "line_a": bool})
    assert rests_on(row_of(claim, before=1, real=2)) == "rules: x-y; profile lines: line_b, line_a"
    assert rests_on(row_of(FREE, before=1, real=2)) == ""


# --- what works around a bug


def needs(*observed):
    """The need of what works around a bug, by what two claims that are about it were observed to say."""
    claims = [
        FREE._replace(id=f"codex.a.{number}", shows={LOGIN_IS_LOST: lambda seen: seen["lost"]}) for number in (1, 2)
    ]
    answers = {claim.id: each for claim, each in zip(claims, observed, strict=True) if each is not NOTHING}
    (found,) = evidence(judge(claims, before={}, real=measured(REAL, answers, {}), fake=None))
    return found.need


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize(
    ("one", "other", "need"),
    [
        ({"lost": False}, {"lost": False}, Need.NO_LONGER),
        ({"lost": True}, {"lost": False}, Need.STILL),
        ({"lost": True}, NOTHING, Need.STILL),
        ({"lost": False}, NOTHING, Need.UNKNOWN),
        ({"lost": False}, {}, Need.UNKNOWN),
        (NOTHING, NOTHING, Need.UNKNOWN),
    ],
)
def test_a_workaround_may_go_only_when_every_claim_about_its_bug_says_so(one, other, need):
    assert needs(one, other) is need


@pytest.mark.requirement("writers-codex-workaround-bugs")
def test_a_bug_is_not_gone_where_a_claim_about_it_was_not_asked():
    claims = [FREE._replace(id=f"codex.a.{number}", shows={LOGIN_IS_LOST: bool}) for number in (1, 2)]
    rows = judge(claims[:1], before={}, real=measured(REAL, {"codex.a.1": 0}, {}), fake=None)
    assert [found.need for found in evidence(rows)] == [Need.NO_LONGER]
    (found,) = evidence(rows, claims[1:])
    assert (found.need, found.silent) == (Need.UNKNOWN, ("codex.a.2",))
    (one,) = clean().checked
    told = FORMATS["text"](clean()._replace(checked=(one._replace(rows=rows, unasked=tuple(claims[1:])),)))
    assert "this version may have the bug that Codex has forgotten" in " ".join(told.split())
    assert "no answer of codex.a.2); it is not known whether this is needed: Zimmer writes" in " ".join(told.split())
    assert list(evidence((), claims)) == []


def test_a_fake_alone_says_nothing_of_a_workaround():
    claim = FREE._replace(shows={LOGIN_IS_LOST: bool})
    assert list(evidence(judge([claim], before={}, real=None, fake=measured(FAKE, {claim.id: 1}, {})))) == []


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_which_workaround_is_still_needed(name):
    text = " ".join(FORMATS[name](upgrade()).split())
    for bug, need in ((LOGIN_IS_LOST, "no longer needed"), (REFRESH_IS_UNUSED, "still needed")):
        assert bug.partition("#")[2] in text
        assert need in text


def test_no_format_shows_a_secret():
    for render in FORMATS.values():
        assert SECRET not in render(upgrade())


def test_the_command_knows_every_format():
    assert set(FORMATS) == set(CANARY_FORMATS)


# --- JSON and JUnit


@pytest.mark.parametrize("run", [upgrade(), clean()], ids=["upgrade", "clean"])
def test_the_document_fits_its_schema(run):
    report = json.loads(FORMATS["json"](run))
    validate("canary-report", report)
    assert schema("canary-report")["properties"]["schema"]["const"] == SCHEMA == report["schema"]
    steps = step_lines(Step(**each) for each in report["next"])
    assert [line for line in FORMATS["text"](run).splitlines() if line in steps] == steps
    assert bool(steps) is bool(report["summary"]["exit_code"])
    report["runtimes"][0]["claims"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        validate("canary-report", report)


def test_a_scenario_that_fails_where_no_claim_changed_is_what_to_play_next():
    (one,), (of_upgrade,) = clean().checked, upgrade().checked
    run = clean()._replace(checked=(one._replace(played=of_upgrade.played),))
    steps = json.loads(FORMATS["json"](run))["next"]
    assert [step["command"] for step in steps] == [f"mcp-harness run 498 --runtime {one.label}"]


def test_the_document_holds_whole_observations():
    report = json.loads(FORMATS["json"](upgrade()))
    claims = {each["id"]: each for each in report["runtimes"][0]["claims"]}
    changed = claims["claude.protocol.order"]
    assert (changed["recorded"], changed["observed"]) == ([BEFORE[changed["id"]]], [NOW[changed["id"]]])
    assert claims["claude.keychain.macos"]["observed"] == []
    assert claims["claude.log.closed"]["requirements"] == ["failure-stderr-rejection", "status-claude-log-wording"]


def test_junit_has_a_case_for_each_claim_and_for_each_answer_of_the_fake():
    text = FORMATS["junit"](upgrade())
    XSD.validate(text)
    root = ElementTree.fromstring(text)  # noqa: S314 - written by ourselves
    cases = {case.get("name"): case for case in root.iter("testcase")}
    kinds = {name: [each.tag for each in case if each.tag != "system-out"] for name, case in cases.items()}
    assert kinds["claude.log.closed"] == ["failure"]
    assert kinds["claude.log.closed (fake)"] == ["failure"]
    assert kinds["claude.refresh.dropped"] == ["error"]
    assert kinds["claude.keychain.macos"] == ["skipped"]
    assert kinds["claude.key.plain"] == kinds["claude.protocol.probe"] == []
    assert kinds["scenario 498"] == ["failure"]
    assert kinds["codex@9.9.9"] == ["error"]
    assert root.get("failures") == str(sum(kind == ["failure"] for kind in kinds.values()))
