"""Rules on the key of a stored credential. Source: seed 002, credential-key-runtime-mode."""

from __future__ import annotations

from collections.abc import Iterator

from harness.gate.context import Context, EntryView
from harness.gate.model import Severity
from harness.gate.rule import Hit, entry_rule
from harness.gate.wording import joined
from harness.reference.credentials.known_wrong import Way, known_wrong_keys

WAYS: dict[Way, str] = {
    "munged": "blanks behind `:` and `,` taken out of values (replacing text in the serialised config)",
    "html_escaped": "`&`, `<` and `>` written as \\u0026, \\u003c and \\u003e",
    "sorted_headers": "headers sorted by name",
    "unexpanded_placeholders": "placeholders hashed as written, where Claude hashes their values",
}


@entry_rule(
    "MH910",
    Severity.NOTE,
    "a credential key that is easily computed wrong",
    why=(
        "This concerns only an orchestrator that computes these keys itself and takes one of the ways named; where"
        " it hashes the exact compact JSON, nothing has to be done. The key of a stored credential is a hash"
        " over the entry's type, url and headers, byte for byte as Claude writes them. An orchestrator that"
        " changes one byte files the credential under a key nobody looks up: no"
        " error is raised, the server connects without a token, and the agent is told to authorize what a human has"
        " authorized before."
    ),
    fix="Nothing if your orchestrator hashes the exact compact JSON; else mend it there, or simplify url and headers.",
    requirements=("credential-key-runtime-mode",),
)
def fragile_key(_context: Context, view: EntryView) -> Iterator[Hit]:
    ways = wrong_ways(view)
    if ways:
        yield Hit(
            view.pointer,
            f"only if your orchestrator computes credential keys with {joined(WAYS[way] for way in ways)}: the stored"
            " credential is silently missed there, and users must authorize again.",
            subject=" ".join(ways),
        )


def wrong_ways(view: EntryView) -> tuple[Way, ...]:
    """The ways in which this entry's key comes out wrong; none where no credential is ever stored for it."""
    if view.entry is None or not view.oauth_capable:
        return ()
    return tuple(known_wrong_keys(view.name, view.entry.credential_config()))
