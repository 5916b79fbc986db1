"""Known-bad variants of the OAuth flow: consent, pending flows, what is pasted, the exchange, the tokens in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qsl, quote_plus

from harness.reference.credentials.state import credential_state as credential_state_rule
from harness.reference.oauth import flows
from harness.reference.oauth.clients import registered_client as registered_client_rule
from harness.reference.oauth.clients import registered_entry as registered_entry_rule
from harness.reference.oauth.consent import authorization_parameters as authorization_parameters_rule
from harness.reference.oauth.consent import hosted_callback as hosted_callback_rule
from harness.reference.oauth.exchange import exchange as exchange_rule
from harness.reference.oauth.exchange import exchange_form as exchange_form_rule
from harness.reference.oauth.flows import claim as claim_rule
from harness.reference.oauth.flows import find as find_rule
from harness.reference.oauth.flows import flow_values as flow_values_rule
from harness.reference.oauth.flows import granted as granted_rule
from harness.reference.oauth.flows import start as start_rule
from harness.reference.oauth.initiation import Refused
from harness.reference.oauth.initiation import registered_grounds as registered_grounds_rule
from harness.reference.oauth.initiation import registered_resource as registered_resource_rule
from harness.reference.oauth.metadata import resource_indicator
from harness.reference.oauth.paste import pasted_code as pasted_code_rule
from harness.reference.oauth.tokens import parse_json, text_of
from harness.reference.oauth.tokens import token_answer as token_answer_rule
from harness.reference.oauth.tokens import token_members as token_members_rule
from harness.reference.oauth.web import error_page as error_page_rule
from harness.reference.oauth.web import is_retried as is_retried_rule
from harness.requirements.variants import variant

CLIENTS = "harness.reference.oauth.clients"
CONSENT = "harness.reference.oauth.consent"
EXCHANGE = "harness.reference.oauth.exchange"
FLOWS = "harness.reference.oauth.flows"
INITIATION = "harness.reference.oauth.initiation"
PASTE = "harness.reference.oauth.paste"
TOKENS = "harness.reference.oauth.tokens"
WEB = "harness.reference.oauth.web"

# --- the way to the consent screen


@variant(
    f"{CONSENT}:hosted_callback",
    catches=("flow-hosted-callback-url", "authorize-redirect-default-hosted"),
)
def the_callback_is_always_http(app_host):
    """Takes every deployment for a development instance."""
    return f"http://{app_host or 'localhost:3000'}/mcp_oauth/callback"


@variant(f"{CONSENT}:challenge", catches=("flow-pkce-s256", "authorize-state-random"))
def the_challenge_is_the_verifier(verifier):
    """The plain method under the name of S256."""
    return verifier


@variant(f"{CONSENT}:kept_query", catches=("flow-authorization-url",))
def an_endpoints_own_query_is_replaced(query, ours):
    """Loses the tenant that the endpoint names."""
    return []


@variant(f"{CONSENT}:kept_query", catches=("flow-authorization-url",))
def an_endpoints_own_query_is_written_anew(query, ours):
    """Decodes what is no UTF-8, and encodes something else."""
    return [
        f"{name}={quote_plus(value)}" for name, value in parse_qsl(query, keep_blank_values=True) if name not in ours
    ]


@variant(f"{CONSENT}:authorization_parameters", catches=("flow-authorization-url",))
def blank_parameters_are_sent(flow):
    """Sends scope= and resource= where there is none."""
    return {"scope": flow.scopes or "", "resource": flow.resource or "", **authorization_parameters_rule(flow)}


@variant(f"{CONSENT}:is_google", catches=("flow-google-offline",))
def any_host_that_ends_like_google(authorization_endpoint):
    """Compares the end of the host without the dot."""
    return authorization_endpoint.partition("://")[2].partition("/")[0].endswith("google.com")


@variant(f"{CONSENT}:redirect_uri_for", catches=("flow-manual-redirect-source", "authorize-redirect-configured-wins"))
def the_hosted_callback_always(configured, app_host):
    """Forgets the redirect that the provider has registered for the client."""
    return hosted_callback_rule(app_host)


@variant(
    f"{CONSENT}:is_manual",
    catches=("flow-manual-flag", "authorize-catalog-has-no-manual-flag", "authorize-manual-derived"),
)
def manual_only_where_an_entry_says_so(redirect_uri, app_host, *, forced=False):
    """Wants a flag where the redirect has said it already."""
    return forced


@variant(
    f"{CONSENT}:is_manual",
    catches=(
        "authorize-completion-not-by-loopback",
        "authorize-hosted-localhost-automatic",
        "authorize-manual-derived",
    ),
)
def manual_where_it_looks_like_localhost(redirect_uri, app_host, *, forced=False):
    """Asks for a paste on a development instance, and not for an oob URN."""
    return forced or "localhost" in (redirect_uri or "")


@variant(f"{CONSENT}:is_manual", catches=("authorize-manual-forced-by-entry", "flow-manual-flag"))
def a_forced_paste_is_ignored(redirect_uri, app_host, *, forced=False):
    """Looks at the redirect alone."""
    return bool((redirect_uri or "").strip()) and redirect_uri != hosted_callback_rule(app_host)


# --- clients registered by hand


@variant(f"{CLIENTS}:registered_client", catches=("flow-public-client-allowed",))
def a_registered_client_needs_a_secret(settings, server_name):
    """Takes a public client's entry for an incomplete one."""
    found = registered_client_rule(settings, server_name)
    return found if found is not None and found.client_secret is not None else None


