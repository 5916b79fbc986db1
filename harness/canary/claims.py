"""Claims and the probes that answer them; a module of `harness.canary.probes` registers its own when it is imported."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from harness.canary.trial import Trial

FAMILIES = ("claude", "codex", "pi")


class Unstated:
    """What a claim assumes of which the reference assumes nothing."""

    def __repr__(self) -> str:
        return "nothing"


UNSTATED = Unstated()


class Claim(NamedTuple):
    """One statement about a runtime, `FAMILY.AREA.WHAT`.

    `says` is a sentence. `source` is the document or measurement that it comes from (`seed 002`, `measured`).
    `assumes` is what the reference relies on: a value that the observation must equal, a function that must be true of
    it, or UNSTATED. `relied_on` are the requirements that rest on it; `affects` says what in a catalog it touches.
    `reads` are the lines of a profile that the fake's answer depends on. `not_modelled` says why the fake does not
    answer, where it does not. `derive` says which lines of a profile an observation gives, and how: a new profile is
    written from these. A function may raise LookupError, TypeError or ValueError where the observation gives nothing;
    the old line is kept then.

        derive={"default_timeout_ms": lambda observed: observed["gives up after"] * 1000}

    `parts` are what the positions of an observation are called that is a list of so many, for reports.

    `shows` says of bugs that something of ours works around (`harness.canary.workarounds`) whether an observation shows
    them; such a function may raise the same errors.
    """

    id: str
    says: str
    source: str = "measured"
    assumes: Any = UNSTATED
    relied_on: tuple[str, ...] = ()
    affects: str = ""
    reads: tuple[str, ...] = ()
    not_modelled: str = ""
    derive: Mapping[str, Callable[[Any], Any]] = {}
    shows: Mapping[str, Callable[[Any], bool]] = {}
    parts: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The runtime that it is about."""
        return self.id.partition(".")[0]

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of a profile that hang on it: those that it gives and those that it is the fake's answer for."""
        return tuple(dict.fromkeys((*self.derive, *self.reads)))

    def holds(self, observed: Any) -> bool | None:
        """Whether what was observed is what the reference relies on; None where it relies on nothing."""
        if isinstance(self.assumes, Unstated):
            return None
        return bool(self.assumes(observed)) if callable(self.assumes) else bool(self.assumes == observed)


Observations = Mapping[str, Any]
"""From the ids of claims to what was observed: values that JSON can hold."""
Asking = Callable[["Trial"], Observations]


class Probe(NamedTuple):
    """A way to find out. `seconds` is how long it takes on a real program, about; `limit_seconds` when it is given up.

    A `slow` probe waits for real: it is left out where only the quick ones are asked for.
    """

    name: str
    family: str
    claims: tuple[Claim, ...]
    ask: Asking
    seconds: float
    limit_seconds: float


_PROBES: dict[str, Probe] = {}


def probe(*claims: Claim, seconds: float = 2.0, limit_seconds: float = 60.0) -> Callable[[Asking], Asking]:
    """Register a probe that answers these claims, all of one runtime; it is named after its function.

    Raises ValueError for a claim that another probe answers.
    """

    def registered(ask: Asking) -> Asking:
        families = {claim.family for claim in claims}
        name = ask.__name__.replace("_", "-")
        if len(families) != 1 or not families <= set(FAMILIES):
            raise ValueError(f"the probe {name} must be about one of {', '.join(FAMILIES)}")
        known = {claim.id for each in _PROBES.values() for claim in each.claims}
        twice = known & {claim.id for claim in claims}
        family = families.pop()
        if twice or f"{family}.{name}" in _PROBES:
            raise ValueError(f"answered twice: {', '.join(sorted(twice)) or name}")
        _PROBES[f"{family}.{name}"] = Probe(name, family, claims, ask, seconds, limit_seconds)
        return ask

    return registered


@cache
def all_probes() -> tuple[Probe, ...]:
    """Every probe, in the order of its runtime, then as registered."""
    package = importlib.import_module("harness.canary.probes")
    for module in sorted(found.name for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")):
        importlib.import_module(module)
    return tuple(sorted(_PROBES.values(), key=lambda each: FAMILIES.index(each.family)))


def chosen(family: str, patterns: Iterable[str] = ("*",)) -> tuple[Probe, ...]:
    """The probes of a runtime that answer a claim of one of these globs, with only those claims."""
    wanted = tuple(patterns)
    found = []
    for each in all_probes():
        claims = tuple(claim for claim in each.claims if any(fnmatchcase(claim.id, pattern) for pattern in wanted))
        if each.family == family and claims:
            found.append(each._replace(claims=claims))
    return tuple(found)
