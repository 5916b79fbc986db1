"""`claude` by its command line: what it prints in each form, and `claude mcp …`."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.claude.arguments import read_arguments
from fake_runtimes.claude.wording import WORDINGS, reason
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_servers.mcp import Behaviour, Tool
from scenarios.claude_runs import CACHE_FILE, CLONE, HOME, NEW, OLD, ClaudeRun

GOOD, HANGS = Behaviour(), Behaviour(initialize="never")
BOTH = pytest.mark.parametrize("profile", [OLD, NEW])
SETTINGS, USER_CONFIG = f"{HOME}/.claude/settings.json", f"{HOME}/.claude.json"
ALL = {SETTINGS: '{"enableAllProjectMcpServers":true}'}
STREAM = ("--output-format", "stream-json", "--verbose")
TALK = Plan((Turn((ToolCall("srv", "echo", {"a": 1}),), 2.0, "I look"), Turn(seconds=1.0, text="Found it.")))


def claude(*words: str, profile: str = OLD, **options) -> ClaudeRun:
    return ClaudeRun(profile, options.pop("stdio", {"srv": GOOD}), argv=("claude", *words), **options)


def listing(run: ClaudeRun) -> dict[str, str]:
    """The list's lines: target and status by name."""
    lines = [line for line in run.printed() if ": " in line and " - " in line]
    return dict(line.split(": ", 1) for line in lines)


# --- what a run prints


@pytest.mark.parametrize(("profile", "version"), [(OLD, "2.1.268"), (NEW, "2.1.328")])
@pytest.mark.parametrize("flag", ["--version", "-v"])
def test_the_version_is_told_as_the_real_program_tells_it(profile, version, flag):
    run = claude(flag, profile=profile)
    assert (run.exit_code, run.printed(), run.events("run.ended")) == (0, [f"{version} (Claude Code)"], [])


@BOTH
def test_text_is_the_last_words_alone(profile):
    run = claude("-p", "go on", profile=profile, plan=TALK)
    assert (run.exit_code, run.printed(), run.errors()) == (0, ["Found it."], [])
    assert [one["ok"] for one in run.events("tool.call")] == [True]


@BOTH
def test_json_is_one_object_with_the_result(profile):
    (line,) = claude("-p", "--output-format=json", "go on", profile=profile, plan=TALK).lines()
    assert (line["type"], line["subtype"], line["is_error"]) == ("result", "success", False)
    assert (line["result"], line["num_turns"], line["duration_ms"]) == ("Found it.", 2, 3000)
    assert {"session_id", "total_cost_usd", "usage", "permission_denials"} <= line.keys()


@BOTH
def test_the_stream_tells_the_start_what_is_said_each_call_and_the_result(profile):
    run = claude("-p", "go on", *STREAM, profile=profile, plan=TALK)
    init, says, calls, reads, ends, result = run.lines()
    search = ["ToolSearch"] if profile == NEW else []
    assert (init["type"], init["subtype"], init["tools"]) == ("system", "init", [*search, "mcp__srv__echo"])
    assert init["mcp_servers"][0]["status"] == "connected"
    assert init["claude_code_version"] == profile.removeprefix("claude-")
    assert says["message"]["content"] == [{"type": "text", "text": "I look"}]
    (use,) = calls["message"]["content"]
    assert (use["type"], use["name"], use["input"]) == ("tool_use", "mcp__srv__echo", {"a": 1})
    (read,) = reads["message"]["content"]
    assert (reads["type"], read["tool_use_id"]) == ("user", use["id"])
    assert read["content"] == [{"type": "text", "text": "ok"}]
    assert ends["message"]["content"][0]["text"] == result["result"] == "Found it."
    assert {line["session_id"] for line in run.lines()} == {init["session_id"]}


def test_a_call_that_fails_is_an_error_for_the_model():
    plan = Plan((Turn((ToolCall("srv", "none"),)),))
    read = claude("-p", "go on", *STREAM, plan=plan).lines()[2]["message"]["content"][0]
    assert (read["is_error"], read["content"]) == (True, "No such tool available: mcp__srv__none")


