"""RefreshMcpOauthTokensJob: which rows, after what, how often, and what one row's failure means for the others."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from fake_servers.oauth import AuthorizationServer, Provider
from harness.reference.credentials import table
from harness.reference.credentials.attempts import TABLE as ATTEMPTS
from harness.reference.credentials.cron import JOBS, KIND, retry_delay_seconds, run_due_retries, run_refresh_job
from harness.reference.credentials.refresh import CannotRefreshError, refresh
from harness.reference.credentials.row import TABLE, Credential, row_values
from harness.reference.credentials.worker import SCHEDULE, next_run, period_seconds, work
from harness.reference.oauth.transport import InsecureEndpointError
from harness.world import Request, Response, World
from harness.world.model import Fault, Hold, Seeded
from harness.world.model.decisions import Decisions
from scenarios.units.oauth_run import Ran
from scenarios.units.refresh_run import (
    HOUR,
    MINUTE,
    NEW_REFRESH,
    NOW,
    OLD_REFRESH,
    POSTED,
    SECRET,
    SECRETS,
    PairStore,
    TokenServer,
    answer,
    connectors_state,
    credential,
    job,
    kinds,
    lines,
    pair_text,
    run_job,
    stored,
    with_clock,
)

DEAD = json.dumps({"error": "invalid_grant"})
KEY = credential().credential_key
CLAUDE, PI = PairStore(), PairStore("pi", "/stores/pi.json")
Program = Callable[[World], Awaitable[None]]


def worked(hours: float, *writers: PairStore) -> Program:
    """A worker that works so long."""

    async def program(world: World) -> None:
        await work(world, writers, until=world.clock.now() + hours * HOUR)

    return program


def touched_after(touch: Program, seconds: float) -> Program:
    """Touch the row, wait, run the job."""

    async def program(world: World) -> None:
        await touch(world)
        await world.clock.sleep(seconds)
        await run_refresh_job(world, [CLAUDE])

    return program


def by_server(**replies: Any) -> Callable[[Request], Response]:
    """Answers by the client id of a form: each row of a test has its server's name as its client id."""

    def reply(request: Request) -> Response:
        name = next(name for name in replies if f"client_id={name}".encode() in request.body)
        return answer(*replies[name])

    return reply


def due_rows(*names: str) -> list[Credential]:
    return [credential(name, client_id=name) for name in names]


SELECTION = [
    ({"expires_at": NOW + 1800}, 1),
    ({"expires_at": NOW + 3599}, 1),
    ({"expires_at": NOW + 3600}, 0),
    ({"expires_at": NOW + 3660}, 0),
    ({"expires_at": NOW + 10800}, 0),
    ({"expires_at": NOW + 2400}, 1),
    ({"expires_at": NOW - 600}, 1),
    ({"expires_at": NOW - 82800}, 1),
    ({"expires_at": NOW - 90000}, 0),
    ({"expires_at": None, "updated_at": NOW - 30 * 24 * HOUR}, 0),
    ({"updated_at": NOW - 3600}, 0),
    ({"updated_at": NOW - 14390}, 0),
    ({"updated_at": NOW - 14400}, 0),
    ({"updated_at": NOW - 14410}, 1),
    ({"updated_at": NOW - 600, "expires_at": NOW - 60}, 0),
    ({"refresh_token": None}, 0),
    ({"refresh_token": ""}, 0),
    ({"token_endpoint": None}, 0),
    ({"token_endpoint": ""}, 0),
    ({"token_endpoint": "http://as.test/token"}, 0),
    ({"token_endpoint": "http://127.0.0.1:9000/token"}, 0),
    ({"token_endpoint": "https://as.test/token"}, 1),
]


@pytest.mark.requirement(
    "refresh-window-one-hour",
    "refresh-window-boundary-exclusive",
    "refresh-no-expiry-never-selected",
    "refresh-expired-over-24h-skipped",
    "refresh-throttle-four-hours",
    "refresh-needs-refresh-token",
    "refresh-needs-token-endpoint",
    "https-cron-never-refreshes-cleartext",
)
@pytest.mark.parametrize(("changed", "posts"), SELECTION)
def test_the_scheduled_run_posts_for_a_row_that_is_due_and_renewable_and_for_no_other(changed, posts):
    server = TokenServer()
    ran = run_job(credential(**changed), server=server)
    assert len(server.posts) == posts
    assert lines(ran) == []
    if not posts:
        assert stored(ran) == credential(**changed)


