"""A completed authorization reaches the session that it was started from (`McpOauthResumeService`).

Source: seed 002 "Which prompt the resume delivers"; requirements gate-completion-resumes-session, resume-*,
reconnect-live-injection-outside-lock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.reference.credentials.authorized import is_server_authorized
from harness.reference.oauth.flows import TABLE as FLOWS
from harness.reference.oauth.flows import PendingFlow, all_flows, is_expired, is_of_pair
from harness.reference.selection import session as selection
from harness.reference.session import jobs, rows
from harness.reference.session.attempt import attempted
from harness.reference.session.blocking import REQUIRED, required
from harness.reference.session.injection import tell_failure
from harness.reference.session.live_store import Deployment, inject_into_session
from harness.reference.session.resume_decision import Decided, Facts, Result, decide
from harness.reference.session.timeline import tell
from harness.world import World
from harness.world.ports import Transaction

KEY = "credential_key"


async def resume_after_authorization(
    world: World, session: str, deployment: Deployment, server_name: str | None
) -> Result:
    """What the completion of an authorization (of `server_name`; None: of nobody in particular) does to a session.

    Emits `session.resumed` (servers) where the session goes on. The decision is taken, written and its job enqueued
    in one transaction that holds the session's row, so that of two completions at the same time one resumes.
    """
    decided = await decide_under_lock(world, session, deployment, server_name)
    if decided.is_injected and server_name is not None:
        await handed_over(world, session, deployment, server_name)
    return decided.result


async def note_current_key(world: World, session: str, server_name: str, credential_key: str) -> None:
    """Let a parked session wait for the credential that this server has now.

    Its list names the one of when it was blocked. Has the catalog been edited since, a consent is for another key, and
    so is the next spawn: the session would wait for ever for what nobody can authorize any more.
    """
    await rows.change(world, session, lambda values: rekeyed(values, server_name, credential_key))


def rekeyed(values: rows.Values, server_name: str, credential_key: str) -> rows.Values:
    """The row with this key where its list names that server with one."""
    entries = required(values)
    if not any(each.get("server_name") == server_name and each.get(KEY) for each in entries):
        return values
    renamed = [
        {**each, KEY: credential_key} if each.get("server_name") == server_name and each.get(KEY) else dict(each)
        for each in entries
    ]
    return rows.with_metadata(values, {**rows.metadata(values), REQUIRED: renamed})


async def handed_over(world: World, session: str, deployment: Deployment, server_name: str) -> bool:
    """Put the credential into the session's runtime, outside any lock on the session. Best effort."""
    done = await attempted(world, inject_into_session(world, session, deployment, server_name), f"inject {server_name}")
    if done.error is not None:
        tell_failure(world, "warn", f"the credential of {server_name} did not reach the session's runtime", done.error)
    return done.error is None


async def decide_under_lock(world: World, session: str, deployment: Deployment, server_name: str | None) -> Decided:
    """The decision on the row as it is, written."""
    transaction = await world.store.begin()
    try:
        row = await transaction.get(rows.TABLE, session, lock=True)
        values: rows.Values = {} if row is None else row.values
        is_closing = await close_flow(world, transaction, session, server_name)
        decided = decide(values, await facts_of(world, session, values, deployment, server_name))
        await write(world, transaction, session, values, decided, is_closing=is_closing)
    except BaseException:
        await transaction.rollback()
        raise
    tell(world, decided.lines)
    if decided.result == "resumed":
        names = [str(each.get("server_name")) for each in required(values)]
        world.events.emit("session.resumed", servers=names)
    return decided


async def close_flow(world: World, transaction: Transaction, session: str, server_name: str | None) -> bool:
    """Remove the flow that the session has begun for this server meanwhile, in another tab; whether there is one.

    There is nothing left to consent to. A flow is stored under the session's row, so that none comes in between: it
    is seen here, or it belongs to a session that goes on.
    """
    there = () if server_name is None else await all_flows(world)
    flows = [flow for flow in there if is_of_pair(flow, session, str(server_name))]
    for flow in flows:
        await transaction.delete(FLOWS, flow.state)
    return bool(flows)


async def facts_of(
    world: World, session: str, values: rows.Values, deployment: Deployment, server_name: str | None
) -> Facts:
    """What the decision rests on, read while the session's row is held."""
    entries = required(values)
    good = [each for each in entries if await is_server_authorized(world, deployment.catalog, each)]
    now = world.clock.now()
    return Facts(
        authorized=lambda each: any(each is known for known in good),
        has_open_flow=bool(open_flows(await all_flows(world), session, now, server_name)),
        named=server_name,
        selected=selected(values),
        now=now,
    )


def open_flows(
    flows: Sequence[PendingFlow], session: str, now: float, completed: str | None
) -> tuple[PendingFlow, ...]:
    """The consents under way for a session, for any server but the completed one (resume-waits-for-open-flow)."""
    return tuple(
        flow
        for flow in flows
        if flow.session == session and flow.server_name != completed and not is_expired(flow, now)
    )


def selected(values: rows.Values) -> tuple[str, ...]:
    """The servers that a session wires: its own, and those of its plugins."""
    return selection.union(rows.chosen(values), values.get("plugin_servers") or ())


async def write(
    world: World,
    transaction: Transaction,
    session: str,
    before: rows.Values,
    decided: Decided,
    *,
    is_closing: bool = False,
) -> None:
    """The session's row and, with it or not at all, its job and the end of its flow."""
    after = decided.values
    if decided.job is not None:
        job_id = jobs.new_id(world)
        await jobs.enqueue(transaction, job_id, session, decided.job, world.clock.now())
        after = recorded(after, job_id)
    if after != before:
        await transaction.put(rows.TABLE, session, after)
    if after != before or is_closing:
        await transaction.commit()
    else:
        await transaction.rollback()


def recorded(values: rows.Values, job_id: str) -> Mapping[str, Any]:
    """The row with the job that runs for it."""
    return {**values, "running_job_id": job_id}
