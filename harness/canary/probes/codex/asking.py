"""How Codex is asked without a model: its configuration and its store as files, and a client of `codex app-server`."""

from __future__ import annotations

import json
import queue
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import tomlkit

from harness.canary.trial import MARK_VARIABLE, Finished, Trial, TrialError, end_group

CONFIG, STORE, PROJECT_CONFIG = "~/.codex/config.toml", "~/.codex/.credentials.json", ".codex/config.toml"
UPDATED = "mcpServer/startupStatus/updated"
FULL_ACCESS: Mapping[str, Any] = {"sandbox_mode": "danger-full-access", "approval_policy": "never"}
MODES: Mapping[str, Mapping[str, Any]] = {
    "reading": {"sandbox_mode": "read-only", "approval_policy": "never"},
    "writing": {"sandbox_mode": "workspace-write", "approval_policy": "never"},
    "full": FULL_ACCESS,
}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
STAMP = re.compile(r"^TIME\s+")
READS_STDIN = "Reading additional input from stdin..."
CLIENT = {"name": "canary", "title": None, "version": "1"}
MODEL = "canary"
"""A model that the program knows nothing of: it is offered every tool as it is."""
QUIET = (
    'chatgpt_base_url="http://127.0.0.1:9"',
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "features.plugins=false",
    "features.apps=false",
)
"""Without these the program asks its maker's hosts and a code host for plug-ins, features and numbers."""
SETTLING_SECONDS = 20.0
GRACE_SLOWLY = 0.4
"""How fast the fake's time passes where it matters what comes within a grace of one second, be the machine busy."""
ENDING_SECONDS = 10.0
A_DAY_MS = 86_400_000


def spoken_to(trial: Trial, model: str = MODEL) -> tuple[str, ...]:
    """The words without which the program would talk to others than the servers of the trial."""
    provider = f'model_providers.canary={{name="canary",base_url="{trial.model_url}/v1",wire_api="responses"}}'
    chosen = (f'model="{model}"',) if model else ()
    given = ('model_provider="canary"', provider, *chosen, *QUIET)
    return tuple(word for setting in given for word in ("-c", setting))


def executed(
    trial: Trial, *words: str, model: str = MODEL, env: Mapping[str, str | None] | None = None, seconds: float = 30.0
) -> Finished:
    """One `codex exec --json`, which says hello to the model of the trial."""
    return trial.run(
        "exec", "--json", "--skip-git-repo-check", *spoken_to(trial, model), *words, "hello",
        env=env, limit_seconds=seconds,
    )  # fmt: skip


def said(trial: Trial, run: Finished) -> list[str]:
    """What is on stderr, without colours and times, and without what every run says."""
    lines = [STAMP.sub("", trial.normal(COLOUR.sub("", line))).strip() for line in run.stderr.splitlines()]
    return [line for line in lines if line and line != READS_STDIN]


def toml(tables: Mapping[str, Any]) -> str:
    """Tables as TOML."""
    return tomlkit.dumps(tables)


def configure(trial: Trial, servers: Mapping[str, Mapping[str, Any]], **settings: Any) -> None:
    """The user's file with these servers."""
    trial.write(CONFIG, toml({**settings, "mcp_servers": {name: marked(each) for name, each in servers.items()}}))


def marked(server: Mapping[str, Any]) -> dict[str, Any]:
    """An entry whose process is found, and ended, with the trial: it does not inherit the mark by itself."""
    if "command" not in server:
        return dict(server)
    return {**server, "env_vars": [*server.get("env_vars", ()), MARK_VARIABLE]}


def entry(name: str, url: str, **fields: Any) -> dict[str, Any]:
    """A stored credential that is good for a day. A field that is None is stored as null, one that is ... is not."""
    whole = {
        "server_name": name,
        "server_url": url,
        "client_id": "a-client",
        "access_token": f"token-{name}",
        "expires_at": now_ms() + A_DAY_MS,
        "refresh_token": None,
        "scopes": [],
    }
    return {field: value for field, value in {**whole, **fields}.items() if value is not ...}


