"""What a scenario claims of the model holds for real processes, files and sockets: same outcome at both tiers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from harness.scenario.agreement import differences, too_fast
from harness.scenario.library import load_all
from harness.scenario.model import Scenario
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.tiers import PROCESS
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from scenarios.playing import short, slower, told

SCENARIOS = {scenario.id: scenario for scenario in load_all() if PROCESS in scenario.tiers}
LONG = ("113", "pi-hang-hides-others", "deploy-restart-stale-token", "idle-longer-than-the-tokens-life")
"""They wait for minutes of their own time: tens of real seconds at every scale that leaves them their sense."""


def claimed() -> list[Any]:
    """Each scenario that claims both tiers, with each of its runtimes; those with an authorization server with one of
    them in turn, with the others nightly.
    """
    return [
        pytest.param(name, runtime, marks=[] if is_soon(at, of, SCENARIOS[name]) else [pytest.mark.nightly])
        for at, name in enumerate(SCENARIOS)
        for of, runtime in enumerate(SCENARIOS[name].runtimes)
    ]


def is_soon(at: int, of: int, scenario: Scenario) -> bool:
    """Whether the scenario of that number is played with its runtime of that number whenever tests are run."""
    if scenario.id in LONG:
        return False
    return not scenario.authorizations or of == at % len(scenario.runtimes)


RACES = 3


def both(scenario, runtime):
    """The two reports. Where nothing but waits came out otherwise, the processes get the time that the comparison asks
    for.
    """
    model, processes = play(scenario, runtime), play(scenario, runtime, tier=PROCESS)
    hint, differing = too_fast(model, processes), differences(model, processes)
    if hint and differing and all(line.endswith(hint) for line in differing):
        processes = play(slower(scenario), runtime, tier=PROCESS)
    return model, processes


def test_every_shipped_scenario_claims_real_processes_or_says_why_not():
    for scenario in load_all():
        assert (PROCESS in scenario.tiers) != (PROCESS in scenario.not_at), scenario.id


@pytest.mark.parametrize(("name", "runtime"), claimed())
def test_a_shipped_scenario_comes_out_the_same(name, runtime):
    model, processes = both(SCENARIOS[name], runtime)
    assert processes.verdict is Verdict.PASS, told(processes)
    assert differences(model, processes) == ()


@pytest.mark.parametrize(
    ("name", "bug"), [("595", "campaign.codex_entries_are_not_pinned"), ("467", "npx.repairs_nothing")]
)
def test_an_old_bug_shows_in_real_processes_too(name, bug):
    scenario = SCENARIOS[name]
    with in_place(find_variant(bug)):
        report = raced(scenario)
    assert report.verdict in (Verdict.FAIL, Verdict.TIMEOUT), told(report)


def raced(scenario):
    """A report in which the race took place: processes that come too late for it decide nothing, and begin again."""
    for _ in range(RACES):
        report = play(scenario, scenario.runtimes[0], tier=PROCESS)
        if report.verdict is not Verdict.UNTESTABLE:
            break
    return report


RUNTIMES = ("claude", "codex", "pi")


def in_turn(table: Iterable[str]) -> list[Any]:
    """Each key with each runtime: one of them always, the others nightly."""
    return [
        pytest.param(key, runtime, marks=[] if (at + of) % len(RUNTIMES) == 0 else [pytest.mark.nightly])
        for at, key in enumerate(table)
        for of, runtime in enumerate(RUNTIMES)
    ]


FAULTS = {
    "refused": 'server = "b"\naction = "refused"',
    "dns": 'server = "b"\naction = "dns"',
    "tls": 'server = "b"\naction = "tls"',
    "open-timeout": 'server = "b"\naction = "open-timeout"',
    "reset-before": 'server = "b"\naction = "reset-before"',
    "reset-after": 'server = "b"\naction = "reset-after"',
    "slow": 'server = "b"\naction = "slow"\nseconds = 3',
    "enoent": 'server = "a"\naction = "enoent"',
    "eacces-exec": 'server = "a"\naction = "eacces-exec"',
    "kill": 'server = "a"\naction = "kill"\nnth = 1',
}


@pytest.mark.parametrize(("fault", "runtime"), in_turn(FAULTS))
def test_a_fault_strikes_alike(fault, runtime):
    model, processes = both(read_scenario(short("[[fault]]\n" + FAULTS[fault])), runtime)
    assert model.verdict not in (Verdict.HARNESS_ERROR, Verdict.CRASH, Verdict.UNTESTABLE), told(model)
    assert differences(model, processes) == ()


BEHAVIOURS = {
    "hangs": "[server.a]\ninitialize = 'never'",
    "garbage": "[server.a]\ninitialize = 'garbage'",
    "an error": "[server.a]\ninitialize = 'error'",
    "ends at once": "[server.a]\nexits = 'at-start'\nexit_code = 3\nstderr = ['no token']",
    "ends when asked": "[server.a]\nexits = 'on-call'",
    "noise": "[server.a]\nstdout_noise = ['ready']",
    "stays": "[server.a]\nignores_signals = true\nignores_stdin_end = true",
    "wants a token": "[server.b]\nrequires_bearer = ['t']",
    "forbids": "[server.b]\nstatus = 403",
    "is broken": "[server.b]\nstatus = 500\nbody = 'oops'",
    "drops before": "[server.b]\ndrops = 'before'",
    "drops after": "[server.b]\ndrops = 'after'",
    "streams": "[server.b]\nanswers_as = 'sse'",
}


@pytest.mark.parametrize(("behaviour", "runtime"), in_turn(BEHAVIOURS))
def test_a_server_misbehaves_alike(behaviour, runtime):
    model, processes = both(read_scenario(short(BEHAVIOURS[behaviour])), runtime)
    assert model.verdict not in (Verdict.HARNESS_ERROR, Verdict.CRASH, Verdict.UNTESTABLE), told(model)
    assert differences(model, processes) == ()


AT_WORK = """
[[step]]
start = "S"
wait = false
turns = [{ seconds = 5 }, { calls = [{ server = "a", tool = "echo" }] }, { seconds = 60 }]
[[step]]
wait_for = { event = "tool.call" }
limit_seconds = 60
"""
"""A session whose servers are connected and whose runtime has a minute to go."""
STEPS = {
    "a killed runtime": AT_WORK
    + """
[[step]]
kill = "claude"
signal = "SIGTERM"
""",
    "a runtime that is killed, and not its session": AT_WORK
    + """
[[step]]
kill = "claude"
signal = "SIGTERM"
[[expect]]
event = "killed"
who = "S"
never = true
""",
    "a killed session": AT_WORK
    + """
[[step]]
kill = "S"
""",
    "a follow-up with another list": """
[[step]]
start = "S"
servers = ["a"]
[[step]]
select = "S"
servers = ["b"]
[[step]]
follow_up = "S"
""",
    "an edited catalog": """
[[step]]
start = "S"
[[step]]
edit = "a"
set = { command = "/opt/other" }
[[step]]
follow_up = "S"
""",
    "files": """
[[step]]
write = "~/.claude.json"
text = "{}"
[[step]]
start = "S"
[[step]]
remove = ".mcp.json"
[[step]]
follow_up = "S"
""",
}


@pytest.mark.parametrize("step", STEPS)
def test_a_step_does_the_same(step):
    model, processes = both(read_scenario(short(session=STEPS[step])), "claude")
    assert model.verdict not in (Verdict.HARNESS_ERROR, Verdict.CRASH), told(model)
    assert differences(model, processes) == ()
