"""Which ends of a launch are good ones, once nothing goes wrong any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.reference.credentials.row import Credential, row_values
from harness.scenario.library import find
from harness.scenario.liveness import GOES_ON_WAITING, End, Launch, end_of, launches
from harness.scenario.naming import OPERATOR
from harness.scenario.production import play
from harness.scenario.reading import load_scenario
from harness.scenario.variants import find_variant, in_place
from harness.world.model import Event

NOW = 1_700_000_000.0
NOT_CONNECTED = "it is not connected, and nobody is asked for it"
LEFT_OUT = {"metadata": {"mcp_degraded_servers": [{"name": "a", "reason": "it did not connect"}]}}


def rows_of(refresh_token: str | None, expires_at: float = NOW - 1) -> dict[str, Any]:
    """The row of server a, whose access token has run out, or will at that time."""
    row = Credential(
        server_name="a",
        server_url="https://a.test/mcp",
        client_id="client",
        credential_key="a|1",
        access_token="spent",
        refresh_token=refresh_token,
        token_endpoint="https://as.test/token",
        expires_at=expires_at,
    )
    return {"a|1": row_values(row)}


def stage_of(told: str, refresh_token: str | None, session: dict[str, Any], *later: dict[str, Any]) -> Any:
    """A stage on which server a came to this for S's runtime, with such a row, and what became of it."""
    rows = [rows_of(refresh_token), *later]
    return SimpleNamespace(
        events=[Event(NOW, "S/claude", told, {"server": "a"})],
        row=lambda _table, _key: session,
        monitor=SimpleNamespace(stage=SimpleNamespace(now=NOW), servers={}, rows_since=lambda _event: rows),
    )


@pytest.mark.parametrize(
    ("told", "refresh_token", "session", "expected"),
    [
        ("server.connected", "good", {}, ""),
        ("server.needs_auth", None, LEFT_OUT, ""),
        ("server.needs_auth", "good", LEFT_OUT, NOT_CONNECTED),
        ("server.needs_auth", None, {}, NOT_CONNECTED),
        ("server.failed", None, {"metadata": {}}, NOT_CONNECTED),
    ],
)
def test_a_server_that_is_left_out_may_stay_so_only_where_the_next_spawn_asks_for_it(
    told, refresh_token, session, expected
):
    launch = Launch("S", NOW, 0, "S/claude")
    assert end_of(stage_of(told, refresh_token, session), launch, "a") == End(expected, 0)


def test_a_server_that_was_left_out_for_good_stays_a_good_end_when_somebody_authorizes_it_later():
    stage = stage_of("server.needs_auth", None, LEFT_OUT, rows_of("new", NOW + 3600))
    assert end_of(stage, Launch("S", NOW, 0, "S/claude"), "a") == End("", 0)


CLICKS = (OPERATOR, "step.authorize", {"server": "a", "session": "S"})
CLICKS_ELSEWHERE = (OPERATOR, "step.authorize", {"server": "a", "session": "T"})
STARTED, DONE = ("web", "oauth.started", {"server": "a"}), ("web", "oauth.completed", {"server": "a"})
OTHER_STARTED, OTHER_DONE = ("web#2", "oauth.started", {"server": "a"}), ("web#2", "oauth.completed", {"server": "a"})
FAILED = ("web", "oauth.failed", {"server": "a"})
BLOCKED_BY_A_GOOD_ROW = "a sign-in is offered that its stored credential keeps from being started"


@pytest.mark.parametrize(
    ("rows", "happened", "expected"),
    [
        ([rows_of(None)], [], ""),
        ([rows_of("good", NOW + 3600)], [], BLOCKED_BY_A_GOOD_ROW),
        ([rows_of(None), rows_of("good", NOW + 3600)], [], ""),
        ([rows_of(None)], [CLICKS, STARTED, DONE], GOES_ON_WAITING),
        ([rows_of(None)], [CLICKS, STARTED, FAILED], ""),
        ([rows_of(None)], [CLICKS_ELSEWHERE, STARTED, DONE], ""),
        ([rows_of(None)], [CLICKS, STARTED, CLICKS_ELSEWHERE, OTHER_STARTED, OTHER_DONE, FAILED], ""),
        ([rows_of(None)], [CLICKS_ELSEWHERE, CLICKS, STARTED, OTHER_STARTED, DONE], ""),
        ([rows_of(None)], [CLICKS_ELSEWHERE, CLICKS, OTHER_STARTED, STARTED, OTHER_DONE], GOES_ON_WAITING),
    ],
    ids=[
        "it waits for a consent",
        "its row was good when it was blocked",
        "its row is made good later by somebody else",
        "a person has consented",
        "a person tried",
        "a person has consented for another session",
        "a person tried while one consented for another session",
        "one consented for another session, whose page was slow, while a person tried",
        "a person has consented while one tries for another session, whose page is slow",
    ],
)
def test_a_session_that_waits_can_be_helped_by_what_it_offers(rows, happened, expected):
    assert end_of(waiting_stage(rows, happened, ["a"]), Launch("S", NOW, 0, "", ("a",)), "a") == End(expected, 0)


def waiting_stage(rows: Any, happened: Any, offers: Any) -> Any:
    """A stage on which S was blocked, then this happened, and S offers sign-ins for these servers."""
    required = {"metadata": {"oauth_required_servers": [{"server_name": name} for name in offers]}}
    return SimpleNamespace(
        events=[Event(NOW, *each) for each in (("S", "session.blocked", {"servers": ["a", "b"]}), *happened)],
        row=lambda _table, _key: required,
        monitor=SimpleNamespace(stage=SimpleNamespace(now=NOW), servers={}, rows_since=lambda _event: rows),
    )


