"""Applying the edits that findings carry, until none is left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from harness.gate.battery.results import Mode
from harness.gate.engine import GateRequest, run_gate
from harness.gate.events import Event, Finished, Found
from harness.gate.model import Edit, Finding
from harness.inputs.document import Document

BYTE_ORDER_MARK_RULE = "MH102"
MAXIMUM_PASSES = 8
"""One edit may uncover the next (unwrapped entries, a renamed field); no chain is longer than a few."""


class Fixes(NamedTuple):
    """The text after the edits, how many findings that fixes, and whether a byte-order mark is to go.

    `events` are those of the gate on the fixed text; `named` are the fixed findings, `MH203 figma`, in the order of
    their fixes.
    """

    text: str
    findings: int
    drop_byte_order_mark: bool
    events: tuple[Event, ...]
    named: tuple[str, ...] = ()

    @property
    def finished(self) -> Finished:
        """The verdict on the fixed text."""
        return next(event for event in reversed(self.events) if isinstance(event, Finished))


def fix_everything(request: GateRequest, events: Sequence[Event]) -> Fixes:
    """Apply edits and judge again until nothing can be fixed without a decision. Nothing is written."""
    document, drops_mark = request.context.document, False
    fixed: list[Finding] = []
    without_battery = request._replace(battery=Mode.OFF)
    for _ in range(MAXIMUM_PASSES):
        findings = [event.finding for event in events if isinstance(event, Found)]
        text, done, mark = apply_edits(document.text, findings, document.name)
        if not done:
            break
        fixed += done
        drops_mark = drops_mark or mark
        document = Document.parse(document.name, text.encode("utf-8"))
        events = list(run_gate(without_battery._replace(context=request.context.with_document(document)), lambda: 0.0))
    if fixed and request.battery is not Mode.OFF:
        events = list(run_gate(request._replace(context=request.context.with_document(document)), lambda: 0.0))
    names = [finding.rule if finding.entry is None else f"{finding.rule} {finding.entry}" for finding in fixed]
    return Fixes(document.text, len(fixed), drops_mark, tuple(events), tuple(names))


def apply_edits(text: str, findings: Iterable[Finding], file: str) -> tuple[str, list[Finding], bool]:
    """One pass over all findings on `file` that no allowance covers: text, which were fixed, mark to drop.

    Where two findings would edit the same stretch, the first (the worse) one wins; the other comes up
    again in the next pass.
    """
    taken: list[Edit] = []
    fixed: list[Finding] = []
    mark = False
    for finding in findings:
        if finding.allowance is not None or finding.place.file != file:
            continue
        if finding.rule == BYTE_ORDER_MARK_RULE:
            mark = True
            fixed.append(finding)
        elif finding.edits and not any(_overlap(edit, other) for edit in finding.edits for other in taken):
            taken += finding.edits
            fixed.append(finding)
    for edit in sorted(taken, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text, fixed, mark


def _overlap(one: Edit, other: Edit) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start
