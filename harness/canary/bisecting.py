"""The versions that changed a claim: halving what was published between two versions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from harness.canary.cache import NotInstalledError, Tell, cache_folder, megabytes
from harness.canary.claims import Probe
from harness.canary.cleaning import remove
from harness.canary.differing import shown
from harness.canary.installing import PACKAGES, RUNTIMES, VERSION, Wanted, installed
from harness.canary.judging import NOTHING, alike
from harness.canary.packages import NPM_OPTIONS, call, installed_node, npm_program
from harness.canary.running import measure
from harness.canary.subjects import real_of
from harness.errors import UserInputError

ENDS = 2
Answers = Callable[[str], Any]
"""What a version is observed to do; NOTHING where that cannot be measured."""


class Change(NamedTuple):
    """A version that answers otherwise than the last before it that could be measured, with both answers.

    `between` are versions between the two that could not be measured; one of them may be it.
    """

    last_old: str
    first_new: str
    old: Any
    new: Any
    between: tuple[str, ...]


class Found(NamedTuple):
    """The changes that were found, older first, and what was looked at: of versions between two that answer alike
    nobody knows whether a claim changed there and changed back.
    """

    changes: tuple[Change, ...]
    asked: tuple[str, ...]
    unmeasured: tuple[str, ...]
    unasked: int


def published(family: str, environment: Mapping[str, str], tell: Tell) -> list[str]:
    """All released versions of a runtime's package, older first. Raises NotInstalledError."""
    package = PACKAGES[family]
    tell(f"{family}: looking up its versions")
    npm = npm_program(environment, lambda: installed_node(cache_folder(environment), environment, tell))
    with tempfile.TemporaryDirectory() as folder:
        output = call([*npm, "view", *NPM_OPTIONS, "--json", package, "versions"], environment, Path(folder), package)
    try:
        versions = json.loads(output)
    except ValueError:
        raise NotInstalledError(f"{package}: npm named no versions") from None
    released = [each for each in versions if isinstance(each, str) and VERSION.fullmatch(each) and "-" not in each]
    return sorted(released, key=numbers)


def numbers(version: str) -> tuple[int, ...]:
    """A version for sorting."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def interval(text: str, versions: Sequence[str]) -> list[str]:
    """The versions of `A..B`, both ends with it. Raises UserInputError."""
    old, dots, new = text.partition("..")
    for end in (old, new):
        if not dots or not VERSION.fullmatch(end):
            raise UserInputError(f"{text!r} is no interval of versions", fix="Write it as 2.1.268..2.1.328.")
    if numbers(old) >= numbers(new):
        raise UserInputError(f"{old} is not older than {new}", fix="Name the older version first.")
    between = [each for each in versions if numbers(old) < numbers(each) < numbers(new)]
    return [old, *between, new]


def cached_among(versions: Sequence[str], family: str, adapter: str, environment: Mapping[str, str]) -> int:
    """How many of these versions are installed already, so that nothing of them is fetched."""
    folder = cache_folder(environment) / RUNTIMES
    return sum((folder / Wanted(family, version, adapter).label).is_dir() for version in versions)


def looks(versions: int) -> int:
    """How many of so many versions are asked to find one change: both ends, then a half of what is left each time."""
    return min(versions, ENDS + max(0, (versions - ENDS).bit_length()))


def bisect(versions: Sequence[str], answer: Answers, tell: Tell) -> Found:
    """Halve between any two that answer differently, until each change lies between neighbours.

    A version that cannot be measured is passed over. Raises NotInstalledError when that is one of the ends.
    """
    last = len(versions) - 1
    answers = {at: answer(versions[at]) for at in (0, last)}
    for at, observed in answers.items():
        tell(f"{versions[at]}: {shown(observed)}")
        if observed is NOTHING:
            raise NotInstalledError(f"{versions[at]} cannot be measured, so there is nothing to compare with")
    while (middle := next(undecided(answers), None)) is not None:
        answers[middle] = observed = answer(versions[middle])
        if observed is NOTHING:
            tell(f"{versions[middle]}: cannot be measured, passed over")
            continue
        same = [versions[at] for at in around(answers, middle) if alike(observed, answers[at])]
        tell(f"{versions[middle]}: {f'as {same[0]}' if same else shown(observed)}")
    measured = measured_in(answers)
    changes = tuple(
        Change(versions[one], versions[other], answers[one], answers[other], tuple(versions[one + 1 : other]))
        for one, other in pairwise(measured)
        if not alike(answers[one], answers[other])
    )
    silent = tuple(versions[at] for at in sorted(set(answers) - set(measured)))
    return Found(changes, tuple(versions[at] for at in measured), silent, len(versions) - len(answers))


def measured_in(answers: Mapping[int, Any]) -> list[int]:
    """The places of the versions with an answer, in order."""
    return sorted(at for at, observed in answers.items() if observed is not NOTHING)


def undecided(answers: Mapping[int, Any]) -> Iterator[int]:
    """Where to look next: of each two that differ, the place nearest to their middle that was not looked at."""
    for one, other in pairwise(measured_in(answers)):
        left = [at for at in range(one + 1, other) if at not in answers]
        if left and not alike(answers[one], answers[other]):
            yield min((abs(2 * at - one - other), at) for at in left)[1]


def around(answers: Mapping[int, Any], at: int) -> tuple[int, int]:
    """The places of the nearest measured ones before and after one."""
    measured = measured_in(answers)
    return max(each for each in measured if each < at), min(each for each in measured if each > at)


def answering(probe: Probe, adapter: str, environment: Mapping[str, str], tell: Tell) -> Answers:
    """Asks a version by installing it, and takes away again what was not there before; `probe` answers one claim."""
    (claim,) = probe.claims
    cache = cache_folder(environment)

    def answer(version: str) -> Any:
        wanted = Wanted(claim.family, version, adapter)
        folder = cache / RUNTIMES / wanted.label
        was_there = folder.exists()
        try:
            program = installed(wanted, cache, environment, tell)
        except NotInstalledError as error:
            tell(f"{version}: {error}")
            return NOTHING
        try:
            (measured,) = measure([(real_of(program), (probe,))], tell=tell)
        finally:
            if not was_there:
                take_away(folder, tell)
        return measured.observations.get(claim.id, NOTHING)

    return answer


def take_away(folder: Path, tell: Tell) -> None:
    """Remove an installed version; one that cannot be removed stays, and that is told."""
    if not folder.exists():
        return
    try:
        removed = remove(folder)
    except (OSError, NotInstalledError) as error:
        tell(f"{folder.name} stays in the cache, as it cannot be removed: {error}")
    else:
        tell(f"{removed.name}: removed again, {megabytes(removed.size)}")
