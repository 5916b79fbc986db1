"""Adoption of what a runtime refreshed: what is refused, when a store is read, and that nothing fails by it."""

from __future__ import annotations

import errno
import itertools
import json
from dataclasses import asdict, replace
from hashlib import sha256
from typing import Any, cast

import pytest

from harness.reference.credentials import refresh, table
from harness.reference.credentials.adoption import adopted, refusal
from harness.reference.credentials.key import Runtime, pi_account
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.row import TABLE
from harness.reference.credentials.state import credential_state, state_at
from harness.reference.credentials.writers.pi_store import manifest_of, stored_pair
from harness.reference.credentials.writers.registry import registered_writers
from harness.vectors.operations.reconcile import LocksRefused
from harness.world import World
from harness.world.errors import ReadTimeout, failure
from harness.world.model import Hold
from scenarios.units.oauth_run import Ran, run_world
from scenarios.units.reconcile_run import (
    HOUR,
    KEY,
    KEYS,
    NAME,
    NOW,
    RUNTIMES,
    URL,
    Provided,
    Store,
    authorizing,
    broken,
    holding,
    pair_of,
    post_refresh,
    reconciling,
    row_of,
    stored,
    stores,
)

LATER = pair_of()
LOCKING = f"lock row {TABLE}/{KEY}"
ROW = row_of()


def reconciled(row: Any, pair: Any, *runtimes: Runtime, **options: Any) -> Ran:
    """One reconciliation of a row with the store of a runtime (Claude's) that holds a pair."""
    names = runtimes or ("claude",)
    return run_world(reconciling(*names), rows=stored(row), files=holding(pair, *names), **options)


def row_after(ran: Ran, key: str = KEY) -> dict[str, Any]:
    """The row as it is stored afterwards."""
    values = ran.row(TABLE, key)
    assert values is not None
    return dict(values)


def logged(ran: Ran, level: str) -> list[str]:
    """The lines of a level."""
    return [line["text"] for line in ran.named("log") if line["level"] == level]


# --- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "reconcile-adopt-strictly-later-expiry", "reconcile-equal-expiry-keeps-row", "reconcile-adopt-expired-pair"
)
@pytest.mark.parametrize(
    ("row_seconds", "pair_seconds", "taken"),
    [
        (HOUR, 2 * HOUR, True),
        (HOUR, 600, False),
        (HOUR, HOUR, False),
        (HOUR, 3600.001, True),
        (-3 * HOUR, -HOUR, True),
        (-HOUR, -3 * HOUR, False),
        (-HOUR, -HOUR, False),
        (-60, 0, True),
        (0, 0, False),
        (0, 0.5, True),
    ],
)
def test_a_pair_is_taken_over_if_it_expires_strictly_later_however_long_ago_that_was(row_seconds, pair_seconds, taken):
    row, pair = row_of(expires_at=NOW + row_seconds), pair_of(pair_seconds)
    assert (adopted(row, pair) is not None) is taken
    after = row_after(reconciled(row, pair))
    assert (after["access_token"], after["expires_at"]) == (
        ("new-access", NOW + pair_seconds) if taken else ("row-access", NOW + row_seconds)
    )


