"""MH801 to MH810: what each runtime's own reader does with the config that is written for it."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.loaded import Problem
from fake_runtimes.profile import known_profiles
from harness.gate.engine import entry_findings as findings_of_engine
from harness.gate.judge import judge
from harness.gate.model import Severity, State
from harness.gate.rules.runtimes import complaints, needs_shell, reasons_not_written, words_of_command
from scenarios.shipped import shipped_catalog
from scenarios.units.gate_fixture import catalog_context, entry_findings, findings, mended, only, rule_findings

RUNTIME_RULES = [f"MH80{digit}" for digit in range(1, 10)] + ["MH810"]
STDIO = {"type": "stdio", "command": "node", "args": ["x"]}
REMOTE = {"type": "streamable-http", "url": "https://x.example.com/mcp"}
CLAUDE, CODEX, PI = "claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1"
INVALID = 'Skipped — invalid MCP server config for "a": '


def said(entry: object) -> list[tuple[str, tuple[str, ...]]]:
    """What runtimes and preparation say of an entry, whether or not the schema's finding tells it already."""
    view = catalog_context(json.dumps({"a": entry})).entries["a"]
    codes = [("MH801", "run_killed"), ("MH802", "skipped"), ("MH802", "file_lost"), ("MH803", "server_fails")]
    heard = [(rule, sayers) for rule, code in codes for sayers in complaints(view, code).values()]
    left_out = [tuple(spawn.runtime.label for spawn in spawns) for spawns in reasons_not_written(view).values()]
    return [*heard, *(("MH805", runtimes) for runtimes in left_out)]


def test_no_runtime_complains_about_the_shipped_entries():
    assert findings(json.dumps(shipped_catalog()), RUNTIME_RULES, runtimes=known_profiles()) == []


WRONG = [
    ({**STDIO, "command": 3}, [("MH805", (CLAUDE, CODEX, PI))]),
    ({**STDIO, "command": " "}, [("MH805", (CLAUDE, CODEX, PI))]),
    ({"type": "stdio"}, [("MH805", (CLAUDE, CODEX, PI))]),
    ({**STDIO, "args": "x"}, [("MH802", (CLAUDE,)), ("MH805", (CODEX,))]),
    ({**STDIO, "args": [3]}, [("MH802", (CLAUDE,)), ("MH803", (PI,)), ("MH805", (CODEX,))]),
    ({**STDIO, "env": {"A": ["x"]}}, [("MH802", (CLAUDE,)), ("MH803", (PI,)), ("MH805", (CODEX,))]),
    ({**STDIO, "env": {"A": 3}}, [("MH802", (CLAUDE,)), ("MH803", (PI,))]),  # Codex gets "3"
    ({**REMOTE, "url": 3}, [("MH805", (CLAUDE, CODEX, PI))]),
    ({"type": "sse"}, [("MH805", (CLAUDE, CODEX, PI))]),
    ({**REMOTE, "headers": {"A": 3}}, [("MH802", (CLAUDE,)), ("MH803", (PI,)), ("MH805", (CODEX,))]),
    ({**REMOTE, "headers": ["A"]}, [("MH802", (CLAUDE,)), ("MH805", (CODEX,))]),
    ({**REMOTE, "url": "no url"}, [("MH803", (CLAUDE,)), ("MH803", (PI,))]),
    ({"type": "ws", "url": "wss://x"}, [("MH802", (CLAUDE,)), ("MH805", (PI,))]),
    ({"type": "carrier-pigeon", "url": "https://x"}, [("MH802", (CLAUDE,)), ("MH805", (PI,))]),
    ({"url": "https://x"}, [("MH802", (CLAUDE,)), ("MH805", (PI,))]),
    ({"type": 3, "url": "https://x"}, [("MH802", (CLAUDE,)), ("MH805", (PI,))]),
    ({**REMOTE, "oauth": {"clientId": 3}}, [("MH805", (CODEX,))]),
    ({**REMOTE, "oauth": {"authServerMetadataUrl": "http://x"}}, [("MH802", (CLAUDE,))]),
    ("text", []),  # the schema's own finding says that it is no object
    ([], []),
    (None, []),
    (STDIO, []),
    (REMOTE, []),
]


@pytest.mark.requirement("catalog-stdio-fields", "catalog-remote-fields", "prepare-codex-entry-validated")
@pytest.mark.parametrize(("entry", "expected"), WRONG)
def test_what_each_runtime_refuses_is_told_for_that_runtime(entry, expected):
    assert said(entry) == expected


