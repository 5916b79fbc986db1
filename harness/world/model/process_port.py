"""Children of one actor, and the actor as a child."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from math import inf

from harness.world.errors import failure, require_spawnable
from harness.world.model.actors import Actor
from harness.world.model.port import Port
from harness.world.model.scheduler import Wait
from harness.world.model.simulation import Simulation
from harness.world.outside.setting import NAME_VARIABLE
from harness.world.ports import Program
from harness.world.sites import PROCESS_ACTIONS, SIGNAL_NUMBERS
from harness.world.values import NO_TIME, require_text


class ModelChild(Port):
    """A process that this actor started."""

    __slots__ = ("_child", "_waiting")
    kind = "processes"

    def __init__(self, simulation: Simulation, actor: Actor, child: Actor) -> None:
        super().__init__(simulation, actor)
        self._child = child
        self._waiting = f"wait for {child.name}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._child.pid

    async def write_line(self, line: str) -> None:
        """To its stdin."""
        if line.__class__ is not str:
            require_text(line)
        await self._reach(f"stdin of {self._child.name}")
        self._child.stdin.write(line, self._simulation.scheduler)

    async def close_stdin(self) -> None:
        """It reads the end from now on."""
        await self._reach(f"close stdin of {self._child.name}")
        self._child.stdin.close_writer(self._simulation.scheduler)

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From its stdout."""
        if timeout_seconds is not None and not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        await self._reach(f"stdout of {self._child.name}")
        return await self._child.stdout.read(self._simulation.scheduler, timeout_seconds)

    async def read_error(self, timeout_seconds: float | None = None) -> str | None:
        """From its stderr."""
        if timeout_seconds is not None and not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        await self._reach(f"stderr of {self._child.name}")
        return await self._child.stderr.read(self._simulation.scheduler, timeout_seconds)

    async def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Its exit code."""
        if timeout_seconds is not None and not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        await self._reach(self._waiting)
        child, until = self._child, None if timeout_seconds is None else self._simulation.now + timeout_seconds
        while child.alive:
            if not await Wait((child.ended,), until):
                break
        return child.exit_code

    async def signal(self, name: str) -> None:
        """Send it a signal."""
        if name not in SIGNAL_NUMBERS:
            await self._misused(f"no signal is called {name!r}")
        await self._reach(f"{name} to {self._child.name}")
        self._simulation.signal(self._child, name)


class ModelProcesses(Port):
    """Starting children, and being one."""

    __slots__ = ()
    kind = "processes"

    async def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], directory: str) -> ModelChild:
        """What the launcher map gives for this command; nothing else is ever executed."""
        simulation = self._simulation
        command = argv[0] if argv else ""
        fault = await self._reach(f"spawn {command}", PROCESS_ACTIONS)
        if fault is not None:
            raise failure(errno.ENOENT if fault.action == "enoent" else errno.EACCES, command)
        simulation.tree.enter(directory, self._actor.user)
        if command:
            require_spawnable(argv, env)
        program = await self._launched(argv, env, directory)
        if program is None:
            raise failure(errno.ENOENT, command)
        child = simulation.start(
            f"{self._actor.name}/{env.get(NAME_VARIABLE, command)}",
            program,
            argv,
            env=env,
            directory=directory,
            user=self._actor.user,
            parent=self._actor,
        )
        simulation.emit(self._actor.name, "spawn", {"argv": list(argv), "child": child.name})
        return ModelChild(simulation, self._actor, child)

    async def _launched(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Program | None:
        launcher = self._simulation.launcher
        if launcher is None or not argv or not argv[0]:
            return None
        try:
            return launcher(argv, env, directory)
        except OSError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception):
                raise
            await self._misused(f"the launcher raised {error!r}")

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From this actor's stdin."""
        if timeout_seconds is not None and not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        await self._reach("stdin")
        return await self._actor.stdin.read(self._simulation.scheduler, timeout_seconds)

    async def write_line(self, line: str) -> None:
        """To this actor's stdout."""
        if line.__class__ is not str:
            require_text(line)
        await self._reach("stdout")
        self._actor.stdout.write(line, self._simulation.scheduler)

    async def write_error(self, line: str) -> None:
        """To this actor's stderr."""
        if line.__class__ is not str:
            require_text(line)
        await self._reach("stderr")
        self._actor.stderr.write(line, self._simulation.scheduler)

    async def next_signal(self, timeout_seconds: float | None = None) -> str | None:
        """The next signal sent to this actor; from the first call on signals no longer end it."""
        if timeout_seconds is not None and not timeout_seconds > -inf:
            await self._misused(NO_TIME)
        self._actor.handles_signals = True
        await self._reach("signal")
        until = None if timeout_seconds is None else self._simulation.now + timeout_seconds
        while not self._actor.signals:
            if not await self._actor.signalled.wait(until) and not self._actor.signals:
                return None
        return self._actor.signals.pop(0)
