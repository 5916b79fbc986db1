"""Where a secret's value comes from: the chain of providers, asked in a fixed order.

X token vendor, then the Parameter Store when one is configured, then the Rails credentials, then the process
environment; the first that has the name wins (secrets-loader-order, secrets-store-position).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, Protocol

from harness.reference.secrets.blank import is_blank

VENDOR_PREFIX = "X_OAUTH_ACCESS_TOKEN"

ResolutionState = Literal["found", "absent", "unreachable"]


class StoreUnavailableError(Exception):
    """The configured store did not answer and nothing of it is in memory: it is unknown whether the name is set."""


class VendorError(Exception):
    """The vendor could not mint a token. Counts as absent (secrets-vendor-scope)."""


class Vendor(Protocol):
    """Mints X access tokens at the moment of the lookup."""

    def has_row(self, name: str) -> bool:
        """Whether a stored row exists for the name. Mints nothing."""

    def mint(self, name: str) -> str | None:
        """The then-current token. Raises VendorError."""


class Store(Protocol):
    """A configured Parameter Store."""

    def read(self, name: str) -> str | None:
        """The value under a name, or None. Raises StoreUnavailableError."""


class Resolution(NamedTuple):
    """Does a name resolve, and at which provider. Never holds the value (secrets-resolution-never-value)."""

    state: ResolutionState
    badge: str


ABSENT = Resolution("absent", "Unresolved")
UNREACHABLE = Resolution("unreachable", "Unknown")


class SecretsLoader:
    """One chain. `store` is None where no Parameter Store is configured, `vendor` where there are no X tokens."""

    def __init__(
        self,
        *,
        vendor: Vendor | None = None,
        store: Store | None = None,
        credentials: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        self._vendor = vendor
        self._store = store
        self._credentials = {} if credentials is None else credentials
        self._environment = {} if environment is None else environment
        self._warn = warn

    def __repr__(self) -> str:
        return f"SecretsLoader(vendor={self._vendor is not None}, store={self._store is not None})"

    def value(self, name: str) -> str | None:
        """The value, or None where no provider has one. Raises StoreUnavailableError rather than fall through."""
        minted = self._minted(name)
        if not is_blank(minted):
            return minted
        held = self._held(name)
        return held[1] if held else None

    def resolution(self, name: str) -> Resolution:
        """Where the name would come from, without minting a token and without handing out the value."""
        if self._vendor is not None and asks_vendor(name) and self._vendor.has_row(name):
            return Resolution("found", "X OAuth")
        try:
            held = self._held(name)
        except StoreUnavailableError:
            return UNREACHABLE
        if held is None or is_blank(held[1]):
            return ABSENT
        return Resolution("found", held[0])

    def one_snapshot(self) -> SecretsLoader:
        """The same chain over one view of the store: an answer, or its absence, is asked for once.

        For one list of servers, so that a blip halfway cannot judge one name in two ways
        (readiness-one-store-snapshot).
        """
        store = None if self._store is None else OneView(self._store)
        return SecretsLoader(
            vendor=self._vendor,
            store=store,
            credentials=self._credentials,
            environment=self._environment,
            warn=self._warn,
        )

    def _minted(self, name: str) -> str | None:
        if self._vendor is None or not asks_vendor(name) or not self._vendor.has_row(name):
            return None
        try:
            return self._vendor.mint(name)
        except VendorError as error:
            if self._warn is not None:
                self._warn(f"X token vendor failed for {name}: {type(error).__name__}")
            return None

    def _held(self, name: str) -> tuple[str, str] | None:
        """Badge and value at the first provider behind the vendor that has the name."""
        for badge, read in self._providers():
            value = read(name)
            if value is not None:
                return badge, value
        return None

    def _providers(self) -> tuple[tuple[str, Callable[[str], str | None]], ...]:
        behind = (("Rails Credentials", self._credentials.get), ("ENV", self._environment.get))
        return behind if self._store is None else (("GSM", self._store.read), *behind)


def asks_vendor(name: str) -> bool:
    """The vendor is for X tokens alone; no other name reaches it (secrets-vendor-scope)."""
    return name.startswith(VENDOR_PREFIX)


class OneView:
    """A store that is asked at most once a name, and not again after it failed to answer."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, str | None] = {}
        self._down = False

    def read(self, name: str) -> str | None:
        if name in self._known:
            return self._known[name]
        if self._down:
            raise StoreUnavailableError("the secret store did not answer")
        try:
            self._known[name] = self._store.read(name)
        except StoreUnavailableError:
            self._down = True
            raise
        return self._known[name]
