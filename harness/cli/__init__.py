"""The command line `mcp-harness`: two modules a command, the first imported only when that command is named.

`arguments.NAME` has `add_arguments(parser)`, which is all that help needs. `NAME` has `run(args) -> int` (the exit
code), and is imported once the arguments are right. Reports go to stdout, progress and hints to stderr.

Exit codes: 0 clean, 1 findings or failed checks, 2 unusable input or arguments, 3 what was asked for is not
here, 4 a fault of the harness, 130 interrupted, 141 the reader of stdout went away.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import harness
from harness.cli.ending import Ending
from harness.errors import UserInputError

PROGRAM = "mcp-harness"
NEAR = 0.65
"""How like a command a word must be to be taken for a slip: `dve` and `dev` are, `replay` and `explain` are less."""

# Grouped by the job of whoever calls; the order is the order of the help.
COMMANDS: dict[str, dict[str, str]] = {
    "Gate a catalog change": {
        "gate": "judge an mcp.json on every agent runtime, or what a change to it does",
        "explain": "tell what stands behind any id that a report or a list names, and what to do",
    },
    "Reproduce an incident": {
        "run": "play a scenario, shipped or your own, and show who did what when",
        "scenarios": "list the scenarios that are shipped, with the incidents they stand for and their old bugs",
        "shrink": "make a failure file small, and say it without any choice: holds, ready to commit",
        "campaign": "play a family of scenarios from ever new seeds, and keep each way to fail once",
    },
    "Check a runtime upgrade": {
        "canary": "ask a real version of a runtime what it does, and show what that breaks",
    },
    "For those who work on the harness": {
        "dev": "requirements, known-bad variants and test vectors",
    },
}


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and exit code 2, like all unusable input."""

    def __init__(self, **settings: Any) -> None:
        # A prefix that is unique today is ambiguous tomorrow: scripts must spell options out.
        settings.setdefault("allow_abbrev", False)
        super().__init__(**settings)

    def error(self, message: str) -> NoReturn:
        raise UserInputError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process; never raises."""
    _make_output_safe()
    with Ending(PROGRAM) as ending:
        ending.exit_code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    return ending.exit_code


def _dispatch(arguments: list[str]) -> int:
    end_of_options = next((at for at, text in enumerate(arguments) if not text.startswith("-")), len(arguments))
    top = _top_parser()
    top.parse_args(arguments[:end_of_options])
    if end_of_options == len(arguments):
        top.error(f"no command given; choose one of {', '.join(_summaries())}")
    name = arguments[end_of_options]
    if name not in _summaries():
        top.error(f"unknown command {name!r}{_suggestion(name)}")
    parser = Parser(prog=f"{PROGRAM} {name}", description=f"{_summaries()[name][:1].upper()}{_summaries()[name][1:]}.")
    importlib.import_module(f"harness.cli.arguments.{name}").add_arguments(parser)
    parsed = parser.parse_args(arguments[end_of_options + 1 :])
    exit_code: int = importlib.import_module(f"harness.cli.{name}").run(parsed)
    return exit_code


def _top_parser() -> Parser:
    groups = [
        f"{title}:\n" + "\n".join(f"  {name:<10} {summary}" for name, summary in commands.items())
        for title, commands in COMMANDS.items()
    ]
    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} COMMAND [ARGUMENT...]   ({PROGRAM} COMMAND --help tells a command's own)",
        description=harness.__doc__,
        epilog="\n\n".join(groups),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {harness.__version__}")
    return parser


def _summaries() -> dict[str, str]:
    return {name: summary for commands in COMMANDS.values() for name, summary in commands.items()}


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name, _summaries(), n=1, cutoff=NEAR)
    return f"; did you mean {near[0]!r}?" if near else f"; choose one of {', '.join(_summaries())}"


def _make_output_safe() -> None:
    """A terminal that cannot show a character gets an escape for it, never an exception.

    UTF-8 streams get the same: a lone surrogate (a file name that is no text) has no UTF-8 form either.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started us: what is written goes nowhere
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open until the end
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
