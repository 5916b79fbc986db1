"""The cases of the contract: bodies over a world with what they are to answer, in groups that run as one process.

A body gets its world and a directory of its own, and answers with what JSON can hold.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from harness.world import Ambiguous, NotSent, ReadTimeout, World
from harness.world.ports import Program

Body = Callable[[World, str], Awaitable[Any]]


class Case(NamedTuple):
    """A body and its answer. In one that `races`, tasks of an actor come to switch points in no certain order."""

    name: str
    body: Body
    expected: Any
    races: bool = False


GROUPS: dict[str, list[Case]] = {}
PROGRAMS: dict[str, Program] = {}
"""What cases may start, by the name that is their `argv[0]`."""
RESULT = "result"


def case(group: str, expected: Any, *, races: bool = False) -> Callable[[Body], Body]:
    """Add a body to a group."""

    def added(body: Body) -> Body:
        GROUPS.setdefault(group, []).append(Case(body.__name__, body, expected, races))
        return body

    return added


def program(function: Program) -> Program:
    """Something that a case may start; it is called as its function is."""
    PROGRAMS[function.__name__] = function
    return function


def batch(group: str) -> Program:
    """All cases of a group, one after the other; what each answers is an event."""

    async def run(world: World, argv: Sequence[str]) -> int:
        for each in GROUPS[group]:
            directory = f"{world.env.directory}/{each.name}"
            await world.files.make_directory(directory)
            world.events.emit(RESULT, case=each.name, value=await each.body(world, directory))
        return 0

    return run


async def how(call: Awaitable[Any]) -> Any:
    """What a call answers, or the name of what it raises."""
    try:
        answer = await call
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))
    except (NotSent, Ambiguous) as error:
        return repr(error)
    except (ReadTimeout, TypeError) as error:
        return type(error).__name__
    return "done" if answer is None else answer
