"""The faults that AIR's schema finds, in plain words, and what to write instead."""

from __future__ import annotations

import re
from typing import Any

from harness.gate.wording import KINDS, shown
from harness.inputs.document import Pointer
from harness.reference.catalog.schema import SchemaFault

MISSING = object()
_NUMBER = re.compile(r"\d+")
WANTED = {"must be object": "an object", "must be array": "a list", "must be string": "a text"}
EXAMPLES = {"args": '["-y", "package@1.0.0"]', "default_in_roots": '["root"]', "scopes": '["scope"]'}


def value_at(tree: Any, pointer: Pointer) -> Any:
    """What stands at a pointer; MISSING where there is nothing."""
    for step in pointer:
        if isinstance(tree, dict):
            tree = tree.get(step, MISSING)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return MISSING
    return tree


def place_in_words(pointer: Pointer) -> str:
    """A path within an entry as people write it; `the entry` for the whole."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in pointer[1:]).removeprefix(".")
    return path or "the entry"


def kind_of(value: Any) -> str:
    """What a value is, in words; short flat ones that are no texts as they are written."""
    return KINDS[str] if isinstance(value, str) else shown(value)


def said_of(fault: SchemaFault, pointer: Pointer, value: Any) -> str:
    """What is wrong, without a full stop."""
    place = place_in_words(pointer)
    if fault.rule == "required":
        return f"the entry has no {pointer[-1]}"
    if fault.rule == "type":
        return f"{place} is {kind_of(value)} and has to be {WANTED.get(fault.message, 'of another kind')}"
    if fault.rule == "too_short":
        return f"{place} is empty"
    if fault.rule == "too_long":
        return f"{place} has {len(value)} characters and may have {limit_of(fault)}"
    if fault.rule == "name":
        return "the name holds a character other than letters, digits, _, -, $ and brackets"
    if isinstance(value, str) and value != value.strip():
        return f"{place} has blanks around the address"
    if isinstance(value, str) and ":" not in value.partition("/")[0]:
        return f"{place} is an address without a scheme"
    return f"{place} is no valid address"


def limit_of(fault: SchemaFault) -> str:
    """The most characters, out of what the validator says."""
    found = _NUMBER.search(fault.message)
    return found[0] if found else "fewer"


def fix_of(fault: SchemaFault, pointer: Pointer, value: Any) -> str:
    """What to write instead."""
    place = place_in_words(pointer)
    if fault.rule == "required":
        example = "https://..." if pointer[-1] == "url" else "..."
        return f'Add "{pointer[-1]}": "{example}".'
    if fault.rule == "type":
        return fix_of_type(fault, pointer, value)
    if fault.rule == "too_short":
        return f"Write something in {place}, or leave the field out."
    if fault.rule == "too_long":
        return f"Shorten {place} to {limit_of(fault)} characters."
    if fault.rule == "name":
        return "Rename the server: letters, digits, - and _ work everywhere."
    if isinstance(value, str) and value != value.strip():
        return "Remove the blanks."
    return "Write the whole address, with https:// in front and blanks and odd characters escaped (%20)."


def fix_of_type(fault: SchemaFault, pointer: Pointer, value: Any) -> str:
    """The same for a value of the wrong kind."""
    if fault.message == "must be array":
        return f"Write a list: {EXAMPLES.get(str(pointer[-1]), '[...]')}."
    if fault.message == "must be object":
        return 'Write an object: {"name": "value"}.' if len(pointer) > 1 else 'Write an object with at least a "type".'
    if isinstance(value, bool | int | float):
        return "Put it in quotes."
    return "Leave it out, or write a text." if value is None else "Write one text."
