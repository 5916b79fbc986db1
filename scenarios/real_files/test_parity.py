"""The same small hostile tree in the model and on disk: guard and heal do and say the same in both."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.reference.session import npx_tree
from harness.world import World
from harness.world.model import Simulation
from harness.world.model.files import Tree
from scenarios.real_files.ground import ANY_TREE, BIN, KEY, OTHER_KEY, PROGRAM, corrupt, ground, live
from scenarios.real_files.users import as_nobody

OWNER = 1
LINK_MODE = 0o777


class Step(NamedTuple):
    """One call of the file port: mkdir, write, link or chmod; `value` is a mode or a link's target."""

    verb: str
    path: str
    value: Any


CLONE = "home/.zimmer/clones/one"
ROOTS = (f"{CLONE}/.npm-cache/_npx", f"{CLONE}/.npm-cache/isolated/a/_npx", f"{CLONE}/.npm-cache/isolated/b/_npx")
TREES = tuple(f"{root}/{key}" for root in ROOTS for key in (KEY, OTHER_KEY))
DIRECTORIES = (
    CLONE,
    f"{CLONE}/.npm-cache",
    f"{CLONE}/.npm-cache/isolated/a",
    *ROOTS,
    *TREES,
    *(f"{tree}/{BIN}" for tree in TREES),
    "home/.npm/_npx",
    "outside",
)
FILES = (*(f"{tree}/{PROGRAM}" for tree in TREES), *(f"{tree}/{BIN}/own" for tree in TREES), "outside/escapee.js")
LINKS = (*(f"{tree}/{BIN}/cowsay" for tree in TREES), *(f"{tree}/{BIN}/\n" for tree in TREES), *DIRECTORIES[:-2])
TARGETS = (
    "../cowsay/dist/index.js",
    "../cowsay",
    "../../node_modules",
    "..",
    ".",
    "own",
    "cowsay",
    "nowhere/at/all",
    f"../{OTHER_KEY}",
    "{root}/outside",
    "{root}/outside/escapee.js",
    f"{{root}}/{ROOTS[1]}",
    f"{{root}}/{TREES[0]}/{PROGRAM}",
    "../../../../../../../../../outside/escapee.js",
    "own/../own",
)
MODES = (0o755, 0o644, 0o600, 0o000, 0o100, 0o500, 0o222)
WHOLE = [Step("mkdir", f"{TREES[0]}/{BIN}", 0o755), Step("mkdir", f"{TREES[0]}/{PROGRAM.rpartition('/')[0]}", 0o755)]
WHOLE += [Step("write", f"{TREES[0]}/{PROGRAM}", 0o644), Step("link", f"{TREES[0]}/{BIN}/cowsay", TARGETS[0])]

CHANGES = st.one_of(
    st.builds(Step, st.just("mkdir"), st.sampled_from(DIRECTORIES), st.sampled_from((0o755, 0o700))),
    st.builds(Step, st.just("write"), st.sampled_from(FILES), st.sampled_from(MODES)),
    st.builds(Step, st.just("link"), st.sampled_from(LINKS), st.sampled_from(TARGETS)),
)
# Set-id bits by chmod alone: the kernel takes them from a file that somebody but root writes to.
LOCKS = st.one_of(
    st.builds(Step, st.just("chmod"), st.sampled_from(DIRECTORIES), st.sampled_from((0o755, 0o000, 0o111, 0o444))),
    st.builds(Step, st.just("chmod"), st.sampled_from(FILES), st.sampled_from((0o4644, 0o2600, 0o1000, 0o6755))),
)
ERRORS = st.sampled_from(
    (
        *(corrupt(f"{{root}}/{tree}") for tree in TREES),
        corrupt(f"_npx/{KEY}"),
        corrupt(f"{{root}}/home/.npm/_npx/{KEY}"),
        corrupt(f"{{root}}/{CLONE}/../../../../outside/.npm-cache/_npx/{KEY}"),
        ANY_TREE,
    )
)


class Case(NamedTuple):
    """A tree as steps, and the errors of a heal."""

    steps: list[Step]
    errors: list[str]


CASES = st.builds(
    lambda first, changes, locks, errors: Case([*first, *changes, *locks], errors),
    st.sampled_from(([], WHOLE)),
    st.lists(CHANGES, max_size=10),
    st.lists(LOCKS, max_size=2),
    st.lists(ERRORS, min_size=1, max_size=3),
)