@pytest.mark.requirement(
    "reconcile-refuse-row-without-expiry",
    "reconcile-refuse-other-server-url",
    "reconcile-url-compare-byte-exact",
    "reconcile-refuse-incomplete-pair",
    "reconcile-refuse-identical-pair",
    "reconcile-refuse-runtime-without-expiry",
    "reconcile-equal-expiry-keeps-row",
)
@pytest.mark.parametrize(
    ("row", "pair", "why"),
    [
        (ROW, None, "no entry"),
        (row_of(expires_at=None), LATER, "row without expiry"),
        (row_of(expires_at=None), pair_of(-HOUR), "row without expiry"),
        (ROW, pair_of(server_url="https://mcp.notion.com/other"), "other server"),
        (ROW, pair_of(server_url=f"{URL}/"), "other server"),
        (ROW, pair_of(server_url="https://MCP.notion.com/mcp"), "other server"),
        (ROW, pair_of(server_url="https://mcp.notion.com:443/mcp"), "other server"),
        (ROW, pair_of(server_url=f"{URL}?a=1"), "other server"),
        (row_of(server_url=f"{URL}/"), pair_of(server_url=URL), "other server"),
        (ROW, pair_of(refresh_token=None), "incomplete pair"),
        (ROW, pair_of(refresh_token=""), "incomplete pair"),
        (ROW, pair_of(refresh_token=" \n"), "incomplete pair"),
        (ROW, pair_of(refresh_token=cast(Any, {})), "incomplete pair"),
        (ROW, pair_of(access_token=""), "incomplete pair"),
        (ROW, pair_of(access_token=None), "incomplete pair"),
        (ROW, pair_of(access_token=cast(Any, 12345)), "incomplete pair"),
        (ROW, pair_of(None, access_token="", refresh_token=None), "incomplete pair"),
        (ROW, pair_of(access_token="row-access", refresh_token="row-refresh"), "same pair"),
        (ROW, pair_of(None), "entry without expiry"),
        (ROW, pair_of(expires_at=0), "entry without expiry"),
        (ROW, pair_of(expires_at=-5.0), "entry without expiry"),
        (ROW, pair_of(expires_at=cast(Any, "1900000000")), "entry without expiry"),
        (ROW, pair_of(expires_at=cast("Any", bool(1))), "entry without expiry"),
        (ROW, pair_of(expires_at=float("nan")), "entry without expiry"),
        (ROW, pair_of(expires_at=float("inf")), "entry without expiry"),
        (ROW, pair_of(expires_at=10**400), "entry without expiry"),
        (ROW, pair_of(HOUR), "not later"),
        (ROW, LATER, None),
        (ROW, pair_of(server_url=URL), None),
        (ROW, pair_of(server_url=None), None),
        (ROW, pair_of(server_url=""), None),
        (ROW, pair_of(access_token="row-access"), None),
        (ROW, pair_of(refresh_token="row-refresh"), None),
        (ROW, pair_of(expires_at=int(NOW + 2 * HOUR)), None),
    ],
)
def test_each_refusal_has_a_name_and_holds_for_the_row(row, pair, why):
    assert refusal(row, pair) == why
    assert (adopted(row, pair) is None) is (why is not None)


@pytest.mark.requirement(
    "reconcile-refuse-row-without-expiry",
    "reconcile-refuse-other-server-url",
    "reconcile-refuse-incomplete-pair",
    "reconcile-refuse-identical-pair",
    "reconcile-adoption-touches-updated-at",
)
@pytest.mark.parametrize(
    ("row", "pair"),
    [
        (row_of(expires_at=None), LATER),
        (ROW, pair_of(server_url="https://mcp.notion.com/other")),
        (ROW, pair_of(refresh_token=None)),
        (ROW, pair_of(access_token="row-access", refresh_token="row-refresh")),
        (ROW, pair_of(HOUR)),
        (ROW, None),
    ],
)
def test_a_reconciliation_that_adopts_nothing_writes_nothing(row, pair):
    ran = reconciled(row, pair)
    assert ran.result is None
    assert row_after(ran) == asdict(row)
    assert ran.named("credential.adopted") == []
    assert not [event for event in ran.events if "put row mcp_oauth_credentials" in str(event.details)]


@pytest.mark.requirement(
    "reconcile-adopts-whole-pair", "reconcile-adoption-leaves-other-columns", "reconcile-adoption-touches-updated-at"
)
def test_an_adoption_writes_tokens_and_expiry_and_the_time_and_leaves_every_other_column():
    row = row_of(client_secret="s", scopes="a b", resource="r", issuer="https://i", redirect_uri="https://z/cb")
    ran = reconciled(row, pair_of(server_url=URL))
    after = row_after(ran)
    assert (after["access_token"], after["refresh_token"], after["expires_at"]) == (
        "new-access",
        "new-refresh",
        NOW + 2 * HOUR,
    )
    assert after["updated_at"] == NOW
    before = asdict(row)
    assert {column for column in before if after[column] != before[column]} == {
        "access_token",
        "refresh_token",
        "expires_at",
        "updated_at",
    }
    assert ran.result.access_token == "new-access"
    assert refresh.is_throttled(ran.result, NOW)


