"""The battery's course: which spawns are made of a catalog, and what they come to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fake_runtimes import runtimes as fakes
from harness.gate.battery.facts import facts_of
from harness.gate.battery.judging import HURTING, TOGETHER, Hurt, Reference, became, judge, leaked, reference
from harness.gate.battery.kinds import NPX, Kind, kinds_for
from harness.gate.battery.observing import Observation, observe
from harness.gate.battery.parties import (
    COMPANIONS,
    PARTNERS_OF_A_KIND,
    PLAIN,
    Neighbourhood,
    packages_of,
    plain_name,
    shape_of,
    transport_held,
    transport_of,
)
from harness.gate.battery.results import QUICK_ENTRIES, Mode, Progress, Tried
from harness.gate.battery.sessions import Session, prepare_session
from harness.gate.battery.spawning import Spawn
from harness.gate.spawn import Runtime, marker
from harness.reference.secrets.placeholders import variables
from harness.reference.selection.zimmer import Instance, retarget

INSTANCE_KEY = "the key of the preparing instance"


Starts = Callable[[str], frozenset[str]]
"""From an entry's name to the labels of the runtimes on which it starts when nothing strikes."""


class Party(NamedTuple):
    """Who sits in a session: the struck entry, its partners, and the transports of its plain companions."""

    runtime: Runtime
    struck: str
    partners: tuple[str, ...]
    companions: tuple[str, ...]


class Trouble(NamedTuple):
    """What is wrong with one entry in one spawn. `kind` None: without any fault. `session` shows it.

    `allowed_seconds` is how late the others might have been.
    """

    entry: str
    runtime: Runtime
    kind: Kind | None
    hurt: Hurt
    session: Session
    allowed_seconds: float = 0.0


class Trial(NamedTuple):
    """The battery's result. `plain` are the companions that no catalog holds."""

    tried: Tried
    troubles: tuple[Trouble, ...]
    plain: frozenset[str]


