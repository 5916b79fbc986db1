"""Known-bad variants of what the text of a failed connection says of credentials."""

from __future__ import annotations

import re

from harness.reference.session.refusals import is_auth_shaped as is_auth_shaped_rule
from harness.reference.session.refusals import is_grant_rejected as is_grant_rejected_rule
from harness.requirements.variants import variant

REFUSALS = "harness.reference.session.refusals"


@variant(f"{REFUSALS}:is_auth_shaped", catches=("gate-auth-error-pattern", "failure-auth-pattern-words"))
def only_the_digits_count(text):
    """Matches 401 alone."""
    return "401" in text


@variant(
    f"{REFUSALS}:is_auth_shaped",
    catches=("gate-auth-error-pattern", "gate-auth-text-corpus", "failure-auth-runtime-texts"),
)
def more_words_count(text):
    """Adds 403 and every mention of authentication."""
    return is_auth_shaped_rule(text) or re.search(r"forbidden|403|authentication|not logged in", text, re.I) is not None


@variant(f"{REFUSALS}:is_auth_shaped", catches=("gate-skip-line-is-known-cause", "gate-auth-text-corpus"))
def a_skipped_connection_is_a_refusal(text):
    """Takes the runtime's memory for the provider's word."""
    return is_auth_shaped_rule(text) or "cached needs-auth" in text


@variant(
    f"{REFUSALS}:is_grant_rejected", catches=("gate-rejected-pattern-refresh-failed", "failure-grant-rejected-pattern")
)
def the_pattern_crosses_lines(parts):
    """A refresh failure and somebody's grant error in two lines."""
    return any(re.search(r"token refresh failed.*invalid_grant|invalid refresh token\b", p, re.I | re.S) for p in parts)


@variant(f"{REFUSALS}:is_grant_rejected", catches=("gate-rejected-pattern-invalid-token-text",))
def the_phrase_needs_the_prefix(parts):
    """Misses the provider's own words."""
    return is_grant_rejected_rule(part for part in parts if "refresh failed" in part.lower())


@variant(
    f"{REFUSALS}:is_grant_rejected",
    catches=(
        "gate-rejected-pattern-not-bare-grant",
        "failure-grant-rejected-pattern",
        "gate-rejected-pattern-per-segment",
    ),
)
def a_bare_grant_error_counts(parts):
    """Retires a healthy credential of a server that brokers others."""
    return any("invalid_grant" in part for part in parts)


@variant(f"{REFUSALS}:is_grant_rejected", catches=("gate-rejected-grant-known-misses", "gate-auth-text-corpus"))
def any_word_of_refreshing_counts(parts):
    """Retires on whatever contains it."""
    return any(re.search(r"refresh|grant not found|reauthentication|invalidated", part, re.I) for part in parts)


@variant(f"{REFUSALS}:segments", catches=("gate-rejected-pattern-per-segment",))
def the_whole_text_is_one_line(error):
    """Two segments make one rejection."""
    return (error,) if error else ()


@variant(
    f"{REFUSALS}:without_own_words", catches=("failure-auth-durations-not-evidence", "failure-auth-name-not-evidence")
)
def the_raw_text_is_searched(text, server_name, url):
    """A handshake of 1401 ms, or a server called oauth, is a refusal."""
    return text


@variant(f"{REFUSALS}:is_of_transport", catches=("failure-auth-reads-transport-segments",))
def what_a_child_prints_counts(part):
    """A banner costs a server all its retries."""
    return True
