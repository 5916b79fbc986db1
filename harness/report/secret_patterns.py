"""What secrets look like: the prefixes of vendors, the places where credentials stand in texts.

Every pattern is bounded, so that a text of any size is searched in time proportional to its length.
"""

from __future__ import annotations

import re

_START = r"(?:(?<![A-Za-z0-9_-])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))"
"""Where a word begins, also behind a URL-encoded or JSON-escaped character."""

VENDOR_TOKEN = re.compile(
    # Prefixes that occur in nothing else: found wherever they stand.
    r"(?P<rare>gh[pousr]_(?=[A-Za-z0-9]{8})|github_pat_(?=\w{8})|xox[abceoprs]-(?=[\w-]{8})|xapp-(?=\d)"
    r"|glpat-(?=[\w-]{8})|glptt-(?=[\w-]{8})|figd_(?=[\w-]{8})|lin_api_(?=\w{8})|lin_oauth_(?=\w{8})"
    r"|AIza(?=[\w-]{16})|ya29\.(?=[\w-]{8})|(?:AKIA|ASIA)(?=[0-9A-Z]{12})|dckr_pat_(?=[\w-]{8})"
    r"|shp(?:at|ca|pa|ss)_(?=\w{16})|sntry[su]_(?=\w{8})|ATATT3x(?=[\w-]{8})|dop_v1_(?=\w{16})"
    r"|npm_(?=[A-Za-z0-9]{20})|pypi-(?=AgE[\w-]{8})|whsec_(?=\w{8})|[spr]k_(?:live|test)_(?=\w{6})"
    r"|AGE-SECRET-KEY-(?=\w{8})|hvs\.(?=[\w-]{12}))[A-Za-z0-9_.=-]+"
    # Prefixes that also begin ordinary words: at a word's start, before something long and random.
    rf"|{_START}(?P<word>sk-|ntn_|secret_|hf_|gsk_|xai-|pplx-|tvly-|fc-|r8_|ctx7sk-|sbp_|SG\.|rpa_|ops_|phx_)"
    r"(?=[A-Za-z_-]*[0-9A-Z])(?:[A-Za-z0-9_-]|\.(?=\w)){12,}"
)
JWT = re.compile(rf"{_START}eyJ[A-Za-z0-9_-]{{6,}}\.[A-Za-z0-9_-]{{4,}}(?:\.[A-Za-z0-9_-]*)*")
PRIVATE_KEY = re.compile(
    r"(-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----).*?(-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)", re.DOTALL
)
BEARER = re.compile(
    r"(?P<head>\b(?:bearer|basic|token|apikey)(?:[ \t]+|%20|\+))(?!(?:bearer|basic|token|apikey)\b)"
    r"(?P<value>[A-Za-z0-9._~+/=%-]{6,})",
    re.IGNORECASE,
)
AUTHORIZATION = re.compile(
    r"(?P<head>\b(?:proxy-)?authorization(?:\\?[\"'])?\s*[:=]\s*(?:\\?[\"'])?"
    r"(?:(?:bearer|basic|token)[ \t]+)?)(?P<value>[^\s\"'\\,;]+)",
    re.IGNORECASE,
)
USERINFO = re.compile(
    r"(?P<head>\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)(?P<user>[^\s/?#@:\"'<>]*)(?P<password>:[^\s/?#@\"'<>]*)?@"
)
PARAMETER = re.compile(r"(?P<head>[?&;#](?P<name>[A-Za-z][\w.\[\]-]{0,99})=)(?P<value>[^\s&#;\"'<>\\]+)")
QUOTED_PAIR = re.compile(
    r"(?P<head>(?P<outer>\\?[\"'])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,99})(?P=outer)\s*(?:[:=]|=>|,)\s*"
    r"(?:\n[+ -]?\s*)?)(?P<quote>\\?[\"'])(?P<value>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)"
)
"""`"name": "value"` in JSON, `"--option", "value"` in a list of arguments, also as lines of a diff."""
COMMA = re.compile(r",\s*(?:\n[+ -]?\s*)?\Z")
"""The head of a pair of which the two are items of a list, also as lines of a diff."""

BARE_PAIR = re.compile(
    r"(?P<head>(?<![\w$?&;#{.-])(?P<name>-{0,2}[A-Za-z_][\w.-]{0,99})"
    r"\s*(?P<sign>[:=]|(?<=\w)[ ](?=[^\s:=]))\s*)"
    r"(?:(?P<quote>\\?[\"'])(?P<quoted>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)"
    r"|(?P<bare>[^\s\"'\\,;(){}\[\]<>]+))"
)
"""`NAME=value`, `name = "value"` in TOML, `Name: value` of a header, `--option value`."""

BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{16,}={0,2}")
UNBROKEN = re.compile(r"[^\s\"'<>]+")
RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9+/_=-]{24,}")
PLACEHOLDER = re.compile(r"\$\{[^{}]*\}|\$[A-Z_][A-Z0-9_]*\b|\{env:[^{}]*\}")
VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
HEADER_ARGUMENT = re.compile(r"(?P<head>(?P<name>[A-Za-z][\w-]*)\s*[:=]\s*)(?P<value>\S.*)", re.DOTALL)
OPTION = re.compile(r"--?[A-Za-z][\w-]*")
NAME_OPTIONS = frozenset({"-e", "--env"})
"""Options whose value is a variable's name, or NAME=value."""
PASSED_NAME = re.compile(r"-e[A-Z_][A-Z0-9_]*")
"""The same in one word: no option that a value follows."""
PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z-]*[.]?")
"""One word of a sentence, perhaps its last."""
