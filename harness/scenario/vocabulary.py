"""What several parts of a scenario file share: the names that it may use, and shapes that recur."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from fake_runtimes.profile import UnknownProfileError, parse_runtime
from harness.gate.nearness import did_you_mean
from harness.scenario.document import Document
from harness.scenario.model import Match
from harness.scenario.positions import Path


class Vocabulary(NamedTuple):
    """The names of one file. `texts` are those of files in the clone, which may name servers of their own."""

    document: Document
    servers: Collection[str]
    texts: tuple[str, ...]
    sessions: tuple[str, ...]
    steps: tuple[str, ...]

    def server(self, name: str, path: Path) -> str:
        """The name, if there is such a server: of the catalog, of a later edit, Zimmer's own, or of a file."""
        known = name in self.servers or name.startswith("zimmer") or any(name in text for text in self.texts)
        if not known:
            near = did_you_mean(name, self.servers, 0.6)
            hint = f"Did you mean {near}?" if near else "Add it to the catalog."
            self.document.fail(path, f"no server is called {name!r}", hint)
        return name

    def session(self, name: str | None, path: Path, *, needed: bool = False) -> str | None:
        """The name, if there is such a session; `needed` where several leave it open which is meant."""
        if name is None and needed and len(self.sessions) > 1:
            self.document.fail(path, "it does not say which session", f"Add session = {' or '.join(self.sessions)!r}.")
        if name is not None and name not in self.sessions:
            self.document.fail(path, f"no session is called {name!r}", f"There are {', '.join(self.sessions)}.")
        return name

    def step(self, written: object, path: Path) -> int | None:
        """A step's number from 1, by its number or its name."""
        if written is None:
            return None
        numbers = {name: number for number, name in enumerate(self.steps, 1) if name}
        number = written if isinstance(written, int) else numbers.get(str(written), 0)
        if not 1 <= number <= len(self.steps):
            known = ", ".join([f"1 to {len(self.steps)}", *numbers])
            self.document.fail(path, f"`after` is {written!r}, which is no step", f"There are {known}.")
        return number


def checked_runtime(document: Document, name: str, path: Path) -> str:
    """The name of a runtime or version, if there is such a one."""
    try:
        parse_runtime(name)
    except UnknownProfileError as error:
        document.fail(path, str(error), "Name one of these.")
    return name


def checked_runtimes(document: Document, table: Mapping[str, Any], key: str, path: Path) -> tuple[str, ...]:
    """The runtimes that a table lists; none where it does not."""
    return tuple(checked_runtime(document, name, (*path, key)) for name in table.get(key, ()))


def read_match(table: Mapping[str, Any]) -> Match:
    """Which events a table means."""
    return Match(table["event"], table.get("who", "*"), table.get("where", {}))
