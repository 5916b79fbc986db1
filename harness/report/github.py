"""Workflow commands that GitHub Actions shows as annotations on the lines of a change."""

from __future__ import annotations

from collections.abc import Sequence

from harness.gate.events import Event
from harness.gate.model import Finding, Place, Severity
from harness.report.formats import RuleLookup, report_format
from harness.report.run import Run, at_level, gather, seen_from_the_top
from harness.report.safety import count, shorten, visible
from harness.report.summary import caution, sentence, short, verdict

SHOWN_A_LEVEL = 10
"""The service shows no more annotations of one level and step."""

LONGEST_MESSAGE = 4000

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


@report_format("github")
def render(events: Sequence[Event], rules: RuleLookup) -> str:
    """One command a finding, worst first, as many as are shown; what is left is counted in a last notice."""
    run = seen_from_the_top(gather(events))
    errors, warnings, notes = (at_level(run.findings, severity) for severity in Severity)
    cautions = [command("notice", {}, "mcp-harness gate", caution(run))] if caution(run) else []
    kept = [errors[:SHOWN_A_LEVEL], warnings[:SHOWN_A_LEVEL], [*notes, *run.allowed]]
    is_cut = max(len(errors), len(warnings), len(kept[2]) + len(cautions)) > SHOWN_A_LEVEL
    kept[2] = kept[2][: SHOWN_A_LEVEL - is_cut - len(cautions)]
    lines = [*cautions, *(_annotation(run, finding, rules) for group in kept for finding in group)]
    if is_cut:
        lines.append(_closing_notice(run, sum(map(len, kept))))
    lines.append(verdict(run).replace("##[", "#\\#["))
    return "".join(f"{line}\n" for line in lines)


def _annotation(run: Run, finding: Finding, rules: RuleLookup) -> str:
    rule = rules(finding.rule)
    title = f"{finding.rule} {rule.title}" if rule else finding.rule
    message = sentence(run, finding)
    level = _LEVELS[finding.severity]
    if finding.allowance is not None:
        level = "notice"
        message = f"allowed by {short(finding.allowance.place)} ({short(finding.allowance.reason)}): {message}"
    return command(level, _where(finding.place), title, message)


def _where(place: Place) -> dict[str, str]:
    """A column has a meaning only where begin and end are on one line."""
    where = {"file": place.file.removeprefix("./"), "line": str(place.line), "endLine": str(place.end_line)}
    if place.line == place.end_line:
        where |= {"col": str(place.column), "endColumn": str(place.end_column)}
    return where


def _closing_notice(run: Run, shown: int) -> str:
    left = len(run.findings) + len(run.allowed) - shown
    done = run.finished
    message = (
        f"{count(left, 'more finding')} not annotated here: the service shows {SHOWN_A_LEVEL} a level. "
        f"In all: {count(done.errors, 'error')}, {count(done.warnings, 'warning')}, {count(done.notes, 'note')}, "
        f"{done.allowed} allowed. See the job summary."
    )
    return command("notice", {}, "mcp-harness gate", message)


def command(level: str, where: dict[str, str], title: str, message: str) -> str:
    """`::error file=...,line=...,title=...::message`, escaped as the runner decodes it."""
    properties = ",".join(f"{name}={_property(value)}" for name, value in (*where.items(), ("title", title)))
    return f"::{level} {properties}::{_data(shorten(visible(message), LONGEST_MESSAGE))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(visible(text)).replace(":", "%3A").replace(",", "%2C")
