"""Whether each line of a profile is noticed: of a fake with one line changed some claim must tell."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fake_runtimes.profile import Profile
from harness.canary.claims import Probe
from harness.canary.judging import NOTHING, alike
from harness.canary.profile_writing import lines_of, mutations
from harness.canary.running import Measured, Tell, measure, untold
from harness.canary.subject import Subject, fake_of


class Noticed(NamedTuple):
    """What came of it: lines that no claim reads, lines that are read and yet may change, who told of the others."""

    unread: tuple[str, ...]
    unnoticed: tuple[str, ...]
    told_by: Mapping[str, tuple[str, ...]]


class Mutant(NamedTuple):
    """A fake with one line changed, and the probes of the claims that read that line."""

    field: str
    subject: Subject
    probes: tuple[Probe, ...]


def check_lines(
    profile: Profile, probes: Sequence[Probe], *, workers: int | None = None, tell: Tell = untold
) -> Noticed:
    """Change each line and ask the claims that read it. Several values are tried until one is told."""
    readers = {field: tuple(reading(field, probes)) for field in lines_of(profile)}
    unread = tuple(field for field, found in readers.items() if not found)
    needed = tuple(each for each in probes if any(each in found for found in readers.values()))
    told_by: dict[str, tuple[str, ...]] = {}
    with tempfile.TemporaryDirectory(prefix="mcp-canary-lines-") as folder:
        (right,) = measure([(fake_of(profile), needed)], workers=workers, tell=tell)
        for mutants in rounds(profile, readers, Path(folder)):
            asked = [mutant for mutant in mutants if mutant.field not in told_by]
            answers = measure([(each.subject, each.probes) for each in asked], workers=workers, tell=tell)
            for mutant, answer in zip(asked, answers, strict=True):
                told = tuple(differing(right, answer, mutant.field, mutant.probes))
                if told:
                    told_by[mutant.field] = told
    unnoticed = tuple(field for field in readers if field not in unread and field not in told_by)
    return Noticed(unread, unnoticed, told_by)


def reading(field: str, probes: Sequence[Probe]) -> Iterator[Probe]:
    """The probes with a claim that reads that line, and whose fake answers."""
    for probe in probes:
        if any(field in claim.reads and not claim.not_modelled for claim in probe.claims):
            yield probe


def rounds(profile: Profile, readers: Mapping[str, tuple[Probe, ...]], folder: Path) -> Iterator[list[Mutant]]:
    """The first other value of each line, then the second of each, and so on."""
    texts: dict[str, list[str]] = {}
    for field, text in mutations(profile):
        if readers[field]:
            texts.setdefault(field, []).append(text)
    for number in range(max(map(len, texts.values()), default=0)):
        mutants = []
        for field, found in texts.items():
            if number < len(found):
                place = folder / f"{field}-{number}.toml"
                place.write_text(found[number], encoding="utf-8")
                mutants.append(Mutant(field, fake_of(profile, str(place)), readers[field]))
        yield mutants


def differing(right: Measured, other: Measured, field: str, probes: Sequence[Probe]) -> Iterator[str]:
    """The claims that read a line and answer otherwise."""
    for probe in probes:
        for claim in probe.claims:
            if field in claim.reads and not claim.not_modelled:
                one, two = (each.observations.get(claim.id, NOTHING) for each in (right, other))
                if one is not NOTHING and (two is NOTHING or not alike(one, two)):
                    yield claim.id
