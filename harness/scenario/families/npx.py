"""Families around npx: install trees that two servers fill, that are left half, whose programs cannot be executed."""

from __future__ import annotations

from harness.scenario.draws import Draws
from harness.scenario.families.drafting import (
    BYSTANDER_KILLED,
    Family,
    add_bystander,
    connected,
    draft,
    npx,
    without_empty,
)
from harness.scenario.reach import Mark, happens, overlap
from harness.scenario.trees import Tree

INSTALL_ENDS = ("install.finished", "install.failed", "ended")

# --- cold npx trees that two servers fill at once: #595, and entries of one session that are equal byte for byte

PACKAGES = ("@playwright/mcp@0.0.41", "@upstash/context7-mcp@1.0.20", "onepassword-mcp-server@2.0.0")
OVERLAPS = (0, 1, 2, 5, 9)
FAR_APART_SECONDS = 60
OWN_NPX_CACHE = ("claude", "codex")
"""Pi's adapter resolves npx entries in the user's cache by itself, whatever the entry says: there twins do race."""


def cold_npx_race(seed: int) -> Tree:
    """Two sessions that start the same package, or one session with several entries that are equal."""
    draws = Draws("cold-npx-race", seed)
    two_sessions = draws.chance("two sessions", 50)
    tree = _two_sessions(draws) if two_sessions else _equal_entries(draws)
    add_bystander(tree, draws)
    return without_empty(tree)


def _package(tree: Tree, draws: Draws, spec: str) -> None:
    name = spec[:1] + spec[1:].partition("@")[0]
    tree["package"][name] = {
        "install_seconds": draws.between(f"{name} seconds", 1, 20),
        "steps": draws.between(f"{name} steps", 1, 6),
    }


def _two_sessions(draws: Draws) -> Tree:
    title = "Two Codex sessions that start the same npx packages do not meet in one install tree"
    tree = draft("cold-npx-race", title, "codex")
    for number, spec in enumerate(PACKAGES[: draws.between("packages", 1, 2)], 1):
        tree["catalog"][f"tool-{number}"] = npx(spec)
        _package(tree, draws, spec)
    names = list(tree["catalog"])
    seconds = next(iter(tree["package"].values()))["install_seconds"]
    starts = [FAR_APART_SECONDS, *OVERLAPS, seconds / 2, seconds]  # the last two: when a download, an install ends
    tree["watched"] = False
    tree["step"] = [
        {"start": "A", "wait": False},
        {"start": "B", "after_seconds": starts},
        {"wait_for": "A"},
    ]
    if draws.chance("A goes on", 40):
        tree["step"].append({"follow_up": "A"})
    tree["expect"] = [connected(name, session) for session in ("A", "B") for name in names]
    return tree


def _equal_entries(draws: Draws) -> Tree:
    runtime = draws.choice("runtime", OWN_NPX_CACHE)
    title = "Entries of one session that start one npx package do not meet in one install tree"
    tree = draft("cold-npx-race", title, runtime)
    spec = draws.choice("package", PACKAGES)
    for number in range(1, draws.between("twins", 2, 3) + 1):
        tree["catalog"][f"twin-{number}"] = npx(spec)
    _package(tree, draws, spec)
    tree["watched"] = False
    turns = [{"seconds": 30}, {"seconds": 30}, {"seconds": 30}]
    tree["step"] = [{"start": "S", "turns": turns}]
    tree["expect"] = [connected(name, "S") for name in tree["catalog"]]
    return tree


COLD_NPX_RACE = Family(
    "cold-npx-race",
    "two servers fill one cold npx tree at once",
    ("#595",),
    cold_npx_race,
    (
        Mark("installs-overlap", "two installs are under way at once", overlap("install.started", INSTALL_ENDS)),
        Mark(
            "sessions-overlap", "a session starts while another runs", overlap("session.prepared", ("session.ended",))
        ),
        Mark("install-reused", "a session goes on in the tree that its first run installed", happens("install.reused")),
        BYSTANDER_KILLED,
    ),
    ("campaign.codex_entries_are_not_pinned", "npx.isolates_nobody"),
)


