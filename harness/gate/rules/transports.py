"""MH203 to MH205: the rules on an entry's transport, and what becomes of an entry on each runtime, in words."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from harness.gate.context import Context, EntryView
from harness.gate.edits import insert_first, set_value
from harness.gate.judge import outcomes_as_written
from harness.gate.model import Severity
from harness.gate.nearness import did_you_mean
from harness.gate.rule import Hit, entry_rule
from harness.gate.rules.document import is_wrapper
from harness.gate.wording import joined, shown

PUBLISHED_TYPES = ("stdio", "sse", "streamable-http")
STREAMABLE_HTTP = "streamable-http"
ALIASES = {
    "http": STREAMABLE_HTTP,
    "https": STREAMABLE_HTTP,
    "streamable": STREAMABLE_HTTP,
    "streamablehttp": STREAMABLE_HTTP,
    "remote": STREAMABLE_HTTP,
    "local": "stdio",
    "command": "stdio",
    "stdin": "stdio",
    "eventstream": "sse",
    "serversentevents": "sse",
}
"""Other hosts' names of the transports, in lower case without separators."""

CONSEQUENT_RULES = ("MH801", "MH802", "MH803", "MH804", "MH805")
"""What the runtimes say of an entry whose transport is wrong; the rules on transports say it themselves."""

_SEPARATORS = re.compile(r"[^a-z0-9]")


@entry_rule(
    "MH203",
    Severity.ERROR,
    '"type": "http"',
    why=(
        "Zimmer's own documents name `http` as a transport, AIR's schema does not: `air validate` fails the"
        " catalog, while `air prepare` lets the entry through unchecked, so it works until CI validates the file."
    ),
    fix='"type": "streamable-http"',
)
def type_http(context: Context, view: EntryView) -> Iterator[Hit]:
    if view.fields.get("type") == "http":
        yield Hit(
            (view.name, "type"),
            '"type": "http" fails `air validate` for the whole catalog, though prepare would let it through unchecked'
            " on every runtime.",
            edits=set_value(context.document, (view.name, "type"), STREAMABLE_HTTP),
            at_value=True,
        )


@entry_rule(
    "MH204",
    Severity.ERROR,
    "an unknown transport",
    why=(
        "A transport is matched exactly, in case and separators. For Zimmer an entry of any other type is neither"
        " stdio nor remote and is left out; AIR passes the word on, and Claude skips a server whose type it does"
        " not know. Nothing in the session says so."
    ),
    fix='Use "stdio", "sse" or "streamable-http".',
    covers=CONSEQUENT_RULES,
)
def unknown_type(context: Context, view: EntryView) -> Iterator[Hit]:
    written = view.fields.get("type")
    if not isinstance(written, str) or written in (*PUBLISHED_TYPES, "http"):
        return
    meant = transport_meant(written, view.fields)
    yield Hit(
        (view.name, "type"),
        f"type {shown(written)} is no transport of AIR's, so the entry is {fates(context, view)}"
        + (f"; probably {meant!r} is meant." if meant else "."),
        edits=set_value(context.document, (view.name, "type"), meant) if meant else (),
        at_value=True,
    )


def transport_meant(written: str, fields: Mapping[str, Any]) -> str | None:
    """The published transport that a spelling stands for, if the entry's command or url agrees with it."""
    plain = _SEPARATORS.sub("", written.lower())
    names = {_SEPARATORS.sub("", name): name for name in PUBLISHED_TYPES} | ALIASES
    near = plain if plain in names else did_you_mean(plain, names)
    if near is None:
        return None
    needed = "command" if names[near] == "stdio" else "url"
    other = "url" if needed == "command" else "command"
    return names[near] if needed in fields or other not in fields else None


def fates(context: Context, view: EntryView) -> str:
    """What becomes of an entry on each runtime: `not written on pi@…, skipped on claude@…`."""
    by_state: dict[str, list[str]] = defaultdict(list)
    for outcome in outcomes_as_written(view):
        by_state[outcome.state.value].append(outcome.runtime)
    if not context.runtimes:
        return "left out by Zimmer"
    return ", ".join(f"{TOLD.get(state, state)} {joined(runtimes)}" for state, runtimes in sorted(by_state.items()))


TOLD = {
    "not written": "not written on",
    "skipped": "skipped by",
    "fails": "never connected on",
    "kills the run": "the end of every session on",
    "unavailable": "declared unavailable on",
    "starts": "taken all the same by",
    "authorize": "taken all the same by",
}


@entry_rule(
    "MH205",
    Severity.ERROR,
    "no transport",
    why=(
        "AIR's schema requires a type, and its Claude adapter takes an entry without one for a remote server: the"
        " command is lost and `{}` is written. Claude in turn takes an entry without type for a stdio server and"
        " skips a bare url."
    ),
    fix='Add "type": "stdio" to an entry with a command, "type": "streamable-http" to one with a url.',
    requirements=("catalog-transport-values",),
    covers=CONSEQUENT_RULES,
)
def missing_type(context: Context, view: EntryView) -> Iterator[Hit]:
    if not isinstance(view.raw, dict) or view.fields.get("type") is not None or is_wrapper(view.name, view.raw):
        return
    meant = type_told_by_fields(view.fields)
    lost = "its command" if meant == "stdio" else "the server"
    if "type" in view.fields:
        edits = set_value(context.document, (view.name, "type"), meant) if meant else ()
    else:
        edits = insert_first(context.document, view.pointer, "type", meant) if meant else ()
    yield Hit(
        (view.name, "type"),
        f"the entry has no type: `air validate` refuses the catalog (must have required property 'type'), AIR's Claude"
        f" adapter loses {lost}, and it is {fates(context, view)}.",
        fix=f'Add "type": "{meant}".' if meant else "",
        edits=edits,
    )


def type_told_by_fields(fields: Mapping[str, Any]) -> str | None:
    """The transport that goes with what the entry has: a command or a url, not both."""
    has_command, has_url = (isinstance(fields.get(field), str) for field in ("command", "url"))
    if has_command == has_url:
        return None
    if has_command:
        return "stdio"
    return "sse" if fields["url"].partition("?")[0].rstrip("/").endswith("/sse") else STREAMABLE_HTTP
