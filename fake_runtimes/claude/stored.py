"""What Claude Code writes into a server's entry of its credential store: each a new entry from an old one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_runtimes.claude.credentials import STORE_KEY, lookup_key
from fake_runtimes.discovery import Discovered
from fake_runtimes.granting import Client
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.text import JsonTextError, json_stringify, parse_json

Entry = Mapping[str, Any]
MARGIN_SECONDS = 300
"""A token with less left than this is renewed before it is sent."""
TOKENS = ("refreshToken",)
REGISTRATION = ("refreshToken", "expiresAt", "scope", "clientId", "clientSecret", "redirectUri", "issuer")
STATE = "discoveryState"


def seconds_left(entry: Entry, now_seconds: float) -> float | None:
    """How long the token counts; None where it never ends: no expiry, or a text that is no number."""
    expires_at = entry.get("expiresAt")
    if isinstance(expires_at, bool) or not isinstance(expires_at, int | float | str):
        return None
    try:
        return float(expires_at) / 1000 - now_seconds
    except ValueError:
        return None


def wants_renewal(entry: Entry, now_seconds: float) -> bool:
    """Whether the token is to be renewed before it is sent."""
    left = seconds_left(entry, now_seconds)
    return bool(entry.get("refreshToken")) and left is not None and left < MARGIN_SECONDS


def named(entry: Entry, server: LoadedServer) -> dict[str, Any]:
    """An entry with the name and the url of its server."""
    return {**entry, "serverName": server.name, "serverUrl": server.url}


def granted(entry: Entry, tokens: Mapping[str, Any], server: LoadedServer, now_seconds: float) -> dict[str, Any]:
    """With new tokens: a refresh token that is not repeated stays, an expiry or a scope that is not told goes."""
    seconds, scope = tokens.get("expires_in"), tokens.get("scope")
    after = {
        **named(entry, server),
        "accessToken": tokens["access_token"],
        "refreshToken": tokens.get("refresh_token") or entry.get("refreshToken"),
        "expiresAt": None if seconds is None else int((now_seconds + seconds) * 1000),
        "scope": scope if isinstance(scope, str) else None,
    }
    return {name: value for name, value in after.items() if value is not None}


def emptied(entry: Entry) -> dict[str, Any]:
    """After a refused grant: no tokens, and an expiry that has passed; the client stays."""
    kept = {name: value for name, value in entry.items() if name not in TOKENS}
    return {**kept, "accessToken": "", "expiresAt": 0}


def forgotten(entry: Entry, *, has_expired: bool) -> dict[str, Any]:
    """After a refused client: no tokens and no client, in some versions an expiry that has passed."""
    kept = {name: value for name, value in entry.items() if name not in REGISTRATION}
    return {**kept, "accessToken": "", **({"expiresAt": 0} if has_expired else {})}


def discovered(entry: Entry, found: Discovered, server: LoadedServer, *, stamps_issuer: bool) -> dict[str, Any]:
    """With the authorization server that was found. A version stamps an entry that has a client with its issuer."""
    state: dict[str, Any] = {"authorizationServerUrl": found.server_url}
    if stamps_issuer:
        state["oauthMetadataFound"] = found.metadata is not None
        if found.metadata is not None:
            state["authServerMetadataUrl"] = None
    if found.resource_url is not None:
        state["resourceMetadataUrl"] = found.resource_url
    state.setdefault("oauthMetadataFound", found.metadata is not None)
    after = {**named(entry, server), "accessToken": entry.get("accessToken", ""), STATE: state}
    return stamped(after, found) if stamps_issuer else after


def stamped(entry: Entry, found: Discovered) -> dict[str, Any]:
    """With the issuer, where it has a client that belongs to one."""
    return {**entry, "issuer": found.issuer} if entry.get("clientId") else dict(entry)


def rejected_without_token(entry: Entry, now_seconds: float) -> dict[str, Any]:
    """With the moment at which a request without a token was refused."""
    state = entry.get(STATE)
    held = state if isinstance(state, dict) else {}
    return {**entry, STATE: {**held, "tokenlessRejectedAt": int(now_seconds * 1000)}}


def registered(entry: Entry, client: Mapping[str, Any], server: LoadedServer, redirect: str) -> dict[str, Any]:
    """With a client of its own."""
    secret = {"clientSecret": client["client_secret"]} if isinstance(client.get("client_secret"), str) else {}
    return {**named(entry, server), "clientId": client["client_id"], **secret, "redirectUri": redirect}


def client_of(entry: Mapping[str, Any], server: LoadedServer) -> Client | None:
    """The stored client, else the configured one."""
    configured = server.raw.get("oauth")
    own = configured if isinstance(configured, dict) else {}
    for held in (entry, own):
        if isinstance(held.get("clientId"), str) and held["clientId"]:
            secret = held.get("clientSecret")
            return Client(held["clientId"], secret if isinstance(secret, str) and secret else None)
    return None


def known_server(entry: Entry) -> tuple[str, str | None] | None:
    """The authorization server and the place of the resource's metadata that an earlier run has found."""
    state = entry.get(STATE)
    url = state.get("authorizationServerUrl") if isinstance(state, dict) else None
    if not isinstance(url, str) or not isinstance(state, dict):
        return None
    place = state.get("resourceMetadataUrl")
    return url, place if isinstance(place, str) else None


def store_with(text: str | None, server: LoadedServer, entry: Entry) -> str:
    """The store's new text: everything else in it stays. What cannot be read counts as empty (not measured)."""
    try:
        held = parse_json(text or "{}")
    except JsonTextError:
        held = {}
    store = held if isinstance(held, dict) else {}
    entries = store.get(STORE_KEY)
    kept = entries if isinstance(entries, dict) else {}
    return json_stringify({**store, STORE_KEY: {**kept, lookup_key(server): dict(entry)}})
