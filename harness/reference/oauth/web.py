"""The three OAuth endpoints: start a flow, take the provider's redirect, take what a person pasted.

Source: seed 002 "Authorizing from the Connectors page", "Manual (paste-back) completion", "Anyone who can reach the
host can start an OAuth flow". A flow with a session and one without go through the same code; they differ in where
they return to, and in the session that is resumed (authorize-two-differences-only). Nobody is asked who they are: a
known gap, and the state of a flow is all that protects its completion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from harness.reference.credentials import table
from harness.reference.credentials.writers.registry import forget_refusal
from harness.reference.oauth import flows
from harness.reference.oauth.consent import authorization_url
from harness.reference.oauth.deps import OAuthDeps
from harness.reference.oauth.exchange import exchange
from harness.reference.oauth.flows import PendingFlow, SessionGoneError, granted
from harness.reference.oauth.initiation import Refused, planned_flow
from harness.reference.oauth.paste import pasted_code
from harness.reference.secrets.blank import is_blank
from harness.reference.session import rows as sessions
from harness.reference.session.resume import handed_over, note_current_key, resume_after_authorization
from harness.world import World

__all__ = ["Answer", "OAuthDeps", "callback", "complete", "initiate"]

CONNECTORS = "/connectors"
OK, FOUND, BAD_REQUEST, NOT_FOUND = 200, 302, 400, 404

MISSING_STATE = "Missing state parameter"
UNKNOWN_FLOW = "OAuth flow not found. It may have expired."
EXPIRED_FLOW = "OAuth flow has expired. Please try again."
UNKNOWN_SESSION = "Session not found."
NO_CODE = "No authorization code received from OAuth provider."
NOT_EXCHANGED = "Failed to exchange authorization code for tokens. Please try again."
NOTHING_PASTED = (
    "There is no authorization code in what was pasted, or its state belongs to another flow. Paste the whole address"
    " that your browser ended on (it holds ?code=...&state=...), or the code alone."
)
PASTE_TEXTS = (
    (
        "Open the link and consent. Your browser then tries to open a localhost page, and that page will not load:"
        " this is expected, as nothing listens there."
    ),
    "Copy the whole address from the address bar (it holds ?code=...&state=...) and paste it here.",
)
SHOWN_CHARACTERS = 300
PERMITTED_FIELDS: tuple[str, ...] = ()


class Answer(NamedTuple):
    """What a browser gets. `location` is where it is redirected to; `message` a flash, or an error's text.

    On the page "paste", `link` leads to the consent screen, `flow_state` goes into the form, `texts` explain.
    """

    status: int
    page: Literal["redirect", "paste", "error"]
    location: str | None = None
    message: str | None = None
    flow_state: str | None = None
    notice: bool = False
    texts: tuple[str, ...] = ()
    link: str | None = None


def return_place(session: str | None) -> str:
    """Where a flow puts its user when it is over, whichever way."""
    return CONNECTORS if session is None else f"/sessions/{session}"


# --- starting


async def initiate(
    world: World,
    deps: OAuthDeps,
    *,
    server_name: str | None,
    session: str | None = None,
    server_url: str | None = None,
    extra: Mapping[str, str] | None = None,
) -> Answer:
    """Start a flow for a server. Of the request only the two names count; `server_url` for a server that the catalog
    does not have, in a session alone, which is a known gap; of `extra`, all other fields of the form, nothing.

    Emits `oauth.started` (server, manual) or `oauth.refused` (server, text).
    """
    session = None if is_blank(session) else session
    name = server_name or ""
    if session is not None and not await is_session(world, session):
        return Answer(NOT_FOUND, "error", message=UNKNOWN_SESSION)
    plan = await planned_flow(world, deps, name, session, server_url)
    if isinstance(plan, Refused):
        return await not_started(world, deps, name, session, plan)
    plan = replace(plan, **permitted(extra or {}))
    await flows.sweep_expired_session_less(world)
    try:
        flow = await flows.start(world, plan)
    except SessionGoneError:
        return Answer(NOT_FOUND, "error", message=UNKNOWN_SESSION)
    world.events.emit("oauth.started", server=name, manual=flow.manual)
    return paste_page(flow, OK) if flow.manual else Answer(FOUND, "redirect", authorization_url(flow), None, flow.state)


def permitted(fields: Mapping[str, str]) -> dict[str, Any]:
    """What a request may say of the flow beyond the two names: nothing (authorize-request-cannot-invent-target)."""
    return {name: value for name, value in fields.items() if name in PERMITTED_FIELDS}


async def is_session(world: World, session: str) -> bool:
    """Whether a session is there."""
    transaction = await world.store.begin()
    row = await transaction.get(sessions.TABLE, session)
    await transaction.rollback()
    return row is not None


async def not_started(world: World, deps: OAuthDeps, name: str, session: str | None, refused: Refused) -> Answer:
    """The way back without a flow. A server that is authorized already is a notice, and a session's retry."""
    text = refused.text
    if refused.authorized and session is not None:
        retried = await is_retried_without_flow(world, deps, name, session, refused.credential_key)
        text = f"{name} is already authorized — retrying the session." if retried else text
    if not refused.authorized:
        world.events.emit("oauth.refused", server=name, text=text)
    return Answer(FOUND, "redirect", return_place(session), text, notice=refused.authorized)


