"""Known-bad variants of renewing stored credentials."""

from __future__ import annotations

from dataclasses import replace
from math import floor
from urllib.parse import urlencode

from harness.reference.credentials import attempts, table
from harness.reference.credentials.attempts import attempted_since as attempted_since_rule
from harness.reference.credentials.cron import KIND, UNEXPECTED, Run, renew_if_due
from harness.reference.credentials.cron import adopt as adopt_rule
from harness.reference.credentials.cron import queue as queue_rule
from harness.reference.credentials.refresh import (
    MAX_EXPIRED_AGE_SECONDS,
    WINDOW_SECONDS,
    is_throttled,
    refresh_form,
)
from harness.reference.credentials.refresh import in_window as in_window_rule
from harness.reference.credentials.refresh import post as post_rule
from harness.reference.credentials.refresh import refresh as refresh_rule
from harness.reference.credentials.refresh import still_wanted as still_wanted_rule
from harness.reference.credentials.refresh import tell_failure as tell_failure_rule
from harness.reference.credentials.refresh_answer import (
    DEAD_GRANT_ERRORS,
    UNPARSEABLE,
    Refreshed,
    json_document,
    names_dead_grant,
)
from harness.reference.credentials.refresh_answer import dead_grant as dead_grant_rule
from harness.reference.credentials.refresh_answer import granted as granted_rule
from harness.reference.credentials.refresh_answer import refreshed_row as refreshed_row_rule
from harness.reference.credentials.refresh_answer import renewed as renewed_rule
from harness.reference.credentials.refresh_answer import status_class as status_class_rule
from harness.reference.credentials.refresh_error import PERHAPS_PROCESSED
from harness.reference.credentials.refresh_error import class_of as class_of_rule
from harness.reference.credentials.row import TABLE, credential_of, require_storable, row_values
from harness.reference.credentials.state import credential_state as credential_state_rule
from harness.reference.credentials.state import expires_in, is_active, is_due
from harness.reference.oauth import transport
from harness.reference.oauth.tokens import TokenAnswer, text_of
from harness.reference.oauth.transport import form_target
from harness.reference.oauth.x import x_failure as x_failure_rule
from harness.requirements.variants import variant
from harness.world import Ambiguous, Request

REFRESH = "harness.reference.credentials.refresh"
ANSWER = "harness.reference.credentials.refresh_answer"
ERROR = "harness.reference.credentials.refresh_error"
CRON = "harness.reference.credentials.cron"
ATTEMPTS = "harness.reference.credentials.attempts"
WORKER = "harness.reference.credentials.worker"
TABLES = "harness.reference.credentials.table"


@variant(f"{WORKER}:next_run", catches=("refresh-cron-every-30-min",))
def the_job_runs_hourly(cron, now):
    """Starts it at every full hour."""
    return float((floor(now / 3600) + 1) * 3600)


@variant(f"{REFRESH}:in_window", catches=("refresh-window-one-hour",))
def the_window_is_that_of_a_spawn(row, now):
    """Takes the 15 minutes of the refresh on demand for the job's hour."""
    left = expires_in(row, now)
    return left is not None and left >= -MAX_EXPIRED_AGE_SECONDS and is_due(left)


@variant(f"{REFRESH}:in_window", catches=("refresh-window-boundary-exclusive",))
def the_end_of_the_window_is_in_it(row, now):
    """Selects a row that expires in exactly one hour."""
    left = expires_in(row, now)
    return left is not None and -MAX_EXPIRED_AGE_SECONDS <= left <= WINDOW_SECONDS


@variant(f"{REFRESH}:in_window", catches=("refresh-no-expiry-never-selected", "refresh-success-without-expires-in"))
def no_expiry_is_unknown_and_so_due(row, now):
    """Has the rule of another credential: what has no expiry is renewed at every run."""
    return row.expires_at is None or in_window_rule(row, now)


@variant(f"{REFRESH}:in_window", catches=("refresh-expired-over-24h-skipped",))
def a_row_is_due_for_ever(row, now):
    """Posts for what has lapsed long ago, 48 times a day."""
    left = expires_in(row, now)
    return left is not None and left < WINDOW_SECONDS


@variant(f"{REFRESH}:is_throttled", catches=("refresh-throttle-four-hours", "refresh-token-expired-window-is-normal"))
def nothing_is_throttled(row, now):
    """Rotates an hour's token at almost every run."""
    return False


@variant(f"{TABLES}:save", catches=("refresh-throttle-keys-on-updated-at",))
async def a_change_is_not_timed(transaction, row, now):
    """Leaves `updated_at` to those who remember it."""
    require_storable(row)
    await transaction.put(TABLE, row.credential_key, row_values(row))
    return row


