"""Claims of the canary and the probes that answer them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from fake_runtimes.profile import PINNED, age
from harness.canary.claims import Claim, Probe, Unstated, all_probes
from harness.canary.judging import alike
from harness.canary.records import load_record, recorded_labels
from harness.canary.workarounds import WORKAROUNDS
from harness.cli.explaining.kind import Kind, labelled, listed, paragraphs, text_of
from harness.cli.explaining.requirements import requirement_line
from harness.report.canary.summary import text
from harness.report.safety import count, shorten, visible

LONGEST_ANSWER = 200


@cache
def by_id() -> dict[str, Claim]:
    """All claims."""
    return {claim.id: claim for probe in all_probes() for claim in probe.claims}


@cache
def records() -> dict[str, dict[str, Any]]:
    """What is recorded, by version."""
    return {label: load_record(label) for label in recorded_labels()}


def explanation(name: str) -> str:
    """What is asked, what follows where a version answers otherwise, what each was seen to do, and what to do next."""
    claim = by_id()[name]
    lines = [*labelled("says", claim.says), *labelled("affects", claim.affects)]
    lines += paragraphs("rules", map(requirement_line, claim.relied_on))
    lines += [*listed("profile", claim.lines), *labelled("no fake", claim.not_modelled)]
    lines += paragraphs("if not so", consequences(claim))
    lines += paragraphs("measured", answers(claim))
    return text_of(f"{claim.id}  claim of the canary about {claim.family}, {claim.source}", lines, steps(claim))


def consequences(claim: Claim) -> Iterator[str]:
    """What follows where a version answers otherwise."""
    if claim.relied_on:
        touched = f"; that touches {claim.affects}" if claim.affects else ""
        yield f"no longer true of that version: {', '.join(claim.relied_on)}{touched}"
    elif not isinstance(claim.assumes, Unstated):
        yield "Zimmer relies on it, by no rule of its own"
    if claim.lines:
        what = count(len(claim.lines), "line")
        yield f"its fake needs a profile of its own: {what} ({', '.join(claim.lines)}) may be another value there"
    for bug in WORKAROUNDS:
        if bug.bug in claim.shows:
            yield f"it shows whether {bug.bug} is still there, so whether this is needed: {bug.ours}"
    if not (claim.relied_on or claim.lines or claim.shows) and isinstance(claim.assumes, Unstated):
        yield "nothing of ours hangs on it"


def answers(claim: Claim) -> Iterator[str]:
    """What each recorded version was seen to do."""
    words = {True: "holds", False: "broken", None: "seen"}
    found = {label: record[claim.id] for label, record in records().items() if claim.id in record}
    for label, observed in found.items():
        answer = shorten(visible(text(observed)), LONGEST_ANSWER)
        yield f"{label} {words[claim.holds(observed)]}: {answer}"
    if not found:
        yield "on no version"


def steps(claim: Claim) -> dict[str, str]:
    """What to call next, with the versions: to ask it again, to find since when, to judge a catalog there."""
    family, pinned = claim.family, PINNED[claim.family]
    mine = sorted((label for label in records() if label.startswith(f"{family}-")), key=age)
    seen = {label: records()[label][claim.id] for label in mine if claim.id in records()[label]}
    others = [label for label in seen if pinned in seen and not alike(seen[label], seen[pinned])]
    asked = others[0] if others else pinned
    told = {"ask it": f"mcp-harness canary {spelled(asked)} --claims {claim.id}"}
    if others:
        old, new = next(pair for pair in pairwise(seen) if not alike(seen[pair[0]], seen[pair[1]]))
        ends = "..".join(label.partition("-")[2].partition("+")[0] for label in (old, new))
        told["since when"] = f"mcp-harness canary --bisect {claim.id} {ends}"
        told["catalog"] = f"mcp-harness gate --runtime {spelled(others[0])}"
    return told


def spelled(label: str) -> str:
    """A version as command lines write it."""
    return label.replace("-", "@", 1)


def probes() -> dict[str, list[Probe]]:
    """All probes by name; two runtimes may each have one of that name."""
    found: dict[str, list[Probe]] = {}
    for probe in all_probes():
        found.setdefault(probe.name, []).append(probe)
    return found


def probe_ids() -> Collection[str]:
    """Their names."""
    return probes()


def probe_explanation(name: str) -> str:
    """What it does, which claims it answers, how long it takes."""
    lines: list[str] = []
    for probe in probes()[name]:
        lines += labelled(probe.family, " ".join((probe.ask.__doc__ or "").split()))
        lines += labelled("", f"about {probe.seconds:g} s, given up after {probe.limit_seconds:g} s")
        lines += listed("claims", [claim.id for claim in probe.claims])
    return text_of(f"{name}  probe of the canary: what is done to a runtime to answer its claims", lines)


CLAIM = Kind("claim of the canary", by_id, explanation)
PROBE = Kind("probe of the canary", probe_ids, probe_explanation)