@pytest.mark.requirement("refresh-cron-every-30-min")
@pytest.mark.parametrize("sessions", [0, 3])
def test_the_job_starts_every_half_hour_whatever_sessions_there_are(sessions):
    async def session(world: World) -> None:
        await world.clock.sleep(30 * HOUR)

    server = TokenServer(answer(503, ""))
    others = {f"session {number}": session for number in range(sessions)}
    run_job(credential(), server=server, program=worked(24.01), others=others)
    assert server.times == [float(tick * 30 * MINUTE) for tick in range(1, 49)]
    assert [scheduled.kind for scheduled in SCHEDULE] == [KIND]
    assert next_run(SCHEDULE[0].cron, NOW + 1) == NOW + 30 * MINUTE
    assert next_run(SCHEDULE[0].cron, NOW) == NOW + 30 * MINUTE


def test_a_schedule_that_is_no_schedule_by_minutes_is_refused():
    assert period_seconds("*/30 * * * *") == 30 * MINUTE
    with pytest.raises(ValueError, match="no schedule"):
        period_seconds("0 * * * *")


@pytest.mark.requirement("refresh-no-expiry-never-selected")
def test_a_day_of_runs_leaves_a_token_that_does_not_expire():
    row = credential(expires_at=None, updated_at=NOW - 30 * 24 * HOUR)
    server = TokenServer()
    ran = run_job(row, server=server, program=worked(24))
    assert (server.posts, stored(ran)) == ([], row)


@pytest.mark.requirement("refresh-success-without-expires-in")
def test_a_token_renewed_without_a_lifetime_is_not_selected_again():
    server = TokenServer(answer(200, {"access_token": "n"}))
    ran = run_job(credential(), server=server, program=worked(24))
    assert len(server.posts) == 1
    assert stored(ran).expires_at is None


async def authorized(world: World) -> None:
    row = await table.find(world, KEY)
    assert row is not None
    await table.store(world, replace(row, access_token="access-authorized"))


async def refreshed_on_demand(world: World) -> None:
    await refresh(world, KEY, reason="injection")


async def adopted(world: World) -> None:
    text = pair_text(credential(), seconds=4 * HOUR + 30 * MINUTE)
    await world.files.make_directory("/stores")
    await world.files.write("/stores/claude.json", text.encode())
    await run_refresh_job(world, [CLAUDE])


@pytest.mark.requirement("refresh-throttle-keys-on-updated-at")
@pytest.mark.parametrize("touch", [authorized, refreshed_on_demand, adopted])
@pytest.mark.parametrize(("seconds", "posts"), [(4 * HOUR - MINUTE, 0), (4 * HOUR + MINUTE, 1)])
def test_every_change_of_a_row_begins_the_pause_anew(touch, seconds, posts):
    expires_at = {authorized: 4 * HOUR + 10 * MINUTE, refreshed_on_demand: 10 * MINUTE, adopted: 30 * MINUTE}[touch]
    lifetime = {"access_token": "n", "refresh_token": "r", "expires_in": 4 * HOUR + 10 * MINUTE}
    server = TokenServer(answer(200, lifetime))
    ran = run_job(credential(expires_at=NOW + expires_at), server=server, program=touched_after(touch, seconds))
    by_hand = 1 if touch is refreshed_on_demand else 0
    assert len(server.posts) - by_hand == posts
    assert stored(ran).updated_at == (NOW + seconds if posts else NOW)


@pytest.mark.requirement("refresh-throttle-is-cron-only")
def test_a_spawn_renews_a_row_that_the_job_leaves_alone():
    row = credential(expires_at=NOW - MINUTE, updated_at=NOW - 10 * MINUTE)
    server = TokenServer()

    async def both(world: World) -> Any:
        await run_refresh_job(world, [])
        world.events.emit("between", posts=len(server.posts))
        return await refresh(world, KEY, reason="gate")

    ran = run_job(row, server=server, program=both)
    assert ran.named("between") == [{"posts": 0}]
    assert (ran.result.result, len(server.posts), stored(ran).refresh_token) == ("refreshed", 1, NEW_REFRESH)


@pytest.mark.requirement("refresh-reconcile-before-refresh")
@pytest.mark.parametrize("writers", [(CLAUDE,), (PI, CLAUDE), (CLAUDE, PI)])
def test_a_pair_that_a_runtime_has_renewed_is_adopted_and_nothing_is_posted(writers):
    server = TokenServer()
    files = {"/stores/claude.json": pair_text(credential(), seconds=3 * HOUR)}
    ran = run_job(credential(), server=server, files=files, program=job(*writers))
    row = stored(ran)
    assert server.posts == []
    assert (row.access_token, row.refresh_token, row.expires_at) == ("access-run-7", "refresh-run-7", NOW + 3 * HOUR)