@variant(f"{REFRESH}:still_wanted", catches=("refresh-throttle-is-cron-only",))
def a_spawn_is_throttled_too(row, reason, seen, now):
    """Lets a session begin with an expired token, an hour after the last refresh."""
    return still_wanted_rule(row, reason, seen, now) and not is_throttled(row, now)


@variant(f"{REFRESH}:is_renewable", catches=("refresh-needs-refresh-token", "refresh-needs-token-endpoint"))
def every_row_is_tried(row):
    """Calls refresh for what cannot be renewed, and logs what that raises."""
    return True


@variant(f"{CRON}:adopt", catches=("refresh-reconcile-before-refresh", "refresh-retry-rechecks-row",
                                   "refresh-ambiguous-next-cron-reconciles-first"))  # fmt: skip
async def no_store_is_read(world, writers, key):
    """Presents the row's own token, whatever a runtime has made of it."""


@variant(f"{CRON}:adopt", catches=("refresh-chain-never-burned",))
async def a_store_is_read_for_an_expired_row_alone(world, writers, key):
    """Takes a row whose access token is good for the head of the chain."""
    row = await table.find(world, key)
    if row is not None and not is_active(expires_in(row, world.clock.now())):
        await adopt_rule(world, writers, key)


@variant(f"{CRON}:renew", catches=("refresh-reconcile-before-refresh",))
async def the_stores_are_read_after_the_request(world, writers, row, run):
    """Refreshes first."""
    await refresh_rule(world, row.credential_key, reason=run.reason)
    await adopt_rule(world, writers, row.credential_key)


@variant(f"{REFRESH}:still_wanted", catches=("refresh-recheck-under-row-lock",))
def what_was_selected_is_posted(row, reason, seen, now):
    """Decides on what the query has loaded."""
    return True


@variant(f"{TABLES}:read", catches=("refresh-no-concurrent-post-per-row",))
async def rows_are_read_without_their_lock(transaction, key, *, lock=False):
    """Lets two refresh one row at the same time."""
    row = await transaction.get(TABLE, key)
    return None if row is None else credential_of(row.values)


@variant(f"{CRON}:run_refresh_job", catches=("refresh-one-row-failure-is-isolated",))
async def an_error_ends_the_run(world, writers, *, keys=None, attempt=0, failed_at=None, since=None):
    """Lets one broken row stop every renewal after it."""
    for row in await table.all_rows(world):
        try:
            began = await attempts.counts(world) if since is None else since
            run = Run("cron" if keys is None else "retry", attempt, began)
            await renew_if_due(world, writers, row, run)
        except UNEXPECTED:
            return


@variant(f"{REFRESH}:post", catches=("refresh-http-timeouts-30s", "flow-refresh-same-timeouts",
                                     "flow-hanging-as-fails-exchange"))  # fmt: skip
async def the_request_has_bounds_of_its_own(world, row):
    """Posts by itself, and waits for ten minutes."""
    target = form_target(row.token_endpoint)
    request = Request("POST", target.url, {}, urlencode(refresh_form(row)).encode())
    return await world.http.send(request, open_timeout_seconds=600.0, read_timeout_seconds=600.0)


@variant(f"{REFRESH}:refresh_form", catches=("refresh-request-fields", "flow-refresh-form-secret"))
def the_form_has_no_resource_and_no_secret(row):
    """Leaves out what an audience-binding server and a confidential client need."""
    return {name: value for name, value in refresh_form(row).items() if name not in ("resource", "client_secret")}


@variant(f"{REFRESH}:refresh_form", catches=("refresh-request-blank-fields-omitted",))
def the_form_has_empty_fields(row):
    """Leaves out what is null alone, and sends `client_secret=` for a public client."""
    optional = {"client_secret": row.client_secret, "resource": row.resource}
    return refresh_form(row) | {name: value for name, value in optional.items() if value is not None}


@variant(f"{REFRESH}:refresh_form", catches=("refresh-missing-input-raises",))
def a_form_is_made_of_nothing(row):
    """Posts whatever there is, wherever that is."""
    return {"grant_type": "refresh_token", "refresh_token": row.refresh_token or "", "client_id": row.client_id}


@variant(f"{ANSWER}:renewed", catches=("refresh-success-updates-row",))
def the_old_refresh_token_is_kept(row, answer, now):
    """Stores the new access token beside a refresh token that it has spent."""
    return replace(renewed_rule(row, answer, now), refresh_token=row.refresh_token)


