"""A credential whose address depends on a variable: what is filed under the old key goes, and the row follows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.reference.credentials import table
from harness.reference.credentials.cron import run_refresh_job
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.retire import retire
from harness.reference.credentials.row import TABLE, Credential, credential_of
from harness.reference.credentials.writers.registry import registered_writers
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.world import World
from harness.world.model import Fault
from scenarios.units.oauth_run import START_SECONDS
from scenarios.units.spawn_gate_run import HOME, HOUR, STORE, TOKEN, Session, answers_json, credential, remote

TENANT = {"n": remote("n", url="https://${TENANT}.test/mcp")}
OLD, NEW = {"TENANT": "old"}.get, {"TENANT": "new"}.get
CODEX_STORE = f"{HOME}/.codex/.credentials.json"
STORES: Mapping[Runtime, str] = {"claude": STORE, "codex": CODEX_STORE}
RUNTIMES = sorted(STORES)


def moved(seconds: float = 2 * HOUR, **more: Any) -> Credential:
    """A row that was written for the old tenant, a while ago."""
    row = credential("n", seconds, entry=TENANT["n"], lookup=OLD, **more)
    return replace(row, updated_at=START_SECONDS - 5 * HOUR)


def store_of(
    runtime: Runtime, row: Credential, *, access: str = "access-of-n", seconds: float = HOUR
) -> dict[str, str]:
    """A runtime's store with the row's credential, and another server's."""
    expiry = int((START_SECONDS + seconds) * 1000)
    if runtime == "claude":
        common = {"serverUrl": row.server_url, "clientId": "c", "refreshToken": f"refresh-for-{access}"}
        entry = {"serverName": "n", **common, "accessToken": access, "expiresAt": expiry}
        return {STORE: json.dumps({"mcpOAuth": {row.runtime_keys["claude"]: entry, "other|0": {"accessToken": "o"}}})}
    written = {
        "server_name": "n", "server_url": row.server_url, "client_id": "c", "access_token": access,
        "refresh_token": f"refresh-for-{access}", "expires_at": expiry, "scopes": [],
    }  # fmt: skip
    return {CODEX_STORE: json.dumps({row.runtime_keys["codex"]: written, "other|0": {"access_token": "o"}})}


def entries_of(session: Session, runtime: Runtime) -> dict[str, Any]:
    """What the runtime's store holds."""
    document = json.loads(session.text(STORES[runtime]) or "{}")
    entries: dict[str, Any] = document.get("mcpOAuth", {}) if runtime == "claude" else document
    return entries


def row_of(session: Session) -> Credential:
    """The one row."""
    (values,) = session.ran.rows(TABLE).values()
    return credential_of(values)


@pytest.mark.requirement("reconcile-uses-resolved-identity")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_variable_that_changes_leaves_no_second_entry_for_the_same_row(runtime):
    before, after = moved(), credential("n", entry=TENANT["n"], lookup=NEW)
    session = Session(
        TENANT, credentials=[before], files=store_of(runtime, before), runtime=runtime, lookup=NEW,
    )  # fmt: skip
    assert sorted(entries_of(session, runtime)) == sorted([after.runtime_keys[runtime], "other|0"])
    row = row_of(session)
    assert (row.server_url, row.runtime_keys[runtime]) == ("https://new.test/mcp", after.runtime_keys[runtime])
    others = {name: key for name, key in before.runtime_keys.items() if name != runtime}
    assert {name: row.runtime_keys[name] for name in others} == others


@pytest.mark.requirement("reconcile-uses-resolved-identity")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_the_runtime_rotates_at_the_new_address_is_taken_over_and_retired_there(runtime):
    before, after = moved(), credential("n", entry=TENANT["n"], lookup=NEW)

    async def rotated(world: World, order: Order) -> None:
        await run_session(world, order)
        fresh = store_of(runtime, after, access="fresh", seconds=4 * HOUR)
        await world.files.write(STORES[runtime], fresh[STORES[runtime]].encode())
        await run_session(world, order)

    session = Session(
        TENANT, credentials=[before], files=store_of(runtime, before), runtime=runtime, lookup=NEW, program=rotated
    )
    assert row_of(session).access_token == "fresh"

    async def ended(world: World, order: Order) -> None:
        await rotated(world, order)
        await retire(world, before.credential_key, registered_writers(world), "n")

    session = Session(
        TENANT, credentials=[before], files=store_of(runtime, before), runtime=runtime, lookup=NEW, program=ended
    )
    assert list(entries_of(session, runtime)) == ["other|0"]


@pytest.mark.requirement("reconcile-uses-resolved-identity")
def test_what_the_runtime_rotated_under_the_old_key_is_taken_over_before_that_goes():
    before = moved()
    session = Session(
        TENANT, credentials=[before], files=store_of("claude", before, access="fresh", seconds=3 * HOUR), lookup=NEW
    )
    assert row_of(session).access_token == "fresh"
    assert {entry.get("accessToken") for entry in entries_of(session, "claude").values()} == {"fresh", "o"}