def test_a_verbose_object_is_the_list_of_all_messages():
    whole = json.loads(claude("-p", "go on", "--output-format", "json", "--verbose").printed()[0])
    assert [message["type"] for message in whole] == ["system", "assistant", "result"]


def test_a_prompt_comes_from_stdin_where_the_command_line_has_none():
    assert claude("-p", stdin=("go", "on")).printed() == ["Done."]
    empty = claude("-p", "--model", "opus")
    assert (empty.exit_code, empty.printed(), len(empty.errors())) == (1, [""], 1)
    assert empty.events("run.ended") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-p", "x", "--bogus"), "error: unknown option '--bogus'"),
        (("-p", "x", "--output-format", "xml"), "error: option '--output-format <format>' argument 'xml' is invalid."),
        (("-p", "x", "--output-format", "stream-json"), "Error: When using --print, --output-format=stream-json"),
        (("-p", "x", "--model"), "error: option '--model <value>' argument missing"),
        (("x",), "Error: this stand-in has no interactive mode"),
        (("mcp", "frobnicate"), "error: unknown command 'frobnicate'"),
        (("mcp", "list", "--json"), "error: unknown option '--json'"),
        (("mcp", "get"), "error: missing required argument 'name'"),
    ],
)
def test_what_is_not_taken_ends_with_1_and_starts_nothing(words, said):
    run = claude(*words)
    assert run.exit_code == 1
    assert run.errors()[0].startswith(said)
    assert run.spawned == []


def test_options_that_take_several_words_leave_the_prompt_behind_a_switch():
    found = read_arguments(("--mcp-config", "a.json", "b.json", "-p", "go", "--allowedTools", "X", "Y", "--verbose"))
    assert (found.configs, found.prompt, found.prints, found.verbose) == (("a.json", "b.json"), "go", True, True)
    assert read_arguments(("-p", "--", "-x")).prompt == "-x"
    assert read_arguments(("--help", "--bogus")).help


def test_a_session_takes_the_id_that_it_is_given():
    run = claude("-p", "x", *STREAM, "--session-id", "11111111-2222-4333-8444-555555555555")
    assert {line["session_id"] for line in run.lines()} == {"11111111-2222-4333-8444-555555555555"}


# --- servers given on the command line


@BOTH
def test_a_given_server_is_awaited_to_its_outcome_and_one_of_the_project_is_not(profile):
    given = json.dumps({"mcpServers": {"late": {"command": "late"}}})
    files, stdio = {f"{CLONE}/given.json": given}, {"srv": HANGS, "late": Behaviour(initialize_after_seconds=9.0)}
    options = {"files": files, "stdio": stdio, "entries": {"late": None}, "env": {"MCP_CONNECTION_NONBLOCKING": "1"}}
    run = claude("-p", "x", *STREAM, "--mcp-config", "given.json", profile=profile, **options)
    assert run.requests() == [(9.0, ["mcp__late__echo"], ["srv"])]
    assert run.statuses() == {"srv": "pending", "late": "connected"}
    assert profile == OLD or run.lines()[0]["mcp_servers"][1]["source"] == "dynamic"
    strict = claude("-p", "x", *STREAM, "--strict-mcp-config", "--mcp-config", given, profile=profile, **options)
    assert strict.statuses() == {"late": "connected"}


@BOTH
def test_a_given_server_that_hangs_is_waited_for_and_shown_as_failed(profile):
    given = json.dumps({"mcpServers": {"srv": {"command": "srv"}}})
    run = claude("-p", "x", *STREAM, "--mcp-config", given, profile=profile, stdio={"srv": HANGS})
    assert run.statuses() == {"srv": "failed"}
    assert run.outcomes() == {"srv": ("failed", 30.0)}
    assert run.exit_code == 0


@pytest.mark.parametrize("word", ["none.json", "{oops", '{"servers":{}}', '{"mcpServers":[]}'])
@BOTH
def test_a_given_configuration_that_cannot_be_read_ends_the_run(profile, word):
    run = claude("-p", "x", "--mcp-config", word, profile=profile)
    assert (run.exit_code, run.spawned) == (1, [])
    assert (run.errors()[0], len(run.errors())) == ("Error: Invalid MCP configuration:", 2)


