"""A scenario played by real processes and judged as every other run."""

from __future__ import annotations

from typing import Any

from harness.gate.spawn import Runtime
from harness.scenario.duration import LIMITS_SECONDS
from harness.scenario.model import Scenario
from harness.scenario.naming import OPERATOR
from harness.scenario.process.stage import PRELOADED, ProcessStage, require_short_paths
from harness.scenario.production import Ending, Production
from harness.scenario.tiers import PROCESS
from harness.scenario.variants import in_force
from harness.world.live import run
from harness.world.live.forks import prepare
from harness.world.model.simulation import DEFAULT_START_SECONDS
from harness.world.outside.setting import anchored

TRACEBACK = "Traceback (most recent call last):"


class ProcessProduction(Production):
    """A run of processes of the operating system; the scenario says how many of its seconds pass in a real one."""

    limit_seconds = LIMITS_SECONDS[PROCESS]

    def __init__(self, scenario: Scenario, runtime: Runtime, *, notes_points: bool = False) -> None:
        super().__init__(scenario, runtime)
        require_short_paths()
        self.stage = self.staged(notes_points=notes_points)
        try:
            self.begin(self.stage, self.stage.faults)
        except BaseException:
            self.close()
            raise

    def staged(self, *, notes_points: bool) -> ProcessStage:
        """What it is played on."""
        prepare(PRELOADED)
        pace = anchored(self.scenario.time_scale, DEFAULT_START_SECONDS)
        return ProcessStage(self.cast, pace, variant=variant_name(), notes_points=notes_points)

    def perform(self) -> Ending:
        """Until the operator has done all steps and nothing is left behind."""
        stage = self.stage
        with stage.open(self.limit_seconds):
            setting = stage.setting(OPERATOR)
            run(
                self.operator.run,
                (),
                setting,
                variables={},
                directory=stage.root,
                store=stage.store,
                takes_signals=False,
            )
        controller = stage.controller
        holds = (*controller.unmet, *controller.unreached)
        if controller.is_over_limit:
            return Ending("limit", f"it was not over in {self.limit_seconds:g} s of real time", holds)
        return Ending("done", "", holds)

    def is_cut_off(self) -> bool:
        """Whether its time is over."""
        return self.stage.controller.is_over_limit

    def close(self) -> None:
        """Remove its folder."""
        self.stage.remove()

    def crashes(self) -> str:
        """The first actor that printed a traceback: no program may end so."""
        for actor in self.stage.actors:
            lines = actor.printed["stderr"]
            if TRACEBACK in lines:
                return f"{actor.name}: {lines[-1]}"
        return ""

    def facts(self) -> dict[str, Any]:
        """Everything that happened."""
        stage = self.stage
        return {
            "tier": PROCESS,
            "events": tuple(stage.events),
            "started_seconds": stage.started_seconds,
            "seconds": stage.ended_seconds - stage.started_seconds,
            "kept": tuple(stage.kept),
            "points": tuple(stage.points),
        }


def variant_name() -> str | None:
    """The known-bad variant that is in place here, for the processes of the run."""
    variant = in_force()
    return None if variant is None else variant.name