@pytest.mark.requirement("catalog-stdio-fields")
def test_an_entry_that_no_runtime_gets_is_an_error_in_preparations_own_words():
    finding = only(entry_findings({"type": "stdio", "command": " "}, ["MH805"]))
    assert finding.message == (
        "the entry is left out on every runtime: Skipping MCP server 'a': its catalog entry has no usable command"
    )
    assert (finding.severity, finding.place.pointer) == (Severity.ERROR, "/a")


def test_the_runtimes_words_stand_on_one_line_and_silence_is_said():
    spoken = only(entry_findings({**REMOTE, "oauth": {"authServerMetadataUrl": "http://x"}}, ["MH802"]))
    assert spoken.message.startswith(
        f"the entry is skipped on {CLAUDE} and its tools are silently missing: {INVALID}oauth.authServerMetadataUrl: "
    )
    silent = only(entry_findings({"type": "ws", "url": "wss://x"}, ["MH802"]))
    assert silent.message == f"the entry is skipped on {CLAUDE} and its tools are silently missing, without a word."


@pytest.mark.parametrize(
    ("code", "rule", "severity", "words"),
    [
        ("run_killed", "MH801", "error", "this one entry stops every session on codex@0.146.0: bad thing in `x`"),
        ("file_lost", "MH802", "error", "the whole file is lost on codex@0.146.0, with every server in it: bad"),
        ("server_fails", "MH803", "error", "the server can never start on codex@0.146.0: bad thing"),
        ("warning", "MH804", "note", "the entry is loaded with a complaint on codex@0.146.0: bad thing"),
    ],
)
def test_every_kind_of_problem_has_its_rule_and_its_words(monkeypatch, code, rule, severity, words):
    context = catalog_context(json.dumps({"a": STDIO}), runtimes=["codex"])
    view = context.entries["a"]
    problem = Problem("a", code, "bad thing\nin `x`")
    view.__dict__["spawns"] = tuple(spawn._replace(problems=(problem,)) for spawn in view.spawns)
    finding = only(rule_findings(context, ["MH801", "MH802", "MH803", "MH804"]))
    assert (finding.rule, str(finding.severity)) == (rule, severity)
    assert finding.message.startswith(words)
    assert "\n" not in finding.message


def test_one_text_on_several_versions_is_one_finding():
    finding = only(findings(json.dumps({"workspace": STDIO}), ["MH802"], runtimes=["claude@2.1.268", "claude@2.1.328"]))
    assert finding.runtimes == ("claude@2.1.268", "claude@2.1.328")
    assert "skipped on every runtime" in finding.message


@pytest.mark.parametrize(
    ("entry", "rules"),
    [
        ({**REMOTE, "headers": {"X-Tenant": "a"}}, ["MH806"]),
        ({**REMOTE, "type": "sse", "headers": {"X-Tenant": "a"}}, ["MH806", "MH807"]),
        ({**REMOTE, "type": "sse"}, ["MH807"]),
        ({**REMOTE, "headers": {"Authorization": "Bearer ${T}"}}, []),
        ({**REMOTE, "headers": {}}, []),
        (REMOTE, []),
        ({**STDIO, "headers": {"X-Tenant": "a"}}, []),
    ],
)
def test_sse_is_lost_on_codex_and_oauth_beside_a_header_on_pi(entry, rules):
    found = entry_findings(entry, ["MH806", "MH807"])
    assert [finding.rule for finding in found] == rules
    assert all(f.runtimes == ((PI,) if f.rule == "MH806" else (CODEX,)) for f in found)
    assert all(f.place.pointer == ("/a/headers" if f.rule == "MH806" else "/a/type") for f in found)
    assert all(f.severity is Severity.WARNING for f in found)


@pytest.mark.parametrize(
    ("entry", "hits"),
    [({**REMOTE, "env": {"A": "b"}}, 1), ({**REMOTE, "env": {}}, 0), (REMOTE, 0), ({**STDIO, "env": {"A": "b"}}, 0)],
)
def test_an_env_table_on_a_remote_entry_is_a_note(entry, hits):
    found = entry_findings(entry, ["MH808"])
    assert [(f.place.pointer, f.severity) for f in found] == [("/a/env", Severity.NOTE)] * hits


@pytest.mark.parametrize(
    ("key", "value", "shell"),
    [
        ("T", "x${T}", True),
        ("T", "${U}", True),
        ("T", "${T}${T}", True),
        ("T", "${T}", False),
        ("T", "${T:-d}", False),  # no name that a shell knows: the adapter leaves it as it is
        ("T", "${T", False),
        ("T", "$T", False),
        ("T", "plain", False),
        ("a.b", "${U}", False),
        ("T", 3, False),
        ("T", None, False),
    ],
)
def test_the_codex_adapter_needs_a_shell_where_a_value_is_more_than_its_own_variable(key, value, shell):
    assert needs_shell(key, value) is shell
    found = entry_findings({**STDIO, "env": {key: value}}, ["MH809"])
    assert [(f.place.pointer, f.runtimes) for f in found] == [(f"/a/env/{key}", (CODEX,))] * shell