@pytest.mark.requirement("reconcile-adopts-whole-pair", "reconcile-update-error-is-nothing")
def test_an_update_that_fails_leaves_the_whole_old_pair_and_says_so_in_one_warning():
    row = row_of(token_endpoint="http://as.example.com/token")
    ran = reconciled(row, LATER)
    assert ran.result is None
    assert row_after(ran) == asdict(row)
    assert len(logged(ran, "warn")) == 1
    assert logged(ran, "error") == []
    assert "new-" not in ran.told


@pytest.mark.requirement("reconcile-adoption-clears-one-shot-flag")
def test_a_refresh_token_that_arrives_settles_the_question_of_the_one_shot_credential():
    row = row_of(refresh_token=None, refresh_token_unsupported=True)
    ran = reconciled(row, LATER)
    assert row_after(ran)["refresh_token_unsupported"] is False
    state = credential_state(2 * HOUR, ran.result.refresh_token, None, ran.result.refresh_token_unsupported)
    assert not state.requires_periodic_reauth


@pytest.mark.requirement("reconcile-recovers-nulled-row")
def test_a_row_whose_refresh_token_was_dropped_is_healed_by_a_live_pair():
    row = row_of(refresh_token=None, expires_at=NOW - 60)
    assert state_at(row, NOW).requires_reauth
    ran = reconciled(row, pair_of(1800))
    assert ran.result is not None
    assert state_at(ran.result, NOW).can_refresh
    assert not state_at(ran.result, NOW).requires_reauth


@pytest.mark.requirement("reconcile-adopting-emits-log")
def test_an_adoption_is_told_in_one_line_without_a_token():
    ran = reconciled(ROW, LATER)
    lines = logged(ran, "info")
    assert len(lines) == 1
    assert NAME in lines[0]
    assert KEY in lines[0]
    assert ran.named("credential.adopted") == [{"server": NAME, "runtime": "claude"}]
    for token in ("row-access", "row-refresh", "new-access", "new-refresh"):
        assert token not in json.dumps([event.details for event in ran.events if event.name != "store"], default=str)
        assert token not in repr(ran.result)


@pytest.mark.requirement("reconcile-adopt-expired-pair")
def test_after_an_idle_time_longer_than_the_tokens_life_the_next_refresh_presents_what_the_runtime_got():
    provided = Provided()
    first = provided.row
    access, second = rotated_once(provided, first.refresh_token or "")
    row = replace(first, expires_at=NOW - 3 * HOUR)
    pair = pair_of(-HOUR, access_token=access, refresh_token=second, server_url=URL)

    async def program(world: World) -> Any:
        await reconciling("claude")(world)
        return await refresh.refresh(world, KEY, reason="gate")

    ran = run_world(program, rows=stored(row), files=holding(pair, "claude"), servers=provided.servers)
    assert ran.result.result == "refreshed"
    assert [asked.fields["refresh_token"] for asked in provided.server.received("token")][1:] == [second]


def rotated_once(provided: Provided, token: str) -> tuple[str, str]:
    """The pair that a runtime got for a refresh token."""

    async def program(world: World) -> Any:
        return await post_refresh(world, token)

    answer = run_world(program, servers=provided.servers).result
    return answer["access_token"], answer["refresh_token"]


@pytest.mark.requirement("reconcile-rotation-kills-prior-token")
def test_a_rotating_provider_takes_a_refresh_token_once_and_ends_the_family_at_the_second_time():
    provided = Provided()
    first = provided.row.refresh_token or ""
    _, second = rotated_once(provided, first)
    assert second != first

    async def again(world: World) -> Any:
        return [await post_refresh(world, first), await post_refresh(world, second)]

    assert run_world(again, servers=provided.servers).result == [None, None]
    assert [asked.status for asked in provided.server.received("token")] == [200, 400, 400]


@pytest.mark.requirement("reconcile-shorter-lifetime-gap")
def test_known_gap_a_refreshed_token_with_a_shorter_life_is_not_adopted():
    row = row_of(expires_at=NOW + 7 * HOUR)
    ran = reconciled(row, pair_of(HOUR))
    assert ran.result is None
    assert row_after(ran)["refresh_token"] == "row-refresh"


