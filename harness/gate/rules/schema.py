"""MH201 and MH207: what `air validate` refuses in an entry, and fields that nobody reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from harness.gate.context import SCHEMA_KEY, Context, EntryView
from harness.gate.edits import remove_children, rename_key, set_value
from harness.gate.foreign_fields import can_be_renamed, foreign_field, foreign_oauth_field
from harness.gate.judge import outcomes_as_written
from harness.gate.model import Edit, Severity, State
from harness.gate.rule import Hit, entry_rule
from harness.gate.rules.document import is_wrapper
from harness.gate.rules.names import name_is_told
from harness.gate.rules.transports import PUBLISHED_TYPES, fates, type_told_by_fields
from harness.gate.rules.urls import is_placeholder_url
from harness.gate.schema_words import MISSING, fix_of, said_of, value_at
from harness.gate.wording import joined
from harness.inputs.document import Pointer, pointer_parts
from harness.reference.catalog.schema import SchemaFault, is_uri

HARM = {
    "oauth": "the authorization flow does without the value, or fails where a human waits for it",
    "default_in_roots": "the roots meant do not get the server by default",
    "title": "the lists of servers show it all the same",
    "description": "whoever chooses servers reads it all the same, or nothing",
}
"""What a fault leads to where every runtime takes the entry all the same."""

STARTING_FIELDS = frozenset({"type", "command", "args", "env", "url", "headers"})
"""Fields that decide what is started or called."""

BROKEN = frozenset({State.NOT_WRITTEN, State.SKIPPED, State.FAILS, State.KILLS_RUN})
UNFIT = {
    "url": "a program has no address",
    "headers": "a program gets no headers; what it has to know it gets in env",
    "oauth": "no runtime authorizes a program",
    "command": "a remote server is called, not started",
    "args": "a remote server is called, not started",
}
"""Why a field does not go with the entry's type."""


class Told(NamedTuple):
    """One mistake: the schema's faults that it leads to, at the place where it stands."""

    pointer: Pointer
    faults: tuple[SchemaFault, ...]

    @property
    def fields(self) -> frozenset[str]:
        """The members of the entry that the faults are about."""
        return frozenset(map(field_of, self.faults)) - {""}


def field_of(fault: SchemaFault) -> str:
    """The member of its entry that a fault is about; empty for the entry itself and its name."""
    return str(next(iter(pointer_parts(fault.at)[1:2]), ""))


@entry_rule(
    "MH201",
    Severity.ERROR,
    "an entry that AIR's schema refuses",
    why=(
        "`air validate` checks a catalog by the published schema and fails the whole file for one fault. `air prepare`"
        " does not validate: it writes what it can make of the entry, and the fault shows later, as a server that does"
        " not start on some runtime."
    ),
    fix="Write the value as the schema wants it; each finding says how.",
)
def schema_fault(context: Context, view: EntryView) -> Iterator[Hit]:
    for told in faults_by_entry(context).get(view.name, ()):
        clearest = told.faults[0]
        if clearest.rule == "forbidden":
            yield unfit_fields(context, view, told)
            continue
        value = value_at(context.tree, told.pointer)
        yield Hit(
            told.pointer,
            f"{said_of(clearest, told.pointer, value)}, so `air validate` refuses the catalog;"
            f" {consequence(context, view, told.pointer)}.",
            fix=fix_of(clearest, told.pointer, value),
            edits=mended(context, clearest, told.pointer, value),
            at_value=value is not MISSING and len(told.pointer) > 1,
            subject=clearest.rule,
        )


