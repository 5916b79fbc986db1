"""Where an editor jumps."""

from __future__ import annotations

from harness.gate.model import Place
from harness.inputs.document import Document, Pointer, pointer_text


def place(document: Document, pointer: Pointer, *, at_value: bool = False) -> Place:
    """The place of `pointer` in a document, or of the nearest value above it that the text holds."""
    member = document.find(pointer)
    span = member.value if at_value else member.key or member.value
    last = span.end if member.pointer else span.start + 1  # the file as a whole is its first character
    start, end = document.position(span.start), document.position(last)
    return Place(document.name, *start, *end, pointer_text(member.pointer))
