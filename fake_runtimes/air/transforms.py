"""AIR's `${VAR}` transforms, the survivor check and the failure text. Standard library alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

# JavaScript's dot: a default ends before any of its four line terminators.
ENVIRONMENT_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^\n\r\u2028\u2029]*?))?\}")
ANY_PLACEHOLDER = re.compile(r"\$\{([^}]+)\}")

Environment = Mapping[str, str]


def interpolate(servers: Mapping[str, Any], environment: Environment, file: Environment | None) -> dict[str, Any]:
    """The servers after the secrets file (if given) and then the environment have been asked, values only."""
    return {name: transform(entry, environment, file) for name, entry in servers.items()}


def transform(value: Any, environment: Environment, file: Environment | None) -> Any:
    """A copy of a JSON value with every text in it transformed; keys are left alone."""
    if isinstance(value, str):
        return transform_text(value, environment, file) if "${" in value else value
    if isinstance(value, Mapping):
        return {key: transform(item, environment, file) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [transform(item, environment, file) for item in value]
    return value


def transform_text(text: str, environment: Environment, file: Environment | None) -> str:
    """One pass of each transform in the order of AIR's extensions; a value is not scanned again by its own
    pass.
    """
    return from_environment(from_secrets_file(text, file) if file is not None else text, environment)


def from_secrets_file(text: str, file: Environment) -> str:
    """The whole text in the braces is the name: `${C:-d}` is looked up as `C:-d`."""
    return ANY_PLACEHOLDER.sub(lambda found: file.get(found[1], found[0]), text)


def from_environment(text: str, environment: Environment) -> str:
    """A defined value counts even when it is empty (unlike a shell's `:-`); else the default; else nothing
    changes.
    """

    def value(found: re.Match[str]) -> str:
        name, default = found[1], found[2]
        if name in environment:
            return environment[name]
        return found[0] if default is None else default

    return ENVIRONMENT_PLACEHOLDER.sub(value, text)


def survivors(value: Any) -> tuple[str, ...]:
    """What still stands inside `${...}` in any text of a JSON value, first seen first, each once; keys do
    not count.
    """
    found = (match[1] for text in texts(value) if "${" in text for match in ANY_PLACEHOLDER.finditer(text))
    return tuple(dict.fromkeys(found))


def texts(value: Any) -> Iterator[str]:
    """Every text among the values of a JSON value, in document order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def placeholder_names(value: Any) -> tuple[str, ...]:
    """The names that the environment transform would ask for."""
    found = (match[1] for text in texts(value) if "${" in text for match in ENVIRONMENT_PLACEHOLDER.finditer(text))
    return tuple(dict.fromkeys(found))


def error_text(target: str, unresolved: tuple[str, ...]) -> str:
    """The line on stderr (AIR 0.3.0) for surviving placeholders, each once; `target` is the folder that was
    prepared.
    """
    names = tuple(dict.fromkeys(unresolved))
    noun = "variable" if len(names) == 1 else "variables"
    listed = ", ".join(f"${{{name}}}" for name in names)
    return (
        f"Error: Unresolved {noun} in {target}: {listed}. "
        "Ensure all variables are provided via environment or a secrets transform."
    )
