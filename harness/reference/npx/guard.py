"""The execute bit of npx bin targets: which a sweep restores, which it refuses, and when it runs.

Source: seed 000 "Timeouts and caching" (NpxBinExecutableGuard); requirements npx-guard-*. Decides on file
modes alone, never on an error text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from harness.reference.npx import layout, paths
from harness.reference.npx.containment import is_contained

GUARDED_RUNTIME = "claude"
BIN_PARENT = ("node_modules", ".bin")
SHIM_SEGMENTS = 4  # <hash>/node_modules/.bin/<name>

PERMISSION_BITS = 0o777
READ_BITS = 0o444
EXECUTE_BITS = 0o111
OWNER_EXECUTE = 0o100


class Shim(NamedTuple):
    """A link in a `.bin` directory: `link` relative to the clone, `target` absolute, `kind` file, directory or missing.

    A shim that is no symbolic link has its own path as target. `mode` is the target's, None when it cannot be read.
    """

    link: str
    target: str
    kind: str
    mode: int | None


class Tree(NamedTuple):
    """What a sweep sees: `links` are absolute, with their targets; `unreadable` roots are relative to the clone."""

    shims: tuple[Shim, ...] = ()
    links: Mapping[str, str] = {}
    unreadable: frozenset[str] = frozenset()


class Repair(NamedTuple):
    """One chmod: `target` gets `mode`."""

    link: str
    target: str
    mode: int


class GuardPlan(NamedTuple):
    """What the guard does to a clone; both sorted by link. Refused links resolve outside their root."""

    repairs: tuple[Repair, ...] = ()
    refusals: tuple[str, ...] = ()


def runs_before_spawn(runtime: str, has_mcp_servers: bool) -> bool:
    """Does a spawn go through the guard? Every Claude spawn with MCP servers; Codex and Pi are not covered."""
    return runtime == GUARDED_RUNTIME and has_mcp_servers


def repaired_mode(mode: int) -> int | None:
    """The mode a target gets, None when it already has an execute bit.

    Execute is granted where read is; with no read bit, to the owner alone. Set-id and sticky bits are dropped
    (npx-guard-mode-mirror).
    """
    if mode & EXECUTE_BITS:
        return None
    execute = (mode & READ_BITS) >> 2
    return mode & PERMISSION_BITS | (execute or OWNER_EXECUTE)


def is_bin_shim(rest: str) -> bool:
    """Is a path inside an install root a package's bin link? Bins of nested packages are not npx's."""
    segments = paths.segments(rest)
    return len(segments) == SHIM_SEGMENTS and segments[1:3] == BIN_PARENT


def walkable_root(root: str, clone: str, tree: Tree) -> str | None:
    """Where an install root really is, or None when it must not be walked: outside the clone, looping or unreadable."""
    if root in tree.unreadable:
        return None
    real_clone = paths.resolve(clone, tree.links)
    real_root = paths.resolve(paths.join(clone, root), tree.links)
    if real_clone is None or real_root is None or not paths.is_within(real_root, real_clone):
        return None
    return real_root


def stays_inside(shim: Shim, real_root: str, tree: Tree) -> bool:
    """Does the shim resolve inside its own root? Each root is a boundary of its own
    (npx-guard-shim-outside-refused).
    """
    target = paths.resolve(shim.target, tree.links)
    return target is not None and paths.is_within(target, real_root)


def repair_of(shim: Shim) -> Repair | None:
    """The chmod a shim needs; None for a directory, an unreadable mode, or a target that can run already."""
    if shim.kind != "file" or shim.mode is None:
        return None
    mode = repaired_mode(shim.mode)
    return None if mode is None else Repair(shim.link, shim.target, mode)


def plan(clone: str, tree: Tree, clones_base: str | None = None) -> GuardPlan:
    """What the guard does to `clone`; with a clones base, nothing to a clone that lies elsewhere. Never raises.

    Roots come from the layout. Dangling shims are skipped before anything else is asked of them.
    """
    if not guards(clone, clones_base, tree.links):
        return GuardPlan()
    repairs: list[Repair] = []
    refusals: list[str] = []
    for shim in sorted(tree.shims, key=lambda each: each.link):
        located = layout.locate(shim.link)
        if located is None or not is_bin_shim(located.rest) or shim.kind == "missing":
            continue
        real_root = walkable_root(located.root, clone, tree)
        if real_root is None:
            continue
        if not stays_inside(shim, real_root, tree):
            refusals.append(shim.link)
        elif (repair := repair_of(shim)) is not None:
            repairs.append(repair)
    return GuardPlan(tuple(repairs), tuple(refusals))


def guards(clone: str, clones_base: str | None, links: Mapping[str, str]) -> bool:
    """Is `clone` a place the guard sweeps? An absolute directory, under the clones base where one is given.

    Both are resolved, so that a base which is itself a link does not make every clone look foreign.
    """
    if not paths.is_absolute(clone) or clones_base is None:
        return paths.is_absolute(clone)
    real_clone, real_base = paths.resolve(clone, links), paths.resolve(clones_base, links)
    if real_clone is None or real_base is None:
        return False
    return is_contained(layout.shared_root(real_clone), real_base)


def refusal_line(link: str) -> str:
    """What the log says about a refused shim."""
    return f"Refusing to repair {link}: it resolves outside its npx cache root"


def carry_out(repairs: Iterable[Repair], chmod: Callable[[str, int], None]) -> tuple[str, ...]:
    """Apply each repair with `chmod(target, mode)`; returns the links repaired. One that fails stops no other."""
    return tuple(repair.link for repair in repairs if _changed(repair, chmod))


def _changed(repair: Repair, chmod: Callable[[str, int], None]) -> bool:
    try:
        chmod(repair.target, repair.mode)
    except OSError:
        return False
    return True
