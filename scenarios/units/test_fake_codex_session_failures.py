"""What the fake Codex says of servers that fail, of remote ones and their tokens, and of calls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from fake_runtimes.codex.logs import shown
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_servers.mcp import Behaviour, HttpServer, Tool
from fake_servers.oauth import AuthorizationServer, Protected, Resource, Site
from harness.world import World
from harness.world.model import Fault, Hold
from scenarios.units.test_fake_codex_session import (
    BOTH,
    CLONE,
    ENVIRONMENT,
    EXEC,
    FULL,
    GOOD,
    HANGS,
    HOME,
    NEWER,
    OLDER,
    Run,
    alive,
    entry,
    run,
)

URL = "https://r.test/mcp"
STORE = f"{HOME}/.codex/.credentials.json"
CHALLENGE = 'Bearer resource_metadata="https://r.test/x"'
CLOSED = "connection closed: initialize response"
HANDSHAKE = "handshaking with MCP server failed: "
START_SECONDS = 1_700_000_000


def started(profile: Any, text: str, servers: Any = None, **more: Any) -> Run:
    """A model-free run: the statuses that `codex app-server` tells."""
    lines = [
        {"id": 1, "method": "initialize", "params": {}},
        {"method": "initialized"},
        {"id": 2, "method": "thread/start", "params": {"cwd": CLONE}},
        {"id": 3, "method": "mcpServerStatus/list", "params": {}},
    ]
    argv = ("codex", "app-server")
    return run(text, servers, profile=profile, argv=argv, stdin=tuple(map(json.dumps, lines)), **more)


def updates(found: Run) -> dict[str, list[Any]]:
    """Per server the statuses in order, then the last error and its machine-readable reason."""
    told: dict[str, list[Any]] = {}
    for line in found.stdout:
        if line.get("method") == "mcpServer/startupStatus/updated":
            params = line["params"]
            told.setdefault(params["name"], []).append(params["status"])
            if params["status"] == "failed":
                told[params["name"]] += [params["error"], params["failureReason"]]
    return told


def error(found: Run, name: str = "x") -> str:
    """The error with which a server failed."""
    starting, failed, text, reason = updates(found)[name]
    assert (starting, failed, reason) == ("starting", "failed", None)
    return str(text)


def twice(cause: str, profile: Any) -> str:
    return f"{HANDSHAKE}{cause}: {cause}" if profile is NEWER else HANDSHAKE + cause


def entry_of_store(**fields: Any) -> dict[str, Any]:
    expires = (START_SECONDS + 3600) * 1000
    known = {"server_name": "r", "server_url": URL, "client_id": "c", "access_token": "AT", "expires_at": expires}
    return {**known, "refresh_token": None, **fields}


def stored(*entries: dict[str, Any]) -> dict[str, str]:
    return {STORE: json.dumps({f"r|{index}": one for index, one in enumerate(entries)})}


def bearers(server: HttpServer) -> list[str | None]:
    return [seen.headers.get("Authorization") for seen in server.requests if seen.rpc_method == "initialize"]


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        (Behaviour(exits="at-start", stderr=("boom",)), CLOSED),
        (Behaviour(exits="at-initialize"), CLOSED),
        (Behaviour(initialize="error"), "JSON-RPC error: -32603: Internal error"),
    ],
)
def test_a_failed_handshake_is_told_with_its_cause_which_the_newer_version_repeats(profile, behaviour, cause):
    found = started(profile, entry("x") + entry("good"), {"x": behaviour, "good": GOOD})
    prefix = "MCP client for `x` failed to start: MCP startup failed: "
    assert error(found) == prefix + twice(cause, profile)
    assert updates(found)["good"] == ["starting", "ready"]
    assert alive(found) == []
    exec_run = run(entry("x"), {"x": behaviour}, profile=profile)
    assert (exec_run.failures(), exec_run.exit_code) == ({"x": error(found)}, 0)
    assert exec_run.stderr == []


@pytest.mark.parametrize("profile", BOTH)
def test_a_missing_or_unexecutable_command_and_a_hang_have_texts_of_their_own(profile):
    missing = started(profile, entry("x"))
    prefix = "MCP client for `x` failed to start: MCP startup failed: "
    assert error(missing) == f"{prefix}No such file or directory (os error 2)"
    denied = started(profile, entry("x"), {"x": GOOD}, faults=[Fault("eacces-exec", port="processes")])
    assert error(denied) == f"{prefix}Permission denied (os error 13)"
    hang = started(profile, entry("x", startup_timeout_sec=2), {"x": HANGS})
    assert error(hang).startswith("MCP client for `x` timed out after 2 seconds. Add or adjust `startup_timeout_sec`")
    silent = started(profile, entry("x", startup_timeout_sec=2), {"x": Behaviour(list_tools="never")})
    assert error(silent) == f"{prefix}timed out awaiting tools/list after 2s"


@pytest.mark.parametrize("profile", BOTH)
def test_lines_on_stdout_that_are_no_json_are_tolerated(profile):
    found = run(entry("x"), {"x": Behaviour(stdout_noise=("Listening...", "{"))}, profile=profile)
    assert found.tools() == ["mcp__x/echo"]


@pytest.mark.parametrize("profile", BOTH)
def test_the_app_server_lists_what_it_holds_and_gives_no_notice_of_what_is_off(profile):
    text = entry("off", enabled=False) + entry("good") + entry("r", url=URL)
    found = started(profile, text, {"good": GOOD}, http={URL: HttpServer(Behaviour(status=401, challenge=CHALLENGE))})
    assert updates(found).keys() == {"good", "r"}
    answers = {line["id"]: line for line in found.stdout if "id" in line}
    listed = {one["name"]: one for one in answers[3]["result"]["data"]}
    assert {name: one["authStatus"] for name, one in listed.items()} == {
        "good": "unsupported",
        "off": "unsupported",
        "r": "unsupported",
    }
    assert list(listed["good"]["tools"]) == ["echo"]
    assert listed["good"]["serverInfo"]["name"] == "server"
    assert (found.exit_code, found.events("model.request")) == (0, [])


def test_a_required_server_that_fails_is_the_error_of_the_thread():
    found = started(OLDER, entry("bad", required=True), {"bad": Behaviour(exits="at-start")})
    answer = next(line for line in found.stdout if line.get("id") == 2)
    assert answer["error"]["code"] == -32603
    assert answer["error"]["message"].endswith(f"required MCP servers failed to initialize: bad: {HANDSHAKE}{CLOSED}")


@pytest.mark.parametrize("profile", BOTH)
def test_the_app_server_goes_on_over_a_bad_entry_but_starts_no_thread(profile):
    found = started(profile, entry("good") + "[mcp_servers.bad]\nstartup_timeout_sec = 1\n", {"good": GOOD})
    answers = {line["id"]: line for line in found.stdout}
    assert (found.exit_code, updates(found), "result" in answers[1]) == (0, {}, True)
    assert answers[2]["error"] == {"code": -32600, "message": "failed to load configuration: invalid transport"}
    assert answers[3]["error"] == {"code": -32603, "message": "failed to reload config: invalid transport"}
    assert "Invalid configuration; using defaults. invalid transport" in found.stderr[0]


# --- remote servers


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("lines", [(), ('http_headers = { Authorization = "Bearer no" }',)])
def test_a_401_with_a_challenge_asks_for_a_login_whether_or_not_a_token_was_sent(profile, lines):
    server = HttpServer(Behaviour(status=401, challenge=CHALLENGE))
    told = "The r MCP server is not logged in. Run `codex mcp login r`."
    found = run(entry("r", *lines, url=URL), profile=profile, http={URL: server})
    assert found.events("server.needs_auth") == [{"server": "r", "text": told}]
    assert (found.events("server.failed"), found.exit_code, found.at("model.request")) == ([], 0, [0.0])
    line = "ERROR rmcp::transport::worker: worker quit with fatal: Transport channel closed, when AuthRequired("
    quoted = json.dumps(CHALLENGE)
    assert found.stderr == [f"{line}AuthRequiredError {{ www_authenticate_header: {quoted} }})"]
    assert error(started(profile, entry("r", *lines, url=URL), http={URL: server}), "r") == told


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("status", [401, 403, 404, 500])
def test_another_refusal_is_told_with_status_and_body(profile, status):
    server = HttpServer(Behaviour(status=status, body="no such luck"))
    found = run(entry("r", url=URL), profile=profile, http={URL: server})
    text = found.failures()["r"]
    assert f"error: unexpected server response: HTTP {status}: no such luck, when send initialize request" in text
    assert text.startswith(
        "MCP client for `r` failed to start: MCP startup failed: handshaking with MCP server failed:"
    )
    assert text.count("HTTP") == (2 if profile is NEWER else 1)
    assert found.stderr == []


@pytest.mark.parametrize(("profile", "first_request"), [(OLDER, 1.25), (NEWER, 1.0)])
def test_a_refused_connection_is_tried_three_times(profile, first_request):
    fault = Fault("refused", port="http", label="POST *")
    found = run(
        entry("r", url=URL), profile=profile, http={URL: HttpServer()}, faults=[fault], plan=Plan((Turn(), Turn()))
    )
    assert [event.name for event in found.outcome.events].count("fault") == 3
    assert found.at("model.request")[0] == first_request
    assert found.at("server.failed") == [1.25]
    back = run(entry("r", url=URL), profile=profile, http={URL: HttpServer()}, faults=[fault._replace(times=2)])
    assert back.tools() == (["mcp__r/echo"] if profile is OLDER else [])
    short = run(entry("r", url=URL, startup_timeout_sec=1), profile=OLDER, http={URL: HttpServer()}, faults=[fault])
    assert short.at("server.failed") == [1.0]
    assert "timed out after 1 seconds" in short.failures()["r"]


@pytest.mark.parametrize("profile", BOTH)
def test_a_stored_token_is_looked_up_by_name_and_url_and_sent_after_discovery(profile):
    server = HttpServer(Behaviour(requires_bearer=("AT",), challenge=CHALLENGE))
    text = entry("r", url=URL)
    others = (
        entry_of_store(server_name="s", access_token="no"),
        entry_of_store(server_url=f"{URL}/", access_token="no"),
    )
    found = run(
        text,
        profile=profile,
        files=stored(*others, entry_of_store(), entry_of_store(access_token="later")),
        http={URL: server},
    )
    assert found.tools() == ["mcp__r/echo"]
    assert bearers(server) == ["Bearer AT"]
    before = [f"{seen.method} {seen.url.removeprefix('https://r.test')}" for seen in server.requests]
    assert before[:2] == ["GET /mcp", "GET /x"]
    assert {each.partition(" ")[0] for each in before[: before.index("POST /mcp")]} == {"GET"}
    without = HttpServer()
    assert run(text, profile=profile, http={URL: without}).tools() == ["mcp__r/echo"]
    assert [seen.method for seen in without.requests] == ["POST"] * 3
    assert bearers(without) == [None]
    assert without.requests[0].headers["User-Agent"] == f"codex-mcp-client/{profile.version}"


@pytest.mark.requirement("store-codex-reads-each-connection")
def test_a_store_that_is_replaced_between_two_connections_of_one_run_is_read_anew():
    new = stored(entry_of_store(access_token="new"), entry_of_store(server_name="t", access_token="new"))[STORE]

    async def writer(world: World, argv: Sequence[str]) -> int:
        await world.clock.sleep(5)
        await world.files.write_atomic(STORE, new.encode())
        world.events.emit("replaced")
        return 0

    server = HttpServer()
    found = run(
        entry("r", url=URL) + entry("t", url=URL),
        files=stored(entry_of_store(), entry_of_store(server_name="t")),
        http={URL: server},
        holds=[Hold("codex", f"read {STORE}", lambda event: event.name == "replaced")],
        also={"writer": writer},
    )
    assert len(found.tools()) == 2
    assert bearers(server) == ["Bearer AT", "Bearer new"]


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize(
    ("config", "files", "sent"),
    [
        ("", {STORE: "{"}, None),
        ("", stored(entry_of_store(), {"server_name": "other", "server_url": "u", "access_token": "t"}), None),
        ("", stored(entry_of_store(client_id="")), "Bearer AT"),
        ("", stored(entry_of_store(expires_at=None)), "Bearer AT"),
        ("", stored(entry_of_store(expires_at=(START_SECONDS + 31) * 1000)), "Bearer AT"),
        ('mcp_oauth_credentials_store = "keyring"\n', stored(entry_of_store()), None),
        ('mcp_oauth_credentials_store = "file"\n', stored(entry_of_store()), "Bearer AT"),
    ],
)
def test_what_of_the_store_is_sent(profile, config, files, sent):
    server = HttpServer()
    found = run(config + entry("r", url=URL), profile=profile, files=files, http={URL: server})
    assert (bearers(server), found.tools()) == ([sent], ["mcp__r/echo"])


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("expires_at", [(START_SECONDS + 20) * 1000, START_SECONDS + 3600])
def test_an_expired_token_without_another_is_not_even_tried_where_there_is_an_authorization_server(profile, expires_at):
    files = stored(entry_of_store(expires_at=expires_at))
    server = Protected(HttpServer(), AuthorizationServer("/as"), Resource("/mcp"))
    found = started(profile, entry("r", url=URL), files=files, http={URL: Site(server.authorization, server)})
    assert {seen.method for seen in server.requests} == {"GET"}
    _, _, text, reason = updates(found)["r"]
    assert reason == "reauthenticationRequired"
    if profile is NEWER:
        assert text == "The r MCP server requires OAuth reauthentication. Run `codex mcp login r`."
    else:
        cause = "OAuth tokens for server r cannot be refreshed; authorization required"
        assert text == f"MCP client for `r` failed to start: MCP startup failed: {cause}"
    knows_nothing = HttpServer()
    started(profile, entry("r", url=URL), files=files, http={URL: knows_nothing})
    assert bearers(knows_nothing) == (["Bearer AT"] if profile is OLDER else [])


@pytest.mark.parametrize("profile", BOTH)
def test_an_expired_token_is_renewed_and_written_back_where_the_version_may(profile):
    authorization = AuthorizationServer("/as")
    access, refresh = authorization.issue("c", now=START_SECONDS, expires_in=0)
    server = Protected(HttpServer(), authorization, Resource("/mcp"))
    site = Site(authorization, server)
    old = {"access_token": access, "refresh_token": refresh, "expires_at": START_SECONDS * 1000}
    other = entry_of_store(server_name="s", more="gone")
    for issuer in ("", "https://r.test/as"):
        fields = {**old, "issuer": issuer} if issuer else old
        found = started(profile, entry("r", url=URL), files=stored(other, entry_of_store(**fields)), http={URL: site})
        if profile is NEWER and not issuer:
            assert (updates(found)["r"][-1], authorization.received("token")) == ("reauthenticationRequired", [])
            continue
        assert updates(found)["r"] == ["starting", "ready"]
        asked = authorization.received("token")[0]
        assert asked.fields.get("resource") == (URL if profile is NEWER else None)
        kept = json.loads(found.text(STORE))
        new = kept[next(key for key in kept if key not in ("r|0", "r|1"))]
        assert (new["access_token"], "issuer" in new) == (authorization.tokens[-1].access, profile is NEWER)
        assert (new["expires_at"], kept["r|0"].get("more")) == ((START_SECONDS + 3600) * 1000, None)
        break


@pytest.mark.parametrize("profile", BOTH)
def test_headers_of_the_configuration_go_before_a_stored_token(profile):
    lines = ('http_headers = { X = "1" }', 'env_http_headers = { Y = "YES", Z = "ABSENT" }')
    exported = {**ENVIRONMENT, "TOKEN": "t", "YES": "2"}
    server = HttpServer()
    text = entry("r", *lines, url=URL, bearer_token_env_var="TOKEN", headers="ignored")
    found = run(text, profile=profile, files=stored(entry_of_store()), http={URL: server}, environment=exported)
    assert found.tools() == ["mcp__r/echo"]
    sent = server.requests[0].headers
    assert (server.requests[0].method, sent["Authorization"], sent["X"], sent["Y"]) == ("POST", "Bearer t", "1", "2")
    assert "Z" not in sent


@pytest.mark.parametrize("profile", BOTH)
def test_a_bearer_variable_that_is_not_set_fails_that_server_alone(profile):
    text = entry("r", url=URL, bearer_token_env_var="NOPE") + entry("good")
    server = HttpServer()
    found = run(text, {"good": GOOD}, profile=profile, http={URL: server})
    assert "Environment variable NOPE for MCP server 'r' is not set" in found.failures()["r"]
    assert (found.exit_code, found.tools(), server.requests) == (0, ["mcp__good/echo"], [])


# --- calls


def called(found: Run) -> list[tuple[bool, str]]:
    return [(event["ok"], event["text"]) for event in found.events("tool.call")]


def items(found: Run) -> list[tuple[str, Any]]:
    return [
        (line["item"]["status"], (line["item"]["error"] or {}).get("message"))
        for line in found.stdout
        if line["type"] == "item.completed" and line["item"]["type"] == "mcp_tool_call"
    ]


def calling(*tools: str) -> Plan:
    return Plan((Turn(tuple(ToolCall("x", tool) for tool in tools)), Turn()))


@pytest.mark.parametrize("profile", BOTH)
def test_calls_without_full_access_run_by_mode_and_by_what_the_tool_does(profile):
    tools = (Tool("reads", read_only=True), Tool("writes"), Tool("approved"), Tool("asks", read_only=True))
    modes = ('tools.approved.approval_mode = "approve"', 'tools.asks.approval_mode = "prompt"')
    plan = calling("reads", "writes", "approved", "asks")
    text, servers = entry("x", *modes), {"x": Behaviour(tools=tools)}
    refusal = {OLDER: "user cancelled MCP tool call"}.get(
        profile, "MCP tool call requires approval, but approval policy is never"
    )
    for sandbox in ("read-only", "workspace-write"):
        found = run(text, servers, profile=profile, plan=plan, argv=(*EXEC, "-s", sandbox))
        assert called(found) == [(True, "ok"), (False, refusal), (True, "ok"), (False, refusal)]
        assert items(found) == [("completed", None), ("failed", refusal)] * 2
    free = run(text, servers, profile=profile, plan=plan, argv=(*EXEC, *FULL))
    assert called(free) == [(True, "ok")] * 4
    default = entry("x", default_tools_approval_mode="approve")
    assert called(run(default, servers, profile=profile, plan=plan)) == [(True, "ok")] * 4


def test_a_tool_that_was_not_offered_is_an_unsupported_call_without_an_item():
    text = entry("x", enabled_tools=["a", "b"], disabled_tools=["b"])
    tools = tuple(map(Tool, "abc"))
    found = run(text, {"x": Behaviour(tools=tools)}, plan=calling("a", "b", "c"), argv=(*EXEC, *FULL))
    assert found.tools() == ["mcp__x/a"]
    assert called(found) == [
        (True, "ok"),
        (False, "unsupported call: mcp__x__b"),
        (False, "unsupported call: mcp__x__c"),
    ]
    assert len(items(found)) == 1
    none = run(entry("x", enabled_tools=[]), {"x": Behaviour(tools=tools)})
    assert none.tools() == []


def test_colliding_names_are_offered_with_hashes_and_called_by_their_raw_names():
    plan = Plan((Turn((ToolCall("my-srv", "dup.x"),)), Turn()))
    text = entry("my-srv") + entry("my_srv", command="run-my-srv")
    found = run(text, {"my-srv": Behaviour(tools=(Tool("dup.x"), Tool("dup_x")))}, plan=plan, argv=(*EXEC, *FULL))
    assert len(found.tools()) == 4
    assert all(name.startswith(("mcp__my_srv_b0fadbc4a6d3/", "mcp__my_srv_96cc9a66e3ef/")) for name in found.tools())
    assert called(found) == [(True, "ok")]
    item = next(line["item"] for line in found.stdout if line["type"] == "item.completed")
    assert (item["server"], item["tool"]) == ("my-srv", "dup.x")


@pytest.mark.parametrize("profile", BOTH)
def test_a_call_that_fails_is_told_to_the_model_and_the_run_goes_on(profile):
    slow = Behaviour(tools=(Tool("slow", answers_after_seconds=5.0), Tool("wrong", is_error=True, text="no")))
    found = run(
        entry("x", tool_timeout_sec=1), {"x": slow}, profile=profile, plan=calling("slow", "wrong"), argv=(*EXEC, *FULL)
    )
    timed_out = (
        "tool call error: tool call failed for `x/slow`\n\nCaused by:\n    timed out awaiting tools/call after 1000ms"
    )
    assert called(found) == [(False, timed_out), (False, "no")]
    assert items(found) == [("failed", timed_out), ("failed", None)]
    dies = run(
        entry("x"), {"x": Behaviour(exits="on-call")}, profile=profile, plan=calling("echo"), argv=(*EXEC, *FULL)
    )
    assert called(dies)[0][1].endswith("Caused by:\n    Transport closed")
    assert (found.exit_code, dies.exit_code, len(dies.events("model.request"))) == (0, 0, 2)


def test_the_transcript_knows_calls_and_nothing_of_starts():
    plan = calling("echo")
    for profile in BOTH:
        found = run(
            entry("x") + entry("y"),
            {"x": GOOD, "y": Behaviour(exits="at-start")},
            profile=profile,
            plan=plan,
            argv=(*EXEC, *FULL),
        )
        path = next(
            path for path, _ in found.simulation.tree.walk(f"{HOME}/.codex/sessions") if path.endswith(".jsonl")
        )
        assert path.startswith(f"{HOME}/.codex/sessions/2023/11/14/rollout-2023-11-14T22-13-20-")
        lines = [json.loads(line) for line in found.text(path).splitlines()]
        kinds = [(line["type"], line["payload"].get("type")) for line in lines]
        told = [("event_msg", "mcp_tool_call_end" if profile is OLDER else "item_completed")]
        call, output = ("response_item", "function_call"), ("response_item", "function_call_output")
        assert kinds == [("session_meta", None), call, *told, output]
        assert (lines[1]["payload"]["namespace"], lines[1]["payload"]["name"]) == ("mcp__x", "echo")
        if profile is OLDER:
            assert lines[2]["payload"]["invocation"]["server"] == "x"
        else:
            assert lines[2]["payload"]["item"]["server"] == "x"
            sources = lines[3]["payload"]["metadata"]["mcp_attribution"]["sources"]
            assert sources == [{"server_name": "x", "tool_name": "echo"}]


# --- the log


@pytest.mark.parametrize("profile", BOTH)
def test_a_child_s_stderr_reaches_nothing_unless_the_log_is_turned_up(profile):
    servers = {"x": Behaviour(exits="at-start", stderr=("Invalid API key",))}
    for log in (None, "warn,rmcp=info", "error"):
        environment = ENVIRONMENT if log is None else {**ENVIRONMENT, "RUST_LOG": log}
        found = run(entry("x"), servers, profile=profile, environment=environment)
        assert "Invalid API key" not in str(found.stderr) + str(found.stdout) + str(found.events("server.failed"))
    loud = {**ENVIRONMENT, "RUST_LOG": "codex_mcp=debug,codex_rmcp_client=debug"}
    found = run(entry("x"), servers, profile=profile, environment=loud)
    assert "INFO codex_rmcp_client::stdio_server_launcher: MCP server stderr (run-x): Invalid API key" in found.stderr
    assert any(
        "failed to initialize MCP client during shutdown: MCP startup failed: handshaking" in line
        for line in found.stderr
    )
    assert any('server_name="x"' in line for line in found.stderr) is (profile is NEWER)


@pytest.mark.parametrize(
    ("log", "target", "level", "written"),
    [
        ("", "a::b", "error", True),
        ("", "a::b", "warn", False),
        ("info", "a::b", "info", True),
        ("off", "a::b", "error", False),
        ("off,a=debug", "a::b", "debug", True),
        ("a=debug,a::b=error", "a::b", "warn", False),
        ("a=debug", "ab::c", "info", False),
        ("nonsense", "a", "error", True),
    ],
)
def test_the_longest_directive_decides_a_line_of_the_log(log, target, level, written):
    assert shown({"RUST_LOG": log}, target, level) is written
