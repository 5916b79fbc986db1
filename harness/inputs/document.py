"""A JSON document that remembers where everything stands, so that a finding can name line and column.

The values are read by the standard library's parser, in the strict sense of RFC 8259: no NaN, no
comments, no trailing commas. The places come from a second pass over the tokens of the text, which by
then is known to be valid (tree-sitter's JSON grammar was tried: it does not know numbers like 0e+0).
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from harness.errors import UserInputError
from harness.inputs.limits import MAXIMUM_DEPTH, MAXIMUM_FILE_BYTES, MAXIMUM_NUMBER_CHARACTERS

BYTE_ORDER_MARK = "\ufeff"
_BRACKETS_AND_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]+')
_LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")

CONFLICT_MARKERS = ("<<<<<<< ", "||||||| ", "=======", ">>>>>>> ")
"""How lines begin that a merge leaves where two changes meet."""

Pointer = tuple[str | int, ...]
"""The path to a value: object keys and list positions, outermost first."""


class Span(NamedTuple):
    """A stretch of the document: half-open offsets in code points."""

    start: int
    end: int


class Position(NamedTuple):
    """A place as an editor counts it: line and column from 1, columns in code points."""

    line: int
    column: int


class Member(NamedTuple):
    """One occurrence of a value in the text. `key` is None for list items and for the document itself.

    `is_dropped`: the same key comes again later in the same object. `counts` is False there, and for all
    that a dropped occurrence holds.
    """

    pointer: Pointer
    key: Span | None
    value: Span
    counts: bool = True
    is_dropped: bool = False


class Document:
    """A parsed JSON document. `name` is how the user names the file; `tree` holds plain Python values.

    >>> Document.parse("mcp.json", b'{"a": 1}').tree
    {'a': 1}
    """

    def __init__(self, name: str, text: str, tree: Any, *, has_byte_order_mark: bool) -> None:
        self.name, self.text, self.tree = name, text, tree
        self.has_byte_order_mark = has_byte_order_mark

    @classmethod
    def parse(cls, name: str, content: bytes) -> Document:
        """Read `content` (UTF-8, with or without a byte-order mark). Raises UserInputError with the place."""
        if len(content) > MAXIMUM_FILE_BYTES:
            raise UserInputError(
                f"the file holds more than the limit of {MAXIMUM_FILE_BYTES:,} bytes",
                file=name,
                fix="Split the catalog, or check that this is the file you meant.",
            )
        text = _decode(name, content)
        has_mark = text.startswith(BYTE_ORDER_MARK)
        text = text.removeprefix(BYTE_ORDER_MARK)
        if not text.strip():
            raise UserInputError("the file is empty", file=name, fix='Write at least "{}".')
        _refuse_depth(name, text)
        return cls(name, text, _load(name, text), has_byte_order_mark=has_mark)

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Every value of the document in file order, repeated keys included."""
        return tuple(_walk(self.text))

    @cached_property
    def _last_members(self) -> dict[Pointer, Member]:
        return {member.pointer: member for member in self.members if member.counts}

    @cached_property
    def duplicates(self) -> tuple[tuple[Member, Member], ...]:
        """Pairs (dropped occurrence, the one that counts) of keys that one object holds more than once.

        What a dropped occurrence holds in its turn is gone with it and not looked at.
        """
        return tuple((member, self._last_members[member.pointer]) for member in self.members if member.is_dropped)

    @cached_property
    def _line_starts(self) -> Sequence[int]:
        return [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", self.text))]

    def find(self, pointer: Pointer) -> Member:
        """The member at `pointer`, or the nearest one above it where the text has no such member."""
        while pointer not in self._last_members:
            pointer = pointer[:-1]
        return self._last_members[pointer]

    def position(self, offset: int) -> Position:
        """Line and column of a code point offset."""
        line = bisect_right(self._line_starts, offset)
        return Position(line, offset - self._line_starts[line - 1] + 1)

    def span_of(self, pointer: Pointer) -> Span:
        """Where an editor should jump for `pointer`: its key where it has one, else its value."""
        member = self.find(pointer)
        return member.key or member.value


def pointer_text(pointer: Pointer) -> str:
    """The RFC 6901 form of a pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in pointer)


def pointer_parts(text: str) -> Pointer:
    """The parts of an RFC 6901 pointer, all as keys (list positions stay texts)."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:])


def _decode(name: str, content: bytes) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserInputError(
            f"byte {error.start} is not UTF-8", file=name, line=line, fix="Save the file as UTF-8."
        ) from None


def _refuse_depth(name: str, text: str) -> None:
    depth = 0
    for match in _BRACKETS_AND_STRINGS.finditer(text):
        if match[0] in "[{":
            depth += 1
            if depth > MAXIMUM_DEPTH:
                line, column = _line_and_column(text, match.start())
                raise UserInputError(
                    f"nesting is deeper than {MAXIMUM_DEPTH} levels",
                    file=name,
                    line=line,
                    column=column,
                    fix="A catalog entry is an object of plain values.",
                )
        elif match[0] in "]}":
            depth -= 1


def _line_and_column(text: str, offset: int) -> Position:
    before = text[:offset]
    line = before.count("\n") + 1
    return Position(line, offset - (before.rfind("\n") + 1) + 1)


class _NotJSONError(ValueError):
    """A literal that Python's reader takes and JSON does not have."""


def _refuse_constant(literal: str) -> Any:
    raise _NotJSONError(f"{literal} is no JSON value")


def _finite(literal: str) -> float:
    number = float(literal)
    if math.isinf(number):
        raise _NotJSONError(f"the number {literal[:20]} is too large for any reader")
    return number


def _integer(literal: str) -> int:
    if len(literal) > MAXIMUM_NUMBER_CHARACTERS:
        raise _NotJSONError(f"a number of {len(literal)} digits is too large for any reader")
    return int(literal)


def _what_to_do(text: str, line: int) -> str:
    """How a text becomes JSON that breaks off in that line."""
    here = text.split("\n")[line - 1]
    if here.startswith(CONFLICT_MARKERS):
        return "This line is a marker of a merge conflict: resolve it first."
    return "Comments and trailing commas are not JSON either."


def _load(name: str, text: str) -> Any:
    try:
        tree = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise UserInputError(
            f"not JSON: {error.msg}",
            file=name,
            line=error.lineno,
            column=error.colno,
            fix=_what_to_do(text, error.lineno),
        ) from None
    except _NotJSONError as error:
        raise UserInputError(f"not JSON: {error}", file=name, fix="Write a plain number, or a string.") from None
    if "\\u" in text:
        _refuse_lone_surrogates(name, tree)
    return tree


def _refuse_lone_surrogates(name: str, tree: Any) -> None:
    pending: list[Any] = [tree]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            pending += value
        elif isinstance(value, str) and _LONE_SURROGATE.search(value):
            raise UserInputError(
                "a \\u escape stands for half a character (a lone surrogate)",
                file=name,
                fix="Write the character itself.",
            )


class _Container:
    """An object or list whose members are being read."""

    def __init__(self, pointer: Pointer, key: Span | None, start: int, *, is_object: bool) -> None:
        self.pointer, self.key, self.start, self.is_object = pointer, key, start, is_object
        self.children: list[_Container | Member] = []
        self.next_key: str = ""
        self.next_key_span: Span | None = None
        self.end = start

    def child_place(self) -> tuple[Pointer, Span | None]:
        """Pointer and key of the value that comes next."""
        part = self.next_key if self.is_object else len(self.children)
        return (*self.pointer, part), self.next_key_span


def _walk(text: str) -> Iterator[Member]:
    """Yield the members of a valid document, parents before children, in file order."""
    root = _Container((), None, 0, is_object=False)
    open_containers = [root]
    for match in _TOKEN.finditer(text):
        token, inner = match[0], open_containers[-1]
        if token in "{[":
            pointer, key = inner.child_place() if inner is not root else ((), None)
            container = _Container(pointer, key, match.start(), is_object=token == "{")
            inner.children.append(container)
            open_containers.append(container)
        elif token in "}]":
            open_containers.pop().end = match.end()
        elif token == ",":
            inner.next_key_span = None
        elif token != ":":
            span = Span(*match.span())
            if inner.is_object and inner.next_key_span is None:
                inner.next_key, inner.next_key_span = json.loads(token), span
            else:
                pointer, key = inner.child_place() if inner is not root else ((), None)
                inner.children.append(Member(pointer, key, span))
    yield from _flatten(root.children[0])


def _flatten(top: _Container | Member) -> Iterator[Member]:
    pending: list[tuple[_Container | Member, bool, bool]] = [(top, True, False)]
    while pending:
        value, counts, is_dropped = pending.pop()
        if isinstance(value, Member):
            yield value._replace(counts=counts, is_dropped=is_dropped)
            continue
        yield Member(value.pointer, value.key, Span(value.start, value.end), counts, is_dropped)
        last = {child.pointer: index for index, child in enumerate(value.children)}
        for index in range(len(value.children) - 1, -1, -1):
            child = value.children[index]
            stays = last[child.pointer] == index
            pending.append((child, counts and stays, counts and not stays))
