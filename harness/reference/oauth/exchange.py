"""The code for tokens: one form to the token endpoint, and what its answer is worth (RFC 6749 section 4.1.3)."""

from __future__ import annotations

from harness.reference.oauth.flows import PendingFlow
from harness.reference.oauth.tokens import TokenAnswer, parse_body, token_answer
from harness.reference.oauth.transport import InsecureEndpointError, post_form
from harness.reference.secrets.blank import is_blank
from harness.world import Ambiguous, NotSent, Response, World, header

SUCCESS = 200


def exchange_form(flow: PendingFlow, code: str) -> dict[str, str]:
    """The form of the exchange: the flow's own verifier and redirect URI; secret and resource where not blank."""
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": flow.redirect_uri,
        "code_verifier": flow.code_verifier,
        "client_id": flow.client_id,
    }
    optional = {"client_secret": flow.client_secret, "resource": flow.resource}
    return form | {name: str(value) for name, value in optional.items() if not is_blank(value)}


async def exchange(world: World, flow: PendingFlow, code: str) -> TokenAnswer | None:
    """Post the code once. None where no usable token came back: whatever happened, it is not posted again here."""
    try:
        response = await post_form(world, flow.token_endpoint, exchange_form(flow, code))
    except (NotSent, Ambiguous, InsecureEndpointError) as error:
        log_failure(world, flow, type(error).__name__)
        return None
    answer = exchanged(response)
    if answer is None:
        log_failure(world, flow, f"status {response.status}")
    return answer


def exchanged(response: Response) -> TokenAnswer | None:
    """The tokens of an answer; only 200 can hold any (flow-exchange-only-200)."""
    if response.status != SUCCESS:
        return None
    text = response.body.decode("utf-8-sig", "replace")
    return token_answer(parse_body(header(response.headers, "Content-Type"), text))


def log_failure(world: World, flow: PendingFlow, what: str) -> None:
    """Say that it failed and at what, never what was sent or answered (https-secrets-not-in-logs)."""
    world.events.emit("log", level="error", text=f"Token exchange for {flow.server_name} failed: {what}")
