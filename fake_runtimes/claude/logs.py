"""Claude Code's log of a server: where it stands and what a line looks like."""

from __future__ import annotations

import re
from functools import lru_cache

from fake_runtimes.text import iso_time, json_stringify, utf16_length
from harness.world import World

OUTSIDE = re.compile(r"[^A-Za-z0-9]")
SLUG_LIMIT = 200
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
DEBUG, ERROR = "debug", "error"
SECRET = r"token|secret|passw(?:or)?d|credential|cookie|authorization|bearer|(?:api|access|private)[-_]?key"
MEMBER = re.compile(
    rf"""((?:{SECRET})[\w-]*["']?\s*[:=]\s*)(?:(["'])[^"']*\2|(?:(?:Bearer|Basic)\s+)?[^\s,;&)}}]+)""", re.IGNORECASE
)
"""What is called like a secret and what stands behind it, in JSON that may be cut off, in a form, in a header."""
HINTS = ("token", "secret", "passw", "credential", "cookie", "authorization", "bearer", "key")
"""Without any of these there is nothing to look for; most lines have none."""
BEARER = re.compile(r"(Bearer )[^\s\"',;&)}]{20,}", re.IGNORECASE)
STRUCK = "[REDACTED]"


def hyphened(text: str) -> str:
    """Everything but ASCII letters and digits becomes `-`, one for each UTF-16 unit."""
    return OUTSIDE.sub(lambda found: "-" * utf16_length(found[0]), text)


@lru_cache(maxsize=64)
def slug(directory: str) -> str:
    """The folder of a project, from its real path; a long one is cut and told apart by a hash of the path."""
    sanitised = hyphened(directory)
    if len(sanitised) <= SLUG_LIMIT:
        return sanitised
    return f"{sanitised[:SLUG_LIMIT]}-{base36(abs(string_hash(directory)))}"


def string_hash(text: str) -> int:
    """h = h * 31 + unit over the UTF-16 units, as a signed 32-bit number."""
    units = text.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + low + high * 256) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def base36(number: int) -> str:
    """A number that is not negative, in lower-case digits."""
    digits = ""
    while number:
        number, rest = divmod(number, 36)
        digits = DIGITS[rest] + digits
    return digits or "0"


def log_directory(cache: str, directory: str, server: str) -> str:
    """The directory of one server's log files."""
    return f"{cache}/claude-cli-nodejs/{slug(directory)}/mcp-logs-{hyphened(server)}"


def file_name(started_seconds: float) -> str:
    """The log file of a process, the same for all its servers."""
    return f"{re.sub('[:.]', '-', iso_time(started_seconds))}.jsonl"


def line(level: str, text: str, seconds: float, session_id: str, directory: str) -> str:
    """One line; `level` is debug or error."""
    return f'{{"{level}":{json_stringify(text)},{tail(seconds, session_id, directory)}'


@lru_cache(maxsize=64)
def tail(seconds: float, session_id: str, directory: str) -> str:
    """What follows the text: many lines come at one time."""
    return json_stringify({"timestamp": iso_time(seconds), "sessionId": session_id, "cwd": directory})[1:]


def redacted(text: str) -> str:
    """A text as the log keeps it: what is called like a secret is struck out, and a long token behind `Bearer`."""
    lowered = text.lower()
    if not any(hint in lowered for hint in HINTS):
        return text
    return BEARER.sub(
        rf"\1{STRUCK}", MEMBER.sub(lambda found: f"{found[1]}{found[2] or ''}{STRUCK}{found[2] or ''}", text)
    )


class ServerLog:
    """The log of one server in one session. Lines are kept back until `flush`, with the time at which they came.

    A log that cannot be written is lost without a word.
    """

    def __init__(self, world: World, path: str, session_id: str, directory: str) -> None:
        self._world, self._path = world, path
        self._session_id, self._directory = session_id, directory
        self._lines: list[str] = []
        self._made = False

    def debug(self, text: str) -> None:
        """A line of the log's lower voice."""
        self.add(DEBUG, text)

    def error(self, text: str) -> None:
        """A line of its louder voice."""
        self.add(ERROR, text)

    def add(self, level: str, text: str) -> None:
        """One line."""
        self._lines.append(line(level, redacted(text), self._world.clock.now(), self._session_id, self._directory))

    async def flush(self) -> None:
        """Write what has come."""
        if not self._lines:
            return
        content = "".join(f"{text}\n" for text in self._lines).encode("utf-8", "replace")
        self._lines = []
        try:
            if not self._made:
                await self._world.files.make_directory(self._path.rpartition("/")[0])
                self._made = True
            await self._world.files.append(self._path, content)
        except OSError:
            return
