"""Under which key Codex keeps a stored credential, and by what it finds one: they are not the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from fake_servers.mcp.http import HttpServer, Seen
from harness.canary.claims import UNSTATED, Claim, probe
from harness.canary.probes.codex.asking import STORE, Told, configure, entry, now_ms, statuses
from harness.canary.trial import Trial
from harness.reference.credentials.key import runtime_key
from harness.world.ports import header

STORED_AS_FILE = {"mcp_oauth_credentials_store": "file"}
HEADERS = {"X-A": "1"}
REFERENCE = "the reference's"
OWN: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "plain": ("plain", "", {}),
    "headers": ("headers", "", {"http_headers": HEADERS}),
    "trailing-slash": ("slash", "/", {}),
    "ampersand": ("amp", "?a=1&b=<2>", {}),
}
"""Name, end of the url, and what else the entry has."""


def key_of(name: str, members: Mapping[str, Any]) -> str:
    """A key over the compact JSON of any members."""
    return f"{name}|{sha256(json.dumps(members, separators=(',', ':')).encode()).hexdigest()[:16]}"


def candidates(name: str, url: str) -> dict[str, str]:
    """Keys that implementations have been seen to compute, by what is special about each."""
    return {
        runtime_key("codex", name, {"type": "http", "url": url, "headers": HEADERS}, {}): REFERENCE,
        key_of(name, {"headers": {}, "type": "http", "url": url}): "sorted members",
        key_of(name, {"type": "http", "url": url, "headers": HEADERS}): "headers counted",
        key_of(name, {"type": "streamable_http", "url": url, "headers": {}}): "another type",
        key_of(name, {"type": "http", "url": url.rstrip("/") + "/x", "headers": {}}): "another url",
    }


def own_key(name: str, says: str) -> Claim:
    """The claim about one entry's own key."""
    return Claim(
        f"codex.key.{name}",
        f"`mcp logout` removes the entry under the key {says}, and no other",
        "seed 002",
        assumes=[REFERENCE],
        relied_on=("credential-key-canary-real-runtime", "writers-codex-key-forced", "reconcile-key-codex"),
        affects="every stored OAuth credential of a remote entry",
    )


@probe(
    own_key("plain", "over type http, the url and no headers, in this order"),
    own_key("headers", "without the entry's headers"),
    own_key("trailing-slash", "with the url's slash at its end"),
    own_key("ampersand", "with the url as it is written"),
    Claim("codex.key.last-entry", "the store's file goes with its last entry"),
    seconds=1.0,
)
def own_keys(trial: Trial) -> Mapping[str, Any]:
    """Each server has an entry under every candidate; the one that `mcp logout` removes is its own."""
    servers: dict[str, dict[str, Any]] = {}
    store: dict[str, Any] = {}
    known: dict[str, dict[str, str]] = {}
    for name, end, more in OWN.values():
        url = f"https://{name}.example.com/mcp{end}"
        servers[name] = {"url": url, **more}
        known[name] = candidates(name, url)
        store |= {key: entry(name, url) for key in known[name]}
    configure(trial, servers, **STORED_AS_FILE)
    trial.write_json(STORE, store, mode=0o600)
    seen = {}
    for case, (name, _, _) in OWN.items():
        trial.run("mcp", "logout", name)
        left = trial.read_json(STORE) or {}
        seen[f"codex.key.{case}"] = sorted(known[name][key] for key in known[name] if key not in left)
    name, _, _ = OWN["plain"]
    trial.write_json(STORE, {key: entry(name, servers[name]["url"]) for key in [*known[name]][:1]}, mode=0o600)
    trial.run("mcp", "logout", name)
    return {**seen, "codex.key.last-entry": trial.read(STORE)}


# --- by what an entry is found


NOTHING = None
USED = ["ready", "token"]
LOOKUPS: Mapping[str, tuple[str, Any]] = {
    "wrong-key": ("an entry under a key of no meaning is found by its name and url", "token"),
    "other-name": ("an entry of another name is not found, whatever its key", NOTHING),
    "other-url": ("an entry whose url has a slash more is not found", NOTHING),
    "two-entries": (
        "of two entries for one name and url that under the smaller key is read",
        "token of the smaller key",
    ),
    "headers": ("a server with headers of its own still gets the token", "token"),
    "authorization": ("an Authorization header of the entry goes before the stored token", "configured"),
    "bearer-variable": ("a token named by `bearer_token_env_var` goes before the stored one", "configured"),
}


