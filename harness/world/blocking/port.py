"""What the ports of this process share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from harness.world.sites import ANY_ACTIONS

if TYPE_CHECKING:
    from harness.world.blocking.process import Process
    from harness.world.outside.control import Struck


class Port:
    """A port of this process. `kind` is what a fault's `port` is compared with."""

    __slots__ = ("_process",)
    kind: ClassVar[str] = ""

    def __init__(self, process: Process) -> None:
        self._process = process

    def _reach(self, label: str, actions: frozenset[str] = ANY_ACTIONS, content: bytes | None = None) -> Struck | None:
        """A switch point, with the same label as in the model. What strikes is for the port to give its effect."""
        return self._process.reach(self.kind, label, actions, content)
