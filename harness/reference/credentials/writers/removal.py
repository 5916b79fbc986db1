"""Taking members out of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Removed(NamedTuple):
    """The keys that were there, in the order asked, and the document without them."""

    keys: tuple[str, ...]
    document: dict[str, Any]


def without_keys(document: Mapping[str, Any], keys: Sequence[str]) -> Removed:
    """Exactly the named members go; one that is named twice is removed once."""
    there = tuple(key for key in dict.fromkeys(keys) if key in document)
    return Removed(there, {key: value for key, value in document.items() if key not in there})
