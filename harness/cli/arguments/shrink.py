"""What `mcp-harness shrink` takes."""

from __future__ import annotations

import argparse

from harness.cli.output import add_format

SECONDS = 10.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("failure", metavar="FILE", help="a failure file (*.failure.toml), or one already made smaller")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, metavar="N", help=f"real time to spend (default: {SECONDS:g})"
    )
    parser.add_argument(
        "--keep",
        metavar="RULE|WHO",
        help="which of several failures of the run to keep: a part of the rule's name, or of whom it fell on "
        "(default: what FILE says, which is the gravest: a broken invariant before an expectation)",
    )
    parser.add_argument("--save", metavar="DIR", help="write the results there (default: beside FILE)")
    add_format(parser)