def unfit_fields(context: Context, view: EntryView, told: Told) -> Hit:
    """The hit for fields that do not go with the entry's type; where those of the type are missing, that is wrong."""
    kind = view.fields["type"]
    unfit = [field_of(fault) for fault in told.faults if fault.rule == "forbidden"]
    meant = type_told_by_fields(view.fields) if told.pointer[1:] == ("type",) else None
    lacks = next((field_of(fault) for fault in told.faults if fault.rule == "required"), None)
    held = f"holds {joined(unfit)}" + (f" and no {lacks}" if lacks else "")
    if meant:
        fix = f'Write "type": "{meant}".'
        edits = set_value(context.document, (view.name, "type"), meant)
    else:
        fix = f"Remove {joined(unfit)}" + (f", and add {lacks}." if lacks else ", or give the entry the other type.")
        decided = not lacks and contradicts_nothing(view.fields, unfit)
        edits = remove_children(context.document, view.pointer, unfit) if decided else ()
    why = UNFIT.get(unfit[0], "the type does not know it")
    return Hit(
        told.pointer,
        f"an entry of type {kind} {held}: {why}, so `air validate` refuses the catalog;"
        f" {consequence(context, view, (view.name, unfit[0]))}.",
        fix=fix,
        edits=edits,
        at_value=told.pointer[1:] == ("type",),
        subject="forbidden",
    )


def contradicts_nothing(fields: Mapping[str, Any], unfit: Sequence[str]) -> bool:
    """Whether it is plain which type is meant, so that the fields of the other one may go without a decision.

    Empty fields say nothing; of the others there may be one, if it alone makes no server of the other type.
    """
    telling = [field for field in unfit if fields[field]]
    slips = [foreign_field(name) for name in fields]
    meant = {slip.field for slip in slips if slip is not None}
    other = ("command", "args", "env") if "url" in fields else ("url", "headers")
    return not telling or (len(telling) == 1 and telling[0] not in ("command", "url") and not meant.intersection(other))


@lru_cache(maxsize=2)  # a run has one context, or two with a base
def faults_by_entry(context: Context) -> Mapping[str, tuple[Told, ...]]:
    """The schema's faults that no rule of its own tells, one for each mistake, by entry."""
    places: dict[Pointer, list[SchemaFault]] = defaultdict(list)
    for fault in context.schema_faults:
        places[pointer_in(context.tree, fault.at)].append(fault)
    mistakes: dict[str, list[Told]] = defaultdict(list)
    for pointer, faults in places.items():
        if not is_told_elsewhere(context.tree, pointer):
            faults = [fault for fault in faults if fault.rule != "name" or not name_is_told(context, str(pointer[0]))]
            faults.sort(key=lambda fault: fault.rule != "type")
            if faults:
                mistakes[str(pointer[0])].append(Told(pointer, tuple(faults)))
    return {name: tuple(merged(context.tree[name], told)) for name, told in mistakes.items()}


def merged(raw: Any, told: list[Told]) -> Iterator[Told]:
    """Fields that do not go with the type are one mistake, together with the field that the type wants."""
    unfit = [each for each in told if each.faults[0].rule == "forbidden"]
    if not unfit:
        yield from told
        return
    lacking = [each for each in told if each.faults[0].rule == "required" and each.pointer[1] in ("url", "command")]
    order = list(raw)
    unfit.sort(key=lambda each: order.index(each.pointer[1]))
    place = (unfit[0].pointer[0], "type") if lacking else unfit[0].pointer
    yield Told(place, tuple(fault for each in (*unfit, *lacking) for fault in each.faults))
    yield from (each for each in told if each not in unfit and each not in lacking)


def transport_is_wrong(context: Context, view: EntryView) -> bool:
    """Whether an error says already that it is not plain what server the entry is: its type, or fields of both types.

    What simulated spawns show of such an entry is a consequence.
    """
    if view.fields.get("type") not in (*PUBLISHED_TYPES, "http"):
        return True
    told = faults_by_entry(context).get(view.name, ())
    return any(
        fault.rule == "forbidden" or field_of(fault) in STARTING_FIELDS for each in told for fault in each.faults
    )


def is_told_elsewhere(tree: Mapping[str, Any], pointer: Pointer) -> bool:
    """Whether MH103 to MH108 or one of MH203 to MH206 tells the faults at this place."""
    if pointer == (SCHEMA_KEY,) or not pointer:
        return True
    name = str(pointer[0])
    raw = tree[name]
    if is_wrapper(name, raw):
        return pointer[1:] == ("type",)
    if pointer[1:] == ("type",):
        return raw.get("type") is None or isinstance(raw["type"], str)
    return pointer[1:] == ("url",) and is_placeholder_url(raw.get("url"))


