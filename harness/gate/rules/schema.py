"""Rules on an entry's shape: what `air validate` refuses, what each runtime makes of it, fields nobody reads."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from harness.gate.context import SCHEMA_KEY, Context, EntryView
from harness.gate.edits import insert_first, rename_key, set_value
from harness.gate.foreign_fields import can_be_renamed, foreign_field, foreign_oauth_field
from harness.gate.judge import outcome
from harness.gate.model import Edit, Severity, State
from harness.gate.nearness import did_you_mean
from harness.gate.rule import Hit, entry_rule
from harness.gate.rules.document import is_wrapper
from harness.gate.wording import joined, shown
from harness.inputs.document import Pointer, pointer_parts
from harness.reference.catalog.schema import SchemaFault, is_uri
from harness.reference.secrets.placeholders import ANY_BRACED

PUBLISHED_TYPES = ("stdio", "sse", "streamable-http")
STREAMABLE_HTTP = "streamable-http"
ALIASES = {
    "http": STREAMABLE_HTTP,
    "https": STREAMABLE_HTTP,
    "streamable": STREAMABLE_HTTP,
    "streamablehttp": STREAMABLE_HTTP,
    "remote": STREAMABLE_HTTP,
    "local": "stdio",
    "command": "stdio",
    "stdin": "stdio",
    "eventstream": "sse",
    "serversentevents": "sse",
}
"""Other hosts' names of the transports, in lower case without separators."""

CONSEQUENT_RULES = ("MH801", "MH802", "MH803", "MH804", "MH805")
"""What the runtimes say of an entry whose transport is wrong; the rules on transports say it themselves."""

_SEPARATORS = re.compile(r"[^a-z0-9]")

HARM = {
    "oauth": "the authorization flow does without the value, or fails where a human waits for it",
    "default_in_roots": "the roots meant do not get the server by default",
    "title": "the lists of servers show it all the same",
    "description": "whoever chooses servers reads it all the same, or nothing",
}
"""What a fault leads to where every runtime takes the entry all the same."""


@entry_rule(
    "MH201",
    Severity.ERROR,
    "an entry that AIR's schema refuses",
    why=(
        "`air validate` checks a catalog by the published schema and fails the whole file for one fault. `air prepare`"
        " does not validate: it writes what it can make of the entry, and the fault shows later, as a server that does"
        " not start on some runtime."
    ),
    fix="Correct the value as the message says.",
    covers=CONSEQUENT_RULES,
)
def schema_fault(context: Context, view: EntryView) -> Iterator[Hit]:
    for pointer, fault in faults_by_entry(context).get(view.name, ()):
        value = value_at(context.tree, pointer)
        yield Hit(
            pointer,
            f"{fault.at} {fault.message}, so `air validate` refuses the catalog;"
            f" {consequence(context, view, pointer)}.",
            edits=as_text(context, pointer, value) if fault.message == "must be string" else (),
            at_value=value is not MISSING and len(pointer) > 1,
            subject=fault.rule,
        )


MISSING = object()


@lru_cache(maxsize=2)  # a run has one context, or two with a base
def faults_by_entry(context: Context) -> Mapping[str, tuple[tuple[Pointer, SchemaFault], ...]]:
    """The schema's faults that no rule of its own tells, one for each place, by entry."""
    places: dict[Pointer, list[SchemaFault]] = defaultdict(list)
    for fault in context.schema_faults:
        places[pointer_in(context.tree, fault.at)].append(fault)
    told: dict[str, list[tuple[Pointer, SchemaFault]]] = defaultdict(list)
    for pointer, faults in places.items():
        if not is_told_elsewhere(context.tree, pointer):
            clearest = next((fault for fault in faults if fault.rule == "type"), faults[0])
            told[str(pointer[0])].append((pointer, clearest))
    return {name: tuple(faults) for name, faults in told.items()}


def is_told_elsewhere(tree: Mapping[str, Any], pointer: Pointer) -> bool:
    """Whether MH103 to MH106 or one of MH203 to MH206 tells the faults at this place."""
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
        tree = child_of(tree, step)
    return tuple(pointer)


def child_of(value: Any, step: str | int) -> Any:
    """One step down a tree; MISSING where there is nothing."""
    if isinstance(value, dict):
        return value.get(step, MISSING)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else MISSING


def value_at(tree: Any, pointer: Pointer) -> Any:
    """What stands at a pointer."""
    for step in pointer:
        tree = child_of(tree, step)
    return tree


def consequence(context: Context, view: EntryView, pointer: Pointer) -> str:
    """What the fault leads to at run time, in words."""
    if view.entry is None:
        return f"for Zimmer {view.name} is no server, so no session can choose it"
    if any(outcome(view, spawn).state in BROKEN for spawn in view.spawns):
        return f"{view.name} is {fates(context, view)}"
    if len(pointer) == 1:
        return "a name takes letters, digits, $, _, - and brackets, and no other program has to read this one"
    return HARM.get(str(pointer[1]), "prepare takes the value unchecked and no runtime is sure to read it")


BROKEN = frozenset({State.NOT_WRITTEN, State.SKIPPED, State.FAILS, State.KILLS_RUN})


def as_text(context: Context, pointer: Pointer, value: Any) -> tuple[Edit, ...]:
    """A number or truth value where a text belongs: the same, in quotes, spelt as it stands in the file."""
    if not isinstance(value, bool | int | float) or pointer[1] not in ("args", "env", "headers"):
        return ()
    return set_value(context.document, pointer, context.document.text[slice(*context.document.find(pointer).value)])