def test_a_bad_entry_of_a_given_configuration_is_skipped_alone():
    given = json.dumps({"mcpServers": {"bad": {"type": "bogus"}, "srv": {"command": "srv"}}})
    assert claude("-p", "x", *STREAM, "--mcp-config", given).statuses() == {"srv": "connected"}


# --- claude mcp list and get


@BOTH
def test_a_list_connects_what_is_approved_and_ends_with_0_whatever_became_of_it(profile):
    stdio = {"srv": GOOD, "dies": Behaviour(exits="at-start")}
    remote = {"far": GOOD, "locked": Behaviour(status=401)}
    entries = {"none": {"command": "no-such-cmd"}, "blank": {"type": "http", "url": ""}}
    run = claude("mcp", "list", profile=profile, stdio=stdio, remote=remote, entries=entries, files=ALL)
    closed = "-32000: MCP error -32000: Connection closed" if profile == OLD else "CONNECTION_CLOSED: Connection closed"
    assert listing(run) == {
        "srv": "srv --serve - ✔ Connected",
        "dies": f"dies --serve - ✘ Failed to connect — {closed}",
        "far": "https://far.test/mcp (HTTP) - ✔ Connected",
        "locked": "https://locked.test/mcp (HTTP) - ! Needs authentication",
        "none": 'no-such-cmd  - ✘ Failed to connect — ENOENT: Executable not found in $PATH: "no-such-cmd"',
        "blank": " (HTTP) - - Not configured",
    }
    assert (run.exit_code, run.errors(), run.events("model.request")) == (0, [], [])
    assert run.ending("srv") is not None


@BOTH
def test_a_list_contacts_nothing_that_nobody_approved(profile):
    run = claude("mcp", "list", profile=profile)
    assert listing(run) == {"srv": "srv --serve - ⏸ Pending approval (run `claude` to approve)"}
    assert (run.spawned, run.log_files()) == ([], [])


@pytest.mark.parametrize(
    ("user", "here", "project", "approved"),
    [
        ({"enabledMcpjsonServers": ["srv"]}, {}, {}, True),
        ({"enabledMcpjsonServers": ["other"]}, {}, {}, False),
        ({}, {"hasTrustDialogAccepted": True}, {}, False),
        ({}, {}, {"enableAllProjectMcpServers": True}, False),
        ({}, {"hasTrustDialogAccepted": True}, {"enableAllProjectMcpServers": True}, True),
        ({}, {"enabledMcpjsonServers": ["srv"]}, {}, False),
        ({}, {"enabledMcpjsonServers": ["srv"], "hasTrustDialogAccepted": True}, {}, True),
    ],
)
def test_approval_is_the_users_or_the_trusted_projects(user, here, project, approved):
    files = {
        SETTINGS: json.dumps(user),
        USER_CONFIG: json.dumps({"projects": {CLONE: here}}),
        f"{CLONE}/.claude/settings.local.json": json.dumps(project),
    }
    run = claude("mcp", "list", files=files)
    assert listing(run)["srv"].endswith("✔ Connected" if approved else "to approve)")
    assert claude("-p", "x", *STREAM, files=files).statuses() == {"srv": "connected"}


def test_a_list_leaves_out_what_is_refused_and_shows_what_is_switched_off():
    refused = {SETTINGS: '{"disabledMcpjsonServers":["srv"],"enableAllProjectMcpServers":true}'}
    assert claude("mcp", "list", files=refused).printed()[0].startswith("No MCP servers configured.")
    off = {**ALL, USER_CONFIG: json.dumps({"projects": {CLONE: {"disabledMcpServers": ["srv"]}}})}
    assert listing(claude("mcp", "list", files=off))["srv"].endswith("⊘ Disabled for this project (re-enable via /mcp)")


