"""Failure files: a failed run that is replayed strictly."""

from __future__ import annotations

import pytest

from harness.errors import UserInputError
from harness.scenario import failure as failures
from harness.scenario.failure import (
    Failure,
    decisions_text,
    failure_of,
    failure_text,
    parse_decisions,
    read_failure,
    replay,
)
from harness.scenario.invariants import Finding
from harness.scenario.library import find
from harness.scenario.production import play
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.signature import signature
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from harness.world.model import Decision, Event, Seeded
from scenarios.playing import played, short

FALLS = "[[expect]]\nexit = 7\nsays = 'it exits 7'"
SEED = 11
NO_DECISIONS = ("walk", "run.1", "run=2", "run*0", "run*", "*3", "run+", "run.3=3", "run**2", "run*٣", "run.9999999999")


def failed(*parts: str, runtime: str = "codex") -> Failure:
    """The failure of a short scenario with an expectation that nothing meets, in a drawn order."""
    scenario = read_scenario(short(*(parts or (FALLS,))))
    return failure_of(play(scenario, runtime, Seeded(SEED), seed=SEED), seed=SEED)


def test_a_failure_is_the_same_after_writing_and_reading():
    failure = failed()
    assert read_failure(failure_text(failure)) == failure


def test_a_failure_replays_with_the_same_trace():
    failure = read_failure(failure_text(failed()))
    again = replay(failure)
    assert again.report.verdict is Verdict.FAIL
    assert again.report.trace_digest == failure.trace_digest
    assert again.report.decisions == failure.decisions
    assert not again.hint


def test_the_whole_scenario_is_in_the_file_even_a_catalog_that_was_a_file(tmp_path):
    (tmp_path / "mcp.json").write_text('{"a": {"type": "stdio", "command": "/opt/a"}}', encoding="utf-8")
    text = 'schema = 1\nid = "x"\ntitle = "x"\nruntime = "pi"\ncatalog = "mcp.json"\n[[step]]\nstart = "S"\n' + FALLS
    scenario = read_scenario(text, folder=tmp_path)
    failure = failure_of(play(scenario, "pi", Seeded(1), seed=1), seed=1)
    assert replay(read_failure(failure_text(failure))).report.verdict is Verdict.FAIL


def test_a_choice_of_another_kind_is_a_divergence_that_tells_where():
    failure = failed()
    index = next(index for index, each in enumerate(failure.decisions) if each.kind == "run")
    other = Decision("stall", 2, 0)
    changed = failure._replace(decisions=(*failure.decisions[:index], other, *failure.decisions[index + 1 :]))
    report = replay(changed).report
    assert report.verdict is Verdict.DIVERGENCE
    assert f"decision {index}" in report.detail
    assert "recorded stall of 2" in report.detail


def test_a_list_that_ends_too_early_or_too_late_is_a_divergence():
    failure = failed()
    for decisions in (failure.decisions[:-1], (*failure.decisions, Decision("run", 2, 0))):
        assert replay(failure._replace(decisions=decisions)).report.verdict is Verdict.DIVERGENCE


def test_all_choices_met_but_something_else_falls_is_a_divergence():
    failure = failed()
    report = replay(failure._replace(signature=failure.signature._replace(rule="it exits 8"))).report
    assert report.verdict is Verdict.DIVERGENCE
    assert "it exits 7" in report.detail


def test_what_was_put_right_passes():
    failure = failed()
    failure.scenario["expect"][0]["exit"] = 0
    assert replay(failure).report.verdict is Verdict.PASS


def test_code_that_takes_another_path_is_a_divergence_not_another_failure():
    scenario = load_scenario(find("702"))
    variant = find_variant("scenario.codex_is_left_to_its_own_budget")
    with in_place(variant):
        failure = failure_of(play(scenario, "codex", Seeded(2), seed=2), seed=2, variant=variant.name)
        assert replay(failure).report.verdict is Verdict.FAIL
    assert replay(failure).report.verdict is Verdict.DIVERGENCE


def test_the_same_failure_by_another_way_is_said_as_a_hint():
    hangs = "[server.a]\ninitialize = 'never'\n[[expect]]\nserver = 'a'\nis = 'connected'"
    variant = find_variant("scenario.codex_is_left_to_its_own_budget")
    with in_place(variant):
        failure = failed(hangs)
    again = replay(failure)
    assert again.report.verdict is Verdict.FAIL
    assert again.hint == "the same falls, but not everything before it happened as it was"


def test_a_changed_source_is_said_as_a_hint():
    failure = failed()
    again = replay(failure._replace(code={**failure.code, "fake_servers": "0" * 16}))
    assert again.hint == "the code is not what it was: fake_servers"
    assert again.report.verdict is Verdict.FAIL


def test_the_fingerprint_tells_parts_apart():
    assert {"world", "reference", "scenario", "fake_runtimes", "fake_servers"} <= set(failed().code)
    assert len(set(failed().code.values())) == len(failed().code)