@pytest.mark.parametrize(
    ("happened", "offers", "expected"),
    [
        ([CLICKS, STARTED, DONE], ["b"], ""),
        ([CLICKS, STARTED, DONE], ["a", "b"], GOES_ON_WAITING),
        ([CLICKS, STARTED, DONE], [], GOES_ON_WAITING),
        ([CLICKS, STARTED, FAILED], ["b"], "it is offered 0 times"),
        ([CLICKS_ELSEWHERE, STARTED, DONE], ["b"], "it is offered 0 times"),
        ([], ["a", "a", "b"], "it is offered 2 times"),
    ],
)
def test_a_server_is_offered_once_until_it_is_authorized_and_then_the_session_waits_for_the_others_alone(
    happened, offers, expected
):
    stage = waiting_stage([rows_of(None)], happened, offers)
    assert end_of(stage, Launch("S", NOW, 0, "", ("a", "b")), "a") == End(expected, 0)


TOLD_TOO_LONG = """schema = 1
id = "told-too-long"
title = "A row that took its token for good too long is renewed later"
tiers = ["model"]
runtime = "codex"
app_host = "zimmer.example.com"
[catalog.tickets]
type = "streamable-http"
url = "https://tickets.test/mcp"
[authorization]
desk-as = { set = { access_seconds = 1200 }, answers = { token = ["ok-expires-text"] } }
[[credential]]
server = "tickets"
issued_by = "desk-as"
expires_in_seconds = -300
held_by = ["orchestrator"]
[server.tickets]
protected_by = "desk-as"
[[step]]
start = "S"
turns = [{ seconds = 1000 }, { seconds = 900 }]
[[step]]
follow_up = "S"
[[step]]
advance = 5260
[[step]]
start = "F"
[[expect]]
invariant = "every-end-is-good"
"""


def test_an_end_is_judged_by_the_rows_of_its_launch_and_not_by_those_that_came_after_it(tmp_path):
    path = tmp_path / "told-too-long.toml"
    path.write_text(TOLD_TOO_LONG, encoding="utf-8")
    report = play(load_scenario(path), "codex")
    ends = [event.name for event in report.events if event.actor.startswith("S#2/codex") and "server" in event.details]
    assert "server.needs_auth" in ends
    finding = next(each for each in report.invariants if each.name == "every-end-is-good")
    assert (finding.holds, finding.detail) == (True, "")


BEGINS = (OPERATOR, "step.start", {"session": "S"})
LAUNCHED = ("S", "spawn", {"child": "S/claude", "argv": ["claude"]})
LAUNCHED_AGAIN = ("S", "spawn", {"child": "S/claude#2", "argv": ["claude"]})
LAUNCHED_LATER = ("S#2", "spawn", {"child": "S#2/claude", "argv": ["claude"]})
PARKED = ("S#2", "session.blocked", {"servers": ["a"]})
PARKED_BY_ITS_RUNTIME = ("S", "session.blocked", {"servers": ["a"]})


@pytest.mark.parametrize(
    ("happened", "expected"),
    [
        ([BEGINS, LAUNCHED], [(1, "S/claude", ())]),
        ([BEGINS, LAUNCHED, ("S", "session.prepared", {}), LAUNCHED_AGAIN], [(3, "S/claude#2", ())]),
        ([BEGINS, LAUNCHED, BEGINS, PARKED], [(3, "", ("a",))]),
        ([BEGINS, LAUNCHED, PARKED_BY_ITS_RUNTIME], [(2, "", ("a",))]),
        ([BEGINS, LAUNCHED, PARKED_BY_ITS_RUNTIME, BEGINS, LAUNCHED_LATER], [(4, "S#2/claude", ())]),
        ([BEGINS, LAUNCHED, BEGINS, ("S#2", "session.failed", {"text": "no such server"})], []),
        ([BEGINS, LAUNCHED, BEGINS, ("S#2", "killed", {"signal": "SIGKILL"})], []),
        ([BEGINS, LAUNCHED, BEGINS], []),
        ([BEGINS, PARKED], []),
        ([BEGINS, ("S", "spawn", {"child": "S/keyctl", "argv": ["keyctl"]})], []),
    ],
    ids=[
        "launched",
        "launched again by its session",
        "parked later",
        "parked after its start",
        "resumed after that",
        "not prepared later",
        "killed later",
        "on its way",
        "a block of nobody who runs",
        "a tool of the session",
    ],
)
def test_judged_is_the_last_run_of_a_session_and_no_earlier_one_in_its_place(happened, expected):
    events = [Event(NOW + number, *each) for number, each in enumerate(happened)]
    found = launches(SimpleNamespace(events=events))
    assert list(found) == [Launch("S", NOW + event, event, *rest) for event, *rest in expected]


def test_a_bad_end_points_at_the_event_that_decides():
    variant = find_variant("resume_authorization.the_session_stays_failed")
    with in_place(variant):
        report = play(load_scenario(find("oauth-parked-follow-up")), "claude")
    finding = next(each for each in report.invariants if each.name == "every-end-is-good")
    assert finding.holds is False
    (number,) = finding.events
    event = report.events[number]
    assert (event.name, event.actor) == ("session.blocked", "S#2")
