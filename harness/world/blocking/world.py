"""The world of this process, and its smaller ports; files, http, processes and tasks have modules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from harness.world.blocking.port import Port
from harness.world.blocking.process import Process
from harness.world.blocking.tasks import BlockingTasks
from harness.world.outside.setting import without_own

if TYPE_CHECKING:
    from harness.world.blocking.files import BlockingFiles
    from harness.world.blocking.http import BlockingHttp
    from harness.world.blocking.processes import BlockingProcesses


GIVEN = "/proc/self/environ"
COERCED, COERCED_TO = "LC_CTYPE", ("C.UTF-8", "C.utf8", "UTF-8")


class BlockingWorld:
    """This process's world. A port is loaded when it is used first."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.name = process.name
        self.clock = BlockingClock(process)
        self.entropy = BlockingEntropy()
        self.env = BlockingEnvironment(process.directory)
        self.store = BlockingStore(process)
        self.events = BlockingEvents(process)
        self.tasks = BlockingTasks(process)

    @cached_property
    def files(self) -> BlockingFiles:
        """The real file system."""
        from harness.world.blocking.files import BlockingFiles

        return BlockingFiles(self._process)

    @cached_property
    def http(self) -> BlockingHttp:
        """Real sockets."""
        from harness.world.blocking.http import BlockingHttp

        return BlockingHttp(self._process)

    @cached_property
    def processes(self) -> BlockingProcesses:
        """Real processes."""
        from harness.world.blocking.processes import BlockingProcesses

        return BlockingProcesses(self._process)


class BlockingClock(Port):
    """The system's clock, at the pace of the world."""

    __slots__ = ()

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._process.pace.now()

    async def sleep(self, seconds: float) -> None:
        """Others run until that much later."""
        self._process.sleep(seconds)


class BlockingEntropy:
    """The system's entropy."""

    __slots__ = ()

    def token(self, characters: int) -> str:
        """Hex digits."""
        return os.urandom((characters + 1) // 2).hex()[:characters]


class BlockingEnvironment:
    """The variables and directory with which the process started, without those that are the driver's."""

    __slots__ = ("_variables", "directory")

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._variables = MappingProxyType(without_own(without_coerced(os.environ)))

    @property
    def variables(self) -> Mapping[str, str]:
        """Names to values."""
        return self._variables


def without_coerced(variables: Mapping[str, str]) -> Mapping[str, str]:
    """The environment as it was given: the interpreter adds a locale of its own where there is none (PEP 538)."""
    if variables.get(COERCED) not in COERCED_TO:
        return variables
    try:
        descriptor = os.open(GIVEN, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return variables
    with open(descriptor, "rb") as given:  # noqa: PTH123 - a descriptor
        if any(part.startswith(f"{COERCED}=".encode()) for part in given.read().split(b"\0")):
            return variables
    return {name: value for name, value in variables.items() if name != COERCED}


class BlockingEvents(Port):
    """To whoever steers, to a file, or nowhere."""

    __slots__ = ()

    def emit(self, event: str, /, **details: Any) -> None:
        """Write down that something happened."""
        self._process.emit(event, details)


class BlockingStore(Port):
    """There is none: what keeps rows is driven by another driver."""

    __slots__ = ()
    kind = "store"

    async def begin(self) -> NoReturn:
        """No transaction."""
        self._none()

    async def rows(self, table: str) -> NoReturn:
        """No rows."""
        self._none(table)

    def _none(self, table: str = "") -> NoReturn:
        what = f" (asked for {table})" if table else ""
        self._process.halt(f"a process of the blocking driver has no store{what}; the live driver has one")
