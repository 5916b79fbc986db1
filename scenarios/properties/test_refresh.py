"""Renewing for any sequence of answers, and a chain of single-use tokens under any order of those who renew it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal
from urllib.parse import parse_qsl

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fake_servers.oauth import AuthorizationServer, Provider
from harness.reference.credentials import table
from harness.reference.credentials.cron import run_due_retries, run_refresh_job
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.refresh import refresh
from harness.reference.credentials.refresh_answer import refreshed_row
from harness.reference.oauth import transport
from harness.world import Request, Response, World
from harness.world.model import Seeded
from scenarios.units.refresh_run import (
    ENDPOINT,
    HOUR,
    MINUTE,
    NOW,
    PairStore,
    TokenServer,
    answer,
    credential,
    job,
    kinds,
    run_job,
    stored,
)

KEY = credential().credential_key
STORE = "/stores/claude.json"
CLAUDE = PairStore()
LOST = Response(100)
"""What is no answer: the connection breaks after the request was processed."""

GOOD = '{"access_token":"n","refresh_token":"r","expires_in":3600}'
BODIES = [GOOD, '{"access_token":"n"}', '{"error":"invalid_grant"}', '{"ok":false}', "not json", "", "<html>", "null",
          '{"access_token":"","expires_in":9}', '{"authed_user":{"access_token":"u","expires_in":"7"}}']  # fmt: skip
statuses = st.sampled_from([200, 200, 201, 204, 302, 400, 401, 403, 408, 422, 429, 500, 503, 599, 600])
answers = st.tuples(statuses, st.sampled_from(BODIES))
expiries = st.sampled_from([NOW - 30 * HOUR, NOW - 60, NOW + 60, NOW + HOUR, None])


@pytest.mark.requirement(
    "refresh-permanent-is-any-4xx", "refresh-status-classifies-not-body", "refresh-permanent-is-not-one-shot",
    "refresh-permanent-keeps-valid-access-token", "refresh-transient-excluded-before-permanent",
)  # fmt: skip
@given(st.lists(answers, max_size=8), expiries, st.booleans())
def test_a_failure_never_moves_an_expiry_or_an_access_token_and_a_row_with_a_token_is_never_one_shot(
    replies, expires_at, flag
):
    row = credential(expires_at=expires_at, refresh_token_unsupported=flag)
    for status, body in replies:
        if row.refresh_token is None:
            break
        before = row
        result, row, level = refreshed_row(before, status, body, NOW)
        assert (result == "refreshed") == (level is None)
        if result == "refreshed":
            assert status == 200
            assert row.refresh_token
            assert not row.refresh_token_unsupported
        else:
            dropped = replace(before, refresh_token=None)
            assert row == (dropped if result == "permanent" else before)
            assert result == "permanent" or not 400 <= status <= 499 or status == 429
            assert not (status == 429 or 500 <= status <= 599) or row == before


@pytest.mark.requirement("refresh-permanent-nulls-refresh-token", "refresh-needs-refresh-token")
@given(st.lists(answers, min_size=1, max_size=6))
def test_a_row_is_posted_once_a_run_until_it_is_renewed_or_its_grant_is_dead(replies):
    queue = list(replies)
    server = TokenServer(lambda request: answer(*queue.pop(0)))

    async def runs(world: World) -> None:
        for _ in replies:
            await run_refresh_job(world, [])
            await run_due_retries(world, [])
            await world.clock.sleep(30 * MINUTE)

    ran = run_job(credential(), server=server, program=runs)
    results = []
    for status, body in replies:
        results.append(refreshed_row(credential(), status, body, NOW).result)
        if results[-1] in ("refreshed", "permanent"):
            break
    assert len(server.posts) == len(results)
    assert len(kinds(ran)) == len([result for result in results if result != "refreshed"])
    assert stored(ran).refresh_token is None if results[-1] == "permanent" else stored(ran).refresh_token


@dataclass
class Chain:
    """A provider of single-use tokens that may lose its next answer, and what was presented to it against the rules."""

    authorization: AuthorizationServer = field(
        default_factory=lambda: AuthorizationServer("https://as.test", Provider(access_seconds=50 * MINUTE))
    )
    loses: bool = False
    by_runtime: bool = False
    lost: set[str] = field(default_factory=set)
    reused: list[str] = field(default_factory=list)

    @property
    def burned(self) -> list[str]:
        """The spent tokens that Zimmer presented although their successors had arrived somewhere."""
        return [token for token in self.reused if token not in self.lost]

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer, or none."""
        token = dict(parse_qsl(request.body.decode()))["refresh_token"]
        generation = self.authorization.generation(token)
        if generation is not None and generation.spent_at is not None and not self.by_runtime:
            self.reused.append(token)
        response = self.authorization.handle(request, now, who)
        if not self.loses:
            return response
        self.loses = False
        self.lost.add(token)
        return LOST


Step = Literal["cron", "spawn", "runtime", "lose", "wait", "authorize"]


async def played(world: World, chain: Chain, steps: Sequence[Step]) -> None:
    """One step after the other, ten minutes apart."""
    for step in steps:
        if step == "cron":
            await run_refresh_job(world, [CLAUDE])
            await run_due_retries(world, [CLAUDE])
        elif step == "spawn":
            await spawn(world)
        elif step == "runtime":
            chain.by_runtime = True
            await renew_as_runtime(world)
            chain.by_runtime = False
        elif step == "lose":
            chain.loses = True
        elif step == "authorize":
            await authorize(world, chain)
        else:
            await world.clock.sleep(4 * HOUR)
        await world.clock.sleep(10 * MINUTE)


