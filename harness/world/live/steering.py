"""Asking whoever steers the world, without keeping anybody waiting who has asked nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Any

import anyio

from harness.world.errors import Unsteered, WorldFault
from harness.world.outside import control

_CHUNK = 65_536


class Connection:
    """One connection to the controller; an answer comes for every message, in order."""

    __slots__ = ("_incoming", "_outgoing", "_socket")

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._incoming, self._outgoing = bytearray(), bytearray()
        try:
            self._socket.connect(path)
        except OSError as error:
            self._socket.close()
            raise WorldFault(f"nobody steers at {path}: {error}") from error
        self._socket.settimeout(0)

    def post(self, message: bytes) -> None:
        """Send at once what the socket takes; the rest goes when the answer is waited for."""
        self._outgoing += message
        self._push()

    async def answer(self) -> Mapping[str, Any]:
        """The next answer."""
        while b"\n" not in self._incoming:
            if self._outgoing:
                await anyio.wait_writable(self._socket)
                self._push()
            else:
                await anyio.wait_readable(self._socket)
                self._pull()
        line, _, rest = bytes(self._incoming).partition(b"\n")
        self._incoming = bytearray(rest)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """Ask no more."""
        self._socket.close()

    def _push(self) -> None:
        try:
            while self._outgoing:
                del self._outgoing[: self._socket.send(self._outgoing)]
        except BlockingIOError:
            return
        except OSError as error:
            raise _gone() from error

    def _pull(self) -> None:
        try:
            chunk = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as error:
            raise _gone() from error
        if not chunk:
            raise _gone()
        self._incoming += chunk


class Steering:
    """All connections of one actor: one for its events, and one for each of its tasks that asks at the same time.

    None is closed while the actor lives: that the last one closes is how the death of a process is known.
    """

    def __init__(self, path: str, actor: str) -> None:
        self._path, self._actor = path, actor
        self._opened: list[Connection] = []
        self._idle: list[Connection] = []
        self._events = self._connected()
        self._unanswered = 0
        self._turn = anyio.Lock()
        self.tell({"do": "started", "actor": actor})

    def _connected(self) -> Connection:
        connection = Connection(self._path)
        self._opened.append(connection)
        return connection

    def tell(self, message: Mapping[str, Any]) -> None:
        """Something happened. It is sent now, and known to have arrived before the next question is asked."""
        self._unanswered += 1
        self._events.post(control.encode(message))

    async def settle(self) -> None:
        """Until everything that was told has arrived."""
        if not self._unanswered:
            return
        async with self._turn:
            while self._unanswered:
                await self._events.answer()
                self._unanswered -= 1

    async def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer, however long it takes."""
        await self.settle()
        connection = self._idle.pop() if self._idle else self._connected()
        connection.post(control.encode(message))
        answer = await connection.answer()
        self._idle.append(connection)
        return answer

    async def finish(self, exit_code: int) -> None:
        """The actor has ended."""
        await self.ask({"do": "ended", "actor": self._actor, "exit_code": exit_code})

    def print(self, stream: str, text: str) -> None:
        """The actor has printed lines on its stdout or stderr."""
        self.tell({"do": "printed", "actor": self._actor, "stream": stream, "text": text})

    def close(self) -> None:
        """Ask no more."""
        for connection in self._opened:
            connection.close()


def _gone() -> Unsteered:
    return Unsteered("whoever steers has gone")
