"""Old and plausible bugs of `unavailable`."""

from __future__ import annotations

import re
from dataclasses import replace

from harness.reference.catalog.entry import read_entry as read_entry_rule
from harness.reference.catalog.unavailable import declared_reason as declared_reason_rule
from harness.reference.catalog.unavailable import one_line as one_line_rule
from harness.reference.catalog.unavailable import shortened as shortened_rule
from harness.reference.readiness.probe import Status
from harness.reference.readiness.probe import assess as assess_rule
from harness.reference.readiness.states import State
from harness.requirements.variants import variant

REASON = "harness.reference.catalog.unavailable:declared_reason"
ONE_LINE = "harness.reference.catalog.unavailable:one_line"
SHORTENED = "harness.reference.catalog.unavailable:shortened"
READ_ENTRY = "harness.reference.catalog.entry:read_entry"
ASSESS = "harness.reference.readiness.probe:assess"


@variant(REASON, catches=("unavailable-string-is-reason",))
def only_a_flag_is_kept(value):
    """Keeps a flag and shows a text of its own instead of the reason."""
    return None if declared_reason_rule(value) is None else "This server is unavailable."


@variant(REASON, catches=("unavailable-trim-before-test",))
def emptiness_is_tested_on_the_raw_text(value):
    """A blank text blocks the server without a reason."""
    if not isinstance(value, str) or not value:
        return None
    return shortened_rule(one_line_rule(value))


@variant(REASON, catches=("unavailable-nonstring-ignored",))
def true_declares(value):
    """A boolean form, and any other value that counts as true."""
    if isinstance(value, str):
        return declared_reason_rule(value)
    return "Unavailable" if value else None


@variant(ASSESS, catches=("unavailable-silent-is-not-working",))
def silence_means_working(entry, resolution, credential, instance):
    """An entry that declares nothing is ready, whatever its variables say."""
    if entry.unavailable is None:
        return Status(entry.name, entry.title, State.READY)
    return assess_rule(entry, resolution, credential, instance)


@variant(ASSESS, catches=("unavailable-beats-local-checks",))
def a_declaration_counts_only_where_a_check_fails(entry, resolution, credential, instance):
    """Working secrets and a valid credential outvote the catalog."""
    silent = assess_rule(replace(entry, unavailable=None), resolution, credential, instance)
    return silent if silent.available else assess_rule(entry, resolution, credential, instance)


@variant(ASSESS, catches=("unavailable-wins-over-other-states",))
def other_obstacles_are_told_first(entry, resolution, credential, instance):
    """Sends a human to set a secret that cannot help."""
    silent = assess_rule(replace(entry, unavailable=None), resolution, credential, instance)
    passes = silent.state in (State.READY, State.NO_CREDENTIAL_REQUIRED)
    return assess_rule(entry, resolution, credential, instance) if passes else silent


@variant(ONE_LINE, catches=("unavailable-collapse-whitespace",))
def only_the_ends_are_stripped(text):
    """A line break inside a reason forges a list item."""
    return text.strip()


@variant(ONE_LINE, catches=("unavailable-collapse-unicode-breaks",))
def only_ascii_whitespace_collapses(text):
    """A line separator survives and breaks the item for some readers."""
    return re.sub(r"[ \t\n\v\f\r]+", " ", text).strip(" ")


@variant(REASON, catches=("unavailable-truncate-200",))
def cut_before_collapsing(value):
    """A text of many blanks is cut although it would fit."""
    if not isinstance(value, str) or not value.strip():
        return None
    return one_line_rule(shortened_rule(value))


@variant(SHORTENED, catches=("unavailable-truncate-200",))
def the_limit_counts_bytes(reason):
    """Cuts at 200 bytes, inside a character where it falls so."""
    return reason.encode()[:200].decode(errors="ignore")


@variant(SHORTENED, catches=("unavailable-normalise-idempotent",))
def dots_follow_dots(reason):
    """Every pass over a cut reason adds dots."""
    return reason + "..." if reason.endswith("...") else shortened_rule(reason)


@variant(READ_ENTRY, catches=("unavailable-not-inferred",))
def breakage_is_inferred(name, raw):
    """Marks a remote entry that has neither header nor OAuth client."""
    entry = read_entry_rule(name, raw)
    if entry.remote and not entry.headers and not entry.oauth.raw:
        return replace(entry, unavailable=entry.unavailable or "No way to authorize is known.")
    return entry


REMEMBERED: dict[str, str] = {}


@variant(READ_ENTRY, catches=("unavailable-removal-takes-effect",))
def a_declaration_is_remembered_by_name(name, raw):
    """What was declared once stays on the server's name."""
    entry = read_entry_rule(name, raw)
    if entry.unavailable is not None:
        REMEMBERED[name] = entry.unavailable
    return replace(entry, unavailable=REMEMBERED.get(name))


@variant(READ_ENTRY, catches=("unavailable-description-never-read",))
def descriptions_are_scanned(name, raw):
    """Words of warning in the description block the server."""
    entry = read_entry_rule(name, raw)
    if re.search(r"not usable|broken|unavailable|⚠", entry.description or "", re.IGNORECASE):
        return replace(entry, unavailable=entry.unavailable or entry.description)
    return entry


@variant(READ_ENTRY, catches=("unavailable-any-transport",))
def only_remote_entries_are_honoured(name, raw):
    """A retired npx server is offered as if it worked."""
    entry = read_entry_rule(name, raw)
    return entry if entry.remote else replace(entry, unavailable=None)
