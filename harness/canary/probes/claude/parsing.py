"""How `.mcp.json` is read: which entries are loaded, what is said of the others, what loses the whole file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.ground import APPROVED, SETTINGS, listing, project
from harness.canary.probes.doors import Doors
from harness.canary.probes.witnesses import notes, witness
from harness.canary.trial import Trial

LOADED, SKIPPED, SILENT = "loaded", "skipped", "absent without a word"


class Case(NamedTuple):
    """An entry and what becomes of it; `{url}` stands for a server's url, `{command}` for a program's path."""

    says: str
    entry: Any
    assumes: str | None
    reads: tuple[str, ...] = ()
    relied_on: tuple[str, ...] = ("translate-fake-claude-type-rules",)
    name: str = ""


NOBODY_LISTENS = "ws://127.0.0.1:9/mcp"
URL, COMMAND = "{url}", "{command}"
TEXTS, NAMES = ("faults_name_types",), ("reserved_names",)
WRONG = ("prepare-claude-json-format",)
CASES: Mapping[str, Case] = {
    "typeless-command": Case("a command without a type", {"command": COMMAND}, LOADED),
    "stdio": Case("type stdio", {"type": "stdio", "command": COMMAND}, LOADED),
    "http": Case("type http", {"type": "http", "url": URL}, LOADED),
    "streamable-http": Case("type streamable-http", {"type": "streamable-http", "url": URL}, LOADED),
    "sse": Case("type sse", {"type": "sse", "url": URL}, LOADED),
    "ws": Case("type ws", {"type": "ws", "url": NOBODY_LISTENS}, None, ("websocket_entries",)),
    "sdk": Case("type sdk", {"type": "sdk", "name": "x"}, None, ("sdk_entry_text",), name="typed-sdk"),
    "typeless-url": Case("a url without a type", {"url": URL}, SKIPPED),
    "unknown-type": Case("an unknown type", {"type": "streamableHttp", "url": URL}, SKIPPED),
    "upper-case-type": Case("a type in upper case", {"type": "HTTP", "url": URL}, SKIPPED),
    "null-type": Case("type null", {"type": None, "command": COMMAND}, SKIPPED, TEXTS),
    "http-without-url": Case("type http without a url", {"type": "http"}, SKIPPED, TEXTS),
    "stdio-without-command": Case("type stdio without a command", {"type": "stdio"}, SKIPPED, TEXTS),
    "empty": Case("an empty entry", {}, SKIPPED, TEXTS),
    "empty-command": Case("an empty command", {"command": ""}, SKIPPED),
    "number-command": Case("a command that is a number", {"command": 5}, SKIPPED, TEXTS),
    "text-args": Case("args that are a text", {"command": COMMAND, "args": "a b"}, SKIPPED, TEXTS),
    "number-arg": Case("an arg that is a number", {"command": COMMAND, "args": ["a", 5]}, SKIPPED, TEXTS),
    "number-env": Case("an env value that is a number", {"command": COMMAND, "env": {"N": 5}}, SKIPPED, TEXTS),
    "null-header": Case("a header that is null", {"type": "http", "url": URL, "headers": {"X": None}}, SKIPPED, TEXTS),
    "null": Case("an entry that is null", None, SKIPPED, TEXTS),
    "text": Case("an entry that is a text", "x", SKIPPED, TEXTS),
    "list": Case("an entry that is a list", [], SKIPPED, TEXTS),
    "unknown-keys": Case(
        "keys of other programs",
        {
            "type": "stdio",
            "command": COMMAND,
            "title": "t",
            "default_in_roots": ["r"],
            "unavailable": "no",
            "startup_timeout_sec": 5,
        },
        LOADED,
        relied_on=("prepare-unknown-keys-not-copied",),
    ),
    "startup-timeout": Case(
        "startupTimeoutSec",
        {"type": "stdio", "command": COMMAND, "startupTimeoutSec": 6},
        LOADED,
        relied_on=("startup-timeout-claude-key-not-written", "prepare-claude-no-entry-timeout-key"),
    ),
    "invalid-url": Case("a url that is none", {"type": "http", "url": "not a url"}, LOADED),
    "reserved-workspace": Case(
        "the name workspace",
        {"command": COMMAND},
        SKIPPED,
        NAMES,
        ("translate-reserved-claude-names", "prepare-claude-reserved-names"),
        "workspace",
    ),
    "reserved-chrome": Case(
        "the name claude-in-chrome",
        {"command": COMMAND},
        SKIPPED,
        NAMES,
        ("translate-reserved-claude-names", "prepare-claude-reserved-names"),
        "claude-in-chrome",
    ),
    "reserved-computer": Case(
        "the name computer-use",
        {"command": COMMAND},
        SKIPPED,
        NAMES,
        ("translate-reserved-claude-names", "prepare-claude-reserved-names"),
        "computer-use",
    ),
    "name-ide": Case(
        "the name ide", {"command": COMMAND}, LOADED, relied_on=("prepare-claude-reserved-names",), name="ide"
    ),
    "reserved-and-wrong": Case(
        "a reserved name of a server that could not be loaded under any other",
        {"command": 5},
        SKIPPED,
        NAMES + TEXTS,
        name="claude_ai",
    ),
    "name-with-dots": Case(
        "a name with dots, slashes and other letters", {"command": COMMAND}, LOADED, name="@a/b.c ü"
    ),
}


PREFIX = 'Skipped — MCP server "typed-sdk" '
DERIVED: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "ws": {"websocket_entries": lambda observed: observed["is"] == LOADED},
    "sdk": {"sdk_entry_text": lambda observed: "".join(observed["said"]).partition(PREFIX)[2]},
    "number-env": {"faults_name_types": lambda observed: "expected string" in "".join(observed["said"])},
}
CANDIDATES = (
    "workspace",
    "claude-in-chrome",
    "computer-use",
    "claude_ai",
    "claude.ai",
    "claude-ai",
    "claude-code",
    "claude",
    "anthropic",
    "ide",
    "mcp",
    "sdk",
    "default",
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
)
"""Names that a version may have taken for itself."""


def claim(name: str, case: Case) -> Claim:
    """The claim of a case."""
    wanted = case.assumes
    return Claim(
        f"claude.config.{name}",
        f"{case.says}: {wanted or 'whatever becomes of it'}",
        "seed 000",
        **({} if wanted is None else {"assumes": lambda observed: observed["is"] == wanted}),  # type: ignore[arg-type]
        relied_on=case.relied_on,
        affects="entries of this form",
        reads=case.reads,
        derive=DERIVED.get(name, {}),
    )


@probe(
    *(claim(name, case) for name, case in CASES.items()),
    Claim(
        "claude.config.reserved-names",
        "which names are skipped, of all those that a version may have taken for itself",
        relied_on=("translate-reserved-claude-names", "prepare-claude-reserved-names"),
        affects="servers with such names",
        reads=NAMES,
        derive={"reserved_names": lambda observed: observed},
    ),
    seconds=4.0,
)
def entry_forms(trial: Trial) -> Mapping[str, Any]:
    """All cases in one `.mcp.json`: none of the bad ones may take the good ones with it."""
    doors = Doors()
    trial.write("silent", "#!/bin/sh\nexit 0\n", mode=0o755)
    with trial.serving(doors=doors) as urls:
        url = urls["doors"].replace("/mcp", "/d")
        servers = {
            case.name or name: filled(case.entry, url, str(trial.place("silent"))) for name, case in CASES.items()
        }
        command = {"command": str(trial.place("silent"))}
        project(trial, {**dict.fromkeys(CANDIDATES, command), **servers})
        run = trial.run("mcp", "list")
    shown = listing(run)
    reserved = sorted(name for name in CANDIDATES if name not in shown)
    return {
        "claude.config.reserved-names": reserved,
        **{f"claude.config.{n}": become(trial, c.name or n, shown, run.stdout) for n, c in CASES.items()},
    }


def filled(entry: Any, url: str, command: str) -> Any:
    """An entry with its url and command."""
    return json.loads(json.dumps(entry).replace(URL, url).replace(COMMAND, command))


def become(trial: Trial, name: str, shown: Mapping[str, str], printed: str) -> Mapping[str, Any]:
    """Whether an entry is listed, and what is said of it."""
    said = sorted({trial.normal(told) for told in diagnoses(printed) if f"[{name}]" in told})
    if name in shown:
        return {"is": LOADED, "said": said}
    return {"is": SKIPPED if said else SILENT, "said": said}


def diagnoses(printed: str) -> list[str]:
    """The lines about the files behind a list."""
    return [line.strip().lstrip("├└").strip() for line in printed.splitlines() if line.lstrip()[:1] in ("├", "└")]


# --- whole files


LOST, KEPT = False, True


class FileCase(NamedTuple):
    """A text of `.mcp.json`, with `ENTRY` for a good server's entry, and whether its server is loaded."""

    says: str
    text: str
    assumes: bool | None
    reads: tuple[str, ...] = ()
    relied_on: tuple[str, ...] = ("prepare-malformed-local-file",)


