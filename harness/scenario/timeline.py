"""Who did what when, as text: only what tells the story, then what was expected, then one line that says it all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.next_steps import step_lines
from harness.requirements.holes import load_holes
from harness.scenario.desk import ACTORS
from harness.scenario.model import Scenario
from harness.scenario.naming import OPERATOR, plain
from harness.scenario.next_steps import Again, named, next_steps
from harness.scenario.operator import applies
from harness.scenario.production import Judged, Report
from harness.scenario.sentences import said
from harness.scenario.telling import Teller, clipped
from harness.scenario.tiers import MODEL, REAL
from harness.scenario.variants import kind_of

WHO_WIDTH = 16
HOLES = "harness/scenario/HOLES.md"
NO_OPTIONS = Again()
CALM = "calmest order"
OF_PROCESSES = "order of the machine"
"""Who runs first is chosen by the operating system."""
FAILURE = ".failure.toml"
OF_FAKES = "fake_"
"""How variants of the fakes are called: a real program does not notice them."""


def timeline(
    report: Report, *, real_seconds: float | None, order: str, exit_code: int, again: Again = NO_OPTIONS
) -> list[str]:
    """The lines of one run; `order` says who chose what runs first: `seed 7`. `again`: how to ask for it once more."""
    scenario = report.scenario
    order = order if report.tier == MODEL else OF_PROCESSES
    head = f'{scenario.file or scenario.id}  "{scenario.title}"'
    bad = f", with {report.variant}" if report.variant else ""
    lines = [head, f"on {report.runtime.label}, tier {report.tier}, {order}{bad}", ""]
    lines += story(report)
    lines += ["", *expected(report)] if report.judged or report.invariants else []
    if report.detail:
        lines += ["", *(f"  {report.verdict}: {reason}" for reason in report.detail.split("\n"))]
    lines += old_bugs(report)
    lines += step_lines(next_steps(report, again))
    lines.append(last_line(report, real_seconds, order, exit_code))
    return lines


def story(report: Report) -> list[str]:
    """One line for each event that tells something."""
    alone = len(report.scenario.sessions) < 2
    rows = [
        (clock(at_seconds), short(actor, alone=alone), text)
        for at_seconds, actor, text in told_in_order(report)
        if text
    ]
    if not rows:
        return []
    width = max(WHO_WIDTH, *(len(who) for _, who, _ in rows))
    return in_columns(
        [("virtual", f"{'who':<{width}}  what"), *((at, f"{who:<{width}}  {text}") for at, who, text in rows)]
    )


def in_columns(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines that begin with a time; those of a run of hours are longer."""
    width = max(len(at) for at, _ in rows)
    return [f"   {at:>{width}}   {text}" for at, text in rows]


def told_in_order(report: Report) -> Iterator[tuple[float, str, str]]:
    """When, who and what: the events, and between them what the holds did."""
    teller = Teller(quitters(report.scenario))
    kept = list(report.kept)
    for number, event in enumerate(report.events):
        while kept and kept[0].events <= number:
            yield kept[0].at_seconds, kept[0].actor, kept[0].text
            kept.pop(0)
        yield event.at_seconds - report.started_seconds, event.actor, teller.tell(event)
    yield from ((each.at_seconds, each.actor, each.text) for each in kept)


def quitters(scenario: Scenario) -> set[str]:
    """The servers that end by themselves."""
    return {name for name, each in scenario.servers.items() if each.exits != "never"}


def points(report: Report) -> list[str]:
    """Every switch point of a run: where a hold can keep an actor, and where a fault may strike."""
    width = max([WHO_WIDTH, *(len(point.actor) for point in report.points)])
    rows = [(clock(each.at_seconds), f"{each.actor:<{width}}  {each.label}") for each in report.points]
    return in_columns([("virtual", f"{'actor':<{width}}  at"), *rows])


def clock(seconds: float) -> str:
    """Minutes and seconds with a tenth, behind hours where there are any: `02:03.4`, `1:02:03.4`."""
    tenths = int(seconds * 10 + 1e-6)
    minutes, rest = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    return f"{f'{hours}:' if hours else ''}{minutes:02d}:{rest // 10:02d}.{rest % 10}"


