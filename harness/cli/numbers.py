"""The numbers of the command line: each has a smallest and a largest value, and one line that says so."""

from __future__ import annotations

import math

from harness.errors import UserInputError

LARGEST = 2**63 - 1
"""Of a seed: what the files that keep it can hold."""
MOST_PROCESSES = 64
LONGEST_MINUTES = 7 * 24 * 60
LONGEST_NUMBER = 20
MOST_RUNS = 1_000_000_000


def check_number(value: float | None, option: str, *, least: float = 0, most: float, above: bool = False) -> None:
    """Refuse what lies outside; None, for an option that was not given, is let through. `above`: `least` itself is out.

    Raises UserInputError.
    """
    if value is None or (is_finite(value) and least <= value <= most and not (above and value == least)):
        return
    bounds = f"above {least:,}" if above else f"from {least:,}"
    to = "up to" if above else "to"
    raise UserInputError(f"{option} is {told(value)}", fix=f"Give a number {bounds} {to} {most:,}.")


def is_finite(value: float) -> bool:
    """Whether it is a number at all; whole ones of any length are."""
    return isinstance(value, int) or math.isfinite(value)


def told(value: float) -> str:
    """A number in few characters."""
    text = str(value) if isinstance(value, int) else f"{value:g}"
    return text if len(text) <= LONGEST_NUMBER else f"{text[:LONGEST_NUMBER]}..."