FILES: Mapping[str, FileCase] = {
    "trailing-comma": FileCase(
        "a trailing comma loses the file", '{"mcpServers": {"x": ENTRY,}}', LOST, ("json_fault_names_place",)
    ),
    "comment": FileCase(
        "a comment loses the file", '{"mcpServers": {"x": ENTRY}} // x', LOST, ("json_fault_names_place",)
    ),
    "no-servers": FileCase("a file without mcpServers is an error", '{"x": ENTRY}', LOST),
    "other-key": FileCase("servers under the key servers are none", '{"servers": {"x": ENTRY}}', LOST),
    "list": FileCase("a list is an error", "[]", LOST, TEXTS),
    "list-of-servers": FileCase("mcpServers must be an object", '{"mcpServers": [ENTRY]}', LOST, TEXTS),
    "empty": FileCase("what an empty file is", "", LOST, ("empty_file_is_absent",)),
    "byte-order-mark": FileCase("a byte order mark does no harm", '\ufeff{"mcpServers": {"x": ENTRY}}', KEPT),
    "other-keys": FileCase("other keys beside mcpServers do no harm", '{"a": 1, "mcpServers": {"x": ENTRY}}', KEPT),
    "twice": FileCase(
        "of one key given twice the last one counts",
        '{"mcpServers": {"x": {"type": "bogus"}, "x": ENTRY}}',
        KEPT,
        relied_on=("prepare-duplicate-json-keys",),
    ),
}


