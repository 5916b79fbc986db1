"""What `mcp-harness explain` takes."""

from __future__ import annotations

import argparse

WHAT = (
    "what a report names: a rule of the gate (MH203), a requirement (prepare-canary-budgets), a claim of the canary "
    "(codex.wait.optional), a line of a profile (optional_grace_ms), a scenario (702), an invariant "
    "(losses-are-named), an accepted hole (answer-lost), a known-bad variant (chains.nothing_is_adopted), an incident "
    "(#702) or a bug (openai/codex#17265), a version, a family, a mark, a probe, an area, an operation of the test "
    "vectors; without one: list the rules of the gate"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.add_argument("ids", nargs="*", metavar="ID", help=WHAT)
