"""A remote server as OAuth sees it: contacted at the URL a runtime will read, stored under the key of its raw entry.

Source: requirement flow-uses-resolved-url; ARCHITECTURE "Where sources disagree", the credential key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.reference.catalog.entry import Entry
from harness.reference.credentials.key import Runtime, credential_key, runtime_key
from harness.reference.secrets.interpolator import resolve_entry
from harness.reference.secrets.placeholders import Lookup

RUNTIMES: tuple[Runtime, ...] = ("claude", "codex", "pi")


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """`url` and `headers` as a runtime reads them; `credential_key` over the entry as the catalog has it.

    `runtime_keys` are the keys under which each runtime looks its credential up.
    """

    name: str
    url: str = field(repr=False)
    credential_key: str
    entry: Entry
    headers: Mapping[str, str] = field(repr=False)
    runtime_keys: Mapping[Runtime, str]


def remote_server(entry: Entry, lookup: Lookup) -> RemoteServer:
    """An entry of a remote type with its placeholders resolved. Raises MissingVariableError."""
    resolved = resolve_entry(entry.raw, lookup)
    headers = {name: value for name, value in (resolved.get("headers") or {}).items() if isinstance(value, str)}
    return RemoteServer(
        name=entry.name,
        url=str(resolved.get("url") or ""),
        credential_key=credential_key(entry.name, entry.credential_config()),
        entry=entry,
        headers=headers,
        runtime_keys={runtime: runtime_key(runtime, entry.name, resolved, {}) for runtime in RUNTIMES},
    )
