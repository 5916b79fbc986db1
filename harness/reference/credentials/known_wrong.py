"""Keys as an orchestrator would file them that computes them in a way known to be wrong.

A miss is silent: the runtime connects without a token. So the catalog gate lists the entries whose key would come out
differently (credential-key-runtime-mode).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from harness.reference.credentials.javascript import stringify
from harness.reference.credentials.key import (
    CLAUDE_PLACEHOLDER,
    SEPARATOR,
    credential_key,
    hashed_members,
    key_hash,
    preimage,
)

Way = Literal["munged", "html_escaped", "sorted_headers", "unexpanded_placeholders"]

HTML_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "&<>\u2028\u2029"}
"""What Rails escapes on top of JSON."""


def known_wrong_keys(server_name: str, config: Mapping[str, Any]) -> dict[Way, str]:
    """The wrong keys of a catalog entry that differ from the right one, by the way in which they go wrong.

    Under `unexpanded_placeholders` stands the key over the entry as written, which no runtime that expands the url and
    headers will look up.
    """
    right = credential_key(server_name, config)
    candidates: dict[Way, str] = {
        "munged": _filed(server_name, munged(preimage(config))),
        "html_escaped": _filed(server_name, html_escaped(preimage(config))),
        "sorted_headers": _filed(server_name, stringify(with_sorted_headers(hashed_members(config)))),
    }
    wrong: dict[Way, str] = {way: key for way, key in candidates.items() if key != right}
    if has_placeholder(config):
        wrong["unexpanded_placeholders"] = right
    return wrong


def munged(text: str) -> str:
    """The serialised text with blanks after `:` and `,` taken out of values too, as seed 002 tells."""
    return text.replace(": ", ":").replace(", ", ",")


def html_escaped(text: str) -> str:
    """The serialised text as Rails writes it."""
    return text.translate(HTML_ESCAPES)


def with_sorted_headers(members: dict[str, Any]) -> dict[str, Any]:
    """The hashed members with the headers in alphabetical order."""
    headers = members["headers"]
    return {**members, "headers": dict(sorted(headers.items()))} if isinstance(headers, Mapping) else members


def has_placeholder(config: Mapping[str, Any]) -> bool:
    """Whether the url or a header value changes when a runtime expands it."""
    headers = config.get("headers")
    values = [config.get("url"), *(headers.values() if isinstance(headers, Mapping) else ())]
    return any(isinstance(value, str) and CLAUDE_PLACEHOLDER.search(value) for value in values)


def _filed(server_name: str, text: str) -> str:
    return f"{server_name}{SEPARATOR}{key_hash(text)}"
