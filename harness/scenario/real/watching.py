"""A run of a real program while it lasts: whatever is seen of it is told at once, by whoever sees it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

from fake_servers.models import ModelServer
from harness.reference.session.evidence import hyphened, log_directory
from harness.scenario.real.claude import Claude
from harness.scenario.real.codex import Codex
from harness.scenario.real.observing import RUN_ENDED, Asked, Happened, Observer
from harness.scenario.real.pi import Pi
from harness.world.ports import Request, Response

OBSERVERS: Mapping[str, type[Observer]] = {"claude": Claude, "codex": Codex, "pi": Pi}
LOOK_SECONDS = 0.1
LOOKS = 20
"""So often it is looked, before a request is answered, whether the lines that were printed before it have come."""
Lock = AbstractContextManager[Any]
Tell = Callable[[str, Mapping[str, Any]], None]


class Watch:
    """Hands to an observer what its run shows, from whichever thread, and tells what that means.

    `logs` are the folders of the program's log by server. `lock` is that of whoever is told, so that nobody waits for
    two. As a server it is the run's model.
    """

    def __init__(self, observer: Observer, model: ModelServer, logs: Mapping[str, Path], lock: Lock) -> None:
        self.observer, self.model, self.logs = observer, model, dict(logs)
        self.tell: Tell = _to_nobody
        self._lock = lock
        self._read: dict[Path, int] = {}
        self._told_results = 0
        self._over, self._news = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="watch", daemon=True)

    def begin(self, tell: Tell) -> None:
        """The run begins; its events go there. What stands in the logs by now is of earlier runs."""
        for folder in self.logs.values():
            self._read |= {file: file.stat().st_size for file in folder.glob("*.jsonl")}
        self.tell = tell
        if self.logs:
            self._thread.start()

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The model's answer; the request is told before."""
        count = len(self.model.requests)
        response = self.model.handle(request, now, who)
        if len(self.model.requests) > count:
            results = tuple(self.model.results[self._told_results :])
            self._told_results = len(self.model.results)
            asked = Asked(len(self.model.requests), self.model.requests[-1].tools, results)
            for _ in range(LOOKS):
                self._news.clear()
                with self._lock:
                    awaits = self.observer.awaits(asked)
                if not awaits:
                    break
                self._news.wait(LOOK_SECONDS)
            with self._lock:
                self.look()
                self._tell(self.observer.asked(asked))
        return response

    def printed(self, stream: str, text: str) -> None:
        """Lines that it printed."""
        with self._lock:
            for line in text.split("\n"):
                self._tell(self.observer.printed(stream, line))
        self._news.set()

    def ended(self, exit_code: int) -> None:
        """It has ended, and said its last."""
        with self._lock:
            self.look()
            if exit_code >= 0 and not self._over.is_set():
                self._tell([Happened(RUN_ENDED, {"exit_code": exit_code})])
        self._over.set()

    def close(self) -> None:
        """Watch no more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Read on in its logs."""
        with self._lock:
            for server, folder in self.logs.items():
                for file in sorted(folder.glob("*.jsonl")):
                    self._tell(self.observer.logged(server, self._new_lines(file)))

    def _new_lines(self, file: Path) -> list[str]:
        with suppress(FileNotFoundError), file.open("rb") as stream:
            stream.seek(self._read.get(file, 0))
            whole, newline, _ = stream.read().rpartition(b"\n")
            self._read[file] = self._read.get(file, 0) + len(whole) + len(newline)
            return whole.decode("utf-8", "replace").split("\n") if whole else []
        return []

    def _look_on(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.look()

    def _tell(self, happened: list[Happened]) -> None:
        for each in happened:
            self.tell(each.name, each.details)


def logs_of(family: str, home: Path, clone: Path, servers: tuple[str, ...]) -> dict[str, Path]:
    """Where a program logs its servers; only one of them does."""
    if family != "claude":
        return {}
    cache, where = str(home / ".cache"), str(clone)
    return {name: Path(log_directory(cache, where, name)) for name in servers if hyphened(name)}


def _to_nobody(_name: str, _details: Mapping[str, Any]) -> None:
    """Before it begins nobody listens."""