# --- trees that an install left half: the heal, in isolated roots too


def npx_heal(seed: int) -> Tree:
    """A watched Claude session one of whose installs is killed half-way: its tree fails until somebody removes it.

    Codex tells nothing of a server that failed for a reason other than time: there nobody would know.
    """
    draws = Draws("npx-heal", seed)
    title = "A tree that a killed install left half is removed, and the next start installs afresh"
    tree = draft("npx-heal", title, "claude")
    add_npx_servers(tree, draws)
    struck = draws.choice("struck", list(tree["catalog"]))
    at = draws.choice("where", ("write */dist/part-*", "write */dist/part-*", "write */dist/index.js", "rename *"))
    strike = {"action": "kill", "server": struck, "port": "files", "at": at, "drawn": True, "times": 1}
    tree["fault"] = [strike]
    tree["step"] = [{"start": "S", "turns": [{"seconds": 30}, {"seconds": 30}]}]
    tree["expect"] = [connected(name, "S") for name in tree["catalog"]]
    tree["struck"] = [struck]
    return without_empty(tree)


def add_npx_servers(tree: Tree, draws: Draws) -> None:
    """One server of a package, or twins of it, which get caches of their own; perhaps another package beside."""
    spec = draws.choice("package", PACKAGES)
    twins = draws.between("twins", 1, 3)
    for number in range(1, twins + 1):
        tree["catalog"][f"tool-{number}"] = npx(spec)
    _package(tree, draws, spec)
    if draws.chance("another package", 30):
        tree["catalog"]["other"] = npx("@modelcontextprotocol/server-everything@2.1.0")


NPX_HEAL = Family(
    "npx-heal",
    "an install is killed half-way, in a shared or an isolated cache",
    ("#498",),
    npx_heal,
    (
        Mark("half-tree", "a server starts from a tree that is half there", happens("install.incomplete")),
        Mark("healed", "the heal removes a tree", happens("heal.ran")),
        Mark("healed-isolated", "the heal removes an isolated tree", happens("heal.ran", removed="*/isolated/*")),
        Mark("retried", "a session starts its runtime again", happens("session.retry")),
    ),
    ("campaign.heals_the_shared_root_only", "npx.heals_isolated_servers_only"),
)


# --- programs that are published without an execute bit: #467


def bin_guard(seed: int) -> Tree:
    """A watched Claude session with a package whose program has no execute bit until the guard gives it one."""
    draws = Draws("bin-guard", seed)
    title = "A program without an execute bit is repaired at the next start, in every cache of the clone"
    tree = draft("bin-guard", title, "claude")
    add_npx_servers(tree, draws)
    package = next(iter(tree["package"].values()))
    package["bin_mode"] = draws.choice("mode", (0o644, 0o644, 0o600, 0o755))
    tree["step"] = [{"start": "S", "turns": [{"seconds": 30}, {"seconds": 30}]}]
    tree["expect"] = [connected(name, "S") for name in tree["catalog"]]
    tree["struck"] = [name for name in tree["catalog"] if name != "other"]
    add_bystander(tree, draws)
    return without_empty(tree)


BIN_GUARD = Family(
    "bin-guard",
    "packages are published without an execute bit",
    ("#467", "#498"),
    bin_guard,
    (
        Mark("repaired", "the guard repairs a program", happens("guard.ran", repaired="*")),
        Mark("repaired-isolated", "it repairs one in an isolated cache", happens("guard.ran", repaired="*/isolated/*")),
        Mark("retried", "a session starts its runtime again", happens("session.retry")),
        BYSTANDER_KILLED,
    ),
    ("npx.repairs_nothing", "npx.walks_the_shared_root_only"),
)