@variant(f"{CLIENTS}:registered_entry", catches=("flow-slack-entry-name-match", "authorize-preregistered-exact-name"))
def an_entry_serves_names_like_its_own(registered, server_name):
    """Matches by prefix, whatever the case."""
    name = (server_name or "").lower().strip()
    for key, entry in (registered if isinstance(registered, Mapping) else {}).items():
        if name and name.startswith(key.lower().strip()[:4]):
            return entry
    return {}


@variant(f"{CLIENTS}:registered_entry", catches=("flow-slack-config-only",))
def only_slack_is_looked_up(registered, server_name):
    """A path of its own for one provider."""
    return registered_entry_rule(registered, server_name) if server_name == "slack" else {}


@variant(
    f"{CLIENTS}:registered_entry",
    catches=("flow-client-config-from-credentials", "authorize-preregistered-bypasses-discovery"),
)
def nobody_reads_the_section(registered, server_name):
    """Every server goes through discovery."""
    return {}


@variant(f"{INITIATION}:registered_grounds", catches=("flow-slack-authorize-request",))
def commas_become_spaces(client, server_url):
    """Joins Slack's scopes as the standard has it."""
    grounds = registered_grounds_rule(client, server_url)
    return grounds._replace(scopes=(grounds.scopes or "").replace(",", " "))


@variant(
    f"{INITIATION}:registered_resource",
    catches=("flow-resource-empty-suppresses", "flow-slack-token-request", "flow-slack-authorize-request"),
)
def an_empty_resource_is_a_missing_one(client, server_url):
    """Derives the indicator that the entry had suppressed."""
    return client.resource or resource_indicator(None, server_url)


@variant(f"{INITIATION}:registered_resource", catches=("flow-resource-omitted-derives",))
def no_registered_client_has_an_indicator(client, server_url):
    """Leaves out what an authorization server for MCP needs."""
    return client.resource and registered_resource_rule(client, server_url)


@variant(f"{CLIENTS}:public_view", catches=("flow-preregistered-public-view",))
def the_secret_is_masked(client):
    """Keeps the key."""
    return {"client_id": client.client_id, "client_secret": "***"}


# --- pending flows


@variant(f"{FLOWS}:flow_values", catches=("flow-pending-flow-persists",))
def the_verifier_stays_in_memory(flow):
    """Another process cannot finish the flow."""
    return {**flow_values_rule(flow), "code_verifier": "forgotten"}


@variant(f"{FLOWS}:storable_endpoint", catches=("https-pending-flow-refuses",))
def any_token_endpoint_is_stored(token_endpoint):
    """Looks at presence alone."""
    return bool((token_endpoint or "").strip())


