"""Rules on servers that uv or pipx fetches and runs."""

from __future__ import annotations

from collections.abc import Iterator

from harness.gate.context import Context, EntryView
from harness.gate.edits import remove_children
from harness.gate.launchers import python
from harness.gate.model import Severity
from harness.gate.python_commands import ASSENTS
from harness.gate.rule import Hit, entry_rule


@entry_rule(
    "MH461",
    Severity.ERROR,
    "a Python launcher without a package",
    why="Without a package or script uvx, uv run and pipx run print how they are used and end, on every launch.",
    fix="Name the package as the first argument after the options.",
    never_starts=True,
)
def no_python_package(_context: Context, view: EntryView) -> Iterator[Hit]:
    run = python(view.fields)
    if run and run.package is None:
        what = "package" if run.fetches else "script or command"
        yield Hit(
            (view.name, "args") if "args" in view.fields else (view.name, "command"),
            f"`{run.form}` is given no {what}, so there is no server that could answer on any runtime.",
        )


@entry_rule(
    "MH462",
    Severity.ERROR,
    "an option that the launcher does not know",
    why=(
        "uvx asks no question before it installs, so it knows no -y: as with any other unknown option in front of the"
        " package it says `unexpected argument` and ends with exit code 2. Options of the server stand behind the"
        " package."
    ),
    fix="Drop it, or put it behind the package where it belongs to the server.",
    covers=("MH461",),
    never_starts=True,
)
def unknown_option(context: Context, view: EntryView) -> Iterator[Hit]:
    run = python(view.fields)
    for position in run.unknown if run else ():
        option = view.fields["args"][position].partition("=")[0]
        assent = option in ASSENTS
        yield Hit(
            (view.name, "args", position),
            f"`{run.form if run else ''}` knows no option {option}"
            + ("" if assent else ", unless it is newer than uv 0.13")
            + ": it ends with an error on every launch.",
            severity=None if assent else Severity.WARNING,
            edits=remove_children(context.document, (view.name, "args"), [position]) if assent else (),
            subject=option,
        )
