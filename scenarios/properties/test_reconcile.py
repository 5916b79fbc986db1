"""Adoption and retiring over whatever may happen: the chain only advances, nothing dead comes back, nothing foreign is
touched.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.catalog.entry import read_entry
from harness.reference.credentials import table
from harness.reference.credentials.adoption import adopted
from harness.reference.credentials.key import Runtime, credential_key, runtime_key
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.retire import retire
from harness.reference.credentials.row import TABLE, Credential
from harness.reference.credentials.state import state_at
from harness.reference.credentials.writers.protocol import RuntimePair
from harness.reference.credentials.writers.registry import registered_writers
from harness.reference.credentials.writers.staging import stage
from harness.reference.oauth.server import remote_server
from harness.world import World
from harness.world.model import Listed
from scenarios.units.oauth_run import run_world
from scenarios.units.reconcile_run import (
    HOUR,
    KEY,
    KEYS,
    NOW,
    RUNTIMES,
    Program,
    Store,
    holding,
    pair_of,
    reconciling,
    retiring,
    row_of,
    stored,
    stores,
    text_of,
)


def no_value(_name: str) -> str | None:
    """A secrets chain without a value."""
    return None


SECONDS = st.one_of(st.none(), st.floats(-4 * HOUR, 9 * HOUR, allow_nan=False), st.integers(-10_000, 30_000))
NAMES = st.sampled_from(["one", "two", "three"])
RUNTIME = st.sampled_from(RUNTIMES)


# --- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-adopt-strictly-later-expiry", "reconcile-equal-expiry-keeps-row")
@given(SECONDS, SECONDS)
def test_of_two_complete_pairs_the_runtimes_is_taken_if_and_only_if_it_expires_later(row_seconds, pair_seconds):
    row = row_of(expires_at=None if row_seconds is None else NOW + row_seconds)
    pair = pair_of(pair_seconds)
    later = row.expires_at is not None and pair.expires_at is not None and pair.expires_at > row.expires_at
    assert (adopted(row, pair) is not None) is later


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("refresh"), RUNTIME, st.floats(0, HOUR)),
        st.tuples(st.just("stamp"), RUNTIME, st.just(0.0)),
        st.tuples(st.just("stamp old"), RUNTIME, st.floats(0, 1)),
        st.tuples(st.just("reconcile"), RUNTIME, st.just(0.0)),
        st.tuples(st.just("job"), RUNTIME, st.just(0.0)),
    ),
    max_size=25,
)


def pair_number(number: int, expires_at: float) -> RuntimePair:
    """A generation of the chain."""
    return RuntimePair(f"access-{number}", f"refresh-{number}", expires_at, None)


@pytest.mark.requirement("reconcile-chain-advances-only", "reconcile-adopt-strictly-later-expiry")
@given(STEPS)
def test_whatever_is_refreshed_and_stamped_the_row_only_moves_forward(steps):
    now = NOW
    chain = [pair_number(0, NOW + HOUR)]
    row = row_of(access_token="access-0", refresh_token="refresh-0", expires_at=NOW + HOUR)
    held: dict[Runtime, RuntimePair] = {}
    for what, runtime, value in steps:
        now += 1.0 + (value if what == "refresh" else 0.0)
        if what == "refresh":
            chain.append(pair_number(len(chain), now + HOUR))
            held[runtime] = chain[-1]
        elif what == "stamp":
            held[runtime] = RuntimePair(row.access_token, row.refresh_token, row.expires_at, row.server_url)
        elif what == "stamp old":
            held[runtime] = chain[int(value * (len(chain) - 1))]
        else:
            for name in RUNTIMES if what == "job" else (runtime,):
                after = adopted(row, held.get(name)) or row
                assert (after.expires_at or 0) >= (row.expires_at or 0)
                assert generation(after) >= generation(row)
                row = after


def generation(row: Credential) -> int:
    """Which pair of the chain a row holds."""
    assert row.refresh_token is not None
    assert row.access_token.rpartition("-")[2] == row.refresh_token.rpartition("-")[2], "a mixture of two pairs"
    return int(row.access_token.rpartition("-")[2])


@pytest.mark.requirement("reconcile-cron-store-order-irrelevant")
@given(
    st.permutations(RUNTIMES), st.lists(st.integers(-7200, 7200), min_size=3, max_size=3, unique=True), st.integers()
)
def test_the_latest_of_all_stores_wins_in_every_order(order, seconds, own):
    row = row_of(expires_at=NOW + own % 7200)
    pairs = {
        name: pair_of(each, access_token=f"{name}-access", refresh_token=f"{name}-refresh")
        for name, each in zip(RUNTIMES, seconds, strict=True)
    }
    files = {"/stores/.keep": "", **{f"/stores/{name}.json": text_of({KEYS[name]: pairs[name]}) for name in RUNTIMES}}
    after = run_world(reconciling(*order), rows=stored(row), files=files).row(TABLE, KEY)
    latest = max(pairs.values(), key=lambda pair: pair.expires_at or 0)
    expected = latest.refresh_token if (latest.expires_at or 0) > (row.expires_at or 0) else row.refresh_token
    assert after is not None
    assert after["refresh_token"] == expected


# --- foreign rows and entries -----------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-two-rows-one-name", "gate-retire-deletes-runtime-copy")
@given(NAMES, st.dictionaries(NAMES, SECONDS, min_size=1), st.booleans(), st.lists(st.integers(0, 3), max_size=30))
def test_no_row_and_no_entry_of_another_server_is_ever_changed(touched, pairs, retires, decisions):
    rows = {
        name: row_of(
            credential_key=name,
            server_name=name,
            runtime_keys=dict.fromkeys(RUNTIMES, name),
            access_token=f"{name}-row",
        )
        for name in ("one", "two", "three")
    }
    held = {name: pair_of(seconds, access_token=f"{name}-access") for name, seconds in pairs.items()}
    files = {"/stores/.keep": "", **{f"/stores/{runtime}.json": text_of(held) for runtime in RUNTIMES}}

    async def program(world: World) -> None:
        if retires:
            await retire(world, touched, stores(), touched)
        else:
            await Reconciler(world, stores()).adopt(touched)

    ran = run_world(
        program,
        rows=stored(*rows.values()),
        files=files,
        others={"spawn": reconciling("pi", key=touched)},
        decisions=Listed(decisions),
    )
    for name in rows:
        if name != touched:
            assert ran.row(TABLE, name) == asdict(rows[name])
    for runtime in RUNTIMES:
        left = json.loads(ran.simulation.tree.read(f"/stores/{runtime}.json", 0))
        assert {name: left.get(name) for name in pairs if name != touched} == {
            name: asdict(held[name]) for name in pairs if name != touched
        }
        assert (touched in left) is (touched in pairs and not retires)


# --- retired is retired -----------------------------------------------------------------------------------------------


def following(steps: Sequence[tuple[str, Runtime]], old: RuntimePair) -> Program:
    """Reconciliations and late writes of the old pair, one after the other."""

    async def program(world: World) -> None:
        for what, runtime in steps:
            if what == "spawn":
                await reconciling(runtime)(world)
            elif what == "job":
                await reconciling()(world)
            else:
                await Store(runtime).change(world, lambda held, key=KEYS[runtime]: {**held, key: old})  # type: ignore[misc]

    return program


WORKERS = st.lists(st.tuples(st.sampled_from(["spawn", "job", "stamp"]), RUNTIME), max_size=8)


@pytest.mark.requirement("gate-retire-then-reconcile-property", "reconcile-retired-credential-stays-dead")
@given(
    st.sampled_from([None, -60.0, 30.0, HOUR]),
    st.lists(RUNTIME, unique=True),
    WORKERS,
    WORKERS,
    st.lists(st.integers(0, 5), max_size=60),
)
def test_after_a_retirement_no_reconciliation_makes_the_row_active_again(seconds, copied, beside, after, decisions):
    """Whoever reconciles beside it and after it, in any order, even if the dead pair is written once more."""
    row = row_of(expires_at=None if seconds is None else NOW + seconds)
    dead = RuntimePair(row.access_token, row.refresh_token, row.expires_at, row.server_url)

    async def program(world: World) -> None:
        await retiring()(world)
        await following(after, dead)(world)

    ran = run_world(
        program,
        rows=stored(row),
        files={**holding(None), **(holding(dead, *copied) if copied else {})},
        others={"other": following(beside, dead), "third": following(tuple(reversed(beside)), dead)},
        decisions=Listed(decisions),
    )
    values = ran.row(TABLE, KEY)
    assert values is not None
    ended = Credential(**values)
    assert ended.refresh_token is None
    assert not state_at(ended, ran.simulation.now).active


@pytest.mark.requirement("gate-retire-then-reconcile-property", "gate-retire-deletes-runtime-copy")
@given(st.lists(RUNTIME, unique=True, min_size=1), st.permutations(RUNTIMES))
def test_a_retirement_leaves_the_pair_in_no_store(copied, order):
    ran = run_world(retiring(*order), rows=stored(row_of()), files={**holding(None), **holding(pair_of(), *copied)})
    for name in RUNTIMES:
        assert json.loads(ran.simulation.tree.read(f"/stores/{name}.json", 0)) == {}


# --- keys -------------------------------------------------------------------------------------------------------------

HEADERS = st.dictionaries(
    st.sampled_from(["X-Trace", "X-Team", "1"]), st.sampled_from(["1", "acme", "é x"]), max_size=2
)
CONFIGS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["http", "streamable-http", "sse"]),
        "url": st.sampled_from(["https://mcp.notion.com/v1/mcp", "https://s.test/mcp?a=1&b=<2>", "https://é.test/ü"]),
    },
    optional={"headers": HEADERS},
)
SERVER_NAMES = st.sampled_from(["notion", "a|b", "häusle", "x y"])


@pytest.mark.requirement("reconcile-key-agreement-contract", "reconcile-key-from-config-or-row")
@given(SERVER_NAMES, CONFIGS)
def test_every_writer_finds_by_the_row_what_it_wrote_by_the_config(name, config):
    """Also for a row that never noted under which keys the runtimes have it."""
    server = remote_server(read_entry(name, config), no_value)
    row = row_of(
        credential_key=server.credential_key,
        server_name=name,
        server_url=server.url,
        runtime_keys=dict(server.runtime_keys),
    )

    async def program(world: World) -> dict[str, tuple[str, str]]:
        writers = registered_writers(world)
        unnoted = replace(row, runtime_keys={})
        return {writer.runtime: (writer.key_for(row), writer.key_for(unnoted)) for writer in writers}

    for runtime, keys in run_world(program).result.items():
        assert keys == (runtime_key(runtime, name, config, {}),) * 2, runtime


@pytest.mark.requirement("reconcile-key-codex-coincidence")
@given(SERVER_NAMES, CONFIGS)
def test_codexs_key_is_the_protocol_key_exactly_for_an_http_server_without_headers(name, config):
    plain = config["type"] != "sse" and not config.get("headers")
    assert (runtime_key("codex", name, config, {}) == credential_key(name, config)) is plain


# --- what Zimmer itself wrote -----------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-stamp-roundtrip-noop")
@given(RUNTIME, st.floats(0, 10, allow_nan=False), st.sampled_from([0.0, 0.0003, 0.0005, 0.001, 0.4, 0.999]))
def test_zimmers_own_copy_is_never_later_than_the_row_it_came_from_or_one_that_is_newer(runtime, fraction, newer):
    server = remote_server(read_entry("notion", {"type": "http", "url": "https://mcp.notion.com/mcp"}), no_value)
    row = row_of(expires_at=NOW + HOUR + fraction, server_url=server.url)
    given_to_it = stage(row, server, runtime)
    assert given_to_it.expires_at_ms is not None
    seconds = given_to_it.expires_at_ms // 1000 if runtime == "pi" else given_to_it.expires_at_ms / 1000
    pair = RuntimePair(given_to_it.access_token, given_to_it.refresh_token, seconds, server.url)
    assert adopted(row, pair) is None
    replaced = replace(
        row, access_token="newer", refresh_token="newer-refresh", expires_at=(row.expires_at or 0) + newer
    )
    assert adopted(replaced, pair) is None


@pytest.mark.requirement("reconcile-no-mid-session-push")
@given(st.lists(st.tuples(RUNTIME, st.floats(60, 4 * HOUR)), max_size=4))
def test_a_reconciliation_writes_to_no_store(found):
    files = holding(None)
    for runtime, seconds in found:
        files |= holding(pair_of(seconds), runtime)
    watched: list[Any] = stores()

    async def program(world: World) -> Any:
        await Reconciler(world, watched).adopt(KEY)
        return await table.find(world, KEY)

    ran = run_world(program, rows=stored(row_of()), files=files)
    assert {what for store in watched for what, _ in store.calls} == {"read"}
    for path, text in files.items():
        assert ran.simulation.tree.read(path, 0).decode() == text
