"""How Pi's adapter reads its configuration: which files, how they meet, what it takes and what it passes over."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.canary.claims import Claim, probe
from harness.canary.probes.doors import Doors
from harness.canary.probes.pi.ground import AGENT, CONFIG, configure, session, told, told_of
from harness.canary.probes.witnesses import notes, witness
from harness.canary.trial import Trial

CONNECTED = None
"""What stderr says of a server that connects."""


class Case(NamedTuple):
    """An entry; a server behind a url gets `url` with a door of its own, a stdio one the witness' command."""

    says: str
    entry: Any
    reads: tuple[str, ...] = ()
    relied_on: tuple[str, ...] = ()


URL, WITNESS = "URL", "WITNESS"
ENTRIES: Mapping[str, Case] = {
    "good": Case("an entry beside bad ones connects", {"url": URL}),
    "text": Case("a text is no entry", "x"),
    "null": Case("null is no entry", None),
    "list": Case("a list is no entry", [1]),
    "empty": Case("an entry without command, url or socket", {}),
    "both": Case("an entry with command and url", {"command": "x", "url": URL}),
    "number-command": Case("a command that is a number", {"command": 5}),
    "empty-command": Case("an empty command", {"command": ""}),
    "number-url": Case("a url that is a number", {"url": 5}),
    "relative-url": Case("a url without a host", {"url": "mcp"}),
    "text-args": Case("args that are a text", {WITNESS: True, "args": "x"}),
    "number-arg": Case("an argument that is a number", {"command": "true", "args": [5]}),
    "number-env": Case("an env value that is a number", {WITNESS: True, "env": {"A": 5}}),
    "null-env": Case("an env value that is null", {WITNESS: True, "env": {"A": None}}),
    "text-env": Case("env that is a text", {WITNESS: True, "env": "x"}),
    "number-header": Case("a header that is a number", {"url": URL, "headers": {"X-A": 5}}),
    "text-headers": Case("headers that are a text", {"url": URL, "headers": "x"}),
    "sse": Case("`type` sse is passed over", {"type": "sse", "url": URL}, relied_on=("translate-pi-shape",)),
    "stdio-url": Case("`type` stdio is passed over", {"type": "stdio", "url": URL}, relied_on=("translate-pi-shape",)),
    "unknown-type": Case("`type` that nobody knows is passed over", {"type": 7, "url": URL}),
    "unknown-fields": Case(
        "fields that nobody knows are passed over", {"url": URL, "title": "x", "startup_timeout_sec": 1, "enabled": 0}
    ),
    "disabled": Case("`disabled` true", {"url": URL, "disabled": True}, relied_on=("translate-pi-shape",)),
    "disabled-text": Case("`disabled` as a text", {"url": URL, "disabled": "true"}),
    "disabled-number": Case("`disabled` as a number", {"url": URL, "disabled": 1}),
    "lifecycle": Case("a lifecycle that nobody knows", {"url": URL, "lifecycle": "never"}),
    "unset-url": Case("a url with a variable that is not set", {"url": f"{URL}/${{UNSET}}"}),
    "empty-variable-url": Case("a url with a variable that is empty", {"url": f"{URL}/${{EMPTY}}"}),
    "unset-cwd": Case("a directory with a variable that is not set", {WITNESS: True, "cwd": "${UNSET}"}),
    "1": Case("a name that is a number", {"url": URL}),
}  # fmt: skip


def filled(entry: Any, name: str, base: str, trial: Trial) -> Any:
    """The entry with its own door, or the witness' command."""
    if not isinstance(entry, dict):
        return entry
    given = {key: value for key, value in entry.items() if key != WITNESS}
    if WITNESS in entry:
        given = {**witness(trial, name), **given}
    return json.loads(json.dumps(given).replace(URL, f"{base}/{name}"))


@probe(
    *(
        Claim(
            f"pi.entry.{name}",
            case.says,
            relied_on=("prepare-pi-seed-shape", *case.relied_on),
            affects="entries of this form; no other one",
            reads=case.reads,
        )
        for name, case in ENTRIES.items()
    ),
    Claim(
        "pi.entry.exit",
        "whatever is in the entries, the run ends with 0",
        assumes=0,
        affects="every run",
    ),
    seconds=4.0,
)
def entries(trial: Trial) -> Mapping[str, Any]:
    """All entries in one file: whether the server was reached, and what is told of it."""
    doors = Doors()
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        configure(trial, {name: filled(case.entry, name, base, trial) for name, case in ENTRIES.items()})
        run = session(trial, env={"EMPTY": ""})
    return {
        **{
            f"pi.entry.{name}": [
                bool(doors.visited(name) or notes(trial, name, "received")),
                told_of(trial, run, name),
            ]
            for name in ENTRIES
        },
        "pi.entry.exit": run.exit_code,
    }


