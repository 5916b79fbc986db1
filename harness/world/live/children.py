"""Processes that were started: their pipes, their end, and what is left of them when their parent ends."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Mapping, Sequence

import anyio

from harness.world.errors import WorldFault
from harness.world.live.driver import Driver
from harness.world.live.pipes import LineReader, LineWriter
from harness.world.live.waiting import Backoff


class Running:
    """A process with pipes to it, in a session of its own: a signal to its parent's group does not reach it."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], directory: str) -> None:
        self.process = subprocess.Popen(
            list(argv),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=directory,
            env=dict(env),
            start_new_session=True,
        )
        process = self.process
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise WorldFault("a process was started without its pipes")
        self._outputs = (process.stdout, process.stderr)
        self.stdout, self.stderr = LineReader(process.stdout.fileno()), LineReader(process.stderr.fileno())
        self._input = process.stdin
        self.stdin = LineWriter(process.stdin.fileno())
        self.ended = anyio.Event()
        self._watched = os.pidfd_open(self.process.pid) if hasattr(os, "pidfd_open") else -1

    async def watch(self) -> None:
        """Until it ends."""
        if self._watched >= 0:
            await anyio.wait_readable(self._watched)
        backoff = Backoff()
        while self.process.poll() is None:
            await backoff.pause()
        self.ended.set()

    def close_stdin(self) -> None:
        """It reads the end from now on."""
        self.stdin.end()
        self._input.close()

    def close(self) -> None:
        """Its pipes end here. It lives on if it does, and somebody has to take its exit code one day.

        Its stdin is last: a child that reads the end can be sure that nobody reads its output either.
        """
        for reader, stream in zip((self.stdout, self.stderr), self._outputs, strict=True):
            reader.end()
            stream.close()
        self.close_stdin()
        if self._watched >= 0:
            os.close(self._watched)
            self._watched = -1
        if self.process.poll() is None:
            threading.Thread(target=self.process.wait, name=f"child {self.process.pid}", daemon=True).start()


def started(driver: Driver, argv: Sequence[str], env: Mapping[str, str], directory: str) -> Running:
    """Start a process that is watched from now on. Raises OSError."""
    running = Running(argv, env, directory)
    driver.closers[running] = running.close
    driver.tasks.start_soon(running.watch)
    return running
