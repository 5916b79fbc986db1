"""One entry of the catalog: the index entry is the whole connection config.

Source: seed 000, "The entry format". Reading never fails: a field of the wrong shape counts as absent
here, and saying so is the schema's part (see `schema`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from harness.reference.catalog.startup_timeout import FIELD, accept
from harness.reference.catalog.unavailable import declared_reason

STDIO_TYPE = "stdio"
REMOTE_TYPES = ("http", "streamable-http", "sse")
"""`http` is Zimmer's second spelling of `streamable-http`; the published schema refuses it."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class OAuthBlock:
    """The client that an entry brings for an OAuth flow: None for each member it leaves out or leaves blank.

    `raw` is the block as written, with authServerMetadataUrl, scopes and whatever else it holds.
    """

    client_id: str | None
    client_secret: str | None = field(repr=False)
    redirect_uri: str | None
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Entry:
    """A server of the catalog with typed access to the twelve known fields.

    `raw` is the entry as written, unknown fields included, and is never changed. `unavailable` is the
    shown reason, `startup_timeout_sec` the accepted number of seconds; both None where nothing counts.
    """

    name: str
    raw: Mapping[str, Any] = field(repr=False)
    title: str
    description: str | None
    type: str | None
    command: str | None
    args: tuple[Any, ...]
    env: Mapping[str, Any] = field(repr=False)
    url: str | None
    headers: Mapping[str, Any] = field(repr=False)
    oauth: OAuthBlock
    default_in_roots: tuple[str, ...]
    unavailable: str | None
    startup_timeout_sec: int | None

    @property
    def stdio(self) -> bool:
        """Does a runtime start this server as its child?"""
        return is_stdio(self.type)

    @property
    def remote(self) -> bool:
        """Does a runtime reach this server by URL?"""
        return is_remote(self.type)

    @property
    def flow_client(self) -> OAuthBlock:
        """The client that a flow may use: `oauth` describes remote servers, elsewhere the block is empty."""
        return self.oauth if oauth_applies(self.type) else oauth_block(None)

    def credential_config(self) -> dict[str, Any]:
        """The part of the entry that identifies its credential: type, and url and headers if there are any.

        Values are as written, placeholders unexpanded, headers in the catalog's order.
        """
        config: dict[str, Any] = {"type": self.type}
        if self.url is not None:
            config["url"] = self.url
        if self.headers:
            config["headers"] = dict(self.headers)
        return config


def is_stdio(transport: str | None) -> bool:
    """Is `type` the stdio transport? Exact and case-sensitive (catalog-transport-values)."""
    return transport == STDIO_TYPE


def is_remote(transport: object) -> bool:
    """Is `type` one of the remote transports? Exact and case-sensitive (catalog-transport-values)."""
    return transport in REMOTE_TYPES


def oauth_applies(transport: object) -> bool:
    """Can OAuth, and so an `oauth` block, mean anything on this transport?

    (catalog-oauth-field-scope, gate-capable-needs-remote)
    """
    return is_remote(transport)


def read_entry(name: str, raw: Mapping[str, Any]) -> Entry:
    """Read one entry. A field that is absent, null or of another shape gets its default.

    The title defaults to the name, so that no list shows a blank heading (catalog-absent-field-defaults).
    """
    return Entry(
        name=name,
        raw=raw,
        title=title_or_name(raw.get("title"), name),
        description=text_or_none(raw.get("description")),
        type=text_or_none(raw.get("type")),
        command=text_or_none(raw.get("command")),
        args=items(raw.get("args")),
        env=members(raw.get("env")),
        url=text_or_none(raw.get("url")),
        headers=members(raw.get("headers")),
        oauth=oauth_block(raw.get("oauth")),
        default_in_roots=root_names(raw.get("default_in_roots")),
        unavailable=declared_reason(raw.get("unavailable")),
        startup_timeout_sec=accept(raw.get(FIELD)).seconds,
    )


def title_or_name(title: object, name: str) -> str:
    """What a list shows as the server's heading."""
    return title if isinstance(title, str) else name


def text_or_none(value: object) -> str | None:
    """A text field's value."""
    return value if isinstance(value, str) else None


def items(value: object) -> tuple[Any, ...]:
    """A list field's items, whatever they are."""
    return tuple(value) if isinstance(value, list | tuple) else ()


def members(value: object) -> Mapping[str, Any]:
    """A map field's members, in the order of the file."""
    return value if isinstance(value, (dict, Mapping)) else NOTHING


def root_names(value: object) -> tuple[str, ...]:
    """The names in `default_in_roots`; what is no text names no root."""
    return tuple(name for name in items(value) if isinstance(name, str))


def oauth_block(value: object) -> OAuthBlock:
    """Read an `oauth` block; None and what is no object give a block without members."""
    raw = members(value)
    return OAuthBlock(
        client_id=oauth_member(raw, "clientId", "client_id"),
        client_secret=oauth_member(raw, "clientSecret", "client_secret"),
        redirect_uri=oauth_member(raw, "redirectUri", "redirect_uri"),
        raw=raw,
    )


def oauth_member(raw: Mapping[str, Any], camel_case: str, snake_case: str) -> str | None:
    """The first non-blank text of two spellings, the published one first (catalog-oauth-keys)."""
    for key in (camel_case, snake_case):
        value = raw.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return None
