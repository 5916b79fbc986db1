"""JUnit XML: a suite for each version, a test case for each claim about the program and for each about its fake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.canary.judging import Likeness, Row, Verdict
from harness.canary.result import Canary, Checked
from harness.canary.workarounds import evidence
from harness.report.canary import summary
from harness.report.safety import visible

SKIPPED = (Verdict.NOT_MEASURABLE, Verdict.UNRECORDED)


class Case(NamedTuple):
    """One test case; `kind` is failure, error, skipped or empty."""

    name: str
    kind: str
    message: str
    lines: tuple[str, ...]


def render(canary: Canary) -> str:
    """The document."""
    suites = [(each, list(cases(each))) for each in canary.checked]
    everything = [case for _, found in suites for case in found]
    missing = [Case(each.label, "error", summary.clean(each.reason), ()) for each in canary.missing]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{attributes(name='mcp-harness canary', **totals([*everything, *missing], canary.seconds))}>",
        *(line for checked, found in suites for line in suite(checked.label, found, checked.wall_seconds, canary)),
        *(suite("not there to be measured", missing, 0.0, canary) if missing else ()),
        "</testsuites>",
    ]
    return "".join(f"{line}\n" for line in lines)


def cases(checked: Checked) -> Iterator[Case]:
    """The test cases of one version, worst first."""
    order = list(Verdict)
    for row in sorted(
        (row for row in checked.rows if row.verdict), key=lambda row: order.index(row.verdict or order[0])
    ):
        yield Case(row.claim.id, kind_of(row), f"{row.verdict}: {row.claim.says}", tuple(lines_of(row)))
    for row in checked.rows:
        if row.likeness is not None:
            skipped = row.likeness in (Likeness.NOT_MODELLED, Likeness.NOT_COMPARED)
            kind = "failure" if row.likeness is Likeness.DIFFERS else "skipped" if skipped else ""
            told = () if row.likeness is Likeness.AGREES else tuple(summary.fake_line(row))
            yield Case(f"{row.claim.id} (fake)", kind, f"the fake: {row.likeness}", told)
    for found in evidence(checked.rows, checked.unasked):
        yield Case(f"workaround {found.workaround.bug}", "", found.need, (summary.workaround_line(found),))
    for fallen in checked.played.fallen if checked.played else ():
        yield Case(
            f"scenario {fallen.id}", "failure", f"{fallen.verdict}: {fallen.title}", (summary.clean(fallen.why),)
        )
    for left in checked.left:
        yield Case(f"left behind: {left}", "failure", left, ())


def kind_of(row: Row) -> str:
    """What a verdict is in this format."""
    if row.verdict is Verdict.BROKEN:
        return "failure"
    if row.verdict is Verdict.TIMED_OUT:
        return "error"
    return "skipped" if row.verdict in SKIPPED else ""


def lines_of(row: Row) -> Iterator[str]:
    """What there is to say of a claim that does not hold as before."""
    if row.answers_otherwise or row.verdict not in (Verdict.HOLDS, Verdict.SAME):
        yield summary.what_changed(row)
    if row.verdict is Verdict.BROKEN and summary.rests_on(row):
        yield summary.rests_on(row)


def suite(name: str, found: Sequence[Case], seconds: float, canary: Canary) -> Iterator[str]:
    """The lines of one suite."""
    skipped = str(sum(case.kind == "skipped" for case in found))
    yield f"  <testsuite{attributes(name=name, **totals(found, seconds), skipped=skipped)}>"
    for case in found:
        yield from case_lines(name, case)
    yield f"    <system-out>{escape(summary.verdict(canary))}</system-out>"
    yield "  </testsuite>"


def totals(found: Sequence[Case], seconds: float) -> dict[str, str]:
    """The counts of a suite or of all."""
    return {
        "tests": str(len(found)),
        "failures": str(sum(case.kind == "failure" for case in found)),
        "errors": str(sum(case.kind == "error" for case in found)),
        "time": f"{seconds:.3f}",
    }


def case_lines(suite_name: str, case: Case) -> Iterator[str]:
    """The lines of one test case."""
    yield f"    <testcase{attributes(classname=suite_name, name=case.name, time='0.000')}>"
    body = "\n".join(escape(line) for line in case.lines)
    if case.kind == "skipped":
        yield f"      <skipped{attributes(message=case.message)}/>"
    elif case.kind:
        yield f"      <{case.kind}{attributes(message=case.message, type=case.kind)}>{body}</{case.kind}>"
    if body and case.kind not in ("failure", "error"):
        yield f"      <system-out>{body}</system-out>"
    yield "    </testcase>"


def attributes(**values: str) -> str:
    """XML attributes."""
    return "".join(f' {name}="{escape(text)}"' for name, text in values.items())


def escape(text: str) -> str:
    """Text for content and attributes."""
    safe = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;")
