"""What a session remembers of trouble that a fresh turn leaves behind: all of it, or none.

Source: requirements resume-deliver-order, resume-marker-survives-recovery-keys. The marker of an owed message, what
could not be delivered and the servers that are left out are not among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STALE_RETRY_KEYS = frozenset(
    {
        "sigterm_retry_count",
        "sigterm_retry_timestamps",
        "last_sigterm_at",
        "failure_reason",
        "exit_status",
        "mcp_failed_servers",
        "paused_by",
        "compact_retry_count",
        "pending_compact_continuation",
        "context_length_last_checked_line",
        "last_compact_at",
        "prompt_too_long_hang_detected",
        "prompt_too_long_hang_detected_at_line",
        "api_error_retry_count",
        "last_api_error_retry_at",
        "signal_death_retry_count",
        "last_signal_death_at",
        "quota_limit_count",
        "last_quota_limit_at",
        "last_quota_limit_message",
        "auth_recovery_count",
        "last_auth_recovery_at",
        "auth_recovery_adoptions",
        "last_auth_adoption_at",
        "auth_outage_reason",
        "auth_outage_parked_at",
        "auth_outage_pool_recovers_at",
        "auth_outage_pool_fingerprint",
        "mcp_retry_count",
        "mcp_last_retry_at",
        "broadcast_message_count",
        "transcript_waiting_logged",
        "transcript_files_waiting_logged",
        "transcript_reading_started_logged",
        "interrupted_start_requeue_count",
        "recovery_continue_attempts",
    }
)


def without_stale_keys(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The notes without the stale keys."""
    return {key: kept for key, kept in metadata.items() if not is_stale(key)}


def is_stale(key: str) -> bool:
    """Whether a key belongs to the set. The record of servers that are left out does not: one thing retires that."""
    return key in STALE_RETRY_KEYS
