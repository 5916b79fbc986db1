"""What every prompt says of the servers that are left out, so that the agent knows that their tools are gone.

Source: seed 000 "When a server cannot connect, the server is left out — not the session"; requirements failure-block-*.
It is made when a prompt is built, and kept nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.reference.secrets.blank import is_blank

TAG = "unavailable-mcp-servers"
ERROR_CHARACTERS = 300
INFO = "<info>These MCP servers could not connect. Their tools are not there in this turn.</info>"
INSTRUCTION = (
    "If the task truly needs what one of them offers, say so and stop; do not make up a substitute for it. Otherwise"
    " go on without them."
)
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)?", re.DOTALL)
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
OWN_TAG = re.compile(rf"<(?=\s*/?\s*{TAG})", re.IGNORECASE)


def with_block(prompt: str, record: Sequence[Mapping[str, Any]]) -> str:
    """The prompt with the block behind it. A blank one stays blank: whoever looks for a task finds none."""
    if is_blank(prompt) or not record:
        return prompt
    return f"{prompt}\n\n{block(record)}"


def block(record: Iterable[Mapping[str, Any]]) -> str:
    """The block, one line a server."""
    return "\n".join((f"<{TAG}>", INFO, *map(bullet, record), "", INSTRUCTION, f"</{TAG}>"))


def bullet(entry: Mapping[str, Any]) -> str:
    """A server, why it is left out, and what was said of it; whatever of that is known."""
    said = (flat(entry.get("reason")), flat(entry.get("error"))[:ERROR_CHARACTERS])
    why = ": ".join(part for part in said if part)
    return f"- {flat(entry.get('name'))}{' — ' if why else ''}{why}"


def flat(text: object) -> str:
    """A text in one line that cannot close the block: what a server prints is no instruction to anybody."""
    plain = CONTROLS.sub(" ", ESCAPES.sub("", str(text or "")))
    return OWN_TAG.sub("&lt;", plain.strip(" "))
