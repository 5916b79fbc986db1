"""Families: scenarios without number, each drawn from a seed, around one kind of incident.

A scenario of a family holds with the right rules whatever the decisions are, and falls with its old bugs for some.
What a seed draws: how many servers and sessions, how long things take, when they start (offered times, the first of
which is far from all others), and faults on servers that stand beside (drawn as the run goes).
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import UserInputError
from harness.gate.nearness import did_you_mean
from harness.scenario.families.budgets import CODEX_BUDGET, DECLARED_BUDGET
from harness.scenario.families.chains import TOKEN_CHAIN
from harness.scenario.families.drafting import Family
from harness.scenario.families.npx import BIN_GUARD, COLD_NPX_RACE, NPX_HEAL
from harness.scenario.families.oauth import OAUTH_FLOW
from harness.scenario.hints import few

__all__ = ["Family", "families", "family_named"]


def families() -> Mapping[str, Family]:
    """All of them, by name."""
    every = (COLD_NPX_RACE, NPX_HEAL, BIN_GUARD, CODEX_BUDGET, DECLARED_BUDGET, TOKEN_CHAIN, OAUTH_FLOW)
    return {family.name: family for family in every}


def family_named(name: str) -> Family:
    """Raises UserInputError."""
    known = families()
    if name in known:
        return known[name]
    near = did_you_mean(name, known, 0.5)
    hint = f"Did you mean {near}?" if near else f"There are {few(list(known))}."
    raise UserInputError(f"no scenario family is called {name!r}", fix=hint)
