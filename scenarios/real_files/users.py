"""The same case as the user who runs the tests and, where that is root, as nobody in particular; for tests."""

from __future__ import annotations

import os
import pickle
import traceback
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from scenarios.real_files.ground import Ground, ground

NOBODY = 65534
Answer = TypeVar("Answer")


def for_each_user(case: Callable[[Ground], Answer]) -> Answer:
    """What a case answers, each time on fresh ground that belongs to the user it runs as; it must always be the same.

    The answer must not depend on where the ground is. Who is not root is one user only.
    """
    with ground() as place:
        answer = case(place)
    if os.geteuid() == 0:
        with ground() as place:
            os.chown(place.root, NOBODY, NOBODY)
            other = as_nobody(lambda: case(place))
        assert other == answer, "the answer depends on who runs"
    return answer


def as_nobody(work: Callable[[], Any]) -> Any:
    """What a function answers in a process that has given up being root for good."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of a test runner play no part in the child
        pid = os.fork()
    if pid == 0:
        _answer(writer, work)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        told = file.read()
    os.waitpid(pid, 0)
    assert told, "the process that had dropped its privileges died"
    answer, error = pickle.loads(told)  # noqa: S301 - written by the child
    if error:
        raise AssertionError(f"as user {NOBODY}: {error}")
    return answer


def _answer(writer: int, work: Callable[[], Any]) -> None:
    """In the child."""
    answer, error = None, ""
    try:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        answer = work()
    except BaseException as raised:  # noqa: BLE001 - told to the parent
        error = "".join(traceback.format_exception(raised))
    try:
        with os.fdopen(writer, "wb") as file:
            file.write(pickle.dumps((answer, error)))
    finally:
        os._exit(0)
