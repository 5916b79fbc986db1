"""Who is asked: the real program of a version, or the fake with the profile of one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import fake_runtimes
from fake_runtimes.profile import Profile

REAL, FAKE = "real", "fake"


class Subject(NamedTuple):
    """A program that can be tried. `argv` starts it; `adapter` is Pi's, empty for the others.

    `profile` is the one of this version, or for a version without one the nearest that there is: probes take from it
    the dialect in which they have to speak, never an answer.
    """

    kind: str
    family: str
    version: str
    argv: tuple[str, ...]
    profile: Profile
    adapter: str = ""

    @property
    def label(self) -> str:
        """As profiles spell it."""
        return f"{self.family}-{self.version}"

    @property
    def is_fake(self) -> bool:
        """Whether it is ours."""
        return self.kind == FAKE


def fake_of(profile: Profile, told: str = "") -> Subject:
    """The fake with a profile; `told` names another profile file for it to read, for tests of the profile's lines."""
    program = Path(fake_runtimes.__file__).parent / "bin" / profile.runtime
    argv = (sys.executable, "-IS", str(program), "--fake-profile", told or profile.name)
    return Subject(FAKE, profile.runtime, profile.version, argv, profile)
