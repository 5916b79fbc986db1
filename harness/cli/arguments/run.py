"""What `mcp-harness run` takes."""

from __future__ import annotations

import argparse

from harness.cli.output import add_format
from harness.scenario.tiers import TIERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "scenario", metavar="FILE|ID", help="a scenario file, a failure file, or the id of a shipped scenario (702)"
    )
    parser.add_argument(
        "--runtime",
        action="append",
        metavar="NAME[@VERSION]",
        help="on this runtime alone; repeatable (default: each that the scenario names)",
    )
    parser.add_argument(
        "--tier",
        action="append",
        choices=TIERS,
        help="model: in memory and virtual time (default); process: real processes, files and sockets; "
        "real: the real runtime among them; given twice, the two outcomes are compared",
    )
    choices = parser.add_mutually_exclusive_group()
    choices.add_argument(
        "--seed", type=int, metavar="N", help="draw what runs first, stalls and strikes from this seed"
    )
    choices.add_argument("--decisions", metavar="FILE", help="replay these decisions strictly")
    parser.add_argument("--variant", metavar="NAME", help="with this known-bad variant in place of the right rule")
    parser.add_argument(
        "--points", action="store_true", help="list every switch point first: what `at` of a hold or a fault may be"
    )
    parser.add_argument("--save", metavar="DIR", help="write a failure file there for each run that fails")
    parser.add_argument(
        "--keep",
        metavar="DIR",
        help="write all files of each run there, the rows of its store, and what each process printed, secrets masked",
    )
    add_format(parser)
