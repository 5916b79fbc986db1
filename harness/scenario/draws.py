"""Values drawn from a seed by name: another draw beside it changes none of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
BITS = 48


class Draws:
    """Everything that one seed decides. Each draw has a name of its own."""

    __slots__ = ("_prefix",)

    def __init__(self, *parts: object) -> None:
        self._prefix = "/".join(map(str, parts)) + "/"

    def number(self, name: str, below: int) -> int:
        """A whole number from 0 up to, not including, `below`."""
        drawn = hashlib.blake2b((self._prefix + name).encode(), digest_size=BITS // 8).digest()
        return int.from_bytes(drawn, "big") % below

    def choice(self, name: str, options: Sequence[T]) -> T:
        """One of them."""
        return options[self.number(name, len(options))]

    def between(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.number(name, high - low + 1)

    def chance(self, name: str, percent: int) -> bool:
        """True so often in a hundred."""
        return self.number(name, 100) < percent

    def seed(self, name: str) -> int:
        """A seed for something else."""
        return self.number(name, 1 << 31)
