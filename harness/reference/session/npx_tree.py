"""A clone's npm caches seen and changed through a world: what heal and guard decide on, and what they decided.

Source: seed 000 "Timeouts and caching"; requirements npx-layout-containment-resolved, npx-guard-roots-independent,
npx-guard-never-blocks-spawn, npx-heal-error-safe. Nothing that leads out of the clone is walked, and a path that
cannot be looked at or changed stops no other. Servers of the session may run meanwhile: what was decided on a walk is
looked at once more right before it is done.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.reference.npx import guard, heal, layout, paths
from harness.reference.npx.containment import is_contained
from harness.reference.npx.listing import Listing
from harness.world import Stat, World


class Place(NamedTuple):
    """A directory as it is named, and where it really is."""

    path: str
    real: str


class Found(NamedTuple):
    """What a walk of the clone's install roots found. `links` lead from a path to where it really is."""

    roots: tuple[Place, ...]
    trees: tuple[Place, ...]
    links: dict[str, str]
    unreadable: frozenset[str]


async def walk(world: World, clone: str, base: str) -> Found:
    """Every install root that the layout knows in this clone, with its trees. Never raises OSError."""
    walker = Walker(world, clone)
    await walker.note(base)
    await walker.note(clone)
    for shape in layout.ROOT_SHAPES:
        for root in await walker.expanded(shape):
            walker.roots.append(root)
            walker.trees += await walker.below(root)
    return Found(tuple(walker.roots), tuple(walker.trees), walker.links, frozenset(walker.unreadable))


class Walker:
    """One walk. It follows links as long as they stay in the clone, and writes down all that it met."""

    def __init__(self, world: World, clone: str) -> None:
        self.world, self.clone = world, clone
        self.links: dict[str, str] = {}
        self.roots: list[Place] = []
        self.trees: list[Place] = []
        self.unreadable: set[str] = set()

    async def note(self, path: str) -> None:
        """Write down where a path really is, if that is elsewhere."""
        real = await real_path(self.world, path)
        if real is None or real == paths.normalise(path):
            return
        self.links[paths.normalise(path)] = real
        parent, _, name = paths.normalise(path).rpartition("/")
        real_parent = await real_path(self.world, parent or "/")
        if real_parent is not None and paths.join(real_parent, name) != real:
            self.links[paths.join(real_parent, name)] = real

    async def expanded(self, shape: tuple[str, ...]) -> list[Place]:
        """The directories of one shape, relative to the clone."""
        reached = [Place(self.clone, self.links.get(self.clone, self.clone))]
        for segment in shape:
            if segment == layout.ANY:
                reached = [child for place in reached for child in await self.below(place)]
            else:
                children = [await self.entered(place, segment) for place in reached]
                reached = [child for child in children if child is not None]
        return reached

    async def below(self, place: Place) -> list[Place]:
        """The directories in a directory; one that cannot be read has none."""
        try:
            names = await self.world.files.names(place.path)
        except OSError:
            self.unreadable.add(paths.relative_to(place.path, self.clone) or "")
            return []
        found = [await self.entered(place, name) for name in names]
        return [child for child in found if child is not None]

    async def entered(self, parent: Place, name: str) -> Place | None:
        """A directory that may be walked: it is one, and lies in the clone, links followed."""
        path = paths.join(parent.path, name)
        status = await status_of(self.world, path)
        if status is None or status.kind == "file":
            return None
        if status.kind == "directory":
            return Place(path, paths.join(parent.real, name))
        return await self.followed(path, paths.join(parent.real, name))

    async def followed(self, link: str, own_place: str) -> Place | None:
        """Where a link leads, as `entered`. `own_place` is where the link itself really is."""
        real = await real_path(self.world, link)
        if real is None:
            return None
        self.links[link] = self.links[own_place] = real
        if not paths.is_within(real, self.links.get(self.clone, self.clone)):
            return None
        status = await status_of(self.world, real)
        return Place(link, real) if status is not None and status.kind == "directory" else None


async def real_path(world: World, path: str) -> str | None:
    """A path with every link followed; None where that leads nowhere."""
    try:
        return await world.files.resolve(path)
    except OSError:
        return None


async def status_of(world: World, path: str) -> Stat | None:
    """What is at a path; None also where that cannot be seen."""
    try:
        return await world.files.stat(path)
    except OSError:
        return None


# --- heal -------------------------------------------------------------------------------------------------------------


