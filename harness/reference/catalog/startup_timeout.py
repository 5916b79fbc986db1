"""`startup_timeout_sec`: how long a server gets to start and answer initialize.

Source: seed 000, "startup_timeout_sec: how long this server gets to start"; incident #113.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple, TypeGuard

SECONDS = 180
"""The default of every server on every runtime. All spellings of it are derived from this number."""

MINIMUM = 5
MAXIMUM = 600
"""The bounds, both inclusive: those Claude Code documents for startupTimeoutSec. No setting moves them."""

FIELD = "startup_timeout_sec"

SHOWN_LIMIT_CHARACTERS = 100
"""How much of a refused value goes into the log."""

Refusal = Literal["not_an_integer", "out_of_range"]


class Accepted(NamedTuple):
    """What became of a declaration: `seconds` where it was accepted, `refused` (a code) where it was not.

    Both are None where nothing was declared.
    """

    seconds: int | None
    refused: Refusal | None


def accept(value: object) -> Accepted:
    """Judge the raw field: a JSON integer from MINIMUM to MAXIMUM counts, all else has no effect.

    A number keeps the spelling it had in JSON: 60.0 and 6e1 are fractions, and `true` is no number,
    although Python calls it an int.
    """
    if value is None:
        return Accepted(None, None)
    if not is_json_integer(value):
        return Accepted(None, "not_an_integer")
    return Accepted(value, None) if MINIMUM <= value <= MAXIMUM else Accepted(None, "out_of_range")


def is_json_integer(value: object) -> TypeGuard[int]:
    """Was this a JSON number without fraction and exponent?"""
    return isinstance(value, int) and not isinstance(value, bool)


def milliseconds(seconds: int) -> int:
    """Seconds as whole milliseconds, as Claude and Pi count."""
    return seconds * 1000


def refusal_warning(server: str, value: object, refused: Refusal) -> str:
    """The line that the application log gets for a refused value: what, where, why, and what applies instead.

    `value` is shown as JSON, so the line stays one line whatever the catalog wrote.
    """
    why = (
        "expected an integer number of seconds"
        if refused == "not_an_integer"
        else f"outside the {MINIMUM}-{MAXIMUM}s range"
    )
    what = f"MCP server {json.dumps(server, ensure_ascii=False)}: {FIELD}={shown(value)}"
    return f"{what}: {why}. Falling back to {SECONDS}s."


def shown(value: object) -> str:
    """A refused value as JSON on one line, cut where it is long; its type's name where JSON cannot say it."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return type(value).__name__
    return text if len(text) <= SHOWN_LIMIT_CHARACTERS else text[: SHOWN_LIMIT_CHARACTERS - 3] + "..."
