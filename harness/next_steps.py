"""What a report says is to be done next: the same steps in every format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

LEAD = "next:"


class Step(NamedTuple):
    """A command as it is typed, and what it is for, where that is worth a word."""

    command: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.command}   ({self.why})" if self.why else self.command


def step_lines(steps: Iterable[Step]) -> list[str]:
    """A line for each, as text reports have them."""
    return [f"  {'' if number else LEAD:<6}{step}" for number, step in enumerate(steps)]


def step_values(steps: Iterable[Step]) -> list[dict[str, str]]:
    """As reports for programs have them."""
    return [step._asdict() for step in steps]
