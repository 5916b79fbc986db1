"""Credentials written out in a catalog entry: where they stand, never what they are.

Source: ARCHITECTURE section 8 ("Secrets"). A catalog is read by everybody who may choose a server, its args
stand in every process list, and what is in its history stays there.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from harness.inputs.document import Pointer
from harness.reference.oauth.capability import is_credential_name
from harness.reference.secrets.placeholders import ANY_BRACED

SECRET_WORDS = frozenset(
    {
        "token",
        "secret",
        "password",
        "passwd",
        "passphrase",
        "pass",
        "pat",
        "pw",
        "pwd",
        "apikey",
        "authorization",
        "credential",
        "credentials",
    }
)
SECRET_ENDINGS = ("password", "passwd", "passphrase", "apikey", "secret", "token")
"""Words that end in one of these are secrets too (PGPASSWORD, authtoken)."""

FOLDER_VARIABLES = frozenset({"PWD", "OLDPWD"})

HARMLESS_KEYS = frozenset(
    {"public", "publishable", "anon", "sort", "primary", "foreign", "partition", "group", "cache", "map", "json", "row"}
    | {
        "object",
        "index",
        "registry",
        "hot",
        "host",
        "id",
        "issue",
        "project",
        "order",
        "lookup",
        "the",
        "no",
        "idempotency",
    }
)
"""Words before `key` that make it no secret."""

HARMLESS_VALUES = frozenset({"true", "false", "yes", "no", "on", "off", "none", "null", "0", "1", "stdin", "-"})

SMALLEST_RANDOM_CHARACTERS = 20
SMALLEST_ENTROPY_BITS = 3.5
"""A character of random hex holds up to 4 bits, one of base64 up to 6, one of English words about 3."""

LONGEST_WORD = 12
"""A run of letters and digits longer than this, digits among them, is no word of a package name."""

OPTION = re.compile(r"--?([A-Za-z][\w.-]*)(?:[= ](.*))?\Z", re.DOTALL)
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.+)\Z", re.DOTALL)
HEADER = re.compile(r"([A-Za-z][\w-]*):\s*(?!//)(\S.*)\Z", re.DOTALL)
SCHEME = re.compile(r"\A(?:bearer|basic|token|apikey)\s+", re.IGNORECASE)
PATH = re.compile(r"(?:\.{0,2}[/\\]|~|[A-Za-z]:[/\\]|file:)")
OTHER_PLACEHOLDER = re.compile(r"\$\w+|\$\{\w+|\$\(\w+\)|\{\{.*\}\}|%\w+%|\{env:\w+\}|\$env:\w+|<[^<>]*>")
VARIABLE_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
RANDOM_TEXT = re.compile(r"[A-Za-z0-9+=_.~-]+")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
COMMIT_OPTION = re.compile(r"(?:sha\d*|ref|rev|revision|commit|digest|checksum|hash|integrity)\Z", re.IGNORECASE)

VENDOR = re.compile(
    r"""(?<![A-Za-z0-9])(?:
      gh[opusr]_[A-Za-z0-9]{20,} | github_pat_\w{20,} | glpat-[\w-]{16,}
    | sk-(?:ant-|proj-|or-)?[\w-]{20,} | [rs]k_(?:live|test)_\w{16,} | whsec_\w{20,}
    | xox[abeoprs]-[\w-]{10,} | xapp-[\w-]{10,} | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[\w-]{30,} | ya29\.[\w-]{20,}
    | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[\w-]{30,} | lin_(?:api|oauth)_\w{20,}
    | (?:ntn|secret)_[A-Za-z0-9]{30,} | figd_[\w-]{20,} | SG\.[\w-]{16,}\.[\w-]{16,}
    | shp(?:at|ca|pa|ss)_[a-f0-9]{20,} | dop_v1_[a-f0-9]{20,} | eyJ[\w-]{8,}\.eyJ[\w-]{8,}
    )""",
    re.VERBOSE | re.ASCII,
)
PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")


class CredentialLiteral(NamedTuple):
    """A credential at a path within an entry; `what` says in words how it is handed over."""

    at: Pointer
    what: str


def credential_literals(entry: Mapping[str, Any]) -> tuple[CredentialLiteral, ...]:
    """Every place of an entry that holds a credential as a literal, each once, in the order of the fields."""
    found: dict[Pointer, str] = {}
    for at, what in (*in_args(entry), *in_tables(entry), *in_url(entry), *in_oauth(entry)):
        found.setdefault(at, what)
    return tuple(CredentialLiteral(at, what) for at, what in found.items())


def unfilled_literals(entry: Mapping[str, Any]) -> tuple[CredentialLiteral, ...]:
    """Every place of an entry where a README's placeholder stands for a credential, each once."""
    found: dict[Pointer, str] = {}
    for at, what, value, is_named in named_values(entry):
        if is_unfilled(value) if is_named else UNFILLED_ANYWHERE.fullmatch(value.strip()):
            found.setdefault(at, what)
    return tuple(CredentialLiteral(at, what) for at, what in found.items())


