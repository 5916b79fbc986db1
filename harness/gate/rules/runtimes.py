"""Rules on what each runtime's own reader does with the config that is written for it.

Source: the measured runtimes.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator

from fake_runtimes.air.adapters import PLACEHOLDER, SHELL_NAME
from harness.gate.context import Context, EntryView
from harness.gate.edits import set_value, written
from harness.gate.model import Edit, Severity
from harness.gate.rule import Hit, entry_rule
from harness.gate.rules.schema import tells_of
from harness.gate.rules.secrets import OF_THE_MACHINE
from harness.gate.spawn import NO_OAUTH, NO_SSE, Spawn
from harness.gate.wording import labels, named
from harness.reference.npx.specs import is_npx_entry
from harness.reference.secrets.placeholders import PLACEHOLDER as CATALOG_PLACEHOLDER

_CONSEQUENCE = {
    "run_killed": "this one entry stops every session on {}",
    "skipped": "the entry is skipped on {} and its tools are silently missing",
    "file_lost": "the whole file is lost on {}, with every server in it",
    "server_fails": "the server can never start on {}",
    "warning": "the entry is loaded with a complaint on {}",
}


def complaints(view: EntryView, code: str) -> dict[str, tuple[str, ...]]:
    """Each text that runtimes say of an entry under `code`, with all runtimes that say it."""
    sayers: dict[str, list[str]] = defaultdict(list)
    for spawn in view.spawns:
        for problem in spawn.problems:
            if problem.code == code:
                sayers[problem.text].append(spawn.runtime.label)
    return {text: tuple(runtimes) for text, runtimes in sayers.items()}


def _said(context: Context, view: EntryView, code: str) -> Iterator[Hit]:
    """One hit for each text that runtimes say under `code` and that MH201 does not explain."""
    for text, runtimes in complaints(view, code).items():
        if tells_of(context, view, text):
            continue
        yield Hit(
            view.pointer,
            _CONSEQUENCE[code].format(named(context, runtimes)) + in_words(text),
            runtimes=runtimes,
            subject=text,
        )


def in_words(text: str) -> str:
    """What a runtime says, as the end of a sentence on one line; some say nothing."""
    return f": {' '.join(text.splitlines())}" if text else ", without a word."


@entry_rule(
    "MH801",
    Severity.ERROR,
    "an entry that kills the whole run",
    why=(
        "Codex reads its config as one piece: one invalid [mcp_servers.x] table makes it refuse the file, so "
        "no server starts and"
        " the run ends before the first model call. Nothing in the session says which entry it was."
    ),
    fix="Correct the entry as the runtime's words say.",
    requirements=("prepare-codex-entry-validated",),
)
def kills_the_run(context: Context, view: EntryView) -> Iterator[Hit]:
    yield from _said(context, view, "run_killed")


@entry_rule(
    "MH802",
    Severity.ERROR,
    "an entry that a runtime skips",
    why=(
        "Claude skips an entry that it cannot read, with a warning nobody sees in a headless session: a url "
        "without type, an"
        " unknown type, a value of the wrong kind. The session runs and the tools are not there."
    ),
    fix="Correct the entry as the runtime's words say.",
)
def skipped_by_runtime(context: Context, view: EntryView) -> Iterator[Hit]:
    yield from _said(context, view, "skipped")
    yield from _said(context, view, "file_lost")


@entry_rule(
    "MH803",
    Severity.ERROR,
    "a server that can never start",
    why="The runtime takes the entry and then fails to start the server, on every launch, whatever the server does.",
    fix="Correct the entry as the runtime's words say.",
)
def never_starts(context: Context, view: EntryView) -> Iterator[Hit]:
    yield from _said(context, view, "server_fails")


@entry_rule(
    "MH804",
    Severity.NOTE,
    "something that a runtime warns about",
    why=(
        "The runtime loads the entry and complains. In a headless session the complaint goes to a log that "
        "nobody opens."
    ),
    fix="Correct the entry as the runtime's words say.",
)
def runtime_warns(context: Context, view: EntryView) -> Iterator[Hit]:
    yield from _said(context, view, "warning")


@entry_rule(
    "MH805",
    Severity.ERROR,
    "an entry that never reaches a runtime's config",
    why=(
        "An entry that cannot be translated is left out of the runtime's config with a warning in a log, or "
        "stops the preparation"
        " of every session that carries it. Either way the server that was chosen is not there."
    ),
    fix="Correct the entry as the message says.",
    requirements=("catalog-stdio-fields", "catalog-remote-fields"),
)
def never_written(context: Context, view: EntryView) -> Iterator[Hit]:
    for reason, spawns in reasons_not_written(view).items():
        if tells_of(context, view, reason):
            continue
        concerned = tuple(spawn.runtime.label for spawn in spawns)
        effect = "stops every session that carries it" if spawns[0].error else "is left out"
        yield Hit(
            view.pointer,
            f"the entry {effect} on {named(context, concerned)}{in_words(reason)}",
            runtimes=concerned,
            subject=reason,
        )


def reasons_not_written(view: EntryView) -> dict[str, list[Spawn]]:
    """Why an entry is not in a runtime's file, with the runtimes; of what is no object the schema tells."""
    reasons: dict[str, list[Spawn]] = defaultdict(list)
    for spawn in view.spawns if view.entry is not None else ():
        if spawn.written is None:
            reason = spawn.error or "; ".join(spawn.warnings) or "the entry does not appear in the file"
            reasons[reason].append(spawn)
    return reasons


