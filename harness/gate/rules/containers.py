"""Rules on servers in containers: how stdin, variables, files and names get from the session into them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.gate.container_commands import ContainerRun
from harness.gate.context import Context, EntryView
from harness.gate.edits import insert_items, remove_children, set_value
from harness.gate.launchers import container
from harness.gate.model import Edit, Severity
from harness.gate.nearness import did_you_mean
from harness.gate.rule import Hit, entry_rule
from harness.gate.wording import joined

OF_THE_CLIENT = re.compile(
    r"(?:DOCKER|PODMAN|CONTAINERS?|BUILDKIT|COMPOSE|XDG|SSH)_\w+|HOME|PATH|TMPDIR|(?:HTTPS?|NO|ALL)_PROXY",
    re.IGNORECASE,
)
"""Variables that the container program itself reads."""

SHELL_SYNTAX = re.compile(r"~|.*(?:\$\(|`)", re.DOTALL)
LOCALHOST = re.compile(r"://(?:localhost|127\.0\.0\.1|\[::1\])(?=[:/?#]|\Z)", re.IGNORECASE)
PUBLISHED_HOST_PORT = re.compile(r"(?:(?:\d+\.){3}\d+:|\[[^\]]*\]:)?\d[\d-]*:\d[\d-]*(?:/\w+)?")


def without_switch(context: Context, view: EntryView, run: ContainerRun, name: str, letter: str) -> tuple[Edit, ...]:
    """Take a switch out of the arguments; `-i` comes in its place where stdin would stay closed."""
    args, at = (view.name, "args"), next(option.name_at for option in run.options if option.name == name)
    argument = view.fields["args"][at]
    left = "-" if argument.startswith("--") else f"-{argument[1:].replace(letter, '', 1)}"
    if not run.has("interactive"):
        left = f"-i{left[1:]}"
    if left == "-":
        return remove_children(context.document, args, [at])
    return set_value(context.document, (*args, at), left)


@entry_rule(
    "MH451",
    Severity.ERROR,
    "a container whose stdin is closed",
    why=(
        "A stdio server reads its requests from stdin. Without -i a container program closes it: the server starts,"
        " sees the end of its input and never answers, on every runtime; the session waits for the whole budget."
    ),
    fix='Put "-i" behind "run".',
    never_starts=True,
)
def stdin_closed(context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    if run and run.image_at is not None and not run.has("interactive"):
        yield Hit(
            (view.name, "args"),
            f"`{run.form}` without -i closes the server's stdin: it never gets a request and never answers, on every"
            " runtime.",
            edits=insert_items(context.document, (view.name, "args", run.verb_at), ["-i"]),
        )


@entry_rule(
    "MH452",
    Severity.ERROR,
    "a container with a terminal",
    why=(
        "-t asks for a terminal, and a server that a runtime starts has none: docker stops with `the input device is"
        " not a TTY`, podman goes on and mixes echoes and carriage returns into the server's answers."
    ),
    fix="Drop -t (write -i in place of -it).",
    covers=("MH451",),
    never_starts=True,
)
def with_terminal(context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    if run and run.image_at is not None and run.has("tty"):
        yield Hit(
            (view.name, "args", next(option.name_at for option in run.options if option.name == "tty")),
            f"`{run.form}` with -t wants a terminal, and no runtime has one: the server never answers.",
            edits=without_switch(context, view, run, "tty", "t"),
        )


@entry_rule(
    "MH453",
    Severity.ERROR,
    "a container in the background",
    why=(
        "With -d the container program prints an id and ends. For the runtime the server has ended, and the container"
        " runs on without anybody to talk to, one more with each session."
    ),
    fix="Write -i in place of -d.",
    covers=("MH451",),
    never_starts=True,
)
def detached(context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    if run and run.image_at is not None and run.has("detach"):
        yield Hit(
            (view.name, "args", next(option.name_at for option in run.options if option.name == "detach")),
            f"`{run.form}` with -d leaves the server in the background and ends: every runtime takes it for dead, and"
            " the container stays.",
            edits=without_switch(context, view, run, "detach", "d"),
        )


def passed_names(run: ContainerRun) -> tuple[str, ...]:
    """The variables that reach the container by name alone."""
    return tuple(value for value in run.values("env") if value and "=" not in value and not value.endswith("*"))


def set_names(view: EntryView) -> tuple[str, ...]:
    """The variables of the entry's own env."""
    env = view.fields.get("env")
    return tuple(env) if isinstance(env, dict) else ()


def lost_names(view: EntryView, run: ContainerRun) -> tuple[str, ...]:
    """The variables of env that stay outside: nothing passes them on, and the container program does not read them."""
    if run.has("env-file") or run.has("env-host") or any(value.endswith("*") for value in run.values("env")):
        return ()
    passed = {value.partition("=")[0] for value in run.values("env")}
    return tuple(name for name in set_names(view) if name not in passed and not OF_THE_CLIENT.fullmatch(name))


