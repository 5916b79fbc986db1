"""Vectors of the area `refresh`: what a row is worth, when it is renewed, what is sent, and what an answer means."""

from __future__ import annotations

from typing import Any

from harness.reference.credentials.refresh import CannotRefreshError, due, refresh_form
from harness.reference.credentials.refresh_answer import refreshed_row
from harness.reference.credentials.refresh_error import class_of, is_repeated_in_band
from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import credential_state, expires_in
from harness.vectors.registry import operation

NOW = 1_800_000_000.0
ENDPOINT = "https://as.example.com/token"


def _row(given: dict[str, Any]) -> Credential:
    """A row that holds what a vector gives; times in it are seconds from now."""
    seconds = given.get("expires_in_s")
    return Credential(
        credential_key="server|0123456789abcdef",
        server_name="server",
        server_url="https://mcp.example.com/mcp",
        client_id=given.get("client_id", "client"),
        access_token=given.get("access_token", "access"),
        refresh_token=given.get("refresh_token"),
        client_secret=given.get("client_secret"),
        token_endpoint=given.get("token_endpoint", ENDPOINT),
        resource=given.get("resource"),
        expires_at=None if seconds is None else NOW + seconds,
        refresh_token_unsupported=given.get("refresh_token_unsupported", False),
        updated_at=NOW - given.get("updated_age_s", 0),
    )


@operation(
    "refresh.credential_state",
    requirements=("https-can-refresh-false-for-cleartext", "readiness-oauth-ready", "readiness-needs-reauth"),
)
def _credential_state(given: dict[str, Any]) -> Any:
    return credential_state(
        given["expires_in_s"],
        given["refresh_token"],
        given["token_endpoint"],
        given["refresh_token_unsupported"],
    )._asdict()


@operation(
    "refresh.due",
    requirements=(
        "refresh-window-one-hour",
        "refresh-window-boundary-exclusive",
        "refresh-no-expiry-never-selected",
        "refresh-expired-over-24h-skipped",
        "refresh-throttle-four-hours",
        "refresh-needs-refresh-token",
        "refresh-needs-token-endpoint",
    ),
)
def _due(given: dict[str, Any]) -> Any:
    return due(_row(given), given["run"], NOW)


@operation(
    "refresh.classify_error",
    requirements=(
        "refresh-retryable-class",
        "refresh-ambiguous-class",
        "refresh-retryable-tested-before-ambiguous",
        "refresh-tls-handshake-is-ambiguous",
        "refresh-unexpected-error-class",
    ),
)
def _classify_error(given: dict[str, Any]) -> Any:
    error = class_of(given["error"])
    return {"class": error, "in_band_retry": is_repeated_in_band(error)}


@operation(
    "refresh.request_form",
    requirements=(
        "refresh-request-fields",
        "refresh-request-blank-fields-omitted",
        "refresh-missing-input-raises",
        "flow-refresh-form-secret",
    ),
)
def _request_form(given: dict[str, Any]) -> Any:
    try:
        return {"form": refresh_form(_row(given)), "error": None}
    except CannotRefreshError as error:
        return {"form": None, "error": str(error)}


@operation(
    "refresh.response",
    requirements=(
        "refresh-success-updates-row",
        "refresh-success-keeps-omitted-refresh-token",
        "refresh-success-without-expires-in",
        "refresh-success-expires-in-string",
        "refresh-success-nested-user-token",
        "refresh-success-clears-one-shot-flag",
        "refresh-permanent-is-any-4xx",
        "refresh-status-classifies-not-body",
        "refresh-transient-429",
        "refresh-transient-5xx",
        "refresh-transient-excluded-before-permanent",
        "refresh-permanent-nulls-refresh-token",
        "refresh-permanent-keeps-valid-access-token",
        "refresh-permanent-on-no-expiry-row",
        "refresh-permanent-is-not-one-shot",
        "refresh-odd-statuses",
        "refresh-error-in-200-body",
    ),
)
def _response(given: dict[str, Any]) -> Any:
    result, row, log_level = refreshed_row(_row(given["stored"]), given["status"], given["body"], NOW)
    seconds = expires_in(row, NOW)
    return {
        "result": "failed" if result == "unexpected" else result,
        "log_level": log_level,
        "row": {
            "access_token": row.access_token,
            "refresh_token": row.refresh_token,
            "expires_in_s": int(seconds) if seconds is not None and seconds == int(seconds) else seconds,
            "refresh_token_unsupported": row.refresh_token_unsupported,
        },
    }