def pointer_in(tree: Any, text: str) -> Pointer:
    """The pointer of a fault with list positions as numbers."""
    pointer: list[str | int] = []
    for part in pointer_parts(text):
        step: str | int = int(part) if isinstance(tree, list) else part
        pointer.append(step)
        tree = value_at(tree, (step,))
    return tuple(pointer)


def consequence(context: Context, view: EntryView, pointer: Pointer) -> str:
    """What the fault leads to at run time, in words."""
    if view.entry is None:
        return "for Zimmer this is no server, so no session can choose it"
    if any(outcome.state in BROKEN for outcome in outcomes_as_written(view)):
        return f"the entry is {fates(context, view)}"
    if len(pointer) == 1:
        return "no other program has to read this name"
    return HARM.get(str(pointer[1]), "prepare takes the value unchecked and no runtime is sure to read it")


def mended(context: Context, fault: SchemaFault, pointer: Pointer, value: Any) -> tuple[Edit, ...]:
    """The edit that cannot be wrong: a number or truth value in quotes, an address without the blanks around it."""
    if (
        fault.rule == "type"
        and isinstance(value, bool | int | float)
        and pointer[1:2] in (("args",), ("env",), ("headers",))
    ):
        if len(pointer) < 3:
            return ()
        text = context.document.text[slice(*context.document.find(pointer).value)]
        return set_value(context.document, pointer, text)
    if fault.rule == "uri" and isinstance(value, str) and is_uri(value.strip()):
        return set_value(context.document, pointer, value.strip())
    return ()


def tells_of(context: Context, view: EntryView, words: str) -> bool:
    """Whether a runtime's words about an entry are about a field in which the schema finds a fault as well."""
    fields = frozenset[str]().union(*(told.fields for told in faults_by_entry(context).get(view.name, ())))
    spoken = words.replace("http_headers", "headers")
    if "is not a function" in words:  # Pi's adapter expects texts in these
        return bool(fields & {"args", "env", "headers"})
    return any(names_field(spoken, field) for field in fields)


def names_field(words: str, field: str) -> bool:
    """Whether a text has a field's name as a word of its own, or at the head of a path (`env.A`)."""
    return field in words.replace(".", " ").replace(":", " ").replace("'", " ").replace("(", " ").split()


@entry_rule(
    "MH207",
    Severity.WARNING,
    "a field that nobody reads",
    why=(
        "AIR's schema lets unknown fields pass and its adapters copy a closed list of fields, so a misspelt field"
        " or one of another host reaches no runtime and raises no error: a server goes without its environment, its"
        " headers or its timeout, and the catalog looks right."
    ),
    fix="Use the catalog's own field, or remove this one.",
)
def unread_field(context: Context, view: EntryView) -> Iterator[Hit]:
    if is_wrapper(view.name, view.raw):
        return
    yield from _unread(context, view.pointer, view.fields, "an entry")
    oauth = view.fields.get("oauth")
    if isinstance(oauth, dict):
        yield from _unread(context, (view.name, "oauth"), oauth, "an oauth block")


def _unread(context: Context, pointer: Pointer, members: Mapping[str, Any], of: str) -> Iterator[Hit]:
    for name in members:
        foreign = foreign_field(name) if len(pointer) == 1 else foreign_oauth_field(name)
        if foreign is None:
            continue
        instead = f"; the catalog's own field is {foreign.field!r}" if foreign.field else ""
        place = (*pointer, name)
        yield Hit(
            place,
            f"{name!r} is {foreign.purpose}: as a field of {of} AIR drops it, so it has no effect on any"
            f" runtime{instead}.",
            edits=rename_key(context.document, place, foreign.field)
            if foreign.field and can_be_renamed(name, foreign, members)
            else (),
        )