async def is_retried_without_flow(world: World, deps: OAuthDeps, name: str, session: str, key: str) -> bool:
    """End the flow that the session has for this server, and retry; whether the session goes on now.

    A tab that was clicked earlier may store its flow only after that, and would park the session for a day: once more.
    """
    await flows.delete_of_pair(world, session, name, key)
    await note_current_key(world, session, name, key)
    while not await is_retried(world, deps, name, session):
        if not await flows.delete_of_pair(world, session, name, key):
            return False
    return True


async def is_retried(world: World, deps: OAuthDeps, name: str, session: str) -> bool:
    """Hand a session's runtime the credential that is there already, and resume; whether the session goes on now.

    Whoever clicks Authorize with an active credential has a runtime that never honoured it. A runtime's store that
    fails costs the retry, not the click (gate-initiate-short-circuit-retries).
    """
    if not await handed_over(world, session, deps, name):
        return False
    return await resume_after_authorization(world, session, deps, None) == "resumed"


def paste_page(flow: PendingFlow, status: int, message: str | None = None) -> Answer:
    """The page of a manual flow: the link to the consent screen and one field; it redirects nowhere."""
    return Answer(status, "paste", None, message, flow.state, texts=PASTE_TEXTS, link=authorization_url(flow))


# --- coming back


async def callback(world: World, deps: OAuthDeps, parameters: Mapping[str, str]) -> Answer:
    """The provider's redirect to the hosted callback. Whatever it brings, the flow is over afterwards.

    Emits `oauth.completed` (server) or `oauth.failed` (server, text).
    """
    state = parameters.get("state")
    if is_blank(state):
        return error_page(MISSING_STATE)
    flow = await flows.claim(world, str(state))
    if flow is None:
        return error_page(UNKNOWN_FLOW)
    problem, told = refusal(flow, parameters, world.clock.now())
    if problem is None and await exchange_and_store(world, flow, parameters["code"]):
        return await completed(world, deps, flow)
    world.events.emit("oauth.failed", server=flow.server_name, text=told or NOT_EXCHANGED)
    return error_page(problem or NOT_EXCHANGED)


def refusal(flow: PendingFlow, parameters: Mapping[str, str], now: float) -> tuple[str | None, str | None]:
    """Why nothing is exchanged, as a person reads it and as the log does: without the provider's own words."""
    if flows.is_expired(flow, now):
        return EXPIRED_FLOW, EXPIRED_FLOW
    if not is_blank(parameters.get("error")):
        words = parameters.get("error_description")
        text = str(parameters["error"] if is_blank(words) else words)[:SHOWN_CHARACTERS]
        return f"OAuth authorization failed: {text}", "OAuth authorization failed"
    if is_blank(parameters.get("code")):
        return NO_CODE, NO_CODE
    return None, None


async def complete(world: World, deps: OAuthDeps, *, state: str | None, pasted: str | None) -> Answer:
    """What a person pasted into the page of the flow with this state. After a bad paste or a failed exchange the flow
    is there for another try, unlike at the callback. Emits as `callback`.
    """
    if is_blank(state):
        return error_page(MISSING_STATE)
    flow = await flows.find(world, str(state))
    if flow is None:
        return error_page(UNKNOWN_FLOW)
    if flows.is_expired(flow, world.clock.now()):
        await flows.claim(world, flow.state)
        return error_page(EXPIRED_FLOW)
    code = pasted_code(pasted, flow.state)
    if code is None:
        return paste_page(flow, BAD_REQUEST, NOTHING_PASTED)
    if await flows.claim(world, flow.state) is None:
        return error_page(UNKNOWN_FLOW)
    if await exchange_and_store(world, flow, code):
        return await completed(world, deps, flow)
    await flows.give_back(world, flow)
    world.events.emit("oauth.failed", server=flow.server_name, text=NOT_EXCHANGED)
    return paste_page(flow, BAD_REQUEST, NOT_EXCHANGED)


async def exchange_and_store(world: World, flow: PendingFlow, code: str) -> bool:
    """Exchange the code of a claimed flow and store what it gives over the row of the same key; False: nothing."""
    answer = await exchange(world, flow, code)
    if answer is None:
        return False
    await table.store(world, granted(flow, answer, world.clock.now()))
    return True


async def completed(world: World, deps: OAuthDeps, flow: PendingFlow) -> Answer:
    """Back to where the flow began; a session that waits for it is resumed, and without one nothing is.

    The resume ends a flow that another tab of that session has begun for the same server meanwhile.
    """
    world.events.emit("oauth.completed", server=flow.server_name)
    await forget_refusal(world, flow.server_name)
    if flow.session is not None:
        await note_current_key(world, flow.session, flow.server_name, flow.credential_key)
        await resume_after_authorization(world, flow.session, deps, flow.server_name)
    return Answer(
        FOUND, "redirect", return_place(flow.session), f"Successfully authorized {flow.server_name}", notice=True
    )


def error_page(message: str) -> Answer:
    """The one error page, with and without a session."""
    return Answer(BAD_REQUEST, "error", message=message)
