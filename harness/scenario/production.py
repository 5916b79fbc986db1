"""A scenario played on one runtime. At the model tier that is a pure function of scenario, decisions and code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.errors import CannotRunError
from harness.gate.spawn import Runtime, runtime_named
from harness.reference.credentials import attempts
from harness.reference.credentials.row import TABLE, row_values
from harness.reference.oauth import flows, requirement
from harness.reference.session import jobs
from harness.reference.session import rows as sessions
from harness.scenario import chain_invariants, invariants, model
from harness.scenario.cast import RUNTIME_PROGRAMS, Cast, Known
from harness.scenario.credentials import store_credentials, stored_rows
from harness.scenario.duration import require_time
from harness.scenario.garbage import seldom_collected
from harness.scenario.holes import Walked
from harness.scenario.invariants import Finding
from harness.scenario.judging import Scene, Seen, is_settled, look
from harness.scenario.model import CLONES, CODEX_HOME, HOME, Expectation, Scenario
from harness.scenario.naming import OPERATOR
from harness.scenario.operator import Operator, applies
from harness.scenario.sentences import said
from harness.scenario.stage import NOBODY, Kept, Plan, Point, Stage
from harness.scenario.theatre import Theatre
from harness.scenario.tiers import MODEL, REAL
from harness.scenario.variants import in_force
from harness.scenario.verdicts import Verdict
from harness.world import WorldFault
from harness.world.model import Decision, Decisions, Divergence, Event, Hold, Recording
from harness.world.model.actors import digest_of

TABLES = (TABLE, attempts.TABLE, flows.TABLE, requirement.TABLE, sessions.TABLE, jobs.TABLE)
"""Those of the orchestrator's store."""
CUT_OFF = "the run was cut off before it could be told"


class Judged(NamedTuple):
    """An expectation and what came of it."""

    expectation: Expectation
    seen: Seen


class Report(NamedTuple):
    """A finished run. `events` are all of them, `points` every switch point where they were noted.

    `seconds` is virtual time until the last of them, the time to settle included. `detail` says why a verdict is
    neither pass nor fail, with a line for each reason. `kept` is what the holds did. `holes` counts the accepted ones.
    `decisions` replay the run. `files` are all that were there in the end,
    `rows` what the store held by table and key, `printed` what each actor printed (`ACTOR stdout`), `issued` the
    secrets that authorization servers gave out; all where they were asked for. `variant` is the known-bad one
    that was in place.
    """

    scenario: Scenario
    runtime: Runtime
    verdict: Verdict
    detail: str = ""
    judged: tuple[Judged, ...] = ()
    invariants: tuple[Finding, ...] = ()
    holes: Mapping[str, Walked] = {}
    events: tuple[Event, ...] = ()
    started_seconds: float = 0.0
    steps: int = 0
    seconds: float = 0.0
    tier: str = MODEL
    decisions: tuple[Decision, ...] = ()
    points: tuple[Point, ...] = ()
    kept: tuple[Kept, ...] = ()
    files: Mapping[str, bytes] = {}
    rows: Mapping[str, Mapping[str, Mapping[str, Any]]] = {}
    printed: Mapping[str, str] = {}
    issued: tuple[str, ...] = ()
    variant: str = ""

    @property
    def trace_digest(self) -> str:
        """Equal for equal runs of the model; empty where none was judged. Made when asked for: most never are."""
        return digest_of(self.events) if self.tier == MODEL and self.invariants else ""

    @property
    def failures(self) -> tuple[str, ...]:
        """What fell: expectations, then invariants, each as one line."""
        unmet = (each for each in self.judged if not each.seen.met)
        fallen = [f"{said(each.expectation, self.scenario)}: {each.seen.instead}" for each in unmet]
        return (*fallen, *(f"{each.name}: {each.detail}" for each in self.invariants if each.holds is False))


def play(
    scenario: Scenario,
    runtime: str | Runtime,
    decisions: Decisions | None = None,
    *,
    seed: int = 0,
    notes_points: bool = False,
    keeps_files: bool = False,
    tier: str = MODEL,
) -> Report:
    """Play a scenario on a runtime (`claude`, `codex@0.169.0`). Never raises for what the subject does.

    Without `decisions` it is the calmest run. `notes_points` keeps every switch point, `keeps_files` what was written
    and printed. Processes of the operating
    system take no decisions: at the tiers `process` and `real` there is neither a seed nor a replay.
    Raises fake_runtimes.profile.UnknownProfileError, CannotRunError where a tier lacks a package or a program, and
    UserInputError where it has less time than the steps wait for.
    """
    on = runtime_named(runtime) if isinstance(runtime, str) else runtime
    if not is_claimed(scenario, on):
        named = ", ".join(scenario.runtimes)
        reason = f"the scenario is about {named}, not {on.label}"
        return Report(scenario, on, Verdict.NOT_APPLICABLE, reason, tier=tier)
    require_time(scenario, on, tier)
    if tier != MODEL:
        return of_processes(tier)(scenario, on, notes_points=notes_points).play(keeps_files=keeps_files)
    with seldom_collected():
        production = ModelProduction(scenario, on, decisions, seed, notes_points=notes_points)
        return production.play(keeps_files=keeps_files)


