"""How long steps wait, what a tier has for them, and what still counts in a run that was cut off."""

from __future__ import annotations

import pytest

from harness.errors import UserInputError
from harness.gate.spawn import runtime_named
from harness.scenario.duration import least_seconds, require_time
from harness.scenario.library import load_all
from harness.scenario.production import CUT_OFF, play
from harness.scenario.reading import read_scenario
from harness.scenario.tiers import PROCESS, REAL
from harness.scenario.verdicts import Verdict
from scenarios.playing import HEAD, SESSION, played, short

CLAUDE = runtime_named("claude")
AWAY = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 40 }, { seconds = 20 }]"


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        (SESSION, 6),
        ("[[step]]\nadvance = 30\n[[step]]\nadvance = 12", 42),
        ("[[step]]\nadvance = 30\nonly_on = ['codex']", 0),
        ("[[step]]\njob = 'refresh'\nseconds = 900", 900),
        ("[[step]]\njob = 'refresh'\nseconds = 900\nwait = false\n[[step]]\nadvance = 5", 5),
        ("[[step]]\nstart = 'S'\nafter_seconds = [7, 900]", 8),
        (f"{AWAY}\n[[step]]\nadvance = 5", 5),
        (f"{AWAY}\n[[step]]\nadvance = 5\n[[step]]\nwait_for = 'S'", 60),
        (f"{AWAY}\n[[step]]\nadvance = 90\n[[step]]\nwait_for = 'S'", 90),
        (f"{AWAY}\n[[step]]\nadvance = 5\n[[step]]\nwait_for = 'S'\nlimit_seconds = 9", 5),
        (f"{AWAY}\n[[step]]\nadvance = 5\n[[step]]\nkill = 'S/*'\n[[step]]\nwait_for = 'S'", 5),
    ],
)
def test_the_least_time_is_what_the_steps_wait_for(steps, seconds):
    assert least_seconds(read_scenario(short(session=steps)), CLAUDE) == seconds


@pytest.mark.parametrize(
    ("scale", "seconds", "tier", "said"),
    [
        ("", 900, PROCESS, ""),
        ("", 901, PROCESS, "has 90 s of real time, which at time_scale = 10 are 900 s of the scenario"),
        ("", 901, PROCESS, "Set time_scale = 12 or more, or wait for less."),
        ("time_scale = 12", 901, PROCESS, ""),
        ("time_scale = 100", 9001, PROCESS, "or play it at --tier model."),
        ("", 240, REAL, ""),
        ("time_scale = 100", 241, REAL, "its steps wait 241 s on claude@2.1.268, but the tier real has 240 s of"),
        ("", 300_000_000, "model", ""),
    ],
)
def test_what_cannot_fit_into_a_tier_is_refused_before_anything_starts(scale, seconds, tier, said):
    scenario = read_scenario(short(head=f"{scale}\n{HEAD}", session=f"[[step]]\nadvance = {seconds}"), "my.toml")
    if not said:
        require_time(scenario, CLAUDE, tier)
        return
    with pytest.raises(UserInputError) as caught:
        play(scenario, CLAUDE, tier=tier)
    message = str(caught.value)
    assert message.startswith("my.toml: its steps wait ")
    assert said in message
    assert "\n" not in message


def test_every_shipped_scenario_has_the_time_of_the_tiers_that_it_claims():
    for scenario in load_all():
        for runtime in scenario.runtimes:
            for tier in scenario.tiers:
                require_time(scenario, runtime_named(runtime), tier)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("[[step]]\nadvance = {}", "1e12"),
        ("[[step]]\nadvance = {}", "315360001"),
        ("[[step]]\njob = 'refresh'\nseconds = {}", "1e300"),
        ("[[step]]\nstart = 'T'\nturns = [{{ seconds = {} }}]", "1e12"),
        ("[[step]]\nstart = 'T'\nafter_seconds = [1, {}]", "1e12"),
        ("[[step]]\nwait_for = 'S'\nlimit_seconds = {}", "1e12"),
        ("[server.b]\ninitialize_after_seconds = {}", "1e12"),
        ("[server.b]\ntools = [{{ name = 'x', answers_after_seconds = {} }}]", "1e12"),
        ("[[credential]]\nserver = 'b'\naccess_token = 't'\nexpires_in_seconds = {}", "-1e12"),
        ("[[fault]]\naction = 'refused'\nserver = 'b'\nafter_seconds = {}", "1e12"),
        ("[[hold]]\nactor = 'S'\nat = 'x'\nuntil = {{ event = 'spawn' }}\nlimit_seconds = {}", "1e12"),
    ],
)
def test_a_time_beyond_what_clocks_tell_is_one_line(place, value):
    with pytest.raises(UserInputError, match=r"my\.toml:\d+: .* more than ten years\. Write at most 315360000\.$"):
        read_scenario(f"{short()}\n{place.format(value)}", "my.toml")


def test_numbers_of_others_are_no_times_of_the_run():
    calls = "[[step]]\nstart = 'T'\nturns = [{ calls = [{ server = 'a', tool = 'echo', args = { seconds = 1e12 } }] }]"
    edit = "[[step]]\nedit = 'a'\nset = { seconds = 1e12 }"
    assert len(read_scenario(f"{short()}\n{calls}\n{edit}").steps) == 3


CUT = "[[step]]\nwait_for = { event = 'session.retry' }\nlimit_seconds = 5\n[[step]]\nadvance = 1"
UNTOLD = (
    "event = 'session.retry'\nnever = true",
    "event = 'server.failed'\nat_most = 3",
    "event = 'tool.call'\ntimes = 1",
    "event = 'tool.call'\nbetween = [0, 60]",
    "received = 'b'\nmethod = 'DELETE'\nat_most = 9",
    "file = 'nothing'\nabsent = true",
    "file = '.mcp.json'\nlacks = 'nothing'",
    "row = 'sessions/S'\nlacks = 'nothing'",
    "output = 'stderr'\nlacks = 'nothing'",
    "server = 'a'\nis = 'connected'",
    "exit = 0",
    "credential = 'b'\nis = 'none'",
    "invariant = 'only-struck-servers-fail'",
)
TOLD = (
    "event = 'tool.call'",
    "event = 'tool.call'\nat_least = 1",
    "event = 'session.prepared'\nbefore = { event = 'tool.call' }",
    "received = 'b'\nmethod = 'initialize'",
    "exit = 0\nrun = 1",
    "request = 2\nrun = 1\noffers = ['a']",
    "event = 'session.retry'\nnever = true\nafter = 1",
)


def test_a_run_that_was_cut_off_meets_nothing_that_its_rest_could_have_undone():
    checks = [f"[[expect]]\n{each}" for each in (*UNTOLD, *TOLD, "event = 'session.retry'\nnever = true\nafter = 3")]
    report = played(*checks, session=f"{SESSION}\n{CUT}")
    assert report.verdict is Verdict.TIMEOUT, report.detail
    seen = [each.seen for each in report.judged]
    assert [each.instead for each in seen[: len(UNTOLD)]] == [CUT_OFF] * len(UNTOLD)
    assert not any(each.met for each in seen[: len(UNTOLD)])
    assert all(each.met for each in seen[len(UNTOLD) : -1]), [each.instead for each in seen[len(UNTOLD) :]]
    assert (seen[-1].met, seen[-1].instead) == (False, "step 3 was not reached")


def test_the_same_checks_are_met_by_a_run_that_comes_to_its_end():
    checks = [f"[[expect]]\n{each}" for each in (*UNTOLD, *TOLD)]
    report = played(*checks)
    assert report.verdict is Verdict.PASS, report.failures
