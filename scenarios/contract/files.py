"""Files: contents, modes, links, what the operating system refuses, locks."""

from __future__ import annotations

from typing import Any, cast

from harness.world import World
from scenarios.contract.cases import case, how


async def text(world: World, path: str) -> str:
    return (await world.files.read(path)).decode()


async def mode(world: World, path: str) -> str:
    found = await world.files.stat(path)
    return "nothing" if found is None else f"{found.kind} {found.mode:o}"


async def furnish(world: World, at: str) -> None:
    """Directories d and d/e, files f and d/f, links of every kind."""
    files = world.files
    await files.make_directory(f"{at}/d/e")
    await files.write(f"{at}/f", b"old")
    await files.write(f"{at}/d/f", b"inner")
    for name, target in {
        "to-file": "f", "to-directory": "d/e", "dangling": "nothing", "loop": "loop", "through": "to-directory/../f",
    }.items():  # fmt: skip
        await files.make_link(f"{at}/{name}", target)


@case("files", ["", "one", "onetwo", "new", "atomic", "atomic", "again"])
async def what_is_written_is_read(world: World, at: str) -> Any:
    files, path, seen = world.files, f"{at}/f", []
    await files.write(path, b"")
    seen.append(await text(world, path))
    await files.append(path, b"one")
    seen.append(await text(world, path))
    await files.append(path, b"two")
    seen.append(await text(world, path))
    await files.write(path, b"new")
    seen.append(await text(world, path))
    await files.write_atomic(path, b"atomic")
    seen.append(await text(world, path))
    await files.make_link(f"{at}/link", "f")
    seen.append(await text(world, f"{at}/link"))
    await files.write(f"{at}/link", b"again")
    return [*seen, await text(world, path)]


@case("files", "whole")
async def a_large_content_comes_back_whole(world: World, at: str) -> Any:
    content = bytes(range(256)) * 20_000
    await world.files.write_atomic(f"{at}/large", content)
    return "whole" if await world.files.read(f"{at}/large") == content else "not whole"


@case(
    "files",
    {
        "written": "file 666", "appended": "file 640", "atomic": "file 600", "plain": "file 644",
        "atomic plain": "file 644", "rewritten": "file 666", "kept": "file 600", "changed": "file 4640",
        "directory": "directory 700", "its parent": "directory 700", "a link": "link 777",
        "link replaced": "file 644", "nothing": "nothing",
    },
)  # fmt: skip
async def modes_are_exactly_what_was_asked_for(world: World, at: str) -> Any:
    files = world.files
    await files.write(f"{at}/w", b"", mode=0o666)
    await files.append(f"{at}/a", b"", mode=0o640)
    await files.write_atomic(f"{at}/t", b"", mode=0o600)
    await files.write(f"{at}/p", b"")
    await files.write_atomic(f"{at}/q", b"")
    seen = {
        "written": await mode(world, f"{at}/w"), "appended": await mode(world, f"{at}/a"),
        "atomic": await mode(world, f"{at}/t"), "plain": await mode(world, f"{at}/p"),
        "atomic plain": await mode(world, f"{at}/q"),
    }  # fmt: skip
    await files.write(f"{at}/w", b"x", mode=0o600)
    seen["rewritten"] = await mode(world, f"{at}/w")
    await files.write_atomic(f"{at}/t", b"x")
    seen["kept"] = await mode(world, f"{at}/t")
    await files.chmod(f"{at}/a", 0o4640)
    seen["changed"] = await mode(world, f"{at}/a")
    await files.make_directory(f"{at}/one/two", mode=0o700)
    seen["directory"], seen["its parent"] = await mode(world, f"{at}/one/two"), await mode(world, f"{at}/one")
    await files.make_link(f"{at}/link", "w")
    seen["a link"] = await mode(world, f"{at}/link")
    await files.write_atomic(f"{at}/link", b"")
    seen["link replaced"] = await mode(world, f"{at}/link")
    seen["nothing"] = await mode(world, f"{at}/w/below")
    return seen


