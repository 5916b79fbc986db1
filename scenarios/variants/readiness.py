"""Known-bad variants of the probe and its states."""

from __future__ import annotations

from itertools import count

from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential
from harness.reference.oauth.capability import oauth_capable
from harness.reference.readiness.contained import Outcome
from harness.reference.readiness.contained import contained as contained_rule
from harness.reference.readiness.probe import Status
from harness.reference.readiness.probe import assess as assess_rule
from harness.reference.readiness.probe import judge as judge_rule
from harness.reference.readiness.probe import judge_named as judge_named_rule
from harness.reference.readiness.probe import reason as reason_rule
from harness.reference.readiness.states import LABELS, RANKS, State
from harness.reference.readiness.states import rank as rank_rule
from harness.reference.secrets.loader import OneView
from harness.reference.secrets.placeholders import variables
from harness.requirements.variants import variant

PROBE = "harness.reference.readiness.probe"
STATES = "harness.reference.readiness.states"


@variant(f"{PROBE}:judge", catches=("readiness-question",))
def an_unknown_name_is_ready(name, entry, resolution, credential, instance=None):
    """Gives a status to a server that is not in the catalog."""
    if entry is None:
        return Status(name, name, State.READY)
    return judge_rule(name, entry, resolution, credential, instance)


@variant(
    f"{PROBE}:stored_credential",
    catches=("readiness-local-only", "readiness-never-spawns-job", "readiness-ready-claims-little"),
)
def the_server_is_pinged(entry, credential):
    """Asks the server's host whether it is there before it believes the stored row."""
    import socket

    found = credential(credential_key(entry.name, entry.credential_config()))
    return found if socket.getaddrinfo(str(entry.url), 443) else None


@variant(f"{PROBE}:state_by_credential", catches=("readiness-states-nine", "readiness-no-credential"))
def no_credential_is_ready(entry, credential):
    """Knows no state for a server that needs no credential."""
    if oauth_capable(entry.raw):
        return _oauth(credential(credential_key(entry.name, entry.credential_config())))
    return State.READY


@variant(
    f"{STATES}:blocks",
    catches=("readiness-blocking-four", "readiness-token-expired-not-blocking", "connectors-badge-vs-block"),
)
def token_expired_blocks(state):
    """Takes an expired token for unavailable, so servers flicker out of every list each hour."""
    return state in {
        "missing_configuration",
        "needs_authorization",
        "needs_reauth",
        "declared_unavailable",
        "token_expired",
    }


@variant(f"{STATES}:blocks", catches=("readiness-could-not-find-out-usable", "readiness-unreachable-beats-absent"))
def uncertainty_blocks(state):
    """Fails closed."""
    return state not in {"ready", "no_credential_required", "token_expired"}


@variant(f"{PROBE}:state_by_variables", catches=("readiness-store-blip-no-emptying", "readiness-store-not-missing"))
def unreachable_is_missing(absent, unreachable):
    """Maps a store that does not answer to a missing configuration."""
    return State.MISSING_CONFIGURATION if absent or unreachable else None


@variant(f"{PROBE}:state_by_variables", catches=("readiness-unreachable-beats-absent", "readiness-check-order"))
def an_absent_name_wins(absent, unreachable):
    """Reports the absent name although another could not be looked up."""
    if absent:
        return State.MISSING_CONFIGURATION
    return State.STORE_UNAVAILABLE if unreachable else None


@variant(f"{PROBE}:contained", catches=("readiness-probe-isolated",))
def the_error_is_swallowed(compute):
    """Hides what went wrong with the server."""
    return Outcome(contained_rule(compute).answer, None)


@variant(f"{PROBE}:judge_all", catches=("readiness-probe-isolated",))
def one_failed_probe_empties_the_list(catalog, resolution, credential, instance=None):
    """Lets the error of one server take the answers of all others with it."""
    judged = judge_named_rule(catalog, catalog.names, resolution, credential, instance)
    return () if any(status.state is State.PROBE_FAILED for status in judged) else judged


