"""MH950 to MH957: what the battery of simulated spawns found. `harness/gate/battery/README.md` lists its faults."""

from __future__ import annotations

from collections.abc import Iterator

from harness.gate.battery.hits import told
from harness.gate.battery.judging import LEAKED
from harness.gate.context import Context, EntryView
from harness.gate.model import Severity
from harness.gate.rule import Asked, Hit, entry_rule
from harness.gate.rules.schema import transport_is_wrong

_REMOTE_IS_LATE = "Take it out of the roots whose sessions cannot wait, or declare it unavailable until it answers."
"""How long a call of a remote server takes is not the catalog's to say."""
OF_RUNTIMES = "nothing to allow: it is told as known of the runtimes, is no finding and fails nothing"


def _hits(context: Context, view: EntryView, rule: str) -> Iterator[Hit]:
    """The battery's findings of this rule; none when it did not run."""
    if context.trial is None or (rule != LEAKED and transport_is_wrong(context, view)):
        return
    for each in told(context.trial, rule, view.name):
        yield Hit(
            view.pointer,
            each.message,
            fix=_REMOTE_IS_LATE if rule == "MH951" and view.entry is not None and view.entry.remote else "",
            runtimes=each.runtimes,
            others=each.others,
            subject=each.subject,
            events=each.events,
            proof=each.proof,
        )


@entry_rule(
    "MH950",
    Severity.ERROR,
    "one server's failure takes another one with it",
    why="A session carries several servers. When one fails, every other must connect and offer its tools as before; "
    "here a simulated spawn in which only this entry's server was struck lost another server, or ended the run of all.",
    fix="Part the two (own packages, own caches, no `required`), or take one out of the root.",
    asked=Asked.WITH_FAULTS,
)
def another_server_is_hurt(context: Context, view: EntryView) -> Iterator[Hit]:
    """Companions that were lost."""
    return _hits(context, view, "MH950")


@entry_rule(
    "MH951",
    Severity.WARNING,
    "one server's failure keeps another one waiting longer than it must",
    why="A runtime makes the others wait for a failing server, each in its measured way (see MH956). Here they wait "
    "longer than beside a plain entry with the same fault.",
    fix="Give the entry a shorter startup_timeout_sec.",
    asked=Asked.WITH_FAULTS,
)
def another_server_is_late(context: Context, view: EntryView) -> Iterator[Hit]:
    """Companions that came later than the runtime's own waits explain."""
    return _hits(context, view, "MH951")


@entry_rule(
    "MH952",
    Severity.WARNING,
    "a failure that the runtime's report does not tell, or lays at another door",
    why="Who looks for the cause of a missing tool has the runtime's output and logs. Beside a plain entry the same "
    "fault is told there by the server's name; for this entry it is not, or a healthy server is named.",
    fix="Choose a name that no other entry's reads like (logs are kept by the name's letters and digits).",
    asked=Asked.WITH_FAULTS,
)
def the_cause_is_not_told(context: Context, view: EntryView) -> Iterator[Hit]:
    """Failures without a name, or with a wrong one."""
    return _hits(context, view, "MH952")


@entry_rule(
    "MH953",
    Severity.WARNING,
    "a secret in the runtime's output",
    why="Every secret was a marker, hunted raw, URL-encoded, in base64 and JSON-escaped in what the runtime printed, "
    "logged and wrote. Claude's log, for one, holds every server's URL whole: whoever reads the logs has the secret.",
    fix="Hand the secret over in a header or in env, not in the url.",
    asked=Asked.WITH_FAULTS,
)
def a_marker_leaks(context: Context, view: EntryView) -> Iterator[Hit]:
    """Markers that came out."""
    return _hits(context, view, "MH953")


@entry_rule(
    "MH954",
    Severity.ERROR,
    "a run that does not end",
    why="Whatever becomes of its servers, a headless run has to end: who waits for it would wait for ever.",
    fix="Find out what it waits for.",
    asked=Asked.WITH_FAULTS,
)
def the_run_does_not_end(context: Context, view: EntryView) -> Iterator[Hit]:
    """Deadlocks, runs without end, crashes."""
    return _hits(context, view, "MH954")


@entry_rule(
    "MH955",
    Severity.ERROR,
    "entries that work alone and not together",
    why="Alone in a session the entry comes up; beside these neighbours it does not, though nothing was struck. Two "
    "npx servers that install into one tree at once are the usual cause: npm ends with ENOTEMPTY.",
    fix="Take away what they share: one NPM_CONFIG_CACHE, one name, one address.",
    asked=Asked.WITH_FAULTS,
)
def they_do_not_come_up_together(context: Context, view: EntryView) -> Iterator[Hit]:
    """Parties that fail without a fault."""
    return _hits(context, view, "MH955")


@entry_rule(
    "MH956",
    Severity.NOTE,
    "how long a runtime lets the others wait for a server that hangs",
    why="A fact of the runtime, told once for each as known of the runtimes: Pi offers no tool of any server before "
    "the slowest has its outcome; Codex does not ask the model before. The wait is the start-up budget at most.",
    fix="Nothing in the catalog changes it but a shorter startup_timeout_sec.",
    not_allowable=OF_RUNTIMES,
)
def the_others_wait(context: Context, view: EntryView) -> Iterator[Hit]:  # noqa: ARG001 - told of runtimes
    """Never a finding of an entry."""
    return iter(())


@entry_rule(
    "MH957",
    Severity.NOTE,
    "failures of which a runtime says nothing",
    why="A fact of the runtime, told once for each: `codex exec` names no server that failed, whatever its fault; "
    "Claude logs a server that never lists its tools as connected.",
    fix="Look at which tools the model was offered, not at the output.",
    not_allowable=OF_RUNTIMES,
)
def nothing_is_said(context: Context, view: EntryView) -> Iterator[Hit]:  # noqa: ARG001 - told of runtimes
    """Never a finding of an entry."""
    return iter(())
