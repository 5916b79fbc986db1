"""What several parts of a scenario file share: the names that it may use, and shapes that recur."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from fake_runtimes.profile import UnknownProfileError, parse_runtime
from harness.reference.selection.zimmer import SELF_SESSION, ZIMMER
from harness.scenario.document import Document
from harness.scenario.happenings import OPERATOR_ROLE, RUNTIME, SERVER, SESSION
from harness.scenario.hints import few, meant, nearest
from harness.scenario.model import Match
from harness.scenario.naming import OPERATOR
from harness.scenario.positions import Path

HELPERS = ("npx", "npm", "node", "sh")
"""Programs that stand between a runtime and its server."""
_WORD = re.compile(r"[\w@./-]+")


@dataclass(frozen=True)
class Vocabulary:
    """The names of one file. `texts` are those of files in the clone, which may name servers of their own.

    `runs` says how often each session is run, `families` which runtimes there are, `tools` what each server offers,
    `programs` what the entries start, `transports` which servers are `stdio` and which `remote` (where it is clear).
    `authorizations` are the authorization servers, `desk` the orchestrator's actors that belong to no session.
    """

    document: Document
    servers: Collection[str]
    texts: tuple[str, ...]
    sessions: tuple[str, ...]
    steps: tuple[str, ...]
    runs: Mapping[str, int] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    tools: Mapping[str, Collection[str]] = field(default_factory=dict)
    packages: Collection[str] = ()
    programs: Collection[str] = ()
    transports: Mapping[str, str] = field(default_factory=dict)
    authorizations: Collection[str] = ()
    desk: tuple[str, ...] = ()

    @cached_property
    def words(self) -> Collection[str]:
        """What the files may call their servers."""
        return {word for text in self.texts for word in _WORD.findall(text)}

    @cached_property
    def actors(self) -> Mapping[str, tuple[str, ...]]:
        """The names that actors can have, without numbers, by their role."""
        below = dict.fromkeys((*self.servers, ZIMMER, SELF_SESSION, *self.words, *self.packages, *HELPERS))
        below |= dict.fromkeys(posixpath.basename(program) for program in self.programs)
        runtimes = tuple(f"{session}/{family}" for session in self.sessions for family in self.families)
        return {
            OPERATOR_ROLE: (OPERATOR,),
            SESSION: (*self.sessions, *self.desk),
            RUNTIME: runtimes,
            SERVER: tuple(f"{runtime}/{name}" for runtime in runtimes for name in below),
        }

    def server(self, name: str, path: Path, *, is_glob: bool = False) -> str:
        """The name, if there is such a server: of the catalog, of a later edit, Zimmer's own, or of a file.

        A glob must mean at least one.
        """
        known = name in self.servers or name.startswith(ZIMMER) or any(name in text for text in self.texts)
        if not known and is_glob:
            known = any(fnmatchcase(each, name) for each in (*self.servers, ZIMMER, SELF_SESSION, *self.words))
        if not known:
            hint = meant(name, self.servers) or "Add it to the catalog."
            self.document.fail(path, f"no server is called {name!r}", hint)
        return name

    def session(self, name: str | None, path: Path, *, needed: bool = False) -> str | None:
        """The name, if there is such a session; `needed` where several leave it open which is meant."""
        if name is None and needed and len(self.sessions) > 1:
            fix = f"Add session = ...; there are {few(self.sessions)}."
            self.document.fail(path, "it does not say which session", fix)
        if name is not None and name not in self.sessions:
            self.document.fail(path, f"no session is called {name!r}", nearest(name, self.sessions))
        return name

    def authorization(self, name: str, path: Path) -> str:
        """The name, if there is such an authorization server."""
        if name not in self.authorizations:
            hint = meant(name, self.authorizations) or f"Add [authorization.{name}]."
            self.document.fail(path, f"no authorization server is called {name!r}", hint)
        return name

    def step(self, written: object, path: Path) -> int | None:
        """A step's number from 1, by its number or its name."""
        if written is None:
            return None
        numbers = {name: number for number, name in enumerate(self.steps, 1) if name}
        number = written if isinstance(written, int) else numbers.get(str(written), 0)
        if not 1 <= number <= len(self.steps):
            known = few([f"1 to {len(self.steps)}", *numbers])
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


def plain_match(table: Mapping[str, Any]) -> Match:
    """Which events a table means; `matching.read_match` checks them too."""
    return Match(table["event"], table.get("who", "*"), table.get("where", {}))
