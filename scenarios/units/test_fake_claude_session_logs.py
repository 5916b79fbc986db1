"""What Claude writes into its server logs, in the words of both versions."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.claude.logs import hyphened, log_directory, redacted, slug
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_runtimes.text import iso_time
from fake_servers.mcp import Behaviour, Tool
from harness.reference.credentials.key import credential_key
from harness.world.model import Fault
from scenarios.claude_runs import CLONE, HOME, NEW, OLD, ClaudeRun

GOOD = Behaviour()
D, E = "debug", "error"
BOTH = pytest.mark.parametrize("profile", [OLD, NEW])
KEY_STDERR = Behaviour(exits="at-start", stderr=("BrightData: Invalid API key", "authentication failed"))
UNABLE = "Unable to connect. Is the computer able to access the url?"
CLOSED = (
    "The socket connection was closed unexpectedly. For more information, pass `verbose: true` in the second"
    " argument to fetch()"
)
STDERR_LINE = (E, "Server stderr: BrightData: Invalid API key\nauthentication failed\n")
RESPAWN = (
    D,
    "version negotiation probe closed the stdio server (rmcp-class pre-init hard close); respawning pinned legacy",
)
BEFORE = (
    D,
    "stderr of the stdio server before restarting it: BrightData: Invalid API key\nauthentication failed\n",
)


def failure(profile: str, code: str, text: str, milliseconds: int = 0) -> list[tuple[str, str]]:
    """The two lines of a process that did not connect."""
    awake = f", {milliseconds}ms of it awake" if profile == NEW else ""
    return [
        (D, f"Connection failed after {milliseconds}ms{awake} ({code}): {text}"),
        (E, f"Connection failed ({code}): {text}"),
    ]


def http_failure(profile: str, quiet_code: str, code: str, text: str, error_class: str) -> list[tuple[str, str]]:
    """The lines of a remote server that did not connect: its transport's, then those of every server."""
    return [
        (D, f"HTTP Connection failed after 0ms: {text} (code: {quiet_code}, errno: none)"),
        (E, f"{error_class}: {text}\n    at <anonymous>"),
        *failure(profile, code, text),
    ]


CLOSED_CODES = {OLD: ("-32000", "MCP error -32000: Connection closed"), NEW: ("CONNECTION_CLOSED", "Connection closed")}


@BOTH
def test_a_good_process_from_connecting_to_its_clean_end(profile):
    run = ClaudeRun(profile, {"good": Behaviour(initialize_after_seconds=0.08)}, plan=Plan((Turn(seconds=2.5),)))
    newer = ',"protocolEra":"legacy","negotiatedProtocolVersion":"2025-11-25"' if profile == NEW else ""
    assert run.log("good") == [
        (D, "Starting connection with timeout of 30000ms"),
        (D, "Successfully connected (transport: stdio) in 80ms"),
        (
            D,
            (
                'Connection established with capabilities: {"hasTools":true,"hasPrompts":false,"hasResources":false,'
                f'"hasResourceSubscribe":false,"serverVersion":{{"name":"server","version":"1.0.0"}}{newer}}}'
            ),
        ),
        (D, "Sending SIGINT to MCP server process"),
        (D, "UNKNOWN connection closed after 2s (cleanly)"),
        (D, "Cleared connection cache for reconnection"),
        (D, "MCP server process exited cleanly"),
    ]


@BOTH
def test_a_good_remote_server_has_its_transports_lines_in_front(profile):
    run = ClaudeRun(profile, {}, {"far": GOOD})
    version = profile.removeprefix("claude-")
    assert [text for _, text in run.log("far")][:8] == [
        "Initializing HTTP transport to https://far.test/mcp",
        (
            'HTTP transport options: {"url":"https://far.test/mcp","headers":{"User-Agent":'
            f'"claude-code/{version} (sdk-cli)","Accept-Encoding":"identity"}},'
            '"hasAuthProvider":true,"timeoutMs":60000}'
        ),
        "HTTP transport created successfully",
        "Starting connection with timeout of 30000ms",
        "Testing basic HTTP connectivity to https://far.test/mcp",
        "Parsed URL: host=far.test, port=default, protocol=https:",
        "No token data found",
        "Successfully connected (transport: http) in 0ms",
    ]
    assert run.log("far")[-1] == (D, "HTTP connection closed after 1s (cleanly)")
    assert run.servers["far"].requests[0].headers["User-Agent"] == f"claude-code/{version} (sdk-cli)"


