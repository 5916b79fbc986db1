"""The tokens of one authorization server: families that begin with a grant, and their generations."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

DIGITS = 24


class Generation(NamedTuple):
    """What one grant or one refresh gave. `expires_at` (seconds since the epoch) None: the access token lasts.

    `refresh` is None where none was given; `spent_at` is when it was first used.
    """

    family: int
    number: int
    client_id: str
    scope: str
    resource: str
    access: str
    refresh: str | None
    issued_at: float
    expires_at: float | None
    spent_at: float | None = None
    access_revoked: bool = False
    refresh_revoked: bool = False


class Ledger:
    """All generations in the order in which they came."""

    def __init__(self, issuer: str) -> None:
        self.generations: list[Generation] = []
        self._issuer = issuer
        self._places: dict[str, int] = {}

    def find(self, token: str | None) -> Generation | None:
        """The generation of an access or refresh token."""
        place = self._places.get(token or "")
        return None if place is None else self.generations[place]

    def found(self, client_id: str, scope: str, resource: str, now: float, expires_at: float | None, *,
              refresh: bool) -> Generation:  # fmt: skip
        """Begin a family."""
        family = 1 + max((each.family for each in self.generations), default=0)
        return self._add(Generation(family, 1, client_id, scope, resource, "", None, now, expires_at), refresh)

    def succeed(self, parent: Generation, scope: str, now: float, expires_at: float | None, *,
                rotates: bool) -> Generation:  # fmt: skip
        """The generation that a refresh gives; it spends the token that was presented where it `rotates`."""
        number = 1 + max(each.number for each in self.generations if each.family == parent.family)
        if rotates:
            spent_at = now if parent.spent_at is None else parent.spent_at
            self._put(parent, parent._replace(spent_at=spent_at))
        after = Generation(parent.family, number, parent.client_id, scope, parent.resource, "", None, now, expires_at)
        return self._add(after, rotates)

    def revoke_access(self, generation: Generation) -> None:
        """End one access token."""
        self._put(generation, generation._replace(access_revoked=True))

    def revoke_family(self, family: int, *, access_alone: bool = False) -> None:
        """End all that came of one grant; with `access_alone` its refresh tokens stay."""
        for each in self.generations:
            if each.family == family:
                refresh_revoked = each.refresh_revoked or not access_alone
                self._put(each, each._replace(access_revoked=True, refresh_revoked=refresh_revoked))

    def access_is_valid(self, token: str, now: float) -> bool:
        """Whether a resource lets its bearer in."""
        generation = self.find(token)
        if generation is None or generation.access != token or generation.access_revoked:
            return False
        return generation.expires_at is None or now < generation.expires_at

    def _add(self, generation: Generation, refresh: bool) -> Generation:
        place = len(self.generations)
        access, other = (self._name(kind, generation) for kind in ("access", "refresh"))
        named = generation._replace(access=access, refresh=other if refresh else None)
        self.generations.append(named)
        self._places[access] = place
        if named.refresh is not None:
            self._places[named.refresh] = place
        return named

    def _put(self, generation: Generation, changed: Generation) -> None:
        self.generations[self._places[generation.access]] = changed

    def _name(self, kind: str, generation: Generation) -> str:
        """A token that tells a reader what it is, and is like no other of any server."""
        source = f"{self._issuer} {kind} {generation.family} {generation.number}"
        digits = hashlib.sha256(source.encode()).hexdigest()[:DIGITS]
        return f"{kind}-{generation.family}-{generation.number}-{digits}"
