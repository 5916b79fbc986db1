"""Known-bad variants of the routing of failed handshakes: who is sent to a human, and whose grant is dead."""

from __future__ import annotations

import re

from harness.reference.credentials import table
from harness.reference.credentials.key import credential_key
from harness.reference.oauth.capability import oauth_capable
from harness.reference.session import ladder
from harness.reference.session.blocking import Turn
from harness.reference.session.failed_handshakes import asks_for_sign_in as asks_for_sign_in_rule
from harness.reference.session.failed_handshakes import retired as retired_credential
from harness.reference.session.ladder import Decision
from harness.reference.session.ladder import decide as decide_rule
from harness.reference.session.refusals import auth_text
from harness.reference.session.routes import cause_of as cause_of_rule
from harness.reference.session.routes import class_of as class_of_rule
from harness.reference.session.routes import needs_sign_in as needs_sign_in_rule
from harness.reference.session.routes import route as route_rule
from harness.requirements.variants import variant

ROUTES = "harness.reference.session.routes"
PASS = "harness.reference.session.failed_handshakes"
REFUSALS = "harness.reference.session.refusals"
LADDER = "harness.reference.session.ladder"
INJECTION = "harness.reference.session.injection"
EDIT = "harness.reference.session.selection_edit"
BLOCK = "harness.reference.session.prompt_block"
SHOWN = "harness.reference.session.shown_errors"
STALE = "harness.reference.session.stale"
JOB = "harness.reference.session.job"


# --- who is sent to a human


@variant(
    f"{ROUTES}:class_of",
    catches=("gate-post-spawn-oauth-required", "failure-oauth-route", "failure-oauth-ignores-budget",
             "gate-fatal-is-human-resolvable", "resume-three-doors", "gate-rejected-no-row-still-oauth",
             "failure-oauth-required-list", "resume-post-spawn-owed"),
)  # fmt: skip
def who_has_to_be_authorized_rides_the_ladder(cause, *, needs_sign_in):
    """Tries three times what only a human can change."""
    return "other" if class_of_rule(cause, needs_sign_in=needs_sign_in) == "needs_sign_in" else class_of_rule(
        cause, needs_sign_in=needs_sign_in
    )  # fmt: skip


@variant(
    f"{ROUTES}:cause_of",
    catches=("gate-post-spawn-nonauth-not-oauth", "failure-oauth-nonauth-rides-ladder",
             "failure-ladder-transient-classes"),
)  # fmt: skip
def any_failure_of_such_a_server_is_one_of_authorization(failing):
    """Parks a session over a connection that was refused."""
    cause = cause_of_rule(failing)
    return "unauthorized" if failing.takes_oauth and cause == "other" else cause


@variant(
    f"{PASS}:takes_oauth",
    catches=("gate-post-spawn-not-capable", "gate-single-predicate", "gate-static-rejection-session-runs",
             "failure-auth-static-header-degrades", "failure-oauth-capable-predicate", "failure-gate-same-predicate",
             "failure-static-no-retry"),
)  # fmt: skip
def every_remote_server_can_be_authorized(entry):
    """Keeps a second copy of the predicate, without the headers: a wrong key gets a button that cannot help."""
    return entry is not None and (entry.remote or entry.stdio)


@variant(f"{PASS}:takes_oauth", catches=("gate-single-predicate", "failure-oauth-capable-predicate"))
def only_authorization_headers_count(entry):
    """Tests for one name alone."""
    return entry is not None and entry.remote and "Authorization" not in (entry.raw.get("headers") or {})


@variant(f"{PASS}:takes_oauth", catches=("gate-skips-declared-unavailable", "gate-post-spawn-not-capable"))
def a_declared_server_parks_the_session(entry):
    """Forgets what the creation's warning promised."""
    return entry is not None and oauth_capable(entry.raw)


@variant(
    f"{ROUTES}:route",
    catches=("gate-only-fatal-class", "failure-only-oauth-is-fatal", "failure-exhaustion-degrades"),
)
def an_exhausted_ladder_is_fatal(metadata, failed, classes, now_seconds):
    """Ends the session where the retries are spent."""
    made = route_rule(metadata, failed, classes, now_seconds)
    if made.route != "degrade" or ladder.retries_made(metadata) < len(ladder.RETRY_DELAYS_SECONDS):
        return made
    names = tuple(made.routes)
    return Decision("oauth_required", metadata, names, routes=dict.fromkeys(names, "oauth_required"))


