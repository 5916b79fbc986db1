"""What a difference means further on: for requirements, for shipped scenarios, for catalogs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fake_runtimes.profile import Profile
from harness.canary.claims import Claim
from harness.gate.spawn import Runtime
from harness.preparation import RUNTIMES
from harness.requirements.manifest import load_manifest
from harness.scenario.library import load_all
from harness.scenario.model import Scenario
from harness.scenario.production import is_claimed, play
from harness.scenario.verdicts import Verdict


class Fallen(NamedTuple):
    """A scenario that passes with the old profile and not with the new one."""

    id: str
    title: str
    verdict: str
    why: str


class Played(NamedTuple):
    """How many scenarios are about the runtime, and which of them fail only under the new profile."""

    scenarios: int
    fallen: tuple[Fallen, ...]


def runtime_with(profile: Profile) -> Runtime:
    """The fake runtime with a profile, for scenarios."""
    family = next(each for each in RUNTIMES if each == profile.runtime)
    return Runtime(family, f"{profile.runtime}@{profile.version}", profile)


def scenarios_under(new: Profile, old: Profile, scenarios: Sequence[Scenario] | None = None) -> Played:
    """Play the shipped scenarios on the model tier with both profiles."""
    mine, base = runtime_with(new), runtime_with(old)
    concerned = [each for each in (load_all() if scenarios is None else scenarios) if is_claimed(each, mine)]
    return Played(len(concerned), tuple(fallen(concerned, mine, base)))


def fallen(scenarios: Iterable[Scenario], new: Runtime, old: Runtime) -> Iterable[Fallen]:
    """Those that fall."""
    for scenario in scenarios:
        report = play(scenario, new)
        if report.verdict is Verdict.PASS or play(scenario, old).verdict is not Verdict.PASS:
            continue
        why = next(iter(report.failures), report.detail)
        yield Fallen(scenario.id, scenario.title, report.verdict.value, why)


def unknown_requirements(claims: Iterable[Claim]) -> tuple[str, ...]:
    """Ids in claims that the manifest does not have; there must be none."""
    known = load_manifest().requirements
    return tuple(sorted({each for claim in claims for each in claim.relied_on if each not in known}))
