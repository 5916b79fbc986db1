"""The process's end of `harness.world.outside.control`: asking whoever steers the world, or writing to a file."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from typing import Any

from harness.world.errors import Unsteered
from harness.world.outside.control import encode


class ControlClient:
    """Connections to the controller. A point may be answered late, so each question that is open has one of its own.

    None is closed while the process lives: that the last one closes is how its death is known.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[socket.socket] = []

    def ask(self, message: Mapping[str, Any]) -> Mapping[str, Any]:
        """The answer; raises Unsteered when there is nobody any more who could give one."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connected()
        try:
            connection.sendall(encode(message))
            line = self._line(connection)
        except OSError as error:
            raise Unsteered("whoever steers has gone") from error
        self._idle.append(connection)
        answer: Mapping[str, Any] = json.loads(line)
        return answer

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._path)
        except OSError as error:
            connection.close()
            raise Unsteered(f"nobody steers the world at {self._path}: {error.strerror}") from error
        return connection

    def _line(self, connection: socket.socket) -> bytes:
        """An answer is the only thing that is on its way, so nothing comes behind its line."""
        line = b""
        while not line.endswith(b"\n"):
            part = connection.recv(65_536)
            if not part:
                raise Unsteered("whoever steers has gone")
            line += part
        return line


def append_event(path: str, told: Mapping[str, Any]) -> None:
    """One line in one write, so that those of several processes never mix. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, encode(told))
    finally:
        os.close(descriptor)
