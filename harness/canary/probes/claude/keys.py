"""Under which key Claude Code looks for a stored credential.

A token of its own lies under the reference's key and under each well-known wrong form of it: which one is shown tells
which form the program computes.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.ground import APPROVED, SETTINGS, STORE
from harness.canary.probes.doors import Doors
from harness.canary.trial import Trial
from harness.reference.credentials.key import key_hash, runtime_key

VALUES = {"WORD": "hello", "EMPTY": "", "INDIRECT": "${WORD}"}
REFERENCE = "reference"


class Case(NamedTuple):
    """An entry whose key is in question. `config` lacks the url, which is `suffix` behind that of the server."""

    says: str
    config: Mapping[str, Any]
    name: str = ""
    suffix: str = ""
    relied_on: tuple[str, ...] = ()


HTTP: Mapping[str, Any] = {"type": "http"}
CASES: Mapping[str, Case] = {
    "plain": Case("is made of type, url and headers", HTTP, relied_on=("credential-key-shape",)),
    "headers-order": Case(
        "takes headers in the order of the file",
        {**HTTP, "headers": {"X-B": "1", "X-A": "2"}},
        relied_on=("credential-key-headers-hashed",),
    ),
    "sse": Case("takes the type sse as it is", {"type": "sse"}, relied_on=("credential-key-other-types-verbatim",)),
    "streamable-http": Case(
        "takes streamable-http for http", {"type": "streamable-http"}, relied_on=("credential-key-streamable-http",)
    ),
    "unknown-fields": Case(
        "passes over all other fields",
        {**HTTP, "timeout": 5, "title": "x", "oauth": {"clientId": "c"}},
        relied_on=("credential-key-only-three-members",),
    ),
    "expanded-url": Case(
        "is taken after the url was expanded",
        HTTP,
        suffix="/${WORD}",
        relied_on=("credential-key-placeholder-expansion",),
    ),
    "expanded-header": Case(
        "is taken after header values were expanded",
        {**HTTP, "headers": {"X-W": "${WORD}", "X-E": "${EMPTY}"}},
        relied_on=("credential-key-placeholder-expansion",),
    ),
    "default": Case(
        "takes the default of an unset variable",
        {**HTTP, "headers": {"X-D": "${UNSET:-other}"}},
        relied_on=("credential-key-placeholder-expansion",),
    ),
    "indirect": Case(
        "is taken after one expansion, though what is sent is expanded twice",
        {**HTTP, "headers": {"X-I": "${INDIRECT}"}},
        relied_on=("credential-key-placeholder-expansion",),
    ),
    "unset": Case("keeps a variable without value as it is", {**HTTP, "headers": {"X-N": "${UNSET}"}}),
    "unicode": Case(
        "takes other letters and quotes as they are",
        {**HTTP, "headers": {"X-U": 'café/"q"'}},
        relied_on=("credential-key-non-ascii-raw",),
    ),
    "integer-names": Case(
        "takes header names that look like integers first",
        {**HTTP, "headers": {"10": "a", "2": "b", "X": "c"}},
        relied_on=("credential-key-integer-header-names",),
    ),
    "trailing-slash": Case("keeps a trailing slash", HTTP, suffix="/", relied_on=("credential-key-url-verbatim",)),
    "colon-and-comma": Case(
        "leaves values with colons and commas alone",
        {**HTTP, "headers": {"X-C": "k: v, w: x"}},
        relied_on=("credential-key-munge",),
    ),
    "url-colon-and-comma": Case(
        "leaves a url with colons and commas alone", HTTP, suffix="?a: 1, b: 2", relied_on=("credential-key-munge",)
    ),
    "ampersand": Case(
        "takes an ampersand as it is", HTTP, suffix="?a=1&b=<2>", relied_on=("credential-key-html-escaping",)
    ),
    "odd-name": Case("takes the name as it is", HTTP, name="pi|pe ü", relied_on=("credential-key-name-verbatim",)),
}


def forms(name: str, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The reference's key, then the wrong ones, each with its name; some may be the same."""
    yield REFERENCE, runtime_key("claude", name, config, VALUES)
    headers = config.get("headers", {})
    expanded: dict[str, Any] = {
        "type": "http",
        "url": filled(config["url"]),
        "headers": {n: filled(v) for n, v in headers.items()},
    }
    typed: dict[str, Any] = {**expanded, "type": "sse" if config["type"] == "sse" else "http"}
    yield "headers sorted", written(name, {**typed, "headers": dict(sorted(typed["headers"].items()))})
    yield "headers as in the file", written(name, typed)
    yield "without headers", written(name, {**typed, "headers": {}})
    yield "type as written", written(name, {**typed, "type": config["type"]})
    yield "type always http", written(name, expanded)
    yield "unexpanded", written(name, {**typed, "url": config["url"], "headers": headers})
    yield "slash stripped", written(name, {**typed, "url": typed["url"].rstrip("/")})
    yield "all fields", written(name, {**config, "url": typed["url"], "headers": typed["headers"]})
    text = compact(typed)
    yield "values munged", f"{name}|{key_hash(text.replace(': ', ':').replace(', ', ','))}"
    yield "html escaped", f"{name}|{key_hash(compact({**typed, 'url': html.escape(typed['url'])}))}"
    yield "html escaped as \\u", f"{name}|{key_hash(escaped(text))}"
    yield "other letters escaped", f"{name}|{key_hash(json.dumps(typed, separators=(',', ':')))}"
    yield "name made plain", written("".join(c if c.isascii() and c.isalnum() else "_" for c in name), typed)
    yield "name alone", name