@entry_rule(
    "MH203",
    Severity.ERROR,
    '"type": "http"',
    why=(
        "Zimmer's own documents name `http` as a transport, AIR's schema does not: `air validate` fails the"
        " catalog, while `air prepare` lets the entry through unchecked, so it works until CI validates the file."
    ),
    fix='"type": "streamable-http"',
)
def type_http(context: Context, view: EntryView) -> Iterator[Hit]:
    if view.fields.get("type") == "http":
        yield Hit(
            (view.name, "type"),
            '"type": "http" fails `air validate` for the whole catalog, though prepare would let'
            f" {view.name} through unchecked on every runtime.",
            edits=set_value(context.document, (view.name, "type"), STREAMABLE_HTTP),
            at_value=True,
        )


@entry_rule(
    "MH204",
    Severity.ERROR,
    "an unknown transport",
    why=(
        "A transport is matched exactly, in case and separators. For Zimmer an entry of any other type is neither"
        " stdio nor remote and is left out; AIR passes the word on, and Claude skips a server whose type it does"
        " not know. Nothing in the session says so."
    ),
    fix='Use "stdio", "sse" or "streamable-http".',
    covers=CONSEQUENT_RULES,
)
def unknown_type(context: Context, view: EntryView) -> Iterator[Hit]:
    written = view.fields.get("type")
    if not isinstance(written, str) or written in (*PUBLISHED_TYPES, "http"):
        return
    meant = transport_meant(written, view.fields)
    yield Hit(
        (view.name, "type"),
        f"type {shown(written)} is no transport of AIR's, so {view.name} is {fates(context, view)}"
        + (f"; probably {meant!r} is meant." if meant else "."),
        edits=set_value(context.document, (view.name, "type"), meant) if meant else (),
        at_value=True,
    )


def transport_meant(written: str, fields: Mapping[str, Any]) -> str | None:
    """The published transport that a spelling stands for, if the entry's command or url agrees with it."""
    plain = _SEPARATORS.sub("", written.lower())
    names = {_SEPARATORS.sub("", name): name for name in PUBLISHED_TYPES} | ALIASES
    near = plain if plain in names else did_you_mean(plain, names)
    if near is None:
        return None
    needed = "command" if names[near] == "stdio" else "url"
    other = "url" if needed == "command" else "command"
    return names[near] if needed in fields or other not in fields else None


def fates(context: Context, view: EntryView) -> str:
    """What becomes of an entry on each runtime: `not written on pi@…, skipped on claude@…`."""
    by_state: dict[str, list[str]] = defaultdict(list)
    for spawn in view.spawns:
        by_state[outcome(view, spawn).state.value].append(spawn.runtime.label)
    if not context.runtimes:
        return "left out by Zimmer"
    return ", ".join(f"{TOLD.get(state, state)} {joined(runtimes)}" for state, runtimes in sorted(by_state.items()))


TOLD = {
    "not written": "not written on",
    "skipped": "skipped by",
    "fails": "never connected on",
    "kills the run": "the end of every session on",
    "unavailable": "declared unavailable on",
    "starts": "taken all the same by",
    "authorize": "taken all the same by",
}


@entry_rule(
    "MH205",
    Severity.ERROR,
    "no transport",
    why=(
        "AIR's schema requires a type, and its Claude adapter takes an entry without one for a remote server: the"
        " command is lost and `{}` is written. Claude in turn takes an entry without type for a stdio server and"
        " skips a bare url."
    ),
    fix='Add "type": "stdio" to an entry with a command, "type": "streamable-http" to one with a url.',
    requirements=("catalog-transport-values",),
    covers=CONSEQUENT_RULES,
)
def missing_type(context: Context, view: EntryView) -> Iterator[Hit]:
    if not isinstance(view.raw, dict) or view.fields.get("type") is not None or is_wrapper(view.name, view.raw):
        return
    meant = type_told_by_fields(view.fields)
    lost = "its command" if meant == "stdio" else "the server"
    if "type" in view.fields:
        edits = set_value(context.document, (view.name, "type"), meant) if meant else ()
    else:
        edits = insert_first(context.document, view.pointer, "type", meant) if meant else ()
    yield Hit(
        (view.name, "type"),
        f"{view.name} has no type: `air validate` refuses the catalog (must have required property 'type'), AIR's"
        f" Claude adapter loses {lost}, and it is {fates(context, view)}.",
        edits=edits,
    )


def type_told_by_fields(fields: Mapping[str, Any]) -> str | None:
    """The transport that goes with what the entry has: a command or a url, not both."""
    has_command, has_url = (isinstance(fields.get(field), str) for field in ("command", "url"))
    if has_command == has_url:
        return None
    if has_command:
        return "stdio"
    return "sse" if fields["url"].partition("?")[0].rstrip("/").endswith("/sse") else STREAMABLE_HTTP


@entry_rule(
    "MH206",
    Severity.WARNING,
    "a placeholder in a url",
    why=(
        "The schema's own text says that a url may hold placeholders, and its `uri` format refuses the braces: `air"
        " validate` fails the whole catalog, while prepare resolves the placeholder and writes a good url."
    ),
    fix="Write the address out, or keep this catalog out of `air validate`.",
)
def placeholder_in_url(_context: Context, view: EntryView) -> Iterator[Hit]:
    if is_placeholder_url(view.fields.get("url")):
        yield Hit(
            (view.name, "url"),
            f'the placeholder in the url of {view.name} fails `air validate` (must match format "uri") for the whole'
            " catalog; prepare resolves it on every runtime.",
            at_value=True,
        )


def is_placeholder_url(url: object) -> bool:
    """Whether a url is refused for its placeholders alone."""
    if not isinstance(url, str) or is_uri(url) or not ANY_BRACED.search(url):
        return False
    return any(is_uri(ANY_BRACED.sub(value, url)) for value in ("x", "1", "https://x", "https://x/"))


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
