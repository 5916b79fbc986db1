"""A scenario's cast below one folder, with the real program in the runtime's place and everything else ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fake_runtimes import runtimes as fakes
from fake_runtimes.pi.keyring_helper import JOINING, is_keyring_helper
from fake_servers.mounts import Mount
from harness.canary.installing import Installed
from harness.reference.secrets.placeholders import MissingVariableError, resolve_text
from harness.reference.selection.zimmer import ZIMMER, Instance, is_zimmer_name
from harness.scenario.cast import NPM, NPX, RUNTIME_PROGRAMS, Cast, Known
from harness.scenario.judging import offered_names
from harness.scenario.model import HOME, Scenario
from harness.scenario.process.stage import NotingController, ProcessStage
from harness.scenario.process.stand_ins import INTERPRETER, StandIns
from harness.scenario.real.launching import (
    command_line,
    keyring_helper,
    model_of,
    prepare_home,
    trusting,
    variables,
)
from harness.scenario.real.localizing import Localizer
from harness.scenario.real.observing import Around
from harness.scenario.real.places import Place
from harness.scenario.real.watching import OBSERVERS, Watch, logs_of
from harness.world.model.faults import Event
from harness.world.outside import keyring as keyring_module
from harness.world.outside import supervising
from harness.world.outside.control import Launch
from harness.world.outside.controller import Steered
from harness.world.outside.keyring import NoKeyringError, RunKeyring
from harness.world.outside.reaping import ancestors
from harness.world.outside.setting import Pace
from harness.world.sites import SIGNAL_NUMBERS, origin

LISTED = "tools/list"
HOLDER_VARIABLE = "MCP_HARNESS_KEYRING"
"""By its value whoever cleans up finds the process that holds a run's keyring."""


class RealStage(ProcessStage):
    """One run, used once. `programs` are the installed runtimes by their labels."""

    controller: RealController

    def __init__(
        self, cast: Cast, programs: Mapping[str, Installed], *, variant: str | None = None, notes_points: bool = False
    ) -> None:
        self.programs = dict(programs)
        self.mounts = ExitStack()
        self.keyring: RunKeyring | None = None
        self.no_keyring = ""
        super().__init__(cast, Pace(), variant=variant, notes_points=notes_points)
        self.mark = f"={self.folder}/"
        try:
            self._make_keyring()
            places = {place: self.placed(place) for place in cast.sites}
            names = kept(cast.scenario, cast.runtime.family)
            self.localizer = Localizer(self.folder, self.controller.path, INTERPRETER, places, keeps=names)
            for server in cast.known:
                if server.argv and server.argv[0]:
                    self.localizer.serve(server.argv[0])
            for name in self.localizer.keeps:
                self.localizer.serve(name)
        except BaseException:
            self.remove()
            raise

    def _make_keyring(self) -> None:
        """Where Pi is to keep what outlives a session, a keyring of the run's own; or why it has none."""
        if not self.cast.authorizations.servers or all(each.family != "pi" for each in self.programs.values()):
            return
        try:
            self.keyring = self.mounts.enter_context(RunKeyring(f"{HOLDER_VARIABLE}{self.mark}"))
        except NoKeyringError as error:
            self.no_keyring = (
                f"Pi keeps credentials in the kernel's keyring, and a run can have none of its own: {error}"
            )

    def placed(self, place: str) -> str:
        """Where the servers of an origin are, until the end of the run: with TLS where one gives out tokens.

        An authorization server knows itself by the address at which it is asked.
        """
        issuers = [each for each in self.cast.authorizations.servers.values() if origin(each.issuer) == place]
        scheme = "https" if issuers else "http"
        here = f"{scheme}://127.0.0.1:{self.mounted(Place(self.cast.sites[place]), scheme)}"
        for server in issuers:
            server.issuer = f"{here}{urlsplit(server.issuer).path}"
        return here

    def mounted(self, server: Any, scheme: str = "http") -> int:
        """A server on a port of its own, until the end of the run."""
        at = f"{scheme}://127.0.0.1:0"
        mount = self.mounts.enter_context(Mount({at: server}, authority=self.authority))
        return mount.addresses[at][1]

    def steering(self, *, notes_points: bool) -> RealController:
        """Who steers what is ours, and watches what is not."""
        return RealController(self, RealStandIns(self).launch, notes_points=notes_points)

    @contextmanager
    def served(self) -> Any:
        """The remote servers are there already, and the models of all runs come to them."""
        try:
            with self.mounts:
                yield {place: urlsplit(place).port for place in self.localizer.places.values()}
        finally:
            self.controller.end_watches()

    def remove(self) -> None:
        """Leave nothing, the folder with all that was written included."""
        self.mounts.close()
        self.controller.close()
        super().remove()

    def normal(self, text: str) -> str:
        """A text of a process as it reads at every tier."""
        return super().normal(self.localizer.normal(text)) if text else text

    def localized(self, text: str) -> str:
        """A text of the scenario: paths made real, commands and URLs made to name ours."""
        return super().localized(self.localizer.text(text))

    def localized_catalog(self, catalog: Mapping[str, Any]) -> Mapping[str, Any]:
        """The same of a catalog."""
        return {
            name: self.localizer.entry(name, entry, self._resolved, self._with_paths) for name, entry in catalog.items()
        }

    def localized_instance(self, instance: Instance) -> Instance:
        """The orchestrator's own server is one of ours."""
        return instance._replace(base_url=self.localizer.url(instance.base_url))

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its path, as it reads at every tier; not what stands in for the scenario's programs."""
        for path, content in super().files():
            if not self.localizer.is_own(path):
                try:
                    yield path, self.normal(content.decode()).encode()
                except UnicodeDecodeError:
                    yield path, content

    def _with_paths(self, value: Any) -> Any:
        if isinstance(value, str):
            return value.replace(HOME, self.real(HOME))
        return super().localized_value(value) if isinstance(value, Mapping | list | tuple) else value

    def localized_value(self, value: Any) -> Any:
        """A value with the paths in its texts made real."""
        if isinstance(value, str):
            return value.replace(HOME, self.real(HOME))
        return super().localized_value(value)

    def _resolved(self, text: str) -> str:
        try:
            return resolve_text(text, self.cast.scenario.secrets.get)
        except MissingVariableError:
            return text

    def known(self) -> tuple[Known, ...]:
        """The servers with the URLs by which the runtime knows them."""
        return tuple(
            server._replace(url=self.localizer.url(server.url)) if server.url else server for server in self.cast.known
        )

    def reached(self, run: str, server: str, since_seconds: float) -> bool:
        """Whether a server was asked for its tools in a run."""
        remote = self.cast.remote.get(ZIMMER if is_zimmer_name(server) else server)
        if remote is not None:
            return any(seen.rpc_method == LISTED and seen.at >= since_seconds for seen in remote.requests)
        return any(is_listing(event, run, server) for event in self.events)

    @property
    def home(self) -> Path:
        """The home directory."""
        return Path(self.real(HOME))