def test_a_run_that_passes_is_no_failure():
    report = played("[[expect]]\nexit = 0")
    assert signature(report) is None
    with pytest.raises(ValueError, match="no failure"):
        failure_of(report)


def test_a_signature_tells_what_fell_and_on_whom():
    report = played("[server.a]\ninitialize = 'never'", "[[expect]]\nserver = 'a'\nis = 'connected'\nsession = 'S'")
    fallen = signature(report)
    assert fallen is not None
    assert (fallen.verdict, fallen.kind, fallen.rule, fallen.who) == ("fail", "expectation", "a is connected", "S a")


PRESENTED = "{} presents generation 1: it had not looked (/home/agent/.claude/.credentials.json)"


def attempt(actor: str) -> Event:
    """A refresh token is presented."""
    return Event(1.0, actor, "attempt", {"authorization": "as-b", "generation": 1})


@pytest.mark.parametrize(
    ("detail", "actors", "who"),
    [
        # the run's own line, who presented tokens in the run, whom the signature names
        (PRESENTED.format("S#2/claude"), ("S#2/claude", "cron"), "claude"),
        (PRESENTED.format("cron"), ("cron", "S/claude"), "cron"),
        ("cron#2 puts generation 1 over 2 of as-b", ("cron#2", "S/claude"), "cron"),
        ("the chain as-b 1 is lost: it had not looked", ("S/claude",), "as-b"),
        ("b in S: it is offered 2 times", (), "b"),
        ("/home/agent/.npm was written", ("S/claude",), "claude"),
        ("/home/agent/.npm was written", (), ""),
    ],
)
def test_a_broken_invariant_is_on_whoever_the_runs_own_line_names_first(detail, actors, who):
    report = played("[authorization.as-b]\n[server.b]\nprotected_by = 'as-b'")
    events = tuple(map(attempt, actors))
    told = tuple(range(len(report.events), len(report.events) + len(events)))
    finding = Finding("no-spent-token-presented", holds=False, detail=detail, events=told)
    broken = report._replace(verdict=Verdict.FAIL, events=(*report.events, *events), invariants=(finding,))
    fallen = signature(broken)
    assert fallen is not None
    assert fallen.who == who
    assert detail in "\n".join(broken.failures)


def test_names_that_differ_by_a_number_have_one_signature():
    text = "[catalog.tool-{0}]\ntype = 'stdio'\ncommand = '/opt/t'\n[server.tool-{0}]\ninitialize = 'error'\n"
    text += "[[expect]]\nserver = 'tool-{0}'\nis = 'connected'"
    one, two = (signature(played(text.format(number))) for number in (1, 2))
    assert one is not None
    assert one == two


@pytest.mark.parametrize(
    ("text", "decisions"),
    [
        ("", []),
        ("run*3", [("run", 2, 0)] * 3),
        ("run.3=1 stall*2", [("run", 3, 1), ("stall", 2, 0), ("stall", 2, 0)]),
        ("run.4+stall*2", [("run", 4, 0), ("stall", 2, 0)] * 2),
        ("fault=1 start.5=4", [("fault", 2, 1), ("start", 5, 4)]),
    ],
)
def test_decisions_are_written_short_and_read_back(text, decisions):
    assert parse_decisions(text) == tuple(Decision(*each) for each in decisions)
    assert decisions_text(parse_decisions(text)).strip() == text


@pytest.mark.parametrize("word", NO_DECISIONS)
def test_a_word_that_is_no_decision_is_named(word):
    with pytest.raises(ValueError, match="is no decision"):
        parse_decisions(f"run {word}")


def test_the_longest_list_of_decisions_is_read_and_one_more_is_not(monkeypatch):
    monkeypatch.setattr(failures, "MOST_DECISIONS", 100)
    assert len(parse_decisions("run*100")) == 100
    with pytest.raises(ValueError, match="more than 100"):
        parse_decisions("run*101")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("seed = ", "sead = "), "'seed' is a required property"),
        (lambda text: text.replace("mcp-harness/failure/1", "mcp-harness/failure/9"), "mcp-harness/failure/1"),
        (lambda text: text.replace("decisions = '''\n", "decisions = '''\nwalk "), "'walk' is no decision"),
        (lambda text: text.replace("[signature]", "[signature"), "is no TOML"),
        (lambda text: text.replace('start = "S"', 'strat = "S"'), "[[step]] 1"),
    ],
)
def test_a_damaged_file_is_told_in_one_line(change, words):
    with pytest.raises(UserInputError) as error:
        read_failure(change(failure_text(failed())), "mine.failure.toml")
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("mine.failure.toml")


def test_the_name_of_a_file_is_that_of_the_scenario_and_tells_ways_to_fail_apart():
    failure = failed()
    other = failure._replace(signature=failure.signature._replace(rule="something else"))
    assert failure.name.startswith("short-")
    assert failure.name.endswith(".failure.toml")
    assert failure.name != other.name
    assert failure.name == failure._replace(seed=5, decisions=()).name