@BOTH
@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("no-such-cmd-xyz", 'Executable not found in $PATH: "no-such-cmd-xyz"'),
        ("/nonexistent/bin/foo", "ENOENT: no such file or directory, posix_spawn '/nonexistent/bin/foo'"),
    ],
)
def test_a_command_that_is_not_there(profile, command, text):
    run = ClaudeRun(profile, entries={"x": {"command": command}})
    assert run.log("x")[1:] == failure(profile, "ENOENT", text)
    assert run.events("server.failed") == [
        {"server": "x", "kind": "enoent", "text": f"Connection failed (ENOENT): {text}", "at": 0.0}
    ]


@BOTH
def test_a_command_that_is_not_executable(profile):
    run = ClaudeRun(profile, entries={"x": {"command": "/bin/x"}}, unexecutable=["/bin/x"])
    assert run.log("x")[1:] == failure(profile, "EACCES", "EACCES: permission denied, posix_spawn '/bin/x'")


@BOTH
def test_a_process_that_says_why_and_exits(profile):
    run = ClaudeRun(profile, {"x": KEY_STDERR})
    again = [RESPAWN, BEFORE] if profile == NEW else []
    assert run.log("x")[1:] == [*again, STDERR_LINE, *failure(profile, *CLOSED_CODES[profile])]
    assert run.events("server.failed")[0]["kind"] == "exited"


@BOTH
def test_a_process_that_exits_silently_even_with_0(profile):
    run = ClaudeRun(profile, {"x": Behaviour(exits="at-start", exit_code=0)})
    again = [RESPAWN] if profile == NEW else []
    assert run.log("x")[1:] == [*again, *failure(profile, *CLOSED_CODES[profile])]


@BOTH
def test_a_timeout_of_the_handshake_names_the_server_on_the_older_version_alone(profile):
    env = {"MCP_TIMEOUT": "4000", "MCP_CONNECTION_NONBLOCKING": "0"}
    run = ClaudeRun(profile, {"hang": Behaviour(initialize="never", stderr=("waiting",))}, env=env)
    named = [
        (D, "Connection timeout triggered after 4000ms (limit: 4000ms)"),
        *failure(profile, "CONNECT_TIMEOUT", 'MCP server "hang" connection timed out after 4000ms', 4000),
    ]
    told = named if profile == OLD else failure(profile, "CONNECT_TIMEOUT", "Request timed out", 4000)
    assert run.log("hang")[1:] == [(E, "Server stderr: waiting\n"), *told]


def test_a_timeout_behind_a_probe_that_nobody_answered_names_the_server():
    env = {"MCP_TIMEOUT": "4000", "MCP_CONNECTION_NONBLOCKING": "0"}
    run = ClaudeRun(NEW, {"hang": Behaviour(initialize="never", discover="never")}, env=env)
    assert run.log("hang")[1:] == [
        (D, "Connection timeout triggered after 4000ms, 4000ms of it awake (limit: 4000ms)"),
        *failure(NEW, "CONNECT_TIMEOUT", 'MCP server "hang" connection timed out after 4000ms', 4000),
    ]


@BOTH
def test_a_remote_timeout_is_told_in_the_same_words(profile):
    env = {"MCP_TIMEOUT": "8000", "MCP_CONNECTION_NONBLOCKING": "0"}
    run = ClaudeRun(profile, {}, {"far": Behaviour(initialize="never")}, env=env)
    text = 'MCP server "far" connection timed out after 8000ms' if profile == OLD else "Request timed out"
    assert run.log("far")[-2:] == failure(profile, "CONNECT_TIMEOUT", text, 8000)