def test_only_an_npx_entry_loses_a_pinned_cache_to_the_shell_and_only_on_codex():
    env = {"env": {"T": "x${T}"}}
    node = only(entry_findings({**STDIO, **env}, ["MH809"]))
    npx = only(entry_findings({**STDIO, **env, "command": "npx"}, ["MH809"]))
    assert node.severity is Severity.NOTE
    assert "only if your orchestrator writes Codex's config with AIR's own adapter" in node.message
    assert node.message.endswith("the server runs through a shell there.")
    assert npx.message.endswith("the server runs through a shell there and loses its pinned cache.")
    assert entry_findings({**STDIO, **env}, ["MH809"], runtimes=["claude", "pi"]) == []
    assert entry_findings({**REMOTE, **env}, ["MH809"]) == []


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("npx -y pkg", ("npx", "-y", "pkg")),
        ("node server.js", ("node", "server.js")),
        ("/usr/bin/npx -y pkg", ("/usr/bin/npx", "-y", "pkg")),
        ("uvx 'two words'", ("uvx", "two words")),
        ("node it's", ("node", "it's")),
        ("npx", ()),
        ("/opt/My Tools/server", ()),
        ("C:\\Program Files\\nodejs\\npx.cmd", ()),
        ("./bin/my server", ()),
        ("npx ", ()),
        (" ", ()),
        ("", ()),
    ],
)
def test_a_command_line_in_one_text_is_told_from_a_path_with_blanks(command, words):
    assert words_of_command(command) == words


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"type": "stdio", "command": "npx -y pkg"}, {"type": "stdio", "command": "npx", "args": ["-y", "pkg"]}),
        (
            {"type": "stdio", "args": ["--x"], "command": "npx -y pkg", "env": {}},
            {"type": "stdio", "args": ["-y", "pkg", "--x"], "command": "npx", "env": {}},
        ),
    ],
)
def test_a_command_line_in_one_text_is_an_error_whose_edit_moves_the_arguments(entry, expected):
    text = json.dumps({"a": entry}, indent=2)
    finding = only(findings(text, ["MH810"]))
    assert (finding.severity, finding.place.pointer) == (Severity.ERROR, "/a/command")
    fixed = mended(text, finding)
    assert json.loads(fixed) == {"a": expected}
    assert findings(fixed, ["MH810", "MH401", "MH402"]) == []


def test_arguments_of_another_kind_are_left_to_a_human_and_a_remote_entry_runs_nothing():
    finding = only(entry_findings({"type": "stdio", "command": "npx -y pkg", "args": "x"}, ["MH810"]))
    assert finding.edits == ()
    assert entry_findings({**REMOTE, "command": "npx -y pkg"}, ["MH810"]) == []


@pytest.mark.parametrize(("command", "rules"), [("npx ", ["MH811"]), (" npx", ["MH811"]), ("npx -y pkg ", ["MH810"])])
def test_blanks_around_a_command_are_one_error_and_the_server_fails(command, rules):
    entry = {"type": "stdio", "command": command, "args": ["pkg@1.0.0"]}
    context = catalog_context(json.dumps({"a": entry}))
    found = only(findings_of_engine(context, context.entries["a"]))
    assert ([found.rule], found.severity) == (rules, Severity.ERROR)
    assert json.loads(mended(json.dumps({"a": entry}), found))["a"]["command"] == "npx"
    outcomes = judge(context.entries["a"], context, touched=True).outcomes
    assert {(outcome.state, outcome.first_request) for outcome in outcomes} == {(State.FAILS, "never")}


def test_a_server_that_is_declared_or_never_written_keeps_that_state():
    context = catalog_context(json.dumps({"a": {"type": "stdio", "command": "npx x", "unavailable": "Broken."}}))
    outcomes = judge(context.entries["a"], context, touched=True).outcomes
    assert {outcome.state for outcome in outcomes} == {State.UNAVAILABLE}


@pytest.mark.parametrize(
    ("value", "fix"),
    [("${U}", 'store the value of U as the secret K and write "K": "${K}"'), ("x${U}", "store the whole value")],
)
def test_the_codex_adapters_note_says_exactly_what_to_write(value, fix):
    assert fix in only(entry_findings({**STDIO, "env": {"K": value}}, ["MH809"])).fix


@pytest.mark.parametrize("value", ["${workspaceFolder}", "${HOME}", "${lower}"])
def test_a_placeholder_that_is_wrong_itself_is_left_to_its_own_rule(value):
    assert entry_findings({**STDIO, "env": {"K": value}}, ["MH809"]) == []
