"""Rules on paths in a command line: whose machine they are on, and who would have to expand them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.gate.context import Context, EntryView
from harness.gate.launchers import command_line, container
from harness.gate.model import Severity
from harness.gate.npm_commands import program
from harness.gate.rule import Hit, entry_rule
from harness.gate.rules.placeholders import is_for_a_shell, place_shown
from harness.inputs.document import Pointer

RELATIVE = re.compile(r"(?:--?[\w-]+=)?(\.{1,2})[/\\]")
SCRIPT = re.compile(r"[\w@][\w@./\\-]*\.(?:[cm]?[jt]s|py|rb|php|pl|jar|sh)")
INTERPRETERS = frozenset(
    {"node", "nodejs", "python", "python3", "py", "deno", "bun", "tsx", "ts-node", "ruby", "php", "java"}
)

PERSONAL = re.compile(
    r"(?:\A|[=,;])(?:file://)?((?:/Users|/home)/(?P<unix>[^/\s:]+)|[A-Za-z]:[\\/]+Users[\\/]+(?P<windows>[^\\/\s:]+))"
)
NOBODYS = frozenset(
    {"shared", "public", "default", "node", "app", "user", "agent", "zimmer", "runner", "ubuntu", "debian"}
    | {"ec2-user", "vscode", "linuxbrew", "root", "coder", "git", "nonroot"}
)
"""Accounts that machines have, not people."""

TILDE = re.compile(r"(?:--?[\w-]+=)?~(?:[/\\]|\Z)")
VARIABLE = re.compile(r"\$[A-Za-z_]\w*|%\w+%|\$\(|`")


def host_arguments(view: EntryView) -> Iterator[tuple[Pointer, str]]:
    """The arguments that speak of the machine that runs the agent: a container's own arguments do not."""
    line, run = command_line(view.fields), container(view.fields)
    if line is None:
        return
    end = len(line.args) if run is None or run.image_at is None else run.image_at
    for position, argument in enumerate(line.args[:end]):
        yield ("args", position), argument


def command_paths(view: EntryView) -> Iterator[tuple[Pointer, str]]:
    """The command, then those arguments."""
    line = command_line(view.fields)
    if line is not None:
        yield ("command",), line.command
    yield from host_arguments(view)


def script_argument(view: EntryView) -> Pointer | None:
    """The first argument of an interpreter that is a file of the current folder."""
    line = command_line(view.fields)
    if line is None or program(line.command) not in INTERPRETERS:
        return None
    for position, argument in enumerate(line.args):
        if SCRIPT.fullmatch(argument) and not re.match(r"[A-Za-z]:", argument):
            return ("args", position)
        if not argument.startswith("-") and argument not in ("run", "x"):
            return None
    return None


@entry_rule(
    "MH471",
    Severity.NOTE,
    "a relative path in the command line",
    why=(
        "Every runtime starts a server in the session's clone, so `./dist/index.js` is a file of whatever repository"
        " the session works on, and `../x` one beside the clones. A server that lies beside the catalog is found in"
        " no other repository."
    ),
    fix="Publish the server as a package or image, or write an absolute path that every machine has.",
)
def relative_path(_context: Context, view: EntryView) -> Iterator[Hit]:
    script = script_argument(view)
    for at, text in command_paths(view):
        found = RELATIVE.match(text)
        if found is None and at != script:
            continue
        outside = found is not None and found[1] == ".."
        where = "beside the session's clone" if outside else "in the session's clone"
        yield Hit(
            (view.name, *at),
            f"the path in {place_shown(at)} is looked for {where} on every runtime: without such a file there the"
            f" server {'never starts' if at == ('command',) or at == script else 'does not find it'}.",
            severity=Severity.WARNING if outside else None,
            at_value=True,
        )


@entry_rule(
    "MH472",
    Severity.WARNING,
    "a path of one person's machine",
    why=(
        "A home directory in a catalog is that of whoever wrote the entry. The machines that run sessions have no such"
        " account: the command is not found there, or the server looks into a folder that does not exist."
    ),
    fix="Write a path that every machine has, or publish the server as a package.",
)
def personal_path(_context: Context, view: EntryView) -> Iterator[Hit]:
    env = view.fields.get("env")
    variables = [(("env", name), value) for name, value in (env if isinstance(env, dict) else {}).items()]
    places: list[tuple[Pointer, object]] = [*command_paths(view), *(variables if command_line(view.fields) else [])]
    for at, text in places:
        found = PERSONAL.search(text) if isinstance(text, str) else None
        owner = (found["unix"] or found["windows"]) if found else ""
        if owner and owner.lower() not in NOBODYS and not owner.startswith(("$", "<", "%")):
            yield Hit(
                (view.name, *at),
                f"the path in {place_shown(at)} is in one person's home directory: on the machines that run sessions it"
                " does not exist.",
                at_value=True,
            )


@entry_rule(
    "MH473",
    Severity.WARNING,
    "a `~` that nobody expands",
    why=(
        "`~` is expanded by a shell, and no shell stands between a runtime and a server: the server gets the character"
        " itself. A few servers expand it themselves; for the others it is a folder called `~` in the clone."
    ),
    fix="Write the path out, unless the server is known to expand `~` itself.",
)
def tilde(_context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    mounts = {at for at, _ in run.volume_sources()} if run else set()
    env = view.fields.get("env")
    variables = [(("env", name), value) for name, value in (env if isinstance(env, dict) else {}).items()]
    places: list[tuple[Pointer, object]] = [*host_arguments(view), *(variables if command_line(view.fields) else [])]
    for at, text in places:
        told = at[0] == "args" and at[1] in mounts
        if isinstance(text, str) and TILDE.match(text) and not told and not is_for_a_shell(view, at):
            yield Hit(
                (view.name, *at),
                f"the `~` in {place_shown(at)} reaches the server as it is: no shell expands it, on any runtime.",
                at_value=True,
            )


@entry_rule(
    "MH474",
    Severity.ERROR,
    "a command that only a shell could read",
    why=(
        "A runtime starts the command itself, without a shell: `~`, `$HOME`, `$(...)` and `%VAR%` are part of the"
        " program's name then, and the start fails with ENOENT on every launch."
    ),
    fix="Write the program's name, or an absolute path that every machine has.",
    never_starts=True,
)
def command_for_a_shell(_context: Context, view: EntryView) -> Iterator[Hit]:
    line = command_line(view.fields)
    if line and (TILDE.match(line.command) or VARIABLE.search(line.command)):
        yield Hit(
            (view.name, "command"),
            "no shell reads the command, so what stands for a path in it stays as it is: no such program exists and the"
            " server never starts, on every runtime.",
            at_value=True,
        )