@entry_rule(
    "MH454",
    Severity.WARNING,
    "a variable passed on that nobody sets",
    why=(
        "`-e NAME` without a value hands on what the container program finds in its own environment. That holds the"
        " entry's env and whatever the runtime lets through of the machine's: where NAME is in neither, the container"
        " starts without it and nobody says so."
    ),
    fix='Set it: "env": {"NAME": "${NAME}"}.',
)
def passes_nothing(context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    for option in run.options if run else ():
        if run is None or option.name != "env" or option.value not in passed_names(run):
            continue
        if option.value in set_names(view) or OF_THE_CLIENT.fullmatch(option.value):
            continue
        meant = did_you_mean(option.value, lost_names(view, run))
        alone = option.at != option.name_at
        yield Hit(
            (view.name, "args", option.at),
            f"-e {option.value} passes on a variable that env does not set: the container goes without it, unless the"
            " machine that runs the agent exports it." + (f" Probably {meant} of env is meant." if meant else ""),
            fix=f"Write -e {meant}." if meant else f'Set it: "env": {{"{option.value}": "${{{option.value}}}"}}.',
            edits=set_value(context.document, (view.name, "args", option.at), meant) if meant and alone else (),
            subject=option.value,
        )


@entry_rule(
    "MH455",
    Severity.WARNING,
    "a variable that stays outside the container",
    why=(
        "The entry's env is the environment of the container program, not of the container. Only -e NAME or --env-file"
        " hands a variable on; without it the server starts without its credential and fails at the first call."
    ),
    fix="Pass each one on with -e NAME.",
)
def stays_outside(context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    if run is None or run.image_at is None:
        return
    unset = [name for name in passed_names(run) if name not in set_names(view)]
    lost = [name for name in lost_names(view, run) if did_you_mean(name, unset) is None]
    if lost:
        words = [word for name in lost for word in ("-e", name)]
        it = "it" if len(lost) == 1 else "them"
        yield Hit(
            (view.name, "env", lost[0]),
            f"env sets {joined(lost)} for `{run.program}` alone: nothing passes {it} on, so the server in"
            f" the container never sees {it}, on every runtime.",
            fix=f"Add {joined(f'-e {name}' for name in lost)} behind {run.verb!r}.",
            edits=insert_items(context.document, (view.name, "args", run.verb_at), words),
        )


@entry_rule(
    "MH456",
    Severity.ERROR,
    "a mount that only a shell could read",
    why=(
        "No shell reads a catalog's arguments, so `~`, `$(pwd)` and backquotes reach the container program as they"
        " are. It takes such a source for the name of a volume and refuses it, on every launch."
    ),
    fix="Write an absolute path that every machine has, or the clone itself as `.`.",
    never_starts=True,
)
def unreadable_mount(_context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    for at, source in run.volume_sources() if run else ():
        if SHELL_SYNTAX.match(source):
            yield Hit(
                (view.name, "args", at),
                "no shell reads this mount, so its `~`, `$(...)` or backquote stays as it is: the container is refused"
                " and the server never starts, on every runtime.",
            )


@entry_rule(
    "MH457",
    Severity.WARNING,
    "a container that only one session can have",
    why=(
        "Every session starts the server for itself. A container's name and a published port exist once a machine: the"
        " second session's container is refused, and so is the next one of a session whose container was not removed."
    ),
    fix="Drop --name and -p: a stdio server needs neither.",
)
def only_one_session(context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    for option in run.options if run and run.verb == "run" else ():
        named = option.name == "name" and "${" not in option.value
        published = option.name == "publish" and PUBLISHED_HOST_PORT.fullmatch(option.value) is not None
        if named or published:
            what = "the name" if named else "the published port"
            whole = option.at != option.name_at or view.fields["args"][option.name_at].startswith("--")
            places = sorted({option.name_at, option.at})
            yield Hit(
                (view.name, "args", option.at),
                f"{what} of the container can be taken once a machine: a second session's server never starts, on every"
                " runtime.",
                fix="Drop --name: each container gets a name of its own." if named else "Drop -p: stdio needs no port.",
                edits=remove_children(context.document, (view.name, "args"), places) if named and whole else (),
                subject=option.name,
            )


@entry_rule(
    "MH458",
    Severity.NOTE,
    "localhost inside a container",
    why=(
        "Inside a container localhost is the container itself, unless it shares the host's network. A server that is"
        " told to call localhost looks for its service in its own container."
    ),
    fix="Use host.docker.internal, or --network host where that is meant.",
)
def localhost_inside(_context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    if run is None or "host" in run.values("network"):
        return
    for at, text in texts_inside(view, run):
        if LOCALHOST.search(text):
            yield Hit(
                (view.name, *at),
                "inside the container localhost is the container itself, not the machine that runs the agent.",
                at_value=True,
            )


def texts_inside(view: EntryView, run: ContainerRun) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """What the program in the container gets: its arguments and the variables that are passed on."""
    args = view.fields["args"]
    yield from ((("args", option.at), option.value) for option in run.options if option.name == "env")
    for position in range(run.image_at + 1 if run.image_at is not None else len(args), len(args)):
        yield ("args", position), args[position]
    env = view.fields.get("env")
    for name, value in env.items() if isinstance(env, dict) else ():
        if name in passed_names(run) and isinstance(value, str):
            yield ("env", name), value


@entry_rule(
    "MH459",
    Severity.NOTE,
    "containers that pile up",
    why="Without --rm every session leaves a stopped container behind, with its file system, until somebody clears up.",
    fix='Put "--rm" behind "run".',
)
def containers_pile_up(context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    if run and run.verb == "run" and run.image_at is not None and not run.has("rm"):
        yield Hit(
            (view.name, "args"),
            f"`{run.form}` without --rm leaves a stopped container behind with each session.",
            edits=insert_items(context.document, (view.name, "args", run.verb_at), ["--rm"]),
        )


@entry_rule(
    "MH460",
    Severity.ERROR,
    "a container command without an image",
    why="The container program prints how it is used and ends, on every launch.",
    fix="Name the image behind the options.",
    never_starts=True,
)
def no_image(_context: Context, view: EntryView) -> Iterator[Hit]:
    run = container(view.fields)
    if run and run.image_at is None:
        what = "image" if run.verb == "run" else "container"
        yield Hit(
            (view.name, "args"), f"`{run.form}` is given no {what}, so there is no server to start on any runtime."
        )
