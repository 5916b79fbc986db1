"""Rules on secrets: variables that nobody gave a value, and values that cannot pass."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from harness.gate.context import Context, EntryView
from harness.gate.model import Severity
from harness.gate.nearness import did_you_mean, near_misses
from harness.gate.rule import Asked, Hit, catalog_rule, entry_rule
from harness.gate.wording import joined
from harness.inputs.document import Pointer
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.loader import VENDOR_PREFIX
from harness.reference.secrets.placeholders import ANY_BRACED, occurrences, scanned_texts

SUGGESTIONS = 50
"""So many unknown variables get a did-you-mean; a catalog with more was judged against the wrong list."""


@catalog_rule(
    "MH310",
    Severity.ERROR,
    "a variable that is no known secret",
    why=(
        "Secrets are resolved for a whole session at once, and nothing catches an error of one entry: one missing"
        " variable, often a typing slip, ends the preparation of every session that carries the server, together"
        " with all its healthy servers."
    ),
    fix="Seed the secret before merging, or correct the name.",
    asked=Asked.WITH_NAMES,
)
def unknown_secret(context: Context) -> Iterator[Hit]:
    known = context.secrets.names
    if known is None:
        return
    unknown = [(name, users) for name, users in context.variable_names.items() if not is_known(name, known)]
    for position, (name, users) in enumerate(unknown):
        guess = did_you_mean(name, known | (context.variable_names.keys())) if position < SUGGESTIONS else None
        for user in users:
            yield Hit(
                place_of_variable(context.entries[user], name),
                f"${{{name}}} is no known secret ({context.secrets.source or 'the known secrets'}): one missing"
                " variable stops the WHOLE session, on every runtime." + suggestion(context, guess),
                fix=of_the_machine(name),
                at_value=True,
                subject=name,
            )


def is_known(name: str, known: frozenset[str]) -> bool:
    """Whether a variable has a value: it was named, or Zimmer issues it itself."""
    return name in known or name.startswith(VENDOR_PREFIX)


def suggestion(context: Context, guess: str | None) -> str:
    """` Did you mean NAME (used by …)?`"""
    if guess is None:
        return ""
    users = context.variable_names.get(guess, ())
    return f" Did you mean {guess}{f' (used by {joined(users)})' if users else ''}?"


def place_of_variable(view: EntryView, name: str) -> Pointer:
    """Where an entry uses a variable first; the entry itself where only the preparing instance does."""
    for at, text in scanned_texts(view.fields):
        if any(name == used for used, _ in occurrences(text)):
            return (view.name, *at)
    return view.pointer


OF_THE_MACHINE = frozenset(
    {
        "HOME",
        "PWD",
        "OLDPWD",
        "USER",
        "USERNAME",
        "LOGNAME",
        "HOSTNAME",
        "TMPDIR",
        "TMP",
        "TEMP",
        "PATH",
        "SHELL",
        "LANG",
    }
    | {"USERPROFILE", "APPDATA", "LOCALAPPDATA", "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CODEX_HOME"}
)
"""Variables that a shell or a runtime sets, and nobody stores as secrets."""


def of_the_machine(name: str) -> str:
    """What to do about a variable of the machine; empty for any other one."""
    if name not in OF_THE_MACHINE:
        return ""
    return f"Write the value out, or give a default (${{{name}:-...}})."


@entry_rule(
    "MH313",
    Severity.WARNING,
    "a variable of the machine that is looked up as a secret",
    why=(
        "Zimmer resolves every ${NAME} out of its secret store, before anything runs. HOME, PWD or PATH of the machine"
        " are not asked: without a secret of that name the WHOLE session stops, and with one every session gets the"
        " same value."
    ),
    fix="Write the value out, or give a default (${HOME:-/home/agent}); servers start in the session's clone.",
    asked=Asked.WITHOUT_NAMES,
)
def variable_of_the_machine(context: Context, view: EntryView) -> Iterator[Hit]:
    if context.secrets.names is not None:
        return  # MH310 knows whether there is such a secret
    for name in view.variables.required:
        if name in OF_THE_MACHINE:
            yield Hit(
                place_of_variable(view, name),
                f"${{{name}}} is looked up as a secret, not in the machine's environment: unless somebody stored one of"
                " that name, the WHOLE session stops, on every runtime.",
                fix=of_the_machine(name),
                at_value=True,
                subject=name,
            )


@catalog_rule(
    "MH311",
    Severity.WARNING,
    "a variable that is nearly another one's name",
    why=(
        "One variable that nobody seeded stops the whole session. A name that only one entry uses and that differs"
        " by one character from the name that other entries use is mostly a slip, and nothing else shows it before"
        " a session fails."
    ),
    fix="Correct the name; or check it against the seeded secrets with --known-secrets.",
    asked=Asked.WITHOUT_NAMES,
)
def nearly_another_name(context: Context) -> Iterator[Hit]:
    if context.secrets.names is not None:
        return
    order = {name: position for position, name in enumerate(context.variable_names)}
    told: set[str] = set()
    for pair in near_misses(order):
        suspect, model = sorted(pair, key=lambda name: (len(context.variable_names[name]), -order[name]))
        users, others = context.variable_names[suspect], context.variable_names[model]
        if len(users) == 1 and users[0] not in others and suspect not in told:
            told.add(suspect)
            yield Hit(
                place_of_variable(context.entries[users[0]], suspect),
                f"{suspect} is nearly {model} of {joined(others)}: if it is a slip, every session with this server"
                " fails for one missing variable, on every runtime.",
                at_value=True,
                others=others,
                subject=model,
            )


@catalog_rule(
    "MH312",
    Severity.ERROR,
    "a secret's value that cannot pass",
    why=(
        "A blank value counts as missing. A value that holds ${...} is taken by AIR's last check for a placeholder"
        " that nobody resolved, so it can never pass. A header cannot hold a line break, which a value pasted from"
        " a file often ends with."
    ),
    fix="Store the value without line breaks; one with ${...} must reach the server in another way.",
    asked=Asked.WITH_VALUES,
)
def impassable_value(context: Context) -> Iterator[Hit]:
    for name, users in used_secrets(context).items():
        value = (context.secrets.values or {})[name]
        for user, at, required in users:
            said = what_is_wrong(value, in_header=at[0] == "headers", required=required)
            if said is not None:
                yield Hit(
                    (user, *at),
                    f"the given value of {name} {said.like}, so {said.follows}, on every runtime.",
                    fix=said.fix,
                    severity=said.severity,
                    at_value=True,
                    subject=name,
                )


Use = tuple[str, Pointer, bool]


def used_secrets(context: Context) -> dict[str, list[Use]]:
    """The secrets with a given value, each with its uses: entry, path in it, whether there is no default."""
    values = context.secrets.values or {}
    uses: dict[str, dict[Use, None]] = defaultdict(dict)
    for view in context.entries.values() if values else ():
        for at, text in scanned_texts(view.fields):
            for name, default in occurrences(text):
                if name in values:
                    uses[name][(view.name, at, default is None)] = None
    return {name: list(places) for name, places in uses.items()}


class Wrong(NamedTuple):
    """What is wrong with a given value: what it is like, what follows, what to do; never the value."""

    severity: Severity
    like: str
    follows: str
    fix: str


FAILS = "every session with this server fails"
BLANK = Wrong(
    Severity.ERROR,
    "is blank, which counts as missing",
    FAILS,
    "Give the secret a value, or write ${NAME:-} where the server can do without it.",
)
BRACED = Wrong(
    Severity.ERROR,
    "holds ${...}, which AIR takes for an unresolved placeholder",
    FAILS,
    "Hand the value to the server in another way, e.g. in a file.",
)
BROKEN_LINE = Wrong(
    Severity.WARNING,
    "holds a line break, which no header can",
    "the server is refused or called without it",
    "Store the value without line breaks.",
)


def what_is_wrong(value: str, *, in_header: bool, required: bool) -> Wrong | None:
    """Why a value cannot pass where it is used; None where it can."""
    if is_blank(value):
        return BLANK if required else None
    if ANY_BRACED.search(value):
        return BRACED
    return BROKEN_LINE if in_header and ("\n" in value or "\r" in value) else None