def of_processes(tier: str) -> Callable[..., Production]:
    """What plays real processes at that tier. Raises CannotRunError where a package is missing."""
    try:
        if tier == REAL:
            from harness.scenario.real.production import RealProduction

            return RealProduction
        from harness.scenario.process import ProcessProduction
    except ModuleNotFoundError as error:
        raise CannotRunError(
            f"the tier {tier} needs the package {error.name}, which is not installed: "
            "pip install 'mcp-harness[process]'"
        ) from None
    return ProcessProduction


def is_claimed(scenario: Scenario, runtime: Runtime) -> bool:
    """Whether a scenario says anything of this runtime: a version that is not named counts by its family."""
    return any(name.partition("@")[0] == runtime.family for name in scenario.runtimes)


class Ending(NamedTuple):
    """How a run ended before anybody judged it. `verdict` is done, deadlock or limit; `holds` did not do their part."""

    verdict: str
    detail: str
    holds: tuple[Hold, ...]


class Production(ABC):
    """One run, used once: the same steps, judges and verdicts whatever it is played on."""

    def __init__(self, scenario: Scenario, runtime: Runtime) -> None:
        self.scenario, self.runtime = scenario, runtime
        self.expectations = tuple(each for each in scenario.expectations if applies(each.only_on, runtime))
        self.cast = Cast(scenario, runtime)
        self.seen: dict[int, Seen] = {}

    def begin(self, stage: Theatre, faults: Plan) -> None:
        """What is there before anybody acts."""
        self.theatre, self.faults = stage, faults
        self.operator = Operator(self.scenario, self.runtime, stage, self._look_after)
        self.scene = Scene(stage, self.operator.place, self.scenario.sessions[0] if self.scenario.sessions else "")
        for directory in (HOME, CLONES, CODEX_HOME):
            stage.make_directory(directory)
        for path, text in self.scenario.files.items():
            stage.put(self.operator.place(path, None), text, 0o644)
        self._store_credentials(stage)

    def _store_credentials(self, stage: Theatre) -> None:
        """The rows and the files of those that are there before."""
        urls = {server.name: server.url for server in self.servers()}
        credentials = [
            self.cast.authorizations.issue(each, urls.get(each.server, ""), stage.now)
            for each in self.scenario.credentials
        ]
        catalog, secrets = stage.localized_catalog(self.scenario.catalog), self.scenario.secrets
        for row in stored_rows(credentials, catalog, secrets, self.cast, stage.now):
            stage.put_row(TABLE, row.credential_key, row_values(row))
        for path, text in store_credentials(
            self.scenario, credentials, self.runtime, self.servers(), stage.now
        ).items():
            stage.put(path, text, 0o600)

    def servers(self) -> Sequence[Known]:
        """The servers as the runtime knows them."""
        return self.cast.known

    def is_cut_off(self) -> bool:
        """Whether the time for the run is over, so that the rest of the steps are none."""
        return False

    def _look_after(self, step: int) -> None:
        if self.is_cut_off():
            return
        for number, expectation in enumerate(self.expectations):
            if expectation.after == step and not isinstance(expectation.check, model.InvariantHolds):
                self.seen[number] = look(self.scene, expectation.check)

    @abstractmethod
    def perform(self) -> Ending:
        """Play all steps. Raises Divergence and WorldFault."""

    @abstractmethod
    def crashes(self) -> str:
        """The first actor that ended by an exception, which no program may; else empty."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The fields of a report that tell of the run and not of what was expected of it."""

    @abstractmethod
    def close(self) -> None:
        """Leave nothing of the run, once it is judged."""

    def play(self, *, keeps_files: bool = False) -> Report:
        """Run and judge."""
        try:
            report = self._judged(self.perform())
            return report._replace(**self._left()) if keeps_files else report
        except Divergence as divergence:
            return self._report(Verdict.DIVERGENCE, str(divergence))
        except WorldFault as fault:
            return self._report(Verdict.HARNESS_ERROR, str(fault))
        finally:
            self.close()

    def _left(self) -> dict[str, Any]:
        """The fields of a report that tell what the run has left."""
        rows = {table: self.theatre.rows(table) for table in TABLES}
        return {
            "files": dict(self.theatre.files()),
            "rows": {table: found for table, found in rows.items() if found},
            "printed": self._printed(),
            "issued": tuple(value for _, value in self.cast.authorizations.secrets()),
        }

    def _printed(self) -> dict[str, str]:
        """What each actor printed, by its name and the stream."""
        return {
            f"{actor.name} {stream}": text
            for actor in self.theatre.actors
            for stream, text in self.theatre.printed(actor).items()
            if text
        }

    def _judged(self, ending: Ending) -> Report:
        found = invariants.judge(invariants.Run(self.theatre, self.operator.left_behind))
        is_whole = ending.verdict == "done" and not self.operator.gave_up
        judged = tuple(
            Judged(expectation, self._seen(number, expectation, found, is_whole=is_whole))
            for number, expectation in enumerate(self.expectations)
        )
        verdict, detail = self._verdict(ending, judged, tuple(found.values()))
        return self._report(
            verdict,
            detail,
            judged=judged,
            invariants=tuple(found.values()),
            holes=chain_invariants.walked(self.theatre),
        )

    def _seen(self, number: int, expectation: Expectation, found: dict[str, Finding], *, is_whole: bool) -> Seen:
        """What came of an expectation. In a run that was cut off nothing is met that its rest could have undone."""
        check = expectation.check
        if number in self.seen:
            return self.seen[number]
        if expectation.after is not None and not isinstance(check, model.InvariantHolds):
            return Seen(met=False, instead=f"step {expectation.after} was not reached")
        if isinstance(check, model.InvariantHolds):
            finding = found[check.name]
            seen = Seen(finding.holds is True, finding.detail or "nothing put it to the test", finding.events)
        else:
            seen = look(self.scene, check)
        if seen.met and not is_whole and not is_settled(check):
            return seen._replace(met=False, instead=CUT_OFF)
        return seen

    def _verdict(self, ending: Ending, judged: tuple[Judged, ...], found: tuple[Finding, ...]) -> tuple[Verdict, str]:
        """The verdict and, where it is neither pass nor fail, why."""
        crash = self.crashes()
        if crash:
            return Verdict.CRASH, crash
        if ending.verdict != "done":
            return (Verdict.DEADLOCK if ending.verdict == "deadlock" else Verdict.TIMEOUT), ending.detail
        if self.operator.gave_up:
            return Verdict.TIMEOUT, self.operator.gave_up
        untested = self._untested(ending.holds, judged)
        if untested:
            return Verdict.UNTESTABLE, "\n".join(untested)
        fallen = [each for each in judged if not each.seen.met]
        if any(not each.expectation.warns for each in fallen) or any(each.holds is False for each in found):
            return Verdict.FAIL, ""
        # Whether an answer is asked for is up to those who are tested: what fell because of that has fallen.
        unmet = list(self.cast.authorizations.unmet())
        if unmet:
            return Verdict.UNTESTABLE, "\n".join(unmet)
        return (Verdict.WARN if fallen else Verdict.PASS), ""

    def _untested(self, holds: Sequence[Hold], judged: Sequence[Judged]) -> list[str]:  # noqa: ARG002 - others need it
        """What was to happen for the scenario to mean something, and did not: a line for each."""
        kept = self.facts()["kept"]
        reached = [hold for hold in holds if any(hold.matches(each.actor, each.label) for each in kept)]
        reasons = [
            f"the hold of {hold.actor} at {hold.at!r} "
            + (f"was ended by its limit of {hold.limit_seconds:g} s" if hold in reached else "was not met")
            + ": the race did not take place"
            for hold in dict.fromkeys(holds)
        ]
        missed = [at for at in self.faults.missed() if at < len(self.scenario.faults)]
        reasons += [f"[[fault]] {at + 1} ({self.scenario.faults[at].action}) struck nowhere" for at in missed]
        return [*reasons, *self.operator.missed]

    def _report(self, verdict: Verdict, detail: str, **more: Any) -> Report:
        bad = in_force()
        name = "" if bad is None else bad.name
        return Report(self.scenario, self.runtime, verdict, detail, variant=name, **self.facts(), **more)


