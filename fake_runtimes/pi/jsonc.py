"""JSON with comments and trailing commas, as Pi's adapter reads it."""

from __future__ import annotations

import re
from typing import Any

from fake_runtimes.text import parse_json

STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)
STRING_OR_TRAILING_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=[ \t\r\n]*[}\]])', re.DOTALL)


def parse_jsonc(text: str) -> Any:
    """The value of the text. Raises JsonTextError (from fake_runtimes.text) and nothing else."""
    bare = STRING_OR_COMMENT.sub(string_kept, text)
    return parse_json(STRING_OR_TRAILING_COMMA.sub(string_kept, bare))


def string_kept(found: re.Match[str]) -> str:
    """Strings stay; what else was matched becomes a blank."""
    return found[0] if found[0].startswith('"') else " "
