"""The ports of a world, as protocols. Times are seconds as float, virtual or real; paths are absolute POSIX texts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class Request(NamedTuple):
    """An HTTP request. Header names are compared without regard to case; `body` is whole."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""


def header(headers: Mapping[str, str], name: str) -> str | None:
    """A header's value, its name compared without regard to case; None when it is not there."""
    wanted = name.lower()
    for given, value in headers.items():
        if given.lower() == wanted:
            return value
    return None


class StreamEvent(NamedTuple):
    """One event of a stream: its text, how long after the one before it is sent, and its kind.

    The first of several that came into the stream together counts from that moment: from when the stream opened, or,
    for what was added later, from when the request was handled that added it. What was added by one request never
    waits for what another one added: an answer that takes long is overtaken.
    """

    data: str
    after_seconds: float = 0.0
    event: str = "message"

    def encoded(self) -> str:
        """As it stands in the body of a stream. The kind `message` needs no word."""
        kind = "" if self.event == "message" else f"event: {self.event}\n"
        lines = "".join(f"data: {line}\n" for line in self.data.split("\n"))
        return f"{kind}{lines}\n"


class Response(NamedTuple):
    """An answer. `after_seconds` is how long the server takes; `events` makes it a stream that stays open.

    A stream ends after its last event when `ends` is True. Else it stays open until somebody closes it, and when
    `events` is a list it may grow: whatever the server has appended to that list by the time it has handled another
    request, of whomever, is sent as well. Nothing may be taken out of it.
    """

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""
    after_seconds: float = 0.0
    events: Sequence[StreamEvent] | None = None
    ends: bool = True


class Stat(NamedTuple):
    """What is at a path, links not followed. `kind` is file, directory or link; `mode` the permission bits."""

    kind: str
    mode: int
    size: int
    modified_seconds: float


class Row(NamedTuple):
    """A stored row: its key and its values."""

    key: str
    values: Mapping[str, Any]


class Clock(Protocol):
    """Time as this actor sees it."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Come back no earlier than that."""


class Entropy(Protocol):
    """Unguessable values; reproducible in the model."""

    def token(self, characters: int) -> str:
        """A text of that many lower-case hex digits."""


class Environment(Protocol):
    """The actor's own environment variables and place."""

    @property
    def variables(self) -> Mapping[str, str]:
        """Names to values."""

    @property
    def directory(self) -> str:
        """The current directory."""


class Lock(Protocol):
    """A held advisory file lock (flock). It is freed when released or when its actor ends."""

    async def release(self) -> None:
        """Free it."""


class Files(Protocol):
    """A file system. Errors are OSError with errno, as the operating system gives them."""

    async def read(self, path: str) -> bytes: ...

    async def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Truncate and write in place; a kill or a fault may leave a part. `mode` counts for a new file."""

    async def append(self, path: str, content: bytes, *, mode: int = 0o644) -> None: ...

    async def write_atomic(self, path: str, content: bytes, *, mode: int | None = None) -> None:
        """Temporary file of a unique name, then rename: a reader sees the old or the new, never a part.

        `mode` None keeps the mode of the file that is replaced (0644 for a new one).
        """

    async def stat(self, path: str) -> Stat | None:
        """None when nothing is there. The last component is not followed when it is a link."""

    async def names(self, path: str, *, since_seconds: float | None = None) -> tuple[str, ...]:
        """The names in a directory, sorted; those alone of what was modified then or later, links not followed.

        What was modified a moment before may be among them: a disk's time stamps are not exact.
        """

    async def make_directory(self, path: str, *, mode: int = 0o755) -> None:
        """With its parents; an existing directory is left as it is."""

    async def rename(self, source: str, target: str) -> None: ...

    async def remove(self, path: str) -> None:
        """A file or link, or an empty directory."""

    async def remove_tree(self, path: str, *, follow: bool = True) -> None:
        """A directory with all it holds, however deep. Nothing there is no error.

        Links are removed, never followed, not even one that comes in a directory's place meanwhile. Unless `follow`,
        ELOOP where the directories above the path are reached through one.
        """

    async def chmod(self, path: str, mode: int, *, follow: bool = True) -> None:
        """Permission bits. Unless `follow`, ELOOP where any part of the path is a link."""

    async def make_link(self, path: str, target: str) -> None: ...

    async def resolve(self, path: str) -> str:
        """The real path, every link followed."""

    async def lock(self, path: str, *, timeout_seconds: float | None = None) -> Lock | None:
        """An exclusive lock on a file, made when it is not there; None when it was not free in time."""


class Stream(Protocol):
    """An open answer. `status` and `headers` are known, events come one by one, those added later too.

    The body of an answer that is no stream comes as one event.
    """

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read_event(self, timeout_seconds: float) -> str | None:
        """The next event's data; None at the end. Raises ReadTimeout, or Ambiguous when it breaks off."""

    async def close(self) -> None:
        """Read no more: whoever reads it, now or later, gets the end."""