def short(actor: str, *, alone: bool) -> str:
    """An actor by its last part, behind its session where there are several."""
    if actor == OPERATOR:
        return actor
    session, *rest = actor.split("/")
    if not rest:
        return session if plain(session) in ACTORS else f"session {session}"
    return rest[-1] if alone and "#" not in session else f"{session} {rest[-1]}"


def expected(report: Report) -> list[str]:
    """Each expectation with what came of it, then the invariants that fell and how many held."""
    lines = [_expectation(each, report.scenario) for each in sorted(report.judged, key=lambda each: each.seen.met)]
    fallen = [each for each in report.invariants if each.holds is False]
    lines += [f"  always  {each.name} {'.' * max(3, 64 - len(each.name))} FAIL  {each.detail}" for each in fallen]
    held = [each.name for each in report.invariants if each.holds]
    if held:
        lines.append(f"  always  {', '.join(held)} hold")
    return [*lines, *accepted(report)]


def accepted(report: Report) -> list[str]:
    """How often the run walked into each accepted hole, the chains that were lost by one, and what would close each."""
    if not report.holes:
        return []
    lost = ", ".join(f"{name} {walked.lost}x" for name, walked in report.holes.items() if walked.lost)
    met = ", ".join(f"{name} {walked.met}x" for name, walked in report.holes.items())
    head = f"  holes: {met}{f'; chains lost: {lost}' if lost else ''}   (what each is, and costs: {HOLES})"
    return [head, *(f"    {name} is closed by: {closing(name)}" for name in report.holes)]


def closing(hole: str) -> str:
    """What would close an accepted hole, in a few words."""
    words = load_holes()[hole].closes
    return f"{words[:1].lower()}{words[1:]}".rstrip(".")


def _expectation(judged: Judged, scenario: Scenario) -> str:
    expectation, seen = judged
    mark = "pass" if seen.met else "warn" if expectation.warns else "FAIL"
    run = f" (run {seen.of_run}, the last)" if seen.of_run else ""
    says = f"{said(expectation, scenario)}{run}"
    line = "" if scenario.file.endswith(FAILURE) else f" (line {expectation.line})"  # the file holds it elsewhere
    instead = "" if seen.met else f"  {clipped(seen.instead)}{line}"
    return f"  expect  {says} {'.' * max(3, 64 - len(says))} {mark}{instead}"


def old_bugs(report: Report) -> list[str]:
    """How to see each old bug that shows on this runtime, and what each proposal changes."""
    if report.scenario.file.endswith(FAILURE):
        return []
    command = f"mcp-harness run {named(report.scenario)} --runtime {report.runtime.label}"
    return [
        f"  {kind_of(bug.name)}: {command} --variant {bug.name}   ({bug.shows})"
        for bug in report.scenario.old_bugs
        if applies(bug.runtimes, report.runtime) and not (report.tier == REAL and bug.name.startswith(OF_FAKES))
    ]


def last_line(report: Report, real_seconds: float | None, order: str, exit_code: int) -> str:
    """Verdict, counts, time (the real one where it was taken), order, exit code."""
    took = "" if real_seconds is None else f" in {real_seconds * 1000:.1f} ms"
    facts = [
        f"{report.scenario.id} on {report.runtime.label}: {of_expectations(report)}",
        f"{report.steps} steps, {report.seconds:.1f} s simulated{took}"
        if report.tier == MODEL
        else f"{report.seconds:.1f} s of its time{took}",
        f"tier {report.tier}",
        order,
        *([f"with {report.variant}"] if report.variant else []),
        f"exit {exit_code}",
    ]
    return f"{report.verdict.upper():<4}  {'; '.join(facts)}"


def of_expectations(report: Report) -> str:
    """How many were met; a run that broke off was not held against any, and a file may have none for this runtime."""
    if report.judged:
        return f"{sum(each.seen.met for each in report.judged)}/{len(report.judged)} expectations"
    some = any(applies(each.only_on, report.runtime) for each in report.scenario.expectations)
    return "no expectation was looked at" if some else "no expectations"


def texts(reports: Sequence[tuple[Report, float]], order: str, again: Again = NO_OPTIONS) -> str:
    """The timelines of several runs, one after the other."""
    return "\n\n".join("\n".join(_whole(report, seconds, order, again)) for report, seconds in reports)


def _whole(report: Report, seconds: float, order: str, again: Again) -> list[str]:
    code = report.verdict.exit_code
    return timeline(report, real_seconds=seconds, order=order, exit_code=code, again=again)
