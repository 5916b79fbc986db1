"""`mcp-harness canary`: what a version of a runtime really does, and what that breaks."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from fake_runtimes.profile import PINNED, known_profiles
from harness.canary.bisecting import answering, bisect, cached_among, interval, published
from harness.canary.checking import Asked, profile_folder, run_canary
from harness.canary.claims import FAMILIES, all_probes
from harness.canary.commands import clean_command, install_command
from harness.canary.installing import parse_wanted
from harness.canary.judging import Verdict
from harness.canary.records import load_record, record_folder, record_text, recorded_labels
from harness.canary.result import Checked
from harness.cli.interrupting import ended_by_signals
from harness.cli.keeping import keep
from harness.cli.output import TEXT, deliver, targets_of
from harness.errors import CannotRunError, UserInputError
from harness.gate.spawn import runtime_asked
from harness.report.canary.changes import change_lines, change_verdict, foretold
from harness.report.canary.formats import FORMATS, formats
from harness.report.canary.listing import LIST_FORMATS, Listed
from harness.report.safety import count

LIST, CLEAN, INSTALL, BISECT, ALL = "list", "clean", "install", "--bisect", "all"
MOST_WORKERS = 64
TAKES: Mapping[str, tuple[str, ...]] = {LIST: ("claims", "format"), CLEAN: (), INSTALL: (), BISECT: ("bisect",)}
"""The options of the jobs that take not all of them."""


def run(arguments: argparse.Namespace) -> int:
    """0 nothing broke, 1 something relied on did or a fake differs, 2 unusable, 3 it cannot be had."""
    with ended_by_signals():
        if arguments.bisect is not None:
            refuse_others(BISECT, arguments)
            claim, versions = arguments.bisect
            return find_change(claim, versions, arguments)
        job = next(iter(arguments.what), "")
        if job in TAKES:
            refuse_others(job, arguments)
        match arguments.what:
            case ["list", *_]:
                return list_claims(arguments)
            case ["clean"]:
                return say(clean_command(os.environ))
            case ["clean", *_]:
                raise UserInputError("canary clean takes no runtime", fix="It removes all that was installed.")
            case ["install", *named]:
                texts = [text for name in named or [ALL] for text in pinned_too(name)]
                return say(install_command(texts, os.environ, tell))
        return check(arguments)


def refuse_others(job: str, arguments: argparse.Namespace) -> None:
    """Raises UserInputError for an option that a job does not take: nothing that is said counts for nothing."""
    given = {name for name, value in vars(arguments).items() if value not in (None, False, [])} - {"what"}
    others = sorted(given - set(TAKES[job]))
    if others:
        taken = ", ".join(f"--{name}" for name in TAKES[job] if name != "bisect") or "no option"
        options = ", ".join(f"--{name.replace('_', '-')}" for name in others)
        raise UserInputError(f"canary {job} does not take {options}", fix=f"It takes {taken}.")


# --- measuring


def check(arguments: argparse.Namespace) -> int:
    """Measure and report."""
    targets = targets_of(arguments.format, tuple(FORMATS))
    if arguments.details and not any(target.format == TEXT for target in targets):
        raise UserInputError("--details is about the text", fix="The other formats hold every claim; leave it out.")
    asked = asked_by(arguments)
    canary = run_canary(asked, os.environ, tell)
    if not canary.checked and canary.missing:
        raise CannotRunError("; ".join(each.reason for each in canary.missing))
    if arguments.record:
        for checked in canary.checked:
            record(checked)
    in_format = formats(details=arguments.details)
    deliver(targets, lambda name: in_format[name](canary))
    return canary.exit_code


def asked_by(arguments: argparse.Namespace) -> Asked:
    """What the arguments ask for. Raises UserInputError."""
    named: Sequence[str] = arguments.what
    if not named and not arguments.fakes:
        raise UserInputError("no runtime is named", fix="Name one, e.g. claude@2.1.328, or all; or --fakes alone.")
    if not named and (arguments.write_profile or arguments.record or arguments.against):
        raise UserInputError("a profile, a record and --against are of a real program", fix="Name a runtime.")
    if arguments.profiles and not arguments.write_profile:
        raise UserInputError("--profiles says where --write-profile writes", fix="Give both.")
    if arguments.workers is not None and not 0 < arguments.workers <= MOST_WORKERS:
        raise UserInputError(f"--workers is {arguments.workers}", fix=f"Give a number from 1 to {MOST_WORKERS}.")
    patterns = tuple(arguments.claims or ("*",))
    texts = [text for name in named for text in pinned_too(name)]
    if not named:
        texts = [name.replace("-", "@", 1) for name in known_profiles()]
    profiles = (Path(arguments.profiles) if arguments.profiles else profile_folder()).resolve()
    return Asked(
        wanted=tuple(dict.fromkeys(parse_wanted(text) for text in texts)),
        patterns=patterns,
        against=against(arguments.against),
        with_real=bool(named),
        with_fakes=arguments.fakes,
        profiles=profiles if arguments.write_profile else None,
        workers=arguments.workers or 0,
    )


def pinned_too(name: str) -> tuple[str, ...]:
    """`all` are the pinned versions."""
    return tuple(PINNED) if name == ALL else (name,)


def against(text: str | None) -> str:
    """The name of a profile. Raises UserInputError, CannotRunError where there is none of that version."""
    return "" if text is None else runtime_asked(text, "--against").profile.name


def record(checked: Checked) -> None:
    """Keep what was observed of a real program. Raises UserInputError."""
    if checked.real is None:
        return
    label = checked.real.label
    known = {claim.id for probe in all_probes() for claim in probe.claims if claim.family == checked.family}
    text = record_text(checked.real.observations, load_record(label), known)
    keep(record_folder() / f"{label}.json", text, "--record")
    tell(f"{label}: {count(len(checked.real.observations), 'observation')} recorded")
    broken = [row.claim.id for row in checked.rows if row.verdict in (Verdict.BROKEN, Verdict.KNOWN)]
    if broken:
        tell(f"{label}: broken there from now on, as recorded: {', '.join(broken)}")


# --- the other jobs


def list_claims(arguments: argparse.Namespace) -> int:
    """All claims, or those about what is named; of a named version only what is recorded of that."""
    targets = targets_of(arguments.format, tuple(LIST_FORMATS))
    patterns = tuple(arguments.claims or ("*",))
    named = [text for name in arguments.what[1:] for text in ((name,) if name != ALL else FAMILIES)]
    versions = {text: parse_wanted(text) for text in named}
    families = {wanted.family for wanted in versions.values()} or set(FAMILIES)
    labels = {wanted.label for text, wanted in versions.items() if text not in FAMILIES}
    whole = {text for text in named if text in FAMILIES}
    claims = [claim for probe in all_probes() for claim in probe.claims if claim.family in families]
    chosen = tuple(claim for claim in claims if any(fnmatchcase(claim.id, pattern) for pattern in patterns))
    if not chosen:
        about = " or ".join(sorted(families)) if named else "any runtime"
        raise UserInputError(
            f"no claim about {about} is called {' or '.join(patterns)}", fix="mcp-harness canary list names all."
        )
    records = {
        label: load_record(label)
        for label in recorded_labels()
        if not named or label in labels or label.partition("-")[0] in whole
    }
    require_records(labels - set(records), families)
    listed = Listed(chosen, records)
    deliver(targets, lambda name: LIST_FORMATS[name](listed))
    return 0


def require_records(unrecorded: set[str], families: Collection[str]) -> None:
    """Raises UserInputError for versions of which nothing is recorded: no claim could be told to hold there."""
    if not unrecorded:
        return
    there = [spelled(label) for label in recorded_labels() if label.partition("-")[0] in families]
    recorded = f"There are records of {', '.join(there)}. " if there else ""
    missing = sorted(map(spelled, unrecorded))
    raise UserInputError(
        f"nothing is recorded of {' and '.join(missing)}",
        fix=f"{recorded}mcp-harness canary {missing[0]} measures it; with --record it has a record from then on.",
    )


def spelled(label: str) -> str:
    """A version as command lines write it."""
    return label.replace("-", "@", 1)


def find_change(claim: str, versions: str, arguments: argparse.Namespace) -> int:
    """The versions that changed a claim."""
    began = time.monotonic()
    if arguments.what:
        raise UserInputError("--bisect names its versions itself", fix=f"Leave out {' '.join(arguments.what)}.")
    probe = next((each for each in all_probes() if claim in {one.id for one in each.claims}), None)
    if probe is None:
        raise UserInputError(f"there is no claim {claim!r}", fix="mcp-harness canary list names all.")
    alone = probe._replace(claims=tuple(each for each in probe.claims if each.id == claim))
    adapter = PINNED[probe.family].partition("+")[2]
    interval(versions, ())  # refused before anything is looked up
    candidates = interval(versions, published(probe.family, os.environ, tell))
    print(f"{claim}: {len(candidates)} versions of {probe.family}, {versions}")
    there = cached_among(candidates, probe.family, adapter, os.environ)
    for line in foretold(probe.family, len(candidates), there):
        print(f"  {line}", flush=True)
    found = bisect(candidates, answering(alone, adapter, os.environ, tell), lambda line: print(f"  {line}", flush=True))
    print("\n".join(change_lines(probe.family, found)))
    print(f"{change_verdict(probe.family, versions, found)}; {time.monotonic() - began:.1f} s; seed none; exit 0")
    return 0


def say(lines: Sequence[str]) -> int:
    """Print them."""
    print("\n".join(lines))
    return 0


def tell(line: str) -> None:
    """A line of progress."""
    print(f"canary: {line}", file=sys.stderr, flush=True)
