"""Rules on secrets: variables nobody gave a value, values that cannot pass, credentials written out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from harness.gate.context import Context, EntryView
from harness.gate.credential_literals import credential_literals, names_credential
from harness.gate.model import Severity
from harness.gate.nearness import did_you_mean, near_misses
from harness.gate.rule import Hit, catalog_rule, entry_rule
from harness.gate.rules.placeholders import place_shown
from harness.gate.wording import joined
from harness.inputs.document import Pointer
from harness.reference.oauth.capability import is_credential_header
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
                f"${{{name}}} of {user} is no known secret ({context.secrets.source or 'the known secrets'}): one"
                " missing variable stops the WHOLE session, on every runtime." + suggestion(context, guess),
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
                f"{suspect} of {users[0]} is nearly {model} of {joined(others)}: if it is a slip, every session with"
                f" {users[0]} fails for one missing variable, on every runtime.",
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
)
def impassable_value(context: Context) -> Iterator[Hit]:
    for name, users in used_secrets(context).items():
        value = (context.secrets.values or {})[name]
        for user, at, required in users:
            said = what_is_wrong(value, in_header=at[0] == "headers", required=required)
            if said is not None:
                yield Hit(
                    (user, *at),
                    f"the given value of {name} {said[1]}, so {said[2].format(user)}, on every runtime.",
                    severity=said[0],
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


def what_is_wrong(value: str, *, in_header: bool, required: bool) -> tuple[Severity, str, str] | None:
    """How bad it is, what the value is like, and what follows (with a gap for the entry); never the value."""
    if is_blank(value):
        return (
            (Severity.ERROR, "is blank, which counts as missing", "every session with {} fails") if required else None
        )
    if ANY_BRACED.search(value):
        return (
            Severity.ERROR,
            "holds ${...}, which AIR takes for an unresolved placeholder",
            "every session with {} fails",
        )
    if in_header and ("\n" in value or "\r" in value):
        return Severity.WARNING, "holds a line break, which no header can", "{} is refused or called without it"
    return None


@entry_rule(
    "MH320",
    Severity.ERROR,
    "a credential written out",
    why=(
        "Everybody who can read the catalog has the credential, and so has its history after it was removed. It is"
        " copied into the config file of every clone; in args it stands in the process list of the machine as well,"
        " and no rotation of the secret store reaches it."
    ),
    fix="Write ${NAME}, seed the secret, and replace the credential at its provider: it is known now.",
)
def credential_written_out(_context: Context, view: EntryView) -> Iterator[Hit]:
    for literal in credential_literals(view.fields):
        exposed = "and every process list " if literal.at[0] == "args" else ""
        yield Hit(
            (view.name, *literal.at),
            f"{literal.what} of {view.name} is a literal credential (***): every reader of the catalog {exposed}on"
            " every runtime has it.",
            at_value=True,
        )


@entry_rule(
    "MH321",
    Severity.NOTE,
    "a secret handed over in args",
    why="Arguments are shown by `ps` to every user of the machine and are often logged; an environment is not.",
    fix="Hand it over in env, if the server reads it there.",
)
def secret_in_args(_context: Context, view: EntryView) -> Iterator[Hit]:
    for at, text in scanned_texts(view.fields):
        names = list(dict.fromkeys(name for name, _ in occurrences(text) if names_credential(name)))
        if at[0] == "args" and names:
            yield Hit(
                (view.name, *at),
                f"{joined(names)} in {place_shown(at)} stands in the process list as long as {view.name} runs, on every"
                " runtime.",
                at_value=True,
            )


@entry_rule(
    "MH322",
    Severity.WARNING,
    "a credential sent without encryption",
    why=(
        "With a plain http url the credential header crosses the network readable with each request. Only on the"
        " machine itself (loopback) does nobody else hear it."
    ),
    fix="Use https.",
)
def credential_in_clear(_context: Context, view: EntryView) -> Iterator[Hit]:
    headers = view.fields.get("headers")
    named = (
        [name for name, value in headers.items() if is_credential_header(name, value)]
        if isinstance(headers, dict)
        else []
    )
    if named and is_clear_text(view.fields.get("url")):
        yield Hit(
            (view.name, "url"),
            f"{joined(named)} of {view.name} crosses the network readable by everyone on the way, on every runtime.",
            at_value=True,
        )


def is_clear_text(url: object) -> bool:
    """Whether requests to a url leave the machine unencrypted; a host that a placeholder names is not known."""
    if not isinstance(url, str) or not url.lower().startswith("http://"):
        return False
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return bool(host) and "${" not in host and not is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether a host is the machine itself."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