def kept(scenario: Scenario, family: str) -> tuple[str, ...]:
    """The programs that are called by their names: the orchestrator has rules for those, and knows them by it.

    There are none where anything might change the PATH in which they are found, and none on Pi, whose adapter would
    start what they have installed by itself.
    """
    if family == "pi":
        return ()
    said = (scenario.catalog, scenario.environment, scenario.files, *(step.action for step in scenario.steps))
    return () if "PATH" in repr(said) else (NPX, NPM)


def is_listing(event: Event, run: str, server: str) -> bool:
    """Whether a process of a server was asked for its tools."""
    below, name = event.actor.removeprefix(f"{run}/"), event.actor
    return (
        event.name == "mcp.received"
        and event.details.get("method") == LISTED
        and name.startswith(f"{run}/")
        and below.partition("/")[0].partition("#")[0] == server
    )


class RealStandIns(StandIns):
    """As elsewhere, with the real program where a job starts a runtime."""

    def __init__(self, stage: RealStage) -> None:
        super().__init__(stage.cast, stage.jobs, stage.folder)
        self.stage = stage

    def launch(self, parent: Steered, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Launch | None:
        """What is started for a program."""
        if argv[0] not in RUNTIME_PROGRAMS or parent.parent is not None:
            return self._with_keyring(argv, super().launch(parent, argv, env, directory))
        stage, job = self.stage, self.jobs[parent.name]
        program = stage.programs[job.runtime.label]
        family, profile = program.family, job.runtime.profile
        text = stage.text(f"{job.clone}/{fakes.config_path(profile)}")
        servers = tuple(server.name for server in fakes.read(profile, text, env).servers)
        names = offered_names(stage, job, env)
        since = stage.now
        run = f"{parent.name}/{argv[0]}"

        def reached(server: str) -> bool:
            return stage.reached(stage.controller.run_of(watch) or run, server, since)

        observer = OBSERVERS[family](Around(job.plan, servers, names, reached))
        logs = logs_of(family, stage.home, Path(stage.real(job.clone)), servers)
        watch = Watch(observer, model_of(family, job.plan, names), logs, stage.controller.changed)
        url = f"http://127.0.0.1:{stage.mounted(watch)}"
        temporary = stage.folder / "tmp"
        prepare_home(program, stage.home, temporary, url)
        path = f"{stage.localizer.programs}:{env.get('PATH', '')}"
        real = {
            "argv": command_line(program, argv[1:], url, servers),
            "env": {
                **variables(program, stage.home, temporary, url, has_keyring=stage.keyring is not None),
                **trusting(stage.authority.path),
                "PATH": path,
            },
            "keyring": stage.keyring.namespace if stage.keyring and family == "pi" else None,
        }
        stage.controller.coming = watch
        return Launch((*INTERPRETER, supervising.__file__, self._file(real)), run, {})

    def _with_keyring(self, argv: Sequence[str], found: Launch | None) -> Launch | None:
        """Where the keyring is asked, Pi's own helper, in the run's keyring and under a session keyring of its own."""
        keyring = self.stage.keyring
        if found is None or keyring is None or not is_keyring_helper(argv) or argv[0] != JOINING:
            return found  # without a session keyring it finds nothing, as the stand-in says
        program = next(each for each in self.stage.programs.values() if each.family == "pi")
        inside = (keyring_module.__file__, keyring.namespace, *keyring_helper(program))
        return Launch((*INTERPRETER, *inside), found.name, {})


class RealController(NotingController):
    """A controller that is told by supervisors what a real program prints, and asked by what it starts.

    A program that was started by a real one says no name of its parent's: that is told by the process.
    """

    stage: RealStage

    def __init__(self, stage: RealStage, launcher: Any, *, notes_points: bool) -> None:
        self.stage = stage
        self.watches: dict[str, Watch] = {}
        self.coming: Watch | None = None
        super().__init__(stage, launcher, notes_points=notes_points)

    def run_of(self, watch: Watch) -> str | None:
        """The actor that is watched so."""
        return next((name for name, each in self.watches.items() if each is watch), None)

    def answer(self, message: Mapping[str, Any], pid: int) -> Mapping[str, Any] | None:
        """The answer to one message."""
        if message["do"] == "launch" and not message["actor"]:
            return self._start_below(message, pid)
        answer = super().answer(message, pid)
        watch = self.watches.get(message["actor"])
        if watch is not None and message["do"] == "printed":
            watch.printed(message["stream"], self.normal(message["text"]))
        return answer

    def ended(self, actor: Steered, exit_code: int, *, is_killed: bool = False) -> None:
        """What a real program has said is told before its end."""
        watch = self.watches.get(actor.name)
        if watch is not None and actor.alive:
            watch.ended(exit_code)
        if self._is_unwitnessed(actor, exit_code):
            with self.changed:
                actor.alive = False
                self.emit(actor.name, "ended", {})
            return
        super().ended(actor, exit_code, is_killed=is_killed)

    def _is_unwitnessed(self, actor: Steered, exit_code: int) -> bool:
        """Whether a process was ended by a real program: with which signal nobody can see."""
        by_other = actor.alive and exit_code == -SIGNAL_NUMBERS["SIGKILL"] and not actor.last_signal
        return by_other and actor.parent is not None and actor.name not in self.watches

    def end_watches(self) -> None:
        """Nothing is watched any more."""
        for watch in self.watches.values():
            watch.close()

    def _launch(self, actor: Steered, message: Mapping[str, Any]) -> Mapping[str, Any]:
        with self.changed:
            answer = super()._launch(actor, message)
            watch, self.coming = self.coming, None
            if watch is not None:
                name = answer["name"]
                self.watches[name] = watch
                watch.begin(lambda event, details: self.emit(name, event, self._normal(details)))
            return answer

    def _start_below(self, message: Mapping[str, Any], pid: int) -> Mapping[str, Any]:
        """A server that a real program starts."""
        with self.changed:
            parent = self._parent_of(pid)
            if parent is None:
                return {"errno": 2}
            answer = self._launch(parent, message)
            child = self.named(answer.get("name", ""))
            if child is not None:
                child.pid = pid
                self.emit(parent.name, "spawn", {"argv": self._normal(message["argv"]), "child": child.name})
            return answer

    def _parent_of(self, pid: int) -> Steered | None:
        """The run that a process belongs to; of one that has lost its parents, the last that runs."""
        runs = [actor for actor in self.actors if actor.name in self.watches]
        line = ancestors(pid)
        return next((run for run in runs if run.pid in line), next((run for run in reversed(runs) if run.alive), None))
