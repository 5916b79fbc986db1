"""Faults and holds: at the same places, with the same effects. Those of requests are with the requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.world import World
from harness.world.model import Fault, Hold
from scenarios.contract.cases import case, how, program
from scenarios.contract.files import text
from scenarios.contract.processes import LOCALE

OLD, NEW = b"old content", b"new content"


@program
async def victim(world: World, argv: Sequence[str]) -> int:
    """Does one thing to a file, and waits to be killed at it."""
    at = argv[1]
    match argv[2]:
        case "write":
            await world.files.write(f"{at}/f", NEW)
        case "atomic":
            await world.files.write_atomic(f"{at}/f", NEW)
        case "lock":
            await world.files.lock(f"{at}/lock")
            await world.processes.write_line("locked")
            await world.files.stat(f"{at}/f")
        case _:
            await world.processes.write_line("said")
            await world.processes.read_line()
    return 0


KILLS = {
    "write at write": ("write", "write *", "old content"),
    "write at truncated": ("write", "truncated *", ""),
    "atomic at write": ("atomic", "write *", "old content"),
    "atomic at rename": ("atomic", "rename *", "old content"),
    "atomic at renamed": ("atomic", "renamed *", "new content"),
    "lock at stat": ("lock", "stat *", "old content"),
    "speak at stdout": ("speak", "stdout", "old content"),
    "speak at stdin": ("speak", "stdin", "old content"),
}
FAULTS = [Fault("kill", actor=f"*/{name}", label=label) for name, (_, label, _) in KILLS.items()]
LINES = {"lock at stat": ["locked"], "speak at stdin": ["said"]}


@case(
    "faults",
    {
        name: [-9, left, LINES.get(name, []), 1 if name == "atomic at rename" else 0]
        for name, (_, _, left) in KILLS.items()
    },
)
async def a_kill_leaves_what_was_done_and_frees_what_was_held(world: World, at: str) -> Any:
    seen = {}
    for name, (what, _, _) in KILLS.items():
        place = f"{at}/{name.replace(' ', '-')}"
        await world.files.make_directory(place)
        await world.files.write(f"{place}/f", OLD)
        env = {"WORLD_ACTOR_NAME": name, **LOCALE}
        child = await world.processes.spawn(["victim", place, what], env=env, directory=at)
        lines = []
        while (line := await child.read_line()) is not None:
            lines.append(line)
        code = await child.wait()
        left = [name for name in await world.files.names(place) if name.endswith(".tmp")]
        assert await world.files.lock(f"{place}/lock", timeout_seconds=0), "a lock of the dead"
        seen[name] = [code, await text(world, f"{place}/f"), lines, len(left)]
    return seen


BROKEN = {
    "eacces": {
        "read f": "EACCES", "stat f": "EACCES", "names .": "EACCES", "resolve f": "EACCES", "chmod f": "EACCES",
        "remove f": "EACCES", "rename f": "EACCES", "make_directory new": "EACCES", "make_link new": "EACCES",
        "lock new": "EACCES", "write f": "EACCES", "append f": "EACCES", "write_atomic f": "EACCES",
        "content f": "old content",
    },
    "enospc": {
        "make_directory new": "ENOSPC", "make_link new": "ENOSPC", "lock new": "ENOSPC", "write_atomic f": "ENOSPC",
        "append f": "ENOSPC", "content f": "old content", "write f": "ENOSPC", "content of f": "",
    },
    "torn": {
        "write_atomic f": "ENOSPC", "content f": "old content", "append f": "ENOSPC",
        "content of f": "old contentnew c", "write f": "ENOSPC", "content now f": "new c",
    },
}  # fmt: skip
FAULTS += [Fault(action, label=f"* */{action}-struck/*") for action in BROKEN]
CALLS: dict[str, tuple[Any, ...]] = {
    "write": (NEW,), "append": (NEW,), "write_atomic": (NEW,), "chmod": (0o600,), "make_link": ("x",),
    "rename": ("/x",),
}  # fmt: skip


@case("faults", BROKEN)
async def a_broken_disk_refuses_and_leaves_what_it_says(world: World, at: str) -> Any:
    seen: dict[str, dict[str, Any]] = {}
    for action, calls in BROKEN.items():
        aside, struck = f"{at}/{action}-aside", f"{at}/{action}-struck"
        await world.files.make_directory(aside)
        await world.files.write(f"{aside}/f", OLD)
        await world.files.rename(aside, struck)
        seen[action] = {}
        for name in calls:
            verb, path = name.partition(" ")[0], name.rpartition(" ")[2]
            if verb == "content":
                await world.files.rename(struck, aside)
                seen[action][name] = await text(world, f"{aside}/{path}")
                await world.files.rename(aside, struck)
                continue
            seen[action][name] = await how(getattr(world.files, verb)(f"{struck}/{path}", *CALLS.get(verb, ())))
        await world.files.rename(struck, aside)
        assert list(await world.files.names(aside)) == ["f"], "something was left"
    return seen


FAULTS += [Fault("eacces", label="rename */at-rename/f"), Fault("enospc", label="truncated */at-truncated/f"),
           Fault("torn", label="truncated */torn-at-truncated/f")]  # fmt: skip


@case("faults", [["EACCES", "old content", ["f"]], ["ENOSPC", "", ["f"]], ["ENOSPC", "new c", ["f"]]])
async def a_fault_in_the_middle_of_a_write_leaves_its_part(world: World, at: str) -> Any:
    seen = []
    for name, write in (
        ("at-rename", world.files.write_atomic), ("at-truncated", world.files.write),
        ("torn-at-truncated", world.files.write),
    ):  # fmt: skip
        await world.files.make_directory(f"{at}/{name}")
        await world.files.append(f"{at}/{name}/f", OLD)
        answer = await how(write(f"{at}/{name}/f", NEW))
        seen.append([answer, await text(world, f"{at}/{name}/f"), await world.files.names(f"{at}/{name}")])
    return seen


SPAWN_FAULTS = [Fault("enoent", label="spawn victim", nth=1), Fault("eacces-exec", label="spawn victim", nth=2)]


@case("spawn faults", ["ENOENT", "EACCES", 0])
async def a_program_may_be_missing_for_once(world: World, at: str) -> Any:
    starts = [await how(world.processes.spawn(["victim", at, ""], env=LOCALE, directory=at)) for _ in range(2)]
    child = await world.processes.spawn(["victim", at, ""], env=LOCALE, directory=at)
    await child.close_stdin()
    return [*starts, await child.wait()]


@program
async def author(world: World, argv: Sequence[str]) -> int:
    """Writes its name, and tells when it has."""
    await world.files.write(f"{argv[1]}/f", argv[2].encode())
    world.events.emit("wrote", who=argv[2])
    return 0


HOLDS = [
    Hold(
        "*/author",
        "write */a_hold_decides_who_is_last/f",
        lambda event: event.details.get("who") == "two",
    ),
]


@case("holds", "one")
async def a_hold_decides_who_is_last(world: World, at: str) -> Any:
    children = [await world.processes.spawn(["author", at, who], env=LOCALE, directory=at) for who in ("one", "two")]
    for child in children:
        await child.wait()
    return await text(world, f"{at}/f")
