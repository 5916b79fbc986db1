"""Who did what when, as text: only what tells the story, then what was expected, then one line that says it all."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from harness.inputs.files import display_path
from harness.scenario.library import shipped
from harness.scenario.model import HOME, MODEL, Scenario
from harness.scenario.naming import OPERATOR, plain
from harness.scenario.operator import applies
from harness.scenario.production import Judged, Report
from harness.world.model import Event

WIDTH = 100
WHO_WIDTH = 16
LISTED = 6
CALM = "calmest order"
OF_PROCESSES = "order of the machine"
"""Who runs first is chosen by the operating system."""
FAILURE = ".failure.toml"
RUNTIME_DEPTH = 2
"""Parts of a runtime's name: what has more is a server, or started by one."""

Details = Mapping[str, Any]


def timeline(report: Report, *, real_seconds: float | None, order: str, exit_code: int) -> list[str]:
    """The lines of one run; `order` says who chose what runs first: `seed 7`."""
    scenario = report.scenario
    order = order if report.tier == MODEL else OF_PROCESSES
    head = f'{scenario.file or scenario.id}  "{scenario.title}"'
    lines = [head, f"on {report.runtime.label}, tier {report.tier}, {order}", ""]
    lines += story(report)
    lines += ["", *expected(report)] if report.judged or report.invariants else []
    if report.detail:
        lines += ["", *(f"  {report.verdict}: {reason}" for reason in report.detail.split("\n"))]
    lines += old_bugs(report)
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
    return [f"   virtual   {'who':<{width}}  what", *(f"   {at}   {who:<{width}}  {text}" for at, who, text in rows)]


def told_in_order(report: Report) -> Iterator[tuple[float, str, str]]:
    """When, who and what: the events, and between them what the holds did."""
    quitters = {name for name, each in report.scenario.servers.items() if each.exits != "never"}
    kept = list(report.kept)
    for number, event in enumerate(report.events):
        while kept and kept[0].events <= number:
            yield kept[0].at_seconds, kept[0].actor, kept[0].text
            kept.pop(0)
        yield event.at_seconds - report.started_seconds, event.actor, told(event, quitters)
    yield from ((each.at_seconds, each.actor, each.text) for each in kept)


def points(report: Report) -> list[str]:
    """Every switch point of a run: where a hold can keep an actor, and where a fault may strike."""
    width = max([WHO_WIDTH, *(len(point.actor) for point in report.points)])
    rows = [f"   {clock(each.at_seconds)}   {each.actor:<{width}}  {each.label}" for each in report.points]
    return [f"   virtual   {'actor':<{width}}  at", *rows]


def clock(seconds: float) -> str:
    """Minutes and seconds with a tenth."""
    tenths = int(seconds * 10 + 1e-6)
    return f"{tenths // 600:02d}:{tenths % 600 // 10:02d}.{tenths % 10}"


def short(actor: str, *, alone: bool) -> str:
    """An actor by its last part, behind its session where there are several."""
    if actor == OPERATOR:
        return actor
    session, *rest = actor.split("/")
    if not rest:
        return f"session {session}"
    return rest[-1] if alone and "#" not in session else f"{session} {rest[-1]}"


def told(event: Event, quitters: Collection[str] = ()) -> str:
    """What an event says; empty for one that is left out. `quitters` are servers that end by themselves."""
    if event.name == "ended":
        return _ended(event, quitters)
    if event.name in UNTOLD:
        return ""
    tell = TELLERS.get(event.name)
    if tell is not None:
        return tell(event.details)
    details = ", ".join(f"{key} {some(value)}" for key, value in event.details.items())
    return f"{event.name.replace('.', ' ')}{f': {details}' if details else ''}"


UNTOLD = frozenset({"request", "mcp.received", "download", "server.connecting", "run.ended", "install.finished"})
"""What repeats what other events say, or happens too often to be told."""


