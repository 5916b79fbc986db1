"""Rules on the file as a whole: repeated keys, the byte-order mark, `$schema`, the wrapper, odd names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from harness.gate.context import SCHEMA_KEY, Context, EntryView
from harness.gate.edits import insert_first, remove_later, set_value
from harness.gate.model import Edit, Severity
from harness.gate.rule import Hit, catalog_rule, entry_rule
from harness.gate.wording import joined, shown
from harness.inputs.document import Document, Member, Pointer
from harness.reference.catalog.catalog import SWALLOWED_NAMES
from harness.reference.catalog.schema import SCHEMA_URL
from harness.reference.credentials.javascript import is_array_index

WRAPPERS = ("mcpServers", "mcp_servers", "servers", "mcp")
"""Keys under which other hosts keep their map of servers."""

CONNECTION_FIELDS = frozenset({"type", "command", "url", "httpUrl"})


@catalog_rule(
    "MH101",
    Severity.ERROR,
    "a key written twice",
    why=(
        "Every JSON reader involved keeps the last of two equal keys and says nothing about the other. A server"
        " that was added under a name already taken replaces its namesake for every session, and a repeated field"
        " or header silently has another value than the one that was reviewed."
    ),
    fix="Keep one of them, or give the other its own name.",
    requirements=("catalog-duplicate-json-keys",),
)
def key_written_twice(context: Context) -> Iterator[Hit]:
    document = context.document
    for pointer, occurrences in repeated_keys(document).items():
        places = places_shown(document, occurrences)
        what, key = ("server", "this name") if len(pointer) == 1 else ("value", repr(pointer[-1]))
        yield Hit(
            pointer,
            f"{key} is written {len(places)} times ({joined(places)}): every reader keeps the last, so the {what}"
            f" of {joined(places[:-1])} reaches no session on any runtime.",
            edits=drop_copy(document, occurrences),
        )


def places_shown(document: Document, occurrences: list[Member]) -> list[str]:
    """`line 2`, or `line 2 column 7` where two of them share a line."""
    positions = [document.position((member.key or member.value).start) for member in occurrences]
    if len({position.line for position in positions}) == len(positions):
        return [f"line {position.line}" for position in positions]
    return [f"line {position.line} column {position.column}" for position in positions]


def repeated_keys(document: Document) -> dict[Pointer, list[Member]]:
    """All occurrences of each key that one object holds more than once, the one that counts last."""
    dropped: dict[Pointer, list[Member]] = defaultdict(list)
    for lost, _ in document.duplicates:
        dropped[lost.pointer].append(lost)
    return {pointer: [*lost, document.find(pointer)] for pointer, lost in dropped.items()}


def drop_copy(document: Document, occurrences: list[Member]) -> tuple[Edit, ...]:
    """The edit that takes out the second of two equal values. The first keeps its place among its neighbours:
    their order is part of what is hashed for a credential.
    """
    texts = {document.text[slice(*member.value)] for member in occurrences}
    return remove_later(document, occurrences[-1]) if len(occurrences) == 2 and len(texts) == 1 else ()


@catalog_rule(
    "MH102",
    Severity.ERROR,
    "a byte-order mark",
    why=(
        "AIR reads the file with JavaScript's JSON parser, which refuses the mark, and gives a bare parse message"
        " without a path. No catalog is resolved, so Zimmer serves the last good one and no session sees this file."
    ),
    fix="Save the file as UTF-8 without a byte-order mark.",
)
def byte_order_mark(context: Context) -> Iterator[Hit]:
    if context.document.has_byte_order_mark:
        yield Hit(
            (),
            "the file begins with a byte-order mark: AIR's JSON reader refuses the whole file, so sessions go on with"
            " the last good catalog. What is said of the entries holds once the mark is gone.",
        )


@catalog_rule(
    "MH103",
    Severity.WARNING,
    "`$schema` points elsewhere",
    why=(
        "AIR's published schema is the authority for an mcp.json. A key that names another one (the address of a"
        " local copy, say) makes editors and CI check the file by rules that AIR does not have; and AIR takes the"
        " kind of a file in a catalog folder from this key before its name."
    ),
    fix=f'"$schema": "{SCHEMA_URL}"',
    requirements=("catalog-schema-url",),
)
def schema_key(context: Context) -> Iterator[Hit]:
    value = context.tree.get(SCHEMA_KEY, SCHEMA_URL)
    if isinstance(value, str) and not is_published(value):
        yield Hit(
            (SCHEMA_KEY,),
            f"$schema is {shown(value)}: whoever edits this file is not checked by the rules that AIR publishes.",
            edits=set_value(context.document, (SCHEMA_KEY,), SCHEMA_URL),
            at_value=True,
        )


@catalog_rule(
    "MH107",
    Severity.NOTE,
    "no `$schema`",
    why="Without the key editors know no schema for the file, so they check and complete nothing while it is written.",
    fix=f'"$schema": "{SCHEMA_URL}"',
    requirements=("catalog-schema-url",),
)
def no_schema_key(context: Context) -> Iterator[Hit]:
    if SCHEMA_KEY not in context.tree:
        yield Hit(
            (),
            "the file names no $schema: editors check nothing while it is written.",
            edits=insert_first(context.document, (), SCHEMA_KEY, SCHEMA_URL),
        )


@catalog_rule(
    "MH108",
    Severity.ERROR,
    "a `$schema` that is no text",
    why="The key takes an address. `air validate` refuses the whole catalog for any other value.",
    fix=f'"$schema": "{SCHEMA_URL}"',
    requirements=("catalog-schema-url",),
)
def schema_key_is_no_text(context: Context) -> Iterator[Hit]:
    if SCHEMA_KEY in context.tree and not isinstance(context.tree[SCHEMA_KEY], str):
        yield Hit(
            (SCHEMA_KEY,),
            f"$schema is {shown(context.tree[SCHEMA_KEY])}, so `air validate` refuses the catalog.",
            edits=set_value(context.document, (SCHEMA_KEY,), SCHEMA_URL),
            at_value=True,
        )


def is_published(value: object) -> bool:
    """Whether `$schema` names the schema that AIR publishes."""
    return value == SCHEMA_URL


@entry_rule(
    "MH104",
    Severity.ERROR,
    "servers under a wrapper key",
    why=(
        "A catalog is one flat map of name to entry. Claude, Cursor and others wrap theirs in `mcpServers`; AIR"
        " reads such a file as one server of that name without a type, refuses it, and sees none of the servers"
        " inside."
    ),
    fix="Move the servers up one level and drop the wrapper.",
    requirements=("catalog-schema-wrapper-misread",),
    covers=("MH801", "MH802", "MH803", "MH804", "MH805"),
)
def wrapped_servers(context: Context, view: EntryView) -> Iterator[Hit]:
    if is_wrapper(view.name, view.raw):
        inner = list(view.fields)
        inside = f"what is inside ({joined(inner)}) reaches no runtime" if inner else "the file holds no server"
        yield Hit(
            view.pointer,
            f"AIR reads the wrapper as one server without a type (must have required property 'type'): {inside}.",
            edits=unwrap(context.document, context.tree, view.name),
        )


def is_wrapper(name: str, raw: object) -> bool:
    """Whether a member of the catalog is another host's map of servers and no server itself."""
    if (
        name not in WRAPPERS
        or not isinstance(raw, Mapping)
        or not all(isinstance(item, Mapping) for item in raw.values())
    ):
        return False
    return name == WRAPPERS[0] or any(CONNECTION_FIELDS & item.keys() for item in raw.values())