async def spawn(world: World) -> None:
    """Reconcile, renew what is about to expire, hand the pair over unless the runtime's is good and later."""
    await Reconciler(world, [CLAUDE]).adopt(KEY)
    await refresh(world, KEY, reason="injection")
    row = await table.find(world, KEY)
    assert row is not None
    pair = {"access_token": row.access_token, "refresh_token": row.refresh_token, "expires_at": row.expires_at}
    await world.files.write_atomic(STORE, json.dumps({KEY: pair}).encode())


async def renew_as_runtime(world: World) -> None:
    """What a runtime does by itself with what it was given."""
    try:
        pairs = json.loads(await world.files.read(STORE))
    except FileNotFoundError:
        return
    pair = pairs[KEY]
    if not pair["refresh_token"]:
        return
    form = {"grant_type": "refresh_token", "refresh_token": pair["refresh_token"], "client_id": "cid"}
    try:
        reply = await transport.post_form(world, ENDPOINT, form)
    except Exception as error:  # noqa: BLE001 - whatever it was, the runtime keeps what it has
        world.events.emit("runtime.failed", how=type(error).__name__)
        return
    if reply.status == 200:
        body = json.loads(reply.body)
        expires_at = world.clock.now() + body["expires_in"]
        pair = {"access_token": body["access_token"], "refresh_token": body["refresh_token"], "expires_at": expires_at}
        await world.files.write_atomic(STORE, json.dumps({KEY: pair}).encode())


async def authorize(world: World, chain: Chain) -> None:
    """A human consents again: a new chain."""
    access, token = chain.authorization.issue("cid", expires_in=50 * MINUTE, now=world.clock.now())
    row = await table.find(world, KEY)
    assert row is not None
    expires_at = world.clock.now() + 50 * MINUTE
    await table.store(world, replace(row, access_token=access, refresh_token=token, expires_at=expires_at))


def play(steps: Sequence[Step]) -> tuple[Chain, Any]:
    chain = Chain()
    access, token = chain.authorization.issue("cid", expires_in=50 * MINUTE, now=NOW)
    row = credential(access_token=access, refresh_token=token, expires_at=NOW + 50 * MINUTE)
    server: Any = chain

    async def program(world: World) -> None:
        await world.files.make_directory("/stores")
        await played(world, chain, steps)

    return chain, run_job(row, server=server, program=program)


STEPS: tuple[Step, ...] = ("cron", "spawn", "runtime", "lose", "wait", "authorize")


@pytest.mark.requirement("refresh-chain-never-burned")
@given(st.lists(st.sampled_from(STEPS), max_size=14))
@example(["spawn", "runtime", "cron"])
@example(["spawn", "runtime", "wait", "cron"])
@example(["spawn", "wait", "runtime", "spawn", "cron"])
@example(["lose", "cron", "runtime", "wait", "cron"])
def test_no_order_of_runs_spawns_and_runtimes_presents_a_token_that_could_be_known_to_be_spent(steps):
    chain, _ = play(steps)
    assert chain.burned == []


def test_the_orders_of_a_chain_reach_what_they_are_to_show():
    chain, ran = play(["spawn", "runtime", "cron"])
    assert [event["runtime"] for event in ran.named("credential.adopted")] == ["claude"]
    assert chain.reused == []
    chain, ran = play(["lose", "cron", "wait", "cron"])
    assert (len(chain.reused), kinds(ran)) == (1, ["ambiguous", "permanent"])


@pytest.mark.requirement("https-anti-brick")
@given(st.lists(st.sampled_from(["cron", "retry", "gate", "injection"]), max_size=5), expiries)
def test_no_sequence_of_callers_posts_for_a_cleartext_row(callers, expires_at):
    row = credential(token_endpoint="http://as.test/token", expires_at=expires_at)
    server = TokenServer()

    async def program(world: World) -> None:
        for caller in callers:
            await run_refresh_job(world, [CLAUDE], keys=[KEY] if caller == "retry" else None)
            await refresh(world, KEY, reason=caller)

    ran = run_job(row, server=server, program=program)
    assert (server.posts, stored(ran)) == ([], row)


@pytest.mark.requirement("refresh-no-concurrent-post-per-row")
def test_two_workers_and_a_spawn_never_have_two_requests_for_a_row_in_flight():
    slow = answer(200, {"access_token": "n", "refresh_token": "r", "expires_in": 5 * HOUR}, after_seconds=8.0)

    async def spawned(world: World) -> None:
        await refresh(world, KEY, reason="gate")

    renewed = 0
    for seed in range(80):
        server = TokenServer(slow)
        row = credential(expires_at=NOW - 1)
        others = {"worker": job(), "spawn": spawned}
        ran = run_job(row, server=server, decisions=Seeded(seed), others=others)
        in_flight = None
        for event in ran.events:
            if event.name == "request":
                assert in_flight is None, f"seed {seed}: {event.actor} asks while {in_flight} waits for its answer"
                in_flight = event.actor
            elif event.name.startswith("credential."):
                in_flight = None
        assert len(server.posts) <= 1 + kinds(ran).count("ambiguous"), f"seed {seed}"
        renewed += stored(ran).refresh_token == "r"
    assert renewed > 60
