"""What a report says besides what happened: what to do next, what would close a hole, who ended whom."""

from __future__ import annotations

import pytest

from harness.next_steps import Step, step_lines
from harness.requirements.holes import load_holes
from harness.scenario import agreement
from harness.scenario.failure import failure_of
from harness.scenario.holes import Walked
from harness.scenario.library import find
from harness.scenario.next_steps import Again, next_steps
from harness.scenario.production import Judged, play
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.signature import INVARIANT, Signature, signature, signatures
from harness.scenario.telling import told
from harness.scenario.timeline import CALM, accepted, expected, last_line, old_bugs, story, timeline
from harness.scenario.variants import find_variant, in_place, kind_of
from harness.scenario.verdicts import Verdict
from harness.world.model import Event
from scenarios.playing import SESSION, played, short

NOT_ADOPTED = "chains.nothing_is_adopted"
HOLE = "hole-store-of-another-runtime"


@pytest.fixture(scope="module")
def burned():
    """A run of several sessions in which the rule of the token chain falls, and expectations with it."""
    scenario = load_scenario(find("deploy-restart-stale-token"))
    with in_place(find_variant(NOT_ADOPTED)):
        return play(scenario, "claude")


@pytest.fixture(scope="module")
def walked():
    """A run that walks into an accepted hole."""
    return play(load_scenario(find(HOLE)), "pi")


# --- what fell


def test_the_gravest_that_fell_comes_first(burned):
    fallen = signatures(burned)
    kinds = [each.kind for each in fallen]
    assert kinds == sorted(kinds, key=lambda kind: kind != INVARIANT)
    assert {*kinds} == {"expectation", "invariant"}
    assert signature(burned) == fallen[0]
    assert failure_of(burned).signature.rule == "no-spent-token-presented"


@pytest.mark.parametrize(
    ("word", "is_meant"),
    [
        ("no-spent-token-presented", True),
        ("Spent Token", True),
        ("cron", True),
        ("desk", False),
        ("orphans", False),
        ("cro", False),
    ],
)
def test_a_failure_is_called_by_its_rule_or_by_whom_it_fell_on(word, is_meant):
    assert Signature("fail", INVARIANT, "no-spent-token-presented", "cron").is_called(word) == is_meant


def test_a_broken_invariant_points_at_the_attempt_that_broke_it(burned):
    attempts = [at for at, event in enumerate(burned.events) if event.name == "attempt"]
    wrong = [at for at in attempts if burned.events[at].details["wrong"]]
    told = {each.name: each.events for each in burned.invariants if each.holds is False}
    assert told["no-spent-token-presented"] == (wrong[0],)
    assert len(attempts) > 1


# --- what to do next


def test_a_run_that_failed_says_how_to_keep_it_make_it_smaller_and_what_explains_it(burned):
    lines = step_lines(next_steps(burned, Again(("--seed", "7"))))
    name = failure_of(burned, variant=NOT_ADOPTED).name
    command = f"mcp-harness run deploy-restart-stale-token --runtime {burned.runtime.label}"
    assert lines[0].startswith(f"  next: {command} --seed 7 --variant {NOT_ADOPTED} --save out ")
    assert lines[1].startswith(f"        mcp-harness run out/{name} ")
    assert lines[2].startswith(f"        mcp-harness shrink out/{name} ")
    assert lines[3].startswith("        mcp-harness explain no-spent-token-presented")
    whole = timeline(burned, real_seconds=None, order=CALM, exit_code=1)
    assert step_lines(next_steps(burned, Again()))[0] in whole
    assert whole[-1].startswith("FAIL")


def test_a_failure_that_is_kept_already_is_named_where_it_lies(burned):
    (first, *_) = next_steps(burned, Again(folder="kept/"))
    assert first.command.startswith("mcp-harness run kept/deploy-restart-stale-token-")
    replayed = burned._replace(scenario=burned.scenario._replace(file="kept/a.failure.toml"))
    assert next_steps(replayed, Again())[0] == Step("mcp-harness shrink kept/a.failure.toml")


def test_real_processes_that_failed_are_to_be_kept_as_files(burned):
    (first, *_) = next_steps(burned._replace(tier="process"), Again())
    assert first.command.endswith("--tier process --keep out")


def test_a_run_that_passes_or_tests_nothing_has_no_next_step(burned, walked):
    assert next_steps(walked, Again()) == []
    assert next_steps(burned._replace(verdict=Verdict.UNTESTABLE), Again()) == []


def test_a_hold_that_found_nobody_is_answered_with_how_to_see_where_it_could():
    hold = "[[hold]]\nactor = 'S/claude'\nat = 'spwan x'\nuntil = { event = 'server.connected' }\n"
    report = played(hold, "[[expect]]\nexit = 0")
    assert report.verdict is Verdict.UNTESTABLE
    (step,) = next_steps(report, Again(("--seed", "7")))
    assert step.command == f"mcp-harness run scenario.toml --runtime {report.runtime.label} --seed 7 --points"
    kept = report._replace(scenario=report.scenario._replace(file="out/a b.failure.toml"))
    (step,) = next_steps(kept, Again())
    assert step.command == "mcp-harness run 'out/a b.failure.toml' --points"


