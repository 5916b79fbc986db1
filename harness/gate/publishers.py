"""Who publishes the code that an entry runs: its name without version, tag, digest or extras."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_servers.npm.registry import split_spec
from harness.gate.launchers import command_line
from harness.gate.programs import CONTAINER, IMAGE, INLINE, NPM, PYTHON, SHELL_SCRIPT, Code, code_of

_REQUIREMENT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_SEPARATORS = re.compile(r"[-_.]+")
SOURCE_VARIABLES = frozenset(
    {"NPM_CONFIG_REGISTRY", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "UV_EXTRA_INDEX_URL"}
    | {"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL"}
)
SOURCE_OPTIONS = ("--registry", "--index-url", "--default-index", "--index", "--extra-index-url", "--pip-args")


class Published(NamedTuple):
    """Code as it is published: its kind and its names. `text` is code that stands in the entry itself."""

    kind: str
    names: tuple[str, ...]
    text: str = ""


def published(entry: Mapping[str, Any]) -> Published | None:
    """What an entry runs, whatever its version; None for one that runs nothing."""
    line = command_line(entry)
    code = code_of(entry) if line is not None else None
    if line is None or code is None:
        return None
    is_inline = code.kind == SHELL_SCRIPT or code.kind.startswith(INLINE)
    return Published(code.kind, tuple(sorted(_names(code))), " ".join(line.args) if is_inline else "")


def is_other_publisher(old: Published | None, new: Published | None) -> bool:
    """Whether what runs now is other code than before. A file that only lies elsewhere is taken for the same."""
    if old is None or new is None or old == new:
        return old is None and new is not None
    is_file = new.kind not in (NPM, PYTHON, IMAGE, CONTAINER) and old.kind == new.kind and bool(new.names)
    return not is_file or [name.rpartition("/")[2] for name in old.names] != [
        name.rpartition("/")[2] for name in new.names
    ]


def _names(code: Code) -> tuple[str, ...]:
    match code.kind:
        case kind if kind == NPM:
            return tuple(split_spec(name)[0] for name in code.names)
        case kind if kind == PYTHON:
            return tuple(map(_python_name, code.names))
        case kind if kind in (IMAGE, CONTAINER):
            return tuple(map(image_repository, code.names))
    return code.names


def _python_name(requirement: str) -> str:
    """A package's name as its registry knows it; an address is its own name."""
    text = requirement.strip()
    match = _REQUIREMENT.match(text)
    if match is None or "/" in text:
        head, slash, path = text.rpartition("/")
        return f"{head}{slash}{path.partition('@')[0]}"  # a git address with its revision
    return _SEPARATORS.sub("-", match[0]).lower()


def image_repository(image: str) -> str:
    """An image without tag and digest; Docker Hub's own names are written out."""
    name = image.strip().partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    return name.removeprefix("docker.io/").removeprefix("library/")


def sources(entry: Mapping[str, Any]) -> frozenset[str]:
    """The registries that an entry names: another one may serve other code by the same name."""
    line = command_line(entry)
    if line is None:
        return frozenset()
    env = entry.get("env")
    found = {
        str(value) for name, value in (env.items() if isinstance(env, dict) else ()) if name.upper() in SOURCE_VARIABLES
    }
    for word, after in zip(line.args, (*line.args[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if name in SOURCE_OPTIONS:
            found.add(value if equals else after)
    return frozenset(found)
