"""`--format FORMAT[=PATH]` of every command whose report is one text: repeatable, to standard output or to a file."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.report.formats import Target

TEXT = "text"
"""What is given where nothing is asked for."""
TEXT_OR_JSON = (TEXT, "json")


def add_format(parser: argparse._ActionsContainer, formats: Sequence[str] = TEXT_OR_JSON, *, more: str = "") -> None:
    """The option; `more` ends its help. What it says is read by `targets_of`."""
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        metavar="FORMAT[=PATH]",
        help=f"{', '.join(formats)}; repeatable, PATH - is stdout (default: {TEXT}){more}",
    )


def targets_of(texts: Sequence[str], formats: Sequence[str] = TEXT_OR_JSON) -> list[Target]:
    """Where each report goes. Worth calling before anything is done. Raises UserInputError."""
    from harness.report.formats import check_targets, parse_target  # the help of a command does without

    targets = [parse_target(text, formats) for text in texts or (TEXT,)]
    check_targets(targets)
    return targets


def deliver(targets: Sequence[Target], render: Callable[[str], str]) -> None:
    """Write the report to each place; `render` gives it in a format. Raises UserInputError."""
    from harness.report.formats import write_text  # as above
    from harness.report.wrapping import fitting

    for target in targets:
        with fitting(columns() if target.path is None else None):
            text = render(target.format)
        text = text if text.endswith("\n") else f"{text}\n"
        if target.path is None:
            sys.stdout.write(text)
        else:
            write_text(target.path, text)


def columns() -> int | None:
    """The columns of the terminal that standard output is; None where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
