"""Which run of a session an expectation is about: the last one, even if its runtime was never started."""

from __future__ import annotations

import pytest

from harness.scenario.agreement import differences
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.session_runs import PARKED, SessionRun, chosen, session_runs
from harness.scenario.timeline import CALM, timeline
from harness.scenario.verdicts import Verdict
from scenarios.playing import HEAD, SESSION, played, told

RUNTIMES = ("claude", "codex@0.169.0", "pi")
LAPSES = """
[authorization.as-b]
provider = "notion"

[server.b]
protected_by = "as-b"

[[credential]]
server = "b"
issued_by = "as-b"
expires_in_seconds = 1000

[[step]]
start = "S"
turns = [{ seconds = 5 }, { seconds = 5 }]

[[step]]
advance = 1500

[[step]]
provider = "as-b"
revokes = "b"

[[step]]
follow_up = "S"
"""
"""The first run connects; the second is parked, as its credential has lapsed and cannot be renewed."""
OF_THE_FIRST = (
    "server = 'b'\nis = 'connected'",
    "request = 1\noffers = ['b']",
    "exit = 0",
    "output = 'stdout'\ncontains = '{'",
    "output = 'stdout'\nlacks = 'nothing of the kind'",
)
WHY = "the orchestrator's own check blocked it (session.blocked)"


def lapsed(*checks: str, runtime: str = "claude", tier: str = "model", scale: int = 100):
    """What comes of these checks where the last run is parked."""
    head = HEAD.replace('title = "A short one"', f'title = "A short one"\ntime_scale = {scale}')
    expected = "".join(f"\n[[expect]]\n{each}\n" for each in checks)
    return play(read_scenario(f"{head}{LAPSES}{expected}"), runtime, tier=tier)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_run_that_was_parked_is_not_judged_by_the_one_before(runtime):
    report = lapsed(*OF_THE_FIRST, runtime=runtime)
    assert report.verdict is Verdict.FAIL
    assert [each.seen.met for each in report.judged] == [False] * len(OF_THE_FIRST)
    assert all(WHY in each.seen.instead and each.seen.of_run == 2 for each in report.judged), told(report)
    named = lapsed(*(f"{each}\nrun = 1" for each in OF_THE_FIRST), runtime=runtime)
    assert named.verdict is Verdict.PASS, told(named)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_of_a_run_that_was_parked_the_servers_are_not_started_and_the_exit_is_the_sessions_own(runtime):
    for which in ("", "\nrun = 2"):
        report = lapsed(f"server = 'b'\nis = 'not-started'{which}", f"exit = 1{which}", runtime=runtime)
        assert report.verdict is Verdict.PASS, told(report)


def test_real_processes_are_judged_by_the_same_run():
    checks = ("server = 'b'\nis = 'connected'", "request = 1\noffers = ['b']", "exit = 0", "exit = 1")
    report = lapsed(*checks, tier="process")
    assert [each.seen.met for each in report.judged] == [False, False, False, True], told(report)
    assert all(WHY in each.seen.instead for each in report.judged[:3]), told(report)


def test_a_server_of_a_parked_session_is_not_in_need_of_a_sign_in_by_the_runtimes_account():
    (judged,) = lapsed("server = 'b'\nis = 'needs-auth'").judged
    assert judged.seen.instead == (
        'it is not-started: the orchestrator\'s own check blocked it; expect event = "session.blocked"'
    )
    (asked,) = lapsed("event = 'session.blocked'\nwhere = { servers = 'b' }").judged
    assert asked.seen.met


def test_the_event_that_tells_why_nothing_was_started_is_pointed_at():
    report = lapsed("server = 'b'\nis = 'connected'")
    (at,) = report.judged[0].seen.events
    assert report.events[at].name == "session.blocked"


def test_a_run_that_could_not_be_started_says_the_sessions_own_words():
    broken = "[[fault]]\naction = 'enoent'\nactor = 'S#2'\nport = 'processes'\n"
    report = played(
        broken,
        "[[expect]]\nserver = 'a'\nis = 'connected'",
        "[[expect]]\nexit = 1",
        session=f"{SESSION}[[step]]\nfollow_up = 'S'\n",
    )
    first, second = (each.seen for each in report.judged)
    assert not first.met
    assert "it is not-started: " in first.instead
    assert "claude" in first.instead
    assert second.met