def now_ms() -> int:
    """Now, as the store has it."""
    return int(time.time() * 1000)


def python(script: str, *words: str) -> dict[str, Any]:
    """The entry of a server that is a few lines of Python."""
    return {"command": sys.executable, "args": ["-ISc", script, *words]}


class Told(NamedTuple):
    """The end of one server: `ready`, `failed`, or None where no word came; and with which words."""

    status: str | None = None
    error: str | None = None
    reason: str | None = None


class Talk:
    """A talk with `codex app-server`: what it said, by kind."""

    def __init__(self, process: subprocess.Popen[bytes], folder: str) -> None:
        self._process, self._folder = process, folder
        self._said: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._number = 0
        self.updates: list[Mapping[str, Any]] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for as a pipe
        for line in self._process.stdout:
            with suppress(ValueError):
                self._said.put(json.loads(line))
        self._said.put(None)

    def tell(self, method: str, params: Mapping[str, Any] | None = None, **more: Any) -> None:
        """Send a message."""
        assert self._process.stdin is not None  # noqa: S101
        message = {"method": method, **({} if params is None else {"params": params}), **more}
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def next(self, until: float) -> dict[str, Any] | None:
        """The next message; None when there is none by then, or it is over."""
        try:
            message = self._said.get(timeout=max(until - time.monotonic(), 0.0))
        except queue.Empty:
            return None
        if message is not None and message.get("method") == UPDATED:
            self.updates.append(message["params"])
        return message

    def ask(self, method: str, params: Mapping[str, Any], seconds: float = SETTLING_SECONDS) -> dict[str, Any]:
        """A request's answer. Raises TrialError where none comes."""
        self.ask_later(method, params)
        until = time.monotonic() + seconds
        while (message := self.next(until)) is not None:
            if message.get("id") == self._number and "method" not in message:
                return message
        raise TrialError(f"{method} was not answered")

    def ask_later(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a request whose answer nobody waits for."""
        self._number += 1
        self.tell(method, params, id=self._number)

    def introduce(self) -> None:
        """Say who one is: nothing is started yet."""
        self.ask("initialize", {"clientInfo": CLIENT})
        self.tell("initialized")

    def begin(self) -> dict[str, Any]:
        """Introduce oneself and start a thread, and so the servers; the answer to that."""
        self.introduce()
        return self.ask("thread/start", {"cwd": self._folder})

    def settle(self, *names: str, seconds: float = SETTLING_SECONDS) -> dict[str, Told]:
        """What became of each server, once each is ready or has failed, or the time is over."""
        until = time.monotonic() + seconds
        while not all(self.ended(name).status for name in names) and self.next(until) is not None:
            pass
        return {name: self.ended(name) for name in names}

    def strike(self, number: int) -> None:
        """Send the program a signal, and wait until it is gone."""
        self._process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_SECONDS)

    def ended(self, name: str) -> Told:
        """The last word about a server."""
        found = [each for each in self.updates if each["name"] == name and each["status"] in ("ready", "failed")]
        if not found:
            return Told()
        return Told(found[-1]["status"], found[-1]["error"], found[-1].get("failureReason"))


@contextmanager
def talking(trial: Trial, env: Mapping[str, str | None] | None = None) -> Iterator[Talk]:
    """A talk, which ends with stdin; who does not go by itself is ended."""
    process = trial.start("app-server", *spoken_to(trial), env=env)
    for stream in (process.stderr,):
        threading.Thread(target=stream.read if stream else int, daemon=True).start()
    try:
        yield Talk(process, str(trial.project))
    finally:
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_SECONDS)
        end_group(process.pid)
        process.wait()


def statuses(
    trial: Trial, *names: str, seconds: float = SETTLING_SECONDS, env: Mapping[str, str | None] | None = None
) -> dict[str, Told]:
    """What became of the servers of the configuration, by a talk of their own."""
    with talking(trial, env) as talk:
        talk.begin()
        return talk.settle(*names, seconds=seconds)
