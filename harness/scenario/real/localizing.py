"""No command of a scenario is executed and no host of it contacted: what names one is made to name ours, and back.

A command becomes the path of a small program in the run's folder, with the same file name, that becomes what stands in
for it; where nobody does there is no such program. A URL becomes that of the same path on this machine. Names,
arguments, variables and headers stay as they are.
"""

from __future__ import annotations

import json
import posixpath
import shlex
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fake_runtimes.air.transforms import texts
from harness.canary.settings import NOBODY
from harness.errors import CannotRunError
from harness.world.outside import standing_in
from harness.world.sites import origin

COMMANDS = ("command", "headersHelper", "requestHeadersCommand")
"""Keys whose value is executed."""
URLS = ("url", "authServerMetadataUrl", "clientMetadataUrl")
KEPT = ("args", "env", "headers", "http_headers", "env_http_headers")
"""Tables and lists that are handed on as they are."""
EXECUTED = "!"
"""How a value begins that a runtime executes to have another one."""
PROGRAMS = "programs"
PROGRAM = """#!/bin/sh
exec {start} {control} {command} "$@"
"""


class Localizer:
    """The two names of everything, in one run. `root` stands for the root of the file system, below `folder`.

    `places` are where the origins are that somebody serves: `http://127.0.0.1:4242`. Commands among `keeps` are
    called in catalogs as they are: they are found in `programs`, which comes first in the runtime's PATH.
    """

    def __init__(
        self, folder: Path, control: str, start: Iterable[str], places: Mapping[str, str], *, keeps: Iterable[str] = ()
    ) -> None:
        self.folder, self.root = folder, folder / "root"
        self.control, self.start, self.places = control, (*start, standing_in.__file__), dict(places)
        self._paths: dict[str, str] = {}
        self.keeps = frozenset(keeps)
        self.programs = folder / PROGRAMS
        self.programs.mkdir()

    def serve(self, command: str) -> None:
        """Put the program there that stands in for a command."""
        path = Path(self.path(command))
        if path.is_dir():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        words = (" ".join(map(shlex.quote, self.start)), shlex.quote(self.control), shlex.quote(command))
        path.write_text(PROGRAM.format(start=words[0], control=words[1], command=words[2]), encoding="utf-8")
        path.chmod(0o755)

    def path(self, command: str) -> str:
        """What a command is called here."""
        if command not in self._paths:
            base = posixpath.basename(command.rstrip("/")).partition(" ")[0] or "program"
            place = self.programs / str(len(self._paths)) / base
            if command in self.keeps:
                place = self.programs / base
            if command.startswith("/") and not command.startswith("//"):
                place = Path(f"{self.root}{posixpath.normpath(command)}")
            self._paths[command] = str(place)
        return self._paths[command]

    def is_own(self, path: str) -> bool:
        """Whether a path of the scenario is that of a program which was put there."""
        return f"{self.root}{path}" in self._paths.values()

    def url(self, url: str) -> str:
        """Where a URL is served; one of nobody's leads to a port where nobody listens."""
        with suppress(ValueError):
            parts = urlsplit(url)
            base = urlsplit(self.places.get(origin(url), NOBODY))
            return parts._replace(scheme=base.scheme, netloc=base.netloc).geturl()
        return NOBODY

    def entry(self, name: str, entry: Any, resolve: Callable[[str], str], keep: Callable[[Any], Any]) -> Any:
        """An entry of a catalog. `resolve` fills in what stands for a secret in a URL, `keep` localizes paths.

        Raises CannotRunError for a value that a runtime would execute.
        """
        if not isinstance(entry, Mapping):
            return keep(entry)
        local: dict[str, Any] = {}
        for key, value in entry.items():
            if any(text.startswith(EXECUTED) for text in texts(value)) and key not in ("args", "title", "description"):
                raise CannotRunError(
                    f"catalog.{name}.{key} begins with `{EXECUTED}`, which a real runtime may execute: "
                    "nothing of a scenario is executed, so it is not played at this tier"
                )
            if key in COMMANDS and isinstance(value, str) and value:
                local[key] = value if value in self.keeps else self.path(value)
            elif key in URLS and isinstance(value, str):
                local[key] = self.url(resolve(value))
            elif isinstance(value, Mapping) and key not in KEPT:
                local[key] = self.entry(name, value, resolve, keep)
            else:
                local[key] = keep(value)
        return local

    def text(self, text: str) -> str:
        """A file of a scenario: what is a command or a URL in it, wherever that stands. Other texts stay."""
        if read(text) is None and text.lstrip()[:1] in ("{", "/") and any(f'"{key}"' in text for key in COMMANDS):
            raise CannotRunError(
                "a file of the scenario is no plain JSON, so its commands cannot be made to name stand-ins"
            )
        for key, value in named(read(text)):
            local = self.path(value) if key in COMMANDS else self.url(value)
            for quoted in (json.dumps(value), json.dumps(value, ensure_ascii=False), f"'{value}'"):
                text = text.replace(quoted, json.dumps(local))
        found = dict.fromkeys((*self._paths.values(), NOBODY))
        for key, value in named(read(text)):
            if value not in found and not value.startswith(("http://127.0.0.1:", str(self.folder))):
                raise CannotRunError(
                    f"a file of the scenario says {key} = {value!r} in a way that cannot be made to name a stand-in"
                )
        return text

    def normal(self, text: str) -> str:
        """A text of a process with the scenario's own names in it."""
        for command, path in self._paths.items():
            text = text.replace(path, command)
        for own, place in self.places.items():
            here = urlsplit(place).netloc
            if here in text:
                text = text.replace(place, own).replace(here, urlsplit(own).netloc)
        return text


def read(text: str) -> Any:
    """What a JSON or TOML file holds; None for one that is neither."""
    for loads in (json.loads, tomllib.loads):
        with suppress(ValueError, RecursionError):
            return loads(text)
    return None


def named(value: Any) -> Iterator[tuple[str, str]]:
    """Every command and URL in a value, with its key."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key in (*COMMANDS, *URLS) and isinstance(item, str) and item:
                yield key, item
            elif key not in KEPT:
                yield from named(item)
    elif isinstance(value, list):
        for item in value:
            yield from named(item)