@case("files", [["f", 3], ["to-file", 1], [True, True]])
async def a_status_tells_sizes_and_when(world: World, at: str) -> Any:
    await furnish(world, at)
    before = world.clock.now()
    await world.clock.sleep(2)
    await world.files.write(f"{at}/f", b"new")
    sizes, ages = [], []
    for name in ("f", "to-file"):
        found = await world.files.stat(f"{at}/{name}")
        sizes.append([name, found.size if found else -1])
        ages.append(found.modified_seconds if found else -1.0)
    return [*sizes, [ages[0] > before, ages[1] <= before]]


@case("files", ["d", "dangling", "f", "loop", "through", "to-directory", "to-file"])
async def names_are_sorted(world: World, at: str) -> Any:
    await furnish(world, at)
    return await world.files.names(at)


@case("files", [["appended", "d", "new"], ["inner"], "ENOENT", "ENOTDIR"])
async def names_since_a_time_are_those_of_what_was_modified_since(world: World, at: str) -> Any:
    """A link counts by itself, a directory by what was put into it, and nothing by what was read."""
    await furnish(world, at)
    await world.files.write(f"{at}/appended", b"before")
    await world.clock.sleep(20)
    since = world.clock.now()
    await world.files.append(f"{at}/appended", b" and after")
    await world.files.write(f"{at}/new", b"new")
    await world.files.write(f"{at}/d/inner", b"new")
    await world.files.read(f"{at}/f")
    missing = [await how(world.files.names(f"{at}/{name}", since_seconds=since)) for name in ("missing", "f")]
    return [*[await world.files.names(f"{at}{place}", since_seconds=since) for place in ("", "/d")], *missing]


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "write": (b"x",),
    "append": (b"x",),
    "write_atomic": (b"x",),
    "chmod": (0o600,),
    "make_link": ("f",),
}
REFUSED = {
    "read missing": "ENOENT", "read d": "EISDIR", "read f/x": "ENOTDIR", "read loop": "ELOOP",
    "read dangling": "ENOENT", "read f/": "ENOTDIR", "read through": "inner",
    "write d": "EISDIR", "write missing/x": "ENOENT", "write f/x": "ENOTDIR", "write dangling": "done",
    "append d": "EISDIR", "append missing/x": "ENOENT", "write_atomic missing/x": "ENOENT", "write_atomic d": "EISDIR",
    "names f": "ENOTDIR", "names missing": "ENOENT",
    "make_directory d/e": "done", "make_directory to-directory": "done", "make_directory f": "EEXIST",
    "make_directory to-file": "EEXIST", "make_directory loop": "EEXIST", "make_directory f/new": "ENOTDIR",
    "make_directory to-file/new": "ENOTDIR", "make_directory loop/new": "ELOOP", "make_directory new/newer": "done",
    "chmod missing": "ENOENT", "chmod loop": "ELOOP",
    "remove missing": "ENOENT", "remove d": "ENOTEMPTY", "remove f/x": "ENOTDIR", "remove d/e": "done",
    "remove to-file": "done", "remove loop": "done",
    "resolve missing": "ENOENT", "resolve f/..": "ENOTDIR", "resolve f/": "ENOTDIR", "resolve f/x": "ENOTDIR",
    "lock d": "EISDIR", "lock missing/x": "ENOENT",
}  # fmt: skip


@case("files", REFUSED)
async def what_cannot_be_done_says_why(world: World, at: str) -> Any:
    await furnish(world, at)
    answers = {}
    for name in REFUSED:
        verb, _, path = name.partition(" ")
        answer = await how(getattr(world.files, verb)(f"{at}/{path}", *ARGUMENTS.get(verb, ())))
        answers[name] = answer.decode() if isinstance(answer, bytes) else answer
    return answers


