"""Text inside Markdown: nothing that a catalog says may act as markup, mention a person or break a table."""

from __future__ import annotations

import re

from harness.report.safety import visible, visible_lines

_MARKUP = re.compile(r"[\\`*_\[\]|~]")
_INVISIBLE_BREAK = "&#8203;"
_MENTION = re.compile(r"([@#])(?=[A-Za-z0-9])")
_BLOCK_START = re.compile(r"\s*(?:#+|[+-]|\d+[.)])(?:\s|$)")
_BLOCK_MARK = re.compile(r"[#+.)-]")
_BACKTICKS = re.compile(r"`+")
_SHORTEST_FENCE = 3


def plain(text: str) -> str:
    """Ordinary text, one line, shown as it is (also in a table's cell)."""
    safe = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    safe = _MARKUP.sub(r"\\\g<0>", safe)
    if _BLOCK_START.match(safe):
        safe = _BLOCK_MARK.sub(r"\\\g<0>", safe, count=1)
    if safe.count("$") > 1:
        safe = safe.replace("$", "<span>$</span>")  # two of them on a line would enclose a formula
    return _MENTION.sub(_apart, safe)


def _apart(match: re.Match[str]) -> str:
    """A break without width keeps `@name` from notifying anyone and `#12` from linking; entities stay."""
    is_entity = match[1] == "#" and match.string[: match.start()].endswith("&")
    return match[1] if is_entity else match[1] + _INVISIBLE_BREAK


def code(text: str) -> str:
    """A code span that no content can leave."""
    safe = visible(text) or " "
    fence = "`" * (_longest_run(safe) + 1)
    gap = " " if safe.startswith("`") or safe.endswith("`") else ""
    return f"{fence}{gap}{safe}{gap}{fence}"


def code_in_table(text: str) -> str:
    """Code in a table's cell, where `|` would end the cell even inside a span."""
    return f"<code>{plain(text)}</code>" if any(char in text for char in "|\\`") else code(text)


def block(text: str, language: str) -> str:
    """A fenced block that no content can end."""
    lines = "\n".join(visible_lines(text))
    fence = "`" * max(_SHORTEST_FENCE, _longest_run(lines) + 1)
    return f"{fence}{language}\n{lines}\n{fence}"


def _longest_run(text: str) -> int:
    return max(map(len, _BACKTICKS.findall(text)), default=0)
