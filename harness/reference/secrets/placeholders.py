"""The placeholders of a catalog entry: which names it needs, and a text with its values put in.

Grammar (secrets-grammar): `${NAME}` or `${NAME:-default}`, NAME in upper case, the default any text up to the first
`}`; one pass from left to right. Every other spelling is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from harness.reference.secrets.blank import is_blank

Lookup = Callable[[str], str | None]

PLACEHOLDER = re.compile(r"\$\{([A-Z_][A-Z0-9_]*)(?::-([^}]*))?\}")
ANY_BRACED = re.compile(r"\$\{([^}]+)\}")
"""What AIR's check for survivors takes for a placeholder: at least one character between the braces."""

SCANNED_TABLES = ("env", "headers")
UNSCANNED_MEMBERS = ("command", "cwd", "oauth")
"""Members that end up in a runtime's config, and in which the orchestrator resolves nothing."""


class MissingVariableError(Exception):
    """A required placeholder has no value. `name`: the first missing one in walk order (secrets-missing-error-type)."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Required environment variable '{name}' not set")
        self.name = name


class Variables(NamedTuple):
    """The names in an entry, each once, in scan order. One used with and without a default is in both."""

    required: tuple[str, ...]
    optional: tuple[str, ...]


class ForeignPlaceholder(NamedTuple):
    """A braced text that readiness cannot see. `at` is its path in the entry, `text` the braced text."""

    at: tuple[str | int, ...]
    text: str


def variables(entry: Mapping[str, Any]) -> Variables:
    """The variables of a catalog entry (secrets-required-variable). Texts alone are scanned; all else is skipped."""
    required: dict[str, None] = {}
    optional: dict[str, None] = {}
    for _, text in scanned_texts(entry):
        for name, default in occurrences(text):
            (required if default is None else optional)[name] = None
    return Variables(tuple(required), tuple(optional))


def occurrences(text: str) -> Iterator[tuple[str, str | None]]:
    """Name and default (None: none given) of each placeholder of a text, from left to right."""
    for match in PLACEHOLDER.finditer(text):
        yield match[1], match[2]


def scanned_texts(entry: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Path and text of everything that is resolved in a catalog entry: env, headers, args, url, in this order."""
    for table in SCANNED_TABLES:
        yield from _texts_below((table,), _table(entry.get(table)))
    args = entry.get("args")
    yield from _texts_below(("args",), dict(enumerate(args)) if isinstance(args, list | tuple) else {})
    url = entry.get("url")
    if isinstance(url, str):
        yield ("url",), url


def resolve_text(text: str, lookup: Lookup) -> str:
    """The text with each placeholder replaced by its value or default; values are not scanned again.

    Raises MissingVariableError at the first placeholder that has neither.
    """
    return PLACEHOLDER.sub(lambda match: value_for(match[1], match[2], lookup), text)


def value_for(name: str, default: str | None, lookup: Lookup) -> str:
    """What stands for one placeholder. A blank value is no value (secrets-blank-is-missing)."""
    value = lookup(name)
    if value is not None and not is_blank(value):
        return value
    if default is None:
        raise MissingVariableError(name)
    return default


def foreign_placeholders(entry: Mapping[str, Any]) -> tuple[ForeignPlaceholder, ...]:
    """Braced texts that AIR's check will find and readiness does not see (secrets-foreign-placeholder-lint).

    Those are spellings outside the grammar in env, headers, args or url, and any braced text in command, cwd or oauth.
    """
    found = [
        ForeignPlaceholder(at, braced) for at, text in scanned_texts(entry) for braced in _braced(_with_defaults(text))
    ]
    for member in UNSCANNED_MEMBERS:
        found += [
            ForeignPlaceholder(at, braced)
            for at, text in _all_texts((member,), entry.get(member))
            for braced in _braced(text)
        ]
    return tuple(found)


def _table(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts_below(at: tuple[str | int, ...], members: Mapping[Any, Any]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    for key, value in members.items():
        if isinstance(value, str):
            yield (*at, key), value


def _all_texts(at: tuple[str | int, ...], value: object) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, Mapping):
        for key, member in value.items():
            yield from _all_texts((*at, key), member)
    elif isinstance(value, list | tuple):
        for index, member in enumerate(value):
            yield from _all_texts((*at, index), member)


def _with_defaults(text: str) -> str:
    """A text as it is left when each placeholder gave its default, or else its bare name.

    A nested default leaves a braced text behind, which AIR then refuses (secrets-nested-default-trap).
    """
    return PLACEHOLDER.sub(lambda match: match[1] if match[2] is None else match[2], text)


def _braced(text: str) -> list[str]:
    return [match[0] for match in ANY_BRACED.finditer(text)]