def test_an_adopted_pair_that_has_expired_too_is_renewed_with_its_own_token():
    row = credential(expires_at=NOW - 2 * HOUR)
    server = TokenServer()
    files = {"/stores/claude.json": pair_text(row, seconds=-HOUR)}
    ran = run_job(row, server=server, files=files, program=job(CLAUDE))
    assert server.presented == ["refresh-run-7"]
    assert stored(ran).refresh_token == NEW_REFRESH


@pytest.mark.requirement("refresh-reconcile-before-refresh", "refresh-retry-rechecks-row")
@pytest.mark.parametrize("options", [{}, {"keys": [KEY], "attempt": 1}, {"keys": [KEY], "attempt": 3}])
def test_the_stores_are_read_then_the_row_is_locked_then_the_request_is_sent(options):
    async def holder(world: World) -> None:
        transaction = await world.store.begin()
        await transaction.get(TABLE, KEY, lock=True)
        await world.clock.sleep(20)
        await transaction.rollback()
        world.events.emit("freed")

    server = TokenServer()
    hold = Hold("zimmer", "begin", until=lambda event: event.actor == "holder" and event.name == "held")

    async def held(world: World) -> None:
        transaction = await world.store.begin()
        await transaction.get(TABLE, KEY, lock=True)
        world.events.emit("held")
        await world.clock.sleep(20)
        await transaction.rollback()
        world.events.emit("freed")

    row = credential()
    ran = run_job(row, server=server, program=job(CLAUDE, PI, **options), holds=[hold], others={"holder": held})
    order = [event.name for event in ran.events if event.name in ("store.read", "freed", "request")]
    assert order == ["store.read", "store.read", "freed", "request"]
    assert server.times == [20.0]


@pytest.mark.requirement("refresh-recheck-under-row-lock")
def test_of_two_workers_that_selected_one_row_the_second_sees_that_it_is_renewed():
    row, server = credential(), TokenServer()
    hold = Hold("zimmer", f"lock row {TABLE}/{KEY}", until=lambda event: event.name == "credential.refreshed")
    ran = run_job(row, server=server, holds=[hold], others={"second": job()})
    assert server.presented == [OLD_REFRESH]
    assert stored(ran).refresh_token == NEW_REFRESH


@pytest.mark.requirement("refresh-recheck-under-row-lock")
@pytest.mark.parametrize(
    "changed", [{"refresh_token": None}, {"expires_at": NOW + 2 * HOUR}, {"token_endpoint": None}, {"expires_at": None}]
)
def test_a_row_that_has_changed_before_it_is_locked_is_judged_as_it_is_now(changed):
    async def other(world: World) -> None:
        await table.change(world, KEY, lambda row: row and replace(row, **changed))
        world.events.emit("changed")

    server = TokenServer()
    hold = Hold("zimmer", f"lock row {TABLE}/{KEY}", until=lambda event: event.name == "changed")
    ran = run_job(credential(), server=server, holds=[hold], others={"other": other})
    assert server.posts == []
    assert stored(ran) == credential(**changed, updated_at=NOW)


def spawned(reason: Any) -> Program:
    async def program(world: World) -> None:
        await refresh(world, KEY, reason=reason)

    return program


def raced(decisions: Decisions, authorization: AuthorizationServer) -> Ran:
    """Scheduled run, repetition and two spawns at the same time, against single-use tokens."""
    access, token = authorization.issue("cid", expires_in=-60, now=NOW)
    row = credential(access_token=access, refresh_token=token, expires_at=NOW - 60)
    others = {"retry": job(keys=[KEY], attempt=1), "spawn a": spawned("gate"), "spawn b": spawned("injection")}
    server: Any = authorization
    return run_job(row, server=server, decisions=decisions, others=others)


@pytest.mark.requirement("refresh-no-concurrent-post-per-row", "refresh-recheck-under-row-lock")
def test_whoever_refreshes_a_row_at_the_same_time_one_token_is_presented_once():
    lost = 0
    for seed in range(60):
        authorization = AuthorizationServer("https://as.test", Provider(access_seconds=2 * HOUR))
        ran = raced(Seeded(seed), authorization)
        asked = authorization.received("token")
        if "ambiguous" in kinds(ran):  # whoever was stalled for longer than it waits for an answer
            lost += 1
            continue
        assert len(asked) == 1, f"seed {seed}: {len(asked)} requests"
        head = authorization.tokens[-1]
        assert stored(ran).refresh_token == head.refresh, f"seed {seed}: not the head of the chain"
        assert not head.refresh_revoked, f"seed {seed}: the family is revoked"
    assert lost < 20


