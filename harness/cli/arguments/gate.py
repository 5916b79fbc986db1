"""What `mcp-harness gate` takes."""

from __future__ import annotations

import argparse

from harness.cli.output import add_format
from harness.gate.battery.results import QUICK_ENTRIES, Mode

GATE_FORMATS = ("github", "json", "junit", "markdown", "sarif", "text")
OUT = "out"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument(
        "catalog", nargs="?", metavar="CATALOG", help="the mcp.json (default: the nearest one, upwards)"
    )
    parser.add_argument("--base", metavar="FILE|REF", help="judge what changes against a file or a git revision")
    parser.add_argument(
        "--all", action="store_true", dest="every_entry", help="with --base: judge untouched entries too"
    )
    parser.add_argument("--roots", metavar="FILE", help="the agent roots (default: roots.json beside the catalog)")
    parser.add_argument(
        "--runtime",
        action="append",
        default=[],
        metavar="NAME[@VERSION]",
        help="claude, codex or pi, a version of one, or all; repeatable (default: the three pinned versions)",
    )
    secrets = parser.add_mutually_exclusive_group()
    secrets.add_argument("--secrets", metavar="FILE", help="NAME=value lines or a JSON object; values are never shown")
    secrets.add_argument("--known-secrets", metavar="FILE", help="names of the secrets that exist, one a line")
    parser.add_argument("--tools", metavar="FILE", help='tool names by server, {"server": ["tool", ...]}')
    parser.add_argument(
        "--fail-on", choices=("error", "warning", "note"), help="what makes the exit code 1 (default: error)"
    )
    add_format(parser, GATE_FORMATS)
    parser.add_argument(
        "--battery",
        choices=[mode.value for mode in Mode],
        default=Mode.QUICK.value,
        help=f"try faults on every entry (full), above {QUICK_ENTRIES} entries on one of each shape and on the others"
        " once (quick, the default), or not at all (off)",
    )
    parser.add_argument(
        "--out", metavar="DIR", default=OUT, help=f"where scenario files of findings go (default: {OUT})"
    )
    change = parser.add_mutually_exclusive_group()
    change.add_argument(
        "--fix", action="store_true", help="write the fixes that need no decision, then judge the result"
    )
    change.add_argument(
        "--diff", action="store_true", help="show those fixes as a diff instead; exit 1 if there are any"
    )
