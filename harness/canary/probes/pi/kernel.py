"""What is in the keyring of whoever asks: `python -IS kernel.py OPERATION KEY`, in a session keyring of its own.

On Linux without a secret service Pi's adapter keeps credentials in the kernel's keyring: as keys of the type `user` in
the session's keyring, with a link in the user's persistent one. `read` prints what a key holds, as JSON, null where
there is none; `change` puts what is on stdin into the key that is there, `replace` into a new one in its place.
Standard library alone.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys

if __name__ == "__main__":  # from wherever it lies, with nothing but the standard library to be found
    sys.path.insert(0, os.path.realpath(__file__).rsplit(os.sep, 5)[0])

from harness.world.outside.keyring import ADD_KEY, LINK_PERSISTENT, READ, SESSION, checked, keyctl, system_call

UPDATE, LINK, SEARCH = 2, 8, 10
ENTRY_LIMIT = 65_536
READING, CHANGING, REPLACING = "read", "change", "replace"


def found(name: bytes) -> int | None:
    """The key of that name in the session's keyring or below it."""
    kind, described = ctypes.create_string_buffer(b"user"), ctypes.create_string_buffer(name)
    key = keyctl(SEARCH, SESSION, ctypes.addressof(kind), ctypes.addressof(described))
    return key if key > 0 else None


def content(key: int) -> str:
    """What a key holds. Raises NoKeyringError."""
    room = ctypes.create_string_buffer(ENTRY_LIMIT)
    length = checked(keyctl(READ, key, ctypes.addressof(room), ENTRY_LIMIT), "a key cannot be read")
    return room.raw[:length].decode()


def change(key: int, text: bytes) -> None:
    """Put something else into a key, for all who hold it. Raises NoKeyringError."""
    payload = ctypes.create_string_buffer(text, len(text))
    checked(keyctl(UPDATE, key, ctypes.addressof(payload), len(payload)), "a key cannot be changed")


def replace(name: bytes, text: bytes, lasting: int) -> None:
    """A new key, in the place of one of that name in the keyring that outlives sessions. Raises NoKeyringError."""
    kind, described = ctypes.create_string_buffer(b"user"), ctypes.create_string_buffer(name)
    payload = ctypes.create_string_buffer(text, len(text))
    words = (ctypes.addressof(kind), ctypes.addressof(described), ctypes.addressof(payload), len(payload), SESSION)
    key = checked(system_call(ADD_KEY, *words), "no key can be made")
    checked(keyctl(LINK, key, lasting, 0), "a key cannot be kept")


def main() -> None:
    """One operation."""
    operation, name = sys.argv[1], os.fsencode(sys.argv[2])
    lasting = checked(keyctl(LINK_PERSISTENT, -1, SESSION, 0), "the kernel has no keyring that outlives a session")
    key = found(name)
    if operation == READING:
        sys.stdout.write(json.dumps(None if key is None else content(key)))
    elif operation == CHANGING and key is not None:
        change(key, sys.stdin.buffer.read())
    else:
        replace(name, sys.stdin.buffer.read(), lasting)


if __name__ == "__main__":
    main()
