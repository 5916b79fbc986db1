"""The form encoding in which browsers and some providers answer (application/x-www-form-urlencoded)."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decode_form(text: str) -> dict[str, str] | None:
    """The fields of a form or a query; of a field that comes twice the last counts. None where it is damaged.

    A field without `=` is there and empty. A `%` without two hex digits, or bytes that are no UTF-8, are damage:
    half a code is no code.
    """
    fields: dict[str, str] = {}
    for pair in filter(None, text.split("&")):
        name, _, value = pair.partition("=")
        decoded = (decode_component(name), decode_component(value))
        if decoded[0] is None or decoded[1] is None:
            return None
        fields[decoded[0]] = decoded[1]
    return fields


def decode_component(text: str) -> str | None:
    """One name or value, `+` being a space; None where it is damaged."""
    if BROKEN_ESCAPE.search(text):
        return None
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeError:
        return None