@variant(f"{PROBE}:reason", catches=("readiness-missing-names-all",))
def only_the_first_name_is_told(status, *, mark):
    """Stops at the first missing name."""
    if status.state is State.MISSING_CONFIGURATION:
        return f"{mark}{status.missing_variables[0]}{mark} unresolved"
    return reason_rule(status, mark=mark)


@variant(f"{PROBE}:required_variables", catches=("readiness-default-not-missing",))
def defaults_count_as_required(entry, instance):
    """Requires a variable that has a default."""
    found = variables(entry.raw)
    return (*found.required, *found.optional)


@variant(f"{PROBE}:oauth_state", catches=("readiness-needs-authorization",))
def no_row_is_ready(row):
    """Finds nothing missing where there is no credential."""
    return State.READY if row is None else _oauth(row)


@variant(f"{PROBE}:oauth_state", catches=("readiness-needs-reauth",))
def a_refresh_token_is_enough(row):
    """Promises a renewal without an endpoint."""
    if row is not None and not _active(row) and row.refresh_token:
        return State.TOKEN_EXPIRED
    return _oauth(row)


@variant("harness.reference.credentials.state:is_active", catches=("readiness-oauth-ready",))
def no_expiry_has_expired(expires_in_s):
    """Takes a missing expiry for an expired one."""
    return expires_in_s is not None and expires_in_s > 0


@variant(f"{PROBE}:stored_credential", catches=("readiness-oauth-exact-key", "credential-key-catalog-edit-invalidates"))
def credentials_are_matched_by_name(entry, credential):
    """Falls back to any row of that name."""
    exact = credential(credential_key(entry.name, entry.credential_config()))
    rows = getattr(credential, "__self__", {})
    return exact or next((row for key, row in rows.items() if key.partition("|")[0] == entry.name), None)


@variant(
    f"{PROBE}:state_by_credential",
    catches=("readiness-oauth-capability", "readiness-static-header-resolved", "gate-single-predicate"),
)
def readiness_has_its_own_word_list(entry, credential):
    """Decides by a copy of the predicate that knows the header Authorization alone."""
    remote = entry.raw.get("type") in {"http", "streamable-http", "sse"}
    if remote and not entry.raw.get("headers", {}).get("Authorization"):
        return _oauth(credential(credential_key(entry.name, entry.credential_config())))
    return State.READY if variables(entry.raw).required else State.NO_CREDENTIAL_REQUIRED


@variant("harness.reference.catalog.entry:oauth_applies", catches=("readiness-oauth-capability",))
def every_transport_can_authorize(transport):
    """Offers an authorization for a stdio server."""
    return True


@variant("harness.reference.oauth.capability:is_blank_value", catches=("readiness-oauth-capability",))
def a_blank_header_is_a_credential(value):
    """Takes a header without a value for a static credential."""
    return value is None


@variant("harness.reference.oauth.capability:oauth_capable", catches=("readiness-oauth-capability",))
def a_server_outside_the_catalog_is_capable(entry):
    """Offers an authorization for a name that nobody knows."""
    return entry is None or oauth_capable(entry)


@variant(f"{PROBE}:assess", catches=("readiness-check-order",))
def the_credential_is_judged_first(entry, resolution, credential, instance):
    """Offers an authorization for a URL that cannot be built."""
    if entry.unavailable is None and oauth_capable(entry.raw):
        row = credential(credential_key(entry.name, entry.credential_config()))
        return Status(entry.name, entry.title, _oauth(row))
    return assess_rule(entry, resolution, credential, instance)


@variant(f"{PROBE}:assess", catches=("readiness-declared-skips-lookups",))
def declared_servers_are_looked_up(entry, resolution, credential, instance):
    """Asks for the variables of a server that is declared unavailable."""
    for name in variables(entry.raw).required:
        resolution(name)
    return assess_rule(entry, resolution, credential, instance)