class Battery:
    """One run of the battery over a catalog's entries. Those in `struck` are struck; all may be partners."""

    def __init__(
        self,
        entries: Mapping[str, Mapping[str, Any]],
        struck: Sequence[str],
        starts: Starts,
        runtimes: Sequence[Runtime],
        instance: Instance,
        mode: Mode,
    ) -> None:
        self.entries, self.starts, self.runtimes, self.instance, self.mode = entries, starts, runtimes, instance, mode
        self.struck = [name for name in struck if starts(name)]
        self.untried = len(struck) - len(self.struck)
        self.plain = {transport: plain_name(transport, entries) for transport in PLAIN}
        self.neighbourhood = Neighbourhood(entries)
        self.references: dict[tuple[str, str, str], Reference] = {}
        self.budgets: dict[tuple[str, str], float] = {}
        self.spawns = self.survived = self.controls = 0

    def run(self, progress: Progress) -> Trial:
        """Everything."""
        shapes = self._representatives() if self.mode is Mode.QUICK and len(self.struck) > QUICK_ENTRIES else None
        troubles: list[Trouble] = []
        counts: list[int] = []
        for number, name in enumerate(self.struck):
            is_whole = shapes is None or name in shapes
            if is_whole:
                counts.append(len(kinds_for(transport_of(self.entries[name]))))
            for runtime in self.runtimes:
                if runtime.label in self.starts(name):
                    party = self._party(runtime, name, is_whole=is_whole)
                    troubles += self._strike(party, None if is_whole else number)
            progress(number + 1, len(self.struck))
        return Trial(self._tried(counts, shapes, troubles), tuple(troubles), frozenset(self.plain.values()))

    def _tried(self, counts: Sequence[int], shapes: frozenset[str] | None, troubles: Sequence[Trouble]) -> Tried:
        return Tried(
            self.mode,
            (min(counts, default=0), max(counts, default=0)),
            len(self.struck),
            len(self.runtimes),
            self.spawns,
            self.survived,
            self.controls,
            None if shapes is None else len(shapes),
            self.untried,
            len({trouble.entry for trouble in troubles if trouble.hurt.rule in HURTING}),
            facts_of(self.references, self.runtimes),
        )

    def _representatives(self) -> frozenset[str]:
        """The first entry of each shape."""
        first: dict[object, str] = {}
        for name in self.struck:
            first.setdefault((shape_of(name, self.entries[name]), self.starts(name)), name)
        return frozenset(first.values())

    def _party(self, runtime: Runtime, name: str, *, is_whole: bool) -> Party:
        """Who sits with an entry. Where it is struck once only, it sits with few and without the plain ones."""
        partners = self.neighbourhood.partners(
            name, lambda other: runtime.label in self.starts(other), PARTNERS_OF_A_KIND if is_whole else 1
        )
        return Party(runtime, name, partners, COMPANIONS if is_whole or not partners else ())

    def _strike(self, party: Party, turn: int | None) -> Iterator[Trouble]:
        """One entry on one runtime: without a fault, then with each, or with the one whose `turn` it is."""
        runtime, name = party.runtime, party.struck
        session, calm = self._calm(party)
        if session is None or calm is None or not is_up(name, calm):
            beside, together = session, calm
            session, calm = self._calm(party._replace(partners=(), companions=COMPANIONS))
            if session is None or calm is None or not is_up(name, calm):
                return
            if beside is not None and together is not None:
                yield from self._apart(party, beside, together)
        owned = frozenset(self._secrets([name])) | {INSTANCE_KEY}
        for hurt in leaked(owned, calm):
            yield Trouble(name, runtime, None, hurt, session)
        tied = frozenset(each for each in party.partners if self._share_a_package(name, each))
        transport = transport_held(self.entries[name], session.servers[name])
        more = max(0.0, budget(session, name) - self._plain_budget(runtime, transport))
        kinds = kinds_for(transport)
        for kind in kinds if turn is None else (kinds[turn % len(kinds)],):
            faulty = self._observe(session, name, kind)
            self.spawns += 1
            self.survived += is_up(name, faulty)
            known = self._reference(runtime, transport, kind)
            for hurt in judge(name, kind, calm, faulty, known, more_seconds=2 * more, tied=tied):
                yield Trouble(name, runtime, kind, hurt, session, known.seconds + 2 * more)
            for hurt in leaked(owned, faulty, calm):
                yield Trouble(name, runtime, kind, hurt, session)

    def _apart(self, party: Party, session: Session, seen: Observation) -> Iterator[Trouble]:
        """An entry that comes up alone and not in its party: the first partner that does it, else all of them."""
        culprits = party
        for partner in party.partners:
            pair = party._replace(partners=(partner,), companions=())
            beside, together = self._calm(pair)
            if beside is not None and together is not None and not is_up(party.struck, together):
                culprits, session, seen = pair, beside, together
                break
        yield Trouble(party.struck, party.runtime, None, not_together(culprits, seen), session)

    # --- sessions and spawns

    def _calm(self, party: Party) -> tuple[Session | None, Observation | None]:
        """The session of a party, and what it shows without a fault.

        The struck entry comes last: of two that get in each other's way it is the later that loses.
        """
        names = (*party.partners, party.struck)
        entries = {self.plain[transport]: PLAIN[transport] for transport in party.companions}
        entries |= {name: self.entries[name] for name in names}
        session = prepare_session(party.runtime, entries, self._secrets(list(entries)), self.instance)
        if session is None or party.struck not in session.servers:
            return None, None
        return session, self._control(session)

    def _secrets(self, names: Sequence[str]) -> dict[str, str]:
        """A marker for each variable that these entries need on this instance."""
        found: dict[str, str] = {}
        for name in names:
            needed = variables(retarget(name, dict(self.entries.get(name, {})), self.instance)).required
            found |= {variable: value_of(variable) for variable in needed}
        return found

    def _share_a_package(self, one: str, other: str) -> bool:
        packages = packages_of(self.entries[one])
        return bool(set(packages) & set(packages_of(self.entries[other])))

    def _control(self, session: Session) -> Observation:
        self.controls += 1
        return self._observe(session, "", None)

    def _observe(self, session: Session, struck: str, kind: Kind | None) -> Observation:
        return observe(Spawn(session, struck, kind), {INSTANCE_KEY: self.instance.api_key})

    # --- what a runtime does to plain entries

    def _reference(self, runtime: Runtime, transport: str, kind: Kind) -> Reference:
        key = runtime.label, transport, kind.name
        if key not in self.references:
            self._learn(runtime, transport)
        return self.references[key]

    def _learn(self, runtime: Runtime, transport: str) -> None:
        """Strike a plain entry of that transport with everything."""
        struck = self.plain[transport]
        others = [each for each in (*COMPANIONS, NPX) if each != transport]
        entries = {struck: PLAIN[transport]} | {self.plain[each]: PLAIN[each] for each in others}
        session = prepare_session(runtime, entries, {}, self.instance)
        calm = None if session is None else self._control(session)
        for kind in kinds_for(transport):
            learned = Reference()
            if session is not None and calm is not None and struck in session.servers:
                self.controls += 1
                learned = reference(struck, calm, self._observe(session, struck, kind))
            told = learned.by_budget(self._plain_budget(runtime, transport))
            self.references[runtime.label, transport, kind.name] = told

    def _plain_budget(self, runtime: Runtime, transport: str) -> float:
        """The budget of the plain entry of that transport."""
        key = runtime.label, transport
        if key not in self.budgets:
            session = prepare_session(runtime, {self.plain[transport]: PLAIN[transport]}, {}, self.instance)
            self.budgets[key] = 0.0 if session is None else budget(session, self.plain[transport])
        return self.budgets[key]


def not_together(party: Party, seen: Observation) -> Hurt:
    """What becomes of an entry that comes up alone and not beside its partners."""
    server = seen.servers.get(party.struck)
    what = "is not loaded" if server is None else became(server)
    others = " and ".join(party.partners)
    return Hurt(TOGETHER, others, what, server.events if server else ())


def value_of(variable: str) -> str:
    """The marker of a variable; reports show it as what it is. A port has to be a number."""
    return marker(variable) if variable.endswith("PORT") else f"mcp-harness-marker-{variable}"


def is_up(name: str, seen: Observation) -> bool:
    """Whether a server connects and its tool can be called."""
    return name in seen.servers and seen.servers[name].state == "connected" and seen.servers[name].answered


def budget(session: Session, name: str) -> float:
    """The budget of one request of a server's start."""
    server = session.servers.get(name)
    if server is None:
        return 0.0
    return fakes.start_budget(session.runtime.profile, server, session.variables).attempt_seconds
