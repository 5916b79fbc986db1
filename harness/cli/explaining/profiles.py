"""Lines of runtimes' profiles, and the versions that have one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from fake_runtimes.profile import PINNED, Profile, known_profiles, load_profile, profile_text
from harness.canary.claims import FAMILIES, all_probes
from harness.canary.profile_writing import lines_of
from harness.canary.records import load_record
from harness.cli.explaining.kind import Kind, labelled, listed, paragraphs, text_of
from harness.report.canary.summary import text
from harness.report.safety import shorten, visible

LONGEST_VALUE = 200
SENTENCE = re.compile(r"(?<=[.;])\s+")
SECTION = re.compile(r"^# (.*)$")
MOST_CLAIMS = 12


def families_of(line: str) -> list[str]:
    """The runtimes whose profiles have such a line."""
    return [family for family in FAMILIES if line in lines_of(load_profile(PINNED[family]))]


def ids() -> Collection[str]:
    """The names of all lines that say what a program does."""
    return dict.fromkeys(line for family in FAMILIES for line in lines_of(load_profile(PINNED[family])))


def explanation(line: str) -> str:
    """What it is, what it is on each version, and which claims of the canary read it."""
    lines: list[str] = []
    for family in families_of(line):
        profiles = [load_profile(label) for label in known_profiles() if label.startswith(f"{family}-")]
        lines += paragraphs("what", meanings(line, profiles[0]))
        lines += paragraphs("values", values(line, profiles))
        readers = [claim for probe in all_probes() for claim in probe.claims if line in claim.lines]
        mine = [claim for claim in readers if claim.family == family]
        lines += [*listed("claims", [claim.id for claim in mine], MOST_CLAIMS)]
    whose = " and ".join(families_of(line))
    asked = families_of(line)[0]
    claims = [claim.id for probe in all_probes() for claim in probe.claims if line in claim.lines]
    command = {"measure it": f"mcp-harness canary {asked} --claims {claims[0]}"} if claims else {}
    return text_of(f"{line}  line of the profiles of {whose}", lines, command)


def meanings(line: str, profile: Profile) -> Iterator[str]:
    """What is said of a line for all versions: the part of the files in which it stands, and what it means."""
    section, _ = remarks(line, profile.name)
    yield f"in the part {section!r} of {profile.runtime}'s profiles" if section else f"of {profile.runtime}'s profiles"
    told = " ".join((type(profile).__doc__ or "").split())
    yield from (part.rstrip(";") for part in SENTENCE.split(told) if f"`{line}`" in part)


def remarks(line: str, label: str) -> tuple[str, str]:
    """The heading above a line in its file, and the remark behind it."""
    section = ""
    for number, row in enumerate(profile_text(label).splitlines()):
        heading = SECTION.match(row)
        if heading and number:
            section = heading[1]
        if row.startswith(f"{line} = "):
            return section, row.partition(" # ")[2].strip()
    return section, ""


def values(line: str, profiles: Collection[Profile]) -> Iterator[str]:
    """Its value on each version, with what the file says of that."""
    claims = {claim.id for probe in all_probes() for claim in probe.claims}
    for profile in profiles:
        pinned = " (pinned)" if profile.name in PINNED.values() else ""
        value = getattr(profile, line)
        shown = text(list(value) if isinstance(value, tuple) else value)
        _, remark = remarks(line, profile.name)
        said = f" ({remark})" if remark and remark not in claims else ""
        yield f"{profile.name}{pinned}: {shorten(visible(shown), LONGEST_VALUE)}{said}"


# --- versions


def version_ids() -> Collection[str]:
    """The versions that have a profile, as command lines write them."""
    return [label.replace("-", "@", 1) for label in known_profiles()]


def version_explanation(name: str) -> str:
    """Which lines are others than on the pinned version, and what is recorded."""
    label = name.replace("@", "-", 1)
    profile = load_profile(label)
    pinned = load_profile(PINNED[profile.runtime])
    differ = [line for line in lines_of(profile) if getattr(profile, line) != getattr(pinned, line)]
    lines = labelled("pinned", "yes: it is the one in use") if profile == pinned else []
    lines += listed("others", [line for line in differ if line != "version"])
    lines += labelled("measured", f"{len(load_record(label))} claims are recorded of it")
    commands = {"catalog": f"mcp-harness gate --runtime {name}", "measure": f"mcp-harness canary {name}"}
    return text_of(f"{name}  version of a runtime with a profile, so with a fake", lines, commands)


LINE = Kind("line of a profile", ids, explanation)
VERSION = Kind("version of a runtime", version_ids, version_explanation, lambda text: meant_version(text))


def meant_version(text: str) -> str:
    """A profile's own name, or a bare runtime for its pinned version."""
    label = PINNED.get(text.casefold(), text.casefold())
    return label.replace("-", "@", 1) if label in known_profiles() else ""