async def built(world: World, root: str, steps: list[Step]) -> list[str]:
    """Take the steps; the answer is the error of each, empty for none."""
    files = world.files
    told = []
    for step in steps:
        path = f"{root}/{step.path}"
        try:
            if step.verb == "mkdir":
                await files.make_directory(path, mode=step.value)
            elif step.verb == "write":
                await files.make_directory(path.rpartition("/")[0])
                await files.write(path, b"content", mode=step.value)
            elif step.verb == "link":
                await files.make_directory(path.rpartition("/")[0])
                await files.make_link(path, step.value.format(root=root))
            else:
                await files.chmod(path, step.value)
            told.append("")
        except OSError as error:
            told.append(type(error).__name__ + str(error.errno))
    return told


async def told(world: World, root: str, case: Case) -> list[Any]:
    """What a guard, a heal and another guard report on the tree of a case."""
    clone, base = f"{root}/{CLONE}", f"{root}/{CLONE.rpartition('/')[0]}"
    errors = [error.format(root=root) for error in case.errors]
    return [
        await built(world, root, case.steps),
        await npx_tree.guard_bins(world, clone, base),
        await npx_tree.heal_after(world, clone, base, errors),
        await npx_tree.guard_bins(world, clone, base),
    ]


def in_the_model(root: str, case: Case, user: int) -> list[Any]:
    """Reports and listing of the model."""
    simulation = Simulation()
    parent, _, name = root.rpartition("/")
    simulation.tree.make_directory(parent, 0o755, 0, 0.0)
    simulation.tree.make_directory(f"{parent}/{name}", 0o755, 0, 0.0)
    node = dict(simulation.tree.walk(parent or "/"))[root]
    node.owner = user
    answers: list[Any] = []

    async def program(world: World, _argv: object) -> int:
        answers.extend(await told(world, root, case))
        return 0

    actor = simulation.start("zimmer", program, user=user)
    simulation.run()
    error = simulation.ended(actor).error
    if error is not None:
        raise error
    return [*answers, model_listing(simulation.tree, root)]


def model_listing(tree: Tree, root: str) -> dict[str, tuple[str, int, str]]:
    """Kind, mode and target of all below a directory."""
    return {path: (node.kind, node.mode, node.target or "") for path, node in tree.walk(root)}


def on_disk(root: str, case: Case) -> list[Any]:
    """Reports of the operating system's files."""
    body: Callable[[World], Awaitable[list[Any]]] = lambda world: told(world, root, case)  # noqa: E731
    answer: list[Any] = live(body)
    return answer


def disk_listing(root: str) -> dict[str, tuple[str, int, str]]:
    """As `model_listing`. Directories that are locked are opened for it."""
    found: dict[str, tuple[str, int, str]] = {}
    opened: list[tuple[Path, int]] = []
    waiting = [Path(root)]
    while waiting:
        directory = waiting.pop()
        opened.append((directory, stat.S_IMODE(directory.stat().st_mode)))
        directory.chmod(0o700)
        for path in directory.iterdir():
            mode = stat.S_IMODE(path.lstat().st_mode)
            if path.is_symlink():
                found[str(path)] = ("link", LINK_MODE, str(path.readlink()))
            elif path.is_dir():
                found[str(path)] = ("directory", mode, "")
                waiting.append(path)
            else:
                found[str(path)] = ("file", mode, "")
    for directory, mode in reversed(opened):
        directory.chmod(mode)
    return found


PARTS = ("errors of the steps", "the guard", "the heal", "the guard afterwards", "what is left")


def compared(case: Case) -> None:
    """The model and the disk say the same of a case, and leave the same."""
    user = 0 if os.geteuid() == 0 else OWNER
    with ground() as place:
        root = str(place.root)
        disk = [*on_disk(root, case), disk_listing(root)]
        model = in_the_model(root, case, user)
        for part, expected, found in zip(PARTS, model, disk, strict=True):
            assert found == expected, part


def agreement(examples: int) -> Callable[[], None]:
    """A property that tries so many cases and needs no place to remember them."""
    tried: Callable[[], None] = settings(max_examples=examples, database=None)(given(CASES)(compared))
    return tried


@pytest.mark.requirement("npx-guard-never-blocks-spawn", "npx-heal-error-safe", "npx-layout-containment-resolved")
@settings(max_examples=40)
@given(CASES)
def test_guard_and_heal_do_and_say_on_disk_what_they_do_and_say_in_the_model(case):
    compared(case)


@pytest.mark.requirement("npx-guard-never-blocks-spawn", "npx-heal-error-safe", "npx-layout-containment-resolved")
def test_so_they_do_for_a_user_whom_permissions_stop():
    agreement(1)()  # whatever is imported on the way is there before privileges are dropped
    if os.geteuid() == 0:
        as_nobody(agreement(25))
    else:
        agreement(25)()