@BOTH
def test_a_401_and_a_403_want_a_sign_in(profile):
    run = ClaudeRun(
        profile, {}, {"a": Behaviour(status=401, challenge="Bearer"), "b": Behaviour(status=403, body="no")}
    )
    deferred = "Authentication required; client registration is deferred until the user authenticates"
    quiet, loud, wants = run.log("a")[-3:]
    assert quiet == (D, f"HTTP Connection failed after 0ms: {deferred} (code: none, errno: none)")
    assert loud[0] == E
    assert loud[1].startswith(f"McpClientRegistrationDeferredError: {deferred}\n    at ")
    assert wants == (D, "Authentication required for HTTP server")
    said, code = {
        OLD: ("Streamable HTTP error: Error POSTing to endpoint: no", "403"),
        NEW: ("Error POSTing to endpoint: no", "CLIENT_HTTP_NOT_IMPLEMENTED"),
    }[profile]
    assert run.log("b")[-3:] == [
        (D, f"HTTP Connection failed after 0ms: {said} (code: {code}, errno: none)"),
        (E, f"{'Error' if profile == OLD else 'SdkHttpError'}: {said}\n    at <anonymous>"),
        (D, "Authentication required for HTTP server"),
    ]
    assert run.statuses() == {"a": "needs-auth", "b": "needs-auth"}


@BOTH
def test_a_401_of_a_server_that_a_client_is_registered_with_says_so(profile):
    server = {"type": "http", "url": "https://a.test/mcp"}
    key = credential_key("a", server)
    store = {"mcpOAuth": {key: {"accessToken": "", "clientId": "c"}}}
    files = {f"{HOME}/.claude/.credentials.json": json.dumps(store)}
    run = ClaudeRun(profile, {}, {"a": Behaviour(status=401)}, files=files)
    error = "Error: Unauthorized\n    at " if profile == OLD else "UnauthorizedError: Unauthorized\n    at "
    quiet, loud, _ = run.log("a")[-3:]
    assert quiet == (D, "HTTP Connection failed after 0ms: Unauthorized (code: none, errno: none)")
    assert loud[1].startswith(error)


@BOTH
def test_a_configured_authorization_that_is_refused_is_a_failure(profile):
    entry = {"type": "http", "url": "https://a.test/mcp", "headers": {"authorization": "Bearer x"}}
    run = ClaudeRun(profile, {}, {"a": Behaviour(status=401)}, entries={"a": entry})
    text = (
        "Server rejected the configured Authorization header (HTTP 401). Check that the token is valid for this MCP"
        " endpoint — OAuth fallback is disabled when headers.Authorization is set."
    )
    assert run.log("a")[-1] == (E, text)
    assert run.statuses() == {"a": "failed"}
    assert run.events("server.failed")[0]["text"] == text


@BOTH
def test_a_404_is_an_endpoint_that_is_not_there(profile):
    run = ClaudeRun(profile, {}, {"a": Behaviour(status=404)})
    text = "MCP endpoint not found at https://a.test. Check the URL in your MCP config."
    assert run.log("a")[-1] == (E, f"Connection failed (ENDPOINT_NOT_FOUND): {text}")
    tried = [line for level, line in run.log("a") if "legacy HTTP+SSE" in line and level == D]
    assert len(tried) == 2
    assert tried[0].startswith("initialize POST rejected (")
    assert (
        tried[1] == "legacy HTTP+SSE not confirmed (SSE error: Non-200 status code (405)); surfacing the POST failure"
    )


@BOTH
def test_a_500_and_a_page_of_html(profile):
    run = ClaudeRun(profile, {}, {"a": Behaviour(status=500, body="boom"), "b": Behaviour(content_type="text/html")})
    prefix = "Streamable HTTP error: " if profile == OLD else ""
    quiet = "500" if profile == OLD else "CLIENT_HTTP_NOT_IMPLEMENTED"
    error_class = "Error" if profile == OLD else "SdkHttpError"
    text = f"{prefix}Error POSTing to endpoint: boom"
    assert run.log("a")[-4:] == http_failure(profile, quiet, "500", text, error_class)
    code = "-1" if profile == OLD else "CLIENT_HTTP_UNEXPECTED_CONTENT"
    assert run.log("b")[-1] == (E, f"Connection failed ({code}): {prefix}Unexpected content type: text/html")


@BOTH
@pytest.mark.parametrize(
    ("action", "old", "new"),
    [
        ("refused", ("ConnectionRefused", UNABLE), ("ECONNREFUSED", f"ECONNREFUSED: {UNABLE}")),
        ("dns", ("ENOTFOUND", "getaddrinfo ENOTFOUND a.test"), ("ENOTFOUND", "getaddrinfo ENOTFOUND a.test")),
        ("reset-after", ("ECONNRESET", CLOSED), ("ECONNRESET", f"ECONNRESET: {CLOSED}")),
    ],
)
def test_a_network_that_fails(profile, action, old, new):
    run = ClaudeRun(profile, {}, {"a": GOOD}, faults=[Fault(action, port="http")])
    code, text = old if profile == OLD else new
    error_class = "Error" if action == "dns" else "TypeError"
    assert run.log("a")[-4:] == http_failure(profile, code, code, text, error_class)
    assert run.statuses() == {"a": "failed"}


