"""The gate's rules on secrets: MH310 to MH313, MH320 to MH322 and MH324. All credentials here are made up."""

from __future__ import annotations

import json

import pytest

from harness.gate.model import Severity
from harness.reference.selection.zimmer import Instance
from scenarios.units.gate_fixture import entry_findings, findings, only, where

RANDOM = "q8Zk2Lw9Xv4Tn7Rb1Ys6"
GITHUB = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2"


def stdio(**env):
    return {"type": "stdio", "command": "npx", "env": env}


def remote(url="https://x.test/mcp", **headers):
    return {"type": "streamable-http", "url": url, "headers": headers}


TWO = {"docs": stdio(K="${ACME_TOKEN}"), "search": stdio(K="${ACME_TOKEN_}")}


def test_an_unknown_variable_is_told_with_the_name_that_was_meant():
    text = json.dumps(TWO, indent=1)
    found = only(findings(text, {"MH310", "MH311"}, names={"ACME_TOKEN"}))
    assert (found.rule, found.entry, found.severity) == ("MH310", "search", Severity.ERROR)
    assert where(found) == (13, 9)
    assert "stops the WHOLE session, on every runtime" in found.message
    assert "Did you mean ACME_TOKEN (used by docs)?" in found.message


def test_a_known_name_that_no_entry_uses_can_be_meant_as_well():
    found = only(entry_findings(stdio(K="${SLACK_BOT_TOKN}"), {"MH310"}, names={"SLACK_BOT_TOKEN", "OTHER"}))
    assert "Did you mean SLACK_BOT_TOKEN?" in found.message
    strange = only(entry_findings(stdio(K="${QUITE_ELSE}"), {"MH310"}, names={"SLACK_BOT_TOKEN"}))
    assert "Did you mean" not in strange.message


@pytest.mark.parametrize("value", ["${KNOWN}", "${UNKNOWN:-d}", "${X_OAUTH_ACCESS_TOKEN_BOT}", "plain"])
def test_known_and_optional_variables_and_those_that_zimmer_issues_are_no_finding(value):
    assert entry_findings(stdio(K=value), {"MH310"}, names={"KNOWN"}) == []


def test_nothing_is_unknown_where_nothing_was_said_of_secrets():
    assert entry_findings(stdio(K="${ANY}"), {"MH310"}) == []
    assert len(entry_findings(stdio(K="${ANY}"), {"MH310"}, names=())) == 1


def test_each_user_of_an_unknown_variable_is_told():
    text = json.dumps({"a": stdio(K="${GONE}"), "b": remote(K="${GONE}")})
    assert [found.entry for found in findings(text, {"MH310"}, names=())] == ["a", "b"]


def test_outside_production_the_key_of_zimmers_own_servers_is_not_needed():
    entry = remote(**{"X-API-Key": "${ZIMMER_PROD_API_KEY}"})
    local = Instance("development", "http://localhost:3000", "k")
    assert entry_findings(entry, {"MH310"}, name="zimmer", names=(), instance=local) == []
    assert len(entry_findings(entry, {"MH310"}, name="zimmer", names=())) == 1


def test_without_known_secrets_a_near_miss_of_another_entrys_name_is_a_warning():
    found = only(findings(json.dumps(TWO), {"MH310", "MH311"}))
    assert (found.rule, found.entry, found.severity) == ("MH311", "search", Severity.WARNING)
    assert "ACME_TOKEN_ is nearly ACME_TOKEN of docs" in found.message


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("ACME_TOKEN", "ACME_TOKNE", True),
        ("ACME_TOKEN", "ACME_TOKEM", True),
        ("ACME_TOKEN", "ACM_TOKEN", True),
        ("ACME_TOKEN", "ACME_TOKENS", True),
        ("ACME_TOKEN", "ACME_TOKEN__", True),
        ("ACME_TOKEN", "ACME_SECRET", False),
        ("ACME_TOKEN", "ACME_TOKEN_2", False),
        ("ACME_TOKEN_1", "ACME_TOKEN_2", False),
        ("ACME_TOKEN1", "ACME_TOKEN2", False),
        ("DB_A_URL", "DB_B_URL", False),
        ("PORT", "POST", False),
    ],
)
def test_one_slip_is_a_near_miss_and_numbered_names_are_not(one, other, near):
    text = json.dumps({"a": stdio(K=f"${{{one}}}"), "b": stdio(K=f"${{{other}}}")})
    assert len(findings(text, {"MH311"})) == int(near)


