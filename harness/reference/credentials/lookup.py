"""What a runtime's silent miss really was: no credential at all, or one under another key.

A wrong key raises nowhere; the runtime connects without a token and says only that authorization is needed
(credential-key-miss-is-silent). So the reports tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from harness.reference.credentials.key import split_key

Verdict = Literal["found", "key_mismatch", "no_credential"]


class Lookup(NamedTuple):
    """The verdict, the key that was looked up, and the keys that the store holds for this server's name."""

    verdict: Verdict
    looked_up: str
    stored: tuple[str, ...]


def explain_lookup(looked_up: str, stored_keys: Iterable[str]) -> Lookup:
    """Compare the key that a runtime looks up with those in its store."""
    keys = tuple(stored_keys)
    name, _ = split_key(looked_up)
    same_name = tuple(key for key in keys if split_key(key)[0] == name)
    return Lookup(verdict(looked_up, keys, same_name), looked_up, same_name)


def verdict(looked_up: str, keys: tuple[str, ...], same_name: tuple[str, ...]) -> Verdict:
    """A credential of that name under another key is a mismatch, not a missing credential."""
    if looked_up in keys:
        return "found"
    return "key_mismatch" if same_name else "no_credential"
