"""Known-bad variants of authorizing a connector: the button, the click, whose client, and where it all returns to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fake_servers.oauth.authorization import AuthorizationServer
from fake_servers.oauth.clients import Client as RegisteredAtProvider
from harness.reference.credentials import table
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import state_at
from harness.reference.oauth import flows
from harness.reference.oauth.check import check_oauth_requirement
from harness.reference.oauth.clients import Client
from harness.reference.oauth.clients import catalog_client as catalog_client_rule
from harness.reference.oauth.consent import authorization_url
from harness.reference.oauth.initiation import Grounds, Refused
from harness.reference.oauth.initiation import discovered_grounds as discovered_grounds_rule
from harness.reference.oauth.initiation import entry_for as entry_for_rule
from harness.reference.oauth.initiation import off_catalog_entry as off_catalog_entry_rule
from harness.reference.oauth.initiation import planned_flow as planned_flow_rule
from harness.reference.oauth.registration import flow_client as flow_client_rule
from harness.reference.oauth.registration import register as register_rule
from harness.reference.oauth.server import remote_server
from harness.reference.oauth.urls import read_url
from harness.reference.oauth.web import Answer
from harness.reference.oauth.web import completed as completed_rule
from harness.reference.session.resume import resume_after_authorization
from harness.reference.surfaces.authorization import Button
from harness.reference.surfaces.authorization import row_button as row_button_rule
from harness.requirements.variants import variant

CLIENTS = "harness.reference.oauth.clients"
CONSENT = "harness.reference.oauth.consent"
ENDPOINTS = "harness.reference.oauth.endpoints"
INITIATION = "harness.reference.oauth.initiation"
REGISTRATION = "harness.reference.oauth.registration"
SURFACE = "harness.reference.surfaces.authorization"
WEB = "harness.reference.oauth.web"
AUTHORIZE = AuthorizationServer._authorize

# --- the button


@variant(f"{SURFACE}:row_button", catches=("authorize-row-posts-initiate",))
def the_connectors_page_has_an_endpoint_of_its_own(server_name, state):
    """Discovery code a second time."""
    return replace(row_button_rule(server_name, state), action="/connectors/authorize")


@variant(f"{SURFACE}:button_label", catches=("authorize-button-label",))
def one_label_for_both(state):
    """Does not tell a first authorization from another one."""
    return "Authorize"


@variant(
    f"{SURFACE}:authorize_button",
    catches=(
        "authorize-button-states", "authorize-no-button-token-expired", "authorize-no-button-missing-config",
        "authorize-no-button-static-header",
    ),
)  # fmt: skip
def every_row_has_the_button(status):
    """Offers a consent screen that cures nothing."""
    return Button("Authorize", "/mcp_oauth/initiate", {"server_name": status.name})


@variant("harness.reference.oauth.capability:is_credential_name", catches=("authorize-no-button-static-header",))
def a_fixed_list_of_credential_headers(name):
    """Knows two spellings."""
    return name.lower() in ("authorization", "x-api-key")


@variant(f"{SURFACE}:one_shot_note", catches=("authorize-note-while-green",))
def the_note_waits_for_the_lapse(row, now):
    """Says it when nothing can be done any more."""
    return None if row is None or state_at(row, now).active else "one-shot"


@variant(f"{SURFACE}:is_protected", catches=("authorize-forgery-exempt-actions", "flow-forgery-exempt-routes"))
def nothing_is_protected(action):
    """Skips forgery protection for the whole controller."""
    return False


# --- which server


@variant(
    f"{INITIATION}:entry_for",
    catches=(
        "authorize-sessionless-catalog-only", "authorize-off-catalog-in-session-gap", "flow-initiate-catalog-url-only",
    ),
)  # fmt: skip
def the_gap_is_open_to_everybody(deps, name, session, server_url):
    """Takes a submitted address without a session too."""
    found = entry_for_rule(deps, name, session, server_url)
    return found if found is not None else off_catalog_entry_rule(name or "x", server_url)


@variant(f"{INITIATION}:entry_for", catches=("authorize-sessionless-capable-only",))
def every_server_of_the_catalog_is_authorized(deps, name, session, server_url):
    """A stdio server, or one with a static header."""
    found = deps.catalog.find(name)
    return found if found is not None else entry_for_rule(deps, name, session, server_url)


@variant(f"{INITIATION}:entry_for", catches=("authorize-url-from-catalog", "flow-initiate-catalog-url-only"))
def the_submitted_address_is_preferred(deps, name, session, server_url):
    """A forged request chooses whom Zimmer asks."""
    submitted = off_catalog_entry_rule(name, server_url)
    return submitted if submitted is not None else entry_for_rule(deps, name, session, server_url)


@variant(f"{INITIATION}:entry_for", catches=("authorize-sessionless-ignores-url",))
def a_malformed_address_fails_the_click(deps, name, session, server_url):
    """Validates what it should not even read."""
    if server_url and read_url(server_url) is None:
        return None
    return entry_for_rule(deps, name, session, server_url)


@variant(f"{INITIATION}:off_catalog_entry", catches=("authorize-off-catalog-https-guard",))
def any_address_is_fetched(name, server_url):
    """Hands the text to whatever opens it."""
    return off_catalog_entry_rule(name, "https://s3cr3t/x")


@variant(f"{INITIATION}:resolved_server", catches=("flow-uses-resolved-url",))
def the_raw_text_is_probed(deps, entry):
    """Asks a host that is named like a variable."""
    return remote_server(entry, lambda name: f"${{{name}}}")


@variant(f"{WEB}:permitted", catches=("authorize-request-cannot-invent-target",))
def the_whole_form_is_permitted(fields):
    """Endpoints, client and redirect from the request."""
    return {name: value for name, value in fields.items() if name in flows.COLUMNS and name != "session"}


@variant(f"{INITIATION}:is_authorized", catches=("authorize-expired-row-does-not-shortcut",))
async def a_row_is_enough(world, entry):
    """Re-authorize leads straight back."""
    return await table.find(world, credential_key(entry.name, entry.credential_config())) is not None


# --- whose client


@variant(
    f"{REGISTRATION}:flow_client",
    catches=("authorize-client-id-order", "authorize-configured-skips-dcr", "flow-registration-when"),
)
async def registration_comes_first(world, discovered, redirect_uri, configured):
    """Falls back to the configured client."""
    if discovered.registration_endpoint is None:
        return await flow_client_rule(world, discovered, redirect_uri, configured)
    return await register_rule(world, discovered, redirect_uri) or configured


@variant(
    f"{REGISTRATION}:flow_client",
    catches=(
        "authorize-zimmer-literal-last", "authorize-failed-dcr-is-no-client", "flow-client-id-fallback",
        "flow-registration-failure-message",
    ),
)  # fmt: skip
async def zimmer_where_registration_fails(world, discovered, redirect_uri, configured):
    """Sends a user to a consent page that knows no such client."""
    return await flow_client_rule(world, discovered, redirect_uri, configured) or Client("zimmer")


@variant(f"{CLIENTS}:catalog_client", catches=("authorize-configured-verbatim",))
def a_client_id_is_a_number(entry):
    """Loses digits."""
    found = catalog_client_rule(entry)
    if found is None or not found.client_id.replace(".", "", 1).isdigit():
        return found
    return found._replace(client_id=str(float(found.client_id)))


@variant(
    f"{CLIENTS}:catalog_client", catches=("authorize-configured-secret-optional", "flow-public-client-catalog-block")
)
def a_catalogs_client_needs_a_secret(entry):
    """Registers where a public client is configured."""
    found = catalog_client_rule(entry)
    return found if found is not None and found.client_secret else None


@variant(
    "harness.reference.catalog.entry:oauth_member",
    catches=("authorize-oauth-block-spelling", "flow-catalog-oauth-block-names"),
)
def the_block_is_read_in_snake_case(raw, camel_case, snake_case):
    """Misses what the published spelling says."""
    value = raw.get(snake_case)
    return value if isinstance(value, str) and value.strip() else None


@variant(f"{INITIATION}:discovered_grounds", catches=("authorize-oauth-block-still-discovers",))
async def endpoints_are_guessed(world, server, redirect_uri, *, path_forms):
    """Skips discovery where the catalog names a client."""
    client = catalog_client_rule(server.entry)
    if client is None:
        return await discovered_grounds_rule(world, server, redirect_uri, path_forms=path_forms)
    origin = server.url.removesuffix("/mcp")
    return Grounds(f"{origin}/authorize", f"{origin}/token", client, None, server.url)


@variant(
    f"{INITIATION}:planned_flow",
    catches=("authorize-preregistered-bypasses-discovery", "flow-preregistered-skips-discovery"),
)
async def everybody_is_discovered(world, deps, name, session, server_url):
    """Probes a server whose client was registered by hand."""
    entry = deps.catalog.find(name)
    if entry is not None and entry.remote:
        server = remote_server(entry, lambda _: "x")
        await check_oauth_requirement(world, server, configured=None, redirect_uri="http://h/cb")
    return await planned_flow_rule(world, deps, name, session, server_url)


@variant(
    f"{CLIENTS}:configured_redirect",
    catches=(
        "authorize-redirect-configured-wins",
        "authorize-slack-catalog-block-scenario",
        "authorize-redirect-in-dcr",
    ),
)
def the_catalogs_redirect_is_not_read(entry, registered):
    """Honours a redirect of clients registered by hand alone."""
    return registered.redirect_uri if registered is not None else None


@variant(f"{CONSENT}:joined_scopes", catches=("authorize-scopes-joined-as-advertised", "flow-scopes-source"))
def scopes_are_sorted(scopes):
    """Sorts, and drops what comes twice."""
    return " ".join(sorted(set(scopes)))


@variant(
    f"{CONSENT}:joined_scopes", catches=("authorize-never-asks-offline-access", "authorize-scopes-joined-as-advertised")
)
def offline_access_is_always_asked_for(scopes):
    """Some servers refuse the whole request."""
    return " ".join(dict.fromkeys((*scopes, "offline_access")))


# --- https


@variant(
    f"{ENDPOINTS}:acceptable_endpoint",
    catches=(
        "https-initiate-refuses-before-consent", "https-initiate-covers-preregistered",
        "https-initiate-flash-names-endpoint", "https-local-mcp-server-refused", "https-remote-names-loopback",
    ),
)  # fmt: skip
def http_will_do(endpoint):
    """A code is minted for an endpoint that must not be talked to."""
    return (endpoint or "").startswith("http")


@variant(f"{INITIATION}:insecure", catches=("https-initiate-flash-names-endpoint", "https-local-mcp-server-refused"))
def a_refusal_names_nothing(name, token_endpoint):
    """Leaves an operator to guess."""
    return Refused(f"Could not authorize {name}")


# --- where it returns to


@variant(f"{WEB}:return_place", catches=("authorize-sessionless-returns-connectors",))
def there_is_always_a_session(session):
    """A page of a session that is not there."""
    return f"/sessions/{session or ''}"


@variant(f"{WEB}:completed", catches=("authorize-sessionless-resumes-nothing",))
async def whoever_is_parked_is_resumed(world, deps, flow):
    """Calls the resume service without a session."""
    for row in await world.store.rows("sessions"):
        await resume_after_authorization(world, row.key, deps, flow.server_name)
    return await completed_rule(world, deps, flow)


@variant(f"{INITIATION}:planned_flow", catches=("authorize-no-session-created",))
async def a_session_is_thrown_away(world, deps, name, session, server_url):
    """Hangs the flow on a session of its own."""
    plan = await planned_flow_rule(world, deps, name, session, server_url)
    if isinstance(plan, Refused) or session is not None:
        return plan
    transaction = await world.store.begin()
    await transaction.put("sessions", "throwaway", {"status": "failed"})
    await transaction.commit()
    return replace(plan, session="throwaway")


@variant(
    f"{WEB}:paste_page",
    catches=(
        "authorize-manual-completes-at-complete",
        "flow-manual-renders-page",
        "flow-manual-page-explains-dead-page",
    ),
)
def a_manual_flow_redirects(flow, status, message=None):
    """Leads to a page that nobody serves, and no way back."""
    return Answer(302, "redirect", authorization_url(flow), message, flow.state, link=authorization_url(flow))


@variant(f"{WEB}:exchange_and_store", catches=("flow-zimmer-runs-whole-flow",))
async def the_runtime_may_log_in_itself(world, flow, code):
    """Leaves the exchange to somebody else."""
    return True


@variant("harness.reference.session.injection:hand_over", catches=("flow-tokens-land-in-runtime-store",))
async def tokens_stay_in_the_database(world, writer, servers):
    """No runtime ever finds one."""
    return ()


@variant("harness.reference.credentials.cron:run_refresh_job", catches=("authorize-reauth-is-manual",))
async def a_lapse_starts_a_consent(world, writers, *, keys=None, attempt=0, failed_at=None):
    """A flow that nobody has clicked for."""
    for row in await table.all_rows(world):
        if state_at(row, world.clock.now()).requires_reauth:
            flow = flows.PendingFlow(
                "", row.server_name, row.server_url, "", "https://notion.test/authorize", "https://notion.test/token",
                row.client_id, "https://h/cb", 0.0, {}, row.credential_key,
            )  # fmt: skip
            await flows.start(world, flow)


# --- a provider that lets everything pass


@variant(
    "fake_servers.oauth.authorization:AuthorizationServer._authorize", catches=("authorize-slack-literal-rejected",)
)
def a_provider_takes_every_client(self, asked):
    """Nobody notices that a client is not Slack's."""
    client_id = asked.fields.get("client_id", "")
    self.clients.setdefault(client_id, RegisteredAtProvider(client_id))
    return AUTHORIZE(self, asked)


@variant("fake_servers.oauth.codes:untrusted", catches=("authorize-slack-redirect-rejected",))
def a_provider_takes_every_redirect(client, fields, provider):
    """Nobody notices that the configured redirect was dropped."""
    return None if isinstance(fields, Mapping) and client is not None else "invalid_client_id"