def test_the_name_that_fewer_entries_use_is_the_suspect():
    text = json.dumps({"a": stdio(K="${ACME_TOKEM}"), "b": stdio(K="${ACME_TOKEN}"), "c": stdio(K="${ACME_TOKEN}")})
    found = only(findings(text, {"MH311"}))
    assert found.entry == "a"
    assert "nearly ACME_TOKEN of b and c" in found.message


def test_two_names_of_one_entry_are_no_near_miss():
    assert entry_findings(stdio(A="${ACME_TOKEN}", B="${ACME_TOKENS}"), {"MH311"}) == []


@pytest.mark.parametrize(
    ("value", "severity", "said"),
    [
        ("", Severity.ERROR, "counts as missing"),
        (" \n", Severity.ERROR, "counts as missing"),
        ("hunter2${OTHER}", Severity.ERROR, "unresolved placeholder"),
        ("hunter2\nhunter3", Severity.WARNING, "line break"),
        ("hunter2\r\n", Severity.WARNING, "line break"),
    ],
)
def test_a_value_that_cannot_pass_is_told_and_never_shown(value, severity, said):
    found = only(entry_findings(remote(K="Bearer ${SECRET}"), {"MH312"}, values={"SECRET": value}))
    assert (found.severity, found.place.pointer) == (severity, "/a/headers/K")
    assert said in found.message
    assert "SECRET" in found.message
    assert "hunter" not in found.message


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        (stdio(K="${SECRET}"), "a\nb"),
        (stdio(K="${SECRET:-d}"), " "),
        (stdio(K="${SECRET}"), "$x {y} ${"),
        (stdio(K="${OTHER}"), ""),
    ],
)
def test_values_that_pass_where_they_are_used_are_no_finding(entry, value):
    assert entry_findings(entry, {"MH312"}, values={"SECRET": value}) == []


LITERALS = [
    ({"args": ["--api-key=hunter2"]}, "/a/args/0", "--api-key"),
    ({"args": ["--figma-api-key", "hunter2"]}, "/a/args/1", "--figma-api-key"),
    ({"args": ["-y", "p", "--x-token", "hunter2"]}, "/a/args/3", "--x-token"),
    ({"args": ["--db-password=hunter2"]}, "/a/args/0", "--db-password"),
    ({"args": ["--client-secret hunter2"]}, "/a/args/0", "--client-secret"),
    ({"args": ["--header", "Authorization: Bearer hunter2"]}, "/a/args/1", "Authorization"),
    ({"args": ["--header=X-API-Key: hunter2"]}, "/a/args/0", "--header"),
    ({"args": ["run", "-e", "ACME_TOKEN=hunter2", "image"]}, "/a/args/2", "ACME_TOKEN"),
    ({"args": ["--env=ACME_TOKEN=hunter2"]}, "/a/args/0", "--env"),
    ({"args": [GITHUB]}, "/a/args/0", "vendor"),
    ({"args": [RANDOM]}, "/a/args/0", "random"),
    ({"args": [f"--seed={RANDOM}"]}, "/a/args/0", "random"),
    ({"args": ["postgresql://app:hunter2@db.test/app"]}, "/a/args/0", "URL"),
    ({"args": ["https://x.test/sse?api_key=hunter2"]}, "/a/args/0", "URL"),
    ({"env": {"ACME_TOKEN": "hunter2"}}, "/a/env/ACME_TOKEN", "ACME_TOKEN"),
    ({"env": {"FIGMA_KEY": "hunter2"}}, "/a/env/FIGMA_KEY", "FIGMA_KEY"),
    ({"env": {"DB_PASS": "hunter2"}}, "/a/env/DB_PASS", "DB_PASS"),
    ({"env": {"PGPASSWORD": "hunter2"}}, "/a/env/PGPASSWORD", "PGPASSWORD"),
    ({"env": {"PW": "hunter2"}}, "/a/env/PW", "PW"),
    ({"env": {"MYSQL_PWD": "hunter2"}}, "/a/env/MYSQL_PWD", "MYSQL_PWD"),
    ({"args": ["run", "--env=DB_PASS=hunter2", "image"]}, "/a/args/1", "--env"),
    ({"args": ["run", "-e", "PASS=hunter2", "image"]}, "/a/args/2", "PASS"),
    ({"args": ["run", "-eACME_TOKEN=hunter2", "image"]}, "/a/args/1", "ACME_TOKEN"),
    ({"args": ["--db-pass", "hunter2"]}, "/a/args/1", "--db-pass"),
    ({"env": {"PASSWORD": "hunter2"}}, "/a/env/PASSWORD", "PASSWORD"),
    ({"env": {"MODE": "${MODE:-" + GITHUB + "}"}}, "/a/env/MODE", "MODE"),
    ({"env": {"DATABASE_URL": "mysql://root:hunter2@db/x"}}, "/a/env/DATABASE_URL", "DATABASE_URL"),
    ({"headers": {"Authorization": "Bearer hunter2"}}, "/a/headers/Authorization", "Authorization"),
    ({"headers": {"X-API-Key": "hunter2"}}, "/a/headers/X-API-Key", "X-API-Key"),
    ({"url": "https://user:hunter2@x.test/mcp"}, "/a/url", "url"),
    ({"url": "https://x.test/mcp?team=a&token=hunter2"}, "/a/url", "url"),
    ({"url": f"https://x.test/mcp?key={RANDOM}"}, "/a/url", "url"),
    ({"oauth": {"clientSecret": "hunter2"}}, "/a/oauth/clientSecret", "clientSecret"),
]


