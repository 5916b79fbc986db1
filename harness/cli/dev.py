"""`mcp-harness dev`: what those who work on the harness ask of it."""

from __future__ import annotations

import argparse
import importlib


def run(args: argparse.Namespace) -> int:
    """Run the subject's own module, which nobody else pays the import of."""
    module = importlib.import_module(f"harness.cli.dev_{args.subject}")
    exit_code: int = module.run(args)
    return exit_code
