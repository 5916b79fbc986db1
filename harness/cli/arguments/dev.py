"""What `mcp-harness dev` takes."""

from __future__ import annotations

import argparse
from typing import Any

from harness.cli.numbers import LONGEST_NUMBER
from harness.cli.output import TEXT_OR_JSON, add_format

VECTOR_FORMATS = (*TEXT_OR_JSON, "junit")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of `dev requirements`, `dev variants` and `dev vectors`."""
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=True)
    _add_requirements(subjects)
    _add_variants(subjects)
    _add_vectors(subjects)


def _add_requirements(subjects: Any) -> None:
    parser = subjects.add_parser("requirements", help="which rules of the manifest are checked, and what is missing")
    parser.add_argument("areas", nargs="*", metavar="AREA", help="only these areas (default: all)")
    parser.add_argument("--missing", action="store_true", help="list every rule that is not covered, and why")
    add_format(parser, TEXT_OR_JSON)


def _add_variants(subjects: Any) -> None:
    parser = subjects.add_parser("variants", help="put each known-bad variant in place: its checks must catch it")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME-GLOB",
        help="only variants of these names (default: all); with --list also a word of what it breaks, of a rule that "
        "catches it, of a scenario that shows it",
    )
    parser.add_argument(
        "--list", action="store_true", help="run nothing: say of each what it breaks and which rules catch it"
    )
    parser.add_argument("--jobs", type=_positive, default=1, metavar="N", help="processes to spread them over")
    parser.add_argument("--shard", default="1/1", metavar="I/N", help="only the I-th of N equal parts")
    parser.add_argument("--root", default=None, metavar="DIR", help="source tree with the scenarios folder")
    add_format(parser, TEXT_OR_JSON)


def _add_vectors(subjects: Any) -> None:
    parser = subjects.add_parser("vectors", help="language-neutral test vectors of the pure rules")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="every operation with its schemas and the rules it answers for")
    add_format(listing, TEXT_OR_JSON)
    check = actions.add_parser("check", help="answer each vector and compare with what it expects")
    check.add_argument("files", nargs="+", metavar="FILE", help="a file with one vector a line")
    check.add_argument("--op", default="*", metavar="GLOB", help="only vectors of these operations")
    add_format(check, VECTOR_FORMATS)
    export = actions.add_parser("export", help="write the project's own vectors for other implementations")
    export.add_argument("directory", metavar="DIR", help="folder to write to; made if it is missing")


def _positive(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= LONGEST_NUMBER and int(text) >= 1:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from 1")