VALUES = {"WORD": "hello", "EMPTY": "", "INDIRECT": "${WORD}"}
SPELLINGS: Mapping[str, tuple[str, str]] = {
    "braces": ("${WORD}", "hello"),
    "dollar-env": ("$env:WORD", "hello"),
    "braces-env": ("{env:WORD}", "hello"),
    "bare": ("$WORD", "$WORD"),
    "default": ("${WORD:-other}", "${WORD:-other}"),
    "unset-default": ("${UNSET:-other}", "${UNSET:-other}"),
    "unset": ("<${UNSET}>", "<>"),
    "unset-env": ("<$env:UNSET>", "<>"),
    "empty": ("<${EMPTY}>", "<>"),
    "indirect": ("${INDIRECT}", "${WORD}"),
    "twice": ("${WORD}-${WORD}", "hello-hello"),
    "lower": ("<${word}>", "<>"),
    "spaces": ("${ WORD }", "${ WORD }"),
    "percent": ("%WORD%", "%WORD%"),
    "dollars": ("$${WORD}", "$hello"),
    "mark": ("!!printf", "!printf"),
}
"""How a variable may be spelled, and what the reference takes it for."""


def expands_to(value: str) -> Any:
    """True where a header and a variable of a child have this value."""
    return lambda seen: seen["header"] == seen["env"] == value


@probe(
    *(
        Claim(
            f"pi.expansion.{name}",
            f"`{text}` in a header, in env, in args and as a token",
            assumes=expands_to(value),
            affects="entries with placeholders of that form",
        )
        for name, (text, value) in SPELLINGS.items()
    ),
    Claim(
        "pi.expansion.command-word",
        "the command itself is never expanded",
        affects="entries with a placeholder in the command",
    ),
    Claim("pi.expansion.url", "the url is expanded", assumes=["/url/hello", "/urlenv/hello"], affects="remote entries"),
    Claim(
        "pi.expansion.shell",
        "a value that begins with one exclamation mark is a command, and what it prints the value",
        not_modelled="a fake runs nothing that stands in a configuration",
        affects="values that begin with an exclamation mark",
    ),
    Claim(
        "pi.expansion.unset-told", "nothing is said of a variable that is not set", assumes=[], affects="every entry"
    ),
    seconds=3.0,
)
def expansion(trial: Trial) -> Mapping[str, Any]:
    """All spellings at each place, in one session."""
    doors = Doors()
    texts = {name: text for name, (text, _) in SPELLINGS.items()}
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        child = witness(trial, "child")
        servers: dict[str, Any] = {
            "headers": {"url": f"{base}/headers", "headers": {f"X-{name}": text for name, text in texts.items()}},
            "child": {
                **child,
                "args": [*child["args"], *texts.values()],
                "env": {f"IN_{name}": text for name, text in texts.items()},
            },
            "url": {"url": f"{base}/url/${{WORD}}", "headers": {"X-A": "1"}},
            "urlenv": {"url": f"{base}/urlenv/$env:WORD", "headers": {"X-A": "1"}},
            "word": {"command": "/no/${WORD}"},
            "shell": {"url": f"{base}/shell", "headers": {"X-Shell": "!printf ran"}},
        }
        for name, text in texts.items():
            servers[f"bearer-{name}"] = {"url": f"{base}/bearer-{name}", "auth": "bearer", "bearerToken": text}
        configure(trial, servers)
        run = session(trial, env={**VALUES})
    headers = doors.visits["headers"][0].headers
    started = notes(trial, "child", "start")[0]
    arguments = dict(zip(texts, started["args"], strict=True))
    found: dict[str, Any] = {}
    for name in texts:
        visits = doors.visits.get(f"bearer-{name}", [])
        found[f"pi.expansion.{name}"] = {
            "header": value_of(headers, f"X-{name}"),
            "env": started["environment"].get(f"IN_{name}"),
            "args": arguments[name],
            "bearer": value_of(visits[0].headers, "Authorization") if visits else None,
        }
    paths = [f"/{doors.visits[name][0].path.partition('?')[0]}" for name in ("url", "urlenv")]
    shell = doors.visits.get("shell", [])
    return {
        **found,
        "pi.expansion.url": paths,
        "pi.expansion.command-word": told_of(trial, run, "word"),
        "pi.expansion.shell": value_of(shell[0].headers, "X-Shell") if shell else None,
        "pi.expansion.unset-told": [line for line in told(trial, run) if "UNSET" in line],
    }