# --- several rows, several stores -------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-two-rows-one-name", "reconcile-refuse-other-server-url")
@pytest.mark.parametrize("order", [("old", "new"), ("new", "old")])
def test_of_two_rows_of_one_name_only_the_one_with_the_entrys_url_adopts(order):
    rows = {
        "old": row_of(credential_key="notion|0000000000000000", server_url="https://old.notion.com/mcp"),
        "new": ROW,
    }

    async def program(world: World) -> dict[str, bool]:
        reconciler = Reconciler(world, stores("pi"))
        return {name: await reconciler.adopt(rows[name].credential_key) is not None for name in order}

    ran = run_world(program, rows=stored(*rows.values()), files=holding(pair_of(server_url=URL), "pi"))
    assert ran.result == {"old": False, "new": True}
    assert row_after(ran, "notion|0000000000000000") == asdict(rows["old"])


@pytest.mark.requirement("reconcile-cron-store-order-irrelevant", "reconcile-cron-reads-every-runtime")
@pytest.mark.parametrize("order", list(itertools.permutations(RUNTIMES)))
def test_the_latest_pair_wins_whichever_store_is_read_first(order):
    seconds: dict[Runtime, float] = {"claude": 1200, "pi": 2 * HOUR, "codex": 300}
    files: dict[str, str] = {}
    for name, each in seconds.items():
        files |= holding(pair_of(each, access_token=f"{name}-access", refresh_token=f"{name}-refresh"), name)
    ran = run_world(reconciling(*order), rows=stored(row_of(expires_at=NOW + 600)), files=files)
    assert row_after(ran)["refresh_token"] == "pi-refresh"
    assert ran.result.refresh_token == "pi-refresh"


@pytest.mark.requirement("reconcile-cron-store-order-irrelevant")
def test_of_two_pairs_with_one_expiry_the_one_that_is_read_first_stays():
    files = {
        **holding(pair_of(access_token="c", refresh_token="claude-refresh"), "claude"),
        **holding(pair_of(access_token="p", refresh_token="pi-refresh"), "pi"),
    }
    for order, first in ((("claude", "pi"), "claude-refresh"), (("pi", "claude"), "pi-refresh")):
        ran = run_world(reconciling(*cast(Any, order)), rows=stored(ROW), files=files)
        assert row_after(ran)["refresh_token"] == first


@pytest.mark.requirement("reconcile-codex-no-carve-out", "reconcile-cron-reads-every-runtime")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_runtimes_store_is_reconciled_by_the_same_rule(runtime):
    unchanged = pair_of(HOUR, access_token="row-access", refresh_token="row-refresh")
    assert run_world(reconciling(*RUNTIMES), rows=stored(ROW), files=holding(unchanged)).result is None
    ran = run_world(reconciling(*RUNTIMES), rows=stored(ROW), files={**holding(None), **holding(LATER, runtime)})
    assert ran.named("credential.adopted") == [{"server": NAME, "runtime": runtime}]


@pytest.mark.requirement("reconcile-adoption-is-periodic")
def test_a_change_of_a_store_is_seen_by_the_next_reconciliation_and_by_nothing_else():
    async def program(world: World) -> list[str]:
        seen = []
        for _ in range(2):
            await Store("claude").change(world, lambda held: {**held, KEY: LATER})
            await world.clock.sleep(HOUR)
            row = await table.find(world, KEY)
            seen.append(row.access_token if row else "")
            await reconciling("claude")(world)
        return seen

    assert run_world(program, rows=stored(ROW), files=holding(None)).result == ["row-access", "new-access"]


# --- reading stores ---------------------------------------------------------------------------------------------------


def reads_of(store: Store, keys: list[str]) -> list[Any]:
    """What one reconciler reads of a store for these credentials."""
    rows = [
        row_of(credential_key=key, server_name=key, runtime_keys=dict.fromkeys(RUNTIMES, key))
        for key in sorted({*keys})
    ]

    async def program(world: World) -> None:
        reconciler = Reconciler(world, [store])
        for key in keys:
            assert await reconciler.adopt(key) is None

    run_world(program, rows=stored(*rows))
    return store.reads