def _ended(event: Event, quitters: Collection[str]) -> str:
    """A process below a runtime that ends by itself; one that a signal ended has been told of."""
    code, (*above, name) = event.details.get("exit_code"), plain(event.actor).split("/")
    if code is None or len(above) < RUNTIME_DEPTH or code < 0 or (code == 0 and name not in quitters):
        return ""
    return f"exits {code}"


def _started(details: Details) -> str:
    servers = some(details["servers"]) or "none"
    return f"starts session {details['session']} (servers {servers})"


def _prepared(details: Details) -> str:
    warnings = details.get("warnings") or ()
    return f"writes {home(details['file'])}{f'; warns: {warnings[0]}' if warnings else ''}"


def _guarded(details: Details) -> str:
    """Nothing where the guard had nothing to do."""
    repaired = [home(path) for path in details["repaired"]]
    refused = [home(path) for path in details["refused"]]
    parts = [f"makes executable {some(repaired)}"] if repaired else []
    parts += [f"refuses to touch {some(refused)}"] if refused else []
    return "; ".join(parts)


def _spawned(details: Details) -> str:
    child = plain(details["child"]).rpartition("/")[2]
    command = " ".join(details["argv"])
    return f"starts {child}" if command.split(" ")[0] == child else f"starts {child}: {clipped(command)}"


def _request(details: Details) -> str:
    tools, pending = details["tools"], details.get("pending") or ()
    waits = f"; still pending: {some(pending)}" if pending else ""
    return f"model request {details['number']}: {some(tools) or 'no tool'}{waits}"


def _call(details: Details) -> str:
    outcome = "" if details["ok"] else f" fails: {clipped(str(details.get('text', '')))}"
    return f"calls {details['server']}/{details['tool']}{outcome}"


def _connected(details: Details) -> str:
    seconds = details.get("seconds")
    return f"{details['server']} connected{f' after {seconds:.1f} s' if seconds else ''}"


def _server(word: str) -> Callable[[Details], str]:
    def tell(details: Details) -> str:
        text = details.get("text") or details.get("kind") or ""
        return f"{details['server']} {word}{f': {clipped(str(text))}' if text else ''}"

    return tell


def _authorization(details: Details) -> str:
    """In brackets: behind a colon the words would be taken for a header's value, and masked."""
    text = details.get("text") or ""
    return f"{details['server']} needs authorization{f' ({clipped(str(text))})' if text else ''}"


def _install(word: str) -> Callable[[Details], str]:
    def tell(details: Details) -> str:
        code = f" ({details['code']})" if "code" in details else ""
        return f"{word} {home(str(details['tree']))}{code}"

    return tell


def _killing(details: Details) -> str:
    number = len(details["actors"])
    return f"{details['signal']} to {details['actor']} ({number} {'process' if number == 1 else 'processes'})"


def _edited(details: Details) -> str:
    if details["removed"]:
        return f"removes {details['entry']} from the catalog"
    return f"edits {details['entry']}: {some([*details['set'], *(f'without {key}' for key in details['unset'])])}"


TELLERS: Mapping[str, Callable[[Details], str]] = {
    "step.start": _started,
    "step.advance": lambda details: f"waits {details['seconds']:g} s",
    "step.kill": lambda details: _killing(details),
    "step.edit": _edited,
    "step.select": lambda details: f"session {details['session']} gets servers {some(details['servers']) or 'none'}",
    "step.write": lambda details: f"writes {home(details['path'])}",
    "step.remove": lambda details: f"removes {home(details['path'])}",
    "session.prepared": _prepared,
    "session.failed": lambda details: f"cannot be started: {clipped(details['text'])}",
    "session.ended": lambda details: f"its runtime exits {details['exit_code']}",
    "session.retry": lambda details: f"tries again in {details['after_seconds']} s: {some(details['servers'])} failed",
    "session.degraded": lambda details: f"leaves out {some(details['servers'])} and goes on",
    "session.warning": lambda details: f"warns: {clipped(details['text'])}",
    "heal.ran": lambda details: f"removes broken installs: {some([home(path) for path in details['removed']])}",
    "guard.ran": _guarded,
    "spawn": _spawned,
    "server.connected": _connected,
    "server.failed": _server("FAILED"),
    "server.needs_auth": _authorization,
    "server.skipped": _server("skipped"),
    "model.request": _request,
    "tool.call": _call,
    "install.started": _install("installs into"),
    "install.reused": _install("finds its package in"),
    "install.failed": _install("install FAILED in"),
    "fault": lambda details: f"FAULT {details['action']} at {clipped(details['at'])}",
    "killed": lambda details: f"ended by {details['signal']}",
    "left.behind": lambda details: f"still runs: {plain(details['actor'])}",
}


