"""A kind of id, and the lines that tell of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.report.safety import visible
from harness.report.wrapping import wrapped

LABEL = 12
HANGING = " " * (LABEL + 2)


def no_other(_text: str) -> str:
    """Of a kind whose ids are written in one way."""
    return ""


class Kind(NamedTuple):
    """Ids of one kind: what one is called in a sentence, all that there are, and the text about one.

    `meant` gives the id for another spelling, "" where there is none. Upper and lower case need none.
    """

    name: str
    ids: Callable[[], Iterable[str]]
    explain: Callable[[str], str]
    meant: Callable[[str], str] = no_other

    def find(self, text: str) -> str:
        """The id that a text is but for its case; "" where it is none of this kind."""
        return next((each for each in self.ids() if each.casefold() == text.casefold()), "")


def text_of(head: str, lines: Iterable[str], commands: Mapping[str, str] | None = None) -> str:
    """A text: its head, labelled paragraphs, and what to call next, each by its label."""
    told = [head, "", *lines]
    if commands:
        told += ["", *(f"  {label:<{LABEL}}{command}" for label, command in commands.items())]
    return "\n".join(told)


def labelled(label: str, text: str) -> list[str]:
    """A paragraph behind its label; nothing where there is no text."""
    return wrapped(f"  {label:<{LABEL}}", visible(text), HANGING) if text else []


def paragraphs(label: str, texts: Iterable[str]) -> Iterator[str]:
    """A paragraph for each, the label in front of the first."""
    for number, text in enumerate(texts):
        yield from labelled("" if number else label, text)


def listed(label: str, names: Sequence[str], most: int = 0) -> list[str]:
    """Names in one paragraph, of many the first and how many more there are."""
    kept = list(names[:most] if most else names)
    more = [f"and {len(names) - len(kept)} more"] if len(names) > len(kept) else []
    return labelled(label, ", ".join([*kept, *more]))
