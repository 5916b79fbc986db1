"""The operations that answer test vectors.

One pure function each, JSON in, JSON out (see VECTORS in CONTRIBUTING).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Answer = Callable[[dict[str, Any]], Any]


class Operation(NamedTuple):
    """`name` is `area.rule`; `requirements` are the manifest ids that a vector of this operation checks."""

    name: str
    requirements: tuple[str, ...]
    answer: Answer


OPERATIONS: dict[str, Operation] = {}


def operation(name: str, *, requirements: tuple[str, ...]) -> Callable[[Answer], Answer]:
    """Register the decorated function as the answer of operation `name`.

    Its input has passed the schema in OPS.toml.
    """

    def register(answer: Answer) -> Answer:
        OPERATIONS[name] = Operation(name, requirements, answer)
        return answer

    return register
