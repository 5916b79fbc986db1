"""Whoever steers a world of real processes: the other end of `control`, with the events, holds and faults of a run.

Each connection has a thread; what they share is guarded by one condition, which is notified of every event.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from harness.world.model.decisions import Calm
from harness.world.model.faults import Event, Fault, FaultPlan, Hold
from harness.world.outside.control import Launch, encode
from harness.world.outside.setting import Pace
from harness.world.sites import SIGNAL_NUMBERS

SIGNALS = {number: name for name, number in SIGNAL_NUMBERS.items()}
LOOPBACK = "127.0.0.1"


class Steered:
    """An actor that is a process. `pid` is known from its first message on."""

    def __init__(self, name: str, parent: Steered | None, variables: Mapping[str, str]) -> None:
        self.name, self.parent, self.variables = name, parent, dict(variables)
        self.alive = True
        self.exit_code: int | None = None
        self.pid = 0
        self.connections = 0
        self.last_signal = ""
        self.printed: dict[str, list[str]] = {"stdout": [], "stderr": []}


Launcher = Callable[[Steered, Sequence[str], Mapping[str, str], str], Launch | None]
"""From the actor that starts it, argv, environment and directory to what stands in; None: there is no such program."""


class Arrival(NamedTuple):
    """An actor at a switch point. `content` is what a request carries."""

    actor: Steered
    label: str
    content: str = ""


class Controller:
    """Steers the processes that are told of `path`, a socket that it serves while it is entered.

    `endpoints` gives for each origin the port of 127.0.0.1 that stands in for it; any other host is unknown.
    `normal` makes a text of a process into one of the world, for paths above all; it is applied to all that comes in.
    """

    def __init__(
        self,
        path: str,
        *,
        launcher: Launcher,
        endpoints: Mapping[str, int],
        faults: FaultPlan,
        holds: Sequence[Hold] = (),
        pace: Pace | None = None,
        normal: Callable[[str], str] = str,
    ) -> None:
        self.path, self.launcher, self.endpoints, self.faults = path, launcher, dict(endpoints), faults
        self.holds, self.pace, self.normal = list(holds), pace or Pace(), normal
        self.started_seconds = self.pace.now()
        self.events: list[Event] = []
        self.actors: list[Steered] = []
        self.changed = threading.Condition()
        self.unmet: list[Hold] = []
        self.closing = self.is_over_limit = False
        self._names: dict[str, int] = {}
        self._held: dict[int, int] = {}
        self._released: dict[int, int] = {}
        self._server = _Server(path, self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="controller", daemon=True)
        self._closed_port = socket.socket(socket.AF_INET, socket.SOCK_STREAM)

    def __enter__(self) -> Controller:
        self._closed_port.bind((LOOPBACK, 0))  # bound and never listened on: whoever connects is refused
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        for actor in self.actors:
            self.kill(actor)
        self._server.shutdown()
        self._thread.join()
        self.close()

    def close(self) -> None:
        """Hold no socket any more; for a controller that was never entered, too."""
        self._server.close()
        self._closed_port.close()

    @contextmanager
    def limited(self, real_seconds: float) -> Iterator[None]:
        """After so many real seconds every wait is over, and `is_over_limit` true."""

        def give_up() -> None:
            with self.changed:
                self.is_over_limit = self.closing = True
                self.changed.notify_all()

        timer = threading.Timer(real_seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def now(self) -> float:
        """The world's time."""
        return self.pace.now()

    @property
    def unreached(self) -> list[Hold]:
        """The holds at whose point nobody came."""
        return [hold for index, hold in enumerate(self.holds) if index not in self._held]

    # --- what happened

    def emit(self, actor: str, name: str, details: Mapping[str, Any]) -> None:
        """Write down something that happened."""
        with self.changed:
            self.events.append(Event(self.now, actor, name, dict(details)))
            self.changed.notify_all()

    def wait(self, is_over: Callable[[], bool], until_seconds: float | None) -> bool:
        """Until it is so (asked at every event); False when that moment of the world came first."""
        with self.changed:
            while not is_over():
                left = None if until_seconds is None else self.pace.real(until_seconds - self.now)
                if self.closing or (left is not None and left <= 0):
                    return False
                self.changed.wait(left)
            return True

    # --- actors

    def register(self, name: str, parent: Steered | None, variables: Mapping[str, str]) -> Steered:
        """A new actor; a name that is taken gets a number, as in a simulation."""
        with self.changed:
            count = self._names[name] = self._names.get(name, 0) + 1
            actor = Steered(name if count == 1 else f"{name}#{count}", parent, variables)
            self.actors.append(actor)
            return actor

    def named(self, name: str) -> Steered | None:
        """The actor of that name."""
        return next((actor for actor in self.actors if actor.name == name), None)

    def signal(self, actor: Steered, name: str) -> None:
        """Send a signal to an actor that runs."""
        with self.changed:
            if actor.alive and actor.pid:
                actor.last_signal = name
                with suppress(ProcessLookupError):
                    os.kill(actor.pid, SIGNAL_NUMBERS[name])

    def kill(self, actor: Steered) -> None:
        """End an actor at once."""
        self.signal(actor, "SIGKILL")

    def ended(self, actor: Steered, exit_code: int, *, is_killed: bool = False) -> None:
        """An actor has ended. What is known first counts; a program may end by itself as if by a signal."""
        with self.changed:
            if not actor.alive:
                return
            actor.alive, actor.exit_code = False, exit_code
            if is_killed and -exit_code in SIGNALS:
                self.emit(actor.name, "killed", {"signal": SIGNALS[-exit_code]})
            self.emit(actor.name, "ended", {"exit_code": exit_code})

    def _reaped(self, child: str, exit_code: int) -> None:
        """Whoever has said something is known to have ended by its connections."""
        with self.changed:
            actor = self.named(child)
            if actor is not None and not actor.pid:
                self.ended(actor, exit_code, is_killed=True)

    # --- what processes ask

    def answer(self, message: Mapping[str, Any], pid: int) -> Mapping[str, Any] | None:
        """The answer to one message; None: its actor is dead."""
        actor = self.named(message["actor"])
        if actor is None:
            actor = self.register(message["actor"], None, {})
        actor.pid = actor.pid or pid
        match message["do"]:
            case "event":
                self.emit(actor.name, message["event"], self._normal(message["details"]))
            case "printed":
                actor.printed[message["stream"]] += self.normal(message["text"]).split("\n")
            case "ended":
                self.ended(actor, message["exit_code"])
            case "reaped":
                self._reaped(message["child"], message["exit_code"])
            case "point":
                return self._point(actor, message)
            case "launch":
                return self._launch(actor, message)
            case "resolve":
                port = self.endpoints.get(message["origin"])
                return {} if port is None else {"host": LOOPBACK, "port": port}
        return {}

    def _normal(self, value: Any) -> Any:
        """A value with every text in it made one of the world."""
        if isinstance(value, str):
            return self.normal(value)
        if isinstance(value, Mapping):
            return {key: self._normal(item) for key, item in value.items()}
        return [self._normal(item) for item in value] if isinstance(value, list) else value

    def _launch(self, actor: Steered, message: Mapping[str, Any]) -> Mapping[str, Any]:
        argv, env = message["argv"], message["env"]
        with self.changed:
            found = self.launcher(actor, self._normal(argv), env, self.normal(message["directory"])) if argv else None
            if found is None:
                return {"errno": errno.ENOENT}
            child = self.register(found.name, actor, env)
            return found._replace(name=child.name)._asdict()

    def _point(self, actor: Steered, message: Mapping[str, Any]) -> Mapping[str, Any] | None:
        label = self.normal(message["label"])
        self._note_signal(label)
        self._keep(Arrival(actor, label, self.normal(message["content"])))
        fault = self._strike(actor, label, message)
        if fault is None:
            return {}
        self.emit(actor.name, "fault", {"action": fault.action, "at": label})
        if fault.action == "kill":
            self.kill(actor)
            return None
        answer = fault.answer
        given = answer and {
            "status": answer.status,
            "headers": dict(answer.headers),
            "body": answer.body.decode(errors="replace"),
        }
        told = {"action": fault.action, "seconds": fault.seconds, "answer": given}
        return {"fault": {**told, "port": self._closed_port.getsockname()[1]}}

    def _strike(self, actor: Steered, label: str, message: Mapping[str, Any]) -> Fault | None:
        with self.changed:
            return self.faults.strike(
                message["port"],
                actor.name,
                label,
                self.now - self.started_seconds,
                Calm(),
                frozenset(message["actions"]),
                self.normal(message["content"]),
            )

    def _note_signal(self, label: str) -> None:
        """A process sends a signal to another: that may be what ends it."""
        name, separator, child = label.partition(" to ")
        if separator and name in SIGNAL_NUMBERS:
            actor = self.named(child)
            if actor is not None and is_running(actor.pid):
                actor.last_signal = name

    # --- holds

    def arrived(self, arrival: Arrival) -> None:
        """An actor has come to a switch point; for whoever notes them."""

    def held(self, arrival: Arrival, hold: Hold, waited_seconds: float | None, *, is_met: bool) -> None:
        """A hold keeps an actor (`waited_seconds` None) or lets it go; for whoever notes them."""

    def _keep(self, arrival: Arrival) -> None:
        self.arrived(arrival)
        for index, hold in enumerate(self.holds):
            with self.changed:
                taken = self._held.get(index, 0)
                if taken >= hold.times or not hold.matches(arrival.actor.name, arrival.label):
                    continue
                self._held[index] = taken + 1
                self._hold(index, hold, arrival)

    def _hold(self, index: int, hold: Hold, arrival: Arrival) -> None:
        """Keep whoever asks (its thread waits here) until what the hold waits for has happened."""
        first = len(self.events) if hold.after_arrival else self._released.get(index, 0)
        came = self.now
        self.held(arrival, hold, None, is_met=False)
        is_met = self.wait(lambda: any(map(hold.until, self.events[first:])), came + hold.limit_seconds)
        if not is_met:
            self.unmet.append(hold)
        self._released[index] = len(self.events)
        self.held(arrival, hold, self.now - came, is_met=is_met)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The socket; one thread for each connection, none of which outlives it."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, path: str, controller: Controller) -> None:
        super().__init__(path, _Connection)
        self.controller = controller
        self.open: set[socket.socket] = set()

    def close(self) -> None:
        """Close the socket, every connection of it, and remove its file."""
        self.server_close()
        for connection in tuple(self.open):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + 2.0
        while self.open and time.monotonic() < deadline:
            time.sleep(0.002)
        with suppress(FileNotFoundError):
            os.unlink(self.controller.path)  # noqa: PTH108 - the driver of the real file system


