"""Known-bad variants: named old bugs that a rule's own check must catch (ARCHITECTURE section 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Function = Callable[..., Any]


class Variant(NamedTuple):
    """One old (or plausible) bug.

    `replacement` stands in for the function at `target` ("module:qualified.name").
    """

    name: str
    target: str
    catches: tuple[str, ...]
    replacement: Function


VARIANTS: dict[str, Variant] = {}


def variant(target: str, *, catches: tuple[str, ...]) -> Callable[[Function], Function]:
    """Register the decorated function as a known-bad stand-in for `target`.

    The variant's name is `<module of the variant>.<function name>`; its docstring says which bug it is.
    """

    def register(replacement: Function) -> Function:
        name = f"{replacement.__module__.rpartition('.')[2]}.{replacement.__name__}"
        VARIANTS[name] = Variant(name, target, catches, replacement)
        return replacement

    return register