@pytest.mark.requirement("refresh-one-row-failure-is-isolated", "refresh-unexpected-error-class")
def test_no_failure_of_one_row_keeps_the_next_from_being_renewed():
    rows = [
        replace(row, token_endpoint=f"https://{row.server_name}.test/token")
        for row in due_rows("a-refused", "b-silent", "c-good", "e-good")
    ]
    good, silent = TokenServer(), TokenServer(answer(after_seconds=99.0))
    servers: dict[str, Any] = {f"https://{row.server_name}.test": good for row in rows}
    servers["https://b-silent.test"] = silent
    broken = {(TABLE, "d-broken|0"): {**row_values(credential("d-broken")), "refresh_token": 5}}
    ran = run_job(
        *rows, server=good, servers=servers, rows=broken,
        faults=[Fault("refused", label="POST https://a-refused.test/*")],
    )  # fmt: skip
    assert [event["server"] for event in ran.named("credential.refreshed")] == ["c-good", "e-good"]
    assert kinds(ran) == ["retryable", "ambiguous", "unexpected"]
    assert len(lines(ran, "error")) == 1
    assert "d-broken" in lines(ran, "error")[0]


@pytest.mark.requirement("refresh-http-timeouts-30s", "refresh-one-row-failure-is-isolated")
def test_a_silent_server_costs_the_next_row_thirty_seconds():
    rows = due_rows("a", "b")
    server = TokenServer(lambda request: answer(after_seconds=9999.0 if b"client_id=a" in request.body else 0.0))
    run_job(*rows, server=server)
    assert server.times == [0.0, 30.0]


@pytest.mark.requirement("refresh-retryable-retried-in-band", "refresh-retry-ladder-2-4-8")
@pytest.mark.parametrize("action", ["refused", "dns", "open-timeout"])
def test_a_request_that_never_left_is_repeated_two_minutes_later(action):
    server = TokenServer()
    ran = run_job(credential(), server=server, program=worked(0.9), faults=[Fault(action, label=POSTED, times=1)])
    opened = 30 if action == "open-timeout" else 0
    assert server.times == [30.0 * MINUTE + opened + 2 * MINUTE]
    assert stored(ran).refresh_token == NEW_REFRESH
    assert ran.rows(JOBS) == {}


@pytest.mark.requirement("refresh-retry-ladder-2-4-8", "refresh-retry-log-levels")
def test_the_ladder_has_three_steps_and_the_last_failure_is_an_error():
    server = TokenServer()
    ran = run_job(credential(), server=server, program=worked(0.99), faults=[Fault("refused", label=POSTED)])
    tried = [event.at_seconds - NOW - 30 * MINUTE for event in ran.events if event.name == "fault"]
    assert tried == [0.0, 2 * 60.0, 6 * 60.0, 14 * 60.0]
    levels = [line["level"] for line in ran.named("log")]
    assert levels == ["info", "info", "info", "error"]
    assert all("notion" in line for line in lines(ran))
    assert ran.rows(JOBS) == {}
    assert stored(ran) == credential()
    assert [retry_delay_seconds(attempt) for attempt in (1, 2, 3, 4)] == [120, 240, 480, None]


@pytest.mark.requirement("refresh-retry-ladder-2-4-8", "refresh-retryable-class")
def test_a_repetition_is_queued_for_the_row_that_was_refused_and_for_no_other():
    rows = due_rows("a", "b", "c")
    server = TokenServer(by_server(a=(503, ""), c=(200,)))
    faults = [Fault("refused", label=POSTED, content="*client_id=b*")]
    ran = run_job(*rows, server=server, faults=faults)
    queue = ran.rows(JOBS)
    assert list(queue.values()) == [
        {
            "kind": KIND,
            "keys": [rows[1].credential_key],
            "attempt": 1,
            "run_at": NOW + 2 * MINUTE,
            "failed_at": NOW,
            "known_attempts": 1,
        }
    ]
    assert (stored(ran, "a"), stored(ran, "b")) == (rows[0], rows[1])


