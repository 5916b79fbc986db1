"""`mcp-harness explain ID`: what stands behind an id that a report names, whatever it is the id of."""

from __future__ import annotations

import argparse

from harness.cli.explaining.kinds import explained, rules
from harness.cli.output import columns
from harness.report.wrapping import fitting


def run(arguments: argparse.Namespace) -> int:
    """Print what was asked for, or the list of all rules of the gate. Raises UserInputError."""
    if arguments.ids:
        with fitting(columns()):
            print("\n\n".join([explained(text) for text in arguments.ids]))
    else:
        print("\n".join(f"{rule.id}  {rule.severity:<8} {rule.title}" for rule in rules()))
    return 0
