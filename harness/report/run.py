"""The event stream, sorted into what a report shows."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import PurePath
from typing import NamedTuple

from harness.errors import HarnessFault
from harness.gate.battery.results import Tried
from harness.gate.events import Changed, Event, Finished, Found, Judged, Planned, Started
from harness.gate.model import Change, Finding, Judgement, Severity


class Run(NamedTuple):
    """One run of the gate. `findings` count, `allowed` are let pass by mcp-harness.toml; both worst first."""

    started: Started
    judgements: tuple[Judgement, ...]
    findings: tuple[Finding, ...]
    allowed: tuple[Finding, ...]
    changes: tuple[Change, ...]
    before: tuple[str, ...]
    after: tuple[str, ...]
    finished: Finished
    tried: Tried | None = None

    @property
    def shown_judgements(self) -> tuple[Judgement, ...]:
        """All that was judged in this run: with a base only what was touched, unless all were asked for."""
        return tuple(judgement for judgement in self.judgements if judgement.touched)

    @property
    def untouched(self) -> int:
        """How many entries a comparison found unchanged."""
        altered = sum(change.kind in {"added", "changed"} for change in self.changes)
        return max(self.started.entries - altered, 0)

    @property
    def judged_untouched(self) -> bool:
        """Whether the untouched entries were judged as well."""
        return self.finished.judged >= self.finished.entries


def gather(events: Sequence[Event]) -> Run:
    """Sort the stream. Raises HarnessFault when it does not begin with Started and end with Finished."""
    if not events or not isinstance(events[0], Started) or not isinstance(events[-1], Finished):
        raise HarnessFault("the gate's events must begin with Started and end with Finished")
    findings = sorted((e.finding for e in events if isinstance(e, Found)), key=_severity_rank)
    return Run(
        started=events[0],
        judgements=tuple(e.judgement for e in events if isinstance(e, Judged)),
        findings=tuple(f for f in findings if f.allowance is None),
        allowed=tuple(f for f in findings if f.allowance is not None),
        changes=tuple(e.change for e in events if isinstance(e, Changed)),
        before=tuple(e.text for e in events if isinstance(e, Planned) and e.when == "before"),
        after=tuple(e.text for e in events if isinstance(e, Planned) and e.when == "after"),
        finished=events[-1],
        tried=next((e for e in events if isinstance(e, Tried)), None),
    )


def seen_from_the_top(run: Run) -> Run:
    """The run with the places of findings told from the top of the repository, as services want them."""

    def moved(finding: Finding) -> Finding:
        file = finding.place.file
        path = file if PurePath(file).is_absolute() else posixpath.normpath(posixpath.join(run.started.folder, file))
        return finding._replace(place=finding.place._replace(file=path))

    return run._replace(findings=tuple(map(moved, run.findings)), allowed=tuple(map(moved, run.allowed)))


def _severity_rank(finding: Finding) -> int:
    return finding.severity.rank


def at_level(findings: Sequence[Finding], severity: Severity) -> list[Finding]:
    """The findings of one severity, in their order."""
    return [finding for finding in findings if finding.severity is severity]