@entry_rule(
    "MH806",
    Severity.WARNING,
    "a routine header that turns OAuth off on Pi",
    why=(
        "Pi's adapter considers OAuth only for an entry without any header, unless the entry says auth: oauth,"
        " which no catalog field carries. Claude and Codex authorize such a server; on Pi its 401 is a plain"
        " failure that no consent mends."
    ),
    fix=(
        "Drop the header if the server can do without it, or expect the server to work on Claude and Codex only. If"
        " the header is the credential, use a name that Zimmer knows for one (Authorization, X-API-Key)."
    ),
)
def header_disables_oauth(context: Context, view: EntryView) -> Iterator[Hit]:
    concerned = unreachable_for(view, NO_OAUTH)
    if concerned:
        yield Hit(
            (view.name, "headers"),
            f"the server is never authorized on {named(context, concerned)}: any header turns its OAuth off.",
            runtimes=concerned,
        )


def unreachable_for(view: EntryView, reason: str) -> tuple[str, ...]:
    """The runtimes on which a server that loads cannot connect for this reason."""
    return tuple(spawn.runtime.label for spawn in view.spawns if spawn.unreachable == reason)


@entry_rule(
    "MH807",
    Severity.WARNING,
    "an SSE server on a runtime without SSE",
    why=(
        "Codex speaks streamable HTTP only and posts to an `sse` entry's URL, which a pure SSE server "
        "refuses. Pi ignores the"
        " type as well, but falls back to SSE after 404, 405, 406 or 415."
    ),
    fix='Use the server\'s streamable HTTP endpoint ("type": "streamable-http") where it has one.',
)
def no_sse_here(context: Context, view: EntryView) -> Iterator[Hit]:
    concerned = unreachable_for(view, NO_SSE)
    if concerned:
        yield Hit(
            (view.name, "type"),
            f"the server never connects on {named(context, concerned)}: SSE is not spoken there.",
            runtimes=concerned,
            at_value=True,
        )


@entry_rule(
    "MH808",
    Severity.NOTE,
    "an env table on a remote entry",
    why=(
        "The schema allows env on a remote entry and AIR drops it: a remote server has no process to give "
        "variables to. Written"
        " by hand into Codex's config the same table stops every run."
    ),
    fix="Remove env, or send the value as a header.",
)
def env_on_remote(_context: Context, view: EntryView) -> Iterator[Hit]:
    is_program = "command" in view.fields and "url" not in view.fields  # MH201 says that the type is wrong
    if view.entry and view.entry.remote and view.fields.get("env") and not is_program:
        yield Hit((view.name, "env"), "the server is remote: nobody reads its env.")


