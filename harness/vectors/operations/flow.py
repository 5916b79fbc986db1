"""Vectors of the area `flow`: client, redirect, consent, what is pasted, the exchange and what it stores."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from harness.reference.catalog.entry import oauth_block
from harness.reference.credentials.row import Credential
from harness.reference.oauth import consent
from harness.reference.oauth.exchange import exchange_form
from harness.reference.oauth.flows import PendingFlow, granted
from harness.reference.oauth.paste import pasted_code
from harness.reference.oauth.tokens import parse_body, store_tokens, token_answer, token_members
from harness.vectors.registry import operation

NOW_SECONDS = 1_800_000_000.0
FLOW = PendingFlow(
    state="state",
    server_name="server",
    server_url="https://mcp.example.com/mcp",
    code_verifier="verifier",
    authorization_endpoint="https://as.example.com/authorize",
    token_endpoint="https://as.example.com/token",
    client_id="client",
    redirect_uri="http://localhost:3000/mcp_oauth/callback",
    expires_at=NOW_SECONDS,
    mcp_server_config={},
    credential_key="server|0123456789abcdef",
)


@operation("flow.pkce", requirements=("flow-pkce-s256", "authorize-state-random"))
def _pkce(given: dict[str, Any]) -> Any:
    return consent.challenge(given["code_verifier"])


@operation("flow.authorization_url", requirements=("flow-authorization-url", "flow-google-offline", "flow-pkce-s256"))
def _authorization_url(given: dict[str, Any]) -> Any:
    parts = urlsplit(consent.authorization_url(replace(FLOW, **given)))
    parameters = dict(parse_qsl(parts.query, keep_blank_values=True))
    return {"base": parts._replace(query="", fragment="").geturl(), "params": parameters}


@operation(
    "flow.catalog_oauth_block", requirements=("flow-catalog-oauth-block-names", "authorize-oauth-block-spelling")
)
def _catalog_oauth_block(given: dict[str, Any]) -> Any:
    block = oauth_block(given["oauth"])
    return {
        "client_id": block.client_id,
        "client_secret": block.client_secret,
        "redirect_uri": block.redirect_uri,
    }


@operation(
    "flow.manual",
    requirements=("flow-manual-flag", "authorize-manual-derived", "authorize-blank-redirect-not-manual"),
)
def _manual(given: dict[str, Any]) -> Any:
    return consent.is_manual(given["redirect_uri"], given["app_host"], forced=given.get("client_manual", False))


@operation(
    "flow.paste_back",
    requirements=(
        "flow-manual-accepts-url-or-code",
        "flow-manual-state-validated",
        "flow-manual-state-absent-accepted",
        "flow-manual-code-extraction",
    ),
)
def _paste_back(given: dict[str, Any]) -> Any:
    return pasted_code(given["pasted"], given["flow_state"])


@operation(
    "flow.redirect_uri",
    requirements=("flow-hosted-callback-url", "authorize-redirect-default-hosted", "flow-manual-redirect-source"),
)
def _redirect_uri(given: dict[str, Any]) -> Any:
    return consent.redirect_uri_for(given["configured"], given["app_host"])


@operation("flow.exchange_form", requirements=("flow-exchange-form", "flow-public-exchange-omits-secret"))
def _exchange_form(given: dict[str, Any]) -> Any:
    members = {name: value for name, value in given.items() if name != "code"}
    return exchange_form(replace(FLOW, **members), given["code"])


@operation("flow.token_parse", requirements=("flow-token-body-formats",))
def _token_parse(given: dict[str, Any]) -> Any:
    return parse_body(given["content_type"], given["body"])


@operation("flow.token_shape", requirements=("flow-slack-top-level-first", "flow-slack-unwrap-exchange"))
def _token_shape(given: dict[str, Any]) -> Any:
    return token_members(given["response"])


@operation(
    "flow.store_tokens",
    requirements=("flow-store-upsert-by-key", "authorize-flag-from-survivor", "authorize-expires-absent-null"),
)
def _store_tokens(given: dict[str, Any]) -> Any:
    stored = None if given["stored"] is None else credential(given["stored"])
    answer = token_answer(given["response"])
    row = stored if answer is None else store_tokens(stored, granted(FLOW, answer, NOW_SECONDS))
    if row is None:
        return None
    return {
        "access_token": row.access_token,
        "refresh_token": row.refresh_token,
        "refresh_token_unsupported": row.refresh_token_unsupported,
        "expires_in_s": None if row.expires_at is None else round(row.expires_at - NOW_SECONDS),
    }


def credential(members: dict[str, Any]) -> Credential:
    """A stored row of which some members are told."""
    return Credential(
        FLOW.credential_key, FLOW.server_name, FLOW.server_url, FLOW.client_id, **{"access_token": "", **members}
    )
