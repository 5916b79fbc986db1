"""Rules on the address of a remote server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from harness.gate.context import Context, EntryView
from harness.gate.edits import set_value
from harness.gate.model import Severity
from harness.gate.nearness import did_you_mean
from harness.gate.rule import Hit, entry_rule
from harness.gate.rules.credentials import is_clear_text
from harness.gate.wording import labels, named
from harness.reference.catalog.schema import is_uri
from harness.reference.oauth.capability import has_static_credential
from harness.reference.secrets.placeholders import ANY_BRACED

SCHEMES = ("http", "https")
MEANT = {"ws": "http", "wss": "https"}
LONGEST_SCHEME = 12
_SCHEME = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*):")
_HOST_AND_PORT = re.compile(r"\s*[\w.-]+:\d{2,5}(?:[/?#]|\Z)")


def remote_url(view: EntryView) -> str | None:
    """The address of an entry that runtimes take for a remote server."""
    url = view.fields.get("url")
    return url if view.entry is not None and view.entry.remote and isinstance(url, str) else None


@entry_rule(
    "MH206",
    Severity.WARNING,
    "a placeholder in a url",
    why=(
        "The schema's own text says that a url may hold placeholders, and its `uri` format refuses the braces: `air"
        " validate` fails the whole catalog, while prepare resolves the placeholder and writes a good url."
    ),
    fix="Write the address out, or keep this catalog out of `air validate`; a credential belongs in a header.",
)
def placeholder_in_url(_context: Context, view: EntryView) -> Iterator[Hit]:
    if is_placeholder_url(view.fields.get("url")):
        yield Hit(
            (view.name, "url"),
            "the placeholder in the url fails `air validate` for the whole catalog, though prepare resolves it on every"
            " runtime.",
            at_value=True,
        )


def is_placeholder_url(url: object) -> bool:
    """Whether a url is refused for its placeholders alone."""
    if not isinstance(url, str) or is_uri(url) or not ANY_BRACED.search(url):
        return False
    return any(is_uri(ANY_BRACED.sub(value, url)) for value in ("x", "1", "https://x", "https://x/"))


@entry_rule(
    "MH211",
    Severity.ERROR,
    "a url that no runtime can call",
    why=(
        "MCP's remote transports are HTTP. A url with another scheme (ws, ftp, a slip of https, a bare host with a"
        " port) passes the schema and reaches every runtime's file; there each request fails before it is sent."
    ),
    fix="Write an http or https address.",
    never_starts=True,
)
def other_scheme(context: Context, view: EntryView) -> Iterator[Hit]:
    url = remote_url(view)
    found = _SCHEME.match(url) if url else None
    if url is None or found is None or found[1].lower() in SCHEMES:
        return
    if _HOST_AND_PORT.match(url):
        yield Hit(
            (view.name, "url"),
            "the url has no scheme, so what stands before the port is taken for one: no runtime can connect.",
            fix="Write http:// or https:// in front.",
            at_value=True,
        )
        return
    scheme = found[1].lower()
    meant = MEANT.get(scheme) or did_you_mean(scheme, SCHEMES)
    shown = scheme if len(scheme) <= LONGEST_SCHEME else "another scheme"
    edits = set_value(context.document, (view.name, "url"), url.strip().replace(found[1], meant, 1)) if meant else ()
    yield Hit(
        (view.name, "url"),
        f"the url's scheme is {shown}: no runtime can connect, MCP is spoken over http and https alone.",
        fix=f"Write {meant}:// where the server answers there." if meant else "",
        edits=edits if scheme not in MEANT else (),
        at_value=True,
    )


@entry_rule(
    "MH212",
    Severity.ERROR,
    "a user name or password in the url",
    why=(
        "fetch refuses every address with credentials in front of the host (`Request cannot be constructed from a URL"
        " that includes credentials`), so a runtime written in JavaScript never connects. Codex makes a Basic header of"
        " them. They are also part of what is hashed for the stored credential's key."
    ),
    fix='Send them as a header: "Authorization": "Basic ${NAME}", with user:password in base64 as the secret.',
    covers=("MH206",),
    never_starts=True,
)
def userinfo(context: Context, view: EntryView) -> Iterator[Hit]:
    concerned = labels(context, "claude", "pi")
    if concerned and has_userinfo(remote_url(view)):
        yield Hit(
            (view.name, "url"),
            f"the url names a user in front of the host, and fetch refuses it: the server never connects on"
            f" {named(context, concerned)}.",
            runtimes=concerned,
            at_value=True,
        )


def has_userinfo(url: str | None) -> bool:
    """Whether something stands before an `@` in the host's part."""
    if url is None:
        return False
    try:
        return "@" in urlsplit(ANY_BRACED.sub("x", url)).netloc
    except ValueError:
        return False


@entry_rule(
    "MH213",
    Severity.NOTE,
    "a fragment in the url",
    why=(
        "What stands behind `#` is never sent, so the server cannot see it; but it is part of what is hashed for the"
        " stored credential's key."
    ),
    fix="Drop it.",
)
def fragment(context: Context, view: EntryView) -> Iterator[Hit]:
    url = remote_url(view)
    if url is not None and "#" in url:
        mended = set_value(context.document, (view.name, "url"), url.partition("#")[0])
        yield Hit(
            (view.name, "url"),
            "what stands behind # in the url is never sent to the server, on any runtime.",
            edits=() if view.oauth_capable else mended,
            at_value=True,
        )


@entry_rule(
    "MH214",
    Severity.WARNING,
    "a server to be authorized without encryption",
    why=(
        "For an OAuth server the runtime sends the human's token with each request. Over plain http everybody on the"
        " way reads it; the authorization itself wants https as well, except on the machine itself."
    ),
    fix="Use https.",
)
def consent_in_clear(_context: Context, view: EntryView) -> Iterator[Hit]:
    url = remote_url(view)
    if url is not None and not has_static_credential(view.fields.get("headers")) and is_clear_text(url):
        yield Hit(
            (view.name, "url"),
            "a token that a human authorizes crosses the network readable by everyone on the way, on every runtime.",
            at_value=True,
        )
