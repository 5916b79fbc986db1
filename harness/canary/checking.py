"""A whole run of the canary: who is asked what, and what that means."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fake_runtimes.profile import DIRECTORY, Profile, known_profiles, load_profile, profile_at
from harness.canary.cache import NotInstalledError, cache_folder
from harness.canary.claims import Claim, Probe, chosen
from harness.canary.effects import scenarios_under
from harness.canary.installing import Installed, Wanted, installed, looked_up
from harness.canary.judging import judge
from harness.canary.profile_writing import Written, new_profile
from harness.canary.records import load_record
from harness.canary.result import Canary, Checked, Missing
from harness.canary.running import Measured, Tell, cores, measure, updated
from harness.canary.subject import Subject, fake_of
from harness.canary.subjects import fake_for, pinned_label, real_of
from harness.errors import UserInputError


class Asked(NamedTuple):
    """What a run is about. `against` is the profile that all are held against; empty: the pinned one of each.

    `profiles` is where new profiles are written, None where none is.
    """

    wanted: tuple[Wanted, ...]
    patterns: tuple[str, ...] = ("*",)
    against: str = ""
    with_real: bool = True
    with_fakes: bool = False
    profiles: Path | None = None
    workers: int = 0


class Ready(NamedTuple):
    """One version with all that is needed to ask it."""

    label: str
    family: str
    version: str
    against: str
    real: Subject | None
    fake: Subject | None
    digest: str
    probes: tuple[Probe, ...]

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All that its probes answer."""
        return tuple(claim for each in self.probes for claim in each.claims)


def probes_for(family: str, patterns: Sequence[str]) -> tuple[Probe, ...]:
    """The probes that answer a claim of these globs. Raises UserInputError where there is none."""
    found = chosen(family, patterns)
    if not found:
        raise UserInputError(
            f"no claim about {family} is called {' or '.join(patterns)}", fix="mcp-harness canary list names all."
        )
    return found


def run_canary(asked: Asked, environment: Mapping[str, str], tell: Tell) -> Canary:
    """Install, measure, judge. What cannot be had is told in the result. Raises UserInputError."""
    began = time.monotonic()
    workers = asked.workers or cores()
    ready: list[Ready] = []
    missing: list[Missing] = []
    probes = families_with_probes(asked)
    for family in dict.fromkeys(wanted.family for wanted in asked.wanted if wanted.family not in probes):
        tell(f"no claim about {family} is called {' or '.join(asked.patterns)}")
    for wanted in asked.wanted:
        if wanted.family in probes:
            try:
                ready.append(prepared(wanted, asked, probes[wanted.family], environment, tell))
            except NotInstalledError as error:
                missing.append(Missing(f"{wanted.family}@{wanted.whole_version}", str(error)))
    checked = checked_all(ready, asked, workers, tell)
    return Canary(tuple(checked), tuple(missing), time.monotonic() - began, workers)


def families_with_probes(asked: Asked) -> dict[str, tuple[Probe, ...]]:
    """The probes of each runtime that is asked for; a glob need fit one of them only. Raises UserInputError."""
    families = dict.fromkeys(wanted.family for wanted in asked.wanted)
    found = {family: chosen(family, asked.patterns) for family in families}
    if not any(found.values()):
        probes_for(" or ".join(families), asked.patterns)
    return {family: probes for family, probes in found.items() if probes}


def prepared(
    wanted: Wanted, asked: Asked, probes: tuple[Probe, ...], environment: Mapping[str, str], tell: Tell
) -> Ready:
    """One version with its program in place. Raises NotInstalledError, UserInputError."""
    program: Installed | None = None
    label, version = wanted.label, wanted.whole_version
    if asked.with_real:
        cache = cache_folder(environment)
        wanted = looked_up(wanted, cache, environment, tell)
        program = installed(wanted, cache, environment, tell)
        label, version = program.label, program.version
    elif label not in known_profiles():
        raise UserInputError(
            f"there is no profile {label}, so no fake of it", fix="Measure the program, with --write-profile."
        )
    against = label if not asked.with_real else asked.against or pinned_label(wanted.family)
    if not against.startswith(f"{wanted.family}-"):
        raise UserInputError(f"--against {against} is no profile of {wanted.family}")
    fake = fake_for(label) if asked.with_fakes else None
    if asked.with_fakes and fake is None and asked.profiles is None:
        tell(f"{label}: it has no profile, so there is no fake to compare; --write-profile makes one")
    real = None if program is None else real_of(program)
    digest = "" if program is None else program.digest
    return Ready(label, wanted.family, version, against, real, fake, digest, probes)