def test_a_list_connects_three_at_a_time_however_servers_are_reached():
    slow = Behaviour(initialize_after_seconds=2.0)
    stdio, remote = {f"s{number}": slow for number in range(4)}, {f"r{number}": slow for number in range(3)}
    run = claude("mcp", "list", stdio=stdio, remote=remote, files=ALL)
    assert sorted(at for _, at in run.outcomes().values()) == [2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 6.0]


def test_a_list_asks_a_server_that_the_needs_auth_cache_holds_and_does_not_forget_it():
    held = {**ALL, CACHE_FILE: '{"far":{"timestamp":1699999999000}}'}
    run = claude("mcp", "list", stdio={}, remote={"far": GOOD}, files=held)
    assert listing(run)["far"].endswith("✔ Connected")
    assert run.text(CACHE_FILE) == held[CACHE_FILE]
    assert claude("-p", "x", *STREAM, stdio={}, remote={"far": GOOD}, files=held).statuses() == {"far": "needs-auth"}


def test_a_list_writes_a_refusal_down():
    run = claude("mcp", "list", stdio={}, remote={"far": Behaviour(status=401)}, files=ALL)
    assert "far" in json.loads(run.text(CACHE_FILE))


def test_targets_are_shown_as_they_stand_without_defaults():
    entries = {"srv": {"command": "srv", "args": ["${A}", "${B:-x}"]}}
    run = claude("mcp", "list", entries=entries, env={"A": "1"}, files=ALL)
    assert listing(run)["srv"] == "srv ${A} ${B} - ✔ Connected"


@BOTH
def test_what_is_wrong_with_the_file_is_told_behind_the_list(profile):
    run = claude("mcp", "list", profile=profile, entries={"x": {"type": "bogus"}}, files=ALL)
    title = "[Contains warnings]" if profile == OLD else "[Has warnings]"
    assert any(line.startswith(title) for line in run.printed())
    text = 'Skipped — unknown MCP server type "bogus" for server "x"'
    assert f" ├ [Warning] [x] mcpServers.x: {text}" in run.printed()
    broken = claude("mcp", "list", profile=profile, mcp_json="{oops")
    assert broken.exit_code == 0
    assert any(line.startswith("[Failed to parse]" if profile == OLD else "[Has errors]") for line in broken.printed())


def test_one_server_is_shown_in_full_and_the_others_are_left_alone():
    entries = {"srv": {"command": "srv", "args": ["a"], "env": {"K": "v"}}}
    run = claude("mcp", "get", "srv", stdio={"srv": GOOD, "other": GOOD}, entries=entries, files=ALL)
    shown = run.printed()
    assert (run.exit_code, [argv for argv, _, _ in run.spawned]) == (0, ["srv"])
    for line in ("srv:", "  Status: ✔ Connected", "  Type: stdio", "  Command: srv", "  Args: a", "    K=v"):
        assert line in shown
    headed = {"far": {"type": "http", "url": "https://far.test/mcp", "headers": {"X-Key": "secret"}}}
    far = claude("mcp", "get", "far", stdio={}, remote={"far": Behaviour(status=500)}, entries=headed, files=ALL)
    assert "    X-Key: secret" in far.printed()
    assert any(line.startswith("  Issue: HTTP 500: ") for line in far.printed())


def test_a_name_that_is_not_there_ends_with_1_and_names_those_that_are():
    run = claude("mcp", "get", "nope", stdio={"f": GOOD, "h": GOOD})
    assert (run.exit_code, run.printed()) == (1, [""])
    assert run.errors() == ['No MCP server named "nope". Configured servers: f, h']


@pytest.mark.parametrize(
    ("loud", "old", "new"),
    [
        ("Connection failed (500): Error", *["HTTP 500: Error"] * 2),
        ("Connection failed (-32000): Closed", *["-32000: Closed"] * 2),
        ("Connection failed (ENOENT): ENOENT: none", "ENOENT: ENOENT: none", "ENOENT: none"),
        ("Connection failed (CONNECT_TIMEOUT): timed out", *["timed out"] * 2),
        ("Connection failed: [..]\n (x): y", *["[..] (x): y"] * 2),
        ("Server rejected the header", *["Server rejected the header"] * 2),
    ],
)
def test_a_reason_is_the_failure_with_its_code_in_front(loud, old, new):
    assert (reason(loud, WORDINGS["numbered"]), reason(loud, WORDINGS["named"])) == (old, new)


