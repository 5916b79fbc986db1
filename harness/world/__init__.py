"""Ports: everything that is not a pure rule goes through one `World`, whatever drives it.

Code over a world is plain `async def`; it awaits ports and nothing else. The awaits on ports are the only
places where another actor may run. Three drivers give the same ports: `harness.world.model` (everything in
memory, virtual time, reproducible), `harness.world.blocking` (real processes, the standard library alone) and
`harness.world.live` (real processes, an event loop, a store). Nothing is ever cancelled: a port call takes its
own timeouts, `tasks.wait` leaves the rest running, and the only abort is killing an actor.
"""

from harness.world.errors import Ambiguous, NotSent, ReadTimeout, WorldFault
from harness.world.ports import (
    Child,
    Clock,
    Entropy,
    Environment,
    Events,
    Files,
    Http,
    Lock,
    Processes,
    Request,
    Response,
    Row,
    Stat,
    Store,
    Stream,
    StreamEvent,
    Task,
    Tasks,
    Transaction,
    World,
    header,
)

__all__ = [
    "Ambiguous",
    "Child",
    "Clock",
    "Entropy",
    "Environment",
    "Events",
    "Files",
    "Http",
    "Lock",
    "NotSent",
    "Processes",
    "ReadTimeout",
    "Request",
    "Response",
    "Row",
    "Stat",
    "Store",
    "Stream",
    "StreamEvent",
    "Task",
    "Tasks",
    "Transaction",
    "World",
    "WorldFault",
    "header",
]