def test_an_expectation_names_its_line_only_where_the_file_has_it_there():
    report = played("[[expect]]\nexit = 7")
    assert " (line " in "\n".join(expected(report))
    kept = report._replace(scenario=report.scenario._replace(file="kept/a.failure.toml"))
    assert " (line " not in "\n".join(expected(kept))


# --- holes and proposals


def test_of_each_hole_the_report_says_what_would_close_it(walked):
    head, *closing = accepted(walked._replace(holes={name: Walked(1, 1) for name in load_holes()}))
    assert "HOLES.md" in head
    assert [line.split(" is closed by: ")[0].strip() for line in closing] == list(load_holes())
    assert f"    {HOLE.removeprefix('hole-')} is closed by: a spawn reads every runtime's store before it renews" in (
        "\n".join(accepted(walked))
    )


def test_a_proposal_is_not_called_an_old_bug(walked, burned):
    assert kind_of("closing.a_spawn_reads_every_store") == "proposal"
    assert kind_of(NOT_ADOPTED) == "old bug"
    assert any(line.startswith("  proposal: ") and "closing." in line for line in old_bugs(walked))
    assert all(line.startswith("  old bug: ") for line in old_bugs(burned))
    assert old_bugs(burned)


# --- words


def test_who_is_left_in_the_end_is_ended_by_it_and_not_by_somebody():
    left = played(session="[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 900 }]\n[[step]]\nadvance = 5\n")
    lines = "\n".join(story(left))
    assert "still runs: S/claude; the end of the scenario ends it" in lines
    assert "ended by SIGKILL: the scenario is over" in lines
    killed = played(session="[[step]]\nstart = 'S'\nwait = false\n[[step]]\nadvance = 0.5\n[[step]]\nkill = 'claude'\n")
    assert any(line.endswith("ended by SIGKILL") for line in story(killed))


def test_what_a_helper_of_the_orchestrator_is_started_for_is_told():
    details = {"argv": ["keyctl", "session", "-", "node", "helper.mjs"], "child": "cron/keyctl"}
    assert told(Event(0.0, "cron", "spawn", details)) == "starts keyctl, to ask Pi's keyring what it holds"


def test_no_expectation_is_not_said_to_be_none_of_none():
    report = played("[[expect]]\nevent = 'tool.call'", "[[hold]]\nactor = 'S'\nat = 'x'\nuntil = { event = 'fault' }")
    assert "1/1 expectations" in last_line(report, None, CALM, 0)
    broken_off = report._replace(judged=())
    assert "no expectation was looked at" in last_line(broken_off, None, CALM, 0)
    other = read_scenario(short("[[expect]]\nevent = 'tool.call'\nonly_on = ['pi']"))
    assert "; no expectations" in last_line(play(other, "claude"), None, CALM, 0).replace(": no", "; no")


# --- agreement


def two(*checks: str, scale: int = 60, tier: str = "process"):
    """The same run, once as if of real processes that were never so far."""
    text = short(*checks).replace('title = "A short one"', f'title = "A short one"\ntime_scale = {scale}')
    model = play(read_scenario(text), "claude")
    events = tuple(
        each._replace(name="server.connecting", details={"server": "b"})
        if each.name == "server.connected" and each.details["server"] == "b"
        else each
        for each in model.events
    )
    return model, model._replace(tier=tier, events=events)


def test_what_came_out_differently_is_named_as_an_expectation_names_it():
    lines = agreement.differences(*two())
    assert len(lines) == 1
    assert lines[0].startswith("the server b of the last run of S: connected at tier model, pending at tier process")


def test_where_a_wait_can_have_decided_the_scale_is_hinted_at():
    assert "takes 6 s at time_scale 60: try a lower one" in agreement.differences(*two())[0]
    assert "time_scale" not in agreement.differences(*two(scale=1))[0]


def test_what_no_wait_decides_has_no_such_hint():
    model, other = two()
    ended = tuple(
        each._replace(details={"exit_code": 3}) if each.name in ("run.ended", "session.ended") else each
        for each in model.events
    )
    lines = agreement.differences(model, other._replace(events=ended))
    assert lines
    assert not any("time_scale" in line for line in lines)


def test_expectations_of_two_sessions_are_compared_apart():
    checks = [f"[[expect]]\nsession = '{each}'\nserver = 'a'\nis = 'connected'" for each in "ST"]
    model = played(*checks, session=f"{SESSION}[[step]]\nstart = 'T'\n")
    first, second = model.judged
    other = model._replace(judged=(Judged(first.expectation, first.seen._replace(met=False)), second))
    assert [line.partition(":  ")[0].partition(" at tier")[0] for line in agreement.differences(model, other)] == [
        "whether S: a is connected: True"
    ]