def unwrap(document: Document, tree: Mapping[str, Any], name: str) -> tuple[Edit, ...]:
    """Take the braces of the wrapper away, where that mixes up no names and leaves no empty place."""
    inner = tree[name]
    if not inner or inner.keys() & tree.keys():
        return ()
    member = document.find((name,))
    if member.key is None:
        return ()
    text = document.text
    start = member.value.start + 1
    start += len(text[start:]) - len(text[start:].lstrip())
    end = len(text[: member.value.end - 1].rstrip())
    return (Edit(member.key.start, start, ""), Edit(end, member.value.end, ""))


@catalog_rule(
    "MH105",
    Severity.NOTE,
    "a catalog without entries",
    why="A file without a server is valid and of no use: every list of servers is empty and every root has no default.",
    fix="Add an entry, or check that this is the file you meant.",
)
def no_entries(context: Context) -> Iterator[Hit]:
    if not context.entries:
        yield Hit((), "the catalog holds no entry: no session can choose a server from it.")


@entry_rule(
    "MH106",
    Severity.ERROR,
    "a name that JavaScript swallows or moves",
    why=(
        "AIR keeps the catalog in JavaScript objects. One does not keep the key `__proto__`, so the entry is gone"
        " from the resolved catalog without a word; and names that are whole numbers come first in it, whatever the"
        " file says."
    ),
    fix="Give the server another name.",
    requirements=("catalog-name-js-proto-lint",),
    covers=("MH702",),
)
def swallowed_name(_context: Context, view: EntryView) -> Iterator[Hit]:
    if is_swallowed(view.name):
        yield Hit(
            view.pointer,
            "AIR loses the entry without a word: no session on any runtime can choose it.",
        )
    elif is_array_index(view.name):
        yield Hit(
            view.pointer,
            "AIR lists the server before all others, because its name is a whole number.",
            severity=Severity.NOTE,
        )


def is_swallowed(name: str) -> bool:
    """Whether a JavaScript object does not keep this key."""
    return name in SWALLOWED_NAMES