@pytest.mark.requirement("refresh-retry-rechecks-row", "refresh-ambiguous-next-cron-reconciles-first")
@pytest.mark.parametrize("run", [{"keys": [KEY], "attempt": 1}, {}])
def test_what_a_session_has_renewed_between_two_runs_is_adopted_by_the_second(run):
    async def program(world: World) -> None:
        await run_refresh_job(world, [CLAUDE])
        await world.files.make_directory("/stores")
        await world.files.write("/stores/claude.json", pair_text(credential(), seconds=2 * HOUR).encode())
        await world.clock.sleep(2 * MINUTE)
        await run_refresh_job(world, [CLAUDE], **run)

    server = TokenServer(answer(after_seconds=99.0))
    ran = run_job(credential(), server=server, program=program)
    assert server.presented == [OLD_REFRESH]
    assert stored(ran).refresh_token == "refresh-run-7"
    assert kinds(ran) == ["ambiguous"]


@pytest.mark.requirement("refresh-retry-rechecks-row")
def test_a_repetition_does_not_heed_the_pause():
    server = TokenServer()
    row = credential(updated_at=NOW - 2 * MINUTE)
    run_job(row, server=server, program=job(keys=[KEY], attempt=1))
    assert server.presented == [OLD_REFRESH]


@pytest.mark.requirement("refresh-retry-rechecks-row")
@pytest.mark.parametrize("changed", [{"expires_at": NOW + HOUR}, {"refresh_token": None}, {"token_endpoint": ""}])
def test_a_repetition_posts_nothing_for_a_row_that_needs_it_no_more(changed):
    server = TokenServer()
    run_job(credential(**changed), server=server, program=job(keys=[KEY], attempt=1))
    assert server.posts == []


def test_a_repetition_leaves_a_row_alone_that_a_spawn_has_renewed_meanwhile():
    """An hour's token is inside the window two minutes later: without this it would be rotated again for nothing."""

    async def spawn(world: World) -> None:
        await world.clock.sleep(31 * MINUTE)
        await refresh(world, KEY, reason="gate")

    server = TokenServer()
    row = credential(expires_at=NOW + 30 * MINUTE)
    faults = [Fault("refused", label=POSTED, times=1)]
    ran = run_job(row, server=server, program=worked(0.99), others={"spawn": spawn}, faults=faults)
    assert server.times == [31.0 * MINUTE]
    assert ran.rows(JOBS) == {}


LOST = [Fault("reset-after", label=POSTED, times=1), Fault("slow", label=POSTED, times=1, seconds=99.0)]


@pytest.mark.requirement("refresh-ambiguous-never-in-band", "refresh-ambiguous-row-untouched")
@pytest.mark.parametrize("fault", LOST, ids=lambda fault: fault.action)
def test_a_lost_answer_is_not_asked_for_again_before_the_next_scheduled_run(fault):
    authorization = AuthorizationServer("https://as.test")
    access, token = authorization.issue("cid", expires_in=5 * HOUR, now=NOW)
    row = credential(access_token=access, refresh_token=token, expires_at=NOW + HOUR)
    server: Any = authorization
    ran = run_job(row, server=server, program=worked(1.2), faults=[fault])
    asked = authorization.received("token")
    assert [each.at - NOW for each in asked] == [30.0 * MINUTE, 60.0 * MINUTE]
    assert kinds(ran) == ["ambiguous", "permanent"], "the second tells that the answer was lost"


@pytest.mark.requirement("refresh-ambiguous-never-in-band", "refresh-transient-no-in-band-retry")
@pytest.mark.parametrize("lost", ["reset-after", "kill", "slow", "outage"])
def test_who_waited_for_the_row_does_not_present_the_token_that_was_just_presented(lost):
    """Two workers at one tick, and a spawn: whoever comes second finds the row as it was, and leaves it."""
    server = TokenServer(answer(503 if lost == "outage" else 200, after_seconds=5.0))
    fault = {
        "reset-after": Fault("reset-after", label=POSTED),
        "slow": Fault("slow", label=POSTED, seconds=99.0),
        "kill": Fault("kill", label="commit", actor="first", after_seconds=5.0),
    }.get(lost)
    row = credential(expires_at=NOW - MINUTE)
    waits = Hold("zimmer", f"lock row {TABLE}/{KEY}", until=lambda event: event.name == "request")
    spawn_waits = Hold("spawn", f"lock row {TABLE}/{KEY}", until=lambda event: event.name == "request")
    ran = run_job(
        row, server=server, others={"first": job(), "spawn": spawned("gate")}, holds=[waits, spawn_waits],
        faults=[fault] if fault else [],
    )  # fmt: skip
    assert [who for _, who, _ in server.posts] == ["first"]
    assert stored(ran) == row
    assert ran.simulation.now > NOW + 4


