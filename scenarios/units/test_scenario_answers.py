"""What a scenario scripts of an authorization server has to come into play, or the run has tested nothing."""

from __future__ import annotations

import pytest

from harness.scenario.authorization import Scripted, taken
from harness.scenario.production import Report
from harness.scenario.verdicts import Verdict
from scenarios.playing import names, played, told

SERVER = "[server.b]\nprotected_by = 'as-b'\ntools = ['find']"
EXPIRED = "[[credential]]\nserver = 'b'\nissued_by = 'as-b'\nexpires_in_seconds = -5\nheld_by = ['orchestrator']"
REFRESH = "[[step]]\njob = 'refresh'"
RECEIVED = "[[expect]]\nreceived = 'as-b'\nmethod = 'refresh_token'\ntimes = {}"


def refreshed(authorization: str, steps: str = REFRESH, times: int = 1) -> Report:
    """One lapsed credential, and the job that renews it."""
    table = f"[authorization.as-b]\n{authorization}"
    return played(table, SERVER, EXPIRED, RECEIVED.format(times), session=steps)


def test_answers_that_every_request_of_theirs_has_met_leave_a_run_as_it_is():
    for script in ("", "answers = { token = ['ok'] }", "always = { token = 'ok' }", "answers = { token = [] }"):
        report = refreshed(script)
        assert report.verdict is Verdict.PASS, (script, *told(report))


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "answers = { token = ['ok', '429'] }",
            "answer 2 to token of [authorization.as-b] (429) was met by no request",
        ),
        (
            "answers = { register = [{ status = 403, body = 'no' }] }",
            "answer 1 to register of [authorization.as-b] (status = 403) was met by no request",
        ),
        (
            "always = { metadata = '500' }",
            "what [authorization.as-b] always answers to metadata (500) was met by no request",
        ),
        (
            "answers = { token = ['ok'] }\nalways = { token = '503' }",
            "what [authorization.as-b] always answers to token (503) was met by no request",
        ),
    ],
)
def test_a_scripted_answer_that_no_request_met_makes_what_would_pass_untestable(script, reason):
    report = refreshed(script)
    assert (report.verdict, report.detail) == (Verdict.UNTESTABLE, reason)


def test_each_answer_that_was_not_met_is_a_line():
    report = refreshed("answers = { token = ['ok', '429', 'drop-after'] }")
    assert [line.split(" of ")[0] for line in report.detail.splitlines()] == ["answer 2 to token", "answer 3 to token"]


def test_what_is_drawn_need_not_come_into_play():
    report = refreshed("answers = { token = ['ok', '429'] }\ndrawn = true")
    assert report.verdict is Verdict.PASS, told(report)


def test_what_fails_still_fails_with_an_answer_that_nobody_asked_for():
    report = refreshed("answers = { token = ['ok', '429'] }", times=3)
    assert report.verdict is Verdict.FAIL, told(report)


def test_the_answers_of_a_step_have_to_be_met_too_and_its_number_is_said():
    late = f"{REFRESH}\n[[step]]\nprovider = 'as-b'\nanswers = {{ token = ['429'] }}"
    report = refreshed("", late)
    assert report.detail == "answer 1 to token of [[step]] 2 (429) was met by no request", told(report)
    early = f"[[step]]\nprovider = 'as-b'\nanswers = {{ token = ['ok'] }}\n{REFRESH}"
    assert refreshed("", early).verdict is Verdict.PASS
    assert refreshed("", f"{late}\ndrawn = true").verdict is Verdict.PASS


def test_a_step_on_another_runtime_scripts_nothing():
    other = f"{REFRESH}\n[[step]]\nprovider = 'as-b'\nanswers = {{ token = ['429'] }}\nonly_on = ['codex']"
    assert refreshed("", other).verdict is Verdict.PASS


def test_a_request_meets_the_earliest_answer_that_was_there_when_it_came():
    first, second = Scripted("s", "token", "first"), Scripted("s", "token", "second")
    late, later = Scripted("s", "token", "late", since=3), Scripted("s", "token", "later", since=3, goes_on=True)
    before = Scripted("s", "token", "before", goes_on=True)
    assert taken([first, second], 1) == {first}
    assert taken([first, second], 2) == {first, second}
    assert taken([before, first], 1) == {first}
    assert taken([before, first], 2) == {first, before}
    assert taken([first, late], 3) == {first}
    assert taken([first, late, later], 4) == {first, late}
    assert taken([before, later], 5) == {before, later}
    assert taken([], 9) == set()


def test_a_step_tells_which_provider_changes_to_what():
    change = "provider = 'as-b'\nset = { access_seconds = 60 }\nanswers = { token = ['429', 'ok'] }\ndrawn = true"
    report = refreshed("", f"[[step]]\n{change}\nalways = {{ metadata = {{ status = 500 }} }}", times=0)
    (event,) = names(report, "step.provider")
    assert event["says"] == (
        "access_seconds = 60; answers the next 2 requests to token with 429, ok; "
        "answers metadata with status = 500 from now on"
    )
