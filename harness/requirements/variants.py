"""Known-bad variants: named old bugs that a rule's own check must catch (ARCHITECTURE section 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

Function = Callable[..., Any]


class Variant(NamedTuple):
    """One old (or plausible) bug, which breaks the rules `catches`; or a proposal, which breaks none.

    `replacement` stands in for the function at `target` ("module:qualified.name"). A proposal closes accepted holes:
    `closes` names them. No check can catch it, so that it is judged by the scenarios of those holes alone.
    """

    name: str
    target: str
    catches: tuple[str, ...]
    replacement: Function
    closes: tuple[str, ...] = ()


VARIANTS: dict[str, Variant] = {}


def variant(target: str, *, catches: tuple[str, ...]) -> Callable[[Function], Function]:
    """Register the decorated function as a known-bad stand-in for `target`.

    The variant's name is `<module of the variant>.<function name>`; its docstring says which bug it is.
    """
    if not catches:
        raise ValueError(f"a variant of {target} breaks no rule that is named")
    return registering(target, catches, ())


def proposal(target: str, *, closes: tuple[str, ...]) -> Callable[[Function], Function]:
    """Register the decorated function as a change that would close accepted holes, which are named."""
    if not closes:
        raise ValueError(f"a proposal for {target} closes no hole that is named")
    return registering(target, (), closes)


def registering(target: str, catches: tuple[str, ...], closes: tuple[str, ...]) -> Callable[[Function], Function]:
    """Register the decorated function under its name."""

    def register(replacement: Function) -> Function:
        name = f"{replacement.__module__.rpartition('.')[2]}.{replacement.__name__}"
        VARIANTS[name] = Variant(name, target, catches, replacement, closes)
        return replacement

    return register
