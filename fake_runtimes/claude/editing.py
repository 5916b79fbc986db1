"""`claude mcp add`, `add-json` and `remove`: entries are written as the readers of this package take them.

Measured is that a bad name is refused, and where each scope is kept. The words of success and the rest are chosen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from fake_runtimes.claude.config import CONFIG_PATH, SERVERS_KEY
from fake_runtimes.claude.output import print_line
from fake_runtimes.claude.sources import LOCAL, PROJECT, USER, homes, read_text
from fake_runtimes.text import JsonTextError, parse_json
from harness.world import World

DONE, REFUSED = 0, 1
SCOPES = (LOCAL, USER, PROJECT)
NAME = re.compile(r"[A-Za-z0-9_-]+")
OPTIONS = {"-s": "--scope", "-t": "--transport", "-e": "--env", "-H": "--header"}
VALUED, SEVERAL = ("--scope", "--transport"), ("--env", "--header")


class EditError(Exception):
    """Why nothing is written; the message is what the program says."""


class Asked(NamedTuple):
    """What was asked for: words, and options by their long names."""

    words: tuple[str, ...]
    options: dict[str, list[str]]

    def one(self, option: str, default: str) -> str:
        """The value of an option that is given once."""
        return self.options.get(option, [default])[-1]

    @property
    def scope(self) -> str:
        """Where the entry is kept. Raises EditError."""
        scope = self.one("--scope", LOCAL)
        if scope not in SCOPES:
            raise EditError(f"Invalid scope: {scope}. Must be one of: {', '.join(SCOPES)}")
        return scope


def read_words(words: Sequence[str]) -> Asked:
    """The words and options of one command; behind `--` everything is a word. Raises EditError."""
    left, found, options = list(words), [], dict[str, list[str]]()
    while left:
        word = left.pop(0)
        if word == "--":
            found += left
            break
        name, equals, value = word.partition("=")
        name = OPTIONS.get(name, name)
        if not word.startswith("-"):
            found.append(word)
        elif name in (*VALUED, *SEVERAL):
            if not equals and not left:
                raise EditError(f"error: option '{name} <value>' argument missing")
            options.setdefault(name, []).append(value if equals else left.pop(0))
        else:
            raise EditError(f"error: unknown option '{word}'")
    return Asked(tuple(found), options)


async def add(world: World, words: Sequence[str]) -> int:
    """`add NAME COMMAND [ARG…]`, or with `--transport http|sse` `add NAME URL`."""
    try:
        asked = read_words(words)
        name, target = required(asked.words, "name", "commandOrUrl")
        entry = entry_of(asked, target)
        where = await put(world, asked.scope, name, entry)
    except EditError as error:
        return await refuse(world, error)
    kind = entry["type"]
    told = f"command: {' '.join(asked.words[1:])}" if kind == "stdio" else f"URL: {target}"
    # not measured
    told_of = f"Added {kind if kind == 'stdio' else kind.upper()} MCP server {name} with {told} to {asked.scope} config"
    await print_line(world, f"{told_of}\nFile modified: {where}")
    return DONE


def entry_of(asked: Asked, target: str) -> dict[str, Any]:
    """The entry that `add` writes. Raises EditError."""
    transport = asked.one("--transport", "stdio")
    if transport == "stdio":
        return {
            "type": "stdio",
            "command": target,
            "args": list(asked.words[2:]),
            "env": dict(pair(text, "=", "environment variable") for text in asked.options.get("--env", [])),
        }
    if transport not in ("http", "sse"):
        raise EditError(f"Invalid transport type: {transport}. Must be one of: stdio, sse, http")
    headers = dict(pair(text, ":", "header") for text in asked.options.get("--header", []))
    return {"type": transport, "url": target, **({"headers": headers} if headers else {})}


def pair(text: str, between: str, what: str) -> tuple[str, str]:
    """A name and its value. Raises EditError."""
    name, found, value = text.partition(between)
    if not found or not name.strip():
        raise EditError(f"Invalid {what} format: {text}")
    return name.strip(), value.strip() if between == ":" else value


async def add_json(world: World, words: Sequence[str]) -> int:
    """`add-json NAME JSON`."""
    try:
        asked = read_words(words)
        name, text = required(asked.words, "name", "json")
        entry = object_of(text, "Invalid JSON")
        where = await put(world, asked.scope, name, entry)
    except EditError as error:
        return await refuse(world, error)
    kind = entry.get("type", "stdio")
    await print_line(world, f"Added {kind} MCP server {name} to {asked.scope} config\nFile modified: {where}")
    return DONE


async def remove(world: World, words: Sequence[str]) -> int:
    """`remove NAME [--scope SCOPE]`: from the scope that holds it, where none is named."""
    try:
        asked = read_words(words)
        (name,) = required(asked.words, "name")
        scopes = (asked.scope,) if "--scope" in asked.options else SCOPES
        for scope in scopes:
            document = await Document.load(world, scope)
            if name in document.members:
                del document.members[name]
                await document.save()
                said = f"Removed MCP server {name} from {scope} config\nFile modified: {document.shown}"
                await print_line(world, said)
                return DONE
    except EditError as error:
        return await refuse(world, error)
    return await refuse(world, EditError(f'No MCP server found with name: "{name}"'))


def required(words: Sequence[str], *names: str) -> tuple[str, ...]:
    """The first words. Raises EditError where one is missing."""
    if len(words) < len(names):
        raise EditError(f"error: missing required argument '{names[len(words)]}'")
    return tuple(words[: len(names)])


async def put(world: World, scope: str, name: str, entry: dict[str, Any]) -> str:
    """Write a new entry; the answer names the file. Raises EditError."""
    if NAME.fullmatch(name) is None:
        allowed = "Names can only contain letters, numbers, hyphens, and underscores."
        raise EditError(f"Invalid name {name}. {allowed}")
    document = await Document.load(world, scope)
    if name in document.members:
        raise EditError(f"MCP server {name} already exists in {scope} config")
    document.members[name] = entry
    await document.save()
    return document.shown


class Document:
    """The file of one scope. `members` are its servers, `shown` is how the file is named."""

    def __init__(self, world: World, path: str, shown: str, tree: dict[str, Any], members: dict[str, Any]) -> None:
        self._world, self._path, self._tree = world, path, tree
        self.shown, self.members = shown, members

    @classmethod
    async def load(cls, world: World, scope: str) -> Document:
        """The file as it is; a missing one is empty. Raises EditError for one that is no JSON object."""
        directory = world.env.directory
        project = scope == PROJECT
        path = f"{directory.rstrip('/')}/{CONFIG_PATH}" if project else homes(world.env.variables).user_config
        tree = object_of(await read_text(world, path) or "{}", f"{path} is not a valid JSON")
        holder = tree if scope != LOCAL else below(below(tree, "projects", path), directory, path)
        shown = f"{path} [project: {directory}]" if scope == LOCAL else path
        return cls(world, path, shown, tree, below(holder, SERVERS_KEY, path))

    async def save(self) -> None:
        """Write it back. Raises EditError."""
        text = json.dumps(self._tree, indent=2, ensure_ascii=False)
        try:
            await self._world.files.make_directory(self._path.rpartition("/")[0] or "/")
            await self._world.files.write_atomic(self._path, text.encode("utf-8", "replace"))
        except OSError as error:
            raise EditError(f"{error.strerror}: {self._path}") from None


def object_of(text: str, otherwise: str) -> dict[str, Any]:
    """The object that a text holds. Raises EditError."""
    try:
        value = parse_json(text)
    except JsonTextError:
        value = None
    if not isinstance(value, dict):
        raise EditError(otherwise)
    return value


def below(table: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    """A table's own table, made where it is missing. Raises EditError where something else stands there."""
    found = table.setdefault(key, {})
    if not isinstance(found, dict):
        raise EditError(f"{path} is not a valid configuration: {key} is no object")
    return found


async def refuse(world: World, error: EditError) -> int:
    """Say why nothing is written."""
    await world.processes.write_error(str(error))
    return REFUSED
