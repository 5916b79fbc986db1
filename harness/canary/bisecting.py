"""The version that changed a claim: halving what was published between two versions."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
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

Answers = Callable[[str], Any]
"""What a version is observed to do; NOTHING where that cannot be measured."""


class Found(NamedTuple):
    """The first version that answers otherwise than the older end, and the last that does not.

    `between` are versions between the two that could not be measured; one of them may be it.
    """

    last_old: str
    first_new: str
    old: Any
    new: Any
    between: tuple[str, ...]


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


def bisect(versions: Sequence[str], answer: Answers, tell: Tell) -> Found | None:
    """Halve until two neighbours answer differently; None where both ends answer alike.

    A version that cannot be measured is passed over. Raises NotInstalledError when that is one of the ends.
    """
    candidates = list(versions)
    old, new = answer(candidates[0]), answer(candidates[-1])
    for end, observed in ((candidates[0], old), (candidates[-1], new)):
        tell(f"{end}: {shown(observed)}")
        if observed is NOTHING:
            raise NotInstalledError(f"{end} cannot be measured, so there is nothing to compare with")
    if alike(old, new):
        return None
    while len(candidates) > 2:
        middle = candidates[len(candidates) // 2]
        observed = answer(middle)
        if observed is NOTHING:
            candidates.remove(middle)
            tell(f"{middle}: cannot be measured, passed over")
            continue
        is_old = alike(observed, old)
        at = candidates.index(middle)
        candidates = candidates[at:] if is_old else candidates[: at + 1]
        new = new if is_old else observed
        tell(f"{middle}: {'as before' if is_old else shown(observed)}; {len(candidates) - 2} versions left")
    first, last = versions.index(candidates[0]), versions.index(candidates[1])
    return Found(candidates[0], candidates[1], old, new, tuple(versions[first + 1 : last]))


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
