"""Values of an entry as a comparison may show them: what is or may be a credential is hidden, long texts are cut.

A report masks once more whatever it prints; here the field is known, so that more can be hidden and the rest shown.
"""

from __future__ import annotations

import json
import re
from typing import Any

from harness.gate.credential_literals import (
    ASSIGNMENT,
    HARMLESS_VALUES,
    HEADER,
    OPTION,
    PRIVATE_KEY,
    SCHEME,
    SECRET_WORDS,
    VENDOR,
    WORD,
    argument_credential,
    holds_vendor_credential,
    is_literal,
    looks_random,
    names_credential,
)
from harness.gate.wording import KINDS
from harness.reference.oauth.capability import is_credential_name
from harness.reference.secrets.placeholders import PLACEHOLDER

HIDDEN = "***"
LONGEST_SHOWN = 60
"""Longer texts are cut; of two that differ, the part where they begin to differ is shown."""

DIFFERENCE_NOT_SHOWN = "changed (what differs is not shown)"

LONGEST_ADDRESS = 120
"""The same for what names code or a server: packages, images, URLs."""

SCRIPT_OPTIONS = frozenset({"c", "lc", "ec", "ic", "exc", "call", "command"})
"""Options behind which a whole command line stands in one argument."""

_LEAD = 16
"""So much of what two long texts have in common is shown before they part."""

_MAYBE_SECRET = SECRET_WORDS | {"pass", "pwd", "auth", "key", "keys", "tokens", "secrets", "session", "cookie", "salt"}
_MAYBE_SECRET |= {"signature", "sig", "dsn", "private", "cert", "license", "webhook", "bearer", "cred", "creds"}
_TELLS_OF_ONE = frozenset({"file", "path", "dir", "mode", "type", "endpoint", "host", "port", "header", "method"})
_SIMPLE_VALUE = re.compile(r"(?:\$\{[^{}\"']*\}|[\w.,:/@+=~%*?&! -])*", re.ASCII)
_TOKEN = re.compile(r"\S+")
_USERINFO = re.compile(r"(?P<head>://)(?P<user>[^\s/?#@:]*)(?P<password>:[^\s/?#@]*)?@")
_PARAMETER = re.compile(r"(?P<head>[?&;#](?P<name>[\w.\[\]-]+)=)(?P<value>[^\s&;#]+)")
_SEGMENT = re.compile(r"(?<=/)[^\s/?#&]+")
_NO_QUOTES_NEEDED = re.compile(r"[^\s\"]+")


def argument_text(argument: Any, option: str | None = None) -> str:
    """One argument; `option` is the name of the option before it, where that takes a value."""
    if not isinstance(argument, str):
        return _other_text(argument)
    if option in SCRIPT_OPTIONS and len(argument.split()) > 1:
        return quoted(_each_word(plain(argument)))
    if option is not None and may_be_secret(option) and is_literal(argument):
        return HIDDEN
    for pattern in (OPTION, ASSIGNMENT, HEADER):
        match = pattern.match(argument)
        if match and match[2] and may_be_secret(match[1]) and is_literal(match[2]):
            return quoted(f"{argument[: match.start(2)]}{HIDDEN}")
    safe = plain(argument)
    if len(argument.split()) > 1:
        safe = _each_word(safe)
    elif safe == argument and argument_credential(argument, option) is not None:
        match = OPTION.match(argument) or ASSIGNMENT.match(argument)
        safe = f"{argument[: match.start(2)]}{HIDDEN}" if match and match[2] else HIDDEN
    return quoted(safe)


def _each_word(text: str) -> str:
    """A command line in one argument, word by word."""
    before: list[str] = [""]

    def replace(match: re.Match[str]) -> str:
        word = match[0].strip("'\"")
        option = OPTION.match(before[-1])
        before.append(word)
        shown = argument_text(word, option[1] if option and option[2] is None else None) if word else word
        return match[0] if shown == word else shown

    return _TOKEN.sub(replace, text)


def member_text(name: str, value: Any) -> str:
    """The value of a variable or header: simple texts alone are shown, and under a doubtful name placeholders alone."""
    if not isinstance(value, str):
        return _other_text(value)
    if may_be_secret(name) and not _is_harmless(value):
        return HIDDEN
    if not _SIMPLE_VALUE.fullmatch(value) or looks_random(value):
        return HIDDEN
    return quoted(plain(value))


def plain(text: str) -> str:
    """A text without what looks like a credential wherever it stands."""
    if PRIVATE_KEY.search(text):
        return HIDDEN
    text = PLACEHOLDER.sub(_hide_default, text)
    text = VENDOR.sub(lambda match: HIDDEN if holds_vendor_credential(match[0]) else match[0], text)
    if "://" in text:
        text = _USERINFO.sub(_hide_userinfo, text)
        text = _SEGMENT.sub(lambda match: HIDDEN if looks_random(match[0]) else match[0], text)
        text = _PARAMETER.sub(_hide_parameter, text)
    return text


def _hide_default(match: re.Match[str]) -> str:
    name, default = match[1], match[2]
    if not default or not (looks_random(default) or (may_be_secret(name) and is_literal(default))):
        return match[0]
    return f"${{{name}:-{HIDDEN}}}"


def _hide_userinfo(match: re.Match[str]) -> str:
    user, password = match["user"], match["password"]
    if password and is_literal(password[1:]):
        return f"{match['head']}{user}:{HIDDEN}@"
    return f"{match['head']}{HIDDEN}@" if looks_random(user) else match[0]


def _hide_parameter(match: re.Match[str]) -> str:
    is_secret = (may_be_secret(match["name"]) and is_literal(match["value"])) or looks_random(match["value"])
    return match["head"] + HIDDEN if is_secret else match[0]


def may_be_secret(name: str) -> bool:
    """Whether a value under this name could be a credential; rather too often than too seldom."""
    words = [word.lower() for word in WORD.findall(name)]
    if not words or words[-1] in _TELLS_OF_ONE:
        return False
    return names_credential(name) or is_credential_name(name) or bool(_MAYBE_SECRET.intersection(words))


def _is_harmless(value: str) -> bool:
    """Nothing of a secret is in it: blank, a switch, or placeholders and a scheme (`Bearer ${TOKEN}`) alone."""
    without = SCHEME.sub("", PLACEHOLDER.sub("", value).strip() + " ").strip()
    has_default = any(match[2] for match in PLACEHOLDER.finditer(value))
    return not has_default and (not without or without.lower() in HARMLESS_VALUES)


def _other_text(value: Any) -> str:
    return KINDS[type(value)] if isinstance(value, dict | list) else cut(json.dumps(value, ensure_ascii=False))


def quoted(text: str) -> str:
    """A text as it is, in quotes where blanks would hide its ends."""
    return text if _NO_QUOTES_NEEDED.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def cut(text: str, limit: int = LONGEST_SHOWN) -> str:
    """The head of a text that is too long."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def pair_text(old: str, new: str, limit: int = LONGEST_SHOWN) -> str:
    """`old -> new`; of long texts the part where they begin to differ."""
    if old == new:
        return DIFFERENCE_NOT_SHOWN
    if max(len(old), len(new)) <= limit:
        return f"{old} -> {new}"
    same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, same - _LEAD) if same > limit - _LEAD else 0
    return f"{_window(old, start, limit)} -> {_window(new, start, limit)}"


def _window(text: str, start: int, limit: int) -> str:
    return f"{'…' if start else ''}{text[start : start + limit]}{'…' if start + limit < len(text) else ''}"