def named_values(entry: Mapping[str, Any]) -> Iterator[tuple[Pointer, str, str, bool]]:
    """Every value that has a name, with its place, how it is handed over, and whether the name is a credential's."""
    args, option = entry.get("args"), ""
    for index, argument in enumerate(args if isinstance(args, list) else ()):
        if not isinstance(argument, str):
            option = ""
            continue
        name, value = name_and_value(argument, option)
        yield ("args", index), f"the value of {name}" if name else f"args[{index}]", value, names_secret(name)
        option = argument if OPTION.match(argument) and "=" not in argument else ""
    for table, what, is_named in (
        ("env", "the variable", names_credential),
        ("headers", "the header", is_credential_name),
    ):
        members = entry.get(table)
        for name, value in members.items() if isinstance(members, dict) else ():
            if isinstance(value, str):
                yield (table, name), f"{what} {name}", value, is_named(name)
    url, oauth = entry.get("url"), entry.get("oauth")
    for name, value in query_of(url) if isinstance(url, str) else ():
        yield ("url",), f"{name} in the url", value, names_credential(name) or name == "key"
    secret = oauth.get("clientSecret") if isinstance(oauth, dict) else None
    if isinstance(secret, str):
        yield ("oauth", "clientSecret"), "oauth.clientSecret", secret, True


def names_secret(name: str) -> bool:
    """Whether an option, variable or header of an argument holds a credential by its name."""
    plain = name.lstrip("-")
    return names_credential(plain) or is_credential_name(plain)


def name_and_value(argument: str, option: str) -> tuple[str, str]:
    """The innermost name in an argument and its value: `--env=A=b` is A and b; `option` stands in front of it."""
    name, value = option, argument
    for pattern in (OPTION, ASSIGNMENT, HEADER):
        match = pattern.match(value)
        if match and match[2]:
            name, value = value[: match.end(1)], match[2]
    return name, value


def query_of(url: str) -> list[tuple[str, str]]:
    """The parameters of a url as they are written."""
    query = url.partition("#")[0].partition("?")[2]
    return [(name, value) for name, _, value in (pair.partition("=") for pair in query.split("&"))]


def in_args(entry: Mapping[str, Any]) -> Iterator[tuple[Pointer, str]]:
    """Option values, header texts, assignments, URLs and random texts among the arguments."""
    args = entry.get("args")
    option: str | None = None
    for index, argument in enumerate(args if isinstance(args, list) else ()):
        if not isinstance(argument, str):
            option = None
            continue
        what = argument_credential(argument, option)
        if what is not None:
            yield ("args", index), f"{what} in args[{index}]"
        match = OPTION.match(argument)
        option = match[1] if match and match[2] is None else None


def argument_credential(argument: str, option: str | None) -> str | None:
    """How one argument hands a credential over; `option` is the option name before it, if there was one."""
    if holds_vendor_credential(argument):
        return "a credential in a vendor's format"
    if option is not None and names_credential(option) and is_literal(argument):
        return f"the value of --{option}"
    for pattern in (OPTION, ASSIGNMENT, HEADER):
        match = pattern.match(argument)
        if match and match[2] and credential_value(pattern, match[1], match[2]):
            return f"the value of {argument[: match.end(1)]}"
    if holds_url_credential(argument):
        return "a credential inside a URL"
    value = argument.partition("=")[2] if OPTION.match(argument) else argument
    names_commit = COMMIT_OPTION.search(option or argument.partition("=")[0])
    return "a random text" if looks_random(value) and not names_commit else None


def credential_value(pattern: re.Pattern[str], name: str, value: str) -> bool:
    """Whether a name and its value, as one of the three patterns found them, are a literal credential."""
    if pattern is HEADER:
        return is_credential_name(name) and is_literal(value)
    if pattern is OPTION:
        for inner in (ASSIGNMENT, HEADER):
            match = inner.match(value)
            if match and credential_value(inner, match[1], match[2]):
                return True
    return names_credential(name) and is_literal(value)


def in_tables(entry: Mapping[str, Any]) -> Iterator[tuple[Pointer, str]]:
    """Variables and headers whose name is a credential's, and any value in a vendor's format."""
    for table, what, is_named in (
        ("env", "the variable", names_credential),
        ("headers", "the header", is_credential_name),
    ):
        members = entry.get(table)
        for name, value in members.items() if isinstance(members, dict) else ():
            if isinstance(value, str) and (
                (is_named(name) and is_literal(value)) or holds_vendor_credential(value) or holds_url_credential(value)
            ):
                yield (table, name), f"{what} {name}"


