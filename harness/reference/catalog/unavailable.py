"""`unavailable`: the breakage that a catalog declares because no local check can see it.

Source: seed 000, "unavailable: the breakage Zimmer cannot detect".
"""

from __future__ import annotations

LIMIT_CHARACTERS = 200
"""A shown reason is at most this long: it is one item of a list that an agent reads."""

ELLIPSIS = "..."


def declared_reason(value: object) -> str | None:
    """The reason with which an entry is declared unavailable, as it is shown; None: nothing declared.

    `value` is the raw field. Only a text with something to read in it declares: there is no boolean
    form, since a reason is required by construction (unavailable-nonstring-ignored).
    """
    if not isinstance(value, str):
        return None
    reason = one_line(value)
    return shortened(reason) if reason else None


def one_line(text: str) -> str:
    """`text` with every run of whitespace made one space and none at the ends.

    Whitespace is Unicode's, NEL, NBSP and the line and paragraph separators included: a reason that kept
    one of them would break the list item it stands in for some reader (unavailable-collapse-unicode-breaks).
    """
    return " ".join(text.split())


def shortened(reason: str) -> str:
    """A one-line reason within the limit, counted in characters: a longer one ends in three dots."""
    if len(reason) <= LIMIT_CHARACTERS:
        return reason
    return reason[: LIMIT_CHARACTERS - len(ELLIPSIS)] + ELLIPSIS
