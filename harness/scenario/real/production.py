"""A scenario played by a real program, and judged as every other run as far as anything can be known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.canary.cached import cached
from harness.gate.spawn import Runtime, runtime_named
from harness.scenario import model
from harness.scenario.cast import Known
from harness.scenario.duration import LIMITS_SECONDS
from harness.scenario.judging import Seen, run_of
from harness.scenario.model import Scenario, Start
from harness.scenario.operator import applies
from harness.scenario.process.production import ProcessProduction, variant_name
from harness.scenario.process.stage import PRELOADED
from harness.scenario.production import Judged, Report
from harness.scenario.real.knowing import silent_reasons, untold_reasons, waits
from harness.scenario.real.stage import RealStage
from harness.scenario.tiers import REAL
from harness.scenario.verdicts import Verdict
from harness.world.live.forks import prepare
from harness.world.model import Hold


class RealProduction(ProcessProduction):
    """A run of processes, one of which is the real runtime."""

    stage: RealStage
    limit_seconds = LIMITS_SECONDS[REAL]

    def staged(self, *, notes_points: bool) -> RealStage:
        """Raises CannotRunError where a program is not installed, before anything is started."""
        programs = {
            each.label: cached(each.label, f"the tier {REAL}") for each in runtimes_of(self.scenario, self.runtime)
        }
        prepare(PRELOADED)
        return RealStage(self.cast, programs, variant=variant_name(), notes_points=notes_points)

    def servers(self) -> Sequence[Known]:
        """The servers where the runtime finds them."""
        return self.stage.known()

    def play(self, *, keeps_files: bool = False) -> Report:
        """Run and judge. Nothing is run where a step would wait for what nobody can see."""
        blind = list(dict.fromkeys(waits(self.scenario, self.runtime.family)))
        blind += [self.stage.no_keyring] if self.stage.no_keyring else []
        if blind:
            self.close()
            return self._report(Verdict.UNTESTABLE, "\n".join(blind))
        return super().play(keeps_files=keeps_files)

    def _untested(self, holds: Sequence[Hold], judged: Sequence[Judged]) -> list[str]:
        family = self.runtime.family
        checks = [each.check for each in self.expectations]
        reasons = [*super()._untested(holds, judged), *untold_reasons(self.scenario, family, checks)]
        untold = {name: watch.observer.untold for name, watch in self.stage.controller.watches.items()}
        for each in judged:
            if not each.seen.met:
                check = each.expectation.check
                session = getattr(check, "session", None) or ""
                reasons += silent_reasons(check, family, self._of_its_run(check, untold), session)
        return list(dict.fromkeys(reasons))

    def _of_its_run(self, check: model.Check, untold: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """Who was silent in the run that a check is about: what was silent in another one excuses nothing."""
        if not isinstance(check, model.ServerIs):
            return untold
        run = run_of(self.scene, check)
        name = "" if isinstance(run, Seen) else run.runtime
        return {name: untold[name]} if name in untold else {}

    def facts(self) -> dict[str, Any]:
        """Everything that happened, as far as it was seen."""
        return {**super().facts(), "tier": REAL}


def runtimes_of(scenario: Scenario, runtime: Runtime) -> list[Runtime]:
    """The runtime, and those that single sessions ask for."""
    named: Mapping[str, None] = dict.fromkeys(
        step.action.runtime
        for step in scenario.steps
        if isinstance(step.action, Start) and step.action.runtime and applies(step.only_on, runtime)
    )
    return [runtime, *map(runtime_named, named)]
