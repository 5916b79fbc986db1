"""How the fake Codex reads its configuration."""

from __future__ import annotations

from typing import Any

import pytest

from fake_runtimes.codex.child import child_environment
from fake_runtimes.codex.config import read_config
from fake_runtimes.codex.trust import judge
from fake_runtimes.profile import load_profile

OLDER: Any = load_profile("codex-0.146.0")
NEWER: Any = load_profile("codex-0.169.0")
BOTH = (OLDER, NEWER)
GOOD = '[mcp_servers.good]\ncommand = "good"\n'


FLOAT = 'invalid type: string "20", expected f64\nin `mcp_servers.bad.startup_timeout_sec`'
MODES = "unknown variant `zz`, expected one of `auto`, `prompt`, `writes`, `approve`"


def loaded(text, environment=None, profile=OLDER, **layers):
    return read_config(text, environment or {}, profile, **layers)


def names(found):
    return [server.name for server in found.servers]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('command = "c"\nurl = "https://x.test"', "url is not supported for stdio"),
        ("startup_timeout_sec = 60", "invalid transport"),
        ('url = "https://x.test"\nargs = []', "args is not supported for streamable_http"),
        ('url = "https://x.test"\nenv = {}', "env is not supported for streamable_http"),
        ('url = "https://x.test"\nenv_vars = []', "env_vars is not supported for streamable_http"),
        ('url = "https://x.test"\ncwd = "/"', "cwd is not supported for streamable_http"),
        ('url = "https://x.test"\nbearer_token = "t"', "bearer_token is not supported for streamable_http"),
        ('command = "c"\nhttp_headers = {}', "http_headers is not supported for stdio"),
        ('command = "c"\noauth = {}', "oauth is not supported for stdio"),
        (
            'command = "c"\nstartup_timeout_sec = "20"',
            'invalid type: string "20", expected f64\nin `mcp_servers.bad.startup_timeout_sec`',
        ),
        (
            'command = "c"\nstartup_timeout_sec = -1',
            "cannot convert float seconds to Duration: value is negative",
        ),
        ('command = "c"\nenv = {N = 1}', "invalid type: integer `1`, expected a string\nin `mcp_servers.bad.env.N`"),
        (
            'command = "c"\nenv_vars = [{name = "A", source = "zz"}]',
            "unsupported env_vars source `zz`; expected `local` or `remote`",
        ),
        (
            'command = "c"\ndefault_tools_approval_mode = "zz"',
            f"{MODES}\nin `mcp_servers.bad.default_tools_approval_mode`",
        ),
        (
            'command = "c"\ntools = {t = {approval_mode = "zz"}}',
            f"{MODES}\nin `mcp_servers.bad.tools.t.approval_mode`",
        ),
    ],
)
def test_one_bad_entry_ends_the_run_with_its_text(body, said):
    for profile in BOTH:
        found = loaded(f"{GOOD}[mcp_servers.bad]\n{body}\n", profile=profile)
        assert found.servers == ()
        assert found.run_killed
        ended = said if "\nin `" in said else f"{said}\nin `mcp_servers.bad`"
        assert found.problems[0].text == f"Error loading config.toml: {ended}"


def test_unknown_keys_and_the_other_spelling_are_ignored():
    found = loaded(
        'x = 1\n[mcpServers.lost]\ncommand = "c"\n[mcp_servers.a]\nurl = "https://x.test"\ntype = "http"\n'
        'transport = "sse"\nheaders = {H = 1}\ntitle = "T"\nstartup_timeout_sec = 1.5\nname = "other"\n'
    )
    assert (names(found), found.problems) == (["a"], ())
    assert (found.servers[0].transport, found.servers[0].headers) == ("http", {})


def test_invalid_toml_and_an_unknown_store_end_the_run():
    assert loaded("[mcp_servers.a").run_killed
    store = loaded('mcp_oauth_credentials_store = "zzz"')
    assert "unknown variant `zzz`, expected one of `auto`, `file`, `keyring`" in store.problems[0].text
    assert store.run_killed
    assert not loaded('mcp_oauth_credentials_store = "keyring"').run_killed


@pytest.mark.parametrize(
    ("name", "older", "newer"),
    [
        ("a-b_1", True, True),
        ("a.b", False, True),
        ("@org/x:1", False, True),
        ("bad name!", False, False),
        ("ï", False, False),
        ("", False, False),
    ],
)
def test_a_refused_name_fails_its_server_alone(name, older, newer):
    for profile, accepted in ((OLDER, older), (NEWER, newer)):
        found = loaded(f'{GOOD}[mcp_servers."{name}"]\ncommand = "c"\n', profile=profile)
        assert names(found) == ["good", name]
        assert found.servers[1].starts is accepted
    pattern = "^[a-zA-Z0-9_:@/.-]+$"
    if not newer:
        assert found.problems == (
            (name, "server_fails", f"Invalid MCP server name '{name}': must match pattern {pattern}"),
        )


def test_variables_for_a_remote_server_are_looked_up_in_the_environment():
    text = (
        '[mcp_servers.x]\nurl = "https://x.test"\nhttp_headers = {A = "${K}"}\nenv_http_headers = {B = "B", C = "C"}\n'
    )
    found = loaded(text, {"B": "b"})
    assert found.servers[0].headers == {"A": "${K}", "B": "b"}
    assert (found.servers[0].starts, found.servers[0].unset) == (True, ("C",))