@variant(f"{ANSWER}:renewed", catches=("refresh-success-keeps-omitted-refresh-token",))
def an_omitted_refresh_token_is_lost(row, answer, now):
    """Takes an answer without one for the end of renewals."""
    return replace(renewed_rule(row, answer, now), refresh_token=answer.refresh_token)


@variant(f"{ANSWER}:renewed", catches=("refresh-success-without-expires-in",))
def an_omitted_lifetime_keeps_the_old_expiry(row, answer, now):
    """Renews a token that lasts again and again."""
    renewed = renewed_rule(row, answer, now)
    return renewed if renewed.expires_at is not None else replace(renewed, expires_at=row.expires_at)


@variant("harness.reference.oauth.tokens:lifetime_seconds", catches=("refresh-success-expires-in-string",))
def a_lifetime_is_a_number(value):
    """Takes a text for no lifetime, so the token never expires."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@variant(f"{ANSWER}:granted", catches=("refresh-success-nested-user-token", "flow-slack-unwrap-refresh"))
def a_refresh_reads_the_top_level_alone(document):
    """Unwraps on the exchange, and takes the bot's token, or none, on a refresh."""
    return granted_rule({**document, "authed_user": None}) if isinstance(document, dict) else None


@variant(f"{ANSWER}:renewed", catches=("refresh-success-clears-one-shot-flag",))
def the_one_shot_flag_stays(row, answer, now):
    """Claims of a renewed row that its server issues no refresh token."""
    return replace(renewed_rule(row, answer, now), refresh_token_unsupported=row.refresh_token_unsupported)


@variant(f"{ERROR}:class_of", catches=("refresh-retryable-class",))
def a_refused_connection_is_a_failure(kind):
    """Waits for the next scheduled run after every error."""
    found = class_of_rule(kind)
    return "ambiguous" if found == "retryable" else found


@variant(f"{ERROR}:is_repeated_in_band", catches=("refresh-retryable-retried-in-band",))
def nothing_is_repeated_in_band(outcome):
    """Defers every network error."""
    return False


@variant(f"{CRON}:retry_delay_seconds", catches=("refresh-retry-ladder-2-4-8",))
def the_ladder_never_ends(attempt):
    """Repeats every minute."""
    return 60


@variant(f"{CRON}:queue", catches=("refresh-retry-ladder-2-4-8",))
async def the_whole_batch_is_repeated(world, retry):
    """Queues all rows with the one that was refused."""
    rows = await table.all_rows(world)
    await queue_rule(world, retry._replace(keys=tuple(row.credential_key for row in rows)))


@variant(f"{REFRESH}:error_level", catches=("refresh-retry-log-levels",))
def the_first_refusal_is_an_error(kind, *, retries_left):
    """Pages for what heals itself."""
    return "info" if kind == "ambiguous" else "error"


@variant(f"{ERROR}:class_of", catches=("refresh-ambiguous-class",))
def a_reset_is_retryable(kind):
    """Repeats what the server has perhaps processed."""
    return "retryable" if kind == "connection_reset" else class_of_rule(kind)


@variant(f"{REFRESH}:post", catches=("refresh-ambiguous-never-in-band",))
async def the_transport_asks_again(world, row):
    """Leaves the automatic repetition of the HTTP client on."""
    try:
        return await post_rule(world, row)
    except Ambiguous:
        return await post_rule(world, row)


@variant(f"{ERROR}:is_repeated_in_band", catches=("refresh-ambiguous-never-in-band",))
def an_ambiguous_failure_is_repeated(outcome):
    """Puts a lost answer on the ladder."""
    return outcome in ("retryable", "ambiguous")


@variant(f"{ATTEMPTS}:attempted_since", catches=("refresh-ambiguous-never-in-band",))
async def whoever_waited_asks_again(world, row, began, waited_seconds):
    """Looks at the row alone, which a lost answer has left as it was."""
    return False


@variant(f"{CRON}:attempts_before", catches=("refresh-ambiguous-never-in-band",))
def a_repetition_knows_of_its_own_failure_alone(retry):
    """Takes the attempts that others have made since for its own."""
    return


@variant(f"{REFRESH}:note_failure", catches=("refresh-ambiguous-never-in-band",))
async def whoever_came_later_than_the_request_asks_again(world, row, outcome):
    """Knows of an attempt that began after it, and of none that was under way."""
    return (await attempts.counts(world)).get(row.credential_key, 0)


@variant(f"{REFRESH}:note_failure", catches=("refresh-retryable-retried-in-band",))
async def what_never_left_counts_as_presented(world, row, outcome):
    """Keeps a spawn from a renewal that nobody has tried."""
    return await attempts.note(world, row, "failed")


