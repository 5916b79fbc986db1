"""Families around startup budgets: Codex's own, and those that entries declare."""

from __future__ import annotations

from typing import Any

from harness.preparation import RUNTIMES
from harness.scenario.draws import Draws
from harness.scenario.families.drafting import (
    BYSTANDER_KILLED,
    Family,
    add_bystander,
    connected,
    draft,
    local,
    npx,
    without_empty,
)
from harness.scenario.reach import Mark, happens, happens_after
from harness.scenario.trees import Tree

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
        BYSTANDER_KILLED,
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
