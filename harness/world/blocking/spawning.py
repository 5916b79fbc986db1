"""Starting a child: found on the PATH of its environment, in its directory, with three pipes and nothing else open.

`posix_spawn` is used, without `subprocess`, which takes longer to load than most programs here take to run. It knows
no directory, so this process is in the child's for a moment: with the baton in hand, and all its own paths absolute.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from harness.world.errors import failure

DEFAULT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
"""A child has their default action, whatever this process or its interpreter does with them."""
_HERE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


class Started(NamedTuple):
    """A child's process id and our ends of its pipes."""

    pid: int
    stdin: int
    stdout: int
    stderr: int


@contextmanager
def inside(directory: str) -> Iterator[None]:
    """In a directory. Raises OSError as entering it does."""
    here = os.open(".", _HERE)
    try:
        try:
            os.chdir(directory)
        except ValueError:  # what no path can hold is none that is there
            raise failure(errno.ENOENT, directory) from None
        try:
            yield
        finally:
            os.fchdir(here)
    finally:
        os.close(here)


def start(argv: Sequence[str], env: Mapping[str, str], directory: str) -> Started:
    """Start a program. Raises OSError, which names the program or the directory."""
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for child_reads in (True, False, False):
            reader, writer = os.pipe()
            theirs.append(reader if child_reads else writer)
            ours.append(writer if child_reads else reader)
        with inside(directory):
            pid = _spawn(argv, env, theirs)
    except BaseException:
        for descriptor in ours:
            os.close(descriptor)
        raise
    finally:
        for descriptor in theirs:
            os.close(descriptor)
    return Started(pid, *ours)


def _spawn(argv: Sequence[str], env: Mapping[str, str], streams: Sequence[int]) -> int:
    """Try each place where the program may be, as the operating system's `execvp` does."""
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)]
    actions += [(os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _inherited()]  # type: ignore[misc]
    number = errno.ENOENT
    for path in _places(argv[0], env):
        try:
            return os.posix_spawn(path, list(argv), env, file_actions=actions, setsigdef=DEFAULT_SIGNALS)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            number = errno.EACCES
        except OSError as error:
            raise failure(error.errno or errno.EIO, argv[0]) from None
        except ValueError:  # what no argument or variable can hold
            raise failure(errno.EINVAL, argv[0]) from None
    raise failure(number, argv[0])


def _places(command: str, env: Mapping[str, str]) -> list[str]:
    if "/" in command:
        return [command]
    if not command:
        return []
    return [os.path.join(folder, command) for folder in env.get("PATH", os.defpath).split(os.pathsep)]  # noqa: PTH118


def _inherited() -> list[int]:
    """What this process was given by whoever started it, besides the standard streams. Its own close by themselves."""
    found = []
    for name in os.listdir("/dev/fd"):  # noqa: PTH208
        with suppress(OSError):
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found
