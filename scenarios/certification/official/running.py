"""One scenario of the suite in one process, and what its checks say."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from scenarios.certification.official.installing import Suite

LIMIT_SECONDS = 60.0
RESULT_NAME = "checks.json"
LISTED = re.compile(r"^\s*- (?P<name>\S+) \[(?P<revisions>[^\]]*)\]\s*$", re.MULTILINE)
BEST_FIRST = ("SUCCESS", "INFO", "SKIPPED", "WARNING", "FAILURE")


class Check(NamedTuple):
    """One check of a scenario: a status of BEST_FIRST, and what the suite says of it."""

    scenario: str
    name: str
    status: str
    message: str = ""

    @property
    def key(self) -> str:
        """As the baseline names it."""
        return f"{self.scenario}/{self.name}"


class Played(NamedTuple):
    """A scenario that was run. `problem` says why its checks cannot be believed, if so."""

    scenario: str
    checks: tuple[Check, ...]
    problem: str | None = None


class Stopped(Exception):  # noqa: N818 - no error: the run ends before its time
    """Nothing more is to be started."""


class Processes:
    """Runs programs, from any thread; at the exit of the `with` none of them lives."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            left = list(self._running)
        for process in left:
            end(process)

    def run(self, argv: Sequence[str], directory: Path, limit_seconds: float = LIMIT_SECONDS, *,
            heard: Callable[[str], None] | None = None) -> tuple[int | None, str]:  # fmt: skip
        """A program's exit code and what it printed; None for the code of one that took too long and was ended.

        Its environment holds nothing of this process's, and its home is the directory. `heard` takes each line when it
        comes.
        """
        home = str(directory)
        environment = {"HOME": home, "TMPDIR": home, "PATH": str(Path(argv[0]).parent), "NO_COLOR": "1"}
        with self._lock:
            if self._closed:
                raise Stopped
            process = subprocess.Popen(
                argv, cwd=directory, env=environment, text=True, errors="replace", start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            self._running.add(process)
        try:
            if heard is not None:
                return followed(process, limit_seconds, heard)
            output, _ = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired:
            end(process)
            return None, process.communicate()[0]
        finally:
            with self._lock:
                self._running.discard(process)
        return process.returncode, output


def followed(
    process: subprocess.Popen[str], limit_seconds: float, heard: Callable[[str], None]
) -> tuple[int | None, str]:
    """A program's exit code (None: it took too long) and what it printed, each line handed on at once."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        end(process)

    watch = threading.Timer(limit_seconds, stop)
    watch.start()
    lines: list[str] = []
    try:
        with process:
            for line in process.stdout or ():
                lines.append(line)
                heard(line)
    except BaseException:
        end(process)
        raise
    finally:
        watch.cancel()
    return None if late.is_set() else process.returncode, "".join(lines)


def end(process: subprocess.Popen[str]) -> None:
    """End a program and whatever it has started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def scenarios(processes: Processes, suite: Suite, revision: str) -> tuple[str, ...]:
    """The server scenarios that a version of the suite has for a revision of the protocol."""
    with tempfile.TemporaryDirectory() as folder:
        _, output = processes.run([str(suite.node), str(suite.program), "list", "--server"], Path(folder))
    return listed(output, revision)


def listed(output: str, revision: str) -> tuple[str, ...]:
    """The scenarios for a revision in what `list` prints: `- NAME [REVISION,...]`."""
    found = LISTED.finditer(output)
    return tuple(line["name"] for line in found if revision in line["revisions"].split(","))


def play(processes: Processes, suite: Suite, scenario: str, url: str, revision: str) -> Played:
    """Run a scenario against a server."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = ["--url", url, "--scenario", scenario, "--spec-version", revision, "-o", str(folder / "results")]
        code, output = processes.run([str(suite.node), str(suite.program), "server", *options], folder)
        results = sorted((folder / "results").rglob(RESULT_NAME))
        texts = [result.read_text(encoding="utf-8") for result in results]
    return judged(scenario, code, texts, output)


def judged(scenario: str, code: int | None, results: Sequence[str], output: str) -> Played:
    """What a run shows. It must have left one file of checks and an exit code that goes with them."""
    said = " ".join(output.split())[-200:]
    if code is None:
        return Played(scenario, (), f"did not end within {LIMIT_SECONDS:g} s: {said}")
    if len(results) != 1:
        return Played(scenario, (), f"left {len(results)} results and exit code {code}: {said}")
    checks = tuple(read_checks(scenario, results[0]))
    if not checks:
        return Played(scenario, (), "holds no check")
    failed = any(check.status == "FAILURE" for check in checks)
    if code != int(failed):
        return Played(scenario, checks, f"exit code {code} although its checks say {'failed' if failed else 'passed'}")
    return Played(scenario, checks)


def read_checks(scenario: str, text: str) -> Iterable[Check]:
    """Each name of a check once. One that occurs several times counts as the worst of them."""
    worst: dict[str, Check] = {}
    for entry in json.loads(text):
        message = " ".join(str(entry.get("errorMessage") or "").split())
        check = Check(scenario, str(entry["id"]), str(entry["status"]), message)
        before = worst.get(check.name)
        if before is None or rank(check.status) > rank(before.status):
            worst[check.name] = check
    return worst.values()


def rank(status: str) -> int:
    """How bad a status is; one that nobody knows is worse than all."""
    return BEST_FIRST.index(status) if status in BEST_FIRST else len(BEST_FIRST)


def by_key(played: Iterable[Played]) -> Mapping[str, Check]:
    """All checks of some scenarios, by the name that the baseline gives them."""
    return {check.key: check for each in played for check in each.checks}


class Stopwatch:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """So many by now."""
        return time.perf_counter() - self._began
