"""A scenario's cast as real processes below one temporary folder, which stands for the root of its file system.

Whatever a process says has the folder's name taken out, so that paths read as they do at every other tier.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fake_runtimes.pi.variables import KEYRING_VARIABLE
from fake_servers.mounts import Mount, TestAuthority
from harness.errors import UserInputError
from harness.reference.selection.zimmer import Instance
from harness.scenario.cast import Cast
from harness.scenario.chains import Monitor
from harness.scenario.desk import CronJob
from harness.scenario.model import HOME
from harness.scenario.naming import OPERATOR, NamedHold
from harness.scenario.process.jobs import run_as_process
from harness.scenario.process.stand_ins import StandIns
from harness.scenario.sessions import AnyJob, Job
from harness.scenario.stage import Kept, Plan, Point, matcher
from harness.world import World
from harness.world.blocking import disk
from harness.world.live.forks import Fork
from harness.world.live.store import all_committed, committed, put_committed
from harness.world.live.threads import in_thread
from harness.world.model import Event, Hold
from harness.world.outside.controller import Arrival, Controller, Launcher, Steered
from harness.world.outside.janitor import Janitor
from harness.world.outside.reaping import adopt_orphans, reap
from harness.world.outside.setting import CONTROL_VARIABLE, Pace, Setting
from harness.world.ports import Stat

PRELOADED = ("harness.scenario.process.jobs",)
NOT_IN_A_SLUG = re.compile(r"[^a-zA-Z0-9]")
LONGEST_FOLDER = 70
"""Bytes: what is below it has some 30 more, and a socket no more than 103 on any system."""
KEYRING_DIRECTORY = "/run/keyring"
"""Where the fake keyring lies: below the folder, as everything does."""


class ProcessStage:
    """One run, used once. `variant` is in place in every job."""

    def __init__(self, cast: Cast, pace: Pace, *, variant: str | None = None, notes_points: bool = False) -> None:
        self.cast, self.pace, self.variant = cast, pace, variant
        self.jobs: dict[str, Job] = {}
        self.given_files: set[str] = set()
        self.folder = Path(tempfile.mkdtemp(prefix="mcp-")).resolve()
        self.mark = f"{CONTROL_VARIABLE}={self.folder}/"
        self.janitor = Janitor(self.folder, mark=self.mark)
        self.root = str(self.folder / "root")
        self.slug = NOT_IN_A_SLUG.sub("-", self.root)
        self.store = str(self.folder / "rows.db")
        self.faults = Plan(cast.faults())
        self.forks: list[Fork] = []
        self.ended_seconds = pace.now()
        self.authority = TestAuthority(self.folder)
        self.controller = self.steering(notes_points=notes_points)
        self.monitor = Monitor(cast.authorizations.servers, self, self.controller.emit)

    def steering(self, *, notes_points: bool) -> NotingController:
        """Who steers the run, with our executables in place of programs."""
        launcher = StandIns(self.cast, self.jobs, self.folder).launch
        return NotingController(self, launcher, notes_points=notes_points)

    @contextmanager
    def served(self) -> Iterator[Mapping[str, int]]:
        """The remote servers are there: the port of each origin."""
        with Mount(self.cast.sites, pace=self.pace, authority=self.authority) as mount:
            yield {origin: port for origin, (_, port) in mount.addresses.items()}

    @contextmanager
    def open(self, limit_seconds: float) -> Iterator[None]:
        """Servers and controller are there, for so many real seconds at most; afterwards every process is gone."""
        adopt_orphans()
        try:
            with self.served() as endpoints:
                self.controller.endpoints = dict(endpoints)
                with self.controller, self.controller.limited(limit_seconds):
                    yield
                self.ended_seconds = self.now
        finally:
            for fork in self.forks:
                fork.end()
            reap(self.mark)

    def remove(self) -> None:
        """Leave nothing, the folder with all that was written included."""
        self.janitor.finish()

    def setting(self, name: str) -> Setting:
        """What an actor is told."""
        return Setting(name, self.controller.path, "", self.pace, str(self.authority.path))

    def normal(self, text: str) -> str:
        """A text of a process as it reads at every tier."""
        return text.replace(self.root, "").replace(self.slug, "") if text else text

    # --- what the operator acts on

    @property
    def now(self) -> float:
        """The world's time."""
        return self.pace.now()

    def real(self, path: str) -> str:
        """Where a path of the scenario is."""
        return f"{self.root}{path}"

    def localized(self, text: str) -> str:
        """A text of the scenario with the paths in it made real."""
        return text.replace(HOME, self.real(HOME))

    def localized_value(self, value: Any) -> Any:
        """A value with every text in it localized."""
        if isinstance(value, str):
            return self.localized(value)
        if isinstance(value, Mapping):
            return {key: self.localized_value(item) for key, item in value.items()}
        return [self.localized_value(item) for item in value] if isinstance(value, list | tuple) else value

    def localized_catalog(self, catalog: Mapping[str, Any]) -> Mapping[str, Any]:
        """The catalog as a session is given it."""
        return {name: self.localized_value(entry) for name, entry in catalog.items()}

    def localized_instance(self, instance: Instance) -> Instance:
        """Where the orchestrator itself is."""
        return instance

    def localized_job(self, job: AnyJob, environment: Mapping[str, str]) -> AnyJob:
        """A job as its process is given it."""
        moved: AnyJob = job._replace(clone=self.real(job.clone), environment=environment)
        if not isinstance(moved, CronJob):
            catalog, secrets = self.localized_catalog(moved.catalog), self.localized_value(moved.secrets)
            moved = moved._replace(catalog=catalog, secrets=secrets)
        return moved._replace(instance=self.localized_instance(moved.instance)) if isinstance(moved, Job) else moved

    def make_directory(self, path: str) -> None:
        """With its parents, as a person would before a run."""
        Path(self.real(path)).mkdir(parents=True, exist_ok=True)

    def put(self, path: str, text: str, mode: int) -> None:
        """A file that is there before anybody acts."""
        where = Path(self.real(path))
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(self.localized(text), encoding="utf-8")
        where.chmod(mode)
        self.given_files.add(path)

    def put_row(self, table: str, key: str, values: Mapping[str, Any]) -> None:
        """A row that is there before anybody acts."""
        put_committed(self.store, {(table, key): values})

    def start_job(self, job: AnyJob, after_seconds: Sequence[float] = (0.0,)) -> Steered:
        """Start an actor of the orchestrator in a process of its own."""
        environment = self.localized_value(job.environment) | {KEYRING_VARIABLE: self.real(KEYRING_DIRECTORY)}
        actor = self.controller.register(job.actor, None, environment)
        if isinstance(job, Job):
            self.jobs[actor.name] = job
        here = self.localized_job(job, environment)
        arguments = (here, self.setting(actor.name), self.store, after_seconds[0], self.variant)

        def ended(code: int) -> None:
            self.controller.ended(actor, code, is_killed=code < 0)

        fork = Fork(run_as_process, arguments, PRELOADED, ended)
        actor.pid = fork.pid
        self.forks.append(fork)
        return actor

    def signal(self, actor: Steered, name: str) -> None:
        """Send a signal."""
        self.controller.signal(actor, name)

    def kill(self, actor: Steered) -> None:
        """End an actor at once."""
        self.controller.kill(actor)

    async def next_event(self, until_seconds: float | None) -> bool:
        """Wait until anything happens; False when the time came first."""
        seen = len(self.events)
        return await in_thread(lambda: self.controller.wait(lambda: len(self.events) > seen, until_seconds))

    async def advance(self, _world: World, seconds: float) -> None:
        """Let that much time pass, or less when the run has no time left."""
        until = self.now + seconds
        await in_thread(lambda: self.controller.wait(lambda: False, until))

    async def settle(self, _world: World, seconds: float) -> None:
        """Wait until everybody but the operator has ended, or that long."""
        until, others = self.now + seconds, self.actors[1:]
        await in_thread(lambda: self.controller.wait(lambda: not any(actor.alive for actor in others), until))

    async def until_ended(self, actor: Steered, until_seconds: float | None) -> bool:
        """Wait until an actor has ended; False when the time came first."""
        return await in_thread(lambda: self.controller.wait(lambda: not actor.alive, until_seconds))

    # --- what the judges look at

    @property
    def started_seconds(self) -> float:
        """When the run began, in the world's time."""
        return self.controller.started_seconds

    @property
    def events(self) -> list[Event]:
        """All events so far."""
        return self.controller.events

    @property
    def actors(self) -> list[Steered]:
        """All actors so far."""
        return self.controller.actors

    @property
    def kept(self) -> list[Kept]:
        """What the holds did."""
        return self.controller.kept

    @property
    def points(self) -> list[Point]:
        """Every switch point, where they are noted."""
        return self.controller.points

    def stat(self, path: str) -> Stat | None:
        """What is at a path; None when nothing is."""
        return disk.stat(self.real(path), self.pace.world_time)

    def text(self, path: str) -> str | None:
        """A file's text; None where no file can be read."""
        try:
            return self.normal(Path(self.real(path)).read_text(encoding="utf-8", errors="replace"))
        except OSError:
            return None

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its path; links are not followed."""
        for path in sorted(Path(self.root).rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield self.normal(str(path)), path.read_bytes()

    def row(self, table: str, key: str) -> Mapping[str, Any] | None:
        """The committed values of a row."""
        return committed(self.store, table, key)

    def rows(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        """All committed rows of a table, by key."""
        return all_committed(self.store, table)

    def printed(self, actor: Any) -> Mapping[str, str]:
        """All that an actor has printed, by stream."""
        return {stream: "\n".join(lines) for stream, lines in actor.printed.items()}


def require_short_paths() -> None:
    """Sockets lie in temporary folders, and have short paths. Raises UserInputError where they cannot."""
    folder = Path(tempfile.gettempdir()).resolve()
    if len(bytes(folder)) > LONGEST_FOLDER:
        raise UserInputError(f"TMPDIR: {folder} is too long a path for sockets below it", fix="Name a shorter folder.")


class NotingController(Controller):
    """A controller that keeps what its holds did and, where asked to, every switch point."""

    def __init__(self, stage: ProcessStage, launcher: Launcher, *, notes_points: bool) -> None:
        scenario = stage.cast.scenario
        holds: list[Hold] = [
            NamedHold(hold.actor, hold.at, matcher(hold.until), hold.limit_seconds, hold.times)
            for hold in scenario.holds
        ]
        self.stage = stage
        super().__init__(
            str(stage.folder / "control"),
            launcher=launcher,
            endpoints={},
            faults=stage.faults,
            holds=holds,
            pace=stage.pace,
            normal=stage.normal,
        )
        self.notes_points = notes_points
        self.kept: list[Kept] = []
        self.points: list[Point] = []
        self.register(OPERATOR, None, {})

    def arrived(self, arrival: Arrival) -> None:
        """Note the point."""
        if self.notes_points:
            self.points.append(Point(self._since(), arrival.actor.name, arrival.label, len(self.events)))
        if self.stage.cast.authorizations.servers:
            with self.changed:
                self.stage.monitor.arrived(arrival.actor.name, arrival.label, arrival.content.encode())

    def held(self, arrival: Arrival, hold: Hold, waited_seconds: float | None, *, is_met: bool) -> None:
        """Note what the hold does."""
        if waited_seconds is None:
            text = f"is held at {arrival.label}"
        elif is_met:
            text = f"goes on at {arrival.label} after {waited_seconds:.1f} s: what the hold waits for has happened"
        else:
            text = f"goes on at {arrival.label}: the hold's limit of {hold.limit_seconds:g} s was over"
        self.kept.append(Kept(self._since(), arrival.actor.name, arrival.label, text, len(self.events)))

    def _since(self) -> float:
        return self.now - self.started_seconds
