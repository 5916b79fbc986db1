"""The small files a gate run may be given: secrets, names of known secrets, tool lists."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.errors import UserInputError
from harness.inputs.files import display_path, read_document, read_text

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=(.*)")


def read_secrets(path: Path) -> dict[str, str]:
    """Names to values, from a JSON object or from NAME=value lines. Values never appear in a message."""
    text = read_text(path, "secrets.env")
    if text.lstrip().startswith("{"):
        tree = _plain_json(path)
        if not isinstance(tree, dict) or not all(isinstance(value, str) for value in tree.values()):
            raise UserInputError("not an object of texts", file=display_path(path), fix='Write {"NAME": "value"}.')
        return tree
    secrets: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment is None:
            raise UserInputError(
                "not a NAME=value line", file=display_path(path), line=number, fix="Comments begin with #."
            )
        secrets[assignment[1]] = _unquoted(assignment[2].strip())
    return secrets


def read_known_secrets(path: Path) -> frozenset[str]:
    """Names, from a JSON list or one a line (# begins a comment)."""
    text = read_text(path, "names.txt")
    if text.lstrip().startswith("["):
        tree = _plain_json(path)
        if not isinstance(tree, list) or not all(isinstance(name, str) for name in tree):
            raise UserInputError("not a list of names", file=display_path(path), fix='Write ["NAME", ...].')
        return frozenset(tree)
    names = set()
    for number, line in enumerate(text.splitlines(), 1):
        name = line.partition("#")[0].strip()
        if name and not _NAME.fullmatch(name):
            raise UserInputError(
                "not the name of a variable",
                file=display_path(path),
                line=number,
                fix="Write one name a line; a file with values goes to --secrets.",
            )
        names |= {name} - {""}
    return frozenset(names)


def read_tools(path: Path) -> Mapping[str, tuple[str, ...]]:
    """Server names to tool names: a JSON object of lists, each item a text or an object with a `name`."""
    document = read_document(path, "tools.json")
    if not isinstance(document.tree, dict):
        raise UserInputError("not an object", file=document.name, fix='Write {"server": ["tool", ...]}.')
    tools = {}
    for server, listed in document.tree.items():
        names = (
            [item.get("name") if isinstance(item, dict) else item for item in listed]
            if isinstance(listed, list)
            else [None]
        )
        if not all(isinstance(name, str) for name in names):
            line, column = document.position(document.span_of((server,)).start)
            raise UserInputError(
                f"the tools of {server} are not a list of names",
                file=document.name,
                line=line,
                column=column,
                fix='Write {"server": ["tool", ...]}.',
            )
        tools[server] = tuple(str(name) for name in names)
    return tools


def _plain_json(path: Path) -> Any:
    """The JSON value of a file that may hold secrets: a fault names the place and quotes nothing."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UserInputError("not JSON", file=display_path(path), line=error.lineno, column=error.colno) from None
    except (ValueError, RecursionError):
        raise UserInputError("not usable JSON", file=display_path(path)) from None


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