@pytest.mark.parametrize(("entry", "pointer", "named"), LITERALS)
def test_a_literal_credential_is_told_by_its_place_and_never_shown(entry, pointer, named):
    found = only(entry_findings(entry, {"MH320"}))
    assert (found.place.pointer, found.severity) == (pointer, Severity.ERROR)
    assert named in found.message
    assert "literal credential (***)" in found.message
    for secret in ("hunter2", RANDOM, GITHUB):
        assert secret not in found.message


HARMLESS = [
    {"args": ["--api-key=${API_KEY}", "--token", "${T:-none}"]},
    {"args": ["-y", "@scope/some-long-package-name-mcp-server2@1.2.3", "playwright-stealth-mcp-server@latest"]},
    {"args": ["--key", "/etc/ssl/private.pem", "--token-file", "x", "--max-tokens", "4096"]},
    {"args": ["550e8400-e29b-41d4-a716-446655440000", "https://x.test/a/very/long/path/12345678901234567890"]},
    {"args": ["--token", "--verbose", "--password=$PASSWORD", "--api-key-env", "ACME_API_KEY", "--secret", "ACME_KEY"]},
    {"args": ["--ref", "0123456789abcdef0123456789abcdef01234567", "--sort-key=name", "--key", "title"]},
    {"env": {"PWD": "work", "OLDPWD": "work", "COMPASS": "north", "BYPASS": "x", "PASSENGER": "jane"}},
    {"args": ["--use-token=true", "some-kebab-case-name-with-2024-01-31"]},
    {"env": {"STEALTH_MODE": "false", "TOKEN_URL": "https://x.test", "MAX_TOKENS": "99", "SORT_KEY": "title"}},
    {"env": {"ACME_TOKEN": "${ACME_TOKEN}", "A_TOKEN": "", "B_TOKEN": "{env:B}", "C_TOKEN": "!op read"}},
    {"env": {"GOOGLE_APPLICATION_CREDENTIALS": "/secrets/key.json", "PUBLIC_KEY": "abc"}},
    {"headers": {"Authorization": "Bearer ${T}", "X-Team": "acme", "X-API-Key": " "}},
    {"url": "https://user@x.test/mcp?tool_groups=sessions,health_readonly&token=${T}&key=title"},
    {"env": {"A_TOKEN": "${A_TOKEN", "B_TOKEN": "$(B_TOKEN)"}, "headers": {"Authorization": "Bearer ${T"}},
    {"url": "https://[broken"},
]


@pytest.mark.parametrize("entry", HARMLESS)
def test_placeholders_paths_specs_and_switches_are_no_credentials(entry):
    assert entry_findings(entry, {"MH320"}) == []


def test_a_secret_in_args_is_visible_in_the_process_list():
    found = only(entry_findings({"args": ["--token", "${ACME_TOKEN}"]}, {"MH321"}))
    assert (found.severity, found.place.pointer) == (Severity.NOTE, "/a/args/1")
    assert "ACME_TOKEN in args[1] stands in the process list" in found.message
    assert len(entry_findings({"args": ["--x=${ACME_REGION}"]}, {"MH321"})) == 1
    assert entry_findings({"args": ["${ACME_REGION:-eu}", "${HOME}"], "env": {"K": "${ACME_TOKEN}"}}, {"MH321"}) == []


def test_a_credential_header_over_plain_http_is_a_warning():
    found = only(entry_findings(remote("http://x.test/mcp", Authorization="Bearer ${T}"), {"MH322"}))
    assert (found.severity, found.place.pointer) == (Severity.WARNING, "/a/url")
    assert "Authorization crosses the network" in found.message


