"""What counts as blank in the orchestrator: nothing but white space, by the Unicode property.

`str.isspace` is not the same set: it also takes the separators U+001C to U+001F.
"""

from __future__ import annotations

WHITE_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def is_blank(text: str | None) -> bool:
    """True for None, the empty string and a text of white space alone (secrets-blank-is-missing)."""
    return text is None or not text.strip(WHITE_SPACE)