class ModelProduction(Production):
    """A run in memory and virtual time."""

    def __init__(
        self,
        scenario: Scenario,
        runtime: Runtime,
        decisions: Decisions | None,
        seed: int,
        *,
        notes_points: bool = False,
    ) -> None:
        super().__init__(scenario, runtime)
        self.stage = Stage(self.cast, decisions, seed, notes_points=notes_points)
        self.begin(self.stage, self.stage.faults)
        for family in RUNTIME_PROGRAMS:
            self.cast.runtimes[family] = self.operator.runtime_program(family)
        self.stage.start(OPERATOR, self.operator.run)

    def perform(self) -> Ending:
        """Until every actor has ended or nothing can go on."""
        outcome = self.stage.run()
        holds = tuple(hold for hold in (*outcome.unmet_holds, *outcome.unreached_holds) if hold is not NOBODY)
        return Ending(outcome.verdict, outcome.detail, holds)

    def crashes(self) -> str:
        """The first actor that ended by an exception."""
        for actor in self.stage.actors:
            ended = self.stage.ended(actor)
            error = ended.error or next(iter(ended.lost), None)
            if error is not None:
                return f"{actor.name}: {type(error).__name__}: {error}"
        return ""

    def close(self) -> None:
        """It was all in memory."""

    def facts(self) -> dict[str, Any]:
        """Everything that happened, and the decisions that make it happen again."""
        stage = self.stage
        return {
            "events": tuple(stage.events),
            "started_seconds": stage.started_seconds,
            "steps": stage.scheduler.steps,
            "seconds": stage.now - stage.started_seconds,
            "kept": tuple(stage.kept),
            "points": tuple(stage.points),
            "decisions": tuple(stage.decisions.taken) if isinstance(stage.decisions, Recording) else (),
        }
