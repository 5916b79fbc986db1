"""Children of one actor, and the actor as a child."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress

from harness.world.errors import Unsteered, failure, require_spawnable
from harness.world.live.children import Running, started
from harness.world.live.driver import Driver, LivePort
from harness.world.live.pipes import LineReader, LineWriter
from harness.world.live.signals import OwnSignals
from harness.world.outside.control import Launch, launch_message, launched, reaped_message
from harness.world.outside.setting import NAME_VARIABLE, without_own
from harness.world.sites import PROCESS_ACTIONS, SIGNAL_NUMBERS
from harness.world.values import require_text

STDIN, STDOUT, STDERR = 0, 1, 2


class LiveChild(LivePort):
    """A process that this actor started."""

    __slots__ = ("_name", "_running")
    kind = "processes"

    def __init__(self, driver: Driver, name: str, running: Running) -> None:
        super().__init__(driver)
        self._name, self._running = name, running

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._running.process.pid

    async def write_line(self, line: str) -> None:
        """To its stdin."""
        require_text(line)
        await self._reach(f"stdin of {self._name}")
        await self._running.stdin.write(line)

    async def close_stdin(self) -> None:
        """It reads the end from now on."""
        await self._reach(f"close stdin of {self._name}")
        self._running.close_stdin()

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From its stdout."""
        self._require_time(timeout_seconds)
        await self._reach(f"stdout of {self._name}")
        return await self._running.stdout.read(lambda: self._driver.patience(timeout_seconds))

    async def read_error(self, timeout_seconds: float | None = None) -> str | None:
        """From its stderr."""
        self._require_time(timeout_seconds)
        await self._reach(f"stderr of {self._name}")
        return await self._running.stderr.read(lambda: self._driver.patience(timeout_seconds))

    async def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Its exit code."""
        self._require_time(timeout_seconds)
        await self._reach(f"wait for {self._name}")
        process = self._running.process
        if process.poll() is None:
            with self._driver.patience(timeout_seconds):
                await self._running.ended.wait()
        return process.poll()

    async def signal(self, name: str) -> None:
        """Send it a signal, to it alone and not to what it has started."""
        if name not in SIGNAL_NUMBERS:
            raise self._driver.misused(f"no signal is called {name!r}")
        await self._reach(f"{name} to {self._name}")
        self._running.process.send_signal(SIGNAL_NUMBERS[name])


class LiveProcesses(LivePort):
    """Starting children, and being one."""

    __slots__ = ("_names", "_signals", "_stderr", "_stdin", "_stdout")
    kind = "processes"

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._names: dict[str, int] = {}
        self._stdin, self._stdout, self._stderr = LineReader(STDIN), LineWriter(STDOUT), LineWriter(STDERR)
        self._signals = OwnSignals(driver)

    async def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], directory: str) -> LiveChild:
        """Start a program; where somebody steers, what stands in for it and nothing else."""
        driver, command = self._driver, argv[0] if argv else ""
        fault = await self._reach(f"spawn {command}", PROCESS_ACTIONS)
        if fault is not None:
            raise failure(errno.ENOENT if fault.action == "enoent" else errno.EACCES, command)
        where = driver.absolute(directory)
        require_enterable(where)
        if not command:
            raise failure(errno.ENOENT, command)
        require_spawnable(argv, env)
        launch = await self._launch(argv, env, directory)
        told = {**without_own(env), **launch.env, **driver.setting.told(launch.name, driver.absolute)}
        try:
            running = started(driver, launch.argv, told, where)
        except ValueError as error:  # a text that no program can be given, as one with a null byte
            raise failure(errno.EINVAL, command) from error
        driver.emit("spawn", {"argv": list(argv), "child": launch.name})
        driver.tasks.start_soon(self._tell_end, launch.name, running)
        return LiveChild(driver, launch.name, running)

    async def _launch(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Launch:
        driver = self._driver
        if driver.steering is not None:
            return launched(await driver.ask(launch_message(driver.name, argv, env, directory)), argv[0])
        name = f"{driver.name}/{env.get(NAME_VARIABLE, argv[0])}"
        count = self._names[name] = self._names.get(name, 0) + 1
        return Launch(tuple(argv), name if count == 1 else f"{name}#{count}", {})

    async def _tell_end(self, name: str, running: Running) -> None:
        """Once a child has ended: whoever steers may never have heard of it."""
        driver, process = self._driver, running.process
        await running.ended.wait()
        if driver.steering is not None and driver.alive and process.returncode is not None:
            with suppress(Unsteered):  # nobody is there to be told: whoever asks something finds that out
                driver.steering.tell(reaped_message(driver.name, name, process.returncode))

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From this process's stdin."""
        self._require_time(timeout_seconds)
        await self._reach("stdin")
        return await self._stdin.read(lambda: self._driver.patience(timeout_seconds))

    async def write_line(self, line: str) -> None:
        """To this process's stdout."""
        require_text(line)
        await self._reach("stdout")
        self._driver.printed("stdout", line)
        await self._stdout.write(line)

    async def write_error(self, line: str) -> None:
        """To this process's stderr."""
        require_text(line)
        await self._reach("stderr")
        self._driver.printed("stderr", line)
        await self._stderr.write(line)

    async def next_signal(self, timeout_seconds: float | None = None) -> str | None:
        """The next signal sent to this process; from the first call on signals no longer end it."""
        self._require_time(timeout_seconds)
        self._driver.require_life()
        await self._signals.listen()
        await self._reach("signal")
        return await self._signals.next(timeout_seconds)


def require_enterable(directory: str) -> None:
    """Raise OSError unless a process may make this its current directory."""
    try:
        mode = os.stat(directory).st_mode  # noqa: PTH116 - paths are texts here
    except ValueError:  # what no path can hold is none that is there
        raise failure(errno.ENOENT, directory) from None
    if not stat.S_ISDIR(mode):
        raise failure(errno.ENOTDIR, directory)
    if not os.access(directory, os.X_OK):
        raise failure(errno.EACCES, directory)