@pytest.mark.requirement("reconcile-listable-read-once")
@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_a_store_that_can_be_listed_is_read_once_as_a_whole(runtime):
    assert reads_of(Store(runtime), ["k1", "k2", "k3"]) == [None]
    assert reads_of(Store(runtime, breaks=broken("read")), ["k1", "k2", "k1"]) == [None]


@pytest.mark.requirement("reconcile-probe-only-asked-keys", "reconcile-probe-memoized")
def test_a_store_without_a_listing_is_asked_for_what_is_wanted_each_key_once():
    assert reads_of(Store("pi"), ["notion", "notion", "linear"]) == [("notion",), ("linear",)]
    assert reads_of(Store("pi", breaks=broken("read")), ["notion"] * 3) == [("notion",)]
    assert reads_of(Store("pi", listed=True), ["notion", "linear"]) == [None]


@pytest.mark.requirement("reconcile-listable-read-once", "reconcile-probe-memoized")
def test_one_snapshot_serves_every_credential_even_if_the_store_changes_meanwhile():
    async def program(world: World) -> Any:
        reconciler = Reconciler(world, stores("claude"))
        first = await reconciler.adopt(KEY)
        await Store("claude").change(world, lambda held: {**held, KEY: LATER})
        return first, await reconciler.adopt(KEY)

    assert run_world(program, rows=stored(ROW), files=holding(None)).result == (None, None)


@pytest.mark.requirement("reconcile-constructing-is-free")
def test_building_a_reconciler_reads_nothing_and_a_key_without_a_row_costs_no_read():
    store = Store("claude")

    async def program(world: World) -> Any:
        reconciler = Reconciler(world, [store])
        before = list(store.reads)
        await reconciler.adopt("nobody|0")
        return before, list(store.reads)

    assert run_world(program).result == ([], [])


UNREADABLE: list[Exception] = [
    failure(errno.EACCES, "/stores/claude.json"),
    failure(errno.EIO, "/stores/claude.json"),
    ReadTimeout(),
    ValueError("garbage"),
    KeyError("accessToken"),
    TypeError("not a map"),
    RecursionError(),
    RuntimeError("helper exit 1"),
]


@pytest.mark.requirement("reconcile-unreachable-store-is-nothing")
@pytest.mark.parametrize("error", UNREADABLE, ids=repr)
def test_a_store_that_cannot_be_read_is_nothing_to_adopt_and_the_others_are_read_all_the_same(error):
    async def program(world: World) -> Any:
        alone = await Reconciler(world, [Store("claude", breaks=broken("read", error))]).adopt(KEY)
        untouched = await table.find(world, KEY)
        return (
            alone,
            untouched,
            await Reconciler(world, [Store("claude", breaks=broken("read", error)), Store("pi")]).adopt(KEY),
        )

    ran = run_world(program, rows=stored(ROW), files=holding(LATER, "pi"))
    alone, untouched, beside = ran.result
    assert alone is None
    assert untouched == ROW
    assert beside is not None
    assert logged(ran, "error") == []
    assert len(logged(ran, "warn")) == 2


@pytest.mark.requirement("reconcile-unreachable-store-is-nothing")
@pytest.mark.parametrize("path", ["/home/zimmer/.claude/.credentials.json", "/home/zimmer/.codex/.credentials.json"])
@pytest.mark.parametrize(
    "text", [None, "", "{ not json", "[]", "\x00", '{"mcpOAuth": []}', f'{{"{KEY}": 7, "mcpOAuth": {{"{KEY}": 7}}}}']
)
def test_a_missing_or_corrupt_store_is_nothing_to_adopt(path, text):
    async def program(world: World) -> Any:
        return await Reconciler(world, registered_writers(world)).adopt(KEY)

    ran = run_world(program, rows=stored(ROW), files={} if text is None else {path: text})
    assert ran.result is None
    assert row_after(ran) == asdict(ROW)
    assert logged(ran, "error") == []


@pytest.mark.requirement("reconcile-update-error-is-nothing")
def test_a_row_lock_that_raises_is_told_as_a_warning_and_adopts_nothing():
    async def program(world: World) -> Any:
        return await Reconciler(cast(World, LocksRefused(world)), stores("claude")).adopt(KEY)

    ran = run_world(program, rows=stored(ROW), files=holding(LATER, "claude"))
    assert ran.result is None
    assert row_after(ran) == asdict(ROW)
    assert len(logged(ran, "warn")) == 1
    assert logged(ran, "error") == []