def value_of(headers: Mapping[str, str], name: str) -> str | None:
    """A header whatever the case of its name."""
    return next((value for each, value in headers.items() if each.lower() == name.lower()), None)


FILES: Mapping[str, str] = {
    "shared": "~/.config/mcp/mcp.json",
    "agents": "~/.agents/mcp.json",
    "agents-folder": "~/.agents/mcp/mcp.json",
    "agent": CONFIG,
    "project": ".mcp.json",
    "project-pi": ".pi/mcp.json",
}
"""All files, the one that every other goes over first."""
OTHERS: Mapping[str, str] = {
    "claude": "~/.claude.json",
    "claude-folder": "~/.claude/mcp.json",
    "vscode": ".vscode/mcp.json",
    "cursor": "~/.cursor/mcp.json",
}
"""Files of other hosts."""
MERGES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any] | None]] = {
    "field-kept": ({"url": URL, "headers": {"X-A": "1"}}, {"lifecycle": "lazy"}),
    "headers-replaced": ({"url": URL, "headers": {"X-A": "1"}}, {"headers": {"X-B": "2"}}),
    "same-url": ({"url": URL, "headers": {"X-A": "1"}}, {"url": URL}),
    "other-url": ({"url": URL, "headers": {"X-A": "1"}}, {"url": f"{URL}/other"}),
    "command-over-url": ({"url": URL, "headers": {"X-A": "1"}}, {WITNESS: True}),
    "url-over-command": ({WITNESS: True, "env": {"A": "1"}}, {"url": URL}),
    "disabled": ({"url": URL}, {"disabled": True}),
    "enabled": ({"url": URL, "disabled": True}, {"disabled": False}),
    "broken": ({"url": URL}, None),
}
"""An entry in the lowest file and what the highest says of the same server."""


@probe(
    Claim(
        "pi.files.order",
        "six files are read, the later over the earlier: two shared ones, the agent's, then the project's two",
        assumes=[list(FILES), "project-pi"],
        relied_on=("prepare-pi-seed-existing-wins",),
        affects="every entry",
    ),
    Claim("pi.files.others", "files of other hosts are not read", assumes=[], affects="every entry"),
    Claim(
        "pi.files.flag",
        "`--mcp-config` stands in for the agent's file",
        assumes=["shared", "agents", "agents-folder", "flagged", "project", "project-pi"],
        affects="runs with `--mcp-config`",
    ),
    Claim("pi.files.exclusive", "PI_MCP_CONFIG_MODE=exclusive leaves the agent's file alone", assumes=["agent"]),
    *(
        Claim(
            f"pi.merge.{name}",
            "what a higher file says of a server goes over the lower one's field by field",
            relied_on=("prepare-pi-seed-existing-wins",),
            affects="servers that two files name",
        )
        for name in MERGES
    ),
    seconds=6.0,
)
def files(trial: Trial) -> Mapping[str, Any]:
    """Each file names a server of its own and one that all name; three sessions."""
    seen: dict[str, Any] = {}
    runs: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
        "order": ((), {}),
        "flag": (("--mcp-config", "flagged.json"), {}),
        "exclusive": ((), {"PI_MCP_CONFIG_MODE": "exclusive"}),
    }
    for name, (words, environment) in runs.items():
        doors = Doors()
        with trial.serving(doors=doors) as urls, trial.modelled():
            base = urls["doors"].removesuffix("/mcp")
            for file, path in {**FILES, **OTHERS, "flagged": "flagged.json"}.items():
                both = {"both": {"url": f"{base}/both-{file}"}} if file in FILES else {}
                configure(trial, {file: {"url": f"{base}/{file}"}, **both}, path)
            if name == "order":
                write_merges(trial, base)
            trial.place(f"{AGENT}/mcp-cache.json").unlink(missing_ok=True)
            session(trial, *words, env={**environment})
        reached = [file for file in (*FILES, "flagged", *OTHERS) if doors.visited(file)]
        both_at = next((file for file in FILES if doors.visited(f"both-{file}")), None)
        if name == "order":
            seen["pi.files.order"] = [[file for file in reached if file in FILES], both_at]
            seen["pi.files.others"] = [file for file in reached if file in OTHERS]
            seen |= {f"pi.merge.{merge}": merged(trial, doors, merge) for merge in MERGES}
        elif name == "flag":
            order = ["shared", "agents", "agents-folder", "agent", "flagged", "project", "project-pi"]
            seen["pi.files.flag"] = [file for file in order if file in reached]
        else:
            seen["pi.files.exclusive"] = reached
    return seen