def lookup(name: str, says: str, assumes: Any) -> Claim:
    """The claim about one way to be found."""
    relied_on = {
        "two-entries": ("writers-codex-one-entry-per-server",),
        "wrong-key": ("writers-codex-one-entry-per-server",),
    }
    return Claim(
        f"codex.lookup.{name}",
        says,
        assumes=assumes,
        relied_on=relied_on.get(name, ("flow-tokens-land-in-runtime-store",)),
        affects="remote entries with a stored credential",
    )


@probe(*(lookup(name, says, assumes) for name, (says, assumes) in LOOKUPS.items()), seconds=1.0)
def lookups(trial: Trial) -> Mapping[str, Any]:
    """All servers in one start: which token comes with the first message to each."""
    server = HttpServer()
    with trial.serving(doors=server) as urls:
        base = urls["doors"].removesuffix("/mcp")
        url = {name: f"{base}/{name}" for name in LOOKUPS}
        servers: dict[str, dict[str, Any]] = {name: {"url": url[name]} for name in LOOKUPS}
        servers["headers"]["http_headers"] = HEADERS
        servers["authorization"]["http_headers"] = {"Authorization": "Bearer configured"}
        servers["bearer-variable"]["bearer_token_env_var"] = "CONFIGURED"
        store = {name: entry(name, url[name], access_token="token") for name in LOOKUPS}
        store["other-name"]["server_name"] = "someone-else"
        store["other-url"]["server_url"] += "/"
        store["two-entries"]["access_token"] = "token of the larger key"
        store["two"] = entry("two-entries", url["two-entries"], access_token="token of the smaller key")
        configure(trial, servers)
        trial.write_json(STORE, store, mode=0o600)
        statuses(trial, *servers, env={"CONFIGURED": "configured"})
    return {f"codex.lookup.{name}": token_at(server.requests, name) for name in LOOKUPS}


def token_at(requests: list[Seen], place: str) -> str | None:
    """The token of the first message to one path."""
    for each in requests:
        if each.rpc_method == "initialize" and each.url.rpartition("/")[2] == place:
            return (header(each.headers, "Authorization") or "").removeprefix("Bearer ") or None
    return None


# --- which fields an entry needs, and in which unit


SPOILERS: Mapping[str, tuple[str, Mapping[str, Any], bool | None]] = {
    "server-name": ("without `server_name`", {"server_name": ...}, True),
    "server-url": ("without `server_url`", {"server_url": ...}, True),
    "client-id": ("without `client_id`", {"client_id": ...}, True),
    "access-token": ("without `access_token`", {"access_token": ...}, True),
    "text-expiry": ("with a text for `expires_at`", {"expires_at": "2030-01-01T00:00:00Z"}, True),
    "fraction": ("with a fraction in `expires_at`", {"expires_at": 1.5e12 + 0.5}, True),
    "text-scopes": ("with a text for `scopes`", {"scopes": "a b"}, True),
    "least": (
        "with only the four needed fields",
        {"expires_at": ..., "refresh_token": ..., "scopes": ...},
        False,
    ),
    "unknown": ("with unknown fields", {"token_type": "x", "more": {}}, False),
    "number-issuer": ("with a number for `issuer`", {"issuer": 5}, None),
}
"""What is odd about one entry, and whether it takes its neighbours with it."""


def spoiler(name: str, says: str, spoils: bool | None) -> Claim:
    """The claim about one odd entry."""
    read = {"neighbour": "o_auth", "odd": "o_auth"}
    assumed = {True: lambda seen: "o_auth" not in seen.values(), False: read, None: UNSTATED}[spoils]
    relied_on = {True: ("writers-codex-invalid-entry-kills-file",), False: ("writers-codex-file-schema",), None: ()}[
        spoils
    ]
    ends = {True: "makes the whole store unreadable", False: "is read", None: "may make the whole store unreadable"}
    return Claim(
        f"codex.store.{name}",
        f"an entry {says} {ends[spoils]}",
        assumes=assumed,
        relied_on=relied_on,
        affects="every stored credential of that home",
        reads=("unknown_status", *(("renewal_needs_issuer",) if spoils is None else ())),
    )


@probe(*(spoiler(name, says, spoils) for name, (says, _, spoils) in SPOILERS.items()), seconds=2.0)
def odd_entries(trial: Trial) -> Mapping[str, Any]:
    """What `mcp list` says of the odd entry's server and of its neighbour."""
    url = {name: f"http://127.0.0.1:9/{name}" for name in ("odd", "neighbour")}
    configure(trial, {name: {"url": where} for name, where in url.items()})
    seen = {}
    for name, (_, fields, _) in SPOILERS.items():
        odd = entry("odd", url["odd"], **fields)
        trial.write_json(STORE, {"odd": odd, "neighbour": entry("neighbour", url["neighbour"])}, mode=0o600)
        listed = json.loads(trial.run("mcp", "list", "--json").stdout or "[]")
        seen[f"codex.store.{name}"] = {each["name"]: each["auth_status"] for each in listed}
    return seen