@pytest.mark.requirement("reconcile-update-error-is-nothing")
def test_a_row_that_is_deleted_between_the_reading_and_the_lock_stays_deleted():
    async def deleting(world: World) -> None:
        await table.change(world, KEY, lambda _row: None)
        world.events.emit("deleted")

    hold = Hold("zimmer", LOCKING, until=lambda event: event.name == "deleted")
    ran = reconciled(ROW, LATER, holds=[hold], others={"human": deleting})
    assert ran.result is None
    assert ran.row(TABLE, KEY) is None


@pytest.mark.requirement("reconcile-adoption-rechecked-under-lock")
@pytest.mark.parametrize("seconds", [3 * HOUR, 1.5 * HOUR, 30.0])
def test_a_row_that_another_process_moved_after_the_reading_is_not_written_over(seconds):
    """Later than the snapshot, or earlier: a fresh authorization may live shorter than what lies in the store."""
    newer = row_of(access_token="third-access", refresh_token="third-refresh", expires_at=NOW + seconds)

    async def other(world: World) -> None:
        await Store("claude").delete(world, [KEY])
        await authorizing(newer)(world)

    hold = Hold("zimmer", LOCKING, until=lambda event: event.name == "authorized again")
    ran = reconciled(ROW, LATER, holds=[hold], others={"other": other})
    assert ran.simulation.table.committed[TABLE, KEY]["access_token"] == "third-access"
    assert ran.result is None
    assert ran.named("credential.adopted") == []


@pytest.mark.requirement("reconcile-adoption-rechecked-under-lock")
def test_a_pair_that_is_still_later_than_a_row_that_moved_is_taken_after_a_new_look():
    """Two reconcilers at once: the one that loses the race must not leave the newer pair in the store."""
    between = row_of(access_token="mid-access", refresh_token="mid-refresh", expires_at=NOW + 1.5 * HOUR)
    hold = Hold("zimmer", LOCKING, until=lambda event: event.name == "authorized again")
    ran = reconciled(ROW, LATER, holds=[hold], others={"other": authorizing(between)})
    assert row_after(ran)["access_token"] == "new-access"


# --- Pi's store -------------------------------------------------------------------------------------------------------

PAYLOAD = (
    '{"serverUrl":"https://mcp.notion.com/mcp","tokens":{"accessToken":"a","refreshToken":"r","expiresAt":1900000000}}'
)
DIGEST = "13f1c45e6f5a208e"


def manifest(count: Any = 2, digest: Any = DIGEST, mark: Any = 1) -> str:
    """A base account's text."""
    return json.dumps({"__piMcpAdapterOAuthChunked": mark, "chunkCount": count, "chunkDigest": digest})


@pytest.mark.requirement("reconcile-pi-probe-chunked-entry")
@pytest.mark.parametrize(
    ("base", "chunks", "found"),
    [
        (manifest(), (PAYLOAD[:50], PAYLOAD[50:]), True),
        (manifest(1), (PAYLOAD,), True),
        (manifest(), (PAYLOAD[:50],), False),
        (manifest(), (None, PAYLOAD[50:]), False),
        (manifest(), (PAYLOAD[50:], PAYLOAD[:50]), False),
        (manifest(digest="0" * 16), (PAYLOAD[:50], PAYLOAD[50:]), False),
        (manifest(digest=DIGEST[:15]), (PAYLOAD[:50], PAYLOAD[50:]), False),
        (manifest(digest=DIGEST.upper()), (PAYLOAD[:50], PAYLOAD[50:]), False),
        (manifest(0), (), False),
        (manifest(65), (PAYLOAD[:50], PAYLOAD[50:], *[""] * 63), False),
        (manifest(-1), (PAYLOAD[:50], PAYLOAD[50:]), False),
        (manifest("2"), (PAYLOAD[:50], PAYLOAD[50:]), False),
        (manifest(count=True), (PAYLOAD,), False),
        (manifest(digest=None), (PAYLOAD,), False),
        (manifest(1, mark=2), (PAYLOAD,), False),
    ],
)
def test_an_entry_in_chunks_counts_if_all_are_there_and_the_digest_fits(base, chunks, found):
    digest = json.loads(base)["chunkDigest"]
    texts = {"": base} | {f".chunk.{digest}.{at}": text for at, text in enumerate(chunks) if text is not None}
    pair = stored_pair(texts)
    assert (pair is not None and pair.access_token == "a") is found
    if json.loads(base)["chunkCount"] in (0, 65, -1):
        assert manifest_of(base) is None


