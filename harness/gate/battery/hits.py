"""From the battery's troubles to what its rules say: one hit for a rule and an entry, its worst sight in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from harness.gate.battery.course import Trial, Trouble
from harness.gate.battery.judging import DELAYED, ENDLESS, HURT, LEAKED, TOGETHER, UNTOLD
from harness.gate.battery.proof import Proof, proof_of
from harness.gate.model import ScenarioFile

LONGEST_TEXT = 200
MOST_ATTEMPTS = 3
"""So many spawns of one trouble are played as scenarios until one shows it."""


class Told(NamedTuple):
    """One hit: its sentence, its runtimes, the ids of the events that prove it, and the scenario that shows it."""

    message: str
    runtimes: tuple[str, ...]
    subject: str
    others: tuple[str, ...]
    events: tuple[int, ...]
    proof: ScenarioFile | None


def told(trial: Trial, rule: str, entry: str) -> Iterator[Told]:
    """What a rule of the battery has to say of an entry."""
    by_subject: dict[str, list[Trouble]] = {}
    for trouble in trial.troubles:
        if trouble.hurt.rule == rule and trouble.entry == entry:
            by_subject.setdefault(trouble.hurt.other if rule == LEAKED else "", []).append(trouble)
    for subject, troubles in by_subject.items():
        trouble, proof = proved(troubles)
        hurt = dict.fromkeys(each.hurt.other for each in (trouble, *troubles) if each.hurt.other)
        others = [other for other in hurt if other not in trial.plain]
        yield Told(
            sentence(trouble, others) + more(troubles),
            tuple(dict.fromkeys(each.runtime.label for each in troubles)),
            subject,
            tuple(others) if rule != LEAKED else (),
            trouble.hurt.events if proof is None else proof.events,
            None if proof is None else ScenarioFile(proof.name, proof.text),
        )


def proved(troubles: Sequence[Trouble]) -> tuple[Trouble, Proof | None]:
    """The first of the troubles that a scenario shows, else the first."""
    for trouble in troubles[:MOST_ATTEMPTS]:
        proof = proof_of(trouble)
        if proof is not None:
            return trouble, proof
    return troubles[0], None


def sentence(trouble: Trouble, others: Collection[str]) -> str:
    """What happens to whom; `others` are the catalog's own entries that were hurt in some spawn."""
    hurt = trouble.hurt
    text = " ".join(hurt.text.split())
    text = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
    when = f"if this entry's server {trouble.kind.says}" if trouble.kind is not None else "without any fault"
    match hurt.rule:
        case rule if rule == TOGETHER:
            return f"does not come up beside {hurt.other}, though it does alone: it {text}"
        case rule if rule in (HURT, DELAYED, UNTOLD) and hurt.other:
            return f"{when}, {whom(hurt.other, others)} {text}"
        case rule if rule in (HURT, DELAYED, UNTOLD, LEAKED, ENDLESS):
            return f"{when}, {text}"
    return text


def whom(other: str, others: Collection[str]) -> str:
    """The hurt one by name, with the number of the catalog's other entries that were hurt in some spawn.

    A plain companion stands for whoever sits in the session, and has no name that a user knows.
    """
    if other not in others:
        other = next(iter(others), "")
    if not other:
        return "any other server of its session"
    more_of_them = len(others) - 1
    return other if not more_of_them else f"{other} (and {more_of_them} more)"


def more(troubles: Sequence[Trouble]) -> str:
    """How many further kinds of fault show the same."""
    kinds = {trouble.kind.name if trouble.kind is not None else "" for trouble in troubles}
    number = len(kinds) - 1
    return f" (and so in {number} other kind{'s' if number > 1 else ''} of spawn)" if number else ""
