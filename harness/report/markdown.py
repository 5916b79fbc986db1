"""Markdown for a job summary or for one comment on a pull request, found again by its hidden first line.

Always under a size that the service takes: the least important parts are left out first, and it says so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.gate.events import Event
from harness.gate.model import Change, Finding
from harness.report.formats import RuleLookup, report_format
from harness.report.markdown_text import block, code, code_in_table, plain
from harness.report.run import Run, gather
from harness.report.safety import NO_NAME, shorten
from harness.report.summary import KNOWN_OF_RUNTIMES, caution, faults_tried, heading, runtime_facts, sentence, verdict
from harness.report.table import MAXIMUM_NAMES, Row, Table, cells_of, column_names, entry_table, needs_of

MARKER = "<!-- mcp-harness gate -->"

MAXIMUM_BYTES = 60_000

_RESERVE_BYTES = 1_000
"""For the sentence that says what was left out."""

_LONGEST_TEXT = 1_000
_LONGEST_NAME = 100
_MAXIMUM_RUNTIMES = 12
_SIGNS = {"added": "+ added", "changed": "~ changed", "removed": "- removed"}
_COMMIT = re.compile(r"@[0-9a-f]{7,40}(?: \([^()]*\))?$")


class _Part(NamedTuple):
    """A part whose items can be left out one by one. Importance 1 is served first."""

    name: str
    importance: int
    head: str
    items: tuple[str, ...]
    foot: str = ""


@report_format("markdown")
def render(events: Sequence[Event], rules: RuleLookup) -> str:  # noqa: ARG001 - `explain` shows the rules' own texts
    """The comment, from the verdict to the command that gives the same report locally."""
    run = gather(events)
    top = f"{MARKER}\n{_verdict(run)}\n"
    bottom = f"\nReproduce locally: {code(_command(run))}\n"
    parts = [part for part in _parts(run) if part.items]
    room = MAXIMUM_BYTES - _RESERVE_BYTES - _size(top) - _size(bottom)
    kept, cut = _fit(parts, room)
    note = f"\n_Left out to stay short: {', '.join(cut)} (`--format json` lists all)._\n" if cut else ""
    return top + "".join(map(_text, kept)) + note + bottom


def _fit(parts: Sequence[_Part], room: int) -> tuple[list[_Part], list[str]]:
    """The parts that fit into `room` bytes, in their order, and what was left out of them."""
    kept: dict[str, _Part] = {}
    cut: dict[str, str] = {}
    for part in sorted(parts, key=lambda part: part.importance):
        room -= _size(part.head) + _size(part.foot)
        items = []
        for item in part.items:
            if _size(item) <= room:
                room -= _size(item)
                items.append(item)
        if items:
            kept[part.name] = part._replace(items=tuple(items))
        else:
            room += _size(part.head) + _size(part.foot)
        if len(items) < len(part.items):
            cut[part.name] = f"{len(part.items) - len(items)} of {len(part.items)} {part.name}"
    return [kept[p.name] for p in parts if p.name in kept], [cut[p.name] for p in parts if p.name in cut]


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))


def _text(part: _Part) -> str:
    return part.head + "".join(part.items) + part.foot


def _verdict(run: Run) -> str:
    word, _, counts = verdict(run).partition(" ")
    note = f"\n\n{plain(caution(run))}" if caution(run) else ""
    return f"**{word}** {plain(counts.strip())}\n\n{plain(heading(run))}{note}"


def _command(run: Run) -> str:
    words = ["mcp-harness", "gate", run.started.catalog]
    if run.started.base is not None:
        words += ["--base", _COMMIT.sub("", run.started.base)]
        words += ["--all"] if run.judged_untouched and run.untouched else []
    if not run.started.pinned:
        words += [word for name in run.started.runtimes[:_MAXIMUM_RUNTIMES] for word in ("--runtime", name)]
    return shlex.join(shorten(word, _LONGEST_TEXT) for word in words)


def _parts(run: Run) -> Iterator[_Part]:
    yield _plan("things to do before merging", 1, "Before you merge", "- [ ] ", run.before)
    yield _table_of_changes(run) if run.started.base is not None else _table_of_all(run)
    yield _Part("findings", 2, "\n### Findings\n\n", tuple(_finding(run, f) for f in (*run.findings, *run.allowed)))
    yield _battery(run)
    yield _plan("things to do after merging", 4, "After you merge", "- ", run.after)
    yield _Part(
        "config diffs",
        5,
        "\n<details><summary>What changes in the runtimes' own files</summary>\n",
        tuple(_diff(change, runtime) for change in run.changes for runtime in change.config),
        "\n</details>\n",
    )


def _battery(run: Run) -> _Part:
    facts = runtime_facts(run)
    heads = [line for line in (faults_tried(run), KNOWN_OF_RUNTIMES if facts else "") if line]
    items = (*(f"{_sentence(line)}\n\n" for line in heads), *(f"- {_sentence(fact)}\n" for fact in facts))
    return _Part("lines on the faults tried", 4, "\n", items)


def _plan(name: str, importance: int, title: str, bullet: str, texts: Sequence[str]) -> _Part:
    items = tuple(f"{bullet}{_sentence(text)}\n" for text in texts)
    return _Part(name, importance, f"\n### {title}\n\n", items)


def _sentence(text: str) -> str:
    return plain(shorten(text, _LONGEST_TEXT))


def _finding(run: Run, finding: Finding) -> str:
    place = code(str(finding.place))
    allowance = finding.allowance
    allowed = f" (allowed: {_sentence(allowance.reason)}, {plain(allowance.place)})" if allowance else ""
    what = f"{plain(finding.rule)}: {_sentence(sentence(run, finding))}{allowed}"
    return f"- **{finding.severity.value}** {place} {what}\n"


def _table_of_changes(run: Run) -> _Part:
    judgements = {judgement.entry: judgement for judgement in run.judgements}
    runtimes = run.started.runtimes
    items = []
    for change in run.changes:
        judgement = judgements.get(change.entry) if change.kind != "removed" else None
        cells = cells_of(judgement, runtimes) if judgement else ("-",) * len(runtimes)
        needs = needs_of(judgement) if judgement else "-"
        effects = "<br>".join(map(_sentence, change.consequences))
        kind = _SIGNS.get(change.kind, change.kind)
        items.append(_cells(kind, _name(change.entry), *map(plain, cells), _sentence(needs), effects))
    columns = ("Change", "Entry", *map(plain, column_names(runtimes)), "Before it can start", "What it does")
    return _Part("changed entries", 3, _table_head(columns), tuple(items))


def _table_of_all(run: Run) -> _Part:
    table = entry_table(run.shown_judgements, run.started.runtimes)
    columns = ("Entry", *map(plain, table.columns), "Before it can start")
    items = tuple(_row(row) for row in table.rows)
    return _Part("table rows", 3, _table_head(columns), items, _table_foot(table))


def _row(row: Row) -> str:
    more = len(row.alike) - MAXIMUM_NAMES
    alike = ", ".join(map(_name, row.alike[:MAXIMUM_NAMES])) + (f" and {more} more" if more > 0 else "")
    label = _name(row.label) + (f"<br>and alike: {alike}" if alike else "")
    roots = f"<br>default in {', '.join(map(_name, row.roots))}" if row.roots else ""
    return _cells(label + roots, *map(plain, row.cells), _sentence(row.needs))


def _table_foot(table: Table) -> str:
    return f"\n... and {table.cut} more entries\n" if table.cut else ""


def _table_head(columns: Sequence[str]) -> str:
    return f"\n{_cells(*columns)}{_cells(*('---' for _ in columns))}"


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def _name(text: str) -> str:
    return code_in_table(shorten(text, _LONGEST_NAME) or NO_NAME)


def _diff(change: Change, runtime: str) -> str:
    title = f"\n{code(shorten(change.entry, _LONGEST_TEXT))} on {code(runtime)}\n\n"
    return f"{title}{block(change.config[runtime], 'diff')}\n"
