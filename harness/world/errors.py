"""What a port may raise besides OSError. Files raise the operating system's own errors, with their errno."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from harness.world.values import is_passed_on


class WorldFault(Exception):  # noqa: N818 - the name says whose fault it is
    """The code over the world broke its rules, or the driver did: a fault of the harness, never of a subject."""


class Unsteered(WorldFault):
    """Whoever steered this world has gone: the process ends, and there is nobody left to tell more than that."""


class NotSent(Exception):  # noqa: N818 - a state of a request, as the documents call it
    """The request never left: it has had no effect. `reason` is refused, dns, tls or timeout."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Ambiguous(Exception):  # noqa: N818 - a state of a request
    """The request left and no whole answer came back: it may have been processed. `reason` is reset or timeout."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ReadTimeout(Exception):  # noqa: N818 - what happened, not whose fault it is
    """Nothing came within the time given; the handle stays usable."""


def failure(number: int, path: str) -> OSError:
    """The OSError of an errno, of the subclass that Python gives it."""
    return OSError(number, os.strerror(number), path)


def require_spawnable(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Raise OSError with EINVAL where no process can be given this: a null byte, a lone surrogate, a name with `=`."""
    names = "".join(env)
    if "" in env or "=" in names or not is_passed_on("".join((names, *argv, *env.values()))):
        raise failure(errno.EINVAL, argv[0] if argv else "")