@pytest.mark.requirement("refresh-ambiguous-never-in-band", "refresh-transient-no-in-band-retry")
@pytest.mark.parametrize(
    ("lost", "lasts"),
    [("reset-after", 5.0), ("kill", 5.0), ("slow", 5.0), ("outage", 5.0), ("outage", 0.5), ("garbage", 0.5)],
)
def test_who_came_while_a_token_was_being_presented_does_not_present_it_once_more(lost, lasts):
    """The first has noted its attempt, and waits for its answer; the others come then, and wait for the row."""
    reply = {"outage": answer(503, after_seconds=lasts), "garbage": answer(200, "not json", after_seconds=lasts)}
    server = TokenServer(reply.get(lost, answer(after_seconds=lasts)))
    fault = {
        "reset-after": Fault("reset-after", label=POSTED),
        "slow": Fault("slow", label=POSTED, seconds=99.0),
        "kill": Fault("kill", label="commit", actor="first", after_seconds=lasts),
    }.get(lost)
    row = credential(expires_at=NOW - MINUTE)
    others = {"first": job(), "spawn": coming(lasts / 2, spawned("gate"))}
    ran = run_job(row, server=server, program=coming(lasts / 3, job()), others=others, faults=[fault] if fault else [])
    assert [who for _, who, _ in server.posts] == ["first"]
    assert stored(ran) == row


def coming(seconds: float, program: Program) -> Program:
    async def later(world: World) -> None:
        await world.clock.sleep(seconds)
        await program(world)

    return later


@pytest.mark.requirement("refresh-retryable-retried-in-band")
def test_who_came_while_a_request_did_not_leave_presents_what_nobody_has():
    server = TokenServer()
    fault = Fault("open-timeout", label=POSTED, actor="first")
    ran = run_job(
        credential(expires_at=NOW - MINUTE), server=server, program=coming(5, spawned("gate")),
        others={"first": job()}, faults=[fault],
    )  # fmt: skip
    assert [who for _, who, _ in server.posts] == ["zimmer"]
    assert stored(ran).refresh_token == NEW_REFRESH


@pytest.mark.requirement("refresh-ambiguous-never-in-band")
@pytest.mark.parametrize("lost", ["reset-after", "kill"])
@pytest.mark.parametrize("came_seconds", [0.0, 2.0])
@pytest.mark.parametrize("from_seconds", [0.0, 4.0])
@pytest.mark.parametrize("wrong_seconds", [HOUR, -HOUR])
@pytest.mark.parametrize("whose", ["first", "zimmer"])
def test_no_clock_that_is_set_brings_a_token_out_again(whose, wrong_seconds, from_seconds, came_seconds, lost):
    """Wrong from the start, or set while one posts and the other waits for the row, before or after the post."""
    server = TokenServer(answer(after_seconds=5.0))
    row = credential(expires_at=NOW - 2 * HOUR, updated_at=NOW - 9 * HOUR)

    async def at_work(world: World) -> None:
        if world.name == whose:
            with_clock(world, wrong_seconds, NOW + from_seconds)
        await world.clock.sleep(came_seconds if world.name == "zimmer" else 0.0)
        await run_refresh_job(world, [])

    fault = Fault("kill", label="commit", actor="first", after_seconds=5.0)
    run_job(
        row, server=server, program=at_work, others={"first": at_work},
        holds=[Hold("zimmer", f"lock row {TABLE}/{KEY}", until=lambda event: event.name == "request")],
        faults=[fault if lost == "kill" else Fault("reset-after", label=POSTED)],
    )  # fmt: skip
    assert [who for _, who, _ in server.posts] == ["first"]


@pytest.mark.requirement("refresh-ambiguous-never-in-band")
def test_a_repetition_that_ends_ambiguously_ends_the_ladder():
    server = TokenServer()
    faults = [Fault("refused", label=POSTED, times=1), Fault("reset-after", label=POSTED, times=1)]
    ran = run_job(credential(), server=server, program=worked(0.99), faults=faults)
    assert kinds(ran) == ["retryable", "ambiguous"]
    assert len(server.posts) == 1
    assert ran.rows(JOBS) == {}
    assert stored(ran) == credential()


@pytest.mark.requirement("refresh-transient-no-in-band-retry", "refresh-transient-429", "refresh-transient-5xx")
@pytest.mark.parametrize("status", [429, 503, 500])
def test_an_outage_is_asked_again_at_the_next_scheduled_run_and_not_before(status):
    server = TokenServer(answer(status, ""))
    ran = run_job(credential(), server=server, program=worked(1.2))
    assert server.times == [30.0 * MINUTE, 60.0 * MINUTE]
    assert stored(ran) == credential()


