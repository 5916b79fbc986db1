"""The way to the consent screen: redirect URI, paste-back or not, PKCE challenge, authorization URL. Pure.

Source: seed 002 "client_id resolution order", "Paste-back is derived from the redirect URI, not a per-server flag".
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Collection
from hashlib import sha256
from urllib.parse import quote, unquote_plus, urlencode, urlsplit

from harness.reference.oauth.flows import PendingFlow
from harness.reference.oauth.urls import read_url
from harness.reference.secrets.blank import is_blank

CALLBACK_PATH = "/mcp_oauth/callback"
DEFAULT_HOST = "localhost:3000"
CHALLENGE_METHOD = "S256"
GOOGLE = "google.com"
KEPT = "%!$()*+,;=:@/?"
"""What stays in a query as it is: what may stand there and ends no quotation, and the sign of what is encoded."""


def hosted_callback(app_host: str | None) -> str:
    """The callback that Zimmer serves itself; http only where the host holds `localhost`."""
    host = DEFAULT_HOST if is_blank(app_host) else str(app_host)
    return f"{'http' if 'localhost' in host else 'https'}://{host}{CALLBACK_PATH}"


def redirect_uri_for(configured: str | None, app_host: str | None) -> str:
    """The redirect URI of a flow: the configured one, else the hosted callback."""
    return hosted_callback(app_host) if is_blank(configured) else str(configured)


def is_manual(redirect_uri: str | None, app_host: str | None, *, forced: bool = False) -> bool:
    """Whether a person must paste the answer back: Zimmer never sees a redirect that is not its own callback.

    Compared byte for byte; what a redirect looks like decides nothing (authorize-completion-not-by-loopback). `forced`
    is the flag of a client registered by hand.
    """
    return forced or (not is_blank(redirect_uri) and redirect_uri != hosted_callback(app_host))


def challenge(verifier: str) -> str:
    """The S256 code challenge of a verifier: unpadded base64url of its SHA-256 (RFC 7636)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")


def authorization_url(flow: PendingFlow) -> str:
    """The address of the consent screen. A query that the endpoint has is kept, ours wins; a fragment is dropped."""
    parts = urlsplit(flow.authorization_endpoint)
    ours = authorization_parameters(flow)
    return parts._replace(query="&".join([*kept_query(parts.query, ours), urlencode(ours)]), fragment="").geturl()


def kept_query(query: str, ours: Collection[str]) -> list[str]:
    """The pieces of an endpoint's own query, each as its provider wrote it, without those that ours replace.

    Decoding a value and encoding it anew would change one that is no UTF-8. What may stand in no URL is encoded.
    """
    pieces = [piece for piece in query.split("&") if piece]
    return [quote(piece, safe=KEPT) for piece in pieces if unquote_plus(piece.partition("=")[0]) not in ours]


def authorization_parameters(flow: PendingFlow) -> dict[str, str]:
    """The parameters of an authorization request; scope and resource only where they are not blank."""
    parameters = {
        "response_type": "code",
        "client_id": flow.client_id,
        "redirect_uri": flow.redirect_uri,
        "state": flow.state,
        "code_challenge": challenge(flow.code_verifier),
        "code_challenge_method": CHALLENGE_METHOD,
    }
    optional = {"scope": flow.scopes, "resource": flow.resource}
    parameters |= {name: str(value) for name, value in optional.items() if not is_blank(value)}
    if is_google(flow.authorization_endpoint):
        parameters |= {"access_type": "offline", "prompt": "consent"}
    return parameters


def is_google(authorization_endpoint: str) -> bool:
    """Google gives a refresh token only where these two parameters ask for it; it knows no offline_access scope."""
    host = urlsplit(authorization_endpoint).hostname or ""
    return host == GOOGLE or host.endswith(f".{GOOGLE}")


def joined_scopes(scopes: tuple[str, ...]) -> str | None:
    """The scope parameter: what is advertised, as advertised, nothing added; None where nothing is."""
    return " ".join(scopes) if scopes else None


def is_consent_page(authorization_endpoint: str | None) -> bool:
    """Whether a browser may be sent there: an http(s) address with a host.

    It comes out of a server's own metadata, and becomes a link and a Location header.
    """
    return read_url(authorization_endpoint) is not None