def in_url(entry: Mapping[str, Any]) -> Iterator[tuple[Pointer, str]]:
    """Userinfo and query parameters of the url."""
    url = entry.get("url")
    if isinstance(url, str) and (holds_vendor_credential(url) or holds_url_credential(url)):
        yield ("url",), "the url"


def in_oauth(entry: Mapping[str, Any]) -> Iterator[tuple[Pointer, str]]:
    """The secret of a client registered beforehand."""
    oauth = entry.get("oauth")
    for name in ("clientSecret", "client_secret"):
        value = oauth.get(name) if isinstance(oauth, dict) else None
        if isinstance(value, str) and is_literal(value):
            yield ("oauth", name), f"oauth.{name}"


def names_credential(name: str) -> bool:
    """Whether an option, variable or parameter holds a credential by its name: the last word tells.

    `key` alone may be anything; as the second word (`api-key`, `FIGMA_KEY`) it is a credential, unless the
    first one says otherwise.
    """
    words = [word.lower() for word in WORD.findall(name)]
    if not words:
        return False
    if words[-1] == "key":
        return len(words) > 1 and words[-2] not in HARMLESS_KEYS
    return name not in FOLDER_VARIABLES and (words[-1] in SECRET_WORDS or words[-1].endswith(SECRET_ENDINGS))


def is_literal(value: str) -> bool:
    """Whether the value of something named like a credential is one: no placeholder, path, switch or name."""
    value = SCHEME.sub("", value.strip())
    return not (
        not value
        or is_unfilled(value)
        or value.lower() in HARMLESS_VALUES
        or value.startswith(("!", "-"))
        or ANY_BRACED.search(value)
        or OTHER_PLACEHOLDER.fullmatch(value)
        or VARIABLE_NAME.fullmatch(value)
        or PATH.match(value)
        or "://" in value
    )


UNFILLED = re.compile(
    r"""<[^<>]+> | \[(?:your|insert|enter|add|replace|put)\b[^\[\]]*\]
    | (?:change|replace|fill)[-_ ]?(?:me|this|it|in)(?:[-_ !].*)?
    | (?:\w+[-_])?your[-_ ].* | (?:insert|enter|add|put|paste)[-_ ](?:.*[-_ ])?(?:here|key|token|secret|password)
    | .*[-_ ](?:goes[-_ ])?here | x{3,} | \*{3,} | \.{3,} | \u2026
    | (?:sk|pk|gh[ps]|xox[bp]|pat)[-_](?:x{3,}|\*{3,}|\.{3,})
    | to-?do | tbd | fixme | placeholder | dummy | example | redacted""",
    re.VERBOSE | re.IGNORECASE,
)
"""What READMEs write where a credential belongs."""

UNFILLED_ANYWHERE = re.compile(r"<[^<>]*\b(?:your|insert|enter|replace)\b[^<>]*>|your[-_].*[-_]here", re.IGNORECASE)
"""The same where the name says nothing of a credential."""


def is_unfilled(value: str) -> bool:
    """Whether a value is a placeholder for readers that nobody filled in."""
    return UNFILLED.fullmatch(SCHEME.sub("", value.strip())) is not None


def holds_vendor_credential(text: str) -> bool:
    """Whether a text holds something in the format of a vendor's credentials, in a default too."""
    match = VENDOR.search(text)
    return (match is not None and any(character.isdigit() for character in match[0])) or bool(PRIVATE_KEY.search(text))


def holds_url_credential(text: str) -> bool:
    """Whether a text is a URL with a password in its userinfo or a credential in its query."""
    if "://" not in text:
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    userinfo = parts.netloc.rpartition("@")[0]
    password = userinfo.partition(":")[2]
    if (password and is_literal(password)) or looks_random(userinfo):
        return True
    for pair in parts.query.split("&"):
        name, _, value = pair.partition("=")
        if (names_credential(name) and is_literal(value)) or (name == "key" and looks_random(value)):
            return True
    return False


def looks_random(text: str) -> bool:
    """Whether a text reads like a generated credential: long, of mixed characters, no path, spec or UUID."""
    if len(text) < SMALLEST_RANDOM_CHARACTERS or not RANDOM_TEXT.fullmatch(text) or UUID.fullmatch(text):
        return False
    runs = re.split(r"[-_.=+~]", text)
    mixed = any(
        len(run) > LONGEST_WORD and any(c.isdigit() for c in run) and any(c.isalpha() for c in run) for run in runs
    )
    return mixed and entropy_bits(text) >= SMALLEST_ENTROPY_BITS


def entropy_bits(text: str) -> float:
    """Shannon's entropy of a text's characters, in bits for each."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())