@pytest.mark.requirement("reconcile-pi-probe-chunked-entry")
@pytest.mark.parametrize("split", range(1, 40))
def test_an_entry_may_be_split_within_a_character(split):
    payload = json.dumps({"serverUrl": URL, "tokens": {"accessToken": "a\U0001d11e\u00e9"}}, ensure_ascii=False)
    units = payload.encode("utf-16-le")
    at = units.index("\U0001d11e".encode("utf-16-le")) - 40 + 2 * split
    digest = sha256(payload.encode()).hexdigest()[:16]
    parts = [part.decode("utf-16-le", "surrogatepass") for part in (units[:at], units[at:])]
    texts = {"": manifest(2, digest)} | {f".chunk.{digest}.{number}": part for number, part in enumerate(parts)}
    pair = stored_pair(texts)
    assert pair is not None
    assert pair.access_token == "a\U0001d11e\u00e9"


def test_the_digest_of_the_chunks_is_the_first_sixteen_digits_over_the_whole_text():
    assert sha256(PAYLOAD.encode()).hexdigest()[:16] == DIGEST


@pytest.mark.requirement("reconcile-pi-types-checked")
@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ({"accessToken": "a", "refreshToken": "r", "expiresAt": 1_900_000_000.5}, ("a", "r", 1_900_000_000.5)),
        ({"accessToken": "a", "refreshToken": "r", "expiresAt": 1_900_000_000}, ("a", "r", 1_900_000_000)),
        ({"accessToken": "a", "refreshToken": None}, ("a", None, None)),
        ({"accessToken": "a"}, ("a", None, None)),
        ({"accessToken": "a", "refreshToken": "r", "expiresAt": "1900000000"}, None),
        ({"accessToken": "a", "refreshToken": "r", "expiresAt": 0}, None),
        ({"accessToken": "a", "refreshToken": "r", "expiresAt": -1}, None),
        ({"accessToken": "a", "refreshToken": "r", "expiresAt": True}, None),
        ({"accessToken": 12345, "refreshToken": "r"}, None),
        ({"accessToken": "", "refreshToken": "r"}, None),
        ({"refreshToken": "r"}, None),
        ({"accessToken": "a", "refreshToken": {}}, None),
        ({"accessToken": "a", "refreshToken": 7}, None),
        ([], None),
        (None, None),
    ],
)
def test_an_entry_of_pis_store_is_a_pair_if_its_tokens_are_texts_its_expiry_seconds(tokens, expected):
    pair = stored_pair({"": json.dumps({"tokens": tokens, "serverUrl": URL})})
    assert (pair and (pair.access_token, pair.refresh_token, pair.expires_at)) == expected
    assert (adopted(ROW, pair) is not None) is (expected is not None and None not in expected)


@pytest.mark.requirement("reconcile-unreachable-store-is-nothing")
@pytest.mark.parametrize(
    "text", [None, "", "{", "[]", "null", '"a"', "[" * 100_000, '{"clientInfo": {"clientId": "c"}}']
)
def test_whatever_else_stands_in_pis_store_is_nothing(text):
    assert stored_pair({} if text is None else {"": text}) is None


@pytest.mark.requirement("reconcile-pi-account-isolation", "reconcile-key-pi")
def test_pis_account_is_the_digest_of_the_server_name_alone():
    assert pi_account("notion") == "sha256-31f61ed3e6e210c5f3f729345968bdbcf267cf0fbfec31eac02ed9966ba1d067"
    assert pi_account("linear") == "sha256-7f2fe580edb35154041fa3d4b41dd6d3adaef0c85d2ff6309f1d4b520eeecda3"
    assert KEYS["pi"] == NAME