class _Connection(socketserver.StreamRequestHandler):
    """One connection of a process: asked and answered line by line."""

    server: _Server

    def handle(self) -> None:
        """Until the process closes it; then, if it was the last of its actor, the actor has ended."""
        controller, connection = self.server.controller, self.request
        self.server.open.add(connection)
        pid = peer_pid(connection)
        actor: Steered | None = None
        try:
            while line := self.rfile.readline():
                message = json.loads(line)
                answer = controller.answer(message, pid)
                if actor is None:
                    actor = controller.named(message["actor"])
                    if actor is not None:
                        with controller.changed:
                            actor.connections += 1
                if answer is None:
                    self.rfile.readline()  # comes when the operating system closes what a dead process held
                    break
                self.wfile.write(encode(answer))
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.server.open.discard(connection)
            if actor is not None:
                self._left(controller, actor)

    def _left(self, controller: Controller, actor: Steered) -> None:
        with controller.changed:
            actor.connections -= 1
            if not actor.connections and actor.alive and not controller.closing:
                controller.ended(actor, -SIGNAL_NUMBERS[actor.last_signal or "SIGKILL"], is_killed=True)


def is_running(pid: int) -> bool:
    """Whether a process has not ended yet, whether or not its end was taken note of; unknown ones run."""
    try:
        if pid:
            os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return state != "Z"


def peer_pid(connection: socket.socket) -> int:
    """The process at the other end of a Unix socket; 0 where the system does not tell."""
    if sys.platform == "darwin":
        return int(struct.unpack("i", connection.getsockopt(0, 2, 4))[0])
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[0])
    return 0


__all__ = ["Arrival", "Controller", "Launcher", "Steered", "peer_pid"]
