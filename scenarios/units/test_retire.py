"""Retiring a credential: every store's copy first, then the row; and nothing that runs beside it revives the pair."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any, cast

import pytest

from harness.reference.credentials import table
from harness.reference.credentials.adoption import Retirement, adopted, token_digest
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.retire import RETIREMENTS, retire, retired
from harness.reference.credentials.row import TABLE, Credential
from harness.reference.credentials.state import state_at
from harness.reference.credentials.writers.registry import registered_writers
from harness.world import World
from harness.world.model import Fault, Hold, Seeded
from scenarios.units.oauth_run import Ran, run_world
from scenarios.units.reconcile_run import (
    HOUR,
    KEY,
    KEYS,
    NAME,
    NOW,
    RUNTIMES,
    URL,
    Program,
    Provided,
    Store,
    authorizing,
    broken,
    holding,
    pair_of,
    reconciling,
    refreshing,
    retiring,
    row_of,
    stored,
    stores,
    text_of,
    ticking,
)

ROW = row_of()
DEAD = pair_of(HOUR, access_token="row-access", refresh_token="row-refresh", server_url=URL)
SEEDS = range(60)


def row_after(ran: Ran) -> Credential:
    """The row as it is stored afterwards."""
    values = ran.row(TABLE, KEY)
    assert values is not None
    return Credential(**values)


def copies(ran: Ran) -> set[str]:
    """The runtimes whose store still has a pair for the row."""
    held = {name: json.loads(ran.simulation.tree.read(f"/stores/{name}.json", 0)) for name in RUNTIMES}
    return {name for name, pairs in held.items() if KEYS[name] in pairs}


# --- the row ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("gate-retire-drops-refresh-token", "gate-retire-expires-active-row")
def test_a_row_that_is_older_than_the_https_rule_is_retired_too():
    legacy = row_of(token_endpoint="http://as.example.com/token")
    ran = run_world(retiring(), rows=stored(legacy), files=holding(DEAD))
    assert ran.result is True
    assert row_after(ran) == replace(legacy, refresh_token=None, expires_at=NOW - 1, updated_at=NOW)


@pytest.mark.requirement("gate-retire-drops-refresh-token", "gate-retire-expires-active-row")
@pytest.mark.parametrize(
    ("seconds", "refresh", "expiry"),
    [
        (HOUR, "rt", NOW - 1),
        (0.5, "rt", NOW - 1),
        (None, "rt", NOW - 1),
        (None, None, NOW - 1),
        (HOUR, None, NOW - 1),
        (0, "rt", NOW),
        (-60, "rt", NOW - 60),
        (-60, None, NOW - 60),
    ],
)
def test_a_retired_row_has_no_refresh_token_and_is_inactive_at_once(seconds, refresh, expiry):
    row = row_of(refresh_token=refresh, expires_at=None if seconds is None else NOW + seconds)
    after = retired(row, NOW)
    assert after == replace(row, refresh_token=None, expires_at=expiry)
    assert not state_at(after, NOW).active
    ran = run_world(retiring(), rows=stored(row), files=holding(None))
    assert ran.result is True
    assert replace(row_after(ran), updated_at=row.updated_at) == after
    assert ran.named("credential.retired") == [{"server": NAME}]


@pytest.mark.requirement("gate-retire-drops-refresh-token")
def test_retiring_a_credential_that_is_not_stored_says_so_and_touches_nothing():
    ran = run_world(retiring(), files=holding(DEAD))
    assert ran.result is False
    assert ran.rows(TABLE) == {}
    assert ran.rows(RETIREMENTS) == {}
    assert copies(ran) == set(RUNTIMES)
    assert ran.named("credential.retired") == []


# --- the runtimes' copies ---------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "gate-retire-deletes-runtime-copy", "reconcile-retired-credential-stays-dead", "gate-retire-uses-runtime-key"
)
def test_retiring_asks_every_store_for_its_own_key_and_leaves_all_others():
    other = pair_of(access_token="other-access")
    files = {
        f"/stores/{name}.json": text_of({KEYS[name]: DEAD, "linear|0000000000000000": other, "linear": other})
        for name in RUNTIMES
    }
    asked = stores()

    async def program(world: World) -> bool:
        return await retire(world, KEY, asked, NAME)

    ran = run_world(program, rows=stored(ROW), files=files)
    assert [store.calls for store in asked] == [[("delete", (KEYS[name],))] for name in RUNTIMES]
    for name in RUNTIMES:
        left = json.loads(ran.simulation.tree.read(f"/stores/{name}.json", 0))
        assert left == {"linear|0000000000000000": asdict(other), "linear": asdict(other)}


@pytest.mark.requirement("gate-retire-uses-runtime-key", "gate-retire-deletes-runtime-copy")
def test_the_real_stores_lose_the_keys_that_their_runtimes_use_and_nothing_else():
    keys = {"claude": "notion|f23108a61e497be4", "codex": "notion|bab21fabb59b2ee5", "pi": "notion"}
    row = row_of(credential_key="notion|f23108a61e497be4", server_url="https://mcp.notion.com/sse", runtime_keys=keys)
    entry = {"accessToken": "row-access", "refreshToken": "row-refresh", "expiresAt": int((NOW + HOUR) * 1000)}
    names = ("notion|f23108a61e497be4", "notion|bab21fabb59b2ee5", "notion")
    claude = {"mcpOAuth": dict.fromkeys(names, entry), "claudeAiOauth": {"accessToken": "account"}}
    codex = {name: {"server_name": NAME, "access_token": "row-access"} for name in names}
    home = "/home/zimmer"
    files = {
        f"{home}/.claude/.credentials.json": json.dumps(claude),
        f"{home}/.codex/.credentials.json": json.dumps(codex),
    }

    async def program(world: World) -> bool:
        return await retire(world, row.credential_key, registered_writers(world), NAME)

    ran = run_world(program, rows=stored(row), files=files)
    left = {path: json.loads(ran.simulation.tree.read(path, 0)) for path in files}
    assert set(left[f"{home}/.claude/.credentials.json"]["mcpOAuth"]) == {"notion|bab21fabb59b2ee5", "notion"}
    assert left[f"{home}/.claude/.credentials.json"]["claudeAiOauth"] == {"accessToken": "account"}
    assert set(left[f"{home}/.codex/.credentials.json"]) == {"notion|f23108a61e497be4", "notion"}


@pytest.mark.requirement(
    "gate-retire-deletes-runtime-copy", "reconcile-retired-credential-stays-dead", "gate-retire-race-with-reconcile"
)
def test_the_copies_are_gone_before_the_row_is_changed():
    def stop(at: str) -> Ran:
        return run_world(
            retiring(), rows=stored(ROW), files=holding(DEAD), faults=[Fault("kill", label=at, actor="zimmer")]
        )

    killed = stop(f"put row {TABLE}/{KEY}")
    assert copies(killed) == set()
    assert row_after(killed) == ROW
    early = stop("rename /stores/pi.json*")
    assert copies(early) == {"pi"}
    assert row_after(early) == ROW


@pytest.mark.requirement("gate-retire-deletes-runtime-copy")
@pytest.mark.parametrize("failing", RUNTIMES)
def test_a_store_that_fails_is_told_to_the_caller_with_the_row_still_active_and_the_others_asked(failing):
    writers = [Store(name, breaks=broken("delete") if name == failing else lambda _what: None) for name in RUNTIMES]

    async def program(world: World) -> str:
        try:
            await retire(world, KEY, writers, NAME)
        except OSError:
            return "raised"
        return "retired"

    ran = run_world(program, rows=stored(ROW), files=holding(DEAD))
    assert ran.result == "raised"
    assert row_after(ran) == ROW
    assert copies(ran) == {failing}
    assert ran.named("credential.retired") == []


@pytest.mark.requirement("reconcile-retired-credential-stays-dead", "gate-retire-then-reconcile-property")
def test_after_retiring_no_spawn_on_any_runtime_and_no_refresh_job_revives_the_tokens():
    async def program(world: World) -> list[Any]:
        await retiring()(world)
        spawns = [await reconciling(name)(world) for name in RUNTIMES]
        return [*spawns, await reconciling()(world)]

    ran = run_world(program, rows=stored(ROW), files=holding(DEAD))
    assert ran.result == [None] * 4
    assert copies(ran) == set()
    assert row_after(ran).refresh_token is None
    assert not state_at(row_after(ran), NOW).active


# --- copies out of reach ----------------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-scoped-revocation-limit")
@pytest.mark.parametrize("seconds", [HOUR, 30 * 60.0])
@pytest.mark.parametrize("row", [ROW, row_of(expires_at=None)])
def test_the_retired_pair_or_an_older_one_in_a_sessions_own_directory_is_not_adopted(seconds, row):
    """What lies there still has its future expiry, later than the one that retiring gave the row."""
    private = "/sessions/a/claude.json"
    old = DEAD if seconds == HOUR else pair_of(seconds, access_token="older-access", refresh_token="older-refresh")
    own = Store("claude", path=private)

    async def program(world: World) -> Any:
        await retiring()(world)
        return await Reconciler(world, [own]).adopt(KEY)

    ran = run_world(program, rows=stored(row), files={**holding(DEAD), private: text_of({KEY: old})})
    assert ran.result is None
    assert own.reads == [None]
    assert json.loads(ran.simulation.tree.read(private, 0)) == {KEY: asdict(old)}
    assert row_after(ran).refresh_token is None


@pytest.mark.requirement("reconcile-scoped-revocation-limit", "reconcile-recovers-nulled-row")
def test_what_a_runtime_refreshes_after_a_retirement_counts_and_so_does_a_new_authorization():
    digest = token_digest("row-access")
    row = retired(ROW, NOW)
    past = Retirement(digest, NOW + HOUR)
    assert adopted(row, pair_of(HOUR), past) is None
    assert adopted(row, pair_of(HOUR + 1), past) is not None
    assert adopted(row, pair_of(2 * HOUR, access_token="row-access"), past) is None
    assert adopted(row, pair_of(2 * HOUR), Retirement(digest, None)) is None
    assert adopted(row, pair_of(60), None) is not None
    # The row holds another pair by now: whatever was retired before says nothing of it.
    again = row_of(access_token="again", refresh_token=None, expires_at=NOW - 60)
    assert adopted(again, pair_of(60), past) is not None


@pytest.mark.requirement("reconcile-retired-credential-stays-dead", "reconcile-scoped-revocation-limit")
def test_what_was_retired_by_name_stays_out_after_a_new_authorization_that_lives_shorter():
    past = Retirement(token_digest("row-access"), NOW + HOUR, (token_digest("row-access"), token_digest("row-refresh")))
    again = row_of(access_token="again-access", refresh_token="again-refresh", expires_at=NOW + HOUR / 2)
    assert adopted(again, DEAD) is not None
    assert adopted(again, DEAD, past) is None
    assert adopted(again, replace(DEAD, access_token="another"), past) is None
    assert adopted(again, replace(DEAD, refresh_token="another"), past) is None
    assert adopted(again, pair_of(HOUR), past) is not None
    # A provider that gives the same refresh token again has taken nothing back.
    same = replace(again, refresh_token="row-refresh")
    assert adopted(same, replace(DEAD, access_token="another"), past) is not None


@pytest.mark.requirement("reconcile-retired-credential-stays-dead", "gate-retire-then-reconcile-property")
def test_a_copy_that_a_slow_spawn_wrote_after_a_retirement_does_not_replace_the_next_authorization():
    again = row_of(access_token="again-access", refresh_token="again-refresh", expires_at=NOW + HOUR / 2)

    async def program(world: World) -> Any:
        await retiring()(world)
        await Store("claude").change(world, lambda _held: {KEY: DEAD})
        await authorizing(again)(world)
        spawned = await reconciling("claude")(world)
        await retiring("pi")(world)
        return [spawned, await reconciling("claude")(world)]

    ran = run_world(program, rows=stored(ROW), files=holding(DEAD))
    assert ran.result == [None, None]
    assert (row_after(ran).access_token, row_after(ran).refresh_token) == ("again-access", None)


@pytest.mark.requirement("reconcile-scoped-revocation-limit")
def test_retiring_twice_keeps_what_was_retired_first_in_mind():
    async def program(world: World) -> Any:
        await retiring()(world)
        await retiring()(world)
        await Store("claude").change(world, lambda _held: {KEY: DEAD})
        return await reconciling("claude")(world)

    ran = run_world(program, rows=stored(ROW), files=holding(DEAD))
    assert ran.result is None
    assert row_after(ran).refresh_token is None


@pytest.mark.requirement("gate-retire-race-with-reconcile", "reconcile-retired-credential-stays-dead")
def test_a_spawn_that_read_the_row_before_and_writes_the_pair_after_a_retirement_revives_nothing():
    async def program(world: World) -> Any:
        await retiring()(world)
        await Store("claude").change(world, lambda _held: {KEY: DEAD})
        return [await reconciling("claude")(world), await reconciling()(world)]

    ran = run_world(program, rows=stored(ROW), files=holding(DEAD))
    assert ran.result == [None, None]
    assert not state_at(row_after(ran), NOW).active


def test_what_is_remembered_of_a_retirement_holds_no_token():
    ran = run_world(retiring(), rows=stored(ROW), files=holding(DEAD))
    (noted,) = ran.rows(RETIREMENTS).values()
    assert "row-access" not in json.dumps(dict(noted))
    assert "row-refresh" not in json.dumps(dict(noted))
    assert "row-" not in repr(ran.named("credential.retired"))


# --- races ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("gate-retire-race-with-reconcile", "gate-retire-then-reconcile-property")
@pytest.mark.parametrize("by", [("claude",), RUNTIMES])
def test_a_reconciliation_that_has_read_the_store_before_a_retirement_does_not_write_after_it(by):
    """The store holds what a runtime refreshed, and what the provider then rejected; the row an older pair."""
    newer = pair_of(2 * HOUR, access_token="store-access", refresh_token="store-refresh")
    hold = Hold("reconciler", f"lock row {TABLE}/{KEY}", until=lambda event: event.name == "credential.retired")
    ran = run_world(
        retiring(),
        rows=stored(ROW),
        files=holding(newer),
        holds=[hold],
        others={"reconciler": reconciling(*cast(Any, by))},
    )
    assert ran.named("credential.adopted") == []
    assert row_after(ran).refresh_token is None
    assert not state_at(row_after(ran), NOW).active


def raced(seed: int, row: Credential, files: dict[str, str], **options: Any) -> Ran:
    """A retirement beside others, in an order that the seed decides; time passes, so that anybody may be slow."""
    others: dict[str, Program] = {**options.pop("others"), "time": ticking}
    chance = Seeded(seed, run=0.5, stall=0.15)
    return run_world(retiring(), rows=stored(row), files=files, others=others, decisions=chance, **options)


@pytest.mark.requirement("gate-retire-race-with-reconcile", "gate-retire-then-reconcile-property")
def test_whoever_reconciles_beside_a_retirement_the_row_ends_retired():
    newer = pair_of(2 * HOUR, access_token="store-access", refresh_token="store-refresh")
    adopted_before = 0
    for seed in SEEDS:
        at = float(seed % 7)
        others = {"spawn": reconciling("claude", at=at), "other": reconciling("pi"), "job": reconciling()}
        ran = raced(seed, ROW, holding(newer), others=others)
        assert row_after(ran).refresh_token is None, f"seed {seed}"
        assert not state_at(row_after(ran), ran.simulation.now).active, f"seed {seed}"
        assert copies(ran) == set(), f"seed {seed}"
        adopted_before += len(ran.named("credential.adopted"))
    assert adopted_before > 0, "no reconciliation came before the retirement"


@pytest.mark.requirement("gate-retire-race-with-reconcile", "gate-retire-then-reconcile-property")
def test_a_pair_that_zimmer_renewed_and_handed_over_beside_a_retirement_is_retired_with_it():
    """There is no moment at which the row has ended and its copy is not yet known for what it is."""
    fresh = pair_of(2 * HOUR, server_url=URL)

    async def renewing(world: World) -> None:
        values: dict[str, Any] = {
            "access_token": "new-access",
            "refresh_token": "new-refresh",
            "expires_at": fresh.expires_at,
        }
        row = await table.change(world, KEY, lambda row: replace(row, **values) if row and row.refresh_token else row)
        if row is not None and row.refresh_token is not None:
            await Store("claude").change(world, lambda held: {**held, KEY: fresh})

    renewed = 0
    for seed in range(200):
        others = {"refresh": renewing, "spawn": reconciling("claude", at=float(seed % 3)), "job": reconciling("claude")}
        ran = raced(seed, ROW, holding(DEAD), others=others)
        assert row_after(ran).refresh_token is None, f"seed {seed}"
        assert not state_at(row_after(ran), ran.simulation.now).active, f"seed {seed}"
        renewed += row_after(ran).access_token == "new-access"
    assert renewed > 20, "the renewal hardly ever came first"


@pytest.mark.requirement("gate-retire-race-with-reconcile")
def test_a_new_authorization_beside_a_retirement_stands_whole_or_is_retired_and_the_old_pair_never_comes_back():
    """The new token lives shorter than the old one had left, so that the rule alone would take the old one back."""
    again = row_of(access_token="again-access", refresh_token="again-refresh", expires_at=NOW + HOUR / 2)
    seen = set()
    for seed in SEEDS:
        others = {
            "human": authorizing(again, at=float(seed % 10)),
            "spawn": reconciling("claude", at=float(seed % 3)),
            "job": reconciling(at=float(seed % 5)),
        }
        ran = raced(seed, ROW, holding(DEAD), others=others)
        row = row_after(ran)
        seen.add(row.refresh_token)
        if row.refresh_token is not None:
            assert (row.access_token, row.expires_at) == ("again-access", again.expires_at), f"seed {seed}"
        assert copies(ran) == set(), f"seed {seed}"
    assert seen == {None, "again-refresh"}, "neither order of the race is without the other"


@pytest.mark.requirement("gate-retire-then-reconcile-property")
def test_only_a_refresh_of_the_runtimes_own_can_bring_a_retired_row_back():
    """A runtime that refreshes while its credential is being retired: it writes a new pair, or finds nothing."""
    revived = 0
    for seed in SEEDS:
        provided = Provided()
        others = {
            "runtime": refreshing("claude", at=float(seed % 4)),
            "spawn": reconciling("claude"),
            "job": reconciling(at=18.0),
        }
        files = holding(provided.pair)
        ran = raced(seed, provided.row, files, servers=provided.servers, others=others)
        row = row_after(ran)
        if row.refresh_token is not None:
            assert ran.named("rotated"), f"seed {seed}"
            assert provided.server.generation(row.refresh_token) == provided.server.tokens[-1], f"seed {seed}"
            revived += 1
    assert revived > 0
