"""Applying the edits that findings carry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from harness.gate.model import Edit, Finding

BYTE_ORDER_MARK_RULE = "MH102"


class Fixes(NamedTuple):
    """The text after the edits, how many findings that fixes, and whether a byte-order mark is to go."""

    text: str
    findings: int
    drop_byte_order_mark: bool


def apply_fixes(text: str, findings: Iterable[Finding], file: str) -> Fixes:
    """Apply the edits of all findings on `file` that no allowance covers.

    Where two findings would edit the same stretch, the first (the worse) one wins; the other comes up
    again in the next run.
    """
    taken: list[Edit] = []
    count, mark = 0, False
    for finding in findings:
        if finding.allowance is not None or finding.place.file != file:
            continue
        if finding.rule == BYTE_ORDER_MARK_RULE:
            mark = True
            count += 1
        elif finding.edits and not any(_overlap(edit, other) for edit in finding.edits for other in taken):
            taken += finding.edits
            count += 1
    for edit in sorted(taken, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return Fixes(text, count, mark)


def _overlap(one: Edit, other: Edit) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start
