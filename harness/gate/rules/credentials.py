"""Rules on credentials in an entry: written out, never filled in, in args, sent without encryption."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from harness.gate.context import Context, EntryView
from harness.gate.credential_literals import credential_literals, unfilled_literals
from harness.gate.model import Severity
from harness.gate.rule import Hit, entry_rule
from harness.gate.rules.placeholders import place_shown
from harness.gate.rules.secrets import OF_THE_MACHINE
from harness.gate.wording import joined
from harness.reference.oauth.capability import is_credential_header
from harness.reference.secrets.placeholders import occurrences, scanned_texts


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
            f"{literal.what} is a literal credential (***): every reader of the catalog {exposed}on every runtime has"
            " it.",
            fix=SEND_A_HEADER if literal.at[0] == "url" else "",
            at_value=True,
        )


SEND_A_HEADER = (
    "Send it as ${NAME} in a header, if the server takes one (a placeholder in a url fails `air validate`), seed the"
    " secret, and replace the credential at its provider: it is known now."
)


@entry_rule(
    "MH324",
    Severity.WARNING,
    "a placeholder that nobody filled in",
    why=(
        "An entry copied out of a README keeps its `your-key-here`. The server starts with that text as its credential"
        " and is refused at the first call, in every session."
    ),
    fix="Write ${NAME} and seed the secret, or leave the field out if the server needs none.",
)
def nobody_filled_in(_context: Context, view: EntryView) -> Iterator[Hit]:
    for literal in unfilled_literals(view.fields):
        in_url = literal.at[0] == "url"
        yield Hit(
            (view.name, *literal.at),
            f"{literal.what} is a placeholder that nobody filled in: the server gets it as its value on every runtime.",
            fix="Send the credential as ${NAME} in a header, if the server takes one." if in_url else "",
            at_value=True,
        )


@entry_rule(
    "MH321",
    Severity.NOTE,
    "a secret handed over in args",
    why=(
        "Every ${NAME} without a default comes out of the secret store. Arguments are shown by `ps` to every user of"
        " the machine and are often logged; an environment is not. Nothing breaks by it."
    ),
    fix="Hand it over in env, if the server reads it there; nothing has to be done where the value is no secret.",
)
def secret_in_args(_context: Context, view: EntryView) -> Iterator[Hit]:
    for at, text in scanned_texts(view.fields):
        used = (name for name, default in occurrences(text) if default is None and name not in OF_THE_MACHINE)
        names = list(dict.fromkeys(used))
        if at[0] == "args" and names:
            yield Hit(
                (view.name, *at),
                f"the value of {joined(names)} in {place_shown(at)} stands in the process list as long as the server"
                " runs, on every runtime.",
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
            f"{joined(named)} crosses the network readable by everyone on the way, on every runtime.",
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
