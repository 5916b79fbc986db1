"""What a person pastes back after consenting in a browser: the address that failed to load, or the code alone.

Source: seed 002 "Manual (paste-back) completion"; requirements flow-manual-accepts-url-or-code,
flow-manual-code-extraction, flow-manual-state-*.
"""

from __future__ import annotations

import re

from harness.reference.oauth.form import decode_form
from harness.reference.secrets.blank import WHITE_SPACE, is_blank

HTTP_URL = re.compile(r"https?://", re.IGNORECASE | re.ASCII)


def pasted_code(pasted: str | None, state: str) -> str | None:
    """The authorization code in a pasted text; None where there is none or where it belongs to another flow.

    Any text is taken, none raises. A bare code that holds a `?` is read as an address and lost: a known defect, kept.
    """
    text = (pasted or "").strip(WHITE_SPACE + "\0")
    if not text:
        return None
    if not is_address(text):
        return text
    fields = decode_form(query_of(text))
    if fields is None or not state_fits(fields.get("state"), state):
        return None
    code = fields.get("code")
    return None if is_blank(code) else code


def is_address(text: str) -> bool:
    """Whether it is read as an address or a query, not as a code."""
    return HTTP_URL.match(text) is not None or "?" in text or "code=" in text


def query_of(address: str) -> str:
    """What is behind the first `?` (all of it where there is none) and before a `#`."""
    _, mark, behind = address.partition("?")
    return (behind if mark else address).partition("#")[0]


def state_fits(returned: str | None, state: str) -> bool:
    """Whether the state is this flow's. None, or a blank one: the form itself has named the flow."""
    return is_blank(returned) or returned == state
