"""One refresh: what is sent, what an answer or an error makes of the row, and what is told of it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, get_args

import pytest

from harness.reference.credentials import refresh as refreshing
from harness.reference.credentials.refresh import CannotRefreshError, RefreshOutcome, refresh, refresh_form
from harness.reference.credentials.refresh_answer import body_kind, refreshed_row
from harness.reference.credentials.refresh_error import ErrorKind, class_of, error_class, is_repeated_in_band
from harness.reference.credentials.row import Credential, row_values
from harness.reference.credentials.state import state_at
from harness.reference.oauth.transport import MOST_BODY_BYTES, InsecureEndpointError
from harness.reference.oauth.x import acceptable_x_endpoint, x_failure
from harness.world import Ambiguous, NotSent, Response, World
from harness.world.model import Fault
from scenarios.units.oauth_run import Ran
from scenarios.units.refresh_run import (
    ENDPOINT,
    HOUR,
    MINUTE,
    NEW_ACCESS,
    NEW_REFRESH,
    NOW,
    OLD_REFRESH,
    POSTED,
    SECRET,
    SECRETS,
    TokenServer,
    answer,
    connectors_state,
    credential,
    kinds,
    lines,
    run_job,
    stored,
)

KEY = credential().credential_key
DEAD = json.dumps({"error": "invalid_grant"})
USER = {"access_token": "xoxp", "refresh_token": "xoxe", "expires_in": 43200}


def beginning(body: str) -> str:
    """What a test case is called, however long its body is."""
    return body[:24]


def renewed(row: Credential, status: int = 200, body: Any = None) -> Credential:
    return refreshed_row(row, status, body if isinstance(body, str) else json.dumps(body), NOW).row


def once(
    row: Credential, *, server: TokenServer | None = None, reason: refreshing.Reason = "manual", **options: Any
) -> tuple[Any, Ran, TokenServer]:
    """One refresh of a row: its outcome, or what it raised."""
    asked = server or TokenServer()

    async def program(world: World) -> Any:
        try:
            return await refresh(world, row.credential_key, reason=reason)
        except (CannotRefreshError, InsecureEndpointError) as error:
            return error

    ran = run_job(row, server=asked, program=program, **options)
    return ran.result, ran, asked


def result_of(row: Credential, reply: Response, **options: Any) -> tuple[str, Ran]:
    outcome, ran, _ = once(row, server=TokenServer(reply), **options)
    assert isinstance(outcome, RefreshOutcome)
    return outcome.result, ran


@pytest.mark.requirement("refresh-request-fields", "refresh-request-blank-fields-omitted", "flow-refresh-form-secret")
@pytest.mark.parametrize(
    ("changed", "more"),
    [
        ({"client_secret": SECRET, "resource": "https://r"}, {"client_secret": SECRET, "resource": "https://r"}),
        ({}, {}),
        ({"client_secret": "", "resource": ""}, {}),
        ({"client_secret": " \t", "resource": "https://r"}, {"resource": "https://r"}),
        ({"client_secret": SECRET}, {"client_secret": SECRET}),
        ({"scopes": "read write", "redirect_uri": "https://z/callback", "issuer": "https://as.test"}, {}),
    ],
)
def test_the_form_has_the_grant_and_what_the_row_has_of_client_secret_and_resource(changed, more):
    _, ran, server = once(credential(**changed))
    expected = {"grant_type": "refresh_token", "refresh_token": OLD_REFRESH, "client_id": "cid", **more}
    assert [form for _, _, form in server.posts] == [expected]
    assert refresh_form(credential(**changed)) == expected
    assert ran.named("request") == [{"at": POSTED, "status": 200}]


@pytest.mark.requirement("refresh-missing-input-raises", "https-refresh-direct-call-raises")
@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"refresh_token": None}, "Cannot refresh: missing refresh_token"),
        ({"refresh_token": ""}, "Cannot refresh: missing refresh_token"),
        ({"token_endpoint": ""}, "Cannot refresh: missing token_endpoint"),
        ({"token_endpoint": None}, "Cannot refresh: missing token_endpoint"),
        ({"token_endpoint": "http://as.test/token"}, "Cannot refresh: missing token_endpoint"),
        ({"token_endpoint": "http://127.0.0.1:9000/token"}, "Cannot refresh: missing token_endpoint"),
    ],
)
def test_a_row_that_cannot_be_renewed_raises_before_anything_is_sent(changed, text):
    row = credential(**changed)
    raised, ran, server = once(row)
    assert str(raised) == text
    assert isinstance(raised, CannotRefreshError)
    assert server.posts == []
    assert stored(ran) == row


@pytest.mark.requirement("refresh-success-updates-row")
def test_a_renewed_pair_is_stored_and_expires_from_when_it_came():
    server = TokenServer(answer(200, after_seconds=7.0))
    outcome, ran, _ = once(credential(), server=server)
    row = stored(ran)
    assert (outcome.result, row.access_token, row.refresh_token) == ("refreshed", NEW_ACCESS, NEW_REFRESH)
    assert (row.expires_at, row.updated_at) == (NOW + 7 + HOUR, NOW + 7)
    assert outcome.row == row
    assert ran.named("credential.refreshed") == [{"server": "notion"}]
    assert lines(ran) == []


@pytest.mark.requirement(
    "refresh-success-keeps-omitted-refresh-token",
    "refresh-success-without-expires-in",
    "refresh-success-expires-in-string",
    "refresh-success-nested-user-token",
    "flow-slack-unwrap-refresh",
)
@pytest.mark.parametrize(
    ("body", "access", "refresh_token", "seconds"),
    [
        ({"access_token": "n", "expires_in": 60}, "n", OLD_REFRESH, 60),
        ({"access_token": "n", "refresh_token": None, "expires_in": 60}, "n", OLD_REFRESH, 60),
        ({"access_token": "n", "refresh_token": "", "expires_in": 60}, "n", OLD_REFRESH, 60),
        ({"access_token": "n"}, "n", OLD_REFRESH, None),
        ({"access_token": "n", "refresh_token": "r2", "expires_in": "60"}, "n", "r2", 60),
        ({"ok": True, "authed_user": USER}, "xoxp", "xoxe", 43200),
        ({"access_token": "xoxb", "refresh_token": "b", "expires_in": 1, "authed_user": USER}, "xoxp", "xoxe", 43200),
        ({"access_token": "xoxb", "expires_in": 9, "authed_user": {"access_token": "xoxp"}}, "xoxp", OLD_REFRESH, None),
        ({"access_token": "flat", "refresh_token": "r2", "authed_user": {"access_token": ""}}, "flat", "r2", None),
        ({"access_token": "flat", "refresh_token": "r2"}, "flat", "r2", None),
    ],
)
def test_what_an_answer_leaves_out_is_kept_or_lasts(body, access, refresh_token, seconds):
    row = renewed(credential(), 200, body)
    expires_at = None if seconds is None else NOW + seconds
    assert (row.access_token, row.refresh_token, row.expires_at) == (access, refresh_token, expires_at)


@pytest.mark.requirement("flow-slack-unwrap-refresh")
def test_the_next_refresh_of_slack_presents_the_nested_token():
    nested = answer(200, {"ok": True, "authed_user": USER})
    server = TokenServer(nested)

    async def twice(world: World) -> None:
        for _ in range(2):
            await refresh(world, KEY, reason="manual")

    ran = run_job(credential(), server=server, program=twice)
    assert server.presented == [OLD_REFRESH, "xoxe"]
    assert stored(ran).access_token == "xoxp"


@pytest.mark.requirement("refresh-success-clears-one-shot-flag")
def test_a_renewed_row_is_no_one_shot_any_more():
    flagged = credential(refresh_token_unsupported=True)
    row = renewed(flagged, 200, {"access_token": "n", "refresh_token": "r2"})
    assert not row.refresh_token_unsupported
    assert not state_at(row, NOW).requires_periodic_reauth


RETRYABLE = ("connect_timeout", "connection_refused", "host_unreachable", "name_resolution")
AMBIGUOUS = ("read_timeout", "write_timeout", "other_timeout", "socket_timed_out", "connection_reset", "broken_pipe",
             "end_of_file", "tls")  # fmt: skip
UNEXPECTED = ("network_unreachable", "connection_aborted", "unparseable_body", "programming_error")


@pytest.mark.requirement(
    "refresh-retryable-class",
    "refresh-ambiguous-class",
    "refresh-retryable-tested-before-ambiguous",
    "refresh-tls-handshake-is-ambiguous",
    "refresh-unexpected-error-class",
)
def test_each_error_has_one_class_and_only_what_never_connected_is_repeated():
    expected = dict.fromkeys(RETRYABLE, "retryable") | dict.fromkeys(AMBIGUOUS, "ambiguous")
    expected |= dict.fromkeys(UNEXPECTED, "unexpected")
    kinds_of_errors: tuple[ErrorKind, ...] = get_args(ErrorKind)
    assert {kind: class_of(kind) for kind in kinds_of_errors} == expected
    assert [kind for kind in kinds_of_errors if is_repeated_in_band(class_of(kind))] == list(RETRYABLE)


@pytest.mark.requirement("refresh-retryable-tested-before-ambiguous", "refresh-tls-handshake-is-ambiguous")
def test_what_the_world_raises_has_the_class_of_what_it_means():
    assert [error_class(NotSent(reason)) for reason in ("refused", "dns", "timeout", "tls")] == [
        "retryable",
        "retryable",
        "retryable",
        "ambiguous",
    ]
    assert {error_class(Ambiguous(reason)) for reason in ("reset", "timeout")} == {"ambiguous"}
    assert error_class(ValueError("x")) == "unexpected"


FAULTS = {
    "refused": ("retryable", 0.0), "dns": ("retryable", 0.0), "open-timeout": ("retryable", 30.0),
    "tls": ("ambiguous", 0.0), "reset-before": ("ambiguous", 0.0), "reset-after": ("ambiguous", 0.0),
}  # fmt: skip


@pytest.mark.requirement("refresh-retryable-class", "refresh-ambiguous-class", "refresh-ambiguous-row-untouched")
@pytest.mark.parametrize("action", FAULTS)
def test_a_request_without_an_answer_leaves_every_column_as_it_was(action):
    row = credential()
    outcome, ran, server = once(row, faults=[Fault(action, label=POSTED)])
    expected, seconds = FAULTS[action]
    assert (outcome.result, kinds(ran)) == (expected, [expected])
    assert stored(ran) == row
    assert ran.simulation.now - NOW == seconds
    assert len(lines(ran, "info")) == 1
    assert len(server.posts) == (1 if action == "reset-after" else 0)


@pytest.mark.requirement("refresh-http-timeouts-30s", "flow-refresh-same-timeouts", "flow-hanging-as-fails-exchange")
def test_a_server_that_never_answers_is_given_up_after_thirty_seconds():
    row = credential()
    outcome, ran, server = once(row, server=TokenServer(answer(200, after_seconds=float("inf"))))
    assert (outcome.result, len(server.posts)) == ("ambiguous", 1)
    assert ran.simulation.now - NOW == 30.0
    assert stored(ran) == row


@pytest.mark.requirement("refresh-unexpected-error-class")
@pytest.mark.parametrize(
    "body",
    [
        "not json",
        "access_token=n&refresh_token=r",
        "<html></html>",
        "",
        "[" * 100_000,
        '{"access_token": "n", "expires_in": NaN}',
        '{"access_token": "n", "expires_in": Infinity}',
        json.dumps({"access_token": "n", "refresh_token": "r", "pad": "x" * MOST_BODY_BYTES}),
    ],
    ids=beginning,
)
def test_a_good_status_that_cannot_be_read_is_told_as_an_error_and_changes_nothing(body):
    row = credential()
    result, ran = result_of(row, answer(200, body))
    assert (result, kinds(ran), is_repeated_in_band(result)) == ("unexpected", ["unexpected"], False)
    assert stored(ran) == row
    assert len(lines(ran, "error")) == 1


@pytest.mark.requirement(
    "refresh-permanent-is-any-4xx",
    "refresh-status-classifies-not-body",
    "refresh-permanent-nulls-refresh-token",
    "refresh-permanent-keeps-valid-access-token",
    "refresh-permanent-is-not-one-shot",
    "refresh-permanent-client-errors",
)
@pytest.mark.parametrize(
    "body",
    [
        DEAD,
        "<html>Bad Request</html>",
        "",
        "Unauthorized",
        '{"error":"invalid_client"}',
        "x" * (MOST_BODY_BYTES + 1),
    ],
    ids=beginning,
)
@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 422, 499])
def test_any_refusal_of_the_grant_takes_the_refresh_token_and_nothing_else(status, body):
    row = credential(client_secret=SECRET)
    result, ran = result_of(row, answer(status, body))
    assert result == "permanent"
    assert stored(ran) == replace(row, refresh_token=None, updated_at=NOW)
    assert state_at(stored(ran), NOW).active
    assert connectors_state(stored(ran)) == "ready"


@pytest.mark.requirement("refresh-permanent-on-expired-row", "refresh-permanent-on-no-expiry-row")
@pytest.mark.parametrize(("seconds", "active", "state"), [(-HOUR, False, "needs_reauth"), (None, True, "ready")])
def test_a_dead_grant_never_moves_the_expiry(seconds, active, state):
    row = credential(expires_at=None if seconds is None else NOW + seconds)
    _, ran = result_of(row, answer(400, DEAD))
    after = stored(ran)
    assert (after.refresh_token, after.expires_at) == (None, row.expires_at)
    worth = state_at(after, NOW)
    assert (worth.active, worth.can_refresh, worth.requires_reauth) == (active, False, not active)
    assert connectors_state(after) == state


@pytest.mark.requirement("refresh-permanent-403-html", "refresh-transient-logs-error")
def test_a_dead_grant_is_a_warning_that_names_server_status_and_kind_of_body():
    _, ran = result_of(credential(), answer(403, "<!DOCTYPE html><title>Blocked by the firewall</title>"))
    assert stored(ran).refresh_token is None
    assert lines(ran, "error") == []
    assert lines(ran, "warn") == [
        "MCP OAuth refresh of notion (notion|0123456789abcdef) failed: permanent (HTTP 403, body html)"
    ]


@pytest.mark.parametrize(
    ("body", "kind"),
    [("", "empty"), (" \n", "empty"), ("<html>", "html"), ('{"a":1}', "json"), ("null", "json"), ("nope", "other")],
)
def test_a_body_is_described_by_its_kind(body, kind):
    assert body_kind(body) == kind


@pytest.mark.requirement(
    "refresh-transient-429",
    "refresh-transient-5xx",
    "refresh-transient-excluded-before-permanent",
    "refresh-transient-logs-error",
)
@pytest.mark.parametrize("body", ["Too Many", DEAD, '{"error":"unauthorized_client"}', "<html>"])
@pytest.mark.parametrize("status", [429, 500, 502, 503, 599])
def test_an_outage_or_a_rate_limit_changes_nothing_and_is_an_error(status, body):
    row = credential()
    result, ran = result_of(row, answer(status, body))
    assert (result, stored(ran)) == ("failed", row)
    assert len(lines(ran, "error")) == len(lines(ran)) == 1


@pytest.mark.requirement("refresh-odd-statuses", "refresh-error-in-200-body", "refresh-transient-5xx")
@pytest.mark.parametrize(
    ("status", "body", "dead"),
    [
        (201, '{"access_token":"n"}', False),
        (204, "", False),
        (302, "", False),
        (302, DEAD, True),
        (201, DEAD, True),
        (600, "x", False),
        (200, DEAD, True),
        (200, '{"ok":false,"error":"invalid_grant"}', True),
        (200, '{"error":"unauthorized_client","error_description":"x"}', True),
        (200, '{"ok":false,"error":"internal_error"}', False),
        (200, '{"ok":false}', False),
        (200, '{"error":["invalid_grant"]}', False),
        (200, '{"error":"INVALID_GRANT"}', False),
        (200, '{"access_token":"  "}', False),
        (200, '["access_token"]', False),
        (200, "null", False),
    ],
)
def test_an_odd_status_or_an_error_in_a_good_one_is_dead_only_where_it_names_the_grant(status, body, dead):
    row = credential()
    refreshed = refreshed_row(row, status, body, NOW)
    expected = replace(row, refresh_token=None) if dead else row
    assert refreshed == ("permanent" if dead else "failed", expected, "warn" if dead else "error")


@pytest.mark.requirement("flow-slack-not-ok-is-failure")
def test_a_not_ok_of_slack_leaves_the_row():
    row = credential()
    result, ran = result_of(row, answer(200, {"ok": False, "error": "internal_error"}))
    assert (result, stored(ran), len(lines(ran, "error"))) == ("failed", row, 1)


@pytest.mark.requirement("refresh-no-redirects")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status):
    elsewhere = TokenServer()
    reply = Response(status, {"Location": "https://elsewhere.test/token"})
    result, ran = result_of(credential(), reply, servers={"https://elsewhere.test": elsewhere})
    assert (result, stored(ran)) == ("failed", credential())
    assert (elsewhere.posts, elsewhere.others) == ([], [])


@pytest.mark.requirement("refresh-splits-like-x")
@pytest.mark.parametrize(
    ("status", "body", "kept"),
    [(429, "", True), (500, "", True), (503, "", True), (400, DEAD, False), (401, "", False)],
)
def test_a_status_keeps_or_drops_the_token_alike_for_x_and_for_an_mcp_server(status, body, kept):
    row = refreshed_row(credential(), status, body, NOW).row
    assert (row.refresh_token is not None) == kept
    assert (x_failure(status) in ("rate_limited", "server_error")) == kept
    assert (x_failure(status) == "permanent") != kept


@pytest.mark.requirement("https-differs-from-x", "https-userinfo-permitted")
def test_x_refuses_the_userinfo_that_an_mcp_endpoint_may_have():
    endpoint = "https://id:secret@api.x.com/2/oauth2/token"
    server = TokenServer()
    _, ran, _ = once(credential(token_endpoint=endpoint), servers={"https://api.x.com": server})
    assert len(server.posts) == 1
    assert stored(ran).token_endpoint == endpoint
    assert not acceptable_x_endpoint(endpoint)
    assert acceptable_x_endpoint("https://api.x.com/2/oauth2/token")
    assert not acceptable_x_endpoint("https://@api.x.com/2/oauth2/token")
    assert not acceptable_x_endpoint("http://api.x.com/2/oauth2/token")
    assert not acceptable_x_endpoint(None)
    assert acceptable_x_endpoint("https://api.x.com/2/oauth2/token?user=a@b")


@pytest.mark.requirement("https-secrets-not-in-logs", "refresh-log-line-names-server")
@pytest.mark.parametrize(
    "reply", [answer(), answer(200, "not json"), answer(400, DEAD), answer(503, ""), answer(302, "")], ids=str
)
def test_no_secret_of_a_row_is_told_whatever_the_answer(reply):
    row = credential(client_secret=SECRET, token_endpoint="https://id:end-s3cr3t@as.test/token")
    _, ran = result_of(row, reply)
    for secret in (*SECRETS, "end-s3cr3t"):
        assert secret not in ran.told
    assert all("notion" in line and KEY in line for line in lines(ran))


def test_a_row_that_is_not_there_or_needs_nothing_is_skipped():
    async def unknown(world: World) -> RefreshOutcome:
        return await refresh(world, "other|0", reason="manual")

    server = TokenServer()
    assert run_job(credential(), server=server, program=unknown).result == RefreshOutcome("skipped", None)
    assert server.posts == []
    for reason in ("gate", "injection"):
        outcome, ran, server = once(credential(), reason=reason)
        assert (outcome.result, outcome.row, server.posts) == ("skipped", stored(ran), [])


@pytest.mark.requirement("https-injector-never-refreshes-cleartext")
@pytest.mark.parametrize("reason", ["gate", "injection", "cron", "retry"])
@pytest.mark.parametrize("endpoint", ["http://as.test/token", "http://127.0.0.1:9000/token", "", None])
def test_a_row_without_a_good_endpoint_is_never_posted(reason, endpoint):
    row = credential(token_endpoint=endpoint, expires_at=NOW - HOUR)
    outcome, ran, server = once(row, reason=reason)
    assert (getattr(outcome, "result", outcome), server.posts, stored(ran)) == ("skipped", [], row)


@pytest.mark.parametrize(
    ("seconds", "reason", "posts"),
    [
        (-1, "gate", 1),
        (0, "gate", 1),
        (1, "gate", 0),
        (15 * MINUTE - 1, "injection", 1),
        (15 * MINUTE, "injection", 0),
        (-40 * HOUR, "gate", 1),
    ],
)
def test_a_spawn_renews_what_has_expired_and_its_injection_what_is_about_to(seconds, reason, posts):
    _, _, server = once(credential(expires_at=NOW + seconds), reason=reason)
    assert len(server.posts) == posts


def test_what_is_told_of_a_row_in_python_holds_no_secret():
    row = credential(client_secret=SECRET, token_endpoint=f"https://id:{SECRET}@as.test/token")
    text = f"{row!r} {RefreshOutcome('refreshed', row)!r} {refreshed_row(row, 400, '', NOW)!r}"
    assert not any(secret in text for secret in SECRETS)
    assert row_values(row)["client_secret"] == SECRET
    assert ENDPOINT not in text
