"""Processes forked from one that has imported everything already: each begins at once and is a real process."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.util import Finalize, get_temp_dir
from pathlib import Path
from typing import Any

from harness.world.outside.janitor import Janitor


def prepare(preload: Sequence[str]) -> None:
    """Have everything imported now, so that the first process begins as fast as the others."""
    Fork(int, (), preload, _forget).join()


class Fork:
    """A function of an importable module that runs in a process of its own; its answer is the exit code.

    `ended` is called with that (negative: the signal that ended it), in another thread.
    """

    def __init__(
        self,
        function: Callable[..., int],
        arguments: Sequence[Any],
        preload: Sequence[str],
        ended: Callable[[int], None],
    ) -> None:
        _begin()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(preload))
        self._process = context.Process(target=_exit_with, args=(function, *arguments), daemon=True)
        with nameless_main():
            self._process.start()
        self.pid = self._process.pid or 0
        self._watch = threading.Thread(target=self._wait, args=(ended,), name=f"fork {self.pid}", daemon=True)
        self._watch.start()

    def join(self) -> None:
        """Wait for its end and forget it."""
        self._watch.join()
        self._process.close()

    def end(self) -> None:
        """End it, if it still runs, and forget it."""
        self._process.kill()
        self.join()

    def _wait(self, ended: Callable[[int], None]) -> None:
        self._process.join()
        ended(self._process.exitcode or 0)


LAST = -200
"""After multiprocessing has removed its folder itself, which it does at -100."""
_janitors: list[Janitor] = []


def _begin() -> None:
    """Once: see to it that the socket of the server goes with this process, even if it is killed.

    A process that multiprocessing itself has started uses the folder of its parent, which looks after it.
    """
    if not _janitors and multiprocessing.parent_process() is None:
        janitor = Janitor(Path(get_temp_dir()))
        _janitors.append(janitor)
        Finalize(None, janitor.finish, exitpriority=LAST)


@contextmanager
def nameless_main() -> Iterator[None]:
    """This program's main module without a name, or each process would import it once more."""
    main = vars(sys.modules["__main__"])
    kept: dict[str, Any] = {name: main[name] for name in ("__spec__", "__file__") if name in main}
    main.update(dict.fromkeys(kept))
    try:
        yield
    finally:
        main.update(kept)


def _exit_with(function: Callable[..., int], *arguments: Any) -> None:
    sys.exit(function(*arguments))


def _forget(_exit_code: int) -> None:
    """Nobody asks."""
