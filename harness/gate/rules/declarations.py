"""Rules on `unavailable`, and on descriptions that say in prose what it should say. Source: seed 000."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from harness.gate.context import Context, EntryView
from harness.gate.model import Severity
from harness.gate.rule import Hit, entry_rule
from harness.gate.wording import shown
from harness.reference.catalog.unavailable import LIMIT_CHARACTERS, declared_reason, one_line

FIELD = "unavailable"

_DOWN = r"down(?!\s+(?:a|from|in|the|to)\b)"
_STATUS = rf"(?:unusable|broken|deprecated|unavailable|disabled|offline|{_DOWN}|defunct|discontinued|out of order)"
_NOW = r"(?:currently|temporarily|still|now)"
HIDDEN_DECLARATION = re.compile(
    "|".join(
        (
            r"\u26a0",  # the warning sign, with or without its emoji selector
            r"\bnot (?:yet |currently |really )?(?:usable|working|available|functional|operational|ready)\b",
            r"\bdo(?:es)?(?: not|n['\u2019]t) (?:use(?: this| it| me|\b\W*\Z|\s*[.!:;,(\u2014-])|work\b)",
            rf"(?<!that )(?<!which )\b(?:is|{_NOW}) (?:{_NOW} )?{_STATUS}\b",
            rf"\A\W*{_STATUS}\s*(?:[:.!;,)\]\u2014-]|\Z)",
            rf"[(\[*]\s*{_STATUS}\s*[)\]*:!]",
        )
    ),
    re.IGNORECASE,
)
"""Prose about a server's own state. The words alone do not count: a server may manage broken links."""

SHOUTED = re.compile(r"\b(?:BROKEN|DEPRECATED|UNAVAILABLE|UNUSABLE|DO NOT USE|OFFLINE|DISABLED)\b")


@entry_rule(
    "MH901",
    Severity.WARNING,
    "an `unavailable` that declares nothing",
    why=(
        "The field takes a reason, because somebody will read it: there is no true or false form. Any other value"
        " counts as if the field were absent, so the server is offered as usable and sessions start with it."
    ),
    fix="Write one sentence that says what is broken.",
    requirements=("unavailable-non-string-finding",),
)
def declares_nothing(_context: Context, view: EntryView) -> Iterator[Hit]:
    value = view.fields.get(FIELD)
    if is_no_reason(value):
        yield Hit(
            (view.name, FIELD),
            f"unavailable is {shown(value)}, which declares nothing: every session is offered the server as usable.",
            at_value=True,
        )


def is_no_reason(value: Any) -> bool:
    """Whether something was written that cannot be a reason; an empty text or null says nothing on purpose."""
    return value is not None and not isinstance(value, str)


@entry_rule(
    "MH902",
    Severity.NOTE,
    "a description that warns of the server",
    why=(
        "Nobody but a person reads a description. Readiness, the lists of servers and the warnings of a session"
        " know a broken server by its `unavailable` field alone; with prose in the description it is offered as"
        " usable."
    ),
    fix='Move the warning into "unavailable" as one sentence.',
    requirements=("unavailable-description-lint",),
)
def hidden_declaration(_context: Context, view: EntryView) -> Iterator[Hit]:
    if declared_reason(view.fields.get(FIELD)) is not None:
        return
    for field in ("description", "title"):
        text = view.fields.get(field)
        if isinstance(text, str) and reads_as_unavailable(text):
            yield Hit(
                (view.name, field),
                f"the {field} reads as if the server could not be used, but without an `unavailable` field every"
                " session is offered it as usable.",
                at_value=True,
            )
            return


def reads_as_unavailable(text: str) -> bool:
    """Whether prose speaks of the server's own state as broken."""
    return bool(HIDDEN_DECLARATION.search(text) or SHOUTED.search(text))


@entry_rule(
    "MH903",
    Severity.WARNING,
    "a reason that is not shown as written",
    why=(
        f"A reason is one item of a list that an agent reads: line breaks become blanks, and what is longer than"
        f" {LIMIT_CHARACTERS} characters ends in three dots. What to do instead often stands at the end."
    ),
    fix=f"Say it in one sentence of at most {LIMIT_CHARACTERS} characters.",
)
def reason_is_cut(_context: Context, view: EntryView) -> Iterator[Hit]:
    reason = view.fields.get(FIELD)
    if not isinstance(reason, str):
        return
    length = len(one_line(reason))
    if length > LIMIT_CHARACTERS:
        yield Hit(
            (view.name, FIELD),
            f"the reason is {length} characters long: agents and people read the first {LIMIT_CHARACTERS} only.",
            at_value=True,
        )
    elif "\n" in reason.strip():
        yield Hit(
            (view.name, FIELD),
            "the reason has several lines: agents and people read them as one.",
            severity=Severity.NOTE,
            at_value=True,
        )