class Http(Protocol):
    """Requests to servers."""

    async def send(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Response:
        """The whole answer. Raises NotSent (it never left) or Ambiguous (it may have been processed).

        The read timeout is the longest silence that is borne, not the length of the whole.
        """

    async def open(self, request: Request, *, open_timeout_seconds: float, read_timeout_seconds: float) -> Stream:
        """The answer as a stream. Raises as `send`."""


class Child(Protocol):
    """A process that this actor started. Lines are texts without their line break."""

    @property
    def pid(self) -> int: ...

    async def write_line(self, line: str) -> None:
        """To its stdin. Raises BrokenPipeError when nobody reads any more, or when it was closed."""

    async def close_stdin(self) -> None: ...

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From its stdout; None at the end. Raises ReadTimeout."""

    async def read_error(self, timeout_seconds: float | None = None) -> str | None:
        """A line of its stderr; None at the end. Raises ReadTimeout."""

    async def wait(self, timeout_seconds: float | None = None) -> int | None:
        """Its exit code (negative: the signal that ended it); None when it still runs."""

    async def signal(self, name: str) -> None:
        """SIGINT, SIGTERM or SIGKILL; nothing happens when it has ended."""


class Processes(Protocol):
    """Starting children, and being one."""

    async def spawn(self, argv: Sequence[str], *, env: Mapping[str, str], directory: str) -> Child:
        """Raises OSError when the program cannot be executed, EINVAL for words and variables that no process can have.

        FileNotFoundError or PermissionError as `directory` does.
        """

    async def read_line(self, timeout_seconds: float | None = None) -> str | None:
        """From this actor's own stdin; None at the end. Raises ReadTimeout."""

    async def write_line(self, line: str) -> None:
        """To its own stdout. Raises BrokenPipeError."""

    async def write_error(self, line: str) -> None:
        """To its own stderr."""

    async def next_signal(self, timeout_seconds: float | None = None) -> str | None:
        """The name of a signal that was sent to this actor; None when none came in time.

        An actor that never asks dies of SIGINT and SIGTERM, as a program without a handler does.
        """


class Transaction(Protocol):
    """An open transaction: sees its own changes, holds the row locks it took until it ends."""

    async def get(self, table: str, key: str, *, lock: bool = False) -> Row | None:
        """A row as committed or changed here; `lock` waits until nobody else holds the row."""

    async def put(self, table: str, key: str, values: Mapping[str, Any]) -> None: ...

    async def delete(self, table: str, key: str) -> None: ...

    async def commit(self) -> None: ...

    async def rollback(self) -> None: ...


class Store(Protocol):
    """Rows that survive every actor."""

    async def begin(self) -> Transaction: ...

    async def rows(self, table: str) -> tuple[Row, ...]:
        """All committed rows, by key."""


class Events(Protocol):
    """What happened, for whoever judges the run. Emitting takes no time and is no switch point."""

    def emit(self, event: str, /, **details: Any) -> None: ...


class Task(Protocol):
    """A running coroutine of this actor."""

    @property
    def name(self) -> str: ...

    @property
    def done(self) -> bool: ...

    def result(self) -> Any:
        """What it returned; raises what it raised, or WorldFault while it runs."""


class Tasks(Protocol):
    """Concurrency inside an actor."""

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> Task: ...

    async def wait(self, tasks: Sequence[Task], *, timeout_seconds: float | None = None, first: bool = False) -> None:
        """Until all (or, with `first`, one) are done or the time is over; whatever still runs goes on."""


class World(Protocol):
    """One actor's view of everything that is not a pure rule."""

    @property
    def name(self) -> str:
        """The actor's name."""

    @property
    def clock(self) -> Clock: ...

    @property
    def entropy(self) -> Entropy: ...

    @property
    def env(self) -> Environment: ...

    @property
    def files(self) -> Files: ...

    @property
    def http(self) -> Http: ...

    @property
    def processes(self) -> Processes: ...

    @property
    def store(self) -> Store: ...

    @property
    def events(self) -> Events: ...

    @property
    def tasks(self) -> Tasks: ...


Program = Callable[[World, Sequence[str]], Awaitable[int]]
"""What an actor runs: its world and its argv; the answer is the exit code."""
