"""The one predicate that says whether an OAuth flow can apply to a server (seed 002, "The gate").

The listing before a spawn and the routing after a failed handshake both ask `oauth_capable`, so they cannot disagree
(gate-single-predicate).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from harness.reference.catalog.entry import oauth_applies
from harness.reference.secrets.blank import is_blank

CREDENTIAL_WORD = re.compile(
    r"(?:\A|[-_])(?:authorization|auth|api[-_]?key|token|secret|password|credentials?)(?:\Z|[-_])",
    re.IGNORECASE | re.ASCII,
)
"""The words count as whole parts between `-`, `_` and the ends; `key` counts only as the second half of api-key."""


def oauth_capable(entry: Mapping[str, Any] | None) -> bool:
    """True when the entry is in the catalog (not None), is remote, and has no static credential header."""
    if entry is None:
        return False
    return oauth_applies(entry.get("type")) and not has_static_credential(entry.get("headers"))


def has_static_credential(headers: object) -> bool:
    """Whether one header at least is a static credential; null and anything that is no table has none."""
    return isinstance(headers, Mapping) and any(is_credential_header(name, value) for name, value in headers.items())


def is_credential_header(name: str, value: object) -> bool:
    """A header is a static credential by its name, whatever its value looks like, unless that is null or blank."""
    return is_credential_name(name) and not is_blank_value(value)


def is_credential_name(name: str) -> bool:
    """Whether a header name has a credential word as a whole part, in any case (gate-header-words)."""
    return CREDENTIAL_WORD.search(name) is not None


def is_blank_value(value: object) -> bool:
    """Null or a blank text. An unresolved placeholder is not blank, nor is a number (gate-header-blank-value)."""
    return value is None or (isinstance(value, str) and is_blank(value))