@pytest.mark.parametrize(
    "entry",
    [
        remote("https://x.test/mcp", Authorization="x"),
        remote("http://x.test/mcp", **{"X-Team": "x"}),
        remote("http://localhost:3000/mcp", Authorization="x"),
        remote("http://127.0.0.1/mcp", Authorization="x"),
        remote("http://[::1]:8080/mcp", Authorization="x"),
        remote("http://${HOST}/mcp", Authorization="x"),
        remote("http://[broken", Authorization="x"),
    ],
)
def test_encrypted_local_and_unknown_hosts_and_routine_headers_are_no_finding(entry):
    assert entry_findings(entry, {"MH322"}) == []


@pytest.mark.parametrize(("name", "entry"), [("HOME", stdio(K="${HOME}")), ("PWD", {"args": ["--root", "${PWD}"]})])
def test_a_variable_of_the_machine_is_looked_up_as_a_secret(name, entry):
    found = only(entry_findings(entry, {"MH310", "MH313"}))
    assert (found.rule, found.severity) == ("MH313", Severity.WARNING)
    assert f"${{{name}}} is looked up as a secret" in found.message
    known = only(entry_findings(entry, {"MH310", "MH313"}, names={"OTHER"}))
    assert (known.rule, known.fix) == ("MH310", f"Write the value out, or give a default (${{{name}:-...}}).")
    assert entry_findings(entry, {"MH310", "MH313"}, names={name}) == []


def test_a_default_and_other_names_are_no_variables_of_the_machine():
    assert entry_findings(stdio(K="${HOME:-/x}", L="${HOME_TOKEN}", M="$HOME"), {"MH313"}) == []


UNFILLED = [
    ({"env": {"ACME_TOKEN": "changeme"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "CHANGE_ME"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "your-secret-here"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "YOUR_API_KEY"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "<YOUR_API_KEY>"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "xxx"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "sk-..."}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "TODO"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "..."}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "****"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_TOKEN": "replace-me-please"}}, "/a/env/ACME_TOKEN"),
    ({"env": {"ACME_URL": "<your workspace url>"}}, "/a/env/ACME_URL"),
    ({"headers": {"Authorization": "Bearer <token>"}}, "/a/headers/Authorization"),
    ({"headers": {"X-API-Key": "your_api_key_here"}}, "/a/headers/X-API-Key"),
    ({"args": ["--api-key", "YOUR_KEY"]}, "/a/args/1"),
    ({"args": ["--api-key=<key>"]}, "/a/args/0"),
    ({"args": ["run", "-e", "ACME_TOKEN=changeme"]}, "/a/args/2"),
    ({"url": "https://x.test/mcp?token=YOUR_TOKEN"}, "/a/url"),
    ({"oauth": {"clientSecret": "<secret>"}}, "/a/oauth/clientSecret"),
]


@pytest.mark.parametrize(("entry", "pointer"), UNFILLED)
def test_a_placeholder_that_nobody_filled_in_is_no_leaked_credential(entry, pointer):
    found = only(entry_findings(entry, {"MH320", "MH324"}))
    assert (found.rule, found.place.pointer, found.severity) == ("MH324", pointer, Severity.WARNING)
    assert "at its provider" not in found.fix


@pytest.mark.parametrize(
    "entry",
    [
        {"env": {"ACME_TOKEN": "${ACME_TOKEN}", "MODE": "xxx", "NOTE": "TODO", "GREETING": "<b>"}},
        {"args": ["<html>", "xxx", "--name", "your-name"]},
        {"headers": {"X-Team": "changeme", "Authorization": "Bearer ${T}"}},
        {"url": "https://x.test/mcp?team=xxx"},
    ],
)
def test_values_of_other_names_may_be_anything(entry):
    assert entry_findings(entry, {"MH320", "MH324"}) == []


def test_the_fix_of_a_secret_in_a_url_leads_to_a_header():
    found = only(entry_findings({"url": "https://x.test/mcp?token=hunter2"}, {"MH320"}))
    assert found.fix.startswith("Send it as ${NAME} in a header")


def test_a_blank_value_and_one_with_braces_have_fixes_of_their_own():
    blank = only(entry_findings(stdio(K="${SECRET}"), {"MH312"}, values={"SECRET": " "}))
    braced = only(entry_findings(stdio(K="${SECRET}"), {"MH312"}, values={"SECRET": "${X}"}))
    assert blank.fix.startswith("Give the secret a value")
    assert "in another way" in braced.fix
