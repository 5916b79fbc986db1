"""A new profile from an old one and what was observed; and mutated ones, to see whether any claim notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.items import Comment
from tomlkit.toml_document import TOMLDocument

from fake_runtimes.profile import CHECKS, Profile, field_kinds, known_profiles, profile_text, read_profile
from harness.canary.claims import Claim
from harness.canary.judging import alike

RUNTIME, VERSION = "runtime", "version"
"""Lines that say which program it is, not what it does; it tells its version itself."""
MARK = "not measured on this version, as on {old}"


class Derived(NamedTuple):
    """What the observations say of a field: its value, and the claim it was taken from."""

    value: Any
    claim: str


class Written(NamedTuple):
    """A new profile: its text; the fields that were derived, those of them that changed, those only kept."""

    name: str
    text: str
    derived: tuple[str, ...]
    changed: tuple[str, ...]
    kept: tuple[str, ...]
    problems: tuple[str, ...]


def fields_of(profile: Profile) -> dict[str, str]:
    """The fields of a profile that say what the program does, with their kinds as text."""
    return {name: kind for name, kind in lines_of(profile).items() if name != VERSION}


def lines_of(profile: Profile) -> dict[str, str]:
    """The lines of a profile in which the program may be another, the version with them."""
    return {name: kind for name, kind in field_kinds(type(profile)).items() if name != RUNTIME}


def derived_fields(
    profile: Profile, claims: Iterable[Claim], observations: Mapping[str, Any]
) -> tuple[dict[str, Derived], list[str]]:
    """What the claims give, and what they should have given and did not. The first claim that gives a field wins."""
    kinds = fields_of(profile)
    found: dict[str, Derived] = {}
    problems = []
    for claim in claims:
        for field, derive in claim.derive.items():
            if claim.id not in observations or field in found:
                continue
            try:
                value = derive(observations[claim.id])
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                problems.append(f"{field}: {claim.id} does not give it ({type(error).__name__}: {error})")
                continue
            wrong = misfit(field, value, kinds)
            if wrong:
                problems.append(f"{field}: {claim.id} gives {value!r}, {wrong}")
            else:
                found[field] = Derived(list(value) if isinstance(value, tuple) else value, claim.id)
    return found, problems


def misfit(field: str, value: Any, kinds: Mapping[str, str]) -> str:
    """Why a value cannot stand in that line; empty where it can."""
    if field not in kinds:
        return "and there is no such line"
    plain = list(value) if isinstance(value, tuple) else value
    if type(plain) is not CHECKS[kinds[field]]:
        return f"not {kinds[field]}"
    return "" if not isinstance(plain, list) or all(isinstance(each, str) for each in plain) else "not all texts"


def confirmed_fields(claims: Iterable[Claim], before: Mapping[str, Any], observations: Mapping[str, Any]) -> set[str]:
    """The lines that some claim reads and all claims that do observe what was recorded with the old profile."""
    alike_of: dict[str, list[bool]] = {}
    for claim in claims:
        if claim.id in observations:
            same = claim.id in before and alike(before[claim.id], observations[claim.id])
            for field in claim.reads:
                alike_of.setdefault(field, []).append(same)
    return {field for field, each in alike_of.items() if all(each)}


def new_profile(
    old: Profile, version: str, claims: Sequence[Claim], observations: Mapping[str, Any], before: Mapping[str, Any]
) -> Written:
    """The old profile's text with the version and all lines that the observations give.

    `before` is the record of the old profile's version. A line that nothing derives is the old one; it says so, unless
    what reads it was seen to be as before.
    """
    found, problems = derived_fields(old, claims, observations)
    confirmed = confirmed_fields(claims, before, observations)
    document = tomlkit.parse(profile_text(old.name))
    changed, kept = [], []
    retitle(document, f"# {old.runtime} {version}: written by mcp-harness canary from {old.name}.")
    replace(document, "version", version)
    for field in fields_of(old):
        item: Any = document.item(field)
        if field not in found and field in confirmed:
            continue
        if field not in found:
            kept.append(field)
            said = item.trivia.comment.removeprefix("#").strip()
            item.comment("; ".join(part for part in (said, MARK.format(old=old.version)) if part))
        elif found[field].value != item.unwrap():
            changed.append(field)
            replace(document, field, found[field].value)
            item = document.item(field)
            item.comment(found[field].claim)
    name = f"{old.runtime}-{version}"
    text = tomlkit.dumps(document)
    read_profile(name, text)
    return Written(name, text, tuple(found), tuple(changed), tuple(kept), tuple(problems))


def replace(document: TOMLDocument, field: str, value: Any) -> None:
    """Another value in its place, the layout and the comment kept."""
    document[field] = value


def retitle(document: TOMLDocument, line: str) -> None:
    """Another first line, which says where the profile comes from."""
    for position, (key, item) in enumerate(document.body):
        if key is None and isinstance(item, Comment):
            document.body[position] = (None, tomlkit.comment(line.removeprefix("# ")))
            return


# --- mutations


def mutations(profile: Profile) -> Iterator[tuple[str, str]]:
    """For each line, profile texts in which it alone is another: (field, text). The siblings' values come first."""
    text = profile_text(profile.name)
    for field in lines_of(profile):
        for value in other_values(profile, field):
            document = tomlkit.parse(text)
            replace(document, field, value)
            yield field, tomlkit.dumps(document)


def other_values(profile: Profile, field: str) -> Iterator[Any]:
    """Values that this line could have: those of other versions, then some made up."""
    own = getattr(profile, field)
    seen = [own]
    siblings = [read_profile(name, profile_text(name)) for name in known_profiles() if name.startswith(profile.runtime)]
    for value in (*(getattr(each, field) for each in siblings), *made_up(own)):
        if value not in seen:
            seen.append(value)
            yield list(value) if isinstance(value, tuple) else value


def made_up(value: Any) -> tuple[Any, ...]:
    """Other values of the same kind."""
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int):
        return (value // 2, value + 4000) if value > 1 else (value + 4000, value + 1)
    if isinstance(value, float):
        return (value / 2, value + 4.0)
    if isinstance(value, tuple):
        return (value[1:], (*value, "made-up"))
    return (f"{value} made up" if value else "made up",)
