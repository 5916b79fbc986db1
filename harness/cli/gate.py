"""`mcp-harness gate`: judge a catalog, or what a change to it does."""

from __future__ import annotations

import argparse
import datetime
import difflib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from harness.cli.arguments.gate import GATE_FORMATS, OUT
from harness.cli.keeping import try_folder
from harness.cli.output import TEXT, columns, targets_of
from harness.errors import UserInputError
from harness.gate.assemble import Assembled, GateOptions, assemble
from harness.gate.battery.results import Mode
from harness.gate.engine import run_gate
from harness.gate.events import Event, Finished, Found
from harness.gate.fixes import Fixes, fix_everything
from harness.gate.rule import RULES
from harness.inputs.document import BYTE_ORDER_MARK
from harness.inputs.files import display_path, replace_text
from harness.report.formats import Target, write_reports
from harness.report.masking import mask
from harness.report.safety import visible

_MOST_NAMED = 20
"""So many fixed findings are named."""
_PATIENCE_SECONDS = 2.0
"""How long nothing is said of the battery's progress, and how often from then on."""


def run(arguments: argparse.Namespace) -> int:
    """Run the gate and write its reports. Returns the exit code."""
    began = time.monotonic()
    targets = targets_of(arguments.format, GATE_FORMATS)
    options = GateOptions(
        catalog=arguments.catalog,
        base=arguments.base,
        roots=arguments.roots,
        runtimes=tuple(arguments.runtime),
        secrets=arguments.secrets,
        known_secrets=arguments.known_secrets,
        tools=arguments.tools,
        fail_on=arguments.fail_on,
        every_entry=arguments.every_entry,
    )
    if arguments.out != OUT:
        try_folder(Path(arguments.out), "--out")
    assembled = assemble(options, today=_today())
    _spare_inputs(targets, options, assembled.path)
    request = assembled.request._replace(battery=Mode(arguments.battery), progress=Progress())
    assembled = assembled._replace(request=request)
    events = list(run_gate(request, lambda: time.monotonic() - began))
    if arguments.diff:
        return _show_diff(assembled, fix_everything(assembled.request, events))
    if arguments.fix:
        fixes = fix_everything(assembled.request, events)
        _write_fixes(assembled, fixes)
        finished = fixes.finished._replace(seconds=time.monotonic() - began)
        events = [*fixes.events[:-1], finished]
    events = write_proofs(events, Path(arguments.out))
    _write_stdout(write_reports(events, targets, RULES.get, columns()), targets)
    last = events[-1]
    return last.exit_code if isinstance(last, Finished) else 0


class Progress:
    """Tells on stderr how far the battery is, once it takes long."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, done: int, of: int) -> None:
        """One more entry is done."""
        now = time.monotonic()
        if now - self._told >= _PATIENCE_SECONDS and done < of:
            self._told = now
            print(f"trying faults: {done:,} of {of:,} entries", file=sys.stderr, flush=True)


def write_proofs(events: Sequence[Event], folder: Path) -> list[Event]:
    """Write the scenario files of findings; the events with the places of those that could be written."""
    written: dict[str, str] = {}
    placed: list[Event] = []
    for event in events:
        if isinstance(event, Found) and event.finding.proof is not None and event.finding.allowance is None:
            proof = event.finding.proof
            path = folder / _free_name(proof.name, proof.text, written)
            shown = proof._replace(name=display_path(path)) if _is_written(path, mask(proof.text)) else None
            placed.append(Found(event.finding._replace(proof=shown)))
        else:
            placed.append(event)
    return placed


def _is_written(path: Path, text: str) -> bool:
    """Write a file, its folder first. The verdict does not depend on it: a failure is told and that is all."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
    except OSError as error:
        print(f"{display_path(path)}: cannot be written: {error.strerror}", file=sys.stderr)
        return False
    return True


def _free_name(name: str, text: str, written: dict[str, str]) -> str:
    """The name, with a number where another file of this run has it."""
    stem, number, free = name.removesuffix(".toml"), 1, name
    while written.get(free, text) != text:
        number += 1
        free = f"{stem}-{number}.toml"
    written[free] = text
    return free


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def _spare_inputs(targets: Sequence[Target], options: GateOptions, catalog: Path) -> None:
    """Refuse a report that would overwrite what the gate reads."""
    named = (options.base, options.roots, options.secrets, options.known_secrets, options.tools)
    inputs = {path.resolve() for path in (catalog, *(Path(name) for name in named if name)) if path.exists()}
    for target in targets:
        if target.path is not None and Path(target.path).resolve() in inputs:
            raise UserInputError(
                f"--format: {target.format} would overwrite {target.path}, which the gate reads",
                fix="Name another file.",
            )


def _write_stdout(text: str, targets: Sequence[Target]) -> None:
    """The text report as the terminal takes it; what programs read is UTF-8 wherever it goes."""
    to_stdout = next((target.format for target in targets if target.path is None), TEXT)
    if to_stdout == TEXT or not hasattr(sys.stdout, "buffer"):
        sys.stdout.write(text)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))


def _write_fixes(assembled: Assembled, fixes: Fixes) -> None:
    document = assembled.request.context.document
    if not fixes.findings:
        print("nothing to fix without a decision", file=sys.stderr)
        return
    mark = BYTE_ORDER_MARK if document.has_byte_order_mark and not fixes.drop_byte_order_mark else ""
    replace_text(assembled.path, mark + fixes.text)
    number = f"{fixes.findings} finding{'s' if fixes.findings > 1 else ''}"
    print(f"fixed {number} in {document.name}: {_listed(fixes.named)}", file=sys.stderr)


def _listed(named: Sequence[str]) -> str:
    """What was fixed, as far as a line takes it."""
    more = len(named) - _MOST_NAMED
    shown = ", ".join(visible(mask(name)) for name in named[:_MOST_NAMED])
    return f"{shown} and {more} more" if more > 0 else shown


def _show_diff(assembled: Assembled, fixes: Fixes) -> int:
    document = assembled.request.context.document
    if fixes.drop_byte_order_mark:
        print(f"--fix would also drop the byte-order mark of {document.name}", file=sys.stderr)
    name = Path(document.name).as_posix()
    before, after = (text.splitlines(keepends=True) for text in (document.text, fixes.text))
    for line in difflib.unified_diff(before, after, name, name):
        ending = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
        sys.stdout.write(mask(line) + ending)
    return int(fixes.findings > 0)
