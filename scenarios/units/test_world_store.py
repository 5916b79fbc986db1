"""The store: transactions, row locks, what a death rolls back, and the lost update that a lock prevents."""

from __future__ import annotations

from typing import Any

import pytest

from harness.world import Row, World, WorldFault
from harness.world.model import Fault, Seeded, Simulation
from scenarios.worlds import alone, ran

SEEDS = 300


async def put(world: World, key: str, **values: Any) -> None:
    """Write and commit one row."""
    transaction = await world.store.begin()
    await transaction.put("rows", key, values)
    await transaction.commit()


async def committed(world: World) -> dict[str, Any]:
    return {row.key: dict(row.values) for row in await world.store.rows("rows")}


def test_a_transaction_reads_its_own_changes_and_others_read_them_after_the_commit():
    async def body(world: World) -> list[Any]:
        await put(world, "kept", n=1)
        await put(world, "deleted", n=1)
        writer, reader = await world.store.begin(), await world.store.begin()
        await writer.put("rows", "kept", {"n": 2})
        await writer.put("rows", "new", {"n": 3})
        await writer.delete("rows", "deleted")
        keys = ("kept", "new", "deleted", "never")
        own = [await writer.get("rows", key) for key in keys]
        before = [await reader.get("rows", key) for key in keys], await committed(world)
        await writer.commit()
        after = [await reader.get("rows", key) for key in keys], await committed(world)
        return [own, before, after]

    changed = [Row("kept", {"n": 2}), Row("new", {"n": 3}), None, None]
    assert alone(body) == [
        changed,
        ([Row("kept", {"n": 1}), None, Row("deleted", {"n": 1}), None], {"deleted": {"n": 1}, "kept": {"n": 1}}),
        (changed, {"kept": {"n": 2}, "new": {"n": 3}}),
    ]


def test_a_rollback_forgets_the_changes_and_frees_the_row():
    async def body(world: World) -> Any:
        await put(world, "a", n=1)
        first = await world.store.begin()
        await first.put("rows", "a", {"n": 2})
        await first.rollback()
        second = await world.store.begin()
        return await second.get("rows", "a", lock=True)

    assert alone(body) == Row("a", {"n": 1})


def test_rows_of_a_table_come_by_key_and_from_that_table_only():
    async def body(world: World) -> Any:
        for key in ("b", "a", "c"):
            await put(world, key)
        transaction = await world.store.begin()
        await transaction.put("other", "d", {})
        await transaction.commit()
        return [row.key for row in await world.store.rows("rows")]

    assert alone(body) == ["a", "b", "c"]


def test_what_one_does_to_the_values_of_a_row_is_not_seen_by_another():
    async def body(world: World) -> Any:
        values = {"scopes": ["read"], "nested": {"a": 1}}
        await put(world, "a", **values)
        values["scopes"].append("write")  # type: ignore[attr-defined]
        for stored in await world.store.rows("rows"):
            stored.values["nested"]["a"] = 2
        transaction = await world.store.begin()
        row = await transaction.get("rows", "a")
        assert row
        row.values["scopes"].clear()
        return await committed(world)

    assert alone(body) == {"a": {"scopes": ["read"], "nested": {"a": 1}}}


@pytest.mark.parametrize("call", ["get", "put", "delete", "commit", "rollback"])
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_an_ended_transaction_cannot_be_used(end, call):
    async def body(world: World) -> None:
        transaction = await world.store.begin()
        await getattr(transaction, end)()
        arguments: tuple[Any, ...] = {"get": ("rows", "a"), "put": ("rows", "a", {}), "delete": ("rows", "a")}.get(
            call, ()
        )
        await getattr(transaction, call)(*arguments)

    with pytest.raises(WorldFault, match="the transaction has ended"):
        ran(bodies={"a": body})


@pytest.mark.parametrize("how", ["commit", "rollback"])
@pytest.mark.parametrize("second", ["get", "put", "delete"])
def test_a_held_row_makes_others_wait_until_its_transaction_ends(second, how):
    async def holds(world: World) -> None:
        transaction = await world.store.begin()
        await transaction.get("rows", "a", lock=True)
        await transaction.get("rows", "a", lock=True)
        await world.clock.sleep(10)
        await getattr(transaction, how)()
        await world.clock.sleep(10)

    async def waits(world: World) -> float:
        await world.clock.sleep(1)
        transaction = await world.store.begin()
        await transaction.get("rows", "a")  # reading does not wait
        assert world.clock.now() == 1
        await transaction.get("rows", "b", lock=True)  # nor does another row
        assert world.clock.now() == 1
        if second == "get":
            await transaction.get("rows", "a", lock=True)
        elif second == "put":
            await transaction.put("rows", "a", {})
        else:
            await transaction.delete("rows", "a")
        return world.clock.now()

    assert ran(bodies={"holds": holds, "waits": waits}, start_seconds=0).results["waits"] == 10


@pytest.mark.parametrize(
    ("label", "left"), [("put row rows/b", {}), ("commit", {}), ("committed", {"a": {"n": 1}, "b": {"n": 1}})]
)
def test_a_kill_rolls_a_transaction_back_unless_it_was_committed(label, left):
    async def dies(world: World) -> None:
        transaction = await world.store.begin()
        await transaction.put("rows", "a", {"n": 1})
        await transaction.put("rows", "b", {"n": 1})
        await transaction.commit()

    async def judge(world: World) -> Any:
        await world.clock.sleep(1)
        transaction = await world.store.begin()
        await transaction.get("rows", "a", lock=True)
        return await committed(world)

    finished = ran(bodies={"dies": dies, "judge": judge}, faults=[Fault("kill", actor="dies", label=label)])
    assert (finished.ended("dies").exit_code, finished.results["judge"]) == (-9, left)


def test_a_transaction_that_its_program_leaves_open_is_rolled_back():
    async def leaves(world: World) -> None:
        transaction = await world.store.begin()
        await transaction.put("rows", "a", {})

    finished = ran(bodies={"leaves": leaves})
    assert finished.simulation.table.rows("rows") == ()
    assert finished.simulation.table.holders == {}


def test_two_transactions_that_wait_for_each_other_are_a_deadlock():
    async def body(world: World) -> None:
        first, second = ("a", "b") if world.name == "one" else ("b", "a")
        transaction = await world.store.begin()
        await transaction.get("rows", first, lock=True)
        await world.clock.sleep(1)
        await transaction.get("rows", second, lock=True)

    assert ran(bodies={"one": body, "two": body}).outcome.verdict == "deadlock"


def counted(seed: int, *, lock: bool) -> int:
    """What two actors that each count to 2 leave in the row."""

    async def body(world: World) -> None:
        for _ in range(2):
            transaction = await world.store.begin()
            row = await transaction.get("rows", "count", lock=lock)
            await transaction.put("rows", "count", {"n": row.values["n"] + 1 if row else 1})
            await transaction.commit()

    simulation: Simulation = ran(Seeded(seed), bodies={"one": body, "two": body}).simulation
    count: int = simulation.table.rows("rows")[0].values["n"]
    return count


def test_an_update_can_be_lost_without_a_lock_and_never_with_one():
    assert {counted(seed, lock=False) for seed in range(SEEDS)} == {2, 3, 4}
    assert {counted(seed, lock=True) for seed in range(SEEDS)} == {4}