UNITS: Mapping[str, tuple[str, Mapping[str, Any], Any]] = {
    "milliseconds": ("`expires_at` counts milliseconds", {}, USED),
    "null": ("an `expires_at` of null never expires", {"expires_at": None}, USED),
    "absent": ("a missing `expires_at` never expires", {"expires_at": ...}, USED),
    "seconds": ("an `expires_at` in seconds has expired long ago", {"expires_at": "seconds"}, UNSTATED),
    "past": ("a token that has expired, of a server that knows no OAuth", {"expires_at": "past"}, UNSTATED),
    "renewable": ("the same with a refresh token", {"expires_at": "past", "refresh_token": "r"}, UNSTATED),
    "issued": (
        "the same with an issuer as well",
        {"expires_at": "past", "refresh_token": "r", "issuer": "https://issuer.test"},
        UNSTATED,
    ),
    "margin-20": ("a token that expires in 20 seconds, of such a server", {"expires_at": "20"}, UNSTATED),
    "margin-40": ("a token that expires in 40 seconds is used", {"expires_at": "40"}, USED),
    "no-client": ("a token with an empty `client_id` is sent", {"client_id": ""}, UNSTATED),
    "with-issuer": ("an issuer does not matter to a token that is good", {"issuer": "https://issuer.test"}, USED),
}


def unit(name: str, says: str, assumes: Any) -> Claim:
    """The claim about one value."""
    return Claim(
        f"codex.expiry.{name}",
        says,
        assumes=assumes,
        relied_on=() if assumes is UNSTATED else ("writers-codex-file-schema", "reconcile-claude-millis"),
        affects="every stored OAuth credential of a remote entry",
    )


@probe(*(unit(name, says, assumes) for name, (says, _, assumes) in UNITS.items()), seconds=1.0)
def units(trial: Trial) -> Mapping[str, Any]:
    """All servers in one start: whether each became ready, and with which token."""
    server = HttpServer()
    now = now_ms()
    times = {"seconds": now // 1000 + 86_400, "past": now - 60_000, "20": now + 20_000, "40": now + 40_000}
    with trial.serving(doors=server) as urls:
        base = urls["doors"].removesuffix("/mcp")
        store = {}
        for name, (_, fields, _) in UNITS.items():
            given = {
                field: times.get(value, value) if field == "expires_at" else value for field, value in fields.items()
            }
            store[name] = entry(name, f"{base}/{name}", access_token="token", **given)
        configure(trial, {name: {"url": f"{base}/{name}"} for name in UNITS})
        trial.write_json(STORE, store, mode=0o600)
        told = statuses(trial, *UNITS)
    return {
        f"codex.expiry.{name}": [told[name].status, token_at(server.requests, name), *words_of(trial, told[name])]
        for name in UNITS
    }


def words_of(trial: Trial, told: Told) -> list[str | None]:
    """What is said of a failure."""
    return [] if told.error is None else [told.reason, trial.normal(told.error)]


# --- which store is read

STORES: Mapping[str, Any] = {"auto": "token", "file": "token", "keyring": None, "unset": "token"}


@probe(
    *(
        Claim(
            f"codex.store.selector-{name}",
            f"with the store {name} the file is {'read' if sent else 'not read'} where there is no keyring",
            assumes=sent,
            relied_on=("writers-codex-path", "flow-tokens-land-in-runtime-store"),
        )
        for name, sent in STORES.items()
    ),
    Claim("codex.store.selector-unknown", "an unknown store ends the program", assumes=True),
    seconds=3.0,
)
def store_selector(trial: Trial) -> Mapping[str, Any]:
    """One start for each value."""
    seen: dict[str, Any] = {}
    server = HttpServer()
    with trial.serving(doors=server) as urls:
        trial.write_json(STORE, {"x": entry("x", urls["doors"], access_token="token")}, mode=0o600)
        for name in STORES:
            settings = {} if name == "unset" else {"mcp_oauth_credentials_store": name}
            configure(trial, {"x": {"url": urls["doors"]}}, **settings)
            server.requests.clear()
            statuses(trial, "x")
            seen[f"codex.store.selector-{name}"] = token_at(server.requests, "mcp")
        configure(trial, {"x": {"url": urls["doors"]}}, mcp_oauth_credentials_store="zzz")
        refused = trial.run("mcp", "list", "--json")
    known = "unknown variant `zzz`, expected one of `auto`, `file`, `keyring`"
    seen["codex.store.selector-unknown"] = refused.exit_code == 1 and known in refused.stderr
    return seen