@entry_rule(
    "MH809",
    Severity.NOTE,
    "a variable inside a longer env value, on Codex",
    why=(
        "This concerns only an orchestrator that lets AIR's published Codex adapter write the entry; one that writes"
        " resolved values itself is not concerned. The adapter hands a variable on by name only where the whole value"
        " is that variable. For `x${TOKEN}`, or a value under another name, it wraps the server in `sh -c`: the command"
        " is then no longer `npx`, so no cache is pinned (#595), and an unset variable becomes an empty text"
        " instead of an error."
    ),
    fix="Give the variable the name of the secret that is its whole value, so that K is ${K}.",
    incidents=("#595",),
)
def codex_shell_shim(context: Context, view: EntryView) -> Iterator[Hit]:
    codex = labels(context, "codex")
    if not codex or not view.entry or not view.entry.stdio:
        return
    for key, value in view.entry.env.items():
        if needs_shell(key, value) and not is_mistaken(str(value)):
            lost = " and loses its pinned cache" if is_npx_entry(view.raw) else ""
            yield Hit(
                (view.name, "env", key),
                f"{key} is not exactly ${{{key}}}: only if your orchestrator writes Codex's config with AIR's own"
                f" adapter, the server runs through a shell there{lost}.",
                fix=own_variable(key, value),
                runtimes=codex,
            )


def is_mistaken(text: str) -> bool:
    """Whether MH301 or MH313 says that the placeholders of a value are wrong themselves."""
    names = PLACEHOLDER.findall(text)
    return any(name in OF_THE_MACHINE or not CATALOG_PLACEHOLDER.fullmatch(f"${{{name}}}") for name in names)


def own_variable(key: str, value: object) -> str:
    """What to write so that the adapter can hand the variable on by name."""
    alone = PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    seed = f"the value of {alone[1]}" if alone else "the whole value, with the text around the placeholder,"
    return f'In that case store {seed} as the secret {key} and write "{key}": "${{{key}}}"; otherwise nothing.'


def needs_shell(key: str, value: object) -> bool:
    """Whether AIR's own Codex adapter can hand a value on only through a shell in front of the server."""
    inside = PLACEHOLDER.findall(value) if isinstance(value, str) else []
    names = all(SHELL_NAME.fullmatch(name) for name in (key, *inside))
    return bool(inside) and names and value != f"${{{key}}}"


@entry_rule(
    "MH810",
    Severity.ERROR,
    "a command and its arguments in one text",
    why=(
        "`command` is the name or path of one program. No runtime splits it at blanks: it looks for a program that is"
        " called so, blanks included, and the server fails with ENOENT on every launch."
    ),
    fix="Write the program in command and each argument as an item of args.",
    never_starts=True,
)
def arguments_in_command(context: Context, view: EntryView) -> Iterator[Hit]:
    if not view.entry or not view.entry.stdio or not isinstance(view.entry.command, str):
        return
    words = words_of_command(view.entry.command)
    if words:
        yield Hit(
            (view.name, "command"),
            "no program is called like the whole text of the command: no runtime splits it at blanks, so the server"
            " never starts.",
            edits=split_command(context, view, words),
            at_value=True,
        )


def words_of_command(command: str) -> tuple[str, ...]:
    """The words of a command that is a whole command line; empty for one program, whose path may hold blanks."""
    plain = tuple(command.split())
    if len(plain) < 2:
        return ()
    is_bare_name = not re.search(r"[/\\]", plain[0])
    if not is_bare_name and not any(word.startswith("-") for word in plain[1:]):
        return ()
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return plain


def split_command(context: Context, view: EntryView, words: tuple[str, ...]) -> tuple[Edit, ...]:
    """The program stays in command, its arguments go to the head of args; none where args is no list."""
    args = view.fields.get("args", [])
    program, moved = words[0], list(words[1:])
    if not isinstance(args, list):
        return ()
    if "args" in view.fields:
        return (
            *set_value(context.document, (view.name, "command"), program),
            *set_value(context.document, (view.name, "args"), [*moved, *args]),
        )
    member = context.document.find((view.name, "command"))
    return (Edit(*member.value, f'{written(program)}, "args": {written(moved)}'),)


@entry_rule(
    "MH811",
    Severity.ERROR,
    "a command with blanks around it",
    why="No runtime trims the command: it looks for a program whose name ends in a blank, and fails with ENOENT.",
    fix="Remove the blanks.",
    covers=("MH401",),
    never_starts=True,
)
def blanks_around_command(context: Context, view: EntryView) -> Iterator[Hit]:
    if not view.entry or not view.entry.stdio or not isinstance(view.entry.command, str):
        return
    command = view.entry.command
    if command.strip() and command != command.strip() and not words_of_command(command):
        yield Hit(
            (view.name, "command"),
            "the command has blanks around it: no program is called so, and the server never starts on any runtime.",
            edits=set_value(context.document, (view.name, "command"), command.strip()),
            at_value=True,
        )
