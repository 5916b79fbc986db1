"""A kernel's keyring of a run's own: what programs store there is seen by the programs of the run and by nobody else.

Linux keeps for each user a keyring that outlives sessions, and finds it by the user namespace of who asks. So a run has
a namespace of its own, in which everybody is who he was, held by a process that does nothing else; a program enters it
before it begins, with a new session keyring, as `keyctl session` gives it one. With the holder the namespace ends, and
all that was stored with it. None of it needs any privilege, but a system may refuse it.

    python -IS keyring.py                            holds a namespace until its stdin ends; prints what is wrong with
                                                     it first, or an empty line
    python -IS keyring.py NAMESPACE PROGRAM WORD...  becomes a program in it, as `keyctl session - PROGRAM WORD...` does

Standard library alone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

if __name__ == "__main__":  # from wherever it lies, with nothing but the standard library to be found
    sys.path.insert(0, os.path.realpath(__file__).rsplit(os.sep, 4)[0])

from harness.world.outside.reaping import die_with_parent

CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}
"""The numbers of the system calls add_key and keyctl."""
ADD_KEY, KEYCTL = 0, 1
JOIN, READ, LINK_PERSISTENT = 1, 11, 22
SESSION = -3
NEW_USERS = 0x10000000
"""What the system calls unshare and setns name a user namespace by."""
TRIAL = b"a trial"
ANSWER_SECONDS = 10.0


class NoKeyringError(OSError):
    """The system has no such keyring, or refuses one; the message says which."""


def system_call(which: int, *numbers: int) -> int:
    """One of the calls of this machine; negative where it failed. Raises NoKeyringError where it has none such."""
    if sys.platform != "linux" or platform.machine() not in CALLS:
        raise NoKeyringError("only the keyring of Linux can be kept apart from the user's")
    words = (ctypes.c_long(number) for number in numbers)
    return int(library().syscall(ctypes.c_long(CALLS[platform.machine()][which]), *words))


def keyctl(operation: int, one: int, two: int, three: int) -> int:
    """The system call; negative where it failed."""
    return system_call(KEYCTL, operation, one, two, three, 0)


def library() -> ctypes.CDLL:
    """The C library, which keeps the number of the last error."""
    return ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    """A result that is none of failure. Raises NoKeyringError."""
    if result < 0:
        raise NoKeyringError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def join_session() -> None:
    """Give this thread a session keyring of its own. Raises NoKeyringError."""
    checked(keyctl(JOIN, 0, 0, 0), "the kernel allows no session keyring of one's own")


def enter(namespace: str) -> None:
    """Be in that namespace from now on, with a new session keyring; for a process of one thread. Raises OSError."""
    place = os.open(namespace, os.O_RDONLY)
    try:
        checked(library().setns(place, NEW_USERS), "the run's user namespace cannot be entered")
    finally:
        os.close(place)
    join_session()
    die_with_parent()  # who changes what it may do has to say that again


def make() -> None:
    """Be in a new namespace from now on, as who one was, and try its keyring. Raises OSError."""
    user, group = os.geteuid(), os.getegid()
    checked(library().unshare(NEW_USERS), "the system allows no user namespace")
    try:
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1\n", encoding="ascii")
        Path("/proc/self/setgroups").write_text("deny\n", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1\n", encoding="ascii")
    except OSError as error:
        raise NoKeyringError(f"the system lets nobody into a user namespace: {error.strerror}") from None
    join_session()
    lasting = checked(keyctl(LINK_PERSISTENT, -1, SESSION, 0), "the kernel has no keyring that outlives a session")
    if checked(keyctl(READ, lasting, 0, 0), "the new keyring cannot be read"):
        raise NoKeyringError("the user's keyring is the same in a user namespace, so it cannot be kept out of a run")
    kind, name = ctypes.create_string_buffer(b"user"), ctypes.create_string_buffer(TRIAL)
    words = (ctypes.addressof(kind), ctypes.addressof(name), ctypes.addressof(name), len(TRIAL), SESSION)
    checked(system_call(ADD_KEY, *words), "nothing can be stored in the new keyring")


def hold() -> str:
    """Hold a new namespace; what is wrong with it, empty where nothing is."""
    try:
        make()
    except OSError as error:
        return str(error)
    return ""


class RunKeyring:
    """A namespace that is held until `close`, or until this process ends."""

    def __init__(self, mark: str = "") -> None:
        """`mark` is a variable of the holder's environment, by which it is found. Raises NoKeyringError."""
        name, _, value = mark.partition("=")
        self._holder = subprocess.Popen(
            [sys.executable, "-IS", os.path.realpath(__file__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value} if name else {},
            start_new_session=True,
        )
        assert self._holder.stdout is not None  # noqa: S101 - it was asked for as a pipe
        said = self._holder.stdout.readline().decode("utf-8", "replace")
        if said != "\n":
            self.close()
            raise NoKeyringError(said.strip() or "no keyring of the run's own could be made")
        self.namespace = f"/proc/{self._holder.pid}/ns/user"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it, with all that was stored; a second time does nothing."""
        for stream in (self._holder.stdin, self._holder.stdout):
            if stream is not None:
                stream.close()
        self._holder.kill()
        self._holder.wait()


def main() -> None:
    """Be the holder, or a program in what it holds."""
    if sys.argv[1:]:
        namespace, *argv = sys.argv[1:]
        enter(namespace)
        os.execv(argv[0], argv)  # noqa: S606 - the program is the caller's own
    sys.stdout.write(f"{hold()}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    main()
