"""What `mcp-harness campaign` takes."""

from __future__ import annotations

import argparse

from harness.cli.output import add_format

FOLDER = "out"
MINUTES = 1.0
FAMILIES = (
    "cold-npx-race",
    "npx-heal",
    "bin-guard",
    "codex-budget",
    "declared-budget",
    "token-chain",
    "oauth-flow",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "--scenario-family", metavar="NAME", help=f"what to play: {', '.join(FAMILIES)}; with --resume its own"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--minutes", type=float, metavar="N", help=f"real time to spend (default: {MINUTES:g})")
    length.add_argument("--runs", type=int, metavar="N", help="play so many runs, however long that takes")
    parser.add_argument("--seed", type=int, metavar="N", help="where the seeds of the runs come from (default: 0)")
    parser.add_argument("--processes", type=int, metavar="N", help="default: one for each core")
    parser.add_argument("--variant", metavar="NAME", help="with this known-bad variant in place of the right rule")
    parser.add_argument("--save", metavar="DIR", help=f"keep failures and state there (default: {FOLDER}/FAMILY-seedN)")
    parser.add_argument("--resume", metavar="DIR", help="go on with the campaign of this folder")
    add_format(parser)
