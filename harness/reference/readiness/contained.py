"""The one place where an unexpected error is turned into a value: readiness is advice and must not break anything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

Answer = TypeVar("Answer")


class Outcome(NamedTuple, Generic[Answer]):
    """Either an answer or the error that stood in its way, as `<Class>: <text>`."""

    answer: Answer | None
    error: str | None


def contained(compute: Callable[[], Answer]) -> Outcome[Answer]:
    """Run a computation so that no error of it reaches the caller.

    Exits and interrupts pass. Needed where one bad entry, or a whole readiness computation that cannot run, must cost
    nothing else (readiness-probe-isolated, offer-options-fallback, warnings-readiness-raises-silent).
    """
    answer: Answer | None = None
    with _Keeper() as keeper:
        answer = compute()
    return Outcome(answer, keeper.error)


class _Keeper:
    """Keeps the text of an error that ends its block, whatever its class: the rule is about errors nobody foresaw."""

    def __init__(self) -> None:
        self.error: str | None = None

    def __enter__(self) -> _Keeper:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if isinstance(error, Exception):
            self.error = error_text(error)
        return isinstance(error, Exception)


def error_text(error: Exception) -> str:
    """How an unexpected error is told: the class and its own text."""
    return f"{type(error).__name__}: {error}"