LONG, LONGEST = "é" * 128, "é" * 127
NAMED = {
    f"write {LONG}": "ENAMETOOLONG", f"write {LONGEST}": "done", f"append {'x' * 256}": "ENAMETOOLONG",
    f"write_atomic {LONG}": "ENAMETOOLONG", f"read {LONG}": "ENAMETOOLONG", f"read missing/{LONG}": "ENOENT",
    f"read {LONG}/x": "ENAMETOOLONG", f"stat {LONG}": "ENAMETOOLONG", f"remove {LONG}": "ENAMETOOLONG",
    f"remove_tree {LONG}": "ENAMETOOLONG", f"make_directory {LONG}": "ENAMETOOLONG",
    f"make_directory made/{LONG}": "ENAMETOOLONG", "stat made": "there", f"lock {LONG}": "ENAMETOOLONG",
    f"make_link {LONG}": "ENAMETOOLONG", f"read d/{LONGEST}": "ENOENT",
    "write a\0b": "ENOENT", "write_atomic a\0b": "ENOENT", "read a\0b": "ENOENT", "stat a\0b": "done",
    "make_directory a\0b": "ENOENT", "remove a\0b": "ENOENT", "remove_tree a\0b": "done", "make_link a\0b": "ENOENT",
    "write \udcff": "done",
}  # fmt: skip


@case("files", list(NAMED.values()))
async def what_no_file_can_be_called_is_refused(world: World, at: str) -> Any:
    await furnish(world, at)
    answers = []
    for name in NAMED:
        verb, _, path = name.partition(" ")
        answer = await how(getattr(world.files, verb)(f"{at}/{path}", *ARGUMENTS.get(verb, ())))
        answers.append("there" if isinstance(answer, tuple) else answer)
    return answers


@case("files", ["ENOENT", "ENOENT", ["TypeError"] * 6, "old", None, "bytes", "view", 10])
async def only_bytes_are_a_content_and_only_a_path_is_a_target(world: World, at: str) -> Any:
    await furnish(world, at)
    files, count = world.files, len(await world.files.names(at))
    wrong: tuple[Any, ...] = ("text", 5)
    refused = [
        await how(write(f"{at}/{name}", content))
        for write, name in ((files.write, "f"), (files.append, "new"), (files.write_atomic, "f"))
        for content in wrong
    ]
    seen = [await how(files.make_link(f"{at}/link", target)) for target in ("", "a\0b")]
    left = [await text(world, f"{at}/f"), await files.stat(f"{at}/new")]
    changing, view = cast("bytes", bytearray(b"bytes")), cast("bytes", memoryview(b"view"))
    await files.write(f"{at}/new", changing)
    cast("bytearray", changing).clear()
    await files.write_atomic(f"{at}/newer", view)
    kept = [await text(world, f"{at}/{name}") for name in ("new", "newer")]
    return [*seen, refused, *left, *kept, 8 + len(await files.names(at)) - count]


RENAMED = {
    ("f", "g"): "done", ("g", "g"): "done", ("g", "d/f"): "done", ("d", "d/e"): "EINVAL", ("d", "d/new"): "EINVAL",
    ("d/e", "d"): "ENOTEMPTY", ("d/e", "d/f"): "ENOTDIR", ("d/f", "d/e"): "EISDIR", ("missing", "x"): "ENOENT",
    ("d/f", "missing/x"): "ENOENT", ("missing", "d/f/x"): "ENOTDIR", ("to-directory", "d/link"): "done",
}  # fmt: skip


@case("files", [[source, target, answer] for (source, target), answer in RENAMED.items()])
async def renaming_replaces_what_may_be_replaced(world: World, at: str) -> Any:
    await furnish(world, at)
    return [[one, two, await how(world.files.rename(f"{at}/{one}", f"{at}/{two}"))] for one, two in RENAMED]


LINKS = {("new", "anything"): "done", ("f", "x"): "EEXIST", ("dangling", "x"): "EEXIST", ("other", ""): "ENOENT"}


@case("files", [[path, target, answer] for (path, target), answer in LINKS.items()])
async def a_link_is_made_where_nothing_is(world: World, at: str) -> Any:
    await furnish(world, at)
    return [[path, target, await how(world.files.make_link(f"{at}/{path}", target))] for path, target in LINKS]


@case("files", ["", "/d", "/d/f", "/d/e", "/f"])
async def a_path_resolves_with_dots_after_links(world: World, at: str) -> Any:
    await furnish(world, at)
    paths = (".", "to-directory/..", "through", "to-directory", "d/../to-file")
    return [(await world.files.resolve(f"{at}/{path}")).removeprefix(await world.files.resolve(at)) for path in paths]


