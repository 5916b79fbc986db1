"""What a process is told of its world by environment variables that its program never sees."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

NAME_VARIABLE = "WORLD_ACTOR_NAME"
CONTROL_VARIABLE = "WORLD_CONTROL"
EVENTS_VARIABLE = "WORLD_EVENTS"
TIME_VARIABLE = "WORLD_TIME"
TIME_SCALE_VARIABLE = "WORLD_TIME_SCALE"
CERTIFICATES_VARIABLE = "WORLD_CERTIFICATES"
OWN_VARIABLES = frozenset(
    {NAME_VARIABLE, CONTROL_VARIABLE, EVENTS_VARIABLE, TIME_VARIABLE, TIME_SCALE_VARIABLE, CERTIFICATES_VARIABLE}
)


class Pace(NamedTuple):
    """How time passes: so many seconds of the world in one real second, counted from a common moment.

    `real_seconds` is that moment as the operating system tells it, `world_seconds` as the world does; both since the
    epoch. All processes of one world have the same pace, so that they agree on what time it is.
    """

    scale: float = 1.0
    real_seconds: float = 0.0
    world_seconds: float = 0.0

    def now(self) -> float:
        """The world's time."""
        return self.world_time(time.time())

    def world_time(self, real_seconds: float) -> float:
        """The world's time at a moment of the operating system's."""
        return self.world_seconds + (real_seconds - self.real_seconds) * self.scale

    def real(self, seconds: float) -> float:
        """How long a wait takes in real seconds."""
        return seconds / self.scale


def anchored(scale: float, world_seconds: float) -> Pace:
    """A pace that begins now, at that moment of the world."""
    return Pace(scale, time.time(), world_seconds)


class Setting(NamedTuple):
    """Where a process is.

    `name` is the actor's. `control` is the path of the socket on which somebody steers the world (see `control`),
    empty when nobody does. `events` is a file to which events are appended as JSON lines when nobody steers.
    `certificates` is a file of certificates to trust besides the system's.
    """

    name: str = "program"
    control: str = ""
    events: str = ""
    pace: Pace = Pace()
    certificates: str = ""

    def variables(self) -> dict[str, str]:
        """What a child is told."""
        pace = ",".join(repr(float(number)) for number in self.pace)
        told = {
            NAME_VARIABLE: self.name,
            CONTROL_VARIABLE: self.control,
            EVENTS_VARIABLE: self.events,
            TIME_VARIABLE: pace if self.pace != Pace() else "",
            CERTIFICATES_VARIABLE: self.certificates,
        }
        return {name: value for name, value in told.items() if value}

    def told(self, name: str, absolute: Callable[[str], str]) -> dict[str, str]:
        """What a child of that name is told, wherever it starts; nothing where there is nothing to tell."""
        if self == Setting(self.name):
            return {}
        control, events, certificates = (
            absolute(path) if path else "" for path in (self.control, self.events, self.certificates)
        )
        return Setting(name, control, events, self.pace, certificates).variables()


def setting_from(variables: Mapping[str, str], name: str = "program") -> Setting:
    """The setting of this process, called `name` unless it is told otherwise.

    `WORLD_TIME_SCALE` alone (20: a second of the world takes a twentieth of a real one) begins a world of its own
    now. Raises ValueError that names the variable.
    """
    return Setting(
        variables.get(NAME_VARIABLE) or name,
        variables.get(CONTROL_VARIABLE, ""),
        variables.get(EVENTS_VARIABLE, ""),
        pace_from(variables),
        variables.get(CERTIFICATES_VARIABLE, ""),
    )


def pace_from(variables: Mapping[str, str]) -> Pace:
    """The pace that the environment asks for. Raises ValueError."""
    inherited, own = variables.get(TIME_VARIABLE), variables.get(TIME_SCALE_VARIABLE)
    if inherited:
        parts = [positive(part, TIME_VARIABLE) for part in inherited.split(",")]
        if len(parts) != len(Pace._fields):
            raise ValueError(f"{TIME_VARIABLE} must be scale,real,world, not {inherited!r}")
        return Pace(*parts)
    if own:
        now = time.time()
        return Pace(positive(own, TIME_SCALE_VARIABLE), now, now)
    return Pace()


def positive(text: str, variable: str) -> float:
    """A number above zero. Raises ValueError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise ValueError(f"{variable} must be a number above 0, not {text!r}")
    return number


def without_own(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment as the program sees it."""
    return {name: value for name, value in variables.items() if name not in OWN_VARIABLES}
