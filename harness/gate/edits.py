"""Edits of a JSON document that keep it valid and leave the rest of the text as it was written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.gate.model import Edit
from harness.inputs.document import Document, Member, Pointer

BLANKS = " \t\r\n"
_BLANKS_AFTER_BRACE = re.compile(r"[ \t\r\n]*")


def written(value: Any) -> str:
    """A value as it is put into a document."""
    return json.dumps(value, ensure_ascii=False)


def set_value(document: Document, pointer: Pointer, value: Any) -> tuple[Edit, ...]:
    """Replace the value at `pointer`; nothing where the text has no such member."""
    member = document.find(pointer)
    return (Edit(*member.value, written(value)),) if member.pointer == pointer else ()


def rename_key(document: Document, pointer: Pointer, name: str) -> tuple[Edit, ...]:
    """Give the member at `pointer` another key; nothing where the text has no such member."""
    member = document.find(pointer)
    return (Edit(*member.key, written(name)),) if member.pointer == pointer and member.key else ()


def insert_first(document: Document, pointer: Pointer, key: str, value: Any) -> tuple[Edit, ...]:
    """Put a new member at the head of the object at `pointer`, laid out like the one that was first."""
    start = document.find(pointer).value.start + 1
    match = _BLANKS_AFTER_BRACE.match(document.text, start)
    blanks = match[0] if match else ""
    pair = f"{written(key)}: {written(value)}"
    if document.text[start + len(blanks)] == "}":
        return (Edit(start, start, pair),)
    return (Edit(start, start, f"{blanks}{pair},"),)


def remove_later(document: Document, member: Member) -> tuple[Edit, ...]:
    """Take out a member that stands behind another one of the same object, with the comma between them."""
    if member.key is None:
        return ()
    before = document.text[: member.key.start].rstrip(BLANKS)
    if not before.endswith(","):
        return ()
    return (Edit(len(before[:-1].rstrip(BLANKS)), member.value.end, ""),)


def insert_items(document: Document, pointer: Pointer, values: Iterable[Any]) -> tuple[Edit, ...]:
    """Put new items behind the list item at `pointer`; nothing where the text has no such item."""
    member = document.find(pointer)
    if member.pointer != pointer:
        return ()
    return (Edit(member.value.end, member.value.end, "".join(f", {written(value)}" for value in values)),)


def remove_children(document: Document, pointer: Pointer, gone: Iterable[str | int]) -> tuple[Edit, ...]:
    """Take members out of the object, or items out of the list, at `pointer`, with their commas."""
    parent, steps = document.find(pointer), set(gone)
    value = value_at(document.tree, pointer)
    if parent.pointer != pointer or not isinstance(value, dict | list):
        return ()
    children = [document.find((*pointer, step)) for step in (value if isinstance(value, dict) else range(len(value)))]
    children.sort(key=lambda child: child.value.start)
    kept = [child.pointer[-1] not in steps for child in children]
    if not any(kept):
        return (Edit(parent.value.start + 1, parent.value.end - 1, ""),)
    edits: list[Edit] = []
    position = 0
    while position < len(children):
        first = position
        while position < len(children) and not kept[position]:
            position += 1
        if position > first and first > 0:
            edits.append(Edit(children[first - 1].value.end, children[position - 1].value.end, ""))
        elif position > first:
            edits.append(Edit(_start(children[0]), _start(children[position]), ""))
        position += 1
    return tuple(edits)


def _start(member: Member) -> int:
    return (member.key or member.value).start


def value_at(tree: Any, pointer: Pointer) -> Any:
    """What stands at a pointer of a tree that holds it."""
    for step in pointer:
        tree = tree[step]
    return tree


def applied(text: str, edits: tuple[Edit, ...]) -> str:
    """The text with the edits made; their offsets are those of the text as given."""
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
