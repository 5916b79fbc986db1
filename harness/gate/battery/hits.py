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
        others = dict.fromkeys(each.hurt.other for each in (trouble, *troubles) if each.hurt.other)
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
    """What happens to whom; `others` are all that were hurt in some spawn, the trouble's own among them."""
    hurt = trouble.hurt
    who = f"{hurt.other} is" if len(others) < 2 else f"{hurt.other} and {len(others) - 1} more are"
    text = " ".join(hurt.text.split())
    text = text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."
    when = f"while its server {trouble.kind.says}" if trouble.kind is not None else "without any fault"
    match hurt.rule:
        case rule if rule in (HURT, DELAYED) and hurt.other:
            return f"{when}, {who} hurt: {text}"
        case rule if rule == TOGETHER:
            return f"does not come up beside {hurt.other}, though it does alone: {text}"
        case rule if rule == UNTOLD and hurt.other:
            return f"{when}, {who} blamed: {text}"
        case rule if rule in (HURT, DELAYED, UNTOLD, LEAKED, ENDLESS):
            return f"{when}, {text}"
    return text


def more(troubles: Sequence[Trouble]) -> str:
    """How many further kinds of fault show the same."""
    kinds = {trouble.kind.name if trouble.kind is not None else "" for trouble in troubles}
    number = len(kinds) - 1
    return f" (and so in {number} other kind{'s' if number > 1 else ''} of spawn)" if number else ""
