"""Rows, transactions and row locks, between tasks of one actor and between actors."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any

from harness.world import World
from harness.world.model import Fault
from scenarios.contract.cases import case, how, program

ROUNDS = 5
FAULTS = [
    Fault("kill", actor="*/killed-before", label="commit"),
    Fault("kill", actor="*/killed-after", label="committed"),
]


async def put(world: World, table: str, key: str, **values: Any) -> None:
    transaction = await world.store.begin()
    await transaction.put(table, key, values)
    await transaction.commit()


async def committed(world: World, table: str) -> Any:
    return {row.key: dict(row.values) for row in await world.store.rows(table)}


async def got(transaction: Any, table: str, *keys: str) -> list[Any]:
    found = [await transaction.get(table, key) for key in keys]
    return [row and dict(row.values) for row in found]


@case(
    "store",
    [
        [{"n": 2}, {"n": 3}, None, None],
        [{"n": 1}, None, {"n": 1}, None],
        {"deleted": {"n": 1}, "kept": {"n": 1}},
        [{"n": 2}, {"n": 3}, None, None],
        {"kept": {"n": 2}, "new": {"n": 3}},
    ],
)
async def a_transaction_reads_its_own_changes_and_others_what_is_committed(world: World, at: str) -> Any:
    await put(world, "own", "kept", n=1)
    await put(world, "own", "deleted", n=1)
    writer, reader = await world.store.begin(), await world.store.begin()
    await writer.put("own", "kept", {"n": 2})
    await writer.put("own", "new", {"n": 3})
    await writer.delete("own", "deleted")
    keys = ("kept", "new", "deleted", "never")
    seen = [await got(writer, "own", *keys), await got(reader, "own", *keys), await committed(world, "own")]
    await writer.commit()
    seen += [await got(reader, "own", *keys), await committed(world, "own")]
    await reader.rollback()
    return seen


@case("store", [["\x00", "a", "\ud800", "\uffff", "\U0001f600"], {"n": 1}, ["\ud800", "\U0001f600"]])
async def a_row_is_found_by_any_text_and_texts_are_in_the_order_of_their_characters(world: World, at: str) -> Any:
    for key in ("\U0001f600", "\uffff", "a", "\x00", "\ud800"):
        await put(world, "half \udc00", key, n=1)
    transaction = await world.store.begin()
    found = await transaction.get("half \udc00", "\ud800", lock=True)
    all_rows = list(await committed(world, "half \udc00"))
    for key in ("\x00", "a", "\uffff"):
        await transaction.delete("half \udc00", key)
    await transaction.commit()
    return [all_rows, found and dict(found.values), list(await committed(world, "half \udc00"))]


@case("store", [{"n": 1}, {"n": 1}])
async def a_rollback_forgets_and_frees(world: World, at: str) -> Any:
    await put(world, "back", "a", n=1)
    first = await world.store.begin()
    await first.put("back", "a", {"n": 2})
    await first.rollback()
    second = await world.store.begin()
    row = await second.get("back", "a", lock=True)
    await second.rollback()
    return [row and dict(row.values), (await committed(world, "back"))["a"]]


@case("store", [["Z", "a", "b", "ü"], {"nested": {"list": [1, None, "ü"], "float": 1.5, "true": True}}])
async def rows_come_by_key_and_values_as_they_were(world: World, at: str) -> Any:
    values = {"nested": {"list": [1, None, "ü"], "float": 1.5, "true": True}}
    for key in ("b", "ü", "a", "Z"):
        await put(world, "sorted", key, **values)
    await put(world, "other", "c")
    rows = await world.store.rows("sorted")
    return [[row.key for row in rows], dict(rows[-1].values)]


REFUSED: tuple[dict[Any, Any], ...] = (
    {"v": object()}, {"v": {1, 2}}, {"v": b"bytes"}, {"v": [{"n": nan}]}, {"v": inf}, {"v": -inf},
    {1: "n"}, {"v": {None: 1}},
)  # fmt: skip


@case("store", [["TypeError"] * len(REFUSED), {"v": [1, [2]], "b": True}])
async def only_what_is_json_is_kept(world: World, at: str) -> Any:
    transaction = await world.store.begin()
    await transaction.put("json", "a", {"v": (1, (2,)), "b": True})
    seen = [await how(transaction.put("json", "a", values)) for values in REFUSED]
    await transaction.commit()
    return [seen, (await committed(world, "json"))["a"]]


@case("store", {"scopes": ["read"]})
async def what_one_does_to_values_is_not_seen_by_another(world: World, at: str) -> Any:
    values = {"scopes": ["read"]}
    transaction = await world.store.begin()
    await transaction.put("shared", "a", values)
    values["scopes"].append("write")
    row = await transaction.get("shared", "a")
    assert row is not None
    row.values["scopes"].clear()
    await transaction.commit()
    return (await committed(world, "shared"))["a"]


@case("store", [{"n": 1}, False, ["freed", "locked"], {"n": 2}], races=True)
async def a_held_row_keeps_others_waiting_until_its_transaction_ends(world: World, at: str) -> Any:
    await put(world, "held", "a", n=1)
    holder, other = await world.store.begin(), await world.store.begin()
    await holder.get("held", "a", lock=True)
    await holder.get("held", "a", lock=True)
    await other.get("held", "b", lock=True)
    seen = await got(other, "held", "a")
    steps: list[str] = []

    async def waits() -> Any:
        row = await other.get("held", "a", lock=True)
        steps.append("locked")
        await other.commit()
        return row and dict(row.values)

    task = world.tasks.start(waits(), "waits")
    await world.tasks.wait([task], timeout_seconds=2)
    seen.append(task.done)
    await holder.put("held", "a", {"n": 2})
    steps.append("freed")
    await holder.commit()
    await world.tasks.wait([task])
    return [*seen, steps, task.result()]


@program
async def counter(world: World, argv: Sequence[str]) -> int:
    """Counts to so many in a row that others count in as well."""
    for _ in range(ROUNDS):
        transaction = await world.store.begin()
        row = await transaction.get("counted", "n", lock=True)
        await transaction.put("counted", "n", {"n": row.values["n"] + 1 if row else 1})
        await transaction.commit()
    return 0


@case("store", [[0, 0, 0], {"n": {"n": 3 * ROUNDS}}])
async def no_count_is_lost_between_actors(world: World, at: str) -> Any:
    children = [await world.processes.spawn(["counter"], env={"LC_ALL": "C.UTF-8"}, directory=at) for _ in range(3)]
    return [[await child.wait() for child in children], await committed(world, "counted")]


@program
async def holder(world: World, argv: Sequence[str]) -> int:
    """Changes two rows and waits to be killed, or for its fault."""
    transaction = await world.store.begin()
    for key in ("a", "b"):
        await transaction.put(argv[1], key, {"n": 1})
    await world.processes.write_line("holds")
    if argv[2:] == ["leaves"]:
        return 0
    await transaction.commit()
    await world.clock.sleep(100_000)
    return 0


@case("store", [[-9, {}], [-9, {"a": {"n": 1}, "b": {"n": 1}}], [0, {}]])
async def a_death_rolls_back_and_frees_what_was_not_committed(world: World, at: str) -> Any:
    """The first two are killed by faults, at their commit and just after it."""
    seen = []
    for table, ending in (("killed-before", ""), ("killed-after", ""), ("left", "leaves")):
        env = {"LC_ALL": "C.UTF-8", "WORLD_ACTOR_NAME": table}
        child = await world.processes.spawn(["holder", table, *filter(None, [ending])], env=env, directory=at)
        code = await child.wait()
        transaction = await world.store.begin()
        await transaction.get(table, "a", lock=True)
        seen.append([code, await committed(world, table)])
        await transaction.rollback()
    return seen