def write_merges(trial: Trial, base: str) -> None:
    """Both entries of each case, beside what the two files hold already."""
    for number, path in enumerate((FILES["shared"], FILES["project-pi"])):
        document = trial.read_json(path)
        for name, pair in MERGES.items():
            document["mcpServers"][f"merge-{name}"] = filled(pair[number], f"merge-{name}", base, trial)
        trial.write_json(path, document)


def merged(trial: Trial, doors: Doors, name: str) -> list[Any]:
    """What reached the server: its path and own headers, or the variable that was its process'."""
    visits = doors.visits.get(f"merge-{name}", [])
    started = notes(trial, f"merge-{name}", "start")
    own = {key: value for key, value in (visits[0].headers if visits else {}).items() if key.lower() in ("x-a", "x-b")}
    return [
        visits[0].path if visits else None,
        {key.upper(): value for key, value in own.items()},
        started[0]["environment"].get("A", "") if started else None,
    ]


LOST = re.compile(r"Failed to load MCP config from (\S+): ")
TEXTS: Mapping[str, tuple[str, str]] = {
    "comments": ("comments and trailing commas are taken, and `mcp-servers` as a name",
                 '{/* c */ "mcp-servers": {"comments": {"url": "URL",},}, // x\n}'),
    "empty": ("an empty file", ""),
    "blank": ("a file of blanks", " \n"),
    "list": ("a list", "[]"),
    "broken": ("a file that is cut off", '{"mcpServers": {"broken": {"url": "URL"}'),
    "settings": ("settings that are no object", '{"settings": 5, "mcpServers": {"settings": {"url": "URL"}}}'),
    "servers": ("servers that are a list", '{"mcpServers": [{"url": "URL"}]}'),
    "bom": ("a byte order mark", '\ufeff{"mcpServers": {"bom": {"url": "URL"}}}'),
    "twice": ("a name that comes twice", '{"mcpServers": {"twice": {"url": "URL/first"}, "twice": {"url": "URL"}}}'),
}  # fmt: skip
DERIVED: Mapping[str, Mapping[str, Any]] = {
    "empty": {"empty_file_is_absent": lambda seen: not seen[1]},
    "blank": {"empty_file_is_absent": lambda seen: not seen[1]},
    "settings": {"settings_must_be_object": lambda seen: seen[1]},
}
"""The lines of a profile that follow from one of these."""


@probe(
    *(
        Claim(
            f"pi.file.{name}",
            f"{says}: whether its servers are there, and whether the file is told to be lost",
            affects="all entries of such a file",
            reads=tuple(DERIVED.get(name, {})),
            derive=DERIVED.get(name, {}) if name != "blank" else {},
            parts=("its servers that are there", "the file is told to be lost"),
        )
        for name, (says, _) in TEXTS.items()
    ),
    Claim("pi.file.good", "a good file beside bad ones is read", assumes=True, affects="all entries"),
    seconds=5.0,
)
def bad_files(trial: Trial) -> Mapping[str, Any]:
    """Two sessions, with a bad text in each file but one."""
    seen: dict[str, Any] = {}
    paths = [path for name, path in FILES.items() if name != "agent"]
    good = []
    for names in (list(TEXTS)[:5], list(TEXTS)[5:]):
        doors = Doors()
        with trial.serving(doors=doors) as urls, trial.modelled():
            base = urls["doors"].removesuffix("/mcp")
            for path in paths:
                trial.place(path).unlink(missing_ok=True)
            places = dict(zip(names, paths, strict=False))
            for name, path in places.items():
                trial.write(path, TEXTS[name][1].replace("URL", f"{base}/{name}"))
            configure(trial, {"good": {"url": f"{base}/good"}})
            trial.place(f"{AGENT}/mcp-cache.json").unlink(missing_ok=True)
            run = session(trial)
        lost = set(LOST.findall(run.stderr))
        for name, path in places.items():
            seen[f"pi.file.{name}"] = [
                [visit.path for visit in doors.visits.get(name, [])[:1]],
                str(trial.place(path)) in lost,
            ]
        good.append(doors.visited("good"))
    return {**seen, "pi.file.good": all(good)}
