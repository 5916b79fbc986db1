"""One place where a runtime is tried: a home, a project, servers on loopback, a model; nothing of it is left."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from fake_runtimes.executable import PLAN_VARIABLE
from fake_runtimes.pi.variables import KEYRING_VARIABLE, MEMORY, STORE_VARIABLE
from fake_servers.models import ModelServer
from fake_servers.mounts import Mount
from fake_servers.mounts.mount import Server
from harness.canary.cache import cache_folder
from harness.canary.script import Script, asked_of_fake, plan_text
from harness.canary.settings import KEPT_TEMPORARY, NOBODY, kept_folder, model_server, of_servers, settings_of
from harness.canary.subject import Subject
from harness.world.outside.reaping import adopt_orphans, reap
from harness.world.outside.setting import EVENTS_VARIABLE, TIME_SCALE_VARIABLE, Pace, anchored

MARK_VARIABLE = "MCP_HARNESS_TRIAL"
NOTHING_TO_DO = Script()
LOOPBACK = "http://127.0.0.1:0"
PATH = "/usr/local/bin:/usr/bin:/bin"
PI_OWN_STORE = {STORE_VARIABLE: MEMORY}
"""With this the adapter's store of credentials is its own memory: nothing of the user's is read or written."""
NORMAL_FORMS: Sequence[tuple[re.Pattern[str], str]] = (
    (re.compile(r"127\.0\.0\.1:\d+|localhost:\d+"), "HOST:PORT"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "TIME"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b\d+(?:\.\d+)?ms\b"), "N ms"),
)


class Finished(NamedTuple):
    """A run that is over. `exit_code` is negative for a signal; None: it was not over in time and was ended."""

    exit_code: int | None
    stdout: str
    stderr: str
    seconds: float

    @property
    def lines(self) -> list[Any]:
        """The JSON objects among the lines of its stdout."""
        found = []
        for line in self.stdout.splitlines():
            with suppress(ValueError):
                found.append(json.loads(line))
        return found


class TrialError(Exception):
    """The trial could not be made: nothing was found out about the runtime."""


class Trial:
    """Used once, as a context. `home` and `project` are new folders; the runtime sees no other home.

    `told` is what its programs are told besides, None taking a variable away, and `inside` the words by which they are
    started where that is somewhere else; a probe may change both.

    >>> with Trial(subject) as trial:                                      # doctest: +SKIP
    ...     with trial.serving(one=HttpServer()) as urls:
    ...         trial.write_json(".mcp.json", {"mcpServers": {"one": {"type": "http", "url": urls["one"]}}})
    ...         run = trial.run("mcp", "list")
    """

    def __init__(self, subject: Subject, below: Path | None = None) -> None:
        """Its folder is made `below` another, or where temporary folders are.

        What a runtime makes of its own program at its first start is kept for later trials.
        """
        self.subject = subject
        self.folder = Path(tempfile.mkdtemp(prefix="mcp-trial-", dir=below)).resolve()
        self.home, self.project = self.folder / "home", self.folder / "project"
        self.events_file = self.folder / "events.jsonl"
        self.kept = kept_folder(subject, (below or self.folder).resolve())
        self.mark = f"{MARK_VARIABLE}={self.folder}"
        self.models: list[ModelServer] = []
        self.pace = Pace()
        self.told: dict[str, str | None] = {**PI_OWN_STORE} if subject.family == "pi" else {}
        self.inside: tuple[str, ...] = ()
        self._script = Script()
        self._model_url = ""
        self._started: list[subprocess.Popen[bytes]] = []
        self._is_over = False

    def __enter__(self) -> Self:
        adopt_orphans()
        self.home.mkdir()
        self.project.mkdir()
        return self

    def __exit__(self, *_: object) -> None:
        self.abandon()
        for process in self._started:
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with suppress(OSError):  # what was to be written to it has nobody to read it
                        stream.close()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def abandon(self) -> None:
        """End all that it has started, for whoever gives it up from outside; it starts nothing any more."""
        self._is_over = True
        reap(self.mark)

    def hurry(self, scale: float) -> None:
        """From now on a fake's time passes so many times as fast, and that of the servers it will talk to.

        Below 1 it is slower: a delay of a busy machine then weighs less beside the waits that are told apart. A real
        program knows no other time than its own: then nothing is changed.
        """
        if self.subject.is_fake:
            self.pace = anchored(scale, time.time())

    # --- what is there

    @contextmanager
    def serving(self, **servers: Server) -> Iterator[dict[str, str]]:
        """Servers on ports of their own; the answer is the URL of each, path `/mcp`."""
        mounts = []
        try:
            urls = {}
            for name, server in servers.items():
                mount = Mount({LOOPBACK: server}, pace=self.pace)
                mounts.append(mount.__enter__())
                urls[name] = mount.url(f"{LOOPBACK}/mcp")
            yield urls
        finally:
            for mount in reversed(mounts):
                mount.__exit__(None, None, None)

    @contextmanager
    def modelled(self, script: Script = NOTHING_TO_DO) -> Iterator[None]:
        """A model that follows a script: an API on loopback for the real program, a plan for the fake."""
        self._script = script
        if self.subject.is_fake:
            yield
            return
        self.models.append(model_server(self.subject.family, script))
        with self.serving(model=self.models[-1]) as urls:
            self._model_url = urls["model"].removesuffix("/mcp")
            try:
                yield
            finally:
                self._model_url = ""

    @property
    def model_url(self) -> str:
        """Where the model of the moment is, without a path; a port where nobody is when there is none."""
        return self._model_url or NOBODY

    def write(self, path: str, text: str, *, mode: int = 0o644) -> Path:
        """A file of the project, or with `~/` of the home."""
        where = self.place(path)
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(text, encoding="utf-8")
        where.chmod(mode)
        return where

    def write_json(self, path: str, value: Any, *, mode: int = 0o644) -> Path:
        """The same with a JSON value."""
        return self.write(path, json.dumps(value, ensure_ascii=False), mode=mode)

    def read(self, path: str) -> str | None:
        """A file's text; None where there is none."""
        try:
            return self.place(path).read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, IsADirectoryError):
            return None

    def read_json(self, path: str) -> Any:
        """A file's value; None where there is none."""
        text = self.read(path)
        return None if text is None else json.loads(text)

    def place(self, path: str) -> Path:
        """Where a path is."""
        return self.home / path[2:] if path.startswith("~/") else self.project / path

    # --- what is run

    def environment(self, extra: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """All that the program is told; None takes a variable away."""
        told = {"HOME": str(self.home), "PATH": PATH, "LANG": "C.UTF-8", "TMPDIR": str(self.folder / "tmp")}
        told |= settings_of(self.subject, self.home, self._model_url)
        if self.subject.is_fake:
            told |= {EVENTS_VARIABLE: str(self.events_file), PLAN_VARIABLE: plan_text(self._script)}
            told |= {KEYRING_VARIABLE: str(self.folder / "keyring")} if self.subject.family == "pi" else {}
        told |= {TIME_SCALE_VARIABLE: str(self.pace.scale)} if self.pace != Pace() else {}
        told |= {MARK_VARIABLE: str(self.folder)}
        for name, value in {**self.told, **(extra or {})}.items():
            if value is None:
                told.pop(name, None)
            else:
                told[name] = value
        return told

    def start(self, *words: str, env: Mapping[str, str | None] | None = None) -> subprocess.Popen[bytes]:
        """Start the program in a process group of its own, its streams as pipes. Raises TrialError when it is over."""
        if self._is_over:
            raise TrialError("the trial was given up")
        self._prepare_temporary()
        process = subprocess.Popen(
            [*self.inside, *self.subject.argv, *words],
            cwd=self.project,
            env=self.environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._started.append(process)
        return process

    def _prepare_temporary(self) -> None:
        """A place of its own for temporary files, with what trials share."""
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        for name in () if self.subject.is_fake else KEPT_TEMPORARY.get(self.subject.family, ()):
            kept = self.kept / name
            kept.mkdir(parents=True, exist_ok=True)
            if not (temporary / name).exists():
                (temporary / name).symlink_to(kept, target_is_directory=True)

    def run(
        self,
        *words: str,
        stdin: str = "",
        env: Mapping[str, str | None] | None = None,
        limit_seconds: float = 60.0,
        keeps_children: bool = False,
    ) -> Finished:
        """Run the program to its end; its whole group is ended with it, unless what it leaves is the question."""
        began = time.monotonic()
        process = self.start(*words, env=env)
        over = threading.Timer(limit_seconds, end_group, (process.pid,))
        over.daemon = True
        over.start()
        try:
            out, errors = process.communicate(stdin.encode())
        finally:
            late = not over.is_alive()
            over.cancel()
            if not keeps_children:
                end_group(process.pid)
        code = None if late else process.returncode
        return Finished(
            code, out.decode("utf-8", "replace"), errors.decode("utf-8", "replace"), time.monotonic() - began
        )

    # --- what was seen

    def events(self, name: str = "*") -> list[Mapping[str, Any]]:
        """What the fake tells of itself; the real program tells nothing of the kind."""
        text = self.events_file.read_text(encoding="utf-8") if self.events_file.exists() else ""
        found = [json.loads(line) for line in text.splitlines()]
        return [each for each in found if name in ("*", each["event"])]

    def offered(self) -> list[list[str]]:
        """The names of the MCP tools in each main request to the model, sorted; of Codex as `namespace/tool`."""
        if self.subject.is_fake:
            return asked_of_fake(self.events("model.request"))
        requests = [request for model in self.models for request in model.requests]
        return [of_servers(self.subject.family, request.tools) for request in requests]

    def normal(self, text: str) -> str:
        """A text with nothing of this moment in it: ports, folders, times and the like have names."""
        folders = {self.project: "$PROJ", self.home: "$HOME", self.folder: "$TRIAL", cache_folder(os.environ): "$CACHE"}
        for path, name in folders.items():
            text = text.replace(str(path), name)
        for pattern, name in NORMAL_FORMS:
            text = pattern.sub(name, text)
        return text


def end_group(pid: int) -> None:
    """End a process and all of its group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
