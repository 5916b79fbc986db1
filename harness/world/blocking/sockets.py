"""Connections whose every wait has an end, and lets the other tasks run."""

from __future__ import annotations

import errno
import os
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from harness.world.blocking.baton import Baton, Deadline
from harness.world.blocking.pipes import is_ready
from harness.world.errors import NotSent

if TYPE_CHECKING:
    import ssl

RECEIVE_BYTES = 65_536
Answer = TypeVar("Answer")


class TimeIsOver(Exception):  # noqa: N818 - what happened, not whose fault it is
    """Nothing could be read, or written, in time."""


class Connection:
    """A socket, encrypted or not."""

    def __init__(self, baton: Baton, plain: socket.socket) -> None:
        self._baton, self._socket = baton, plain
        self._wanted: dict[type[OSError], int] = {}
        self._waiting = 0
        self._is_closed = False

    def encrypt(self, context: ssl.SSLContext, host: str, deadline: Deadline) -> None:
        """Shake hands for a host, whose certificate is checked. Raises NotSent."""
        import ssl

        self._wanted = {ssl.SSLWantReadError: select.POLLIN, ssl.SSLWantWriteError: select.POLLOUT}
        try:
            encrypted = context.wrap_socket(self._socket, server_hostname=host, do_handshake_on_connect=False)
            self._socket = encrypted
            self._attempt(encrypted.do_handshake, select.POLLIN, deadline)
        except TimeIsOver:
            raise NotSent("timeout") from None
        except (OSError, ValueError) as error:
            raise NotSent("tls") from error

    def send(self, content: bytes, new_deadline: Callable[[], Deadline]) -> None:
        """All of it; the deadline counts from when something was sent. Raises TimeIsOver and OSError."""
        left = memoryview(content)
        while left:
            sent = self._attempt(partial(self._send, left), select.POLLOUT, new_deadline())
            left = left[sent:]

    def _send(self, content: memoryview) -> int:
        return self._socket.send(content)

    def receive(self, deadline: Deadline) -> bytes:
        """Some bytes, none at the end. Raises TimeIsOver, after which it can be asked again, and OSError."""
        return self._attempt(lambda: self._socket.recv(RECEIVE_BYTES), select.POLLIN, deadline)

    def close(self) -> None:
        """Whoever waits for it gets an OSError."""
        if self._is_closed:
            return
        self._is_closed = True
        with suppress(OSError):  # whoever was at the other end may have closed it before
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)
        self._close_unless_used()

    def _attempt(self, operation: Callable[[], Answer], usual: int, deadline: Deadline) -> Answer:
        while True:
            if self._is_closed:
                raise OSError(errno.ECONNABORTED, os.strerror(errno.ECONNABORTED))
            try:
                return operation()
            except BlockingIOError:
                wanted = usual
            except tuple(self._wanted) as error:
                wanted = self._wanted[type(error)]
            if deadline.over:
                raise TimeIsOver
            self._wait(wanted, deadline)

    def _wait(self, wanted: int, deadline: Deadline) -> None:
        self._waiting += 1
        try:
            with self._baton.put_down():
                is_ready(self._socket.fileno(), wanted, deadline)
        finally:
            self._waiting -= 1
            if self._is_closed:
                self._close_unless_used()

    def _close_unless_used(self) -> None:
        """A descriptor that another task waits for must not be given to something else meanwhile."""
        if not self._waiting:
            self._socket.close()


def connected(baton: Baton, host: str, port: int, deadline: Deadline) -> Connection:
    """A connection to a host. Raises NotSent: dns, refused or timeout."""
    reason: OSError | None = None
    for family, address in _addresses(baton, host, port, deadline):
        try:
            return Connection(baton, _connected(baton, family, address, deadline))
        except OSError as error:
            reason = error
    raise NotSent("timeout" if reason is not None and reason.errno == errno.ETIMEDOUT else "refused") from reason


def _connected(baton: Baton, family: int, address: Any, deadline: Deadline) -> socket.socket:
    plain = socket.socket(family, socket.SOCK_STREAM)
    try:
        plain.setblocking(False)  # noqa: FBT003 - the name of the call says what it means
        _connect(baton, plain, address, deadline)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        plain.close()
        raise
    return plain


def _connect(baton: Baton, plain: socket.socket, address: Any, deadline: Deadline) -> None:
    number = plain.connect_ex(address)
    if number == errno.EINPROGRESS:
        with baton.put_down():
            in_time = is_ready(plain.fileno(), select.POLLOUT, deadline)
        if not in_time:
            raise NotSent("timeout")
        number = plain.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        raise OSError(number, os.strerror(number))


def _addresses(baton: Baton, host: str, port: int, deadline: Deadline) -> list[tuple[int, Any]]:
    """Where a host is. Names are looked up in a thread of their own, as the system's call takes as long as it likes."""
    try:
        return _looked_up(host, port, socket.AI_NUMERICHOST)
    except (OSError, ValueError):
        pass
    found: list[list[tuple[int, Any]]] = []
    done = threading.Event()

    def look_up() -> None:
        with suppress(OSError, ValueError):
            found.append(_looked_up(host, port))
        done.set()

    threading.Thread(target=look_up, name=f"address of {host}", daemon=True).start()
    with baton.put_down():
        in_time = done.wait(deadline.left)
    if not in_time:
        raise NotSent("timeout")
    if not found or not found[0]:
        raise NotSent("dns")
    return found[0]


def _looked_up(host: str, port: int, flags: int = 0) -> list[tuple[int, Any]]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]