def test_an_unset_bearer_variable_fails_the_server_and_the_run_goes_on():
    text = f'{GOOD}[mcp_servers.x]\nurl = "https://x.test"\nbearer_token_env_var = "NOPE"\n'
    found = loaded(text)
    said = "Environment variable NOPE for MCP server 'x' is not set"
    assert (found.servers[1].starts, found.servers[1].fault) == (False, said)
    assert (found.run_killed, found.servers[0].starts) == (False, True)
    assert loaded(text, {"NOPE": "t"}).servers[1].headers == {"Authorization": "Bearer t"}


def test_a_disabled_server_is_skipped_even_if_required():
    found = loaded('[mcp_servers.x]\ncommand = "c"\nenabled = false\nrequired = true\n')
    assert (found.servers, [problem.code for problem in found.problems]) == ((), ["skipped"])


def test_the_project_lies_over_the_user_key_by_key():
    user = '[mcp_servers.x]\ncommand = "c"\nstartup_timeout_sec = 22\n[mcp_servers.x.env]\nA = "1"\n'
    found = loaded("[mcp_servers.x]\nstartup_timeout_sec = 11\n", user_text=user)
    assert (found.servers[0].command, found.servers[0].env) == ("c", {"A": "1"})
    assert found.servers[0].raw["startup_timeout_sec"] == 11
    assert loaded("[mcp_servers.x]\nenabled = false\n", user_text=user).servers == ()
    mixed = loaded('[mcp_servers.x]\nurl = "https://x.test"\n', user_text=user)
    assert "url is not supported for stdio" in mixed.problems[0].text


@pytest.mark.requirement("prepare-codex-trust")
def test_a_project_file_counts_only_in_a_trusted_project():
    user = '[mcp_servers.own]\ncommand = "c"\n'
    for profile in BOTH:
        assert names(loaded(GOOD, profile=profile, user_text=user, trusted=False)) == ["own"]
        assert names(loaded(GOOD, profile=profile, user_text=user, trusted=True)) == ["own", "good"]
        assert not loaded("[broken", profile=profile, trusted=False).run_killed
    assert loaded(GOOD, profile=OLDER, trusted=False).problems == ()
    assert [problem.code for problem in loaded(GOOD, profile=NEWER, trusted=False).problems] == ["warning"]


@pytest.mark.requirement("prepare-codex-trust")
def test_trust_comes_from_a_record_a_flag_or_the_older_version_s_own_mind():
    writable: dict[str, Any] = {"sandbox": "danger-full-access"}
    assert judge(OLDER, **writable) == (True, True, "")
    assert judge(OLDER, sandbox="workspace-write").used
    assert not judge(OLDER, sandbox="read-only").used
    assert not judge(OLDER).used
    assert not judge(OLDER, command="mcp list", **writable).used
    assert not judge(OLDER, record="untrusted", **writable).used
    assert not judge(NEWER, **writable).used
    assert "codex exec --trust" in judge(NEWER, **writable).warning
    assert judge(NEWER, flag=True) == (True, True, "")
    for profile in BOTH:
        assert judge(profile, record="trusted") == (True, False, "")


@pytest.mark.requirement("prepare-codex-child-env-whitelist")
def test_a_stdio_child_inherits_a_fixed_list_and_what_its_entry_asks_for():
    listed = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
    bundles = (
        "CODEX_CA_CERTIFICATE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "NODE_EXTRA_CA_CERTS",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE",
    )
    kept_out = ("NPM_CONFIG_CACHE", "HTTPS_PROXY", "https_proxy", "OPENAI_API_KEY", "MCP_TIMEOUT", "SSL_CERT_DIR")
    parent = {name: f"parent {name}" for name in (*listed, *bundles, *kept_out, "ASKED")}
    text = (
        '[mcp_servers.x]\ncommand = "c"\nenv_vars = ["ASKED", "UNSET", {name = "HTTPS_PROXY"}]\n'
        'env = {PATH = "/own", N = "1"}\n'
    )
    for profile, inherited in ((OLDER, listed), (NEWER, (*listed, *bundles))):
        server = loaded(text, parent, profile).servers[0]
        expected = {name: parent[name] for name in (*inherited, "ASKED", "HTTPS_PROXY")}
        assert child_environment(server, parent, profile) == {**expected, "PATH": "/own", "N": "1"}
        assert server.unset == ("UNSET",)


@pytest.mark.requirement("prepare-codex-child-env-whitelist")
def test_the_npm_cache_reaches_a_child_only_through_its_entry():
    for profile in BOTH:
        bare = loaded(GOOD, profile=profile).servers[0]
        assert child_environment(bare, {"NPM_CONFIG_CACHE": "/user"}, profile) == {}
        pinned = loaded(GOOD + 'env = {NPM_CONFIG_CACHE = "/clone"}\n', profile=profile).servers[0]
        assert child_environment(pinned, {"NPM_CONFIG_CACHE": "/user"}, profile) == {"NPM_CONFIG_CACHE": "/clone"}


def test_the_header_helper_is_known_to_the_newer_version_alone():
    text = '[mcp_servers.x]\ncommand = "c"\nhttp_headers_helper = "h"\n'
    assert not loaded(text, profile=OLDER).run_killed
    assert "http_headers_helper is not supported for stdio" in loaded(text, profile=NEWER).problems[0].text
