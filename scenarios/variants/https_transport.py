"""Known-bad variants of the transport: what is posted where, and how long it may take."""

from __future__ import annotations

import re

from harness.reference.oauth import transport
from harness.reference.oauth.endpoints import acceptable_endpoint as acceptable_endpoint_rule
from harness.reference.oauth.transport import InsecureEndpointError, Target
from harness.reference.oauth.transport import form_target as form_target_rule
from harness.reference.oauth.transport import post_form as post_form_rule
from harness.reference.oauth.transport import post_json as post_json_rule
from harness.reference.oauth.transport import send as send_rule
from harness.requirements.variants import variant
from harness.world import NotSent, Request, header

TRANSPORT = "harness.reference.oauth.transport"


@variant("harness.reference.oauth.endpoints:read_endpoint", catches=("https-predicate-strict-whitespace",))
def blanks_are_trimmed(endpoint):
    """Reads the endpoint without the blanks around it."""
    from harness.reference.oauth.endpoints import ENDPOINT

    return ENDPOINT.fullmatch((endpoint or "").strip())


@variant("harness.reference.oauth.endpoints:acceptable_endpoint", catches=("https-userinfo-permitted",))
def userinfo_is_refused(endpoint):
    """Refuses userinfo, as the rule of the X credential does."""
    return acceptable_endpoint_rule(endpoint) and "@" not in endpoint


@variant(
    f"{TRANSPORT}:form_target",
    catches=(
        "https-post-form-raises",
        "https-no-loopback-exception",
        "https-post-json-registration",
        "https-remote-names-loopback",
        "https-registration-degrades",
        "https-post-form-tls-from-uri",
    ),
)
def tls_is_a_flag(endpoint):
    """Takes any URL; whether it is secure is somebody else's matter."""
    return Target(endpoint or "https://as.test/token")


@variant(f"{TRANSPORT}:form_target", catches=("https-userinfo-is-basic-auth",))
def userinfo_is_dropped(endpoint):
    """Sends no credentials where the endpoint holds them."""
    return form_target_rule(endpoint)._replace(authorization=None)


@variant(f"{TRANSPORT}:basic_authorization", catches=("https-userinfo-is-basic-auth",))
def userinfo_stays_encoded(userinfo):
    """Sends a percent-encoded secret as it stands in the URL."""
    from base64 import b64encode

    return None if userinfo in (None, "", ":") else f"Basic {b64encode(userinfo.encode()).decode()}"


async def opened_all_the_same(world, endpoint, form, headers):
    """Open the connection first and complain later."""
    if endpoint:
        try:
            await send_rule(world, Request("POST", endpoint, headers, transport.encoded_form(form)))
        except NotSent:
            return


@variant(f"{TRANSPORT}:post_form", catches=("https-post-form-raises", "https-remote-names-loopback"))
async def the_form_is_sent_before_it_is_refused(world, endpoint, form, *, authorization=None):
    """Posts, then raises."""
    if not acceptable_endpoint_rule(endpoint):
        await opened_all_the_same(world, endpoint, form, {})
        raise InsecureEndpointError(endpoint)
    return await post_form_rule(world, endpoint, form, authorization=authorization)


@variant(f"{TRANSPORT}:post_json", catches=("https-post-json-registration",))
async def registration_is_not_guarded(world, endpoint, body):
    """Guards the token endpoint only: a fresh client secret comes back in cleartext."""
    if acceptable_endpoint_rule(endpoint):
        return await post_json_rule(world, endpoint, body)
    await opened_all_the_same(world, endpoint, {}, {})
    raise InsecureEndpointError(endpoint)


@variant(f"{TRANSPORT}:post_form", catches=("https-no-config-switch",))
async def a_variable_relaxes_the_rule(world, endpoint, form, *, authorization=None):
    """Allows http where a variable of the environment says so."""
    variables = getattr(getattr(world, "env", None), "variables", {})
    if endpoint and not acceptable_endpoint_rule(endpoint) and variables["ALLOW_INSECURE_OAUTH"]:
        return await send_rule(world, Request("POST", endpoint, {}, transport.encoded_form(form)))
    return await post_form_rule(world, endpoint, form, authorization=authorization)


@variant(f"{TRANSPORT}:exchange", catches=("flow-timeouts-30s",))
async def reading_is_not_bounded(world, request):
    """Leaves the read timeout to the library."""
    return await world.http.send(request, open_timeout_seconds=30.0, read_timeout_seconds=3_600.0)


@variant(f"{TRANSPORT}:send", catches=("https-redirect-not-followed", "requirement-no-redirect-following"))
async def redirects_are_followed(world, request):
    """Goes with method and body wherever it is sent."""
    response = await send_rule(world, request)
    if response.status in (301, 302, 303, 307, 308):
        place = header(response.headers, "Location")
        return await send_rule(world, request._replace(url=place)) if place else response
    return response


@variant(f"{TRANSPORT}:send", catches=("flow-trickling-as-bounded",))
async def only_a_silence_is_bounded(world, request):
    """Waits as long as something comes."""
    return await transport.exchange(world, request)


@variant(f"{TRANSPORT}:bounded", catches=("flow-trickling-as-bounded", "refresh-unexpected-error-class"))
def as_much_is_read_as_comes(response):
    """Takes a body of any length, and stores what it calls a token."""
    return response


@variant(f"{TRANSPORT}:bounded", catches=("flow-trickling-as-bounded",))
def what_is_too_long_is_cut_off(response):
    """Takes the beginning for the whole."""
    return response._replace(body=response.body[: transport.MOST_BODY_BYTES])


@variant("harness.reference.oauth.endpoints:shown_endpoint", catches=("https-secrets-not-in-logs",))
def the_whole_endpoint_is_shown(endpoint):
    """Logs the endpoint with its userinfo."""
    return re.sub(r"\s", "", endpoint or "")


@variant("harness.reference.oauth.endpoints:acceptable_endpoint", catches=("https-local-mcp-server-refused",))
def a_local_server_may_stay_in_cleartext(endpoint):
    """Lets a server on this machine work over http."""
    return acceptable_endpoint_rule(endpoint) or re.match(r"http://(localhost|127\.)", endpoint or "") is not None