@BOTH
def test_the_older_transport_has_its_own_words(profile):
    entries = {name: {"type": "sse", "url": f"https://{name}.test/sse"} for name in ("a", "b")}
    run = ClaudeRun(profile, {}, {"a": Behaviour(requires_bearer=("t",)), "b": GOOD}, entries=entries)
    wants = run.log("a")[-1]
    assert wants == (D, "Authentication required for SSE server")
    assert run.log("a")[-3][1].startswith("SSE Connection failed after 0ms")
    assert run.log("b")[-1] == (E, "Connection failed (405): SSE error: Non-200 status code (405)")


@BOTH
def test_an_error_in_answer_to_initialize_fails(profile):
    run = ClaudeRun(profile, {"x": Behaviour(initialize="error")})
    text = "MCP error -32603: Internal error" if profile == OLD else "Internal error"
    assert run.log("x")[-2:] == failure(profile, "-32603", text)


@BOTH
def test_a_url_that_is_none_is_told_and_nothing_is_sent(profile):
    run = ClaudeRun(profile, entries={"x": {"type": "http", "url": "not a url"}})
    assert run.log("x") == [(E, "'url' is not a valid URL. Update the server's config and reconnect.")]
    assert run.statuses() == {"x": "failed"}


@BOTH
def test_what_a_good_server_printed_is_folded_into_one_line_with_its_tokens_struck_out(profile):
    printed = ("\x1b[31mred\x1b[0m", f"token=abc123 Bearer {'xyz.1' * 4}", "x" * 5000)
    run = ClaudeRun(profile, {"good": Behaviour(stderr=printed)})
    assert run.log("good")[1] == (
        E,
        f"Server stderr: \x1b[31mred\x1b[0m\ntoken=[REDACTED] Bearer [REDACTED]\n{'x' * 5000}\n",
    )
    assert "abc123" not in "".join(run.text(path) for path in run.log_files())


@BOTH
def test_calls_are_logged_with_their_ends(profile):
    tools = (Tool("echo", answers_after_seconds=0.234), Tool("bad", is_error=True, text="broken"))
    plan = Plan((Turn((ToolCall("good", "echo"), ToolCall("good", "bad"), ToolCall("dies", "echo"))),))
    run = ClaudeRun(profile, {"good": Behaviour(tools=tools), "dies": Behaviour(exits="on-call")}, plan=plan)
    assert run.log("good")[3:7] == [
        (D, "Calling MCP tool: echo"),
        (D, "Tool 'echo' completed successfully in 234ms"),
        (D, "Calling MCP tool: bad"),
        (D, "Tool 'bad' failed after 0s: broken"),
    ]
    assert run.log("dies")[3:6] == [
        (D, "Calling MCP tool: echo"),
        (D, "UNKNOWN connection closed after 0s (cleanly)"),
        (D, f"Tool 'echo' failed after 0s: {CLOSED_CODES[profile][1]}"),
    ]


@BOTH
def test_a_line_has_its_time_session_and_directory_and_all_servers_share_a_file_name(profile):
    run = ClaudeRun(profile, {"good": Behaviour(initialize_after_seconds=1.5), "a__b": GOOD})
    files = run.log_files()
    assert {path.rpartition("/")[2] for path in files} == {"2023-11-14T22-13-20-000Z.jsonl"}
    assert f"{HOME}/.cache/claude-cli-nodejs/-clones-c1/mcp-logs-a--b/2023-11-14T22-13-20-000Z.jsonl" in files
    lines = run.text(next(path for path in files if "good" in path)).splitlines()
    session = run.lines()[0]["session_id"]
    assert json.loads(lines[1]) == {
        "debug": "Successfully connected (transport: stdio) in 1500ms",
        "timestamp": "2023-11-14T22:13:21.500Z",
        "sessionId": session,
        "cwd": CLONE,
    }
    assert list(json.loads(lines[0])) == ["debug", "timestamp", "sessionId", "cwd"]


