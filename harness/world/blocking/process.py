"""This process as an actor: its baton, who steers it, its signals and its end."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Coroutine, Iterable, Mapping
from contextlib import suppress
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NoReturn

from harness.world.blocking.baton import Baton, Deadline
from harness.world.errors import Unsteered, WorldFault
from harness.world.outside.setting import Setting
from harness.world.suspended import innermost, where
from harness.world.values import NO_DETAIL, NO_TIME, is_plain, is_time

if TYPE_CHECKING:
    from queue import SimpleQueue

    from harness.world.blocking.control_client import ControlClient
    from harness.world.outside.control import Struck

LISTEN, ENDED = 0xFE, 0xFF
"""What the main thread is told, besides the numbers of signals."""
OWN_STDOUT, OWN_STDERR = "<stdout>", "<stderr>"
"""What the error of a stream of this process's own names."""
LONGEST_SLEEP_SECONDS = 1e9
"""Real ones, of which the system's call can take so many; nobody will notice that for ever is no longer."""
SLEEP_TOLERANCE_SECONDS = 0.01
"""By how much the system's clock may lag behind a sleep that is over; more means that somebody has set it."""
SIGNAL_NAMES: Mapping[int, str] = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}


class Process:
    """What all ports of this process share.

    The program runs in a thread of its own, so that the main thread is always free for signals. Until the program asks
    for them, SIGINT and SIGTERM have their default action.
    """

    def __init__(self, setting: Setting) -> None:
        self.setting, self.pace, self.name = setting, setting.pace, setting.name
        self.directory = os.getcwd()  # noqa: PTH109 - pathlib would be half of the time that a start takes
        self.pid = os.getpid()
        self.baton = Baton()
        self.exit_code = 1
        self.control: ControlClient | None = None
        if setting.control:
            from harness.world.blocking.control_client import ControlClient

            self.control = ControlClient(self.absolute(setting.control))
            self.control.ask({"do": "started", "actor": self.name})
        self._events = self.absolute(setting.events) if setting.events else ""
        self._signals: SimpleQueue[str] | None = None
        self._ready = threading.Event()
        self._told, self._teller = os.pipe()
        os.set_blocking(self._teller, False)

    def absolute(self, path: str) -> str:
        """A path as it is seen from where the process started."""
        return path if path.startswith("/") else f"{self.directory.rstrip('/')}/{path}"

    def require_times(self, *seconds: float | None) -> None:
        """Nobody can wait for a time that is none."""
        if not all(map(is_time, seconds)):
            self.halt(f"{self.name} {NO_TIME}")

    def deadline(self, seconds: float | None) -> Deadline:
        """The end of a wait that takes so many seconds of the world."""
        self.require_times(seconds)
        return Deadline(None if seconds is None else self.pace.real(seconds))

    def sleep(self, seconds: float) -> None:
        """Others run until that much later, and no earlier."""
        self.require_times(seconds)
        until = self.pace.now() + max(seconds, 0.0)
        with self.baton.put_down():
            time.sleep(min(max(self.pace.real(seconds), 0.0), LONGEST_SLEEP_SECONDS))
            while 0 < (left := self.pace.real(until - self.pace.now())) < SLEEP_TOLERANCE_SECONDS:
                time.sleep(left)

    # --- what happens

    def reach(self, kind: str, label: str, actions: Collection[str], content: bytes | None = None) -> Struck | None:
        """A switch point: others run, and whoever steers keeps this task here or tells what strikes it."""
        if self.control is None:
            self.baton.share()
            return None
        from harness.world.outside.control import point_message, struck

        text = "" if content is None else content.decode(errors="replace")
        return struck(self.ask(point_message(self.name, kind, label, actions, text)))

    def ask(self, message: Mapping[str, Any], *, meanwhile: bool = True) -> Mapping[str, Any]:
        """Ask whoever steers; others run meanwhile."""
        if self.control is None:
            raise WorldFault("nobody steers this world")
        try:
            if not meanwhile:
                return self.control.ask(message)
            with self.baton.put_down():
                return self.control.ask(message)
        except Unsteered as gone:
            self._stop([f"{self.name}: {gone}\n"])

    def emit(self, event: str, details: Mapping[str, Any]) -> None:
        """Tell that something happened. Nobody else runs meanwhile."""
        if not is_plain(details.values()):
            self.halt(f"{self.name}: {NO_DETAIL}, unlike those of {event}: {details!r}")
        if self.control is not None:
            from harness.world.outside.control import event_message

            self.ask(event_message(self.name, event, details), meanwhile=False)
            return
        try:
            self._write_event(event, details)
        except OSError as error:
            self.halt(f"events cannot be written to {self._events}: {error.strerror}")

    def _write_event(self, event: str, details: Mapping[str, Any]) -> None:
        if self._events:
            from harness.world.blocking.control_client import append_event

            told = {"at_seconds": self.pace.now(), "actor": self.name, "event": event, "details": dict(details)}
            append_event(self._events, told)

    def note_printed(self, stream: str, text: str) -> None:
        """Whoever steers keeps what was printed, read or not."""
        if self.control is not None:
            self.ask(_printed(self.name, stream, text), meanwhile=False)

    # --- the program

    def drive(self, coroutine: Coroutine[Any, Any, Any], name: str) -> Any:
        """Run a coroutine to its end, in this thread. It may await ports and nothing else."""
        try:
            coroutine.send(None)
        except StopIteration as stop:
            return stop.value
        return self.halt(f"{name} awaits {innermost(coroutine)}, which is no port's")

    def halt(self, message: str) -> NoReturn:
        """The code over the world broke its rules, or its driver did: the run ends, whatever the subject catches."""
        import traceback

        self._stop([*traceback.format_stack()[:-1], f"{WorldFault.__module__}.WorldFault: {message}\n"])

    def halt_with(self, error: BaseException) -> NoReturn:
        """What a task raised is nobody's outcome: the run ends."""
        import traceback

        self._stop(traceback.format_exception(error))

    def _stop(self, lines: Iterable[str]) -> NoReturn:
        self.complain(lines)
        self.end(1)
        never = threading.Lock()  # with the baton in hand, so that nobody else goes on either
        while True:
            never.acquire()

    def complain(self, lines: Iterable[str]) -> None:
        """Tell on stderr, if anybody still listens."""
        text = "".join(lines)
        with suppress(WorldFault):
            if self.control is not None:
                self.control.ask(_printed(self.name, "stderr", text.rstrip("\n")))
        with suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def end(self, exit_code: int) -> None:
        """The program is over; who calls keeps the baton for good."""
        self.exit_code = exit_code
        if self.control is not None:
            with suppress(WorldFault):
                self.control.ask({"do": "ended", "actor": self.name, "exit_code": exit_code})
        else:
            with suppress(OSError):
                self._write_event("ended", {"exit_code": exit_code})
        os.write(self._teller, bytes([ENDED]))

    # --- signals

    def serve(self) -> None:
        """In the thread that called `run`: take signals until the program is over."""
        is_main = threading.current_thread() is threading.main_thread()
        before = {number: signal.signal(number, signal.SIG_DFL) for number in SIGNAL_NAMES} if is_main else {}
        self._ready.set()
        wakeup = signal.set_wakeup_fd(self._teller, warn_on_full_buffer=False) if is_main else -1
        try:
            while self._take(os.read(self._told, 64), is_main=is_main):
                pass
        finally:
            if is_main:
                signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
            os.close(self._told)
            os.close(self._teller)

    def _take(self, told: bytes, *, is_main: bool) -> bool:
        for byte in told:
            if byte == ENDED:
                return False
            if byte == LISTEN:
                for number in SIGNAL_NAMES if is_main else ():
                    signal.signal(number, _noted)
                self._ready.set()
            elif byte in SIGNAL_NAMES and self._signals is not None:
                self._signals.put(SIGNAL_NAMES[byte])
        return True

    def signals(self) -> SimpleQueue[str]:
        """The names of signals that were sent; from the first call on they no longer end the process."""
        if self._signals is None:
            from queue import SimpleQueue

            self._signals = SimpleQueue()
            self._ready.clear()
            os.write(self._teller, bytes([LISTEN]))
            self._ready.wait()
        return self._signals

    def wait_until_signals_have_their_default(self) -> None:
        """Nothing of the program runs before."""
        self._ready.wait()


def _printed(actor: str, stream: str, text: str) -> dict[str, Any]:
    return {"do": "printed", "actor": actor, "stream": stream, "text": text}


def _noted(_number: int, _frame: object) -> None:
    """A signal's number is read from the pipe that the interpreter writes it to."""


def require_coroutine(work: object, name: str) -> None:
    """Raise WorldFault unless it is a coroutine."""
    if not isinstance(work, CoroutineType):
        raise WorldFault(f"{name} is no coroutine: {where(work)}")
