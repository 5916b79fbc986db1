"""The sentences that several formats share: what was judged, the verdict, what was let pass."""

from __future__ import annotations

from collections.abc import Sequence

from harness.gate.model import Finding
from harness.report.run import Run
from harness.report.safety import NO_NAME, count, shorten, visible

_LONGEST_REASON = 60
_MAXIMUM_ALLOWANCES = 3
_MAXIMUM_RUNTIMES = 12
_MAXIMUM_EVENTS = 4
_LONGEST_NAME = 120
KNOWN_OF_RUNTIMES = "known of the runtimes, not of your catalog:"


def heading(run: Run) -> str:
    """What is judged, against what."""
    started = run.started
    catalog = short(started.catalog)
    if started.base is not None:
        others = "" if started.pinned else f"; {runtimes(run)}"
        return f"{catalog} against {short(started.base)}: {_comparison(run)}{others}"
    roots = f", {short(started.roots_file)}: {count(started.roots, 'root')}" if started.roots_file else ""
    entries = count(started.entries, "entry", "entries")
    return f"{catalog}: {entries}{roots}; {runtimes(run)}"


def caution(run: Run) -> str:
    """What is not right about the base; empty where nothing is."""
    told = visible(run.started.caution)
    return f"{told[:1].upper()}{told[1:]}." if told else ""


def runtimes(run: Run) -> str:
    """The runtimes, and whether their versions are the pinned ones."""
    listed = [short(name) for name in run.started.runtimes[:_MAXIMUM_RUNTIMES]]
    more = len(run.started.runtimes) - len(listed)
    names = " ".join(listed) + (f" and {more} more" if more else "")
    return f"{names} (pinned)" if run.started.pinned else names


def _comparison(run: Run) -> str:
    kinds = [change.kind for change in run.changes]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in ("added", "changed", "removed"))
    how = "judged too" if run.judged_untouched else "not run again; --all runs them"
    return f"{counts}, {run.untouched} untouched" + (f" ({how})" if run.untouched else "")


def verdict(run: Run) -> str:
    """Everything that the last line says, up to the exit code."""
    done = run.finished
    counts = ", ".join((count(done.errors, "error"), count(done.warnings, "warning"), count(done.notes, "note")))
    allowed = f" ({allowances(run.allowed, done.allowed)})" if done.allowed else ""
    judged = f"{done.judged}/{count(done.entries, 'entry', 'entries')} judged"
    return f"{done.verdict}  {counts}{allowed}; {judged}; {done.seconds:.1f} s; seed {done.seed}; exit {done.exit_code}"


def faults_tried(run: Run) -> str:
    """What the battery did, and whether every fault stayed with its entry; empty when it did not run."""
    tried = run.tried
    if tried is None:
        return ""
    if not tried.spawns:
        nobody = "no entry comes up anywhere" if run.finished.judged else "no entry was judged"
        return f"no fault was simulated: {nobody}"
    low, high = tried.kinds
    kinds = count(high, "kind") if low == high else f"{low} to {count(high, 'kind')}"
    whom = count(tried.entries, "entry", "entries")
    if tried.shapes is not None:
        whom = f"{count(tried.shapes, 'shape')} of {whom} (every other entry once)"
    size = f"{kinds} x {whom} x {count(tried.runtimes, 'runtime')}"
    if tried.shapes is None and tried.spawns < low * tried.entries * tried.runtimes:
        size += ", where they start"
    starts = f"{count(tried.spawns, 'simulated start')} with one fault each ({size})"
    failed = tried.spawns - tried.survived
    others = "no other entry was ever hurt"
    if tried.hurt:
        others = "1 entry hurts others" if tried.hurt == 1 else f"{tried.hurt:,} entries hurt others"
    came = f"the struck server failed{'' if tried.hurt else ' alone'} in {failed:,}, came through in {tried.survived:,}"
    untried = f"; {count(tried.untried, 'entry', 'entries')} not tried, since nothing starts" if tried.untried else ""
    return f"{starts}: {came}; {others}{untried}"


def runtime_facts(run: Run) -> list[str]:
    """What a runtime does to every session with a fault in it, a line for each runtime."""
    facts: dict[str, list[str]] = {}
    for fact in run.tried.facts if run.tried is not None else ():
        facts.setdefault(fact.runtime, []).append(f"{visible(fact.text)} ({fact.rule})")
    return [f"{runtime}: {'; '.join(texts)}" for runtime, texts in facts.items()]


def allowances(findings: Sequence[Finding], number: int) -> str:
    """`allowed: 1, see mcp-harness.toml:4 "acme-legacy, until 2027-01-31"`."""
    places: dict[str, str] = {}
    for finding in findings:
        if finding.allowance is not None:
            until = f", until {visible(finding.allowance.until)}" if finding.allowance.until else ""
            reason = shorten(visible(finding.allowance.reason), _LONGEST_REASON)
            places.setdefault(short(finding.allowance.place), f'"{reason}{until}"')
    listed = [f"{place} {reason}" for place, reason in places.items()]
    more = len(listed) - _MAXIMUM_ALLOWANCES
    see = ", ".join(listed[:_MAXIMUM_ALLOWANCES]) + (f" and {more} more" if more > 0 else "")
    return f"allowed: {number}" + (f", see {see}" if see else "")


def sentence(run: Run, finding: Finding) -> str:
    """One finding in words: the entry, what happens, on which runtimes (unless said), what to do."""
    heads = [short(finding.entry)] if finding.entry is not None else []
    heads += ["already there"] if finding.new is False else []
    entry = f"{', '.join(heads)}: " if heads else ""
    fix = f" Fix: {visible(finding.fix)}" if finding.fix else ""
    fix += f" Proof: {proof_command(finding)}{_event_ids(finding)}" if finding.proof is not None else ""
    stop = "." if finding.fix and not finding.message.endswith((".", "!", "?")) else ""
    return f"{entry}{visible(finding.message)}{stop}{_where(run, finding)}{fix}"


def proof_command(finding: Finding) -> str:
    """How the scenario of a battery's finding is played; empty where there is none."""
    return f"mcp-harness run {visible(finding.proof.name)}" if finding.proof is not None else ""


def _event_ids(finding: Finding) -> str:
    """The events that prove it, in that run."""
    shown = [str(event) for event in finding.events[:_MAXIMUM_EVENTS]]
    return f" ({'event' if len(shown) == 1 else 'events'} {', '.join(shown)})" if shown else ""


def _where(run: Run, finding: Finding) -> str:
    concerned = finding.runtimes
    if not concerned or set(concerned) >= set(run.started.runtimes):
        return ""
    message = finding.message.lower()
    if any(runtime.partition("@")[0].lower() in message for runtime in concerned):
        return ""
    return f" [{', '.join(map(visible, concerned))}]"


def short(name: str) -> str:
    """A name that someone else chose, on one line and of bounded length; one that is empty is seen to be."""
    return shorten(visible(name), _LONGEST_NAME) or NO_NAME
