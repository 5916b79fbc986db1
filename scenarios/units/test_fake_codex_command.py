"""`codex` by its command line: `codex mcp …`, what `codex exec` prints, and overrides."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from fake_runtimes.codex.credentials import lookup_key
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.plan import Plan, Turn
from fake_runtimes.profile import load_profile
from fake_servers.mcp import Behaviour, HttpServer
from harness.world import Request, Response
from scenarios.units.test_fake_codex_session import (
    BOTH,
    CLONE,
    ENVIRONMENT,
    EXEC,
    HOME,
    NEWER,
    OLDER,
    USER_CONFIG,
    Run,
    entry,
    run,
)

STORE = f"{HOME}/.codex/.credentials.json"
URL = "https://far.test/mcp"
FAR = entry("far", url=URL)
METADATA = b'{"authorization_endpoint":"https://as.test/a","token_endpoint":"https://as.test/t"}'
PROFILES = pytest.mark.parametrize("profile", BOTH, ids=["0.146.0", "0.169.0"])
# Where the worlds of these tests begin.
NOW_MS = 1_700_000_000_000


class Origin:
    """An origin that describes an authorization server, or does not."""

    def __init__(self, *, describes: bool) -> None:
        self.describes = describes
        self.paths: list[str] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        path = re.sub("https://[^/]*", "", request.url)
        self.paths.append(path)
        known = self.describes and path.startswith("/.well-known/oauth-authorization-server")
        return Response(200, body=METADATA) if known else Response(404)


def codex(*words: str, text: str | None = None, profile=OLDER, **options) -> Run:
    return run(text, options.pop("servers", {}), profile=profile, argv=("codex", *words), **options)


def printed(found: Run) -> str:
    return "\n".join(found.actor.stdout.lines)


def listed(*more: str, **options) -> dict[str, Any]:
    found = codex("mcp", "list", "--json", *more, **options)
    assert (found.exit_code, found.stderr) == (0, [])
    return {element["name"]: element for element in json.loads(printed(found))}


def stored(**fields) -> str:
    """A store with one entry under its canonical key."""
    given = {"server_name": "far", "server_url": URL, "client_id": "c", "access_token": "AT", **fields}
    return json.dumps({key(): {name: value for name, value in given.items() if value is not None}})


def key(url: str = URL) -> str:
    return lookup_key(LoadedServer("far", "http", url=url))


def status(store: str | None = None, *, text: str = FAR, profile=OLDER, describes: bool | None = True) -> str:
    """What the list says of the credential of `far`; `describes` None: nobody listens there."""
    reached = {} if describes is None else {"https://far.test": Origin(describes=describes)}
    files = {} if store is None else {STORE: store}
    return str(listed(text=text, profile=profile, files=files, http=reached)["far"]["auth_status"])


# --- the version, what is not taken


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_told_as_the_real_program_tells_it(flag):
    assert [printed(codex(flag, profile=profile)) for profile in BOTH] == ["codex-cli 0.146.0", "codex-cli 0.169.0"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 1, "Error: stdin is not a terminal"),
        (("go on",), 1, "Error: stdin is not a terminal"),
        (("exec", "--bogus", "x"), 2, "error: unexpected argument '--bogus' found"),
        (("--bogus",), 2, "error: unexpected argument '--bogus' found"),
        (("exec", "-"), 1, "No prompt provided via stdin."),
        (("exec",), 1, "No prompt provided via stdin."),
        (("mcp",), 2, "error: unrecognized subcommand ''"),
        (("mcp", "frob"), 2, "error: unrecognized subcommand 'frob'"),
        (("mcp", "list", "--yaml"), 2, "error: unexpected argument '--yaml' found"),
        (("mcp", "get"), 2, "error: the following required arguments were not provided:"),
    ],
)
def test_what_is_not_taken_ends_with_its_code_and_starts_nothing(words, code, said):
    found = codex(*words, text=entry("a"), servers={"a": Behaviour()})
    assert (found.exit_code, printed(found)) == (code, "")
    assert said in found.stderr
    assert found.events("spawn") == []


def test_a_prompt_from_stdin_begins_a_run():
    found = codex("exec", text=entry("a"), servers={"a": Behaviour()}, stdin=("go on",))
    assert (found.exit_code, printed(found), found.tools()) == (0, "Done.", ["mcp__a/echo"])


# --- what a run prints


def test_what_the_model_says_is_an_item_and_the_last_of_it_goes_to_the_file():
    plan = Plan((Turn(text="first"), Turn(text="last")))
    found = codex("exec", "--json", "-o", "out.txt", "x", plan=plan)
    said = [line["item"]["text"] for line in found.stdout if line["type"] == "item.completed"]
    assert said == ["first", "last"]
    assert [line["item"]["id"] for line in found.stdout if "item" in line] == ["item_0", "item_1"]
    assert found.text(f"{CLONE}/out.txt") == "last"
    assert printed(codex("exec", "x", plan=plan)) == "last"


@PROFILES
def test_overrides_stand_above_both_files(profile):
    text = entry("a", startup_timeout_sec=5) + entry("b")
    words = ("-c", "mcp_servers.a.startup_timeout_sec=9", "--config", 'mcp_servers.c.command="run-c"', "-c", "x.y=z w")
    rows = listed(*words, text=text, profile=profile)
    assert {name: row["startup_timeout_sec"] for name, row in rows.items()} == {"a": 9.0, "b": None, "c": None}
    assert rows["c"]["transport"]["command"] == "run-c"
    servers = {"a": Behaviour(), "b": Behaviour(), "c": Behaviour()}
    found = run(text, servers, profile=profile, argv=(*EXEC, "-c", "mcp_servers.b.enabled=false", *words[2:4]))
    assert {event["server"] for event in found.events("server.connected")} == {"a", "c"}
    wrong = run(text, servers, profile=profile, argv=(*EXEC, "-c", "mcp_servers.a"))
    assert (wrong.exit_code, wrong.events("server.connecting")) == (1, [])


# --- codex mcp list and get


@PROFILES
def test_the_list_has_the_measured_fields_and_starts_nothing(profile):
    text = entry("b", 'env = { K = "v" }', args=["x"], startup_timeout_ms=9500, tool_timeout_sec=3)
    text += entry("a", "enabled = false") + FAR + 'http_headers = { X = "1" }\n'
    origin = Origin(describes=False)
    found = codex("mcp", "list", "--json", text=text, profile=profile, http={"https://far.test": origin})
    off, on, far = json.loads(printed(found))
    assert (off["name"], off["enabled"], on["enabled"]) == ("a", False, True)
    assert list(on) == [
        "name",
        "enabled",
        "disabled_reason",
        "transport",
        "startup_timeout_sec",
        "tool_timeout_sec",
        "auth_status",
    ]
    assert on["transport"] == {
        "type": "stdio",
        "command": "run-b",
        "args": ["x"],
        "env": {"K": "v"},
        "env_vars": [],
        "cwd": None,
    }
    assert (on["startup_timeout_sec"], on["tool_timeout_sec"], on["auth_status"]) == (9.5, 3.0, "unsupported")
    assert (far["transport"]["type"], far["transport"]["url"]) == ("streamable_http", URL)
    assert far["auth_status"] == "unsupported"
    resource, server = "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"
    openid = "/.well-known/openid-configuration"
    asked = ["/mcp", f"{resource}/mcp", f"/mcp{resource}", resource]
    assert origin.paths == [*asked, f"{server}/mcp", f"{openid}/mcp", f"/mcp{openid}", server]
    assert found.events("spawn") == []


@pytest.mark.parametrize(
    ("store", "older", "newer"),
    [
        (None, "not_logged_in", "not_logged_in"),
        (stored(), "o_auth", "o_auth"),
        (stored(client_id=""), "not_logged_in", "not_logged_in"),
        (stored(expires_at=NOW_MS + 3_600_000), "o_auth", "o_auth"),
        (stored(expires_at=1), "not_logged_in", "not_logged_in"),
        (stored(expires_at=1, refresh_token="RT"), "o_auth", "not_logged_in"),
        (stored(expires_at=1, refresh_token="RT", issuer="https://wrong.test"), "o_auth", "o_auth"),
        (stored(server_url=f"{URL}/"), "not_logged_in", "not_logged_in"),
        (stored(client_id=None), "unsupported", "unknown"),
        ("{oops", "unsupported", "unknown"),
    ],
)
def test_a_credentials_status_is_told_from_the_store(store, older, newer):
    assert [status(store, profile=profile) for profile in BOTH] == [older, newer]


def test_a_credentials_status_is_told_from_the_configuration_before_the_store_and_the_server():
    bearer = FAR + 'bearer_token_env_var = "T"\n'
    headed = FAR + 'http_headers = { authorization = "x" }\n'
    assert [status(stored(), text=text) for text in (bearer, headed)] == ["bearer_token"] * 2
    keyring = f'mcp_oauth_credentials_store = "keyring"\n{FAR}'
    assert status(stored(), text=keyring) == "not_logged_in"
    assert status(describes=False) == "unsupported"
    assert [status(describes=None, profile=profile) for profile in BOTH] == ["unsupported", "unknown"]


@PROFILES
def test_one_bad_entry_ends_the_list_with_the_versions_words(profile):
    text = entry("good") + entry("bad", url="https://x.test", command="y")
    for words in (("list", "--json"), ("get", "good"), ("login", "good")):
        found = codex("mcp", *words, text=text, profile=profile)
        kind = "configuration" if profile == OLDER else "bootstrap configuration"
        assert (found.exit_code, printed(found)) == (1, "")
        assert found.stderr[0] == f"Error: failed to load {kind}"
        assert found.stderr[-2:] == ["    url is not supported for stdio", "    in `mcp_servers.bad`"]


def test_a_project_counts_for_the_list_only_where_it_is_trusted():
    project = {f"{CLONE}/.codex/config.toml": entry("p")}
    assert listed(text=entry("a"), files=project).keys() == {"a"}
    trusted = f'[projects."{CLONE}"]\ntrust_level = "trusted"\n'
    assert listed(text=entry("a") + trusted, files=project).keys() == {"a", "p"}


def test_the_list_for_people_is_a_table_of_each_kind():
    text = entry("one", 'env = { K = "secret" }', args=["x", "y"]) + FAR
    lines = printed(codex("mcp", "list", text=text, http={"https://far.test": Origin(describes=True)})).split("\n")
    assert [line.split()[0] for line in lines if line] == ["Name", "one", "Name", "far"]
    assert re.split(r" {2,}", lines[1]) == ["one", "run-one", "x y", "K=*****", "-", "enabled", "unsupported".title()]
    assert lines[-1].endswith("Not logged in")
    assert "secret" not in "\n".join(lines)
    assert printed(codex("mcp", "list")).startswith("No MCP servers configured yet.")


def test_one_server_is_shown_by_name():
    found = codex("mcp", "get", "a", "--json", text=entry("a", cwd="/w"))
    assert json.loads(printed(found))["transport"]["cwd"] == "/w"
    assert "  command: run-a" in printed(codex("mcp", "get", "a", text=entry("a"))).split("\n")
    none = codex("mcp", "get", "x", text=entry("a"))
    assert (none.exit_code, none.stderr) == (1, ["Error: No MCP server named 'x' found."])


# --- codex mcp add, remove, login, logout


@PROFILES
def test_what_is_added_is_found_by_the_next_list_and_can_be_removed(profile):
    text = 'model = "m"\n' + entry("old")
    added = codex("mcp", "add", "new", "--env", "K=v=w", "--", "run-it", "--flag", text=text, profile=profile)
    assert (added.exit_code, printed(added)) == (0, "Added global MCP server 'new'.")
    after = added.text(USER_CONFIG)
    rows = listed(text=after, profile=profile)
    assert rows.keys() == {"old", "new"}
    reached = rows["new"]["transport"]
    assert (reached["command"], reached["args"], reached["env"]) == ("run-it", ["--flag"], {"K": "v=w"})
    gone = codex("mcp", "remove", "new", text=after, profile=profile)
    assert printed(gone) == "Removed global MCP server 'new'."
    assert listed(text=gone.text(USER_CONFIG), profile=profile).keys() == {"old"}
    assert 'model = "m"' in gone.text(USER_CONFIG)


def test_a_server_is_added_where_there_is_no_file_and_a_remote_one_by_its_url():
    found = codex("mcp", "add", "far", "--url", URL, "--bearer-token-env-var", "T")
    assert listed(text=found.text(USER_CONFIG))["far"]["auth_status"] == "bearer_token"
    bare = codex("mcp", "add", "a", "run-it", "--its-own", "flag")
    assert listed(text=bare.text(USER_CONFIG))["a"]["transport"]["args"] == ["--its-own", "flag"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "a.b", "--", "x"), 1, "Error: invalid server name 'a.b' (use letters, numbers, '-', '_')"),
        (("add", "a"), 2, "error: the following required arguments were not provided:"),
        (("add", "a", "--url", URL, "--", "x"), 2, "error: the following required arguments were not provided:"),
        (("add", "a", "--env", "K", "--", "x"), 2, "error: invalid value 'K' for '--env <KEY=VALUE>':"),
        (("login", "a"), 1, "Error: OAuth login is only supported for streamable HTTP servers."),
        (("login", "x"), 1, "Error: No MCP server named 'x' found."),
        (("login", "far"), 1, "Error: No authorization support detected"),
        (("logout", "a"), 1, "Error: OAuth logout is only supported for streamable_http transports."),
        (("logout", "x"), 1, "Error: No MCP server named 'x' found in configuration."),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(words, code, said):
    text = entry("a") + FAR
    found = codex("mcp", *words, text=text, http={"https://far.test": Origin(describes=False)})
    assert (found.exit_code, printed(found)) == (code, "")
    assert found.stderr[0].startswith(said)
    assert found.text(USER_CONFIG) == text


def test_the_newer_version_takes_more_names():
    assert codex("mcp", "add", "a.b/c@d:e", "--", "x", profile=NEWER).exit_code == 0
    refused = codex("mcp", "add", "a b", "--", "x", profile=NEWER)
    assert refused.stderr == ["Error: invalid server name 'a b' (use letters, numbers, '-', '_', ':', '@', '/', '.')"]


def test_removing_what_is_not_there_is_no_failure():
    found = codex("mcp", "remove", "x", text=entry("a"))
    assert (found.exit_code, printed(found)) == (0, "No MCP server named 'x' found.")


def test_a_sign_in_that_would_need_somebody_is_refused():
    found = codex("mcp", "login", "far", text=FAR, http={"https://far.test": Origin(describes=True)})
    assert (found.exit_code, len(found.stderr)) == (1, 1)


@PROFILES
def test_a_logout_removes_what_stands_under_the_servers_own_key_and_no_more(profile):
    ours = json.loads(stored())
    wrong = {**ours[key()], "access_token": "OTHER"}
    both = {STORE: json.dumps({"far|0000000000000000": wrong, **ours})}
    found = codex("mcp", "logout", "far", text=FAR, profile=profile, files=both)
    assert printed(found) == "Removed OAuth credentials for 'far'."
    assert json.loads(found.text(STORE)) == {"far|0000000000000000": wrong}
    stat = found.simulation.tree.stat(STORE, 0)
    assert stat is not None
    assert stat.mode == 0o600
    alone = codex("mcp", "logout", "far", text=FAR, profile=profile, files={STORE: stored()})
    assert alone.simulation.tree.stat(STORE, 0) is None
    none = codex("mcp", "logout", "far", text=FAR, profile=profile)
    assert (none.exit_code, printed(none)) == (0, "No OAuth credentials stored for 'far'.")


def test_a_remote_server_that_is_listed_is_not_asked_for_its_tools():
    server = HttpServer(Behaviour())
    found = codex("mcp", "list", "--json", text=FAR, http={"https://far.test": server})
    assert found.exit_code == 0
    assert not [event for event in found.outcome.events if event.name == "server.connecting"]


@pytest.mark.parametrize("text", ["mcp_servers = 1\n", '[mcp_servers]\na = "x"\n', "mcp_servers = [\n"])
@pytest.mark.parametrize("words", [("add", "x", "--", "y"), ("remove", "x")])
def test_a_configuration_that_cannot_be_used_is_not_edited_either(words, text):
    found, shown = codex("mcp", *words, text=text), codex("mcp", "list", text=text)
    assert (found.exit_code, printed(found), found.stderr) == (1, "", shown.stderr)
    assert found.text(USER_CONFIG) == text


@pytest.mark.parametrize("url", ["http://[::1", "http://[x]/", "nowhere", ""])
def test_what_is_no_url_has_no_login_and_is_no_crash(url):
    text = entry("far", url=url)
    assert codex("mcp", "list", text=text).exit_code == 0
    assert codex("mcp", "get", "far", text=text).exit_code == 0
    found = codex("mcp", "login", "far", text=text)
    assert (found.exit_code, found.stderr) == (1, ["Error: No authorization support detected"])


def test_an_issuer_that_is_no_url_describes_nothing():
    resource = b'{"authorization_servers":["http://[::1"]}'

    class Naming:
        def handle(self, request: Request, now: float, who: str) -> Response:
            return Response(200, body=resource) if "protected-resource" in request.url else Response(404)

    found = codex("mcp", "login", "far", text=FAR, http={"https://far.test": Naming()})
    assert (found.exit_code, found.stderr) == (1, ["Error: No authorization support detected"])


def test_a_version_that_goes_by_name_and_url_removes_all_that_is_stored_for_them():
    newest = load_profile("codex-0.171.0")
    ours = json.loads(stored())
    others = {"far|0000000000000000": ours[key()], "a": {**ours[key()], "server_url": f"{URL}/"}}
    found = codex("mcp", "logout", "far", text=FAR, profile=newest, files={STORE: json.dumps({**ours, **others})})
    assert json.loads(found.text(STORE)).keys() == {"a"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("exec", "go"), 'Error finding codex home: CODEX_HOME points to "/nowhere", but that path does not exist'),
        (("app-server",), 'Error: CODEX_HOME points to "/nowhere", but that path does not exist'),
        (
            ("mcp", "list"),
            'Error: {failed}\n\nCaused by:\n    CODEX_HOME points to "/nowhere", but that path does not exist',
        ),
    ],
)
@PROFILES
def test_without_the_home_that_the_environment_names_nothing_is_done(profile, words, said):
    found = codex(*words, text=FAR, profile=profile, environment={**ENVIRONMENT, "CODEX_HOME": "/nowhere"})
    aliases, *error = "\n".join(found.stderr).split("\n", 1)
    assert aliases.startswith("WARNING: proceeding, even though we could not create PATH aliases: CODEX_HOME points")
    assert (found.exit_code, error) == (1, [said.format(failed=profile.lost_home_text)])


def test_a_home_that_is_no_directory_is_none_and_the_version_is_told_all_the_same():
    found = codex("mcp", "list", text=FAR, environment={**ENVIRONMENT, "CODEX_HOME": USER_CONFIG})
    assert (found.exit_code, found.stderr[-1].endswith("but that path is not a directory")) == (1, True)
    told = codex("--version", environment={**ENVIRONMENT, "CODEX_HOME": "/nowhere"})
    assert (told.exit_code, printed(told)) == (0, "codex-cli 0.146.0")