@variant(f"{ROUTES}:route", catches=("failure-three-routes-total", "failure-only-oauth-is-fatal"))
def a_server_without_words_has_no_route(metadata, failed, classes, now_seconds):
    """Lets one fall through of which nothing was said."""
    made = route_rule(metadata, failed, classes, now_seconds)
    return made._replace(routes={name: taken for name, taken in made.routes.items() if failed[name]})


@variant(
    f"{ROUTES}:with_ladder",
    catches=("gate-static-rejection-session-runs", "failure-static-no-retry", "gate-verdict-per-server"),
)
def a_rejected_key_is_tried_three_times(noted, rejected, others, now_seconds):
    """Waits 210 seconds for a token to become right."""
    known = {each["name"]: each.get("error") for each in noted.get(ladder.DEGRADED) or ()}
    together = {**{name: known.get(name) for name in rejected}, **others}
    kept = [each for each in noted.get(ladder.DEGRADED) or () if each["name"] not in rejected]
    made = ladder.climb({**noted, ladder.DEGRADED: kept}, together, now_seconds)
    return made._replace(routes=dict.fromkeys(together, "retry" if made.route == "retry" else "degrade"))


# --- what is stored


@variant(
    f"{ROUTES}:needs_sign_in",
    catches=("gate-authorized-401-clears-retries", "failure-auth-authorized-retries", "gate-retry-survives-cofailure",
             "failure-auth-authorized-survives-peer", "gate-authorized-retry-reconnects",
             "gate-unknown-phrasing-retries", "gate-cache-shaped-keeps-retry",
             "gate-authorized-consulted-by-three", "gate-fatal-is-human-resolvable"),
)  # fmt: skip
def an_authorized_server_is_sent_to_a_human_all_the_same(cause, *, is_authorized, is_retired):
    """Offers a button that redirects straight back."""
    return True


@variant(f"{PASS}:asks_for_sign_in", catches=("gate-authorized-consulted-by-three",))
async def any_stored_row_counts_as_authorized(world, order, variables, failure, cause):
    """Looks whether there is a row, expired or not."""
    asks = await asks_for_sign_in_rule(world, order, variables, failure, cause)
    if cause != "unauthorized" or failure.entry is None:
        return asks
    key = credential_key(failure.name, failure.entry.credential_config())
    return await table.find(world, key) is None


@variant(
    f"{INJECTION}:clear_needs_auth",
    catches=("gate-authorized-retry-reconnects", "gate-authorized-401-clears-retries",
             "failure-auth-authorized-retries", "gate-skip-line-is-known-cause"),
)  # fmt: skip
async def the_memory_of_refusals_is_never_cleared(world, writer, names):
    """Retries into the short circuit."""
    return


@variant(f"{PASS}:classes_of", catches=("gate-authorized-401-clears-retries",))
async def the_memory_is_left_to_the_next_spawn(world, order, variables, failures):
    """Judges, and clears nothing."""
    causes = {failure.name: cause_of_rule(failure.failing) for failure in failures}
    return {
        failure.name: class_of_rule(
            causes[failure.name],
            needs_sign_in=await asks_for_sign_in_rule(world, order, variables, failure, causes[failure.name]),
        )
        for failure in failures
    }


@variant(
    f"{ROUTES}:route",
    catches=("gate-verdict-per-server", "failure-verdict-per-server", "gate-retry-survives-cofailure",
             "failure-auth-authorized-survives-peer", "failure-verdict-independent", "failure-heal-whole-failed-set",
             "failure-replay-slack-and-npx"),
)  # fmt: skip
def the_worst_member_decides_for_all(metadata, failed, classes, now_seconds):
    """Writes off servers that would have connected at the second attempt."""
    if "needs_sign_in" not in classes.values() and "rejected" in classes.values():
        classes = dict.fromkeys(classes, "rejected")
    return route_rule(metadata, failed, classes, now_seconds)


