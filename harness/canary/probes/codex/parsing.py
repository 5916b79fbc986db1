"""How Codex reads its configuration: what it takes, what it refuses, whose word counts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_servers.mcp.http import HttpServer
from harness.canary.claims import UNSTATED, Claim, probe
from harness.canary.probes.codex.asking import CONFIG, PROJECT_CONFIG, executed, spoken_to, talking, toml
from harness.canary.trial import Finished, Trial
from harness.reference.prepare.codex_tables import refusal

PLACE = re.compile(r"^(?:\d+: )?(Error(?: loading config\.toml)?: ?)?(?:\S*config\.toml:\d+:\d+: )?")
SNIPPET = re.compile(r"(?:\d+ )?\|")
SAID = ("exit code", "what is said")
"""What the positions of a verdict are."""
GUARDED = ("prepare-codex-entry-validated", "install-codex-whole-file-guard")
FAILED = "Error: failed to load "
COMMAND, URL = {"command": "tool"}, {"url": "https://one.example.com/mcp"}


class Odd(NamedTuple):
    """An entry that may be refused; `settings` stand at the top of the file."""

    says: str
    entry: Mapping[str, Any]
    settings: Mapping[str, Any] = {}
    reads: tuple[str, ...] = ()


ODD: Mapping[str, Odd] = {
    "both": Odd("both command and url", {**COMMAND, **URL}),
    "neither": Odd("neither command nor url", {"args": []}),
    "args-of-url": Odd("args beside a url", {**URL, "args": []}),
    "env-of-url": Odd("env beside a url", {**URL, "env": {"A": "b"}}),
    "env-vars-of-url": Odd("env_vars beside a url", {**URL, "env_vars": ["A"]}),
    "cwd-of-url": Odd("cwd beside a url", {**URL, "cwd": "/srv"}),
    "token-of-url": Odd("a literal bearer_token", {**URL, "bearer_token": "x"}),
    "headers-of-command": Odd("http_headers beside a command", {**COMMAND, "http_headers": {"A": "b"}}),
    "oauth-of-command": Odd("oauth beside a command", {**COMMAND, "oauth": {"client_id": "x"}}),
    "token-of-command": Odd("bearer_token_env_var beside a command", {**COMMAND, "bearer_token_env_var": "X"}),
    "text-budget": Odd("a text as budget", {**COMMAND, "startup_timeout_sec": "20"}),
    "negative-budget": Odd("a budget below 0", {**COMMAND, "startup_timeout_sec": -1}),
    "fraction-ms": Odd("a fraction of milliseconds", {**COMMAND, "startup_timeout_ms": 1.5}),
    "number-in-env": Odd("a number in env", {**COMMAND, "env": {"A": 1}}),
    "truth-in-env": Odd("a boolean in env", {**COMMAND, "env": {"A": True}}),
    "number-in-headers": Odd("a number in http_headers", {**URL, "http_headers": {"A": 1}}),
    "text-args": Odd("a text as args", {**COMMAND, "args": "a b"}),
    "number-in-args": Odd("a number in args", {**COMMAND, "args": [1]}),
    "list-command": Odd("a list as command", {"command": ["tool"]}),
    "text-enabled": Odd("a text as enabled", {**COMMAND, "enabled": "true"}),
    "approval-mode": Odd("an unknown approval mode", {**COMMAND, "default_tools_approval_mode": "always"}),
    "tool-mode": Odd("an unknown mode of a tool", {**COMMAND, "tools": {"t": {"approval_mode": "always"}}}),
    "env-source": Odd("an unknown source in env_vars", {**COMMAND, "env_vars": [{"name": "A", "source": "zz"}]}),
    "helper": Odd("http_headers_helper", {**URL, "http_headers_helper": 5}, reads=("header_helper_key",)),
    "grace-text": Odd("a text as grace", COMMAND, {"mcp_optional_startup_grace_ms": "zzz"}, reads=("grace_key",)),
    "servers-list": Odd("a list in place of the servers", {}, {"mcp_servers": []}),
    "fraction-budget": Odd("a fraction of a budget", {**COMMAND, "startup_timeout_sec": 1.5}),
    "modes": Odd(
        "the known approval modes",
        {**COMMAND, "default_tools_approval_mode": "approve", "tools": {"t": {"approval_mode": "writes"}}},
    ),
    "all-stdio": Odd(
        "all keys of a process",
        {
            **COMMAND,
            "args": ["a"],
            "env": {"A": "b"},
            "env_vars": ["A", {"name": "B", "source": "remote"}],
            "cwd": "/srv",
            "startup_timeout_sec": 20,
            "tool_timeout_sec": 5,
            "enabled": True,
            "required": False,
            "enabled_tools": ["a"],
            "disabled_tools": ["b"],
        },
    ),
    "all-remote": Odd(
        "all keys of a remote server",
        {
            **URL,
            "bearer_token_env_var": "A",
            "http_headers": {"A": "b"},
            "env_http_headers": {"C": "D"},
            "oauth": {"client_id": "x"},
            "oauth_resource": "https://one.example.com",
            "scopes": ["a"],
        },
    ),
}


def taken(odd: Odd) -> Any:
    """What the reference assumes: whether such an entry is taken. Nothing of the top of the file."""
    if odd.settings or "bearer_token" in odd.entry or "http_headers_helper" in odd.entry:
        return UNSTATED
    expected = refusal("odd", odd.entry) is None
    return lambda seen: (seen[0] == 0) is expected


@probe(
    *(
        Claim(
            f"codex.parse.{name}",
            f"whether an entry with {odd.says} is taken, and what is said of it",
            assumes=taken(odd),
            relied_on=() if taken(odd) is UNSTATED else GUARDED,
            affects="entries of that form",
            reads=("configuration_name", *odd.reads),
            derive={"configuration_name": lambda seen: seen[1][0].removeprefix(FAILED)} if name == "both" else {},
            parts=SAID,
        )
        for name, odd in ODD.items()
    ),
    seconds=4.0,
)
def odd_tables(trial: Trial) -> Mapping[str, Any]:
    """One list for each: its exit code, and the cause that it gives."""
    seen = {}
    for name, odd in ODD.items():
        servers = {"mcp_servers": {"good": COMMAND, "odd": odd.entry}}
        trial.write(CONFIG, toml({**servers, **odd.settings}))
        seen[f"codex.parse.{name}"] = verdict(trial, trial.run("mcp", "list", "--json"))
    return seen


def without_place(text: str | None) -> str:
    """A message that may name a place in a file."""
    return re.sub(r"\S*config\.toml:\d+:\d+: ", "", text or "")


def verdict(trial: Trial, run: Finished) -> list[Any]:
    """Exit code, and what is said, each line once and without the place in the file, which only some versions name."""
    said = [PLACE.sub(r"\1", line.strip()) for line in trial.normal(run.stderr).splitlines()]
    return [run.exit_code, list(dict.fromkeys(line for line in said if line and not SNIPPET.match(line)))]


def is_taken(seen: list[Any]) -> bool:
    """Whether a configuration was taken."""
    return bool(seen[0] == 0)


@probe(
    Claim(
        "codex.bad.list",
        "one bad entry beside a good one: `mcp list` shows none",
        assumes=1,
        relied_on=GUARDED,
        affects="all servers of that configuration",
    ),
    Claim(
        "codex.bad.exec",
        "one bad entry beside a good one: a run ends before anything starts, with these words",
        assumes=lambda seen: seen[:2] == [1, 0],
        relied_on=GUARDED,
        affects="all servers of that configuration",
        parts=("exit code", "lines on stdout", "what is said"),
    ),
    Claim(
        "codex.bad.app-server",
        "the app server goes on, but starts no thread and lists no server",
        assumes=lambda seen: all(each["error"] for each in seen),
    ),
    Claim("codex.bad.syntax", "so it is with a file that is no TOML", assumes=[1, 1]),
    *(
        Claim(
            f"codex.strict.{name}",
            f"read strictly, a configuration with {says}",
            assumes=assumes,
            relied_on=() if assumes is UNSTATED else ("translate-codex-drop-type",),
            affects="whoever turns strict reading on",
            reads=reads,
            derive=dict.fromkeys(reads, is_taken),
            parts=SAID,
        )
        for name, says, assumes, reads in (
            ("type", "a key that no version knows is refused", lambda seen: seen[0] == 1, ()),
            ("misspelt", "`mcpServers` is refused", lambda seen: seen[0] == 1, ()),
            ("helper", "`http_headers_helper`", UNSTATED, ("header_helper_key",)),
            ("grace", "`mcp_optional_startup_grace_ms`", UNSTATED, ("grace_key",)),
            ("known", "known keys is taken", [0, []], ()),
        )
    ),
    seconds=3.0,
)
def bad_entries(trial: Trial) -> Mapping[str, Any]:
    """A few starts, none of which asks a model."""
    server = HttpServer()
    strict: Mapping[str, Mapping[str, Any]] = {
        "type": {"mcp_servers": {"one": {**COMMAND, "type": "stdio"}}},
        "misspelt": {"mcpServers": {"one": COMMAND}},
        "helper": {"mcp_servers": {"one": {**URL, "http_headers_helper": "tool"}}},
        "grace": {"mcp_optional_startup_grace_ms": 0},
        "known": {"mcp_servers": {"one": {**COMMAND, "enabled": False, "required": True, "tool_timeout_sec": 5}}},
    }
    seen: dict[str, Any] = {}
    with trial.serving(server=server) as urls:
        trial.write(CONFIG, toml({"mcp_servers": {"good": {"url": urls["server"]}, "bad": {**COMMAND, **URL}}}))
        seen["codex.bad.list"] = trial.run("mcp", "list", "--json").exit_code
        run = executed(trial)
        seen["codex.bad.exec"] = [run.exit_code, len(run.lines), verdict(trial, run)[1]]
        with talking(trial) as talk:
            answers = [talk.begin(), talk.ask("mcpServerStatus/list", {})]
        seen["codex.bad.app-server"] = [
            {"error": each.get("error", {}).get("code"), "text": without_place(each.get("error", {}).get("message"))}
            for each in answers
        ]
    trial.write(CONFIG, "[mcp_servers.good\n")
    seen["codex.bad.syntax"] = [trial.run("mcp", "list", "--json").exit_code, executed(trial).exit_code]
    for name, tables in strict.items():
        trial.write(CONFIG, toml(tables))
        code, said = verdict(trial, trial.run("app-server", "--strict-config", *spoken_to(trial)))
        seen[f"codex.strict.{name}"] = [code, [line for line in said if line.startswith("Error")]]
    return seen


# --- names, layers, trust


NAMES: Mapping[str, str] = {"dot": "a.b", "slash": "a/b", "space": "a b", "empty": "", "letter": "ä", "plain": "a-b_C9"}


@probe(
    *(
        Claim(
            f"codex.name.add-{case}",
            f"`mcp add` of the name `{name}`",
            assumes=(lambda seen, plain=case == "plain": seen[0] == 0 if plain else True),
            relied_on=("status-codex-name-pattern",),
            affects="servers of such names",
            reads=("server_name_pattern",),
            parts=SAID,
        )
        for case, name in NAMES.items()
    ),
    seconds=1.0,
)
def added_names(trial: Trial) -> Mapping[str, Any]:
    """Exit code and words for each name."""
    seen = {}
    for case, name in NAMES.items():
        run = trial.run("mcp", "add", name, "--", "tool")
        words = trial.normal(run.stderr).strip().splitlines()
        seen[f"codex.name.add-{case}"] = [run.exit_code, words[:1]]
    return seen


LAYERS = ("user", "project", "word")
TRUSTED = {"trust_level": "trusted"}


@probe(
    Claim(
        "codex.layer.per-key",
        "the project's table lies over the user's of the same name, key by key",
        assumes=["user", 11.0, 5.0],
        relied_on=("prepare-local-values-merge",),
        affects="projects with a `.codex/config.toml`",
    ),
    Claim("codex.layer.switch-off", "the project can switch a user's server off", assumes=False),
    Claim("codex.layer.word", "`-c` lies over both", assumes=13.0),
    Claim("codex.layer.word-text", "a `-c` value that is no TOML is a text", assumes="new command"),
    Claim(
        "codex.layer.mixed",
        "a project's url over a user's command is an error",
        reads=("configuration_name",),
        parts=SAID,
    ),
    Claim("codex.layer.bad-project", "a bad entry of the project ends the run as well", assumes=1),
    Claim("codex.layer.bad-word", "a bad `-c` ends the run", assumes=1),
    Claim("codex.trust.list-untrusted", "`mcp list` passes over the project's file without trust", assumes=["user"]),
    Claim("codex.trust.list-subfolder", "below a trusted folder that is no repository the file does not count"),
    seconds=1.0,
)
def layers(trial: Trial) -> Mapping[str, Any]:
    """One list for each arrangement of files."""
    user = {"both": {"command": "user", "startup_timeout_sec": 22, "tool_timeout_sec": 5}, "off": COMMAND}
    project = {"both": {"startup_timeout_sec": 11}, "off": {"enabled": False}, "own": COMMAND}
    user_only = {"both": user["both"]}
    trusting = {"projects": {str(trial.project): TRUSTED}}
    trial.write(CONFIG, toml({**trusting, "mcp_servers": user}))
    trial.write(PROJECT_CONFIG, toml({"mcp_servers": project}))
    merged = servers_of(trial.run("mcp", "list", "--json"))
    budget = "mcp_servers.both.startup_timeout_sec=13"
    worded = servers_of(trial.run("-c", budget, "-c", "mcp_servers.both.command=new command", "mcp", "list", "--json"))
    bad_word = trial.run("-c", "mcp_servers.both.startup_timeout_sec=zzz", "mcp", "list", "--json")
    trial.write(PROJECT_CONFIG, toml({"mcp_servers": {"both": URL}}))
    mixed = verdict(trial, trial.run("mcp", "list", "--json"))
    trial.write(PROJECT_CONFIG, toml({"mcp_servers": {"bad": {"args": []}}}))
    bad = trial.run("mcp", "list", "--json")
    trial.write(CONFIG, toml({"mcp_servers": user_only}))
    trial.write(PROJECT_CONFIG, toml({"mcp_servers": {"own": COMMAND}}))
    untrusted = servers_of(trial.run("mcp", "list", "--json"))
    trial.write(CONFIG, toml({"projects": {str(trial.folder): TRUSTED}, "mcp_servers": user_only}))
    below = servers_of(trial.run("mcp", "list", "--json"))
    both = merged.get("both", {})
    return {
        "codex.layer.per-key": [
            both.get("transport", {}).get("command"),
            both.get("startup_timeout_sec"),
            both.get("tool_timeout_sec"),
        ],
        "codex.layer.switch-off": merged.get("off", {}).get("enabled"),
        "codex.layer.word": worded.get("both", {}).get("startup_timeout_sec"),
        "codex.layer.word-text": worded.get("both", {}).get("transport", {}).get("command"),
        "codex.layer.mixed": mixed,
        "codex.layer.bad-project": bad.exit_code,
        "codex.layer.bad-word": bad_word.exit_code,
        "codex.trust.list-untrusted": ["user"] if list(untrusted) == ["both"] else list(untrusted),
        "codex.trust.list-subfolder": list(below),
    }


def servers_of(run: Finished) -> dict[str, Any]:
    """A list by its names."""
    return {each["name"]: each for each in json.loads(run.stdout or "[]")}
