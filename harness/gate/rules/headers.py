"""Rules on the headers of a remote server: what can be sent at all, and what a server makes of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from harness.gate.context import Context, EntryView
from harness.gate.credential_literals import names_credential
from harness.gate.edits import rename_key, set_value
from harness.gate.model import Edit, Severity
from harness.gate.rule import Hit, entry_rule
from harness.gate.wording import SHOWN_CHARACTERS, joined, labels, named
from harness.reference.secrets.placeholders import PLACEHOLDER

TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""What a header's name may be (RFC 9110, section 5.6.2)."""

BLANKS = " \t\r\n"
"""fetch takes these away at both ends of a value before it looks at it."""

NEVER_SENDABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
LARGEST_LATIN1 = "\xff"

SET_BY_CLIENT = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "keep-alive", "upgrade", "expect", "te", "trailer"}
    | {"content-type", "accept", "mcp-session-id", "mcp-protocol-version"}
)
SCHEMES = {"bearer": "Bearer", "basic": "Basic", "digest": "Digest"}

ROUTINE_WORDS = frozenset(
    {"id", "ids", "team", "tenant", "org", "organization", "organisation", "workspace", "project", "region"}
    | {"environment", "env", "version", "account", "locale", "language", "user", "agent", "client", "name"}
    | {"zone", "host", "mode", "channel", "group", "source", "type", "trace", "readonly", "tools", "toolset"}
    | {"toolsets", "features", "site", "domain", "database", "customer"}
)
"""Last words of header names that say whom or what a request is about."""


def headers(view: EntryView) -> dict[str, object]:
    """The headers of an entry that runtimes take for a remote server."""
    table = view.fields.get("headers")
    return table if view.entry is not None and view.entry.remote and isinstance(table, dict) else {}


def shown_name(name: str) -> str:
    """A header's name in quotes, unless it is long."""
    return repr(name) if len(name) <= SHOWN_CHARACTERS else "a name"


@entry_rule(
    "MH221",
    Severity.ERROR,
    "a header name that cannot be sent",
    why=(
        "A header's name is one word of letters, digits and a few signs; a blank, a colon or an umlaut in it (often a"
        " blank at the end) makes fetch throw before the first request, so the server never connects. Codex leaves"
        " such a header out and goes on without it."
    ),
    fix="Correct the name: letters, digits and dashes, no blank.",
    never_starts=True,
)
def unsendable_name(context: Context, view: EntryView) -> Iterator[Hit]:
    strict = labels(context, "claude", "pi")
    for name in headers(view):
        if not TOKEN.fullmatch(name):
            trimmed = name.strip()
            fits = TOKEN.fullmatch(trimmed) and trimmed not in headers(view)
            what = (
                f"the server never connects on {named(context, strict)}"
                if strict
                else "the server is called without it on Codex"
            )
            yield Hit(
                (view.name, "headers", name),
                f"{shown_name(name)} is no name that a header can have: {what}.",
                runtimes=strict,
                severity=None if strict else Severity.WARNING,
                edits=rename_key(context.document, (view.name, "headers", name), trimmed) if fits else (),
            )


@entry_rule(
    "MH222",
    Severity.ERROR,
    "a header value that cannot be sent",
    why=(
        "fetch throws for a line break or a control character within a value and for every character beyond Latin-1"
        " (a typographic quote, an ellipsis, a zero-width blank that came with a pasted text), before the first"
        " request is sent."
    ),
    fix="Write the value in plain characters on one line.",
    never_starts=True,
)
def unsendable_value(context: Context, view: EntryView) -> Iterator[Hit]:
    strict = labels(context, "claude", "pi")
    for name, value in headers(view).items():
        text = PLACEHOLDER.sub("", value).strip(BLANKS) if isinstance(value, str) else ""
        is_broken = NEVER_SENDABLE.search(text) is not None
        concerned = labels(context, "claude", "codex", "pi") if is_broken else strict
        if concerned and (is_broken or max(text, default="") > LARGEST_LATIN1):
            what = "a line break or control character" if is_broken else "a character beyond Latin-1"
            yield Hit(
                (view.name, "headers", name),
                f"the value of {shown_name(name)} holds {what}, which no header can: the server never connects on"
                f" {named(context, concerned)}.",
                runtimes=concerned,
                at_value=True,
            )


@entry_rule(
    "MH223",
    Severity.WARNING,
    "a header that the client sets itself",
    why=(
        "Host, Content-Length, Transfer-Encoding and the like describe the request that the client is about to send,"
        " and Accept and Content-Type are set by the MCP client. A value in the catalog is dropped, or makes each"
        " request fail (`Request body length does not match content-length header`)."
    ),
    fix="Drop it.",
)
def set_by_client(_context: Context, view: EntryView) -> Iterator[Hit]:
    for name in headers(view):
        if name.strip().lower() in SET_BY_CLIENT:
            yield Hit(
                (view.name, "headers", name),
                f"{name.strip()} is set by the client itself: this value is dropped, or each request fails.",
            )


