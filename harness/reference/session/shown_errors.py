"""What of a server's failure may be shown: its text without the values that the server was given in confidence.

Source: seed 000 "Prefer a remote server to a stdio one that wants an API token"; requirements
failure-record-no-secret-values, failure-static-log-names-variables, gate-static-rejection-log.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from harness.reference.catalog.entry import Entry
from harness.reference.credentials.row import Credential
from harness.reference.oauth.capability import is_credential_header
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.loader import StoreUnavailableError
from harness.reference.secrets.placeholders import Lookup, variables

REDACTED = "[REDACTED]"
SHORTEST_SECRET_CHARACTERS = 4
"""Less than that is in every other word."""

TABLES = ("env", "headers")
TOKEN_MEMBER = re.compile(
    r"""((?:access_token|refresh_token|id_token|client_secret|registration_access_token)\\*["']?\s*[:=]\s*\\*["']?)"""
    r"""[^\s"'\\&,}]+"""
)
"""A member of a token answer, in JSON (escaped or not, and cut off anywhere) or in a form. Runtimes log such an answer
as it came where they cannot read it, and then nobody has stored what stands in it.
"""


def credential_variables(entry: Entry | None) -> tuple[str, ...]:
    """The names of the variables that a server's credentials come from: those in its env and headers."""
    return () if entry is None else names_in({table: entry.raw.get(table) for table in TABLES})


def names_in(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The variables of an entry, each once."""
    found = variables(entry)
    return tuple(dict.fromkeys((*found.required, *found.optional)))


def secret_values(entry: Entry | None, prepared: object, lookup: Lookup, row: Credential | None) -> tuple[str, ...]:
    """All that a server was given in confidence: what its variables stand for, credential headers, stored tokens.

    `prepared` is the entry as the runtime reads it.
    """
    found = [] if entry is None else [value_of(name, lookup) for name in names_in(entry.raw)]
    headers = prepared.get("headers") if isinstance(prepared, Mapping) else None
    for name, value in (headers if isinstance(headers, Mapping) else {}).items():
        if is_credential_header(str(name), value):
            found += [str(value), str(value).rpartition(" ")[2]]
    if row is not None:
        found += [row.access_token, row.refresh_token, row.client_secret]
    return tuple(value for value in found if value is not None and is_secret(value))


def value_of(name: str, lookup: Lookup) -> str | None:
    """A variable's value; None where its store does not answer now."""
    try:
        return lookup(name)
    except StoreUnavailableError:
        return None


def is_secret(value: str) -> bool:
    """Whether a value is one that can be told from ordinary text."""
    return not is_blank(value) and len(value) >= SHORTEST_SECRET_CHARACTERS


def redacted(text: str | None, secrets: Iterable[str]) -> str | None:
    """The text with each of these values replaced, the longest first, and with them what names itself a token."""
    if text is None:
        return None
    for secret in sorted(set(secrets), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return without_tokens(text)


def without_tokens(text: str) -> str:
    """The text without the values of tokens that nobody knew before (failure-record-no-secret-values)."""
    return TOKEN_MEMBER.sub(rf"\g<1>{REDACTED}", text)
