"""What a token endpoint answered: the body as an object, the tokens in it, and what becomes of the stored row.

Source: seed 002 "Servers without offline_access issue one-shot credentials", "Configuring the official Slack MCP";
requirements flow-token-body-formats, flow-slack-*, flow-store-upsert-by-key, authorize-flag-*.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from harness.reference.credentials.row import Credential
from harness.reference.oauth.form import decode_form
from harness.reference.secrets.blank import is_blank

JSON = "json"
FORM = "application/x-www-form-urlencoded"
ACCESS_TOKEN = "access_token"
USER_OBJECT = "authed_user"
"""Where Slack nests the user's token; a token beside it at the top level is the bot's."""

LONGEST_LIFETIME_SECONDS = 9e11
"""What a longer one is taken for: for ever to anybody, and still milliseconds that every runtime can read."""
WHOLE_SECONDS = re.compile(r"\s*([+-]?[0-9]{1,300})(?:\.[0-9]*)?\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """The tokens of one grant. `expires_in_seconds` None: the answer names no lifetime, so the token lasts."""

    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    scope: str | None = None
    expires_in_seconds: float | None = None


def parse_body(content_type: str | None, text: str) -> dict[str, Any] | None:
    """The body of a token answer as an object, None where it is none.

    JSON where that is declared or the text starts with `{`. What is no JSON then is a form where that is declared, or
    where it has a `=` and an access token (flow-token-body-formats).
    """
    declared = (content_type or "").lower()
    parsed = parse_json(text) if JSON in declared or text.startswith("{") else None
    if parsed is not None:
        return parsed
    if FORM not in declared and "=" not in text:
        return None
    fields = decode_form(text)
    return fields if fields and (FORM in declared or ACCESS_TOKEN in fields) else None


def parse_json(text: str) -> dict[str, Any] | None:
    """A JSON object; None for everything else, however deep or damaged. NaN and Infinity are no JSON."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def token_members(body: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Access and refresh token, scope and lifetime, all of the object that carries the token; None without a token.

    A nested user token wins as a whole (flow-slack-top-level-first). Blanks are null, `expires_in` is as given.
    """
    source = token_source(body)
    if source is None:
        return None
    return {
        "access_token": source[ACCESS_TOKEN],
        "refresh_token": text_of(source.get("refresh_token")),
        "scope": text_of(source.get("scope")),
        "expires_in": source.get("expires_in"),
    }


def token_source(body: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The object whose token counts: the user's where there is one, else the answer itself."""
    if body is None:
        return None
    for candidate in (body.get(USER_OBJECT), body):
        if isinstance(candidate, Mapping) and text_of(candidate.get(ACCESS_TOKEN)) is not None:
            return candidate
    return None


def text_of(value: object) -> str | None:
    """A text that is not blank."""
    return value if isinstance(value, str) and not is_blank(value) else None


def token_answer(body: Mapping[str, Any] | None) -> TokenAnswer | None:
    """The tokens in a body; None where there is no usable access token, whatever the status was."""
    members = token_members(body)
    if members is None:
        return None
    return TokenAnswer(
        members["access_token"], members["refresh_token"], members["scope"], lifetime_seconds(members["expires_in"])
    )


def lifetime_seconds(value: object) -> float | None:
    """The seconds that `expires_in` names, as a number or a decimal text; None where it names none.

    Whole seconds, as providers mean them. No number that a provider names, an endless one neither, keeps the row from
    being handed to a runtime.
    """
    if isinstance(value, str):
        match = WHOLE_SECONDS.fullmatch(value)
        value = int(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    return float(math.trunc(max(-LONGEST_LIFETIME_SECONDS, min(value, LONGEST_LIFETIME_SECONDS))))


def store_tokens(stored: Credential | None, granted: Credential) -> Credential:
    """The row after an exchange: all of `granted`, with the refresh token that survives and what follows from that.

    A provider that leaves the refresh token out when a live grant is authorized again has not taken it back, so the
    stored one is kept (#309); the credential is one-shot where none survives (#64).
    """
    survivor = surviving_refresh_token(stored, granted)
    return replace(granted, refresh_token=survivor, refresh_token_unsupported=is_one_shot(survivor))


def surviving_refresh_token(stored: Credential | None, granted: Credential) -> str | None:
    """The refresh token that is left: the answer's, else the stored one. A blank one is none."""
    return text_of(granted.refresh_token) or (text_of(stored.refresh_token) if stored is not None else None)


def is_one_shot(survivor: str | None) -> bool:
    """Whether nothing can renew the credential, told by what survives and not by what was answered."""
    return survivor is None
