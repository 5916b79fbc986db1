"""Children of this process, and this process as a child."""

from __future__ import annotations

import errno
import os
import select
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from queue import Empty

from harness.world.blocking.pipes import LineReader, LineWriter, is_ready
from harness.world.blocking.port import Port
from harness.world.blocking.process import OWN_STDERR, OWN_STDOUT, Process
from harness.world.blocking.spawning import Started, inside, start
from harness.world.errors import failure, require_spawnable
from harness.world.outside.control import Launch, launch_message, launched, reaped_message
from harness.world.outside.setting import NAME_VARIABLE, without_own
from harness.world.sites import PROCESS_ACTIONS, SIGNAL_NUMBERS
from harness.world.values import require_text

WAIT_INTERVAL_SECONDS = 0.005
"""How often, in real seconds, a child is looked after where the system has no descriptor for it."""


class BlockingChild(Port):
    """A process that this one started."""

    __slots__ = ("_exit_code", "_handle", "_name", "_stderr", "_stdin", "_stdout", "pid")
    kind = "processes"

    def __init__(self, process: Process, name: str, started: Started) -> None:
        super().__init__(process)
        self._name, self.pid = name, started.pid
        self._stdin = LineWriter(process.baton, started.stdin)
        self._stdout = LineReader(process.baton, started.stdout)
        self._stderr = LineReader(process.baton, started.stderr)
        self._exit_code: int | None = None
        self._handle = _handle(started.pid)

    async def write_line(self, line: str) -> None:
        """To its stdin."""
        require_text(line)
        self._reach(f"stdin of {self._name}")
        self._stdin.write(line)

    async def close_stdin(self) -> None:
        """It reads the end from now on."""
        self._reach(f"close stdin of {self._name}")
        self._stdin.close()

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From its stdout."""
        self._process.require_times(timeout_seconds)
        self._reach(f"stdout of {self._name}")
        return self._stdout.read(self._process.deadline(timeout_seconds))

    async def read_error(self, timeout_seconds: float | None = None) -> str | None:
        """From its stderr."""
        self._process.require_times(timeout_seconds)
        self._reach(f"stderr of {self._name}")
        return self._stderr.read(self._process.deadline(timeout_seconds))

    async def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Its exit code."""
        self._process.require_times(timeout_seconds)
        self._reach(f"wait for {self._name}")
        deadline = self._process.deadline(timeout_seconds)
        while self._look() is None and not deadline.over:
            with self._process.baton.put_down():
                if self._handle >= 0:
                    is_ready(self._handle, select.POLLIN, deadline)
                else:
                    left = deadline.left
                    time.sleep(WAIT_INTERVAL_SECONDS if left is None else min(left, WAIT_INTERVAL_SECONDS))
        return self._look()

    def _look(self) -> int | None:
        """Its exit code, if it has ended. It is reaped here and nowhere else, so that its id is its own until then."""
        if self._exit_code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._exit_code = os.waitstatus_to_exitcode(status)
                if self._process.control is not None:
                    self._process.ask(reaped_message(self._process.name, self._name, self._exit_code), meanwhile=False)
        return self._exit_code

    async def signal(self, name: str) -> None:
        """Send it a signal."""
        if name not in SIGNAL_NUMBERS:
            self._process.halt(f"no signal is called {name!r}")
        self._reach(f"{name} to {self._name}")
        if self._look() is None:
            os.kill(self.pid, SIGNAL_NUMBERS[name])


class BlockingProcesses(Port):
    """Starting children, and being one."""

    __slots__ = ("_names", "_stderr", "_stdin", "_stdout")
    kind = "processes"

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self._names: dict[str, int] = {}
        self._stdin = LineReader(process.baton, 0)
        self._stdout, self._stderr = LineWriter(process.baton, 1), LineWriter(process.baton, 2)

    async def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], directory: str) -> BlockingChild:
        """What whoever steers gives for this command; where nobody steers, the program itself."""
        process = self._process
        command = argv[0] if argv else ""
        fault = self._reach(f"spawn {command}", PROCESS_ACTIONS)
        if fault is not None:
            raise failure(errno.ENOENT if fault.action == "enoent" else errno.EACCES, command)
        place = process.absolute(directory)
        with inside(place):
            pass
        if not command:
            raise failure(errno.ENOENT, command)
        require_spawnable(argv, env)
        launch = self._launched(argv, env, place)
        variables = {**without_own(env), **launch.env, **process.setting.told(launch.name, process.absolute)}
        try:
            started = start(launch.argv, variables, place)
        except OSError as error:
            raise failure(error.errno or errno.EIO, command) from None
        process.emit("spawn", {"argv": list(argv), "child": launch.name})
        return BlockingChild(process, launch.name, started)

    def _launched(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Launch:
        process = self._process
        if process.control is not None:
            return launched(process.ask(launch_message(process.name, argv, env, directory)), argv[0])
        name = f"{process.name}/{env.get(NAME_VARIABLE, argv[0])}"
        count = self._names[name] = self._names.get(name, 0) + 1
        return Launch(tuple(argv), name if count == 1 else f"{name}#{count}", {})

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From this process's stdin."""
        self._process.require_times(timeout_seconds)
        self._reach("stdin")
        return self._stdin.read(self._process.deadline(timeout_seconds))

    async def write_line(self, line: str) -> None:
        """To this process's stdout."""
        require_text(line)
        self._reach("stdout")
        self._process.note_printed("stdout", line)
        self._print(self._stdout, OWN_STDOUT, line)

    async def write_error(self, line: str) -> None:
        """To this process's stderr."""
        require_text(line)
        self._reach("stderr")
        self._process.note_printed("stderr", line)
        self._print(self._stderr, OWN_STDERR, line)

    def _print(self, writer: LineWriter, name: str, line: str) -> None:
        try:
            writer.write(line)
        except OSError as error:
            error.filename = name  # by which it is told from all others when the program lets it through
            raise

    async def next_signal(self, timeout_seconds: float | None = None) -> str | None:
        """The next signal sent to this process; from the first call on signals no longer end it."""
        self._process.require_times(timeout_seconds)
        signals = self._process.signals()
        self._reach("signal")
        deadline = self._process.deadline(timeout_seconds)
        with suppress(Empty):
            return signals.get_nowait()
        with self._process.baton.put_down(), suppress(Empty):
            return signals.get(timeout=deadline.left)
        return None


def _handle(pid: int) -> int:
    """A descriptor that can be read when the process has ended; -1 where the system has none."""
    if not hasattr(os, "pidfd_open"):
        return -1
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1
