"""What `mcp-harness scenarios` takes."""

from __future__ import annotations

import argparse

from harness.cli.output import add_format


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="WORD",
        help="only those with such a word in their id, title, incidents, requirements, runtimes or old bugs",
    )
    add_format(parser)
