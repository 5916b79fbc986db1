"""What all ports of an actor share: the dead have no effect, the living pass switch points where faults strike."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, NoReturn

from harness.world.errors import WorldFault
from harness.world.model.actors import Actor
from harness.world.model.faults import Fault
from harness.world.model.scheduler import Gone, Halt, Wait
from harness.world.model.simulation import Simulation
from harness.world.sites import ANY_ACTIONS


class Port:
    """A port of one actor. `kind` is what a fault's `port` is compared with."""

    __slots__ = ("_actor", "_simulation")
    kind: ClassVar[str] = ""

    def __init__(self, simulation: Simulation, actor: Actor) -> None:
        self._simulation, self._actor = simulation, actor

    def _require_life(self) -> None:
        if not self._actor.alive:
            raise Gone(f"{self._actor.name} has ended")

    def _reach(
        self, label: str, actions: frozenset[str] = ANY_ACTIONS, content: bytes | None = None
    ) -> Awaitable[Fault | None]:
        """A switch point, to be awaited: holds keep the actor here, then others may run, then a fault may strike.

        A fault that kills never comes back; any other is answered, for the port to give it its effect. Where
        neither hold nor fault can be, awaiting the bare point is all.
        """
        simulation, actor = self._simulation, self._actor
        if not actor.alive:
            raise Gone(f"{actor.name} has ended")
        if simulation.watcher is not None:
            simulation.watcher(actor.name, label, content)
        if simulation.holds:
            return self._reach_watched(label, actions, content)
        faults = simulation.faults
        if faults.actions.isdisjoint(actions) or not faults.concerns(self.kind, actor.name, label):
            return simulation.switch
        return self._reach_watched(label, actions, content)

    async def _reach_watched(self, label: str, actions: frozenset[str], content: bytes | None) -> Fault | None:
        simulation, name = self._simulation, self._actor.name
        if simulation.holds:
            await simulation.hold(self._actor, label)
        await simulation.switch
        if simulation.faults.actions.isdisjoint(actions):
            return None
        text = "" if content is None else content.decode(errors="replace")
        since_start = simulation.now - simulation.started_seconds
        try:
            fault = simulation.faults.strike(self.kind, name, label, since_start, simulation.decisions, actions, text)
        except BaseException as error:  # noqa: BLE001 - a decision source may end the run with anything
            await Halt(error)
        if fault is None:
            return None
        simulation.emit(name, "fault", {"action": fault.action, "at": label})
        if fault.action == "kill":
            simulation.kill(self._actor)
            await Wait((), None)
        return fault

    async def _failed(self, error: BaseException, whose: str) -> NoReturn:
        """What is no part of the subject has raised: the run ends, whatever the subject would catch."""
        if not isinstance(error, Exception):
            await Halt(error)
        fault = WorldFault(f"{whose} raised {error!r}")
        fault.__cause__ = error
        await Halt(fault)
        raise Gone

    async def _misused(self, message: str) -> NoReturn:
        """The code over the world broke its rules: the run ends, whatever the subject would catch."""
        await Halt(WorldFault(f"{self._actor.name}: {message}"))
        raise Gone
