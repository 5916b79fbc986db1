"""Entries of a store that are nobody's business: of servers that the catalog does not have, of the account, of unknown
keys. The orchestrator leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from harness.reference.credentials.key import pi_account
from harness.scenario.stores import CLAUDE_ENTRIES, KEYRING, STAGED_FILE, parsed

ACCOUNT = "claudeAiOauth"
NAMES, URLS = ("serverName", "server_name"), ("serverUrl", "server_url")


class Server(Protocol):
    """A server as an entry tells it."""

    @property
    def name(self) -> str: ...

    @property
    def url(self) -> str: ...


class Known(NamedTuple):
    """The servers of the catalog: their names with their addresses, and the accounts that Pi has for them."""

    servers: frozenset[tuple[str, str]]
    names: frozenset[str]
    accounts: tuple[str, ...]

    @classmethod
    def of(cls, servers: Iterable[Server]) -> Known:
        """All that can be reached by a URL."""
        remote = [server for server in servers if server.url]
        names = frozenset(server.name for server in remote)
        pairs = frozenset((server.name, server.url) for server in remote)
        return cls(pairs, names, tuple(pi_account(name) for name in sorted(names)))


def touched(path: str, before: str | None, after: str | None, known: Known, *, may_change_account: bool = False) -> str:
    """What of a file was changed though it is none of the catalog's; empty where nothing was."""
    if path.startswith(KEYRING) or path.endswith(STAGED_FILE):
        return "" if any(account in path for account in known.accounts) else "the account of another server"
    was, now = parsed(before or ""), parsed(after or "")
    if not isinstance(was, Mapping):
        return ""
    new: Mapping[str, Any] = now if isinstance(now, Mapping) else {}
    for key, value in was.items():
        if key == ACCOUNT and may_change_account:
            continue
        if key == CLAUDE_ENTRIES and isinstance(value, Mapping):
            inner = new.get(key)
            found = other_entry(value, inner if isinstance(inner, Mapping) else {}, known)
        else:
            found = other_entry({key: value}, new, known)
        if found:
            return found
    return ""


def other_entry(was: Mapping[str, Any], now: Mapping[str, Any], known: Known) -> str:
    """The first entry that was changed, or is gone, and was not the catalog's."""
    for key, entry in was.items():
        if not is_ours(key, entry, known) and now.get(key) != entry:
            return f"the entry {key}"
    return ""


def is_ours(key: str, entry: Any, known: Known) -> bool:
    """Whether an entry is one of the catalog's servers'. What Claude remembers of refusals is by bare names."""
    if not isinstance(entry, Mapping):
        return False
    name, url = (next((entry[each] for each in names if each in entry), None) for names in (NAMES, URLS))
    return key in known.names if name is None else (name, url) in known.servers
