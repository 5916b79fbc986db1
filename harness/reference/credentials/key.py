"""The key of a stored credential: a copy of what the runtimes compute for themselves (seed 002).

`SERVER_NAME|HASH`, HASH being the first 16 hex digits of the SHA-256 over the compact JSON of exactly `{type, url,
headers}`. Two sides use it: the row in the database is filed under the key of the catalog's entry as written, and what
is written into a runtime's store under the key of the entry as that runtime will read it
(credential-key-placeholder-expansion).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Literal

from harness.reference.credentials.javascript import stringify, utf8
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.placeholders import PLACEHOLDER

Runtime = Literal["claude", "codex", "pi"]

HASH_DIGITS = 16
SEPARATOR = "|"

CLAUDE_PLACEHOLDER = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""What Claude expands when it reads its config. Wider than the orchestrator's own grammar: lower case counts too."""


def credential_key(server_name: str, config: object) -> str:
    """The key over a config as given; nothing is expanded. A config that is no object gives the bare name."""
    if not isinstance(config, Mapping):
        return server_name
    return f"{server_name}{SEPARATOR}{key_hash(preimage(config))}"


def key_hash(text: str) -> str:
    """The hash part of a key: 16 lower-case hex digits over the UTF-8 bytes."""
    return sha256(text.encode()).hexdigest()[:HASH_DIGITS]


def preimage(config: Mapping[str, Any]) -> str:
    """The text that is hashed: type, url and headers, in this order, and no other member of the entry."""
    return stringify(hashed_members(config))


def hashed_members(config: Mapping[str, Any]) -> dict[str, Any]:
    """Type as hashed, url and headers as written; missing ones are null, missing or null headers an empty object."""
    headers = config.get("headers")
    return {
        "type": hashed_type(config.get("type")),
        "url": config.get("url"),
        "headers": {} if headers is None else headers,
    }


def hashed_type(written: Any) -> Any:
    """Only `streamable-http` has another name in the hash; every other spelling is taken as it is."""
    return "http" if written == "streamable-http" else written


def runtime_key(runtime: Runtime, server_name: str, config: object, variables: Mapping[str, str]) -> str:
    """The key under which a runtime looks a server's credential up, with the values that its config will hold.

    Claude hashes the entry after its own expansion (a name that is set, even to "", counts as set; one that is not and
    has no default stays literal). Codex expands nothing: its url is what the orchestrator wrote, type `http` and
    headers `{}`. Pi takes the bare name.
    """
    if runtime == "pi" or not isinstance(config, Mapping):
        return server_name
    if runtime == "codex":
        return credential_key(server_name, codex_config(config, variables))
    return credential_key(server_name, claude_config(config, variables))


def claude_config(config: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """The entry as Claude reads it: url and header values expanded, names and their order untouched."""
    headers = config.get("headers")
    expanded = (
        {name: expand(CLAUDE_PLACEHOLDER, value, variables) for name, value in headers.items()}
        if isinstance(headers, Mapping)
        else headers
    )
    return {**config, "url": expand(CLAUDE_PLACEHOLDER, config.get("url"), variables), "headers": expanded}


def codex_config(config: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, Any]:
    """What Codex hashes of an entry, whatever its transport and headers are.

    The orchestrator expands for it, and takes a blank value for none (secrets-blank-is-missing).
    """
    values = {name: value for name, value in variables.items() if not is_blank(value)}
    return {"type": "http", "url": expand(PLACEHOLDER, config.get("url"), values), "headers": {}}


def expand(grammar: re.Pattern[str], value: Any, variables: Mapping[str, str]) -> Any:
    """A text with its placeholders replaced in one pass; without value and default one stays as written."""
    if not isinstance(value, str):
        return value
    return grammar.sub(lambda match: variables.get(match[1], match[0] if match[2] is None else match[2]), value)


def pi_account(server_name: str) -> str:
    """A server's account in Pi's OS credential store: `sha256-` and the full digest of the exact name."""
    return f"sha256-{sha256(utf8(server_name)).hexdigest()}"


def split_key(key: str) -> tuple[str, str]:
    """Name and hash of a key, split at the last `|`: a name may hold one itself. A bare name has an empty hash."""
    name, separator, digits = key.rpartition(SEPARATOR)
    return (name, digits) if separator else (key, "")
