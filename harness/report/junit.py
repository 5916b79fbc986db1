"""JUnit XML: a test case for each entry on each runtime, and one for each finding about a file.

The shape is that of `schemas/junit.xsd`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.gate.events import Event
from harness.gate.model import Finding, Judgement, Outcome, State
from harness.report.formats import RuleLookup, report_format
from harness.report.run import Run, gather
from harness.report.safety import count, visible
from harness.report.summary import caution, heading, sentence, verdict

_LEFT_OUT = frozenset({State.UNAVAILABLE, State.SKIPPED})


class _Case(NamedTuple):
    """One test case. `skipped` is the reason why there is nothing to fail, `output` what it has to say."""

    name: str
    failures: tuple[Finding, ...]
    skipped: str
    output: tuple[str, ...]


@report_format("junit")
def render(events: Sequence[Event], rules: RuleLookup) -> str:  # noqa: ARG001 - the format has no place for rules
    """The document. Findings that fail the run are failures; the others stand in the output."""
    run = gather(events)
    cases = list(_cases(run))
    suite = _attributes(name=run.started.catalog, **_counts(run, cases))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites{_attributes(name='mcp-harness gate', **_totals(run, cases))}>",
        f"  <testsuite{suite}>",
        "    <properties>",
        *(f"      <property{_attributes(name=name, value=value)}/>" for name, value in _properties(run)),
        "    </properties>",
        *(line for case in cases for line in _case_lines(run, case)),
        f"    <system-out>{_escape(verdict(run))}</system-out>",
        "  </testsuite>",
        "</testsuites>",
    ]
    return "".join(f"{line}\n" for line in lines)


def _cases(run: Run) -> Iterator[_Case]:
    judged = run.shown_judgements
    placed: set[int] = set()
    by_entry: dict[str | None, list[Finding]] = {}
    for finding in (*run.findings, *run.allowed):
        by_entry.setdefault(finding.entry, []).append(finding)
    for judgement in judged:
        for outcome in judgement.outcomes:
            mine = [
                finding
                for finding in by_entry.get(judgement.entry, ())
                if not finding.runtimes or outcome.runtime in finding.runtimes
            ]
            placed.update(map(id, mine))
            yield _entry_case(run, judgement, outcome, mine)
    for finding in (*run.findings, *run.allowed):
        if id(finding) not in placed:
            yield _file_case(run, finding)


def _entry_case(run: Run, judgement: Judgement, outcome: Outcome, findings: Sequence[Finding]) -> _Case:
    detail = f": {outcome.detail}" if outcome.detail else ""
    state = f"{outcome.state.value}{detail}"
    output = [f"state: {state}", f"tools in the first model request: {outcome.first_request}"]
    output += [f"needs {need.kind}: {need.text}" for need in judgement.needs]
    return _Case(
        name=f"{judgement.entry} on {outcome.runtime}",
        failures=_failures(run, findings),
        skipped=state if outcome.state in _LEFT_OUT else "",
        output=(*output, *_remarks(run, findings)),
    )


def _file_case(run: Run, finding: Finding) -> _Case:
    return _Case(f"{finding.rule} at {finding.place}", _failures(run, [finding]), "", tuple(_remarks(run, [finding])))


def _failures(run: Run, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(finding for finding in findings if _fails(run, finding))


def _fails(run: Run, finding: Finding) -> bool:
    return finding.allowance is None and finding.severity.rank <= run.started.fail_on.rank


def _remarks(run: Run, findings: Sequence[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.allowance is not None:
            reason = f"allowed by {finding.allowance.place}, {finding.allowance.reason}"
            yield f"{_line(run, finding)} ({reason})"
        elif not _fails(run, finding):
            yield _line(run, finding)


def _line(run: Run, finding: Finding) -> str:
    return f"{finding.place} {finding.severity.value} {finding.rule} {sentence(run, finding)}"


def _properties(run: Run) -> Iterator[tuple[str, str]]:
    yield "summary", heading(run)
    yield from [("note", caution(run))] if caution(run) else []
    yield "seed", str(run.finished.seed)
    yield "exit_code", str(run.finished.exit_code)
    for runtime in run.started.runtimes:
        yield "runtime", runtime


def _totals(run: Run, cases: Sequence[_Case]) -> dict[str, str]:
    return {
        "tests": str(len(cases)),
        "failures": str(sum(bool(case.failures) for case in cases)),
        "errors": "0",
        "time": f"{run.finished.seconds:.3f}",
    }


def _counts(run: Run, cases: Sequence[_Case]) -> dict[str, str]:
    skipped = sum(bool(case.skipped) and not case.failures for case in cases)
    return {**_totals(run, cases), "skipped": str(skipped)}


def _case_lines(run: Run, case: _Case) -> Iterator[str]:
    yield f"    <testcase{_attributes(classname=run.started.catalog, name=case.name, time='0.000')}>"
    if case.failures:
        yield from _failure_lines(run, case.failures)
    elif case.skipped:
        yield f"      <skipped{_attributes(message=case.skipped)}/>"
    if case.output:
        yield f"      <system-out>{chr(10).join(map(_escape, case.output))}</system-out>"
    yield "    </testcase>"


def _failure_lines(run: Run, failures: Sequence[Finding]) -> Iterator[str]:
    """One element for all: readers of this format look at the first one only."""
    more = f" (and {count(len(failures) - 1, 'more finding')})" if len(failures) > 1 else ""
    head = _attributes(message=failures[0].message + more, type=failures[0].rule)
    body = "\n".join(_escape(_line(run, finding)) for finding in failures)
    yield f"      <failure{head}>{body}</failure>"


def _attributes(**values: str) -> str:
    return "".join(f' {name}="{_escape(value)}"' for name, value in values.items())


def _escape(text: str) -> str:
    """Text for content and attributes. What XML 1.0 forbids has no glyph, so `visible` has replaced it."""
    safe = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;")
