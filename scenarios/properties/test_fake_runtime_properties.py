"""Whatever text a fake runtime is given, it answers with servers and problems, never with an exception."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fake_runtimes import runtimes
from fake_runtimes.claude.config import read_project
from fake_runtimes.claude.credentials import find_entry as claude_entry
from fake_runtimes.claude.names import sanitise
from fake_runtimes.claude.startup import timeout_ms
from fake_runtimes.codex.config import read_config as read_codex
from fake_runtimes.codex.credentials import find_entry as codex_entry
from fake_runtimes.codex.names import offered as codex_offered
from fake_runtimes.launch import launch, remembered
from fake_runtimes.loaded import PROBLEM_CODES, Loaded, LoadedServer
from fake_runtimes.pi.config import oauth_considered
from fake_runtimes.pi.config import read_config as read_pi
from fake_runtimes.pi.resolver import NpmExec, connect, plan
from fake_runtimes.profile import PiProfile, known_profiles, load_profile
from fake_runtimes.text import JsonTextError, parse_json

PROFILES: list[Any] = [load_profile(name) for name in known_profiles()]
CODEX = [profile for profile in PROFILES if profile.runtime == "codex"]
PI = [profile for profile in PROFILES if profile.runtime == "pi"]

# Surrogates included: a JSON escape can bring them in.
TEXTS = st.text(st.characters(exclude_categories=()), max_size=12)
NAMES = TEXTS | st.sampled_from(["x", "a-b", "a_b", "10", "2", "workspace", "a.b", "", "__proto__"])
VARIABLES = st.sampled_from(
    ["${A}", "${B:-d}", "$env:A", "{env:B}", "${A", "!run", "!!x", "https://${A}/mcp", "http://[", "npx"]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63, 1e308, -0.0, 0.5])
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | VARIABLES
)
FIELDS = st.sampled_from(
    [
        *("type", "command", "args", "env", "url", "headers", "oauth", "disabled", "enabled", "required", "cwd"),
        *("socket", "auth", "bearerToken", "bearerTokenEnv", "httpTransport", "lifecycle", "directTools"),
        *("toolPrefix", "requestTimeoutMs", "inheritEnv", "startup_timeout_sec", "startup_timeout_ms"),
        *("tool_timeout_sec", "env_vars", "http_headers", "env_http_headers", "bearer_token_env_var"),
        *("bearer_token", "http_headers_helper", "enabled_tools", "scopes", "tools"),
        *("default_tools_approval_mode", "oauth_resource", "settings", "name"),
    ]
)
VALUES = st.recursive(
    SCALARS
    | st.sampled_from(["stdio", "http", "sse", "ws", "sdk", "bearer", "oauth", "eager", "short", "mcp", "none"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | FIELDS, inner, max_size=3),
    max_leaves=6,
)
ENTRIES = st.dictionaries(FIELDS, VALUES, max_size=6) | VALUES
WORKING = st.sampled_from(
    [{"command": "c"}, {"type": "http", "url": "https://${A}/mcp"}, {"url": "https://x.test", "headers": {"H": "${B}"}}]
)
SERVERS = st.dictionaries(NAMES, ENTRIES | WORKING, max_size=4) | VALUES
SERVERS_KEYS = st.sampled_from(["mcpServers", "mcp-servers", "servers", "mcp_servers"])
SETTINGS_KEYS = st.sampled_from(["settings", "mcp_optional_startup_grace_ms", "mcp_oauth_credentials_store"])
DOCUMENTS = st.builds(
    lambda servers, rest: {**rest, **servers},
    st.dictionaries(SERVERS_KEYS, SERVERS, min_size=1),
    st.dictionaries(SETTINGS_KEYS, VALUES),
)
ENVIRONMENTS = st.dictionaries(
    st.sampled_from(
        ["A", "B", "HOME", "PATH", "MCP_TIMEOUT", "MCP_CONNECTION_NONBLOCKING", "MCP_SERVER_CONNECTION_BATCH_SIZE"]
    ),
    TEXTS | st.sampled_from(["0", "1e9", "5", "false"]),
)
JSON_TEXTS = st.builds(json.dumps, DOCUMENTS | VALUES, ensure_ascii=st.booleans())
DEEP = "[" * 100_000
BROKEN = (
    TEXTS
    | st.text('{}[]",:\\ntruef-1eE.NaInity/*# =\n', max_size=40)
    | st.builds(lambda text, at: text[:at], JSON_TEXTS, st.integers(0, 80))
    | st.builds(lambda text, bad: text.replace("}", bad, 1), JSON_TEXTS, TEXTS)
)


def toml_value(value):
    """A JSON-like value as TOML, or None where TOML has no word for it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        # JSON's escapes are TOML's, but TOML has no lone surrogates and no unescaped DEL.
        return json.dumps(re.sub("[\ud800-\udfff]", "?", value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return "[" + ", ".join(item for item in map(toml_value, value) if item is not None) + "]"
    if isinstance(value, dict):
        members = {toml_value(key): toml_value(member) for key, member in value.items()}
        return "{" + ", ".join(f"{key} = {member}" for key, member in members.items() if member is not None) + "}"
    return None


def toml_text(document):
    lines = [f"{toml_value(key)} = {toml_value(value)}" for key, value in document.items() if value is not None]
    return "\n".join(lines)


TOML_TEXTS = st.builds(toml_text, DOCUMENTS)
ANY_TEXT = JSON_TEXTS | TOML_TEXTS | BROKEN


def check(profile, loaded, environment):
    """The shape of an answer, and that nothing which is asked about its servers fails either."""
    assert isinstance(loaded, Loaded)
    assert all(problem.code in PROBLEM_CODES for problem in loaded.problems)
    assert all(isinstance(problem.text, str) for problem in loaded.problems)
    assert loaded.run_killed <= (loaded.servers == ())
    failing = {problem.server for problem in loaded.problems if problem.code == "server_fails"}
    assert failing == {server.name for server in loaded.servers if not server.starts}
    names = [server.name for server in loaded.servers]
    assert len(set(names)) == len(names)
    for server in loaded.servers:
        check_server(profile, server, environment)
    tools = {name: ["t", "a.b", "a_b", name] for name in names}
    offered = runtimes.offered(profile, tools, loaded.servers)
    assert offered.names.keys() | set(offered.dropped) == {(name, tool) for name in tools for tool in tools[name]}
    assert not offered.names.keys() & set(offered.dropped)
    first = launch(profile, loaded.servers, dict.fromkeys(names, 1.0), environment)
    launch(profile, loaded.servers, {}, environment, remembered(first))


def check_server(profile, server, environment):
    assert (server.fault is None) is server.starts
    assert all(isinstance(value, str) for value in (*server.args, *server.env.values(), *server.headers.values()))
    assert (runtimes.lookup_key(profile, server) is None) is (server.url is None)
    runtimes.server_label(profile, server.name)
    budget = runtimes.start_budget(profile, server, environment)
    assert 0 <= budget.attempt_seconds < float("inf")
    hanging = runtimes.attempt(profile, server, environment, None)
    assert hanging == (("timed_out", budget.attempt_seconds) if server.starts else ("failed", 0.0))
    assert runtimes.in_first_request(profile, server, environment, 1.0) in ("yes", "late", "never")
    if isinstance(profile, PiProfile):
        oauth_considered(server)
        connect(server, profile, plan(server, environment, profile, {}, NpmExec(1.0)), 1.0)


@given(ANY_TEXT, ENVIRONMENTS, st.sampled_from(PROFILES))
@example(DEEP, {}, PROFILES[0])
@example(DEEP, {}, PROFILES[-1])
@example("a = " + DEEP, {}, CODEX[0])
@example("a = " + '{"a"='.replace('"', "") * 5000, {}, CODEX[0])
@example("a" + ".a" * 5000 + " = 1", {}, CODEX[0])
@example("[mcp_servers" + ".a" * 300 + "]", {}, CODEX[0])
@example("a = " + "1" * 5000, {}, CODEX[0])
@example('[mcp_servers.x]\ncommand = "c"\nstartup_timeout_ms = ' + "1" * 400, {}, CODEX[0])
@example('[mcp_servers.x]\ncommand = "c"\nstartup_timeout_sec = ' + "1" * 400, {}, CODEX[1])
@example('[mcp_servers.x]\ncommand = "c"\nstartup_timeout_sec = nan', {}, CODEX[1])
@example('[mcp_servers.x]\ncommand = "c"\nstartup_timeout_sec = inf', {}, CODEX[1])
@example("[mcp_servers.x]\ncommand = 1979-05-27", {}, CODEX[1])
@example('{"mcpServers": {"\\ud800": {"type": "http", "url": "https://\\ud800.test"}}}', {}, PROFILES[0])
@example('{"mcpServers": {"x": {"command": "c", "requestTimeoutMs": 1e999}}}', {}, PI[0])
@example('{"mcpServers": {"x": {"command": "c", "requestTimeoutMs": ' + "9" * 5000 + "}}}", {}, PI[0])
@example('{"mcpServers": NaN}', {}, PI[1])
@example('{"mcpServers": {"x": {"type": "http", "url": "http://x:' + "0" * 5000 + '"}}}', {}, PROFILES[1])
def test_any_text_is_answered_with_servers_and_problems(text, environment, profile):
    check(profile, runtimes.read(profile, text, environment), environment)


@given(JSON_TEXTS, JSON_TEXTS, ENVIRONMENTS, st.sampled_from(PI))
def test_pi_merges_any_two_files(below, above, environment, profile):
    check(profile, read_pi({".mcp.json": below, ".pi/mcp.json": above}, environment, profile), environment)


@given(TOML_TEXTS, TOML_TEXTS, st.booleans(), st.sampled_from(CODEX))
def test_codex_overlays_any_two_files(user, project, trusted, profile):
    loaded = read_codex(project, {}, profile, user, trusted=trusted)
    check(profile, loaded, {})
    if not trusted:
        alone = read_codex(None, {}, profile, user)
        assert (loaded.servers, loaded.run_killed) == (alone.servers, alone.run_killed)


@given(st.dictionaries(NAMES, st.fixed_dictionaries({"command": st.just("c")}) | WORKING, max_size=4), st.data())
def test_a_bad_entry_hurts_no_other_one_on_claude_and_pi(good, data):
    bad = data.draw(ENTRIES)
    for profile in PROFILES:
        if profile.runtime == "codex":
            continue
        alone, beside = (
            runtimes.read(profile, json.dumps({"mcpServers": entries}), {})
            for entries in (good, {**good, "the bad one": bad})
        )
        assert alone.servers == tuple(server for server in beside.servers if server.name != "the bad one")


def json_fault(text):
    try:
        parse_json(text)
    except JsonTextError as error:
        return error
    return None


@given(JSON_TEXTS | BROKEN)
def test_json_gives_a_value_or_the_one_typed_error(text):
    error = json_fault(text)
    assert error is None or min(error.line, error.column) >= 1


@given(TEXTS | st.from_regex(r"\s?[-+]?[0-9]{1,8}(_[0-9]{1,3})?(\.[0-9]*)?(e[0-9]{1,4})?[a-z]*", fullmatch=True))
def test_any_timeout_text_gives_a_budget(text):
    milliseconds = timeout_ms(text, 30000)
    assert 1 <= milliseconds <= 2147483647
    assert isinstance(milliseconds, int)


@given(JSON_TEXTS | BROKEN)
def test_any_credential_store_is_answered(text):
    server = LoadedServer("x", "http", url="https://x.test")
    assert claude_entry(text, server) is None or isinstance(claude_entry(text, server), dict)
    assert codex_entry(text, server) is None or isinstance(codex_entry(text, server), tuple)
    assert read_project({".mcp.json": text}, {}, PROFILES[0]) == runtimes.read(PROFILES[0], text, {})


@given(
    st.dictionaries(
        TEXTS | st.text("ab-_", max_size=70), st.lists(TEXTS | st.text("ab._", max_size=90), max_size=4), max_size=4
    )
)
def test_codex_names_are_unique_and_within_the_limit(tools):
    for profile in CODEX:
        names = codex_offered(tools, profile)
        assert len(set(names.values())) == len(names)
        for name in names.values():
            assert len(name.namespace) + 2 + len(name.tool) <= profile.name_limit
            assert re.fullmatch(r"[A-Za-z0-9_]+", name.namespace + name.tool)


@given(TEXTS)
def test_claude_keeps_the_length_of_a_name_in_units_of_sixteen_bits(text):
    assert len(sanitise(text)) == len(text.encode("utf-16-le", "surrogatepass")) // 2


@pytest.mark.parametrize("profile", PROFILES, ids=known_profiles())
def test_reading_twice_gives_the_same(profile):
    text = '{"mcpServers": {"b": {"command": "c"}, "a": {"url": "x"}, "2": {}, "1": {}}}'
    assert runtimes.read(profile, text, {}) == runtimes.read(profile, text, {})