@variant(f"{FLOWS}:is_sweepable", catches=("authorize-sweep-scope", "authorize-sweep-on-initiate"))
def every_expired_flow_is_swept(flow, now):
    """Takes flows that a session still shows."""
    return flow.expires_at <= now


@variant(f"{FLOWS}:is_expired", catches=("flow-pending-flow-lifetime", "authorize-state-is-csrf-defense"))
def no_flow_expires(flow, now):
    """Takes a flow of any age."""
    return False


@variant(
    f"{FLOWS}:sweep_expired_session_less", catches=("authorize-sweep-on-initiate", "authorize-abandoned-flow-bounded")
)
async def a_click_sweeps_nothing(world):
    """Leaves verifiers and secrets of abandoned flows to a nightly job."""
    return 0


@variant(f"{FLOWS}:delete_of_session", catches=("authorize-in-session-flows-die-with-session",))
async def a_destroyed_session_leaves_its_flows(world, session):
    """Verifiers and secrets that nobody will ever look for."""
    return 0


@variant(f"{FLOWS}:is_of_pair", catches=("authorize-restart-replaces-own-flow", "flow-pending-flow-one-per-server"))
def a_start_replaces_every_flow_of_the_server(flow, session, server_name):
    """Breaks another session's consent."""
    return flow.server_name == server_name


@variant(
    f"{FLOWS}:delete_of_pair",
    catches=("gate-initiate-short-circuit-retries", "reconnect-parked-release-via-own-initiate"),
)
async def a_consent_that_nobody_needs_stays_open(world, session, server_name, credential_key):
    """Keeps the session parked for a day over a flow of a server that is authorized."""
    return 0


@variant("harness.reference.oauth.web:is_retried_without_flow", catches=("gate-initiate-short-circuit-retries",))
async def a_flow_of_an_earlier_tab_parks_the_session(world, deps, name, session, key):
    """Ends the flows that are there at the click, and no other."""
    await flows.delete_of_pair(world, session, name, key)
    return await is_retried_rule(world, deps, name, session)


@variant(f"{FLOWS}:delete_of_pair", catches=("gate-initiate-short-circuit-retries",))
async def a_flow_that_somebody_wants_is_ended_too(world, session, server_name, credential_key):
    """Goes by what the click has seen, not by what the credential is worth by now."""
    found = [flow for flow in await flows.all_flows(world) if flows.is_of_pair(flow, session, server_name)]
    return sum([await flows.claim(world, flow.state) is not None for flow in found])


@variant(f"{FLOWS}:claim", catches=("flow-callback-single-use", "authorize-state-single-use"))
async def a_flow_is_read_and_deleted_later(world, state):
    """Looks the flow up and leaves it where it is while the code is posted."""
    return await find_rule(world, state)


@variant(f"{FLOWS}:claim", catches=("authorize-state-is-csrf-defense", "flow-state-unguessable"))
async def the_latest_flow_will_do(world, state):
    """Falls back to whatever flow there is when the state is unknown."""
    found = await claim_rule(world, state)
    others = await flows.all_flows(world)
    return found if found is not None or not others else await claim_rule(world, others[-1].state)


@variant(f"{FLOWS}:give_back", catches=("flow-manual-failure-keeps-flow",))
async def a_typo_ends_the_flow(world, flow):
    """Whoever pastes wrongly has to consent again."""


@variant(
    f"{FLOWS}:random_text", catches=("flow-pkce-verifier-fresh", "flow-state-unguessable", "authorize-state-random")
)
def states_can_be_guessed(world):
    """Counts."""
    return f"state-{world.clock.now():.0f}"


@variant(f"{FLOWS}:start", catches=("flow-manual-no-listener",))
async def a_listener_is_started_for_the_redirect(world, flow):
    """Opens the port that another program's redirect names."""
    await world.processes.spawn(["callback-server", flow.redirect_uri], env={}, directory="/")
    return await start_rule(world, flow)


# --- what is pasted