def some(value: Any) -> str:
    """A value in a line: of a list the first few."""
    if not isinstance(value, list | tuple):
        return clipped(str(value))
    items = [str(item) for item in value[:LISTED]]
    return ", ".join([*items, *([f"and {len(value) - LISTED} more"] if len(value) > LISTED else [])])


def clipped(text: str) -> str:
    """One line, not too long."""
    line = " ".join(text.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..."


def home(path: str) -> str:
    """A path with `~` for the home directory."""
    return f"~{path.removeprefix(HOME)}" if path.startswith(f"{HOME}/") else path


def expected(report: Report) -> list[str]:
    """Each expectation with what came of it, then the invariants that fell and how many held."""
    lines = [_expectation(each) for each in sorted(report.judged, key=lambda each: each.seen.met)]
    fallen = [each for each in report.invariants if each.holds is False]
    lines += [f"  always  {each.name} {'.' * max(3, 64 - len(each.name))} FAIL  {each.detail}" for each in fallen]
    held = [each.name for each in report.invariants if each.holds]
    if held:
        lines.append(f"  always  {', '.join(held)} hold")
    return lines


def _expectation(judged: Judged) -> str:
    expectation, seen = judged
    after = f" (after step {expectation.after})" if expectation.after else ""
    mark = "pass" if seen.met else "warn" if expectation.warns else "FAIL"
    run = f" (run {seen.of_run}, the last)" if seen.of_run else ""
    says = f"{expectation.says}{run}{after}"
    instead = "" if seen.met else f"  {clipped(seen.instead)} (line {expectation.line})"
    return f"  expect  {says} {'.' * max(3, 64 - len(says))} {mark}{instead}"


def old_bugs(report: Report) -> list[str]:
    """How to see each old bug that shows on this runtime."""
    if report.scenario.file.endswith(FAILURE):
        return []
    command = f"mcp-harness run {named(report.scenario)} --runtime {report.runtime.label}"
    return [
        f"  old bug: {command} --variant {bug.name}   ({bug.shows})"
        for bug in report.scenario.old_bugs
        if applies(bug.runtimes, report.runtime)
    ]


def named(scenario: Scenario) -> str:
    """What to call a scenario by on the command line: a shipped one by its id, else its file."""
    path = shipped().get(scenario.id)
    is_shipped = path is not None and display_path(path) == scenario.file
    return scenario.id if is_shipped or not scenario.file else shlex.quote(scenario.file)


def last_line(report: Report, real_seconds: float | None, order: str, exit_code: int) -> str:
    """Verdict, counts, time (the real one where it was taken), order, exit code."""
    met = sum(each.seen.met for each in report.judged)
    took = "" if real_seconds is None else f" in {real_seconds * 1000:.1f} ms"
    facts = [
        f"{report.scenario.id} on {report.runtime.label}: {met}/{len(report.judged)} expectations",
        f"{report.steps} steps, {report.seconds:.1f} s simulated{took}"
        if report.tier == MODEL
        else f"{report.seconds:.1f} s of its time{took}",
        f"tier {report.tier}",
        order,
        f"exit {exit_code}",
    ]
    return f"{report.verdict.upper():<4}  {'; '.join(facts)}"


def texts(reports: Sequence[tuple[Report, float]], order: str) -> str:
    """The timelines of several runs, one after the other."""
    parts = [
        "\n".join(timeline(report, real_seconds=seconds, order=order, exit_code=report.verdict.exit_code))
        for report, seconds in reports
    ]
    return "\n\n".join(parts)
