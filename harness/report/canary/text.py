"""The canary's report for a terminal: worst first, readable without colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.canary.judging import Likeness, Row, Verdict
from harness.canary.result import Canary, Checked
from harness.canary.workarounds import evidence
from harness.next_steps import step_lines
from harness.report.canary import summary
from harness.report.safety import count, pad
from harness.report.wrapping import wrapped

LABEL = 17
WIDEST_ID = 44


def render(canary: Canary, *, details: bool = False) -> str:
    """The whole report; the last line says verdict, counts, time, seed and exit code.

    What breaks comes first, behind that the summary, then the other lists; `details`: the long ones too.
    """
    blocks = [list(_missing(canary)), *(list(_checked(each, details=details)) for each in canary.checked)]
    lines = [line for block in blocks if block for line in (*block, "")]
    steps = step_lines(summary.next_steps(canary))
    return "".join(f"{line.rstrip()}\n" for line in (*lines, *steps, summary.verdict(canary)))


def _missing(canary: Canary) -> Iterator[str]:
    for each in canary.missing:
        yield from wrapped("", f"NOT MEASURED  {each.label}: {summary.clean(each.reason)}", "  ")


def _checked(checked: Checked, *, details: bool) -> Iterator[str]:
    yield from wrapped("", summary.heading(checked), "  ")
    if not checked.recorded:
        yield f"  nothing is recorded of {checked.against}"
    yield ""
    blocks = list(summary.blocks(checked))
    for block, rows in blocks:
        if block.first:
            yield from _block(block, rows)
    yield from _summary(checked)
    for block, rows in blocks:
        if not details and summary.is_folded(block, rows):
            yield f"  {block.sign} {block.title}: {count(len(rows), 'claim')}; --details lists them"
        elif not block.first:
            yield from _block(block, rows)


def _summary(checked: Checked) -> Iterator[str]:
    """What follows for whoever decides about the upgrade."""
    for verdict in (Verdict.HOLDS, Verdict.SAME):
        rows = checked.with_verdict(verdict)
        if rows:
            yield from _labelled(verdict.name, summary.held(rows))
    for number, found in enumerate(evidence(checked.rows, checked.unasked)):
        yield from _labelled("WORKAROUNDS" if not number else "", summary.workaround_line(found))
    touched = summary.affected(checked.with_verdict(Verdict.BROKEN))
    for number, text in enumerate(touched):
        yield from _labelled("FOR A CATALOG" if not number else "", summary.clean(text))
    yield from _scenarios(checked)
    yield from _fakes(checked)
    if checked.written is not None:
        yield from _profile(checked)
    if summary.measured_twice(checked):
        yield from _labelled("MEASURED TWICE", summary.measured_twice(checked))
    yield from _labelled("LEFT BEHIND", "; ".join(checked.left) or "0 processes, 0 files")


def _block(block: summary.Block, rows: Sequence[Row]) -> Iterator[str]:
    yield f"  {block.title}"
    if block.detail is summary.Detail.CHANGE:
        for changed, alike in summary.by_reason(rows, summary.what_changed).items():
            yield from wrapped(f"  {block.sign} ", f"{summary.ids(alike)}  {changed}", " " * 6)
        return
    if block.detail is summary.Detail.REASON:
        for reason, alike in summary.by_reason(rows, lambda row: row.reason).items():
            told = summary.clean(reason or alike[0].claim.says if len(alike) == 1 else reason)
            yield from wrapped(f"  {block.sign} ", f"{summary.ids(alike)}{f'  {told}' if told else ''}", " " * 6)
        return
    width = min(max(len(row.claim.id) for row in rows), WIDEST_ID)
    for row in rows:
        head = f"  {block.sign} {pad(row.claim.id, width)} "
        hanging = " " * 6
        yield from wrapped(head, summary.clean(row.claim.says), hanging)
        yield from wrapped(hanging, summary.what_changed(row), hanging + "  ")
        if summary.rests_on(row):
            yield from wrapped(hanging, summary.rests_on(row), hanging + "  ")


def _scenarios(checked: Checked) -> Iterator[str]:
    if checked.played is None:
        return
    fallen = checked.played.fallen
    told = f"{count(checked.played.scenarios, 'scenario')} played with this profile: "
    failing = f"{count(len(fallen), 'fails', 'fail')} that passed before" if fallen else "none fails that passed before"
    yield from _labelled("SCENARIOS", told + failing)
    for each in fallen:
        yield from _labelled("", f"! {each.id} ({each.verdict}): {summary.clean(each.why)}")


def _fakes(checked: Checked) -> Iterator[str]:
    if checked.fake is None:
        return
    yield from _labelled("FAKE", summary.fakes(checked))
    for row in checked.with_likeness(Likeness.DIFFERS):
        yield from wrapped("    ! ", f"{row.claim.id} {summary.clean(row.claim.says)}", " " * 8)
        for line in summary.fake_line(row):
            yield from wrapped(" " * 8, line, " " * 10)
    for likeness in (Likeness.NOT_COMPARED, Likeness.NOT_MODELLED):
        reasons = summary.by_reason(checked.with_likeness(likeness), lambda row: row.fake_reason)
        for reason, alike in reasons.items():
            told = f"{likeness.value}, {summary.clean(reason)}: {summary.ids(alike)}"
            yield from wrapped("    - ", told, " " * 8)


def _profile(checked: Checked) -> Iterator[str]:
    written = checked.written
    if written is None:
        return
    changed = f"{len(written.changed)} changed ({', '.join(written.changed)})" if written.changed else "none changed"
    told = f"{checked.place}: {count(len(written.derived), 'line')} measured, {changed}, {len(written.kept)} only kept"
    yield from _labelled("PROFILE", told)
    for problem in written.problems:
        yield from _labelled("", f"? {summary.clean(problem)}")


def _labelled(label: str, text: str) -> Iterator[str]:
    yield from wrapped(pad(f"  {label}", LABEL) + " ", text, " " * (LABEL + 1))
