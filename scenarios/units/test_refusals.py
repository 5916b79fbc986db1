"""The text of a failed connection: which words speak of authorization, and which say that a refresh grant is dead."""

from __future__ import annotations

import pytest

from harness.reference.session.refusals import auth_text

NEITHER, AUTH, REJECTED = (False, False), (True, False), (True, True)


@pytest.mark.requirement("gate-auth-error-pattern", "failure-auth-pattern-words")
@pytest.mark.parametrize(
    ("error", "shaped"),
    [
        ("HTTP Connection failed after 7094ms: Unauthorized (code: none, errno: none)", True),
        ("Connection failed with status 401", True),
        ("Supported scopes: user, forms", True),
        ("OAuth authentication required", True),
        ("invalid_token", True),
        ("INVALID_TOKEN", True),
        ("listening on 14015", True),
        ("Connection timed out after 30000ms", False),
        ("Connection refused", False),
        ("403 Forbidden", False),
        ("Connection failed: authentication failed", False),
        ("MCP error -32000: Connection closed", False),
        ("", False),
        (None, False),
    ],
)
def test_the_broad_words_make_a_failure_auth_shaped(error, shaped):
    assert auth_text(error) == (shaped, False)


@pytest.mark.requirement("gate-rejected-pattern-refresh-failed", "failure-grant-rejected-pattern")
@pytest.mark.parametrize(
    ("error", "rejected"),
    [
        ("Token refresh failed with invalid_grant: Invalid refresh token", True),
        ("token refresh failed: unauthorized_client", True),
        ("Token refresh failed with invalid_client", True),
        ("TOKEN REFRESH FAILED WITH INVALID_GRANT", True),
        ("Token refresh failed with server_error", False),
        ("Token refresh failed\ninvalid_grant", False),
        ("Token refresh failed with invalid_grant_extra", False),
    ],
)
def test_a_refresh_failure_with_a_grant_error_in_its_line_is_a_rejected_grant(error, rejected):
    assert auth_text(error).refresh_token_rejected is rejected
    assert auth_text(error).auth_error is rejected


@pytest.mark.requirement("gate-rejected-pattern-invalid-token-text", "failure-grant-rejected-pattern")
@pytest.mark.parametrize(
    ("error", "rejected"),
    [
        ("Invalid refresh token", True),
        ("INVALID REFRESH TOKEN", True),
        ("the server said: invalid refresh token.", True),
        ("Invalid refresh tokens", False),
        ("invalid_refresh_token", False),
    ],
)
def test_the_phrase_alone_is_a_rejected_grant_as_whole_words(error, rejected):
    assert auth_text(error).refresh_token_rejected is rejected


@pytest.mark.requirement("gate-rejected-pattern-not-bare-grant", "failure-grant-rejected-pattern")
def test_a_grant_error_without_a_refresh_failure_may_be_anybodys():
    assert auth_text("the connected Google account returned invalid_grant; reconnect it in the app") == NEITHER
    assert auth_text("Unauthorized: invalid_grant") == AUTH


@pytest.mark.requirement("gate-rejected-pattern-per-segment")
@pytest.mark.parametrize(
    ("error", "rejected"),
    [
        (
            "Token refresh failed, retrying in 1000ms (attempt 1/3) | Server stderr: downstream answered invalid_grant",
            False,
        ),
        ("Token refresh failed: HTTP 503 | Connection failed: the app said invalid_grant", False),
        ("Token refresh failed with invalid_grant: x | Connection failed", True),
        ("Token refresh failed|invalid_grant", True),
    ],
)
def test_two_segments_do_not_make_one_rejection(error, rejected):
    assert auth_text(error).refresh_token_rejected is rejected