@pytest.mark.requirement("refresh-unexpected-error-class")
def test_an_answer_that_cannot_be_read_is_not_asked_for_again_in_band():
    server = TokenServer(answer(200, "not json"))
    ran = run_job(credential(), server=server, program=worked(0.99))
    assert (len(server.posts), ran.rows(JOBS), len(lines(ran, "error"))) == (1, {}, 1)


@pytest.mark.requirement("refresh-permanent-nulls-refresh-token")
def test_a_dead_token_is_presented_once():
    server = TokenServer(answer(400, DEAD))
    run_job(credential(), server=server, program=worked(24))
    assert server.presented == [OLD_REFRESH]


@pytest.mark.requirement("refresh-log-line-names-server")
def test_every_failure_of_a_run_names_its_server_and_no_line_holds_a_secret():
    names = ("a", "b", "c", "d", "e")
    rows = [replace(row, client_secret=SECRET) for row in due_rows(*names)]
    replies = by_server(a=(400, DEAD), b=(503, f'{{"refresh_token":"{OLD_REFRESH}"}}'), c=(200, f"junk {NEW_REFRESH}"),
                        d=(200,), e=(302, SECRET))  # fmt: skip
    for faults in ([], [Fault("refused", label=POSTED)], [Fault("reset-after", label=POSTED)]):
        ran = run_job(*rows, server=TokenServer(replies), faults=faults)
        failed = [event["server"] for event in ran.named("credential.refresh_failed")]
        assert len(lines(ran)) == len(failed) >= 4
        for server, line in zip(failed, lines(ran), strict=True):
            assert f"{server}|0123456789abcdef" in line
        assert not [secret for secret in SECRETS if secret in ran.told]


@pytest.mark.requirement("refresh-token-expired-window-is-normal")
def test_an_hour_token_is_expired_and_not_blocked_until_the_pause_is_over():
    """Renewed at 10:00; ready until 11:00, expired until the first run after 14:00."""
    seen: dict[float, str] = {}

    async def look(world: World) -> None:
        for minutes in range(5, 5 * 60, 10):
            await world.clock.sleep(NOW + minutes * MINUTE - world.clock.now())
            row = await table.find(world, KEY)
            assert row is not None
            seen[minutes / 60] = connectors_state(row, world.clock.now())

    row = credential(updated_at=NOW, expires_at=NOW + HOUR)
    server = TokenServer()
    run_job(row, server=server, program=worked(5), others={"page": look})
    assert {state for hours, state in seen.items() if hours < 1} == {"ready"}
    assert {state for hours, state in seen.items() if 1 < hours < 4} == {"token_expired"}
    assert server.times == [4.5 * HOUR]
    assert {state for hours, state in seen.items() if hours > 4.6} == {"ready"}


@pytest.mark.requirement("https-anti-brick")
@pytest.mark.parametrize("endpoint", ["http://as.test/token", "http://127.0.0.1:9000/token", "HTTP://as.test/token"])
@pytest.mark.parametrize("seconds", [30 * MINUTE, -HOUR])
def test_no_way_leads_to_a_post_for_a_cleartext_row(endpoint, seconds):
    row = credential(token_endpoint=endpoint, expires_at=NOW + seconds)
    server = TokenServer()

    async def every_way(world: World) -> None:
        await run_refresh_job(world, [CLAUDE])
        await run_refresh_job(world, [CLAUDE], keys=[KEY], attempt=1)
        await run_due_retries(world, [CLAUDE])
        for reason in ("gate", "injection", "cron", "retry", "manual"):
            try:
                await refresh(world, KEY, reason=reason)
            except (CannotRefreshError, InsecureEndpointError) as error:
                world.events.emit("raised", text=str(error))

    ran = run_job(row, server=server, program=every_way)
    assert (server.posts, stored(ran).refresh_token) == ([], OLD_REFRESH)
    assert stored(ran) == row
    assert ran.named("raised") == [{"text": "Cannot refresh: missing token_endpoint"}]


def test_two_workers_that_were_refused_alike_repeat_a_row_once():
    server = TokenServer()
    faults = [Fault("refused", label=POSTED, nth=1)]
    run_job(credential(), server=server, program=worked(0.9), others={"other": worked(0.9)}, faults=faults)
    assert server.times == [32.0 * MINUTE]


