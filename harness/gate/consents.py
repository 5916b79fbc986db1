"""Whose stored credential a change makes useless, and who has to authorize again.

Source: the credential key is made of the name, type, url and headers (seed 000, "Credentials").
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from harness.gate.context import Context, EntryView
from harness.gate.judge import is_waiting, outcomes
from harness.gate.wording import joined
from harness.reference.credentials.key import credential_key


class Consent(NamedTuple):
    """What a change asks of whom: everyone has to authorize `new`, nobody will claim `orphan` any more."""

    new: str | None
    orphan: str | None


class Sides(NamedTuple):
    """The runtimes, by the names that reports give them, on which users authorize the entry before and after."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def consent_change(before: EntryView | None, after: EntryView | None, head: Context) -> Consent:
    """Whose stored credential counts no more, and which one everyone has to get.

    Nothing is asked of anybody for a server that no runtime can start by it: one that is declared, or not written.
    """
    old, new = _stored_key(before), _stored_key(after)
    if old == new:
        return Consent(None, None)
    is_asked = after is not None and is_waiting(outcomes(after, head))
    return Consent(new if is_asked else None, old)


def _stored_key(view: EntryView | None) -> str | None:
    """The key of the credential that an entry claims; None where no consent applies to it."""
    if view is None or view.entry is None or not view.oauth_capable:
        return None
    return credential_key(view.name, view.entry.credential_config())


def key_changes(before: EntryView, after: EntryView, sides: Sides) -> Iterator[str]:
    """What happens to the credential that users have stored for an entry, and on which runtimes."""
    old, new = _stored_key(before), _stored_key(after)
    if old == new:
        return
    if new is None:
        remote = after.entry is not None and after.entry.remote
        why = "its headers hold a credential now" if remote else "it is no remote server any more"
        yield f"{why}, so that nobody authorizes it; the stored credential {old} is used no more"
    elif old is None and sides.after:
        everyone = f"everyone must AUTHORIZE (on {joined(sides.after)})"
        yield f"works only after a user's authorization now, stored under {new}: {everyone}"
    elif old is not None and sides.after:
        yield f"stored credential {old} -> {new}: {_who_again(before, after, sides)}"
    elif old is not None:
        yield f"stored credential {old} -> {new}"


def _who_again(before: EntryView, after: EntryView, sides: Sides) -> str:
    """Pi stores a credential by the entry's name and binds it to the URL; the others store it by the key."""
    kept = [
        name
        for name in sides.after
        if name.startswith("pi") and name in sides.before and before.fields.get("url") == after.fields.get("url")
    ]
    again = [name for name in sides.after if name not in kept]
    tail = f"; on {joined(kept)} the authorization stays" if kept else ""
    return f"everyone must AUTHORIZE AGAIN (on {joined(again)}{tail})" if again else tail.removeprefix("; ")
