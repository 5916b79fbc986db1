"""The ways into the OAuth endpoints: the Authorize button of a Connectors row, that of a session's banner, the routes.

Source: seed 002 "Authorizing from the Connectors page", "Anyone who can reach the host can start an OAuth flow".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import state_at
from harness.reference.readiness.probe import Status
from harness.reference.readiness.states import State
from harness.reference.surfaces.connectors import offers_authorize

INITIATE = "/mcp_oauth/initiate"
LABELS = {State.NEEDS_AUTHORIZATION: "Authorize", State.NEEDS_REAUTH: "Re-authorize"}
BANNER_LABEL = "Authorize"
ONE_SHOT_NOTE = "This server issues no refresh token: the credential cannot be renewed and will need authorizing again."


@dataclass(frozen=True, slots=True)
class Button:
    """A form with one button: where it goes, how, with which fields."""

    label: str
    action: str
    fields: Mapping[str, str] = field(default_factory=dict)
    method: str = "post"


class Route(NamedTuple):
    """A route of the OAuth controller. `protected`: it refuses a request without the framework's anti-forgery token."""

    method: str
    path: str
    action: str
    protected: bool


EXEMPT_ACTIONS = ("callback", "initiate", "complete")
"""The state of a flow protects them, as a page may stand open over a deployment that ends its token."""
OAUTH_ACTIONS = (
    ("GET", "/mcp_oauth/status/:session_id", "status"),
    ("POST", INITIATE, "initiate"),
    ("GET", "/mcp_oauth/callback", "callback"),
    ("POST", "/mcp_oauth/complete", "complete"),
    ("DELETE", "/mcp_oauth/credentials/:key", "destroy"),
)


def authorize_button(status: Status) -> Button | None:
    """The button of a Connectors row: where a consent screen is the fix, and nowhere else (authorize-button-states)."""
    return row_button(status.name, status.state) if offers_authorize(status) else None


def row_button(server_name: str, state: State) -> Button:
    """A row's button names the server and nothing else: a connector is authorized for Zimmer, not for a session."""
    return Button(button_label(state), INITIATE, {"server_name": server_name})


def button_label(state: State) -> str:
    """What the button says in a state that has one."""
    return LABELS[state]


def banner_button(server_name: str, session: str) -> Button:
    """The button of a session that waits for this server: the same endpoint, and the session beside the name."""
    return Button(BANNER_LABEL, INITIATE, {"server_name": server_name, "session_id": session})


def one_shot_note(row: Credential | None, now: float) -> str | None:
    """The amber line of a row that cannot be renewed, from the exchange on and while it is still good."""
    return ONE_SHOT_NOTE if row is not None and state_at(row, now).requires_periodic_reauth else None


def routes() -> tuple[Route, ...]:
    """The routes of the OAuth controller, and which of them are protected."""
    return tuple(Route(method, path, action, is_protected(action)) for method, path, action in OAUTH_ACTIONS)


def is_protected(action: str) -> bool:
    """Whether an action asks for the anti-forgery token."""
    return action not in EXEMPT_ACTIONS


def is_admitted(method: str, action: str, *, has_token: bool) -> bool:
    """Whether a request reaches its action. Reading is never refused, and nobody is asked who they are: a known gap."""
    return has_token or method == "GET" or not is_protected(action)