@pytest.mark.requirement("refresh-ambiguous-never-in-band")
@pytest.mark.parametrize("action", ["reset-after", "reset-before"])
def test_a_repetition_is_none_of_what_another_one_has_lost_the_answer_of_since(action):
    """The job never reached the server, a spawn did a minute later, and nobody knows what became of that."""

    async def spawn(world: World) -> None:
        await world.clock.sleep(31 * MINUTE)
        await refresh(world, KEY, reason="injection")

    server = TokenServer()
    faults = [
        Fault("refused", actor="zimmer", label=POSTED, nth=1),
        Fault(action, actor="spawn", label=POSTED),
    ]
    row = credential(expires_at=NOW + 32 * MINUTE)
    ran = run_job(row, server=server, program=worked(0.99), others={"spawn": spawn}, faults=faults)
    assert len(ran.named("fault")) == 2
    assert [each for each in server.times if each > 31 * MINUTE] == []
    assert ran.rows(JOBS) == {}


def test_a_repetition_survives_a_restart_of_the_worker():
    server = TokenServer()
    refused = run_job(credential(), server=server, faults=[Fault("refused", label=POSTED)])

    async def later(world: World) -> None:
        await world.clock.sleep(7 * MINUTE)
        await work(world, [], until=world.clock.now() + MINUTE)

    queue = {(JOBS, key): values for key, values in refused.rows(JOBS).items()}
    ran = run_job(credential(), server=server, program=later, rows=queue)
    assert server.times == [7.0 * MINUTE]
    assert ran.rows(JOBS) == {}


def test_a_repetition_is_not_run_before_its_time_and_a_job_of_another_kind_is_left():
    server = TokenServer()
    waiting = {"kind": KIND, "keys": [KEY], "attempt": 1, "run_at": NOW + 1, "failed_at": NOW - 119}
    rows = {(JOBS, f"{KIND}/{KEY}"): waiting, (JOBS, "other"): {"kind": "other"}}

    async def program(world: World) -> float | None:
        return await run_due_retries(world, [])

    ran = run_job(credential(), server=server, program=program, rows=rows)
    assert (ran.result, server.posts) == (NOW + 1, [])
    assert set(ran.rows(JOBS)) == {f"{KIND}/{KEY}", "other"}


@pytest.mark.parametrize("place", [f"processed {POSTED}", f"put row {TABLE}/{KEY}"])
def test_a_worker_killed_between_answer_and_commit_has_lost_the_pair_and_nobody_repeats_it_in_band(place):
    """The accepted hole: an answer that is lost after the provider has rotated. One post, and one more next time."""
    authorization = AuthorizationServer("https://as.test")
    access, token = authorization.issue("cid", expires_in=HOUR, now=NOW)
    row = credential(access_token=access, refresh_token=token, expires_at=NOW + HOUR)
    server: Any = authorization
    faults = [Fault("kill", actor="first", label=place, times=1)]
    ran = run_job(row, server=server, program=later_worker, others={"first": worked(0.99)}, faults=faults)
    asked = authorization.received("token")
    assert [(each.who, each.at - NOW) for each in asked] == [("first", 30.0 * MINUTE), ("zimmer", 60.0 * MINUTE)]
    assert stored(ran).refresh_token is None
    assert stored(ran).access_token == access


async def later_worker(world: World) -> None:
    """Begins to work when the other one is dead."""
    await world.clock.sleep(31 * MINUTE)
    await work(world, [], until=NOW + 1.2 * HOUR)


def test_a_worker_killed_while_it_waits_for_a_row_leaves_it_to_the_others():
    server = TokenServer(answer(after_seconds=10.0))
    faults = [Fault("kill", actor="second", label=f"lock row {TABLE}/{KEY}")]
    ran = run_job(credential(), server=server, others={"second": job()}, faults=faults)
    assert server.presented == [OLD_REFRESH]
    assert stored(ran).refresh_token == NEW_REFRESH


def test_a_holder_of_a_row_that_is_killed_before_it_has_begun_frees_it():
    server = TokenServer(answer(after_seconds=10.0))
    faults = [Fault("kill", actor="second", label=f"put row {ATTEMPTS}/{KEY}")]
    hold = Hold("zimmer", f"lock row {TABLE}/{KEY}", until=lambda event: event.name == "fault")
    ran = run_job(credential(), server=server, others={"second": job()}, faults=faults, holds=[hold])
    assert [who for _, who, _ in server.posts] == ["zimmer"]
    assert stored(ran).refresh_token == NEW_REFRESH
