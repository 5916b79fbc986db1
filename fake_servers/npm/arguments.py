"""What npx takes from its command line, its environment and nothing else: packages, program, cache.

Measured with npm 11.19.1: the install directory is named by a digest of the package specs as written.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

PACKAGE_FLAGS = ("-p", "--package")
CALL_FLAGS = ("-c", "--call")
CACHE_FLAG = "--cache"
VALUE_FLAGS = ("--prefix", "--userconfig", "--node-options", "--shell")
YES_FLAGS = ("-y", "--yes")
CACHE_VARIABLES = ("NPM_CONFIG_CACHE", "npm_config_cache")
HOME_WITHOUT_VARIABLE = "/home/agent"
KEY_CHARACTERS = 16
LOCAL = ("file:", ".", "/")
TARBALL = re.compile(r"\.(?:tgz|tar\.gz|tar)$", re.IGNORECASE)

# How npm sorts (English collation): signs, digits, letters; of two that differ in case alone the small one first.
_ORDER = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"


class Command(NamedTuple):
    """One npx command line. `program` None means the program of the first package; `words` is what was parsed."""

    specs: tuple[str, ...]
    program: str | None
    arguments: tuple[str, ...]
    cache: str | None
    yes: bool
    words: tuple[str, ...]


def parse(words: Sequence[str]) -> Command:
    """Read what follows `npx` (or `npm exec`). From the first positional on, all belongs to the program."""
    packages: list[str] = []
    values: dict[str, str] = {}
    yes = False
    rest: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        flag, given, value = word.partition("=")
        if word == "--" or not word.startswith("-"):
            rest = waiting if word == "--" else [word, *waiting]
            break
        if flag in (*PACKAGE_FLAGS, *CALL_FLAGS, CACHE_FLAG, *VALUE_FLAGS):
            if not given:
                if not waiting:
                    break
                value = waiting.pop(0)
            packages += [value] if flag in PACKAGE_FLAGS else []
            values[flag] = value
        yes = yes or word in YES_FLAGS
    call = next((values[flag].split() for flag in CALL_FLAGS if flag in values), [])
    if packages or call:
        program, *arguments = rest or call or [""]
    else:
        packages, program, arguments = rest[:1], None, rest[1:]
    return Command(tuple(packages), program, tuple(arguments), values.get(CACHE_FLAG), yes, tuple(words))


def install_key(command: Command) -> str:
    """The directory under `_npx`: 16 hex digits of the SHA-512 of the sorted specs, one a line."""
    return hashlib.sha512("\n".join(sorted(command.specs, key=collated)).encode()).hexdigest()[:KEY_CHARACTERS]


def collated(spec: str) -> tuple[list[int], list[bool]]:
    """What to sort a spec by. Characters beyond ASCII, which no package's name has, come last."""
    places = [_ORDER.find(letter) if letter in _ORDER else len(_ORDER) + ord(letter) for letter in spec.lower()]
    return places, [letter.isupper() for letter in spec]


def located(spec: str, directory: str) -> str:
    """A spec as npx keys it: a folder by its absolute path, anything else (a tarball too) as written."""
    if not spec.startswith(LOCAL) or TARBALL.search(spec):
        return spec
    return posixpath.normpath(f"{directory}/{path}" if (path := spec.removeprefix("file:"))[:1] != "/" else path)


def cache_directory(command: Command, variables: Mapping[str, str], directory: str) -> str:
    """The npm cache, absolute: flag, then variable unless empty, then the one in the home directory."""
    named = [command.cache, *(variables.get(name) for name in CACHE_VARIABLES)]
    chosen = next((value for value in named if value), None)
    if chosen is None:
        return f"{variables.get('HOME') or HOME_WITHOUT_VARIABLE}/.npm"
    absolute = chosen if chosen.startswith("/") else f"{directory.rstrip('/')}/{chosen}"
    return absolute.rstrip("/") or "/"
