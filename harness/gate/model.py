"""The values of the gate: places, edits, findings, outcomes. Source: ARCHITECTURE section 8."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Severity(StrEnum):
    """How bad a finding is. `error` breaks something for somebody, `note` is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


class Place(NamedTuple):
    """Where an editor jumps: file as shown to the user, line and column from 1, `pointer` in RFC 6901 form."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    pointer: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Edit(NamedTuple):
    """One replacement in the file of the finding: half-open code point offsets."""

    start: int
    end: int
    text: str


class Allowance(NamedTuple):
    """The entry of mcp-harness.toml that lets a finding pass."""

    place: str
    reason: str
    until: str | None


class ScenarioFile(NamedTuple):
    """A scenario that shows a finding: the file's name, or where it was written, and its text."""

    name: str
    text: str


class Finding(NamedTuple):
    """One thing that a rule found.

    `message` says in one sentence what happens to whom; `fix` is the edit in words and `edits` the same
    as replacements (empty where a human must decide). `entry` is None for the file as a whole;
    `runtimes` names those concerned, e.g. `codex@0.146.0` (empty: all or none in particular).
    `new` tells whether the change brings it (None: nothing was compared, or it is no finding of an entry's).
    What the battery found has `events`, the ids that prove it, in the run of its scenario `proof` where there is one.
    """

    rule: str
    severity: Severity
    place: Place
    entry: str | None
    runtimes: tuple[str, ...]
    message: str
    fix: str
    edits: tuple[Edit, ...]
    fingerprint: str
    allowance: Allowance | None = None
    events: tuple[int, ...] = ()
    proof: ScenarioFile | None = None
    new: bool | None = None


class State(StrEnum):
    """What becomes of one entry on one runtime, as far as can be told before anything runs."""

    STARTS = "starts"
    AUTHORIZE = "authorize"  # a human's consent comes first: an outcome, not a failure
    UNAVAILABLE = "unavailable"  # the catalog itself declares it
    FAILS = "fails"  # this server never connects, the others are unhurt
    SKIPPED = "skipped"  # the runtime does not load it
    NOT_WRITTEN = "not written"  # it does not even reach the runtime's file
    KILLS_RUN = "kills the run"  # the runtime refuses the whole file


class Outcome(NamedTuple):
    """One entry on one runtime. `written` is the entry as it stands in the runtime's own file (None: absent).

    `first_request` tells whether its tools are in the first model request of a server that answers
    promptly: yes, late or never. `tool_room` is how many characters a tool name has left before the
    runtime cuts or hashes it (None: no limit). `detail` holds the runtime's own words.
    """

    runtime: str
    state: State
    first_request: str
    tool_room: int | None
    credential_key: str | None
    written: Mapping[str, Any] | None
    detail: str


class Need(NamedTuple):
    """What must be there before an entry can start: `kind` is secret, consent or declaration."""

    kind: str
    text: str


class Judgement(NamedTuple):
    """One entry, judged on every runtime. `touched` is False when a base was given and nothing changed."""

    entry: str
    place: Place
    default_in_roots: tuple[str, ...]
    needs: tuple[Need, ...]
    outcomes: tuple[Outcome, ...]
    touched: bool = True


class Change(NamedTuple):
    """One entry that a change adds, removes or alters, with what follows from it, one sentence a line.

    `kind` is added, removed or changed; `config` maps a runtime to the unified diff of its file's entry.
    """

    kind: str
    entry: str
    consequences: tuple[str, ...]
    config: Mapping[str, str]