@variant(f"{ROUTES}:with_ladder", catches=("failure-verdict-order-invariant",))
def the_first_server_decides_for_those_behind_it(noted, rejected, others, now_seconds):
    """Ends its loop with the first that can be tried again: all behind it are left out."""
    made = decide_rule(noted, others, now_seconds) if others else ladder.climb(noted, {}, now_seconds)
    first = next(iter((*others, *rejected)), None)
    routes: dict[str, ladder.Route] = dict.fromkeys((*rejected, *others), "degrade")
    if made.route == "retry" and first in others:
        routes[str(first)] = "retry"
    return made._replace(routes=routes)


@variant(f"{ROUTES}:route", catches=("gate-mixed-oauth-wins", "failure-oauth-ends-the-pass"))
def the_others_are_left_out_beside_it(metadata, failed, classes, now_seconds):
    """Records a co-failing server although the session is parked."""
    made = route_rule(metadata, failed, classes, now_seconds)
    if made.route != "oauth_required":
        return made
    calm = {name: found for name, found in classes.items() if found != "needs_sign_in"}
    beside = route_rule(metadata, {name: failed[name] for name in calm}, calm, now_seconds) if calm else made
    return made._replace(metadata=beside.metadata, routes={**made.routes, **beside.routes})


# --- a rejected grant


@variant(
    f"{ROUTES}:cause_of",
    catches=("gate-rejected-grant-precedes", "gate-rejected-grant-routes-oauth", "gate-rejected-grant-resolves",
             "failure-grant-rejected-retires", "gate-cache-shaped-keeps-retry"),
)  # fmt: skip
def the_stored_row_is_asked_first(failing):
    """Files a dead grant under what Zimmer is authorized for: it retries for ever."""
    cause = cause_of_rule(failing)
    return "unauthorized" if cause == "grant_rejected" else cause


@variant(
    f"{ROUTES}:needs_sign_in",
    catches=("gate-rejected-grant-routes-oauth", "failure-grant-rejected-retires", "gate-rejected-no-row-still-oauth"),
)  # fmt: skip
def a_dead_grant_is_tried_again(cause, *, is_authorized, is_retired):
    """Retires it, and then takes the ladder."""
    return cause != "grant_rejected" and needs_sign_in_rule(cause, is_authorized=is_authorized, is_retired=is_retired)


@variant(
    f"{PASS}:retired",
    catches=("gate-rejected-grant-resolves", "gate-rejected-grant-routes-oauth", "failure-grant-rejected-retires"),
)
async def the_dead_credential_stays(world, order, variables, entry):
    """Parks, and leaves the row that makes the button do nothing."""
    return True


@variant(f"{PASS}:writers_of", catches=("gate-rejected-grant-routes-oauth",))
def only_the_row_is_retired(world, order, variables):
    """Leaves the runtimes' copies to be adopted back."""
    return ()


@variant(f"{PASS}:retired", catches=("gate-retire-failure-retries", "failure-grant-retire-failure-retries"))
async def a_failure_to_retire_parks_too(world, order, variables, entry):
    """Combines an active row with a button."""
    await retired_credential(world, order, variables, entry)
    return True


@variant(f"{ROUTES}:cause_of", catches=("gate-unknown-phrasing-retries", "gate-cache-shaped-keeps-retry"))
def any_word_of_a_refresh_rejects_the_grant(failing):
    """Retires on every text that speaks of a refresh or a grant."""
    cause = cause_of_rule(failing)
    is_loose = re.search(r"refresh|grant", failing.error or "", re.IGNORECASE) is not None
    return "grant_rejected" if cause == "unauthorized" and is_loose else cause


@variant(f"{ROUTES}:cause_of", catches=("failure-grant-needs-capable-server",))
def a_grant_is_rejected_whoever_says_so(failing):
    """Takes the credential of a namesake away."""
    said = auth_text(failing.error, failing.name, failing.url)
    return "grant_rejected" if said.refresh_token_rejected else cause_of_rule(failing)


# --- the turn


@variant(f"{JOB}:undelivered", catches=("resume-post-spawn-owed", "failure-ladder-prompt-original"))
def a_turn_counts_as_delivered_when_it_was_handed_over(order, running):
    """Replays the first prompt after a block: the message is lost."""
    return Turn(order.follow_up, is_nudge=True)