def checked_all(ready: Sequence[Ready], asked: Asked, workers: int, tell: Tell) -> list[Checked]:
    """Ask all of them, the real programs and those fakes that there are; then the fakes whose profiles are new."""
    answers = confirmed(ready, asked_once(ready, workers, tell), tell)
    written = [new_one(each, real, asked) for each, (real, _) in zip(ready, answers, strict=True)]
    new = [
        (fake_of(profile_at(str(place)), str(place)), each.probes)
        for each, (_, place) in zip(ready, written, strict=True)
        if place is not None
    ]
    fakes = iter(measure(new, workers=workers, tell=tell) if new else ())
    found = []
    for each, (real, fake), (profile, place) in zip(ready, answers, written, strict=True):
        found.append(judged(each, real, fake if place is None else next(fakes), profile, place))
    return found


Answers = list[tuple[Measured | None, Measured | None]]
"""Of each version, what the real program and what the fake said."""


def asked_once(ready: Sequence[Ready], workers: int, tell: Tell) -> Answers:
    """Every probe once."""
    subjects = [(subject, each.probes) for each in ready for subject in (each.real, each.fake) if subject]
    results = iter(measure(subjects, workers=workers, tell=tell))
    return [(next(results) if each.real else None, next(results) if each.fake else None) for each in ready]


def confirmed(ready: Sequence[Ready], answers: Answers, tell: Tell) -> Answers:
    """The same, but what would be told as a failure or a change was measured twice, and nothing ran beside it then.

    A machine that is busy makes a program late; that must not look like another version's fault.
    """
    found: Answers = []
    for each, (real, fake) in zip(ready, answers, strict=True):
        rows = judge(each.claims, before=load_record(each.against), real=real, fake=fake)
        doubtful = {row.claim.id for row in rows if row.fails or row.answers_otherwise}
        probes = [probe for probe in each.probes if doubtful & {claim.id for claim in probe.claims}]
        if not probes:
            found.append((real, fake))
            continue
        tell(f"{each.label}: once more, alone: {', '.join(probe.name for probe in probes)}")
        again = iter(measure([(it.subject, probes) for it in (real, fake) if it], workers=1, tell=tell))
        found.append((updated(real, next(again)) if real else None, updated(fake, next(again)) if fake else None))
    return found


def new_one(ready: Ready, real: Measured | None, asked: Asked) -> tuple[Written | None, Path | None]:
    """The profile of what was measured, where one is to be written, with its place. Raises UserInputError.

    It is made from the nearest version's: fewer lines are wrong in that where nothing measures them.
    """
    folder = asked.profiles
    if folder is None or real is None:
        return None, None
    old = load_profile(asked.against) if asked.against else real.subject.profile
    written = new_profile(old, ready.version, ready.claims, real.observations, load_record(old.name))
    place = folder / f"{written.name}.toml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        place.write_text(written.text, encoding="utf-8")
    except OSError as error:
        raise UserInputError(f"the profile cannot be written: {error.strerror}", file=str(place)) from None
    return written, place


def judged(
    ready: Ready, real: Measured | None, fake: Measured | None, written: Written | None, place: Path | None
) -> Checked:
    """What the answers of one version mean."""
    before: Mapping[str, Any] = load_record(ready.against)
    old, new = load_profile(ready.against), profile_of(ready.label, place)
    is_other = new is not None and real is not None and ready.label != ready.against
    played = scenarios_under(new, old) if new is not None and is_other else None
    return Checked(
        ready.family,
        ready.version,
        ready.against.replace("-", "@", 1),
        ready.against == pinned_label(ready.family),
        bool(before),
        judge(ready.claims, before=before, real=real, fake=fake),
        real,
        fake,
        ready.digest,
        played,
        written,
        "" if place is None else shown_place(place),
        unasked(ready),
    )


def unasked(ready: Ready) -> tuple[Claim, ...]:
    """The claims about the runtime that are not among those that are asked."""
    asked = {claim.id for claim in ready.claims}
    return tuple(claim for probe in chosen(ready.family) for claim in probe.claims if claim.id not in asked)


def profile_of(label: str, place: Path | None) -> Profile | None:
    """The profile of a version, a newly written one first; None where it has none."""
    if place is not None:
        return profile_at(str(place))
    return load_profile(label) if label in known_profiles() else None


def shown_place(place: Path) -> str:
    """A path as reports show it."""
    here = Path.cwd()
    return str(place.relative_to(here)) if place.is_relative_to(here) else str(place)


def profile_folder() -> Path:
    """Where profiles are."""
    return Path(DIRECTORY)