def filled(text: str) -> str:
    """The variables that have a value here, all the way down, and the one default."""
    for variable, value in reversed(VALUES.items()):
        text = text.replace(f"${{{variable}}}", value)
    return text.replace("${UNSET:-other}", "other")


def compact(config: Mapping[str, Any]) -> str:
    """JSON as most would write it."""
    return json.dumps(config, separators=(",", ":"), ensure_ascii=False)


def written(name: str, config: Mapping[str, Any]) -> str:
    """The key over a config as it stands."""
    return f"{name}|{key_hash(compact(config))}"


def escaped(text: str) -> str:
    """JSON as some languages write it, safe within HTML."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def claim(name: str, case: Case) -> Claim:
    """The claim of a case: the token is found where the reference says."""
    return Claim(
        f"claude.key.{name}",
        f"the key of a stored credential {case.says}",
        "seed 002",
        assumes=REFERENCE,
        relied_on=("credential-key-preimage", "credential-key-canary-real-runtime", *case.relied_on),
        affects="every stored OAuth credential of such an entry",
    )


@probe(*(claim(name, case) for name, case in CASES.items()), seconds=3.0)
def credential_keys(trial: Trial) -> Mapping[str, Any]:
    """All cases in one `claude mcp list`; the observation is the form under which the shown token lay."""
    doors = Doors()
    with trial.serving(doors=doors) as urls:
        base = urls["doors"].removesuffix("/mcp")
        servers: dict[str, dict[str, Any]] = {}
        entries: dict[str, dict[str, str]] = {}
        for number, (case_name, case) in enumerate(CASES.items()):
            server = case.name or case_name
            servers[server] = {**case.config, "url": f"{base}/{case_name}{case.suffix}"}
            for form, key in forms(server, servers[server]):
                entries.setdefault(key, {"accessToken": f"{number}: {form}".replace(" ", "_")})
        trial.write_json(".mcp.json", {"mcpServers": servers})
        trial.write_json(SETTINGS, APPROVED)
        trial.write_json(STORE, {"mcpOAuth": entries}, mode=0o600)
        trial.run("mcp", "list", env=VALUES)
    return {f"claude.key.{name}": form_of(doors.shown(name), number) for number, name in enumerate(CASES)}


def form_of(token: str | None, number: int) -> str | None:
    """The form that a token of this case lay under; None where none was shown."""
    wanted = f"{number}:_"
    return token.removeprefix(wanted).replace("_", " ") if token and token.startswith(wanted) else None