DERIVED_OF_FILES: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "trailing-comma": {"json_fault_names_place": lambda observed: "(line" in "".join(observed["said"])},
    "empty": {"empty_file_is_absent": lambda observed: not observed["said"]},
}


def file_claim(name: str, case: FileCase) -> Claim:
    """The claim of a case."""
    wanted = case.assumes
    return Claim(
        f"claude.file.{name}",
        case.says,
        assumes=lambda observed: observed["loaded"] is wanted,
        relied_on=case.relied_on,
        affects="every server of such a file",
        reads=case.reads,
        derive=DERIVED_OF_FILES.get(name, {}),
    )


@probe(*(file_claim(name, case) for name, case in FILES.items()), seconds=6.0)
def whole_files(trial: Trial) -> Mapping[str, Any]:
    """A `claude mcp list` for each file."""
    trial.write("silent", "#!/bin/sh\nexit 0\n", mode=0o755)
    trial.write_json(SETTINGS, APPROVED)
    entry = json.dumps({"command": str(trial.place("silent"))})
    found = {}
    for name, case in FILES.items():
        trial.write(".mcp.json", case.text.replace("ENTRY", entry))
        run = trial.run("mcp", "list")
        errors = sorted({trial.normal(told) for told in diagnoses(run.stdout)})
        found[f"claude.file.{name}"] = {"loaded": "x" in listing(run), "said": errors, "exit": run.exit_code}
    return found


# --- placeholders

TEMPLATES: Mapping[str, str] = {
    "${SET}": "value",
    "a-${SET}-b": "a-value-b",
    "${EMPTY}": "",
    "${UNSET}": "${UNSET}",
    "${UNSET:-other}": "other",
    "${UNSET:-}": "",
    "${EMPTY:-other}": "",
    "${UNSET:-${SET}}": "${SET}",
    "${lower}": "small",
    "$SET": "$SET",
    "$$": "$$",
    "${}": "${}",
    "${bad-name}": "${bad-name}",
    "${1X}": "${1X}",
    "$${SET}": "$value",
    "\\${SET}": "\\value",
    "${INDIRECT}": "${SET}",
}
TWICE = ("${UNSET:-${SET}}", "${INDIRECT}")
"""Templates out of which a placeholder comes."""
VARIABLES = {"SET": "value", "EMPTY": "", "lower": "small", "INDIRECT": "${SET}"}
PLACEHOLDERS = ("secrets-nested-default-trap", "secrets-values-not-rescanned", "credential-key-placeholder-expansion")