def test_a_session_that_is_killed_before_it_starts_its_runtime_has_a_run_all_the_same():
    held = "[[hold]]\nactor = 'S#2'\nat = 'spawn *'\nuntil = { event = 'step.kill' }\n"
    report = played(
        held,
        "[[expect]]\nserver = 'a'\nis = 'connected'",
        session=f"{SESSION}[[step]]\nfollow_up = 'S'\nwait = false\n[[step]]\nadvance = 5\n[[step]]\nkill = 'S#2'\n",
    )
    assert report.judged[0].seen.instead == "it is not-started: its session was ended by SIGKILL"


def test_a_runtime_that_the_orchestrator_starts_again_is_a_run_of_its_own():
    report = played("[[fault]]\naction = 'refused'\nserver = 'b'", session=f"{SESSION}[[step]]\nfollow_up = 'S'\n")
    runs = session_runs(report.events, "S")
    assert [each.runtime for each in runs] == [
        "S/claude", "S/claude#2", "S/claude#3", "S/claude#4", "S/claude#5", "S#2/claude",
    ]  # fmt: skip
    assert [each.process for each in runs] == ["S"] * 5 + ["S#2"]


def test_a_session_that_waits_for_a_sign_in_and_goes_on_has_run_twice():
    park = "[authorization.as-b]\n[server.b]\nprotected_by = 'as-b'\n"
    sign_in = "[[step]]\nauthorize = 'b'\nsession = 'S'\n"
    report = played(
        park,
        "[[expect]]\nserver = 'b'\nis = 'connected'",
        "[[expect]]\nserver = 'b'\nis = 'not-started'\nrun = 1",
        "[[expect]]\nexit = 1\nrun = 1",
        session=f"{SESSION}{sign_in}",
    )
    assert report.verdict is Verdict.PASS, told(report)


def test_there_is_no_run_before_the_first_and_none_after_the_last():
    runs = [SessionRun("S", "S/claude"), SessionRun("S#2", why=PARKED)]
    assert [chosen(runs, number) for number in (None, 0, 1, 2, 3)] == [runs[1], None, runs[0], runs[1], None]
    assert chosen([], None) is None


def test_tiers_are_compared_by_the_last_run_too():
    report = lapsed("exit = 1")
    ran = lapsed("exit = 1")._replace(tier="process")
    assert differences(report, ran) == ()
    blocked = next(at for at, each in enumerate(report.events) if each.name == "session.blocked")
    spawned = next(each for each in report.events if each.name == "spawn")
    child = {**spawned.details, "child": "S#2/claude"}
    events = (*report.events[:blocked], spawned._replace(actor="S#2", details=child), *report.events[blocked + 1 :])
    lines = differences(report, ran._replace(events=events))
    assert any(
        "the runtime of the last run of S: never started at tier model, started at tier process" in line
        for line in lines
    )


def two_sessions(*checks: str):
    """The lines of what was expected of two sessions."""
    report = played(*checks, session=f"{SESSION}[[step]]\nstart = 'T'\n")
    lines = timeline(report, real_seconds=None, order=CALM, exit_code=0)
    return [line.strip() for line in lines if line.startswith("  expect")]


def test_where_there_are_several_sessions_an_expectation_names_its_own():
    connected = "[[expect]]\nsession = '{}'\nserver = 'a'\nis = 'connected'"
    lines = two_sessions(
        *(connected.format(each) for each in "ST"),
        "[[expect]]\nsession = 'T'\nserver = 'b'\nis = 'connected'\nsays = 'T has b'",
        "[[expect]]\nfile = '.mcp.json'\nlacks = 'nothing'",
        "[[expect]]\nevent = 'tool.call'",
    )
    assert [line.partition(" ..")[0].split(maxsplit=1)[1] for line in lines] == [
        "S: a is connected",
        "T: a is connected",
        "T has b",
        "S: .mcp.json lacks 'nothing'",
        "tool.call at least 1x",
    ]


def test_where_there_is_one_session_it_goes_without_saying():
    report = played("[[expect]]\nserver = 'a'\nis = 'connected'\nsession = 'S'")
    assert any(
        line.startswith("  expect  a is connected ...")
        for line in timeline(report, real_seconds=None, order=CALM, exit_code=0)
    )
