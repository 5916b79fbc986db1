"""Small programs that run as processes over the blocking driver, and a tiny controller that steers them."""

from __future__ import annotations

import ast
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).parents[2]
PATIENCE_SECONDS = 30.0
SCRIPT = """\
import sys
sys.path.insert(0, {repository!r})
import os
from harness.world import Ambiguous, NotSent, ReadTimeout, Request, WorldFault
from harness.world.blocking import main

ME = [sys.executable, "-IS", __file__]

def say(*values):
    os.write(1, repr(values if len(values) != 1 else values[0]).encode() + b"\\n")

async def errno_of(call):
    try:
        await call
    except OSError as error:
        return error.errno
    return 0

async def program(world, argv):
{body}

main(program, sys.argv)
"""


class Ended(NamedTuple):
    """How a program ended, and what it said, as values."""

    code: int
    said: list[Any]
    error: str


def script(tmp_path: Path, body: str, name: str = "program.py") -> list[str]:
    """A program whose body is this; the argv that starts it."""
    path = tmp_path / name
    text = textwrap.indent(textwrap.dedent(body).strip() or "return 0", "    ")
    path.write_text(SCRIPT.format(repository=str(REPOSITORY), body=text), encoding="utf-8")
    return [sys.executable, "-IS", str(path)]


@contextmanager
def started(argv: Sequence[str], **options: Any) -> Iterator[Any]:
    """A process in a group of its own, all of which is ended at the end."""
    pipes = {name: options.pop(name, subprocess.PIPE) for name in ("stdin", "stdout", "stderr")}
    process = subprocess.Popen(argv, **pipes, start_new_session=True, **options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        process.wait(PATIENCE_SECONDS)


def ran(
    tmp_path: Path,
    body: str,
    *argv: str,
    env: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    umask: int = -1,
    directory: Path | None = None,
) -> Ended:
    """Run a program to its end."""
    command = [*script(tmp_path, body), *argv]
    with started(command, env={**(env or {})}, cwd=directory or tmp_path, umask=umask) as process:
        out, error = process.communicate(stdin, PATIENCE_SECONDS)
    return Ended(process.returncode, [ast.literal_eval(line) for line in out.decode().splitlines()], error.decode())


class Controller:
    """Answers what processes ask, as `answer` says (None: never), and keeps what they asked."""

    def __init__(self, path: Path, answer: Callable[[Mapping[str, Any]], Mapping[str, Any] | None]) -> None:
        self.path, self.answer = path, answer
        self.asked: list[dict[str, Any]] = []
        self.changed = threading.Condition()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Controller:
        self._socket.bind(str(self.path))
        self._socket.listen(64)
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Answer no more."""
        for each in (self._socket, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)
        for each in (self._socket, *self._open):
            each.close()
        self.path.unlink(missing_ok=True)

    def variables(self, name: str = "me") -> dict[str, str]:
        """What a process is told that this controller steers."""
        return {"WORLD_CONTROL": str(self.path), "WORLD_ACTOR_NAME": name}

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._open.append(connection)
                thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as lines, suppress(OSError):
            for line in lines:
                message = json.loads(line)
                with self.changed:
                    self.asked.append(message)
                    self.changed.notify_all()
                answer = self.answer(message)
                if answer is not None:
                    connection.sendall(json.dumps(answer).encode() + b"\n")

    def wait_for(self, **parts: Any) -> dict[str, Any]:
        """The first message that holds these, when it has come."""
        with self.changed:
            while True:
                for message in self.asked:
                    if parts.items() <= message.items():
                        return message
                assert self.changed.wait(PATIENCE_SECONDS), f"nobody asked {parts}"

    def labels(self) -> list[str]:
        """Every switch point, in the order in which they were asked."""
        return [message["label"] for message in self.asked if message["do"] == "point"]

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """Every event with its details."""
        return [(message["event"], message["details"]) for message in self.asked if message["do"] == "event"]


def striking(
    faults: Mapping[str, Any], **others: Mapping[str, Any]
) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Answers that strike at the points of these labels (once each), and answer other questions by what they ask."""
    left = dict(faults)

    def answer(message: Mapping[str, Any]) -> Mapping[str, Any]:
        if message["do"] != "point":
            return others.get(message["do"], {})
        fault = left.pop(message["label"], None)
        if fault is None:
            return {}
        told = {"action": fault} if isinstance(fault, str) else fault
        assert told["action"] in message["actions"], "a fault that cannot have its effect here"
        return {"fault": told}

    return answer
