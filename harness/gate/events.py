"""The one stream that the gate emits and every report format reads. Order: Started, then any, then Finished."""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness.gate.battery.results import Tried
from harness.gate.model import Change, Finding, Judgement, Severity


class Started(NamedTuple):
    """What is judged. `base` names the other side of a comparison, e.g. `origin/main@4f1c2e9` (None: no comparison).

    `folder` is the folder that shown paths are relative to, seen from the top of its repository ("" at the
    top): services that read a report know files by their path from there. `fail_on` is the least severity
    that fails the run. `caution` says what is not right about the base, where something is.
    """

    catalog: str
    entries: int
    roots_file: str | None
    roots: int
    runtimes: tuple[str, ...]
    pinned: bool
    base: str | None
    folder: str = ""
    fail_on: Severity = Severity.ERROR
    caution: str = ""


class Judged(NamedTuple):
    """One entry on every runtime, in catalog order."""

    judgement: Judgement


class Found(NamedTuple):
    """One finding, worst first, then in file order."""

    finding: Finding


class Changed(NamedTuple):
    """What the change does to one entry; only with a base."""

    change: Change


class Planned(NamedTuple):
    """Something a human has to do before or after merging."""

    when: Literal["before", "after"]
    text: str


class Finished(NamedTuple):
    """The verdict. `allowed` counts findings that mcp-harness.toml lets pass; they are in no other count."""

    verdict: Literal["PASS", "FAIL"]
    errors: int
    warnings: int
    notes: int
    allowed: int
    judged: int
    entries: int
    seconds: float
    seed: int
    exit_code: int


Event = Started | Judged | Found | Tried | Changed | Planned | Finished