@BOTH
def test_logs_follow_the_cache_home_and_the_real_path_of_the_directory(profile):
    env = {"XDG_CACHE_HOME": "/cache"}
    run = ClaudeRun(profile, {"good": GOOD}, env=env, directory="/link/c1", links={"/link": "/real"})
    assert run.log_files() == ["/cache/claude-cli-nodejs/-real-c1/mcp-logs-good/2023-11-14T22-13-20-000Z.jsonl"]
    assert run.lines()[0]["cwd"] == "/link/c1"


@BOTH
def test_two_servers_whose_names_look_alike_share_one_log(profile):
    run = ClaudeRun(profile, {"dup.s": GOOD, "dup_s": GOOD})
    (path,) = run.log_files()
    assert len([line for line in run.text(path).splitlines() if "Successfully connected" in line]) == 2


@BOTH
def test_only_servers_that_were_tried_have_a_log(profile):
    files = {f"{HOME}/.claude.json": json.dumps({"projects": {CLONE: {"disabledMcpServers": ["off"]}}})}
    run = ClaudeRun(profile, {"off": GOOD}, entries={"x": {}, "workspace": {"command": "y"}}, files=files)
    assert run.log_files() == []
    assert run.statuses() == {"off": "disabled"}


@BOTH
def test_a_log_that_cannot_be_written_stops_nothing(profile):
    full = [Fault("enospc", port="files", label="*mcp-logs-*")]
    run = ClaudeRun(profile, {"good": GOOD}, faults=full)
    assert run.statuses() == {"good": "connected"}
    assert run.exit_code == 0


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/a_b/c.d e", "-a-b-c-d-e"), ("/café", "-caf-"), ("/😀", "---"), ("/" + "a" * 199, "-" + "a" * 199)],
)
def test_the_folder_of_a_project_keeps_letters_and_digits(path, expected):
    assert slug(path) == expected


def test_a_long_folder_is_cut_and_told_apart_by_a_hash_of_the_path():
    # Java's and JavaScript's customary string hash of 201 characters: computed apart by its definition.
    path = "/" + "a" * 200
    value = 0
    for letter in path:
        value = (value * 31 + ord(letter)) % 2**32
    signed = value - 2**32 if value >= 2**31 else value
    cut, _, digest = slug(path).rpartition("-")
    assert cut == "-" + "a" * 199
    assert int(digest, 36) == abs(signed)
    assert slug(path) != slug(path + "b")
    assert slug("/_" + "a" * 200) != slug("/." + "a" * 200)


@pytest.mark.parametrize(
    ("name", "expected"), [("My_Srv.1", "My-Srv-1"), ("a__b", "a--b"), ("@org/x", "-org-x"), ("", "")]
)
def test_the_folder_of_a_server_keeps_letters_and_digits(name, expected):
    assert hyphened(name) == expected
    assert log_directory("/c", "/p", name) == f"/c/claude-cli-nodejs/-p/mcp-logs-{expected}"


def test_times_are_utc_with_milliseconds():
    assert iso_time(1796028403.6984) == "2026-11-30T08:46:43.698Z"
    assert iso_time(1.9996) == "1970-01-01T00:00:02.000Z"


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        ("token=abc&y mytoken=b key=1 token_type=c", "token=*&y mytoken=* key=1 token_type=*"),
        (
            "refresh_token=nn,oo refreshToken=pp}qq secret=ee; code=zz",
            "refresh_token=*,oo refreshToken=*}qq secret=*; code=zz",
        ),
        ('{"access_token": "q w", "id_token":"x", "a": 1}', '{"access_token": "*", "id_token":"*", "a": 1}'),
        ('{"note": "a", "client_secret": "cut o', '{"note": "a", "client_secret": * o'),
        ('"n_token": 5, "o_token": {"a": "T"}', '"n_token": *, "o_token": * "T"}'),
        ("'secret': 'dd' x-api-key: ff passwd=ii pwd=jj", "'secret': '*' x-api-key: * passwd=* pwd=jj"),
        ("Authorization: Bearer yyy Authorization: Digest f", "Authorization: * Authorization: * f"),
        (f"Bearer {'a' * 16} Bearer {'a' * 20} bearer {'b' * 30}", f"Bearer {'a' * 16} Bearer * bearer *"),
        ('"Bearer q" nothing at all', '"Bearer q" nothing at all'),
    ],
)
def test_what_is_called_like_a_secret_is_struck_out(printed, kept):
    assert redacted(printed) == kept.replace("*", "[REDACTED]")
