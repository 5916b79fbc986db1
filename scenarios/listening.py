"""A socket of this machine to which nobody may connect: who does is counted."""

from __future__ import annotations

import socket
import threading

PATIENCE_SECONDS = 0.05


class Listener:
    """Accepts every connection, closes it, and counts it in `connections`; it is at 127.0.0.1 and `port`."""

    def __enter__(self) -> Listener:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(PATIENCE_SECONDS)
        self.port = self._socket.getsockname()[1]
        self.connections = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._socket.close()

    def _listen(self) -> None:
        while not self._over.is_set():
            try:
                self._socket.accept()[0].close()
            except TimeoutError:
                continue
            self.connections += 1
