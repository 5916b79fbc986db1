"""The canary's report as Markdown, for a pull request that bumps a pin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.canary.judging import Likeness, Row, Verdict
from harness.canary.result import Canary, Checked
from harness.canary.workarounds import evidence
from harness.report.canary import summary
from harness.report.markdown_text import code, plain
from harness.report.safety import count


def render(canary: Canary) -> str:
    """The whole text; it begins with the verdict."""
    lines = [f"**{plain(summary.verdict(canary))}**", ""]
    lines += [f"- not measured: {code(each.label)}: {sentence(each.reason)}" for each in canary.missing]
    lines += [""] if canary.missing else []
    for checked in canary.checked:
        lines += [*section(checked), ""]
    steps = list(summary.next_steps(canary))
    lines += ["### Next", "", *(f"- {code(str(step))}" for step in steps), ""] if steps else []
    return "\n".join(lines)


def section(checked: Checked) -> Iterator[str]:
    """One version: what breaks, the summary, then the other lists, long ones folded."""
    yield f"### {plain(summary.heading(checked))}"
    blocks = list(summary.blocks(checked))
    for block, rows in blocks:
        if block.first:
            yield from listed(block, rows)
    yield ""
    for verdict in (Verdict.HOLDS, Verdict.SAME):
        rows = checked.with_verdict(verdict)
        if rows:
            yield f"- {verdict.value}: {plain(summary.held(rows))}"
    yield from (
        f"- workaround {sentence(summary.workaround_line(found))}" for found in evidence(checked.rows, checked.unasked)
    )
    yield from (f"- for a catalog: {sentence(each)}" for each in summary.affected(checked.with_verdict(Verdict.BROKEN)))
    yield from scenarios(checked)
    yield from fakes(checked)
    if checked.written is not None:
        yield f"- profile written: {code(checked.place)}"
    yield f"- left behind: {plain('; '.join(checked.left)) or 'nothing'}"
    for block, rows in blocks:
        if not block.first:
            yield from listed(block, rows)


def listed(block: summary.Block, rows: Sequence[Row]) -> Iterator[str]:
    """The claims of one meaning."""
    lines = [line for row in rows for line in told(row, block.detail)]
    yield ""
    if summary.is_folded(block, rows):
        head = f"{plain(block.title)}: {count(len(rows), 'claim')}"
        yield from (f"<details><summary>{head}</summary>", "", *lines, "", "</details>")
    else:
        yield from (f"#### {plain(block.title)}", "", *lines)


def told(row: Row, detail: summary.Detail) -> Iterator[str]:
    """One claim."""
    whole = detail is summary.Detail.WHOLE
    said = summary.what_changed(row) if detail is summary.Detail.CHANGE else row.claim.says
    yield f"- {code(row.claim.id)} {sentence(row.reason if row.reason and not whole else said)}"
    if whole:
        yield f"  - {sentence(summary.what_changed(row))}"
        if summary.rests_on(row):
            yield f"  - {plain(summary.rests_on(row))}"


def scenarios(checked: Checked) -> Iterator[str]:
    """The scenarios that fall."""
    if checked.played is not None:
        fallen = checked.played.fallen
        yield f"- scenarios: {checked.played.scenarios} played, {len(fallen)} fail that passed before"
        yield from (f"  - {code(each.id)} {sentence(each.why)}" for each in fallen)


def fakes(checked: Checked) -> Iterator[str]:
    """How the fake compares."""
    if checked.fake is None:
        return
    yield f"- fake: {plain(summary.fakes(checked))}"
    for likeness in (Likeness.DIFFERS, Likeness.NOT_COMPARED, Likeness.NOT_MODELLED):
        for row in checked.with_likeness(likeness):
            lines = "; ".join(summary.fake_line(row))
            yield f"  - {code(row.claim.id)} {likeness.value}: {sentence(lines)}"


def sentence(text: str) -> str:
    """A text as Markdown shows it."""
    return plain(summary.clean(text))
