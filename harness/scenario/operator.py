"""The operator: does the steps of a scenario, one after the other, and has the expectations looked at in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fake_runtimes.plan import Plan
from harness.gate.spawn import Runtime, runtime_named
from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.roots import default_mcp_servers, read_roots
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.oauth.deps import OAuthDeps
from harness.reference.session.jobs import TABLE as JOBS
from harness.reference.session.selection_edit import edit_selection
from harness.scenario import model
from harness.scenario.authorization import changes
from harness.scenario.desk import AUTHORIZES, CronJob, WebJob, settings_of
from harness.scenario.model import CLONES, HOME, Scenario
from harness.scenario.naming import OPERATOR, is_match, is_meant, session_of
from harness.scenario.runtimes import CODEX, runtime_programs
from harness.scenario.sessions import PROMPT, Job, choose_servers, create_session
from harness.scenario.theatre import Party, Theatre
from harness.world import World

SETTLING_SECONDS = 10.0
"""After the last step: what still runs then is left behind."""

PARENT_ENVIRONMENT: Mapping[str, str] = {"HOME": HOME, "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


class GaveUpError(Exception):
    """A step waited longer than it may."""


class Operator:
    """One run of the steps. `look` is called after each step with its number."""

    def __init__(self, scenario: Scenario, runtime: Runtime, stage: Theatre, look: Callable[[int], None]) -> None:
        self.scenario, self.runtime, self.stage, self.look = scenario, runtime, stage, look
        self.catalog: dict[str, Any] = dict(scenario.catalog)
        self.starts: dict[str, model.Start] = {}
        self.step = 0
        self.gave_up = ""
        self.missed: list[str] = []
        self.left_behind: tuple[Party, ...] = ()

    async def run(self, world: World, _argv: Any) -> int:
        """All steps, then a time for everything to settle; what is alive then is noted and ended."""
        for number, step in enumerate(self.scenario.steps, 1):
            if applies(step.only_on, self.runtime):
                self.step = number
                try:
                    await self._do(world, step.action)
                except GaveUpError as error:
                    self.gave_up = f"step {number}: {error}"
                    break
            self.look(number)
        await self.stage.settle(world, SETTLING_SECONDS)
        self.left_behind = tuple(actor for actor in self.stage.actors if actor.alive and actor.name != OPERATOR)
        for actor in self.left_behind:
            world.events.emit("left.behind", actor=actor.name)
            self.stage.kill(actor)
        return 0

    async def _do(self, world: World, action: model.Action) -> None:
        match action:
            case model.Start():
                await self._start(world, action)
            case model.Advance(seconds=seconds):
                world.events.emit("step.advance", seconds=seconds)
                await self.stage.advance(world, seconds)
                await self._work_off(world)
            case model.Kill(actor=name, signal=signal):
                self._kill(world, name, signal)
            case model.Edit():
                self._edit(world, action)
            case model.Select(session=session, servers=servers):
                world.events.emit("step.select", session=session, servers=list(servers))
                deps = OAuthDeps(read_catalog(self.catalog), self.scenario.secrets.get, settings_of(self.scenario))
                await edit_selection(world, session, deps, servers=servers)
            case model.Write(path=path, text=text, session=session, mode=mode):
                await self._write(world, self.place(path, session), text, mode)
            case model.Remove(path=path, session=session):
                where = self.place(path, session)
                world.events.emit("step.remove", path=where)
                if self.stage.stat(where) is None:
                    self.missed.append(f"the step that removes {path} found nothing")
                await world.files.remove_tree(self.stage.real(where))
            case model.Authorize() | model.RunJob() | model.Provide():
                await self._without_a_session(world, action)
            case model.Await():
                await self._await(action)
                await self._work_off(world)

    # --- sessions

    async def _start(self, world: World, start: model.Start, message: str | None = None) -> None:
        """A run of a session. What a further one says is `message`, or the same as ever."""
        first = self.starts.get(start.session)
        if start.again and first is not None:
            start = inherited(start, first)
        self.starts[start.session] = start
        job = self._job(start)
        if start.again:
            job = job._replace(follow_up=message or PROMPT)
        self.stage.make_directory(job.clone)
        world.events.emit("step.start", session=start.session, servers=list(job.servers))
        if not start.again:
            await create_session(world, job)
        elif start.servers is not None or start.root is not None:
            await choose_servers(world, start.session, job.servers)

        actor = self.stage.start_job(job, start.after_seconds)
        if start.wait:
            await self._until_ended(actor)

    def _job(self, start: model.Start) -> Job:
        roots = read_roots(self.scenario.roots)
        servers: tuple[str, ...] = tuple(self.catalog) if start.servers is None else start.servers
        if start.root is not None:
            servers = default_mcp_servers(start.root, read_catalog(self.catalog), tuple(roots))
        return Job(
            start.session,
            self.runtime if start.runtime is None else runtime_named(start.runtime),
            self.clone(start),
            servers,
            dict(self.catalog),
            self.scenario.secrets,
            {**self._environment, **start.environment},
            Plan(start.turns),
            roots[start.root].default_subagent_roots if start.root is not None else (),
            self.scenario.watched,
            oauth=settings_of(self.scenario),
            bugs=self.scenario.codex_bugs,
        )

    def clone(self, start: model.Start) -> str:
        """Where a session works."""
        return start.clone or f"{CLONES}/{start.session}"

    def place(self, path: str, session: str | None) -> str:
        """A path of the scenario, absolute."""
        if path.startswith("~/"):
            return f"{HOME}/{path[2:]}"
        name = session or self.scenario.sessions[0]
        started = self.starts.get(name)
        first = started or next(
            step.action
            for step in self.scenario.steps
            if isinstance(step.action, model.Start) and step.action.session == name
        )
        return path if path.startswith("/") else f"{self.clone(first)}/{path}"

    def runtime_program(self, family: str) -> Any:
        """What stands in for a runtime's program: a run with the plan of the session that launches it."""

        async def run(world: World, argv: Any) -> int:
            job = self.stage.jobs[world.name.rpartition("/")[0]]
            given = (frozenset(job.bugs),) if family == CODEX else ()
            program = runtime_programs()[family](job.runtime.profile, job.plan, *given)
            code: int = await program(world, argv)
            return code

        return run

    # --- without a session

    async def _without_a_session(self, world: World, action: model.Authorize | model.RunJob | model.Provide) -> None:
        match action:
            case model.Authorize(server=server, session=session):
                world.events.emit(AUTHORIZES, server=server, session=session or "")
                settings = settings_of(self.scenario)
                job: WebJob | CronJob = WebJob(
                    action, dict(self.catalog), self.scenario.secrets, settings, self._environment
                )
            case model.RunJob(job=name):
                world.events.emit("step.job", job=name, seconds=action.seconds)
                job = CronJob(name, action.seconds, self._environment)
            case model.Provide():
                self._provide(world, action)
                return
        actor = self.stage.start_job(job)
        if action.wait:
            await self._until_ended(actor)
            await self._work_off(world)

    async def _work_off(self, world: World) -> None:
        """Run the turns that are queued: a session that was resumed goes on."""
        if not any(isinstance(step.action, model.Authorize) for step in self.scenario.steps):
            return
        for row in await world.store.rows(JOBS):
            start = self.starts.get(row.values.get("session", ""))
            if start is None:
                continue
            transaction = await world.store.begin()
            await transaction.delete(JOBS, row.key)
            await transaction.commit()
            turn = start._replace(again=True, servers=None, root=None, wait=True)
            await self._start(world, turn, message=row.values.get("prompt"))

    def _provide(self, world: World, action: model.Provide) -> None:
        name = action.authorization
        facts = sorted(action.set)
        world.events.emit("step.provider", authorization=name, set=facts, says=changes(action), revokes=action.revokes)
        authorizations = self.stage.cast.authorizations
        authorizations.change(action, f"[[step]] {self.step}")
        if action.revokes and not authorizations.revoke(name, self._tokens_of(action.revokes)):
            self.missed.append(f"{name} has nothing of {action.revokes} to revoke")

    def _tokens_of(self, server: str) -> list[str]:
        """The access tokens that the stored credentials of a server hold, and what was issued for it before the run."""
        rows = self.stage.rows(CREDENTIALS).values()
        held = [str(row["access_token"]) for row in rows if row["server_name"] == server]
        issued = self.stage.cast.authorizations.issued.get(server)
        return [*held, *([issued[0]] if issued else [])]

    @property
    def _environment(self) -> Mapping[str, str]:
        return {**PARENT_ENVIRONMENT, **self.scenario.environment}

    # --- the rest

    def _kill(self, world: World, name: str, signal: str) -> None:
        meant = [
            each for each in self.stage.actors if each.alive and each.name != OPERATOR and is_meant(name, each.name)
        ]
        world.events.emit("step.kill", actor=name, signal=signal, actors=[actor.name for actor in meant])
        if not meant:
            self.missed.append(f"the step that kills {name} met nobody")
        for actor in meant:
            self.stage.signal(actor, signal)

    def _edit(self, world: World, edit: model.Edit) -> None:
        world.events.emit(
            "step.edit", entry=edit.entry, set=sorted(edit.set), unset=list(edit.unset), removed=edit.delete
        )
        if edit.delete:
            self.catalog.pop(edit.entry, None)
            return
        entry = {**self.catalog.get(edit.entry, {}), **edit.set}
        self.catalog[edit.entry] = {key: value for key, value in entry.items() if key not in edit.unset}

    async def _write(self, world: World, path: str, text: str, mode: int) -> None:
        world.events.emit("step.write", path=path)
        where = self.stage.real(path)
        try:
            await world.files.make_directory(where.rpartition("/")[0] or "/")
            await world.files.write(where, self.stage.localized(text).encode(), mode=mode)
        except OSError as error:
            self.missed.append(f"the step that writes {path} could not: {error.strerror}")

    async def _await(self, action: model.Await) -> None:
        limit = None if action.limit_seconds is None else self.stage.now + action.limit_seconds
        if action.session is not None:
            actor = next(each for each in reversed(self.stage.actors) if self._is_run_of(each, action.session))
            await self._until_ended(actor, limit)
            return
        seen = len(self.stage.events)
        while not any(action.until and is_match(action.until, event) for event in self.stage.events[seen:]):
            seen = len(self.stage.events)
            if not await self.stage.next_event(limit):
                raise GaveUpError(f"what it waits for did not happen in {action.limit_seconds:g} s")

    def _is_run_of(self, actor: Party, session: str) -> bool:
        return actor.parent is None and session_of(actor.name) == session

    async def _until_ended(self, actor: Party, limit: float | None = None) -> None:
        if not await self.stage.until_ended(actor, limit):
            raise GaveUpError(f"{actor.name} has not ended by then")


def inherited(start: model.Start, first: model.Start) -> model.Start:
    """A further run of a session has its clone, servers and runtime unless it says otherwise."""
    says_which = start.servers is not None or start.root is not None
    return start._replace(
        servers=start.servers if says_which else first.servers,
        root=start.root if says_which else first.root,
        clone=start.clone or first.clone,
        runtime=start.runtime or first.runtime,
    )


def applies(only_on: tuple[str, ...], runtime: Runtime) -> bool:
    """Whether something that names runtimes (none: all) means this one; a bare name means every version."""
    return not only_on or runtime.family in only_on or runtime.label in only_on