@variant(f"{PASTE}:pasted_code", catches=("flow-manual-accepts-url-or-code", "flow-manual-state-absent-accepted"))
def a_whole_address_is_needed(pasted, state):
    """Refuses a bare code, and an address without a state."""
    text = pasted or ""
    return pasted_code_rule(text, state) if text.strip().lower().startswith("http") and "state=S" in text else None


@variant(f"{PASTE}:state_fits", catches=("flow-manual-state-validated",))
def the_pasted_state_is_ignored(returned, state):
    """Somebody else's code is exchanged."""
    return True


@variant(f"{PASTE}:query_of", catches=("flow-manual-code-extraction",))
def a_fragment_is_part_of_the_query(address):
    """Takes what follows the # for the code's end."""
    _, mark, behind = address.partition("?")
    return behind if mark else address


# --- the exchange


@variant(f"{EXCHANGE}:exchange_form", catches=("flow-exchange-form", "flow-public-exchange-omits-secret"))
def an_empty_secret_is_sent(flow, code):
    """Posts client_secret= for a public client."""
    return {**exchange_form_rule(flow, code), "client_secret": flow.client_secret or ""}


@variant(f"{EXCHANGE}:exchange_form", catches=("flow-confidential-secret-post", "authorize-configured-secret-optional"))
def the_secret_is_not_in_the_form(flow, code):
    """Leaves it to a header."""
    return {name: value for name, value in exchange_form_rule(flow, code).items() if name != "client_secret"}


@variant(f"{EXCHANGE}:exchange_form", catches=("flow-public-exchange-relies-on-verifier", "flow-exchange-form"))
def a_public_client_proves_nothing(flow, code):
    """Leaves the verifier out."""
    return {name: value for name, value in exchange_form_rule(flow, code).items() if name != "code_verifier"}


@variant(
    f"{EXCHANGE}:exchange_form",
    catches=(
        "flow-exchange-persisted-values",
        "authorize-redirect-same-on-both-legs",
        "flow-manual-exchange-same-path",
    ),
)
def the_redirect_is_rebuilt_at_the_exchange(flow, code):
    """Sends the hosted callback of now."""
    return {**exchange_form_rule(flow, code), "redirect_uri": hosted_callback_rule(None)}


@variant(f"{EXCHANGE}:exchange_form", catches=("authorize-two-differences-only",))
def a_connectors_flow_has_no_indicator(flow, code):
    """A shorter path for who comes without a session."""
    left_out = "resource" if flow.session is None else ""
    return {name: value for name, value in exchange_form_rule(flow, code).items() if name != left_out}


@variant(f"{EXCHANGE}:exchange", catches=("flow-slack-tests-offline", "flow-slack-token-request"))
async def slack_is_always_the_real_one(world, flow, code):
    """Posts to slack.com, whatever the entry says."""
    if "slack" in flow.token_endpoint:
        flow = replace(flow, token_endpoint="https://slack.com/api/oauth.v2.user.access")
    return await exchange_rule(world, flow, code)


@variant(f"{EXCHANGE}:exchanged", catches=("flow-exchange-only-200", "flow-callback-outcomes"))
def every_answer_with_a_token_is_taken(response):
    """Looks into the body whatever the status is."""
    return token_answer_rule(parse_json(response.body.decode("utf-8", "replace")))


@variant(f"{TOKENS}:parse_body", catches=("flow-token-body-formats",))
def token_bodies_are_json(content_type, text):
    """Knows no other form, as GitHub's."""
    return parse_json(text)


@variant(f"{TOKENS}:token_source", catches=("flow-slack-unwrap-exchange",))
def only_the_top_level_is_read(body):
    """Finds no token in Slack's answer."""
    return body if body is not None and text_of(body.get("access_token")) is not None else None


@variant(f"{TOKENS}:token_source", catches=("flow-slack-top-level-first",))
def the_bots_token_comes_first(body):
    """Takes what stands at the top."""
    nested = (body or {}).get("authed_user")
    for candidate in (body, nested):
        if isinstance(candidate, Mapping) and text_of(candidate.get("access_token")) is not None:
            return candidate
    return None