@probe(
    Claim(
        "claude.placeholder.header",
        "placeholders in header values are filled in as the reference does it",
        "seed 002",
        assumes={template: value for template, value in TEMPLATES.items() if template not in TWICE},
        relied_on=PLACEHOLDERS,
        affects="headers with placeholders",
    ),
    Claim(
        "claude.placeholder.header-twice",
        "a placeholder that comes out of a header's placeholder is filled in too, unlike anywhere else",
        relied_on=("secrets-values-not-rescanned",),
        affects="headers whose secret holds a placeholder",
    ),
    Claim(
        "claude.placeholder.args",
        "placeholders in args are filled in in the same way",
        assumes=dict(TEMPLATES),
        relied_on=PLACEHOLDERS,
        affects="args with placeholders",
    ),
    Claim(
        "claude.placeholder.env",
        "placeholders in env values are filled in in the same way",
        assumes=dict(TEMPLATES),
        relied_on=PLACEHOLDERS,
        affects="env values with placeholders",
    ),
    Claim(
        "claude.placeholder.url",
        "placeholders in a url are filled in",
        assumes="d/value/x",
        relied_on=PLACEHOLDERS,
        affects="urls with placeholders",
    ),
    Claim(
        "claude.placeholder.command",
        "placeholders in a command are filled in",
        assumes=True,
        relied_on=PLACEHOLDERS,
        affects="commands with placeholders",
    ),
    Claim(
        "claude.placeholder.names",
        "placeholders in names of headers and of variables are left alone",
        assumes={"header": False, "variable": True},
        affects="names with placeholders",
    ),
    Claim(
        "claude.placeholder.unset",
        "a variable without a value is warned of, and the server is started with the placeholder as it is",
        assumes=lambda observed: any("UNSET" in told for told in observed),
        relied_on=("secrets-typo-fails-at-prepare",),
        affects="servers whose variables are not set",
    ),
    seconds=2.0,
)
def placeholders(trial: Trial) -> Mapping[str, Any]:
    """A server of each kind that tells what it was given."""
    doors = Doors()
    numbered = {f"X-{number}": template for number, template in enumerate(TEMPLATES)}
    with trial.serving(doors=doors) as urls:
        base = urls["doors"].removesuffix("/mcp")
        started = witness(trial, "started")
        variables = {name.replace("-", "_"): template for name, template in numbered.items()}
        command = started["command"].replace("python", "${PY}")
        servers = {
            "remote": {"type": "http", "url": f"{base}/d/${{SET}}/x", "headers": numbered},
            "odd": {"type": "http", "url": f"{base}/odd", "headers": {"${SET}": "x"}},
            "started": {
                **started,
                "command": command,
                "args": [*started["args"], *TEMPLATES],
                "env": {**variables, "${SET}": "x"},
            },
        }
        project(trial, servers)
        run = trial.run("mcp", "list", env={**VARIABLES, "PY": "python"})
    visit = doors.visits["d"][0]
    headers = {name.lower(): value for name, value in visit.headers.items()}
    filled_in = {template: headers.get(name.lower()) for name, template in numbered.items()}
    start = next(iter(notes(trial, "started", "start")), {})
    environment, args = start.get("environment", {}), start.get("args", [])
    odd = doors.visits.get("odd", [])
    return {
        "claude.placeholder.header": {
            template: value for template, value in filled_in.items() if template not in TWICE
        },
        "claude.placeholder.header-twice": {template: filled_in[template] for template in TWICE},
        "claude.placeholder.args": dict(zip(TEMPLATES, args, strict=False)),
        "claude.placeholder.env": {template: environment.get(name) for name, template in variables.items()},
        "claude.placeholder.url": visit.path,
        "claude.placeholder.command": bool(start),
        "claude.placeholder.names": {
            "header": any("value" in {name.lower() for name in each.headers} for each in odd),
            "variable": "${SET}" in environment,
        },
        "claude.placeholder.unset": sorted({told for told in diagnoses(run.stdout) if "[started]" in told}),
    }