@variant(f"{ATTEMPTS}:attempted_since", catches=("refresh-ambiguous-never-in-band",))
async def an_attempt_is_told_by_the_clock(world, row, began, waited_seconds):
    """Lets a clock that was set back make the attempt of just now an old one."""
    return waited_seconds >= 0 and await attempted_since_rule(world, row, began, waited_seconds)


@variant(f"{ATTEMPTS}:attempted_since", catches=("refresh-ambiguous-never-in-band",))
async def who_died_after_the_request_has_not_tried(world, row, began, waited_seconds):
    """Counts alone: whoever came while the request was under way finds nothing new."""
    return await attempted_since_rule(world, row, began, 0.0)


@variant(f"{REFRESH}:post", catches=("refresh-ambiguous-never-in-band",))
async def an_attempt_is_noted_with_its_answer(world, row):
    """Commits the note after the request: whoever dies in between, or loses the answer, leaves none."""
    answer = await transport.post_form(world, row.token_endpoint or "", refresh_form(row))
    await attempts.note(world, row)
    return answer


@variant(f"{REFRESH}:refresh", catches=("refresh-ambiguous-row-untouched",))
async def an_attempt_is_stamped_on_the_row(world, key, *, reason, seen=None, since=None, retries_left=True):
    """Notes the attempt, and begins the pause with it."""
    outcome = await refresh_rule(world, key, reason=reason, seen=seen, since=since, retries_left=retries_left)
    if outcome.result == "ambiguous" and outcome.row is not None:
        transaction = await world.store.begin()
        await table.save(transaction, outcome.row, world.clock.now() + 1)
        await transaction.commit()
    return outcome


@variant(f"{ERROR}:class_of", catches=("refresh-retryable-tested-before-ambiguous",))
def any_timeout_is_ambiguous(kind):
    """Asks for the wider class first."""
    return "ambiguous" if kind in PERHAPS_PROCESSED else class_of_rule(kind)


@variant(f"{ERROR}:class_of", catches=("refresh-tls-handshake-is-ambiguous",))
def a_tls_error_is_retryable(kind):
    """Takes every TLS error for one of the handshake."""
    return "retryable" if kind == "tls" else class_of_rule(kind)


@variant(f"{ERROR}:class_of", catches=("refresh-unexpected-error-class",))
def what_is_unknown_is_retryable(kind):
    """Repeats what nobody has understood."""
    found = class_of_rule(kind)
    return "retryable" if found == "unexpected" else found


@variant(f"{ANSWER}:refreshed_row", catches=("refresh-unexpected-error-class",))
def an_unreadable_answer_is_a_soft_failure(row, status, body, now):
    """Says in a quiet voice that a rotation is lost."""
    refreshed = refreshed_row_rule(row, status, body, now)
    return refreshed._replace(log_level="warn") if refreshed.result == "unexpected" else refreshed


@variant(f"{ANSWER}:status_class", catches=("refresh-permanent-is-any-4xx",))
def only_400_is_permanent(status):
    """Tries a 401 again for ever."""
    return "odd" if 401 <= status <= 499 and status != 429 else status_class_rule(status)


@variant(f"{ANSWER}:refreshed_row", catches=("refresh-status-classifies-not-body", "refresh-permanent-403-html"))
def a_page_is_transient(row, status, body, now):
    """Waits for an OAuth error in the body of a 4xx."""
    if status_class_rule(status) == "permanent" and not names_dead_grant(json_document(body)):
        return Refreshed("failed", row, "error")
    return refreshed_row_rule(row, status, body, now)


@variant(f"{ANSWER}:status_class", catches=("refresh-transient-429",))
def a_rate_limit_is_permanent(status):
    """Counts 429 as one more 4xx."""
    return "permanent" if status == 429 else status_class_rule(status)


@variant(f"{ANSWER}:status_class", catches=("refresh-transient-5xx",))
def an_outage_is_permanent(status):
    """Drops the token on 503."""
    return "permanent" if 500 <= status <= 599 else status_class_rule(status)


@variant(f"{ANSWER}:refreshed_row", catches=("refresh-transient-excluded-before-permanent",))
def the_body_is_looked_at_first(row, status, body, now):
    """Retires a credential during an outage that names the grant."""
    if names_dead_grant(json_document(body)):
        return dead_grant_rule(row)
    return refreshed_row_rule(row, status, body, now)


