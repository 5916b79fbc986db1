"""The providers behind the X vendor: the rows of the Rails credentials, and the Parameter Store's settings and view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.loader import StoreUnavailableError

STORE_SETTINGS = ("ZIMMER_PARAMS_PROJECT_ID", "ZIMMER_PARAMS_RESOLVER_SERVICE_ACCOUNT_KEY_JSON")

SNAPSHOT_SECONDS = 60
"""How long a read of the namespace is reused for the names in it."""

MISS_REREAD_SECONDS = 10
"""How soon a name that is not in the namespace may cause another read."""


class StoreSettings(NamedTuple):
    """Whether a Parameter Store is configured, and which settings are missing when it is not."""

    configured: bool
    missing: tuple[str, ...]


def store_settings(environment: Mapping[str, str]) -> StoreSettings:
    """The store is configured when both settings are there and not blank (secrets-store-position)."""
    missing = tuple(name for name in STORE_SETTINGS if is_blank(environment.get(name)))
    return StoreSettings(not missing, missing)


def credential_values(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, str]:
    """The values of `mcp_secrets` rows {name, value, description}; None stands for credentials that cannot be read.

    A row without name or value is ignored; of two rows of one name the last counts (secrets-credentials-rows).
    """
    return {row["name"]: row["value"] for row in rows or () if is_complete(row)}


def is_complete(row: Mapping[str, Any]) -> bool:
    """Whether a credentials row has a name and a value."""
    return all(isinstance(row.get(member), str) and not is_blank(row[member]) for member in ("name", "value"))


class ParameterStore:
    """The store's namespace, read as a whole and reused for a while.

    `fetch` reads it (and raises StoreUnavailableError), `now` gives seconds. While the store does not answer, the last
    namespace that was read goes on serving (secrets-store-warm-outage, secrets-store-ttl).
    """

    def __init__(self, fetch: Callable[[], Mapping[str, str]], now: Callable[[], float]) -> None:
        self._fetch = fetch
        self._now = now
        self._values: Mapping[str, str] | None = None
        self._read_at = 0.0

    def read(self, name: str) -> str | None:
        """The value under a name, or None. Raises StoreUnavailableError when nothing was ever read."""
        age = self._now() - self._read_at
        if self._values is None or is_stale(age, known=name in self._values):
            self._values = self._latest()
            self._read_at = self._now()
        return self._values.get(name)

    def _latest(self) -> Mapping[str, str]:
        try:
            return dict(self._fetch())
        except StoreUnavailableError:
            if self._values is None:
                raise
            return self._values


def is_stale(age_seconds: float, *, known: bool) -> bool:
    """Whether the namespace has to be read again for a name."""
    return age_seconds >= (SNAPSHOT_SECONDS if known else MISS_REREAD_SECONDS)
