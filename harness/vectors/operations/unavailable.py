"""The operations of the area `unavailable`."""

from __future__ import annotations

from typing import Any

from harness.reference.catalog.entry import read_entry
from harness.vectors.registry import operation


@operation(
    "unavailable.normalize",
    requirements=(
        "unavailable-string-is-reason",
        "unavailable-trim-before-test",
        "unavailable-nonstring-ignored",
        "unavailable-collapse-whitespace",
        "unavailable-collapse-unicode-breaks",
        "unavailable-truncate-200",
        "unavailable-any-transport",
        "unavailable-description-never-read",
    ),
)
def unavailable_normalize(given: dict[str, Any]) -> Any:
    """The reason that an entry declares, as shown."""
    return read_entry("server", given["entry"]).unavailable
