"""The report for a terminal: worst first, a finding a line, readable without colour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.gate.events import Event
from harness.gate.model import Change, Finding
from harness.report.formats import RuleLookup, report_format
from harness.report.run import Run, gather
from harness.report.safety import NO_NAME, display_width, pad, shorten, visible
from harness.report.summary import KNOWN_OF_RUNTIMES, caution, faults_tried, heading, runtime_facts, sentence, verdict
from harness.report.table import MAXIMUM_NAMES, NO_NEED, Row, Table, entry_table
from harness.report.wrapping import width, wrapped

MAXIMUM_FINDINGS_OF_A_RULE = 200
MAXIMUM_CHANGES = 100

CHANGE_SIGNS = {"added": "+", "changed": "~", "removed": "-"}

_LEGEND_LATE = "late: its tools miss the first model request"
_LEGEND_UNSEEN = "unseen: no model request ever lists its tools"
_NARROWEST_LABEL = 24
_NARROWEST_CELL = 9
_NARROWEST_NEEDS = 20
"""With less room than this beside the cells, what is needed stands below them."""
_GAP = 1
_WIDEST_PLACE = 40
_WIDEST_CHANGE_NAME = 24
_LABEL_WIDTH = 19


@report_format("text")
def render(events: Sequence[Event], rules: RuleLookup) -> str:  # noqa: ARG001 - the rules' own texts are for `explain`
    """The whole report; the last line says verdict, counts, time, seed and exit code."""
    run = gather(events)
    head = [*wrapped("", heading(run), "  "), *(wrapped("  note: ", caution(run), "    ") if caution(run) else ())]
    blocks = [head, _table(run), list(_findings(run))]
    if run.started.base is not None:
        blocks.append([*_changes(run.changes), *_plans(run)])
    lines = [line for block in blocks if block for line in (*block, "")]
    return "".join(f"{_harmless(line.rstrip())}\n" for line in (*lines, _last_line(run)))


def _harmless(line: str) -> str:
    """No line may be taken for a command by a build service that reads the output."""
    return line.replace("::", ":\\:").replace("##[", "#\\#[") if _looks_like_a_command(line) else line


def _looks_like_a_command(line: str) -> bool:
    return line.lstrip().startswith("::") or "##[" in line


def _table(run: Run) -> list[str]:
    judgements = run.shown_judgements
    if not judgements:
        return []
    table = entry_table(judgements, run.started.runtimes)
    label_width = max(_NARROWEST_LABEL, *(display_width(_label(row)) for row in table.rows)) + _GAP
    words = [*table.columns, *(cell for row in table.rows for cell in row.cells)]
    cell_width = max(_NARROWEST_CELL, *map(display_width, words)) + _GAP
    lines = _row_lines("ENTRY", table.columns, "BEFORE IT CAN START", label_width, cell_width)
    explained: set[tuple[str, ...]] = set()
    for row in table.rows:
        needs = row.needs
        if row.roots and row.roots not in explained:
            explained.add(row.roots)
            needs = f"{pad(needs, 12)} {_roots_legend(row.roots)}"
        lines += _row_lines(_label(row), row.cells, needs, label_width, cell_width)
        lines += _alike_lines(row)
    return [*lines, *_table_foot(table)]


def _label(row: Row) -> str:
    return f"{row.label}  *" if row.roots else row.label


def _row_lines(label: str, cells: Sequence[str], needs: str, label_width: int, cell_width: int) -> list[str]:
    head = f"  {pad(label, label_width)}{''.join(pad(cell, cell_width) for cell in cells)}"
    line = head + needs
    if display_width(line) <= width():
        return [line]
    if display_width(head) > width() - _NARROWEST_NEEDS:
        return [head, *wrapped(" " * 6, needs, " " * 8)]
    return wrapped(head, needs, " " * min(display_width(head), width() // 2 + _NARROWEST_LABEL))


def _roots_legend(roots: Sequence[str]) -> str:
    return f"(* default in {'root' if len(roots) == 1 else 'roots'} {', '.join(map(visible, roots))})"


def _alike_lines(row: Row) -> list[str]:
    if not row.alike:
        return []
    more = len(row.alike) - MAXIMUM_NAMES
    names = ", ".join(row.alike[:MAXIMUM_NAMES]) + (f" and {more} more" if more > 0 else "")
    return wrapped("  ", f"{names}: same on every runtime as {row.label}", "    ")


def _table_foot(table: Table) -> list[str]:
    notes = [note for wanted, note in ((table.has_late, _LEGEND_LATE), (table.has_unseen, _LEGEND_UNSEEN)) if wanted]
    lines = [f"  ... and {table.cut} more (--format json lists all)"] if table.cut else []
    return lines + ([f"  ({'; '.join(notes)})"] if notes else [])


def _findings(run: Run) -> Iterator[str]:
    shown, cut = cut_findings(run.findings)
    widest = max((len(visible(str(finding.place))) for finding in shown), default=0)
    for finding in shown:
        place = pad(visible(str(finding.place)), min(widest, _WIDEST_PLACE))
        head = f"  {place} {finding.severity.value:<7} {visible(finding.rule)} "
        hanging = " " * (display_width(head) if widest <= _WIDEST_PLACE else 8)
        yield from wrapped(head, sentence(run, finding), hanging)
    for rule, number in cut.items():
        yield f"  ... and {number} more of {visible(rule)} (--format json lists all)"
    if run.tried is not None:
        yield from wrapped("  ", faults_tried(run), "    ")
        facts = runtime_facts(run)
        yield from [f"  {KNOWN_OF_RUNTIMES}"] if facts else []
        for fact in facts:
            yield from wrapped("    ", fact, "      ")


def cut_findings(findings: Sequence[Finding]) -> tuple[list[Finding], dict[str, int]]:
    """What is listed of each rule, and how many more there are of it."""
    seen: Counter[str] = Counter()
    shown = []
    for finding in findings:
        seen[finding.rule] += 1
        if seen[finding.rule] <= MAXIMUM_FINDINGS_OF_A_RULE:
            shown.append(finding)
    limit = MAXIMUM_FINDINGS_OF_A_RULE
    return shown, {rule: number - limit for rule, number in seen.items() if number > limit}


def _changes(changes: Sequence[Change]) -> Iterator[str]:
    if not changes:
        return
    yield "  WHAT THIS CHANGE DOES"
    names = [shorten(visible(change.entry), width() // 2) or NO_NAME for change in changes[:MAXIMUM_CHANGES]]
    name_width = min(max(map(display_width, names)), _WIDEST_CHANGE_NAME)
    for change, name in zip(changes, names, strict=False):
        head = f"    {CHANGE_SIGNS.get(change.kind, '?')} {pad(name, name_width)} "
        hanging = " " * (name_width + 7)
        for consequence in change.consequences or (change.kind,):
            yield from wrapped(head, visible(consequence), hanging + "  ")
            head = hanging
    if len(changes) > MAXIMUM_CHANGES:
        yield f"    ... and {len(changes) - MAXIMUM_CHANGES} more (--format json lists all)"


def _plans(run: Run) -> Iterator[str]:
    for label, texts in (("  BEFORE YOU MERGE", run.before), ("  AFTER YOU MERGE", run.after)):
        head = pad(label, _LABEL_WIDTH)
        for text in texts:
            yield from wrapped(head, visible(text), " " * (_LABEL_WIDTH + 2))
            head = " " * _LABEL_WIDTH


def _last_line(run: Run) -> str:
    worst = next(iter((*run.findings, *run.allowed)), None)
    hints = [f"explain a rule: mcp-harness explain {visible(worst.rule)}"] if worst else []
    fixable = sum(bool(finding.edits) for finding in run.findings)
    hints += [f"{fixable} can be fixed: --fix, or --diff to see"] if fixable else []
    return verdict(run) + (f"   ({'; '.join(hints)})" if hints else "")


__all__ = ["CHANGE_SIGNS", "NO_NEED", "cut_findings", "render"]