@entry_rule(
    "MH224",
    Severity.WARNING,
    "one header in two spellings",
    why=(
        "Header names have no case. fetch sends both values in one line, joined by a comma; Codex keeps one of them. A"
        " credential that is written twice is refused on one runtime and passes on another."
    ),
    fix="Keep one of them.",
)
def same_header_twice(_context: Context, view: EntryView) -> Iterator[Hit]:
    spellings: dict[str, list[str]] = defaultdict(list)
    for name in headers(view):
        spellings[name.strip().lower()].append(name)
    for names in spellings.values():
        if len(names) > 1 and all(map(TOKEN.fullmatch, names)):
            yield Hit(
                (view.name, "headers", names[-1]),
                f"{joined(names)} are one header: which value the server gets differs from runtime to runtime.",
                subject=names[0].lower(),
            )


@entry_rule(
    "MH225",
    Severity.WARNING,
    "an Authorization without a scheme",
    why=(
        'The value of Authorization begins with a scheme, for a token mostly "Bearer". A placeholder alone works only'
        " where the stored secret holds the scheme as well, or with the few servers that want the bare key."
    ),
    fix='Write "Bearer ${NAME}", unless the secret holds the scheme or the server wants the bare key.',
)
def no_scheme(context: Context, view: EntryView) -> Iterator[Hit]:
    for name, value in headers(view).items():
        alone = PLACEHOLDER.fullmatch(value.strip()) if isinstance(value, str) else None
        if name.strip().lower() not in ("authorization", "proxy-authorization") or alone is None:
            continue
        given = (context.secrets.values or {}).get(alone[1], "")
        if " " not in given.strip():
            yield Hit(
                (view.name, "headers", name),
                f"{name.strip()} is ${{{alone[1]}}} alone: unless that secret begins with a scheme, most servers answer"
                " 401 on every runtime.",
                fix=f'Write "Bearer ${{{alone[1]}}}", unless the secret holds the scheme or the server wants the bare'
                " key.",
                at_value=True,
            )


@entry_rule(
    "MH226",
    Severity.WARNING,
    "a header named like a scheme",
    why=(
        "Bearer and Basic are words within the value of Authorization. As names of headers no server looks for them,"
        " and Zimmer sees no credential in them: it takes the server for one that a human has to authorize."
    ),
    fix='Write "Authorization": "Bearer ${NAME}".',
    covers=("MH323", "MH806"),
)
def named_like_a_scheme(context: Context, view: EntryView) -> Iterator[Hit]:
    table = headers(view)
    for name, value in table.items():
        scheme = SCHEMES.get(name.strip().rstrip(":").lower())
        if scheme is not None:
            yield Hit(
                (view.name, "headers", name),
                f"{scheme} is no header but the first word of an Authorization header's value, so the server finds no"
                " credential, on any runtime.",
                fix=f"Name the header Authorization and put {scheme} in front of the value.",
                edits=as_authorization(context, view, name, scheme, value),
            )


def as_authorization(context: Context, view: EntryView, name: str, scheme: str, value: object) -> tuple[Edit, ...]:
    """The header under its right name with the scheme in front of its value, where none is there yet."""
    if any(other.strip().lower() == "authorization" for other in headers(view)) or not isinstance(value, str):
        return ()
    pointer = (view.name, "headers", name)
    text = value if value.lower().startswith(f"{scheme.lower()} ") else f"{scheme} {value}"
    return (
        *rename_key(context.document, pointer, "Authorization"),
        *set_value(context.document, pointer, text),
    )


@entry_rule(
    "MH323",
    Severity.WARNING,
    "a credential in a header that Zimmer does not know for one",
    why=(
        "Zimmer knows a credential header by a word in its name: authorization, auth, api-key, token, secret, password"
        " or credential, parted by dashes. A key in X-Key, Cookie or DD-APPLICATION-KEY is none for it: it takes the"
        " server for one with OAuth, parks each session until a human authorizes, and Pi's 401s are never mended."
    ),
    fix=(
        "Use a name that Zimmer knows if the server takes one (Authorization, X-API-Key); or add a second header of"
        ' such a name with the same ${NAME}, which the server ignores ("X-Auth"). If a human does authorize the server,'
        " nothing has to be done."
    ),
    covers=("MH806",),
)
def unknown_credential_header(_context: Context, view: EntryView) -> Iterator[Hit]:
    if not view.oauth_capable:
        return
    names = [name for name, value in headers(view).items() if may_be_credential(name, value)]
    if names:
        yield Hit(
            (view.name, "headers", names[0]),
            f"if {joined(names)} {'is' if len(names) == 1 else 'are'} the credential, Zimmer does not know it for one:"
            " it parks every session until a human authorizes a server that has no OAuth.",
        )


def may_be_credential(name: str, value: object) -> bool:
    """Whether a header that Zimmer takes for routine holds one secret and nothing else."""
    alone = PLACEHOLDER.fullmatch(value.strip()) if isinstance(value, str) else None
    if alone is None or alone[2] is not None:
        return False
    if names_credential(name) or names_credential(alone[1]):
        return True
    words = re.findall(r"[A-Za-z][a-z]*|[A-Z]+", name)
    return not words or re.split(r"[-_.\s]", name.lower())[-1] not in ROUTINE_WORDS