@variant(f"{TOKENS}:token_members", catches=("flow-slack-not-ok-is-failure", "flow-exchange-only-200"))
def a_200_always_holds_a_token(body):
    """Stores what is not there."""
    members = token_members_rule(body)
    return (
        {"access_token": "none", "refresh_token": None, "scope": None, "expires_in": None}
        if members is None
        else members
    )


@variant(f"{TOKENS}:lifetime_seconds", catches=("authorize-expires-absent-null",))
def an_hour_where_nothing_is_said(value):
    """Lets a token that lasts expire."""
    return 3600.0 if value is None else float(value) if isinstance(value, int) else None


# --- what is stored


@variant(
    f"{TOKENS}:surviving_refresh_token",
    catches=(
        "authorize-reauth-keeps-stored-token", "flow-store-upsert-by-key", "authorize-kept-token-of-other-client",
    ),
)  # fmt: skip
def an_omitted_refresh_token_is_taken_back(stored, granted):
    """Makes a renewable credential a one-shot one."""
    return text_of(granted.refresh_token)


@variant(f"{TOKENS}:is_one_shot", catches=("authorize-flag-set-at-exchange", "authorize-note-while-green"))
def the_flag_waits_until_the_credential_lapses(survivor):
    """Says nothing while saying it would help."""
    return False


@variant(f"{TOKENS}:store_tokens", catches=("authorize-flag-from-survivor", "authorize-flag-never-contradicts"))
def the_flag_follows_the_answer(stored, granted):
    """Calls a row one-shot that holds a refresh token."""
    kept = text_of(granted.refresh_token) or (stored.refresh_token if stored is not None else None)
    return replace(granted, refresh_token=kept, refresh_token_unsupported=text_of(granted.refresh_token) is None)


@variant("harness.reference.credentials.state:credential_state", catches=("authorize-periodic-reauth-predicate",))
def the_flag_alone_decides(expires_in_s, refresh_token, token_endpoint, refresh_token_unsupported):
    """Warns of a credential that got a refresh token later."""
    state = credential_state_rule(expires_in_s, refresh_token, token_endpoint, refresh_token_unsupported)
    return state._replace(requires_periodic_reauth=refresh_token_unsupported)


@variant("harness.reference.credentials.state:can_refresh", catches=("authorize-no-refresh-token-is-one-shot",))
def a_refresh_needs_no_token(refresh_token, token_endpoint):
    """Tries with an empty one."""
    return bool(token_endpoint)


@variant(f"{FLOWS}:granted", catches=("flow-row-keeps-issuer-and-redirect",))
def the_issuer_is_dropped(flow, answer, now):
    """A Codex that wants the issuer never refreshes."""
    return replace(granted_rule(flow, answer, now), issuer=None, redirect_uri=None)


@variant(f"{FLOWS}:granted", catches=("authorize-credential-keyed-by-config",))
def a_credential_belongs_to_its_session(flow, answer, now):
    """No other session finds it."""
    return replace(granted_rule(flow, answer, now), credential_key=f"{flow.credential_key}|{flow.session}")


@variant(f"{FLOWS}:granted", catches=("authorize-replace-in-place", "authorize-concurrent-completions"))
def every_authorization_adds_a_row(flow, answer, now):
    """Two rows where there was one."""
    return replace(granted_rule(flow, answer, now), credential_key=f"{flow.credential_key}#{answer.access_token}")


# --- refusals on the way back


@variant(f"{WEB}:refusal", catches=("flow-callback-outcomes", "authorize-state-is-csrf-defense"))
def a_callback_is_never_refused(flow, parameters, now):
    """Exchanges what an expired flow, or a provider's error, brings."""
    return None, None


@variant(f"{WEB}:error_page", catches=("authorize-sessionless-callback-error-page",))
def a_failed_callback_leads_back_without_a_word(message):
    """The Connectors page, and nothing on it."""
    return error_page_rule(message)._replace(status=302, page="redirect", location="/connectors", message=None)


@variant(f"{INITIATION}:registration_failed", catches=("flow-registration-failure-message",))
def a_failed_registration_is_not_told(name):
    """One message for everything."""
    return Refused(f"Could not authorize {name}")
