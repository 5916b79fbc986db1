"""Families: scenarios without number, each drawn from a seed, around one kind of incident.

A scenario of a family holds with the right rules whatever the decisions are, and falls with its old bugs for some.
What a seed draws: how many servers and sessions, how long things take, when they start (offered times, the first of
which is far from all others), and faults on servers that stand beside (drawn as the run goes).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harness.errors import UserInputError
from harness.gate.nearness import did_you_mean
from harness.preparation import RUNTIMES
from harness.scenario.draws import Draws
from harness.scenario.reach import Mark, happens, happens_after, overlap
from harness.scenario.trees import Tree

INSTALL_ENDS = ("install.finished", "install.failed", "ended")


class Family(NamedTuple):
    """A kind of scenario. `old_bugs` are known-bad variants that it must find, each from random starts."""

    name: str
    says: str
    incidents: tuple[str, ...]
    tree: Callable[[int], Tree]
    marks: tuple[Mark, ...]
    old_bugs: tuple[str, ...]


def families() -> Mapping[str, Family]:
    """All of them, by name."""
    return {family.name: family for family in (COLD_NPX_RACE, NPX_HEAL, BIN_GUARD, CODEX_BUDGET, DECLARED_BUDGET)}


def family_named(name: str) -> Family:
    """Raises UserInputError."""
    known = families()
    if name in known:
        return known[name]
    near = did_you_mean(name, known, 0.5)
    hint = f"Did you mean {near}?" if near else f"There are {', '.join(known)}."
    raise UserInputError(f"no scenario family is called {name!r}", fix=hint)


def draft(name: str, title: str, runtime: str) -> Tree:
    """The head of a drawn scenario."""
    return {"schema": 1, "id": name, "title": title, "runtime": runtime, "catalog": {}, "server": {}, "package": {}}


def npx(*args: str) -> dict[str, Any]:
    """An entry that npx starts."""
    return {"type": "stdio", "command": "npx", "args": ["-y", *args]}


def local(name: str) -> dict[str, Any]:
    """An entry that starts a program of the machine."""
    return {"type": "stdio", "command": f"/opt/tools/{name}"}


def connected(server: str, session: str) -> dict[str, Any]:
    """What must be seen of a server."""
    return {"session": session, "server": server, "is": "connected", "says": f"{server} is connected in {session}"}


def add_bystander(tree: Tree, draws: Draws) -> None:
    """A server that may be killed at any time: nobody else may be hurt by it."""
    if draws.chance("bystander", 40):
        tree["catalog"]["bystander"] = local("bystander")
        tree["fault"] = [{"action": "kill", "server": "bystander", "drawn": True, "times": 1}]


def without_empty(tree: Tree) -> Tree:
    """The tree without tables that hold nothing."""
    return {key: value for key, value in tree.items() if value not in ({}, [])}


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
        Mark("install-reused", "an install of an earlier run is taken over", happens("install.reused")),
        Mark("bystander-killed", "a server beside is killed", happens("fault", action="kill")),
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
        Mark("bystander-killed", "a server beside is killed", happens("fault", action="kill")),
    ),
    ("npx.repairs_nothing", "npx.walks_the_shared_root_only"),
)


# --- Codex's own 30 s: #702

CODEX_OWN_SECONDS = 30
MARGIN_SECONDS = 25
DEFAULT_SECONDS = 180


def codex_budget(seed: int) -> Tree:
    """A Codex session with npx servers that take up to two minutes to install."""
    draws = Draws("codex-budget", seed)
    title = "Codex waits for every cold npx server, however long the download takes"
    tree = draft("codex-budget", title, "codex")
    for number in range(1, draws.between("servers", 1, 4) + 1):
        name, package = f"tool-{number}", f"package-{number}"
        tree["catalog"][name] = npx(f"{package}@1.0.0")
        tree["package"][package] = {"install_seconds": draws.between(f"{package} seconds", 2, 60)}
        if draws.chance(f"{name} starts slowly", 20):
            tree["server"][name] = {"starts_after_seconds": draws.between(f"{name} starts", 1, 30)}
    tree["watched"] = False
    tree["step"] = [{"start": "S"}]
    tree["expect"] = [connected(name, "S") for name in tree["catalog"]]
    tree["expect"].append({"request": 1, "offers": list(tree["catalog"]), "says": "the first request offers them all"})
    tree["struck"] = list(tree["server"])
    add_bystander(tree, draws)
    return without_empty(tree)


CODEX_BUDGET = Family(
    "codex-budget",
    "cold npx servers outlive Codex's own budget",
    ("#702",),
    codex_budget,
    (
        Mark(
            "late-server",
            f"a server connects after {CODEX_OWN_SECONDS} s",
            happens_after(CODEX_OWN_SECONDS, "server.connected"),
        ),
        Mark(
            "late-request",
            f"the first request waits for more than {CODEX_OWN_SECONDS} s",
            happens_after(CODEX_OWN_SECONDS, "model.request", number=1),
        ),
        Mark("bystander-killed", "a server beside is killed", happens("fault", action="kill")),
    ),
    ("scenario.codex_is_left_to_its_own_budget",),
)


# --- declared budgets: #113

CLAUDE_AT_ONCE = 3
"""Claude starts so many local servers at once; a further one waits for its turn, and its time counts from there."""


def declared_budget(seed: int) -> Tree:
    """Servers that declare budgets of their own, on any runtime."""
    draws = Draws("declared-budget", seed)
    runtime = draws.choice("runtime", ("claude", "codex", "pi"))
    title = "A declared budget is what a server gets, and takes nothing from the others"
    tree = draft("declared-budget", title, runtime)
    expect: list[dict[str, Any]] = []
    for number in range(1, draws.between("servers", 2, CLAUDE_AT_ONCE) + 1):
        name = f"tool-{number}"
        declared = draws.choice(f"{name} budget", (None, None, 20, 60, 240, 300))
        tree["catalog"][name] = local(name) | ({} if declared is None else {"startup_timeout_sec": declared})
        budget = declared or DEFAULT_SECONDS
        if budget < DEFAULT_SECONDS and draws.chance(f"{name} hangs", 50):
            tree["server"][name] = {"initialize": "never"}
            if runtime == "codex":
                expect.append(given_up(name, budget))
        else:
            tree["server"][name] = {
                "starts_after_seconds": draws.between(f"{name} starts", 0, budget - MARGIN_SECONDS // 2)
            }
            expect.append(never_fails(name))
    tree["watched"] = False
    tree["step"] = [{"start": "S", "turns": [{"seconds": 320}, {}]}]
    tree["expect"] = expect
    tree["struck"] = list(tree["server"])
    return without_empty(tree)


def given_up(server: str, seconds: int) -> dict[str, Any]:
    """A hanging server is given up after its own, shorter budget (Codex alone)."""
    return {
        "event": "server.failed",
        "where": {"server": server, "text": f"*timed out after {seconds} seconds*"},
        "says": f"{server} is given up after its own budget",
    }


def never_fails(server: str) -> dict[str, Any]:
    """A server that needs nearly its whole budget gets it."""
    return {
        "event": "server.failed",
        "where": {"server": server},
        "never": True,
        "says": f"{server} has the time that it declares",
    }


DECLARED_BUDGET = Family(
    "declared-budget",
    "servers declare budgets longer and shorter than the default",
    ("#113",),
    declared_budget,
    (
        Mark(
            "longer-than-default",
            f"a server connects after {DEFAULT_SECONDS} s",
            happens_after(DEFAULT_SECONDS, "server.connected"),
        ),
        Mark("given-up", "a server is given up", happens("server.failed")),
        *(
            Mark(f"on-{runtime}", f"a session runs on {runtime}", happens("spawn", child=f"*/{runtime}"))
            for runtime in RUNTIMES
        ),
    ),
    ("scenario.declared_budgets_are_not_read", "startup_timeout.the_last_server_wins"),
)
