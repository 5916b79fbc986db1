"""What `mcp-harness canary` takes."""

from __future__ import annotations

import argparse

from harness.cli.output import add_format

CANARY_FORMATS = ("text", "json", "markdown", "junit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "what",
        nargs="*",
        metavar="RUNTIME@VERSION",
        help="claude@2.1.328, codex@latest, pi@0.86.1+2.36.0, a bare name for the pinned version, or all for the three "
        "pinned ones; or list (all claims, or those about the runtimes named behind it), install RUNTIME@VERSION..., "
        "clean (remove what was installed)",
    )
    what = parser.add_argument_group("what is asked")
    what.add_argument(
        "--claims", action="append", metavar="GLOB", help="only these claims, e.g. 'claude.key.*'; repeatable"
    )
    what.add_argument("--against", metavar="PROFILE", help="hold it against this version (default: the pinned one)")
    what.add_argument(
        "--fakes",
        action="store_true",
        help="ask the fakes too: they must answer as the programs do; with no runtime named: every fake against what "
        "was recorded, without any program",
    )
    what.add_argument("--workers", type=int, metavar="N", help="so many probes at a time (default: one a core)")
    kept = parser.add_argument_group("what is kept")
    kept.add_argument(
        "--write-profile", action="store_true", help="write a profile of the version and ask the fake that has it"
    )
    kept.add_argument(
        "--profiles", metavar="DIR", help="where --write-profile writes (default: among the profiles that there are)"
    )
    kept.add_argument("--record", action="store_true", help="keep what was observed as the record of the version")
    add_format(kept, CANARY_FORMATS, more="; of list: text, json")
    parser.add_argument(
        "--details", action="store_true", help="list in the text every claim that changed, not only how many"
    )
    parser.add_argument(
        "--bisect",
        nargs=2,
        metavar=("CLAIM", "A..B"),
        help="find the versions between two that changed a claim, by installing some of them (how many is said first)",
    )
