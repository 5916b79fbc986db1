"""What a change does to the fields of one entry, told field by field and item by item."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from harness.gate.context import EntryView
from harness.gate.credential_literals import OPTION
from harness.gate.shown_values import (
    DIFFERENCE_NOT_SHOWN,
    HIDDEN,
    LONGEST_ADDRESS,
    LONGEST_SHOWN,
    argument_text,
    cut,
    member_text,
    pair_text,
    plain,
    quoted,
)
from harness.gate.wording import KINDS, shown

MAXIMUM_ARGUMENT_CHANGES = 20
MAXIMUM_COMPARED_ARGUMENTS = 400
"""Of longer lists only the lengths are told: they are no command line that a person wrote."""

ABSENT = "(absent)"
BUDGET_FIELD = "startup_timeout_sec"

_VALUE_NOT_SHOWN = "(value not shown)"
_TABLES = (("env", "env"), ("headers", "header"))
_TOLD_ELSEWHERE = frozenset({"oauth", "unavailable", "default_in_roots"})
_ORDER = ("type", "command", "args", "url", "env", "headers", BUDGET_FIELD)


def field_changes(before: EntryView, after: EntryView) -> Iterator[str]:
    """One sentence for each thing that differs. Roots and credential keys are told by others."""
    if not before.entry or not after.entry:
        was, now = ("a server" if view.entry else "no server" for view in (before, after))
        if was != now:
            yield f"was {was} and is {now} now: its value is {'an' if after.entry else 'no'} object"
    old, new = before.fields, after.fields
    tables = dict(_TABLES)
    for field in dict.fromkeys((*_ORDER, *old, *new)):
        if field in _TOLD_ELSEWHERE or _same(old.get(field), new.get(field)):
            continue
        if field in tables:
            yield from _table_changes(field, tables[field], old.get(field), new.get(field))
        elif field == "args":
            yield from _argument_changes(old.get(field), new.get(field))
        else:
            yield _one_value(field, old.get(field), new.get(field))
    yield from _oauth_changes(old.get("oauth"), new.get("oauth"))
    reasons = [view.entry.unavailable if view.entry else None for view in (before, after)]
    if reasons[0] != reasons[1]:
        yield f"declared unavailable: {' -> '.join('(not declared)' if r is None else r for r in reasons)}"


def _same(old: object, new: object) -> bool:
    """Order counts, and `true` is not 1."""
    return repr(old) == repr(new)


def _one_value(field: str, old: Any, new: Any) -> str:
    limit = LONGEST_ADDRESS if field in ("command", "url") else LONGEST_SHOWN
    return f"{field} {pair_text(_value(field, old), _value(field, new), limit)}"


def _value(field: str, value: Any) -> str:
    if value is None:
        return ABSENT
    if not isinstance(value, str):
        return shown(value) if isinstance(value, bool | int | float) else KINDS[type(value)]
    if field == "command":
        return argument_text(value)
    return quoted(plain(value)) if field in ("type", "url", "title", "description") else member_text(field, value)


def _table_changes(field: str, word: str, old: Any, new: Any) -> Iterator[str]:
    """Each variable or header that is added, removed or changed."""
    if not all(isinstance(table, dict) or table is None for table in (old, new)):
        yield _one_value(field, old, new)
        return
    before, after = old or {}, new or {}
    is_told = False
    for name in dict.fromkeys((*before, *after)):
        if name in before and name in after and _same(before[name], after[name]):
            continue
        is_told = True
        yield f"{word} {quoted(name)} {_member_change(name, before, after)}"
    if not is_told:
        yield f"{field}: the same ones in another order" if before else f"{field} {shown(old)} -> {shown(new)}"


def _member_change(name: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    if name not in after:
        return "removed"
    new = member_text(name, after[name])
    if name not in before:
        return f"added {_VALUE_NOT_SHOWN}" if new == HIDDEN else f"added: {cut(new)}"
    old = member_text(name, before[name])
    if HIDDEN in (old, new) and old == new:
        return f"changed {_VALUE_NOT_SHOWN}"
    told = pair_text(old, new)
    return told if told == DIFFERENCE_NOT_SHOWN else f"changed: {told}"


def _argument_changes(old: Any, new: Any) -> Iterator[str]:
    """Arguments by position: of the new list, of the old one for what is removed."""
    if not all(isinstance(args, list) or args is None for args in (old, new)):
        yield _one_value("args", old, new)
        return
    before, after = list(old or ()), list(new or ())
    if max(len(before), len(after)) > MAXIMUM_COMPARED_ARGUMENTS:
        yield f"args differ: {len(before):,} of them before, {len(after):,} now"
        return
    told = list(_argument_steps(before, after))
    yield from told[:MAXIMUM_ARGUMENT_CHANGES]
    if len(told) > MAXIMUM_ARGUMENT_CHANGES:
        yield f"args: {len(told) - MAXIMUM_ARGUMENT_CHANGES} more changes"
    if not told:
        yield f"args {ABSENT if old is None else 'a list'} -> {ABSENT if new is None else 'a list'}"


def _argument_steps(before: Sequence[Any], after: Sequence[Any]) -> Iterator[str]:
    """Place by place where that is the shortest tale, else what was taken out and put in."""
    was, now = ([json.dumps(argument, sort_keys=True) for argument in side] for side in (before, after))
    steps = [step for step in SequenceMatcher(None, was, now, autojunk=False).get_opcodes() if step[0] != "equal"]
    moved = sum(end - start + new_end - new_start for _, start, end, new_start, new_end in steps)
    differing = [index for index, (old, new) in enumerate(zip(was, now, strict=False)) if old != new]
    if len(before) == len(after) and len(differing) <= moved:
        for index in differing:
            yield _replaced(before, index, after, index)
        return
    for _, start, end, new_start, new_end in steps:
        if end - start == new_end - new_start:
            for offset in range(end - start):
                yield _replaced(before, start + offset, after, new_start + offset)
        else:
            yield from _run_of_arguments(before, start, end, "removed")
            yield from _run_of_arguments(after, new_start, new_end, "added")


def _replaced(before: Sequence[Any], old: int, after: Sequence[Any], new: int) -> str:
    return f"args[{new}] {pair_text(_argument(before, old), _argument(after, new), LONGEST_ADDRESS)}"


def _run_of_arguments(args: Sequence[Any], start: int, end: int, what: str) -> Iterator[str]:
    """Neighbours in one sentence, as many as can be read."""
    texts: list[str] = []
    for index in range(start, end):
        text = cut(_argument(args, index), LONGEST_ADDRESS)
        if texts and len(" ".join((*texts, text))) > LONGEST_ADDRESS:
            yield _run_text(index, texts, what)
            texts = []
        texts.append(text)
    if texts:
        yield _run_text(end, texts, what)


def _run_text(end: int, texts: Sequence[str], what: str) -> str:
    first = end - len(texts)
    places = f"args[{first}]" if len(texts) == 1 else f"args[{first}] to [{end - 1}]"
    return f"{places} {what}: {' '.join(texts)}"


def _argument(args: Sequence[Any], index: int) -> str:
    option = OPTION.match(args[index - 1]) if index and isinstance(args[index - 1], str) else None
    return argument_text(args[index], option[1] if option and option[2] is None else None)


def _oauth_changes(old: object, new: object) -> Iterator[str]:
    """The members of the `oauth` block that differ; a client's secret is not shown. No stored key depends on it."""
    before, after = (block if isinstance(block, dict) else {} for block in (old, new))
    moved = []
    for field in dict.fromkeys((*before, *after)):
        if not _same(before.get(field), after.get(field)):
            values = [_oauth_value(field, block.get(field)) for block in (before, after)]
            moved.append(f"{field} {'(not shown)' if HIDDEN in values else pair_text(values[0], values[1])}")
    if moved:
        yield f"oauth {', '.join(moved)}: new authorizations use it, stored credentials stay as they are"


def _oauth_value(field: str, value: object) -> str:
    if value is None:
        return ABSENT
    return HIDDEN if "secret" in field.lower() else plain(shown(value))
