"""Secrets do not leave the harness: whatever looks like one is masked before any report is written.

Source: ARCHITECTURE section 9 (pasted logs and configs hold real secrets). Placeholders such as `${TOKEN}`
stay readable, and so do names, package specs, addresses, UUIDs and the harness's own hashes.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

from harness.gate.events import Event, Found
from harness.report import secret_patterns as looks
from harness.report.credential_names import is_credential_name

MASK = "***"

MARKER = "mcp-harness-marker"
"""Synthetic secrets contain this word; they stay readable, because a report says where one turned up."""

_NO_SECRETS = frozenset(
    {"0", "1", "absent", "basic", "bearer", "empty", "expired", "false", "invalid", "missing", "no", "none"}
    | {"null", "oauth", "off", "on", "optional", "refused", "required", "set", "token", "true", "undefined"}
    | {"unknown", "unset", "yes"}
)
_SCHEMES = frozenset({"basic", "bearer", "token"})
_MAPS_OF_VARIABLE_NAMES = frozenset({"env_http_headers"})
_MAPS_OF_VALUES = frozenset({"env", "headers", "http_headers"})
_SHORTEST_MASKABLE = 4
_SHORTEST_BARE_SECRET = 8
_SHORTEST_CODE = 8
_LONGEST_WORD = 15
_LONGEST_USER = 20
_LONGEST_NAME = 106
"""Of an option with its dashes and quotes, as the patterns of pairs know it."""


def mask(text: str) -> str:
    """`text` with everything that looks like a secret replaced by `***`; masking twice changes no more."""
    return text if len(text) < _SHORTEST_MASKABLE else _mask(text)


def mask_value(name: str, value: str) -> str:
    """The value of a variable, header, parameter or option, masked wholly when its name is a credential's.

    A value with a placeholder is shown, because the secret is not in it; so is one that names a marker.
    """
    if not is_credential_name(name) or _is_harmless(value):
        return mask(value)
    scheme, blank, rest = value.partition(" ")
    if blank and scheme.lower() in _SCHEMES:
        return mask(value) if _is_harmless(rest) else f"{scheme} {MASK}"
    return MASK


class MaskedEvents(tuple[Event, ...]):
    """Events that went through `masked`."""

    __slots__ = ()


def masked(events: Sequence[Event]) -> MaskedEvents:
    """The events with every string in them masked. An edit that would write a mask is withheld."""
    if isinstance(events, MaskedEvents):
        return events
    return MaskedEvents(_mask_event(event) for event in events)


def _mask_event(event: Event) -> Event:
    result: Event = _mask_tree(event)
    if isinstance(event, Found) and isinstance(result, Found) and result.finding.edits != event.finding.edits:
        return Found(result.finding._replace(edits=()))
    return result


def _mask_tree(value: Any, name: str = "", parent: str = "") -> Any:
    """Mask a value of any shape. `name` is the key it stands under, `parent` the key above that."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return _mask_string(value, name, parent)
    if isinstance(value, Mapping):
        return {_mask_key(key): _mask_tree(item, str(key), name) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        # The fields of our own values are named for what they are, not for what a user put into them.
        return type(value)(*(_mask_tree(item) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_mask_items(value, name))
    return value


def _mask_key(key: Any) -> Any:
    return mask(key) if isinstance(key, str) else key


def _mask_items(items: Sequence[Any], name: str) -> list[Any]:
    """Arguments: what follows `--api-key` is its value, and `X-API-Key: ...` is a header.

    What follows `-e NAME` is no value of NAME: -e takes NAME or NAME=value, both in one.
    """
    result, option = [], ""
    for item in items:
        header = looks.HEADER_ARGUMENT.fullmatch(item) if isinstance(item, str) else None
        if header and is_credential_name(header["name"]):
            result.append(header["head"] + mask_value(header["name"], header["value"]))
        else:
            result.append(_mask_tree(item, option or name))
        is_free = option not in looks.NAME_OPTIONS and isinstance(item, str)
        option = item if is_free and looks.OPTION.fullmatch(item) and not looks.PASSED_NAME.fullmatch(item) else ""
    return result


def _mask_string(value: str, name: str, parent: str) -> str:
    if parent in _MAPS_OF_VARIABLE_NAMES and looks.VARIABLE_NAME.fullmatch(value):
        return mask(value)
    if parent in _MAPS_OF_VALUES and looks.RANDOM.fullmatch(value) and not _is_harmless(value):
        return MASK
    return mask_value(name, value)


def _is_harmless(value: str) -> bool:
    """Nothing of a secret is in it: empty, a placeholder, a marker, a mask, a switch."""
    return (
        not value.strip()
        or looks.PLACEHOLDER.search(value) is not None
        or MARKER in value
        or MASK in value
        or value.lower() in _NO_SECRETS
    )


@lru_cache(maxsize=8192)
def _mask(text: str) -> str:
    text = _mask_plain(text)
    if "%" in text:
        text = looks.UNBROKEN.sub(_mask_url_encoded, text)
    return looks.BASE64.sub(_mask_base64, text)


def _mask_plain(text: str) -> str:
    text = looks.PRIVATE_KEY.sub(rf"\1{MASK}\2", text)
    text = looks.AUTHORIZATION.sub(_keeping_the_head(_is_harmless), text)
    text = looks.BEARER.sub(_keeping_the_head(_is_word), text)
    text = looks.JWT.sub(MASK, text)
    text = looks.VENDOR_TOKEN.sub(_mask_vendor_token, text)
    text = looks.USERINFO.sub(_mask_userinfo, text)
    text = looks.PARAMETER.sub(_mask_parameter, text)
    text = _mask_pairs(looks.QUOTED_PAIR, _mask_quoted_pair, text)
    return _mask_pairs(looks.BARE_PAIR, _mask_bare_pair, text)


def _mask_pairs(pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str], text: str) -> str:
    """As `sub` does, but what was taken for a value, and is no longer than a name, may be the name of the next pair."""
    parts: list[str] = []
    kept = start = 0
    while match := pattern.search(text, start):
        safe = replace(match)
        is_name = safe == match[0] and match.end() - match.end("head") <= _LONGEST_NAME
        start = match.end("head") if is_name else match.end()
        if safe != match[0]:
            parts += (text[kept : match.start()], safe)
            kept = match.end()
    return "".join((*parts, text[kept:]))


def _keeping_the_head(is_harmless: Callable[[str], bool]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        return match[0] if is_harmless(match["value"]) else match["head"] + MASK

    return replace


def _is_word(value: str) -> bool:
    """After "bearer": an ordinary word of a sentence ("a bearer token is refused"), no credential."""
    is_plain = looks.PLAIN_WORD.fullmatch(value) is not None
    return _is_harmless(value) or (is_plain and len(value) <= _LONGEST_WORD)


def _mask_vendor_token(match: re.Match[str]) -> str:
    return f"{match['rare'] or match['word']}{MASK}"


def _mask_userinfo(match: re.Match[str]) -> str:
    user, password = match["user"], match["password"]
    if password is not None and password != ":" and not _is_harmless(password):
        return f"{match['head']}{user}:{MASK}@"
    if password is None and len(user) > _LONGEST_USER and not _is_harmless(user):
        return f"{match['head']}{MASK}@"
    return match[0]


def _mask_parameter(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    is_code = name.lower() in {"assertion", "code", "code_verifier"} and len(value) >= _SHORTEST_CODE
    is_secret = is_code or is_credential_name(name)
    return match["head"] + MASK if is_secret and not _is_harmless(value) else match[0]


def _mask_quoted_pair(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"]
    if looks.COMMA.search(match["head"]) and (not name.startswith("-") or looks.PASSED_NAME.fullmatch(name)):
        return match[0]  # two items of a list are a pair only when the first is an option
    safe = mask_value(name, value) if is_credential_name(name) else value
    return f"{match['head']}{match['quote']}{safe}{match['quote']}"


def _mask_bare_pair(match: re.Match[str]) -> str:
    name, sign, bare = match["name"], match["sign"], match["bare"]
    value = match["quoted"] if bare is None else bare
    if not is_credential_name(name) or _is_harmless(value) or _is_prose(name, sign, bare):
        return match[0]
    quote_mark = match["quote"] or ""
    return f"{match['head']}{quote_mark}{MASK}{quote_mark}"


def _is_prose(name: str, sign: str, bare: str | None) -> bool:
    """`secret SLACK_BOT_TOKEN` and `token: expired` are parts of a sentence."""
    if sign == " ":
        return not name.startswith("-") or looks.PASSED_NAME.fullmatch(name) is not None
    return bare is not None and sign == ":" and not _looks_random(bare)


def _looks_random(value: str) -> bool:
    if len(value) < _SHORTEST_BARE_SECRET or "|" in value or looks.VARIABLE_NAME.fullmatch(value):
        return False
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def _mask_url_encoded(match: re.Match[str]) -> str:
    if "%" not in match[0]:
        return match[0]
    plain = unquote(match[0])
    safe = _mask_plain(plain)
    return match[0] if safe == plain else quote(safe, safe=":/?#[]@!$&()*+,;={}|~")


def _mask_base64(match: re.Match[str]) -> str:
    encoded = match[0].rstrip("=").replace("-", "+").replace("_", "/")
    if len(encoded) % 4 == 1:
        return match[0]
    plain = b64decode(encoded + "=" * (-len(encoded) % 4)).decode("latin-1")
    holds_secret = any(pattern.search(plain) for pattern in (looks.VENDOR_TOKEN, looks.JWT, looks.PRIVATE_KEY))
    return MASK if holds_secret else match[0]
