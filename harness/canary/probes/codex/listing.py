"""What `codex mcp list --json` says of servers as they are configured."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.mcp.http import HttpServer
from harness.canary.claims import UNSTATED, Claim, probe
from harness.canary.probes.codex.asking import CONFIG, STORE, configure, entry, now_ms, toml
from harness.canary.trial import Trial

SERVERS: Mapping[str, Mapping[str, Any]] = {
    "stdio": {
        "command": "tool",
        "args": ["-a", "b"],
        "env": {"K": "v"},
        "env_vars": ["NAME"],
        "cwd": "/srv",
        "startup_timeout_sec": 1.5,
        "tool_timeout_sec": 7,
    },
    "bare": {"command": "tool"},
    "remote": {"url": "https://one.example.com/mcp", "http_headers": {"X-A": "1"}, "env_http_headers": {"X-B": "VAR"}},
    "both-units": {"command": "tool", "startup_timeout_sec": 7, "startup_timeout_ms": 9000},
    "milliseconds": {"command": "tool", "startup_timeout_ms": 9500},
    "off": {"command": "tool", "enabled": False, "required": True},
    "odd": {
        "command": "tool",
        "type": "stdio",
        "transport": "stdio",
        "headers": {"A": "b"},
        "disabled": True,
        "alwaysAllow": ["x"],
    },
    "odd.name": {"command": "tool"},
}
STATUSES: Mapping[str, tuple[str, Any]] = {
    "stored": ("a stored token that is good", {}),
    "no-client": ("a stored token without a client", {"client_id": ""}),
    "expired": ("a stored token that has expired", {"expires_at": "past"}),
    "renewable": ("one that has expired and can be renewed", {"expires_at": "past", "refresh_token": "r"}),
    "issued": (
        "one that has expired and says who issued it",
        {"expires_at": "past", "refresh_token": "r", "issuer": "https://issuer.test"},
    ),
    "none": ("no token, to a server that knows no OAuth", None),
    "configured": ("a token of the entry", None),
    "nobody": ("no token, to a port where nobody listens", None),
}


@probe(
    Claim(
        "codex.list.fields", "the fields of an entry", affects="whoever reads the list", reads=("header_helper_key",)
    ),
    Claim(
        "codex.list.seconds-win",
        "of `startup_timeout_sec` and `startup_timeout_ms` the seconds win",
        assumes=[7.0, 9.5, 1.5],
        relied_on=("prepare-codex-local-sec-wins", "translate-unit-startup-conflict"),
        affects="entries with a budget",
    ),
    Claim(
        "codex.list.unknown-keys",
        "unknown keys of an entry are passed over: type, transport, headers, disabled",
        assumes=[0, True],
        relied_on=("translate-footgun-codex-unknown-ignored", "translate-codex-drop-type"),
        affects="entries copied from another runtime",
    ),
    Claim(
        "codex.list.misspelt",
        "`[mcpServers.x]` is no server",
        assumes=False,
        relied_on=("translate-map-key-canonicalisation",),
    ),
    Claim("codex.list.order", "the servers are listed by name, whatever they are called"),
    Claim("codex.list.starts-nothing", "nothing is started by it", assumes=True),
    seconds=0.5,
)
def listed_fields(trial: Trial) -> Mapping[str, Any]:
    """One list of all."""
    starter = {"command": "touch", "args": [str(trial.project / "started")]}
    lost = {"lost": {"command": "tool"}}
    trial.write(CONFIG, toml({"mcp_servers": {**SERVERS, "starter": starter}, "mcpServers": lost}))
    run = trial.run("mcp", "list", "--json")
    listed = {each["name"]: each for each in json.loads(run.stdout or "[]")}
    fields = {
        name: {key: value for key, value in listed[name].items() if key != "name"}
        for name in ("stdio", "remote", "off")
    }
    return {
        "codex.list.fields": fields,
        "codex.list.seconds-win": [
            listed[name]["startup_timeout_sec"] for name in ("both-units", "milliseconds", "stdio")
        ],
        "codex.list.unknown-keys": [run.exit_code, listed["odd"]["enabled"]],
        "codex.list.misspelt": "lost" in listed,
        "codex.list.order": list(listed),
        "codex.list.starts-nothing": trial.read("started") is None,
    }


@probe(
    *(
        Claim(
            f"codex.list.auth-{name}",
            f"the `auth_status` for {says}",
            assumes="o_auth" if name == "stored" else UNSTATED,
            relied_on=("writers-codex-file-schema",) if name == "stored" else (),
            affects="remote entries",
            reads={
                "issued": ("renewal_needs_issuer",),
                "renewable": ("renewal_needs_issuer",),
                "nobody": ("unknown_status",),
            }.get(name, ()),
            derive={"unknown_status": str} if name == "nobody" else {},
        )
        for name, (says, _) in STATUSES.items()
    ),
    Claim(
        "codex.list.discovery",
        "what a server is asked for to tell whether it knows OAuth",
        affects="remote entries without a token",
    ),
    seconds=0.5,
)
def auth_statuses(trial: Trial) -> Mapping[str, Any]:
    """One list; the server of each is a path of one server, another one is asked about."""
    asked, quiet = HttpServer(Behaviour()), HttpServer(Behaviour())
    with trial.serving(quiet=quiet, asked=asked) as urls:
        base = urls["quiet"].removesuffix("/mcp")
        servers: dict[str, dict[str, Any]] = {name: {"url": f"{base}/{name}"} for name in STATUSES}
        servers["configured"]["bearer_token_env_var"] = "TOKEN"
        servers["nobody"]["url"] = "http://127.0.0.1:9/mcp"
        servers["none"]["url"] = urls["asked"]
        store = {}
        for name, (_, fields) in STATUSES.items():
            if fields is not None:
                given = {key: now_ms() - 60_000 if value == "past" else value for key, value in fields.items()}
                store[name] = entry(name, servers[name]["url"], **given)
        configure(trial, servers)
        trial.write_json(STORE, store, mode=0o600)
        run = trial.run("mcp", "list", "--json", env={"TOKEN": "token"})
    listed = {each["name"]: each["auth_status"] for each in json.loads(run.stdout or "[]")}
    seen: dict[str, Any] = {f"codex.list.auth-{name}": listed.get(name) for name in STATUSES}
    origin = urls["asked"].removesuffix("/mcp")
    seen["codex.list.discovery"] = [f"{each.method} {each.url.removeprefix(origin)}" for each in asked.requests]
    return seen
