"""Who is to be tried: installed programs and fakes, with the profile that they are tried by."""

from __future__ import annotations

from fake_runtimes.profile import PINNED, Profile, age, known_profiles, load_profile
from harness.canary.installing import Installed
from harness.canary.subject import REAL, Subject, fake_of


def real_of(installed: Installed) -> Subject:
    """An installed program; where its version has no profile, with the nearest one."""
    adapter = str(installed.adapter) if installed.adapter else ""
    profile = nearest_profile(installed.label)
    return Subject(REAL, installed.family, installed.version, installed.argv, profile, adapter)


def nearest_profile(label: str) -> Profile:
    """The profile of that version, else that of the last one before it, else that of the first one after."""
    family = label.partition("-")[0]
    of_family = [name for name in known_profiles() if age(name)[0] == family]
    older = [name for name in of_family if age(name) <= age(label)]
    return load_profile(label if label in of_family else (older or of_family[:1])[-1])


def fake_for(label: str) -> Subject | None:
    """The fake with the profile of that version; None where it has none."""
    return fake_of(load_profile(label)) if label in known_profiles() else None


def pinned_label(family: str) -> str:
    """The version that is in use."""
    return PINNED[family]