@case("files", [["outside"], "kept", "nothing", "done"])
async def a_removed_tree_takes_its_links_and_not_what_they_lead_to(world: World, at: str) -> Any:
    files = world.files
    await files.make_directory(f"{at}/outside")
    await files.write(f"{at}/outside/file", b"kept")
    await files.make_directory(f"{at}/tree/deep/deeper")
    await files.write(f"{at}/tree/deep/file", b"")
    await files.make_link(f"{at}/tree/link", "../outside")
    await files.remove_tree(f"{at}/tree")
    left = [await files.names(at), await text(world, f"{at}/outside/file"), await mode(world, f"{at}/tree")]
    return [*left, await how(files.remove_tree(f"{at}/tree"))]


@case("files", ["relative", "relative"])
async def a_relative_path_starts_at_the_current_directory(world: World, at: str) -> Any:
    below = at.removeprefix(world.env.directory).lstrip("/")
    await world.files.write(f"{below}/f", b"relative")
    return [await text(world, f"{at}/f"), await text(world, f"{below}/f")]


@case("files", ["held", "not free", "not free", "held", "done", "held"])
async def a_lock_is_held_once(world: World, at: str) -> Any:
    async def take(seconds: float | None) -> tuple[Any, str]:
        lock = await world.files.lock(f"{at}/lock", timeout_seconds=seconds)
        return lock, "not free" if lock is None else "held"

    first, seen = await take(None)
    answers = [seen, (await take(0))[1], (await take(1))[1]]
    await first.release()
    second, seen = await take(0)
    answers += [seen, await how(first.release())]
    await second.release()
    return [*answers, (await take(None))[1]]


@case("files", ["waited", True], races=True)
async def whoever_waits_for_a_lock_gets_it_when_it_is_free(world: World, at: str) -> Any:
    first = await world.files.lock(f"{at}/lock")
    assert first is not None
    order: list[str] = []

    async def waits() -> bool:
        lock = await world.files.lock(f"{at}/lock", timeout_seconds=600)
        order.append("got it")
        return lock is not None

    task = world.tasks.start(waits(), "waits")
    await world.tasks.wait([task], timeout_seconds=1)
    waited = "waited" if not order else "did not wait"
    await first.release()
    await world.tasks.wait([task])
    return [waited, task.result()]


@case("files", ["not free", "free", "free"])
async def a_lock_is_on_the_file_and_not_on_its_name(world: World, at: str) -> Any:
    files, path = world.files, f"{at}/lock"
    await files.lock(path)
    await files.rename(path, f"{at}/moved")
    moved = await files.lock(f"{at}/moved", timeout_seconds=0)
    other = await files.lock(path, timeout_seconds=0)
    await files.remove(path)
    again = await files.lock(path, timeout_seconds=0)
    return ["not free" if lock is None else "free" for lock in (moved, other, again)]


UNPRIVILEGED = {
    "read secret": "EACCES", "write readable": "EACCES", "append readable": "EACCES", "write_atomic closed/x": "EACCES",
    "names listless": "EACCES", "stat pathless/x": "EACCES", "read pathless/x": "EACCES", "remove closed/f": "EACCES",
    "make_directory closed/d": "EACCES", "lock readable": "EACCES", "make_directory pathless": "done",
    "read readable": "x", "chmod secret": "done", "read secret again": "x",
}  # fmt: skip


@case("unprivileged", UNPRIVILEGED)
async def permission_bits_bind_whoever_is_not_root(world: World, at: str) -> Any:
    files = world.files
    for name in ("closed", "listless", "pathless"):
        await files.make_directory(f"{at}/{name}")
    for name in ("secret", "readable", "closed/f", "pathless/x"):
        await files.write(f"{at}/{name}", b"x")
    bits = {"secret": 0, "readable": 0o444, "closed": 0o555, "listless": 0o333, "pathless": 0o666}
    for name, allowed in bits.items():
        await files.chmod(f"{at}/{name}", allowed)
    answers = {}
    for name in UNPRIVILEGED:
        verb, path, *_ = name.split(" ")
        answer = await how(getattr(files, verb)(f"{at}/{path}", *ARGUMENTS.get(verb, ())))
        answers[name] = answer.decode() if isinstance(answer, bytes) else answer
    for name in bits:
        await files.chmod(f"{at}/{name}", 0o755)
    return answers