@variant(
    "harness.reference.surfaces.options:unavailable",
    catches=("readiness-one-computation", "connectors-one-probe-all-surfaces", "offer-reader-idiom"),
)
def the_rest_list_has_its_own_idea(status):
    """Computes availability from the declaration alone."""
    return status is not None and status.declared is not None


@variant(f"{PROBE}:resolved_once", catches=("readiness-one-store-snapshot",))
def every_server_looks_up_for_itself(resolution):
    """Asks again for each server, with mixed answers when the store blips."""
    return resolution


@variant(f"{PROBE}:judge_named", catches=("readiness-named-only",))
def the_whole_catalog_is_judged(catalog, names, resolution, credential, instance=None):
    """Probes every server to answer for a few."""
    wanted = [name for name in dict.fromkeys(names) if name]
    judged = judge_named_rule(catalog, catalog.names, resolution, credential, instance)
    by_name = {status.name: status for status in judged}
    return tuple(by_name[name] for name in wanted if name in by_name)


@variant(f"{PROBE}:judge_all", catches=("readiness-catalog-order", "catalog-entry-order-kept"))
def statuses_come_in_alphabetical_order(catalog, resolution, credential, instance=None):
    """Sorts the servers by name."""
    return judge_named_rule(catalog, sorted(catalog.names), resolution, credential, instance)


@variant(f"{PROBE}:judge_all", catches=("readiness-deterministic",))
def servers_come_from_a_set(catalog, resolution, credential, instance=None):
    """Lists the servers in an order that changes with the process."""
    return judge_named_rule(catalog, set(catalog.names), resolution, credential, instance)


KEPT: dict[str, Status | None] = {}


@variant(f"{PROBE}:judge", catches=("readiness-fresh-moment",))
def statuses_are_kept(name, entry, resolution, credential, instance=None):
    """Answers from the first computation for good."""
    if entry is None:
        return None
    return KEPT.setdefault(repr(entry), judge_rule(name, entry, resolution, credential, instance))


CALLS = count()


@variant(f"{PROBE}:reason", catches=("readiness-deterministic", "offer-get-configs-deterministic"))
def the_answer_tells_how_often_it_was_asked(status, *, mark):
    """Puts something of the moment into the text."""
    told = reason_rule(status, mark=mark)
    return told if told is None else f"{told} ({next(CALLS)})"


@variant(f"{PROBE}:reason", catches=("readiness-reason-forms",))
def the_plain_reason_has_back_ticks(status, *, mark):
    """Uses one form for all readers."""
    return reason_rule(status, mark="`")


@variant(f"{STATES}:label", catches=("readiness-labels",))
def labels_are_the_names_of_the_states(state):
    """Shows the state's own name, made readable."""
    return LABELS[state].title() if state in LABELS else str(state)


@variant(f"{STATES}:rank", catches=("readiness-severity-ranks", "connectors-sort-by-severity"))
def token_expired_ranks_as_healthy(state):
    """Ranks in the order of the labels."""
    return RANKS[State.READY] if state == "token_expired" else rank_rule(state)


@variant(f"{STATES}:by_severity", catches=("readiness-severity-ranks", "connectors-sort-by-severity"))
def equal_ranks_change_places(rows, state_of):
    """Sorts without keeping the order inside one rank."""
    turned = list(rows)
    turned.reverse()
    return sorted(turned, key=lambda row: rank_rule(state_of(row)))


@variant("harness.reference.secrets.loader:OneView.read", catches=("readiness-one-store-snapshot",))
def a_store_that_went_down_is_asked_again(self: OneView, name):
    """Reads the store for every name of the list although it did not answer the first."""
    return self._store.read(name)


def _active(row: StoredCredential) -> bool:
    return row.expires_in_s is None or row.expires_in_s > 0


def _oauth(row: StoredCredential | None) -> State:
    if row is None:
        return State.NEEDS_AUTHORIZATION
    if _active(row):
        return State.READY
    renewable = row.refresh_token and str(row.token_endpoint or "").startswith("https://")
    return State.TOKEN_EXPIRED if renewable else State.NEEDS_REAUTH