async def heal_after(world: World, clone: str, base: str, errors: Iterable[str]) -> heal.HealResult:
    """Remove the install trees that these errors show to be corrupt. Never raises OSError."""
    corrupt = [error for error in errors if heal.is_corruption(error)]
    if not corrupt:
        return heal.HealResult(healed=False, removed=())
    clone, base = paths.normalise(clone), paths.normalise(base)
    found = await walk(world, clone, base)
    planned = [tree for error in corrupt for tree in removals(error, clone, base, found)]
    own = Own(found.links.get(clone, clone), found.links.get(base, base))
    removed = await remove_trees(world, tuple(dict.fromkeys(planned)), own)
    return heal.HealResult(bool(removed), removed)


def removals(error: str, clone: str, base: str, found: Found) -> tuple[str, ...]:
    """What one error asks to remove. A program may tell real paths where the clone is reached through a link."""
    places = [*found.roots, *found.trees]
    as_named = Listing(frozenset(place.path for place in places), found.links)
    planned = heal.plan(error, clone, as_named, base).removals
    real_clone, real_base = found.links.get(clone, clone), found.links.get(base, base)
    if planned or real_clone == clone:
        return planned
    moved = Listing(frozenset(paths.join(real_clone, paths.relative_to(place.path, clone) or "") for place in places))
    return heal.plan(error, real_clone, moved, real_base).removals


class Own(NamedTuple):
    """Where the clone, and the base of all clones, really were when the walk began."""

    clone: str
    base: str


async def remove_trees(world: World, trees: Iterable[str], own: Own) -> tuple[str, ...]:
    """Remove each; the ones that are gone then. One that fails stops no other."""
    removed = []
    for tree in trees:
        try:
            parent, _, name = tree.rpartition("/")
            real = paths.join(await world.files.resolve(parent), name)
            if not is_still_own(await world.files.resolve(tree), own) or not is_still_own(real, own):
                continue
            await world.files.remove_tree(real, follow=False)
        except OSError:
            continue
        removed.append(tree)
    return tuple(removed)


def is_still_own(real: str, own: Own) -> bool:
    """Does a tree, at the moment it is to be removed, lie in the clone's own cache?"""
    return is_contained(real, own.base) and paths.is_within(real, own.clone)


# --- guard ------------------------------------------------------------------------------------------------------------


async def guard_bins(world: World, clone: str, base: str) -> guard.GuardPlan:
    """Restore the execute bit of npx programs; what was repaired and what was refused. Never raises OSError."""
    clone, base = paths.normalise(clone), paths.normalise(base)
    plan = guard.plan(clone, await guarded_tree(world, clone, base), base)
    repaired = [repair for repair in plan.repairs if await changed_mode(world, repair)]
    return guard.GuardPlan(tuple(repaired), plan.refusals)


async def guarded_tree(world: World, clone: str, base: str) -> guard.Tree:
    """The `.bin` links of every tree, as the guard's plan wants them."""
    found = await walk(world, clone, base)
    shims = [shim for tree in found.trees for shim in await shims_of(world, clone, tree)]
    return guard.Tree(tuple(shims), found.links, found.unreadable)


async def shims_of(world: World, clone: str, tree: Place) -> list[guard.Shim]:
    """What is in a tree's `.bin`; nothing where that is missing, unreadable or leads out of the tree."""
    directory = paths.join(tree.path, "/".join(guard.BIN_PARENT))
    real = await real_path(world, directory)
    if real is None or not paths.is_within(real, tree.real):
        return []
    try:
        names = await world.files.names(directory)
    except OSError:
        return []
    return [await shim_at(world, clone, paths.join(directory, name)) for name in names]


async def shim_at(world: World, clone: str, link: str) -> guard.Shim:
    """One link with its target; a dangling one is missing."""
    relative = paths.relative_to(link, clone) or ""
    target = await real_path(world, link)
    status = None if target is None else await status_of(world, target)
    if target is None or status is None:
        return guard.Shim(relative, link, "missing", None)
    return guard.Shim(relative, target, status.kind, status.mode)


async def changed_mode(world: World, repair: guard.Repair) -> bool:
    """Carry one repair out, unless a link has come into the target's path. One that fails stops no other."""
    try:
        if await world.files.resolve(repair.target) != repair.target:
            return False
        await world.files.chmod(repair.target, repair.mode, follow=False)
    except OSError:
        return False
    return True
