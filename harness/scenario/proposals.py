"""A scenario file, ready to commit, from a failure that was made to need no decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.gate.spawn import runtime_named
from harness.requirements.variants import VARIANTS
from harness.scenario.failure import Failure
from harness.scenario.holds import Proposal
from harness.scenario.production import play
from harness.scenario.signature import INVARIANT
from harness.scenario.telling import clipped
from harness.scenario.trees import Tree, fits
from harness.scenario.writing import toml_text
from harness.world.model import Calm, Decisions, Listed

ORDER = (
    "schema", "id", "title", "incidents", "requirements", "tiers", "not_at", "runtime", "time_scale", "watched",
    "codex_bugs", "app_host", "struck", "secrets", "environment", "files", "catalog", "roots", "authorization",
    "registered", "credential", "server", "package", "fault", "hold", "step", "expect", "old_bug",
)  # fmt: skip
NOT_TRIED = "found and tried in the model alone"


def incident_text(failure: Failure, proposal: Proposal, name: str, found: Failure | None = None) -> str:
    """The file's text. It falls as the failure did, in the calmest order, under the failure's variant.

    `found` is the failure as it was before it was made small.
    """
    tree: dict[str, Any] = {
        **proposal.tree,
        "id": name,
        "runtime": spelled(failure.runtime),
        "tiers": ["model"],
        "not_at": {"process": NOT_TRIED},
    }
    if failure.variant is not None:
        tree["old_bug"] = [{"name": failure.variant, "shows": clipped(proposal.shows)}]
        tree["requirements"] = list(VARIANTS[failure.variant].catches) if failure.variant in VARIANTS else []
    if not tree.get("expect"):
        tree["expect"] = [implied(failure)]
    ordered = {key: tree[key] for key in dict.fromkeys((*ORDER, *tree)) if tree.get(key) not in (None, [], {})}
    return toml_text(ordered, f"{failure.signature}\nMade from a failure that was found {origin(found or failure)}.")


def origin(failure: Failure) -> str:
    """How the failing run came about, as far as its file tells."""
    if not any(decision.value for decision in failure.decisions):
        return "in the calmest order"
    return f"with seed {failure.seed}" if failure.seed else "with choices of its own"


def implied(failure: Failure) -> dict[str, Any]:
    """What a scenario expects that has only invariants, or its end, to fall: a file must expect something."""
    if failure.signature.kind == INVARIANT:
        return {"invariant": failure.signature.rule}
    return {"event": "session.ended", "says": "the sessions come to an end"}


def spelled(runtime: str) -> str:
    """A runtime as scenario files write it: the pinned version by its bare name."""
    family = runtime.partition("@")[0]
    return family if runtime_named(family).label == runtime else runtime


def passes(tree: Tree, runtime: str, values: Sequence[int] = (), seed: int = 0) -> bool:
    """Whether a scenario passes in the calmest order, and with these choices as far as they go."""
    scenario = fits(tree)
    if scenario is None:
        return False
    orders: list[Decisions] = [Calm(), Listed(values)] if any(values) else [Calm()]
    return all(play(scenario, runtime, order, seed=seed).verdict.exit_code == 0 for order in orders)