@pytest.mark.requirement("gate-auth-text-corpus", "failure-auth-runtime-texts", "gate-skip-line-is-known-cause")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("Token refresh failed: DCR client expired or invalid; clearing stored client registration", NEITHER),
        ("Token refresh failed, retrying in 1000ms (attempt 1/3)", NEITHER),
        ("Token refresh failed: HTTP 400: Invalid OAuth error response: not JSON", AUTH),
        ("Authentication required for HTTP server", NEITHER),
        ("Skipping connection (cached needs-auth)", NEITHER),
        ("UnauthorizedError: Unauthorized", AUTH),
        ("Server rejected the configured Authorization header (HTTP 401). Check it.", AUTH),
        ("MCP: Failed to connect to X: OAuth authentication required. Run /mcp-auth X.", AUTH),
        ("Re-authentication required for MCP server: X", NEITHER),
        (
            "OAuth token refresh failed: Server returned error response: invalid_grant: Grant not found",
            REJECTED,
        ),
        ("The X MCP server requires OAuth reauthentication. Run `codex mcp login X`.", AUTH),
        ("OAuth tokens for server X cannot be refreshed; authorization required", AUTH),
        ("The X MCP server is not logged in. Run `codex mcp login X`.", NEITHER),
        ("unauthorized_client: refresh_token is invalid", AUTH),
        ("HTTP Connection failed (code: 403, errno: none)", NEITHER),
        ("MCP: X temporarily unavailable (HTTP 503); retry later", NEITHER),
    ],
)
def test_the_texts_of_the_pinned_runtimes_keep_their_class(error, expected):
    assert auth_text(error) == expected


@pytest.mark.requirement("gate-rejected-grant-known-misses")
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("Invalidated credentials (scope: tokens) | HTTP Connection failed after 9ms: Unauthorized", AUTH),
        ("OAuth authentication required. Run /mcp-auth X.", AUTH),
        ("reauthenticationRequired", NEITHER),
        ("Refresh token has been revoked (401)", AUTH),
        ("Grant not found: Unauthorized", AUTH),
    ],
)
def test_a_dead_grant_in_other_words_is_a_known_miss_that_retires_nothing(error, expected):
    assert auth_text(error) == expected


@pytest.mark.requirement("failure-auth-durations-not-evidence")
@pytest.mark.parametrize(
    ("error", "url", "shaped"),
    [
        ("Connection failed after 1401ms (CONNECTION_CLOSED): Connection closed", None, False),
        ("Connection failed after 4012ms, 4012ms of it awake (CONNECTION_CLOSED): Connection closed", None, False),
        ("timed out after 401s (limit: 40100)", None, False),
        ("connect ECONNREFUSED 127.0.0.1:4010", "http://127.0.0.1:4010/mcp", False),
        ("HTTP Connection failed after 1401ms: Unauthorized (code: 401, errno: none)", None, True),
    ],
)
def test_what_the_runtime_measures_is_no_evidence(error, url, shaped):
    assert auth_text(error, url=url).auth_error is shaped


@pytest.mark.requirement("failure-auth-reads-transport-segments")
@pytest.mark.parametrize(
    ("error", "shaped"),
    [
        ("Server stderr: starting without OAuth support | Connection failed after 812ms: Connection closed", False),
        ("Server stderr: listening on 401 sockets | Connection failed after 12ms: Connection closed", False),
        ("Server stderr: ready | HTTP Connection failed after 9ms: Unauthorized", True),
    ],
)
def test_what_a_child_prints_is_no_evidence_for_the_transport(error, shaped):
    assert auth_text(error).auth_error is shaped


@pytest.mark.requirement("failure-auth-name-not-evidence")
@pytest.mark.parametrize(
    ("error", "name", "url", "shaped"),
    [
        ('MCP server "strad-secrets-oauth" connection timed out after 180000ms', "strad-secrets-oauth", None, False),
        ('options: {"url":"https://x.test/oauth/mcp"} | Connection refused', "x", "https://x.test/oauth/mcp", False),
        ('MCP server "strad-secrets-oauth": Unauthorized', "strad-secrets-oauth", None, True),
        ("OAuth authentication required", "oauth", None, True),
        ("the my-oauth server", "oauth", None, True),
    ],
)
def test_the_servers_own_name_and_address_are_no_evidence(error, name, url, shaped):
    assert auth_text(error, name, url).auth_error is shaped
