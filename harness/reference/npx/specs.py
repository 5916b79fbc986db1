"""Which package an npx entry runs, and the directory npx keeps it in.

Sources: requirements npx-spec-parse, npx-key-by-spec-only, npx-key-includes-version-text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

NPX = "npx"
PACKAGE_FLAGS = ("-p", "--package")
VALUE_FLAGS = ("--prefix", "-c", "--call", "--userconfig", "--cache", "--node-options", "--shell")
END_OF_FLAGS = "--"
HASH_CHARACTERS = 16

# English collation: signs, digits, letters; of two that differ in case alone the small one comes first.
_ORDER = " _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789abcdefghijklmnopqrstuvwxyz"


def is_npx_entry(entry: object) -> TypeGuard[Mapping[str, Any]]:
    """Does the entry run npx by exactly that name? Any other way to run a package is out of scope
    (npx-pin-scope-exact).
    """
    return isinstance(entry, Mapping) and entry.get("command") == NPX


def package_specs(args: object) -> tuple[str, ...]:
    """The package specs of an npx entry's args, as written and in order; empty when none can be read.

    `-p`/`--package` name packages; without one, the first positional is the package. What follows the
    first positional belongs to the server. An argument that is no text, or blank, is not read.
    """
    if not isinstance(args, list | tuple):
        return ()
    texts = [arg for arg in args if isinstance(arg, str)]
    explicit: list[str] = []
    position = 0
    while position < len(texts):
        arg = texts[position]
        position += 1
        if arg == END_OF_FLAGS:
            if explicit:
                break
        elif arg in PACKAGE_FLAGS or arg in VALUE_FLAGS:
            if position < len(texts) and texts[position] != END_OF_FLAGS:
                explicit += [texts[position]] if arg in PACKAGE_FLAGS and texts[position].strip() else []
                position += 1
        elif arg.startswith(tuple(f"{flag}=" for flag in PACKAGE_FLAGS)):
            explicit += [value] if (value := arg.partition("=")[2]).strip() else []
        elif not arg.startswith("-") and arg.strip():
            return tuple(explicit) or (arg,)
    return tuple(explicit)


def entry_specs(entry: object) -> tuple[str, ...]:
    """The specs of a config entry; empty for anything that is not an exact npx entry."""
    return package_specs(entry.get("args")) if is_npx_entry(entry) else ()


def install_hash(specs: Sequence[str]) -> str:
    """The directory under `_npx` for these specs: 16 hex digits of the SHA-512 of the sorted specs, one a line."""
    text = "\n".join(sorted(specs, key=collated))
    return hashlib.sha512(text.encode()).hexdigest()[:HASH_CHARACTERS]


def collated(spec: str) -> tuple[list[int], list[bool]]:
    """What npm sorts a spec by. Characters beyond ASCII, which no package's name has, come last."""
    places = [_ORDER.find(letter) if letter in _ORDER else len(_ORDER) + ord(letter) for letter in spec.lower()]
    return places, [letter.isupper() for letter in spec]


def install_key(args: object) -> str:
    """The install directory of an npx command line: keyed on its packages alone, not on its other arguments."""
    return install_hash(package_specs(args))