@pytest.mark.requirement("reconcile-uses-resolved-identity", "reconcile-refuse-other-server-url")
@pytest.mark.parametrize(
    ("url", "adopted"),
    [("https://old.test/mcp", True), ("https://new.test/mcp", False), ("https://else.test/mcp", False), (None, True)],
)
@pytest.mark.parametrize("spawns", [1, 2])
def test_what_another_runtime_renews_of_the_copy_for_the_old_address_is_the_head_of_the_chain(url, adopted, spawns):
    """Each runtime's copy is compared with what that runtime was given: here Codex, while Claude was given the new."""
    before = moved(HOUR)

    async def then_codex_and_the_job(world: World, order: Order) -> None:
        for _ in range(spawns):
            await run_session(world, order)
        fresh = json.loads(store_of("codex", before, access="fresh", seconds=4 * HOUR)[CODEX_STORE])
        entry = fresh[before.runtime_keys["codex"]]
        entry |= {"server_url": url} if url is not None else {}
        fresh[before.runtime_keys["codex"]] = {key: each for key, each in entry.items() if url or key != "server_url"}
        await world.files.make_directory(CODEX_STORE.rpartition("/")[0])
        await world.files.write(CODEX_STORE, json.dumps(fresh).encode())
        await Reconciler(world, registered_writers(world)).adopt(before.credential_key)

    session = Session(TENANT, credentials=[before], runtime="claude", lookup=NEW, program=then_codex_and_the_job)
    row = row_of(session)
    assert (row.access_token == "fresh") is adopted
    assert row.server_url == "https://new.test/mcp"
    assert row.runtime_keys["codex"] == before.runtime_keys["codex"]


@pytest.mark.requirement("reconcile-uses-resolved-identity")
def test_an_address_that_every_runtime_was_given_is_noted_once():
    before = moved()

    async def on_both(world: World, order: Order) -> None:
        await run_session(world, order)
        seen = await table.find(world, before.credential_key)
        assert seen is not None
        assert seen.runtime_urls == {"codex": "https://old.test/mcp", "pi": "https://old.test/mcp"}
        for runtime in ("codex", "pi"):
            await run_session(world, replace(order, runtime=runtime))

    session = Session(TENANT, credentials=[before], runtime="claude", lookup=NEW, program=on_both)
    assert row_of(session).runtime_urls == {}


@pytest.mark.requirement("refresh-throttle-keys-on-updated-at")
@pytest.mark.parametrize(("lookup", "posts"), [(NEW, 1), (OLD, 1)])
def test_another_address_without_another_token_is_no_change_that_the_refresh_job_waits_for(lookup, posts):
    before = moved(0.9 * HOUR)

    async def then_the_job(world: World, order: Order) -> None:
        await run_session(world, order)
        await run_refresh_job(world, registered_writers(world))

    granted = answers_json(200, access_token="renewed", refresh_token="r2", expires_in=3600)
    session = Session(TENANT, {f"POST {TOKEN}": granted}, credentials=[before], lookup=lookup, program=then_the_job)
    assert session.posts == posts
    alone = Session(TENANT, credentials=[before], lookup=lookup)
    assert row_of(alone).updated_at == before.updated_at


@pytest.mark.requirement("reconcile-uses-resolved-identity")
def test_the_old_key_of_one_row_that_is_anothers_by_now_stays():
    before = moved()
    other = replace(
        before, credential_key="n|anothers", access_token="of-another", server_url="https://new.test/mcp",
    )  # fmt: skip
    session = Session(
        TENANT, credentials=[before, other], files=store_of("claude", before), lookup=NEW,
    )  # fmt: skip
    assert before.runtime_keys["claude"] in entries_of(session, "claude")


def test_an_old_entry_that_cannot_be_deleted_costs_nothing_but_a_warning(monkeypatch):
    async def refuses(*_: Any) -> tuple[str, ...]:
        raise OSError(13, "no")

    monkeypatch.setattr("harness.reference.credentials.writers.claude.ClaudeWriter.delete", refuses)
    before = moved()
    session = Session(TENANT, credentials=[before], files=store_of("claude", before), lookup=NEW)
    assert session.spawns == 1
    assert len(entries_of(session, "claude")) == 3
    assert any(event["level"] == "warn" and "old keys" in event["text"] for event in session.ran.named("log"))


@pytest.mark.requirement("reconcile-uses-resolved-identity")
def test_nothing_is_written_where_the_address_is_the_same():
    before = replace(moved(), credential_key=credential("n", entry=TENANT["n"], lookup=OLD).credential_key)
    deadly = Fault("kill", label=f"delete {TABLE}/*")
    session = Session(TENANT, credentials=[before], files=store_of("claude", before), lookup=OLD, faults=[deadly])
    assert session.spawns == 1
    assert row_of(session) == before