@variant(f"{ANSWER}:dead_grant", catches=("refresh-transient-logs-error",))
def a_dead_grant_pages(row):
    """Logs at error what only a human at a browser can mend."""
    return dead_grant_rule(row)._replace(log_level="error")


@variant(f"{ERROR}:is_repeated_in_band", catches=("refresh-transient-no-in-band-retry",))
def an_outage_is_on_the_ladder(outcome):
    """Repeats a 503 after two minutes."""
    return outcome in ("retryable", "failed")


@variant(f"{ANSWER}:dead_grant", catches=("refresh-permanent-nulls-refresh-token",
                                          "refresh-permanent-on-expired-row"))  # fmt: skip
def a_dead_token_is_kept(row):
    """Shows the provider a dead token every half hour."""
    return Refreshed("permanent", row, "warn")


@variant(f"{ANSWER}:dead_grant", catches=("refresh-permanent-keeps-valid-access-token",
                                          "refresh-permanent-on-no-expiry-row"))  # fmt: skip
def a_dead_grant_expires_the_row(row):
    """Takes minutes or hours of validity from a session."""
    return Refreshed("permanent", replace(row, refresh_token=None, expires_at=0.0), "warn")


@variant(f"{ANSWER}:dead_grant", catches=("refresh-permanent-is-not-one-shot",))
def a_dead_grant_is_one_shot(row):
    """Derives the flag from a blank refresh token."""
    return Refreshed("permanent", replace(row, refresh_token=None, refresh_token_unsupported=True), "warn")


@variant(f"{ANSWER}:dead_grant", catches=("refresh-permanent-client-errors",))
def a_dead_grant_takes_the_client_with_it(row):
    """Wipes the registration."""
    return Refreshed("permanent", replace(row, refresh_token=None, client_id="", client_secret=None), "warn")


@variant(f"{ANSWER}:status_class", catches=("refresh-odd-statuses",))
def every_2xx_is_success(status):
    """Stores what came with a 201."""
    return "success" if 200 <= status <= 299 else status_class_rule(status)


@variant(f"{REFRESH}:post", catches=("refresh-no-redirects",))
async def a_redirect_is_followed(world, row):
    """Sends the refresh token to wherever the answer points."""
    answer = await post_rule(world, row)
    place = answer.headers.get("Location")
    return answer if place is None else await post_rule(world, replace(row, token_endpoint=place))


@variant(f"{ANSWER}:granted", catches=("refresh-error-in-200-body", "flow-slack-not-ok-is-failure"))
def an_empty_token_is_stored(document):
    """Believes the status."""
    found = granted_rule(document)
    return found if found is not None or document is UNPARSEABLE else TokenAnswer("")


@variant(f"{ANSWER}:names_dead_grant", catches=("refresh-error-in-200-body",))
def an_error_in_a_good_answer_says_nothing(document):
    """Leaves a dead grant in the row where the status was 200."""
    error = document.get("error") if isinstance(document, dict) else None
    return text_of(error) is not None and "ok" in document and error in DEAD_GRANT_ERRORS


@variant(f"{REFRESH}:tell_failure", catches=("refresh-log-line-names-server",))
def the_line_holds_the_token(world, row, kind, level, what):
    """Names what was presented in place of whose it was."""
    world.events.emit("credential.refresh_failed", server=row.server_name, kind=kind)
    world.events.emit("log", level=level, text=f"{KIND}: {row.refresh_token} was not accepted: {what}")


@variant(f"{REFRESH}:tell_failure", catches=("https-secrets-not-in-logs",))
def the_line_holds_the_endpoint(world, row, kind, level, what):
    """Names where the request went, userinfo and all."""
    tell_failure_rule(world, row, kind, level, f"{what} from {row.token_endpoint}")


@variant("harness.reference.oauth.x:x_failure", catches=("refresh-splits-like-x",))
def x_drops_its_token_on_a_rate_limit(status):
    """Gives X a ladder of its own."""
    return "permanent" if status == 429 else x_failure_rule(status)


@variant("harness.reference.credentials.state:credential_state", catches=("refresh-token-expired-window-is-normal",))
def an_expired_row_needs_a_human(expires_in_s, refresh_token, token_endpoint, refresh_token_unsupported):
    """Offers to authorize again what the job is going to renew."""
    found = credential_state_rule(expires_in_s, refresh_token, token_endpoint, refresh_token_unsupported)
    return found._replace(can_refresh=False, requires_reauth=not found.active)


@variant("harness.reference.credentials.refresh_answer:refuse_constant", catches=("refresh-unexpected-error-class",))
def nan_is_json(name):
    """Reads a lifetime that is no number as none: the token never expires."""
    return