# --- claude mcp add, add-json and remove


@pytest.mark.parametrize(
    ("scope", "path", "place"),
    [
        ((), USER_CONFIG, ("projects", CLONE)),
        (("-s", "user"), USER_CONFIG, ()),
        (("--scope=project",), f"{CLONE}/.mcp.json", ()),
    ],
)
def test_what_is_added_is_kept_where_its_scope_is_read_and_can_be_removed(scope, path, place):
    files = {USER_CONFIG: '{"numStartups":3}'}
    run = claude("mcp", "add", *scope, "new", "-e", "K=v=w", "--", "run-it", "--flag", stdio={}, files=files)
    tree = json.loads(run.text(path))
    assert (run.exit_code, path == USER_CONFIG) == (0, tree.get("numStartups") == 3)
    for key in place:
        tree = tree[key]
    entry = {"type": "stdio", "command": "run-it", "args": ["--flag"], "env": {"K": "v=w"}}
    assert tree["mcpServers"] == {"new": entry}
    written = {path: run.text(path)}
    project = {"mcp_json": run.text(path)} if path.endswith(".mcp.json") else {"files": written}
    gone = claude("mcp", "remove", "new", stdio={}, **project)
    assert gone.exit_code == 0
    assert '"new"' not in gone.text(path)
    again = claude("mcp", "add", *scope, "new", "run-it", stdio={}, **project)
    assert (again.exit_code, "already exists" in again.errors()[0]) == (1, True)


def test_a_remote_server_and_a_whole_entry_can_be_added():
    far = claude("mcp", "add", "-t", "http", "far", "https://far.test/mcp", "-H", "X-A: b: c", stdio={})
    local = json.loads(far.text(USER_CONFIG))["projects"][CLONE]["mcpServers"]
    assert local == {"far": {"type": "http", "url": "https://far.test/mcp", "headers": {"X-A": "b: c"}}}
    whole = claude("mcp", "add-json", "x", '{"command":"y"}', "-s", "user", stdio={})
    assert json.loads(whole.text(USER_CONFIG))["mcpServers"] == {"x": {"command": "y"}}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("add", "bad.name", "x"),
            "Invalid name bad.name. Names can only contain letters, numbers, hyphens, and underscores.",
        ),
        (("add-json", "bad name", "{}"), "Invalid name bad name. Names can only contain"),
        (("add", "x"), "error: missing required argument 'commandOrUrl'"),
        (("add", "x", "y", "-s", "world"), "Invalid scope: world."),
        (("add", "x", "y", "-t", "carrier"), "Invalid transport type: carrier."),
        (("add", "x", "y", "-e", "K"), "Invalid environment variable format: K"),
        (("add", "x", "y", "-s"), "error: option '--scope <value>' argument missing"),
        (("add", "x", "-q", "y"), "error: unknown option '-q'"),
        (("add-json", "x", "[]"), "Invalid JSON"),
        (("remove", "x"), 'No MCP server found with name: "x"'),
    ],
)
def test_what_cannot_be_written_is_refused_and_nothing_is_written(words, said):
    run = claude("mcp", *words, stdio={})
    assert (run.exit_code, run.printed()) == (1, [""])
    assert run.errors()[0].startswith(said)
    assert USER_CONFIG not in run.paths("/home")


def test_a_file_that_holds_something_else_is_left_as_it_is():
    for text in ("[1]", "{oops", '{"projects":[]}', '{"mcpServers":3}'):
        run = claude("mcp", "add", "-s", "user" if "mcp" in text else "local", "x", "y", files={USER_CONFIG: text})
        assert (run.exit_code, run.text(USER_CONFIG)) == (1, text)


def test_a_tool_list_is_as_long_as_the_servers_make_it():
    run = claude("-p", "x", *STREAM, stdio={"srv": Behaviour(tools=(Tool("a"), Tool("b")))})
    assert run.lines()[0]["tools"] == ["mcp__srv__a", "mcp__srv__b"]
