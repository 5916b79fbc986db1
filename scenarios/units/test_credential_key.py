"""The credential key: pinned literals, and what must not enter or change them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials.javascript import number, stringify
from harness.reference.credentials.key import credential_key, pi_account, preimage, runtime_key, split_key
from harness.reference.credentials.known_wrong import known_wrong_keys
from harness.reference.credentials.lookup import explain_lookup
from harness.reference.credentials.state import StoredCredential, credential_state, state_of
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import ABSENT
from harness.reference.surfaces.connectors import unclaimed

NOTION = "https://mcp.notion.com/v1/mcp"
EXAMPLE = "https://mcp.example.com/v1/mcp"


def http(url: str, headers: dict[str, object] | None = None, transport: str = "http") -> dict[str, object]:
    return {"type": transport, "url": url, "headers": headers or {}}


@pytest.mark.requirement(
    "credential-key-shape",
    "credential-key-preimage",
    "credential-key-canary-two-configs",
    "credential-key-canary-fails-on-change",
)
def test_the_keys_of_two_configs_are_pinned():
    assert credential_key("notion", http(NOTION)) == "notion|3fad03f7abd02b9c"
    assert credential_key("example", http(EXAMPLE, {"X-Team": "acme"})) == "example|b58a89d437216c17"
    assert credential_key("notion", http(NOTION, transport="streamable-http")) == "notion|3fad03f7abd02b9c"
    assert preimage(http(NOTION)) == '{"type":"http","url":"https://mcp.notion.com/v1/mcp","headers":{}}'


@pytest.mark.requirement("credential-key-only-three-members")
def test_no_other_member_of_the_entry_is_hashed():
    slack = {
        "title": "Slack",
        "type": "http",
        "url": "https://mcp.slack.com/mcp",
        "oauth": {"clientId": "x"},
        "startup_timeout_sec": 20,
    }
    assert credential_key("slack", slack) == "slack|38801a7d845718b3"
    assert credential_key("slack", {"url": slack["url"], "type": "http"}) == "slack|38801a7d845718b3"


@pytest.mark.requirement("credential-key-streamable-http")
def test_streamable_http_is_hashed_as_http():
    assert credential_key("notion", http(NOTION, transport="streamable-http")) == "notion|3fad03f7abd02b9c"


@pytest.mark.requirement("credential-key-other-types-verbatim")
def test_every_other_type_is_hashed_as_written():
    assert credential_key("notion", http(NOTION, transport="sse")) == "notion|f733ea81ac8097d5"
    assert credential_key("Notion", http(NOTION, transport="HTTP")) == "Notion|6c425634365fc52b"


@pytest.mark.requirement("credential-key-name-not-hashed", "credential-key-name-verbatim")
@pytest.mark.parametrize("name", ["notion2", "pi|pe", "a.b c", "café", "@org/x", ""])
def test_the_name_is_a_verbatim_prefix_and_the_key_splits_at_the_last_bar(name):
    key = credential_key(name, http(NOTION))
    assert key == f"{name}|3fad03f7abd02b9c"
    assert split_key(key) == (name, "3fad03f7abd02b9c")


@pytest.mark.requirement("credential-key-url-verbatim")
def test_a_trailing_slash_changes_the_key():
    assert credential_key("notion", http(f"{NOTION}/")) == "notion|0f6b36320e865e82"
    assert (
        len({credential_key("n", http(url)) for url in ("https://H/", "https://h/", "https://h:443/", "https://h")})
        == 4
    )


@pytest.mark.requirement("credential-key-headers-hashed")
@pytest.mark.parametrize(
    ("headers", "key"),
    [
        ({}, "example|510e6869752dca52"),
        ({"X-Team": "acme"}, "example|b58a89d437216c17"),
        ({"B": "2", "A": "1"}, "example|a7494b56a88d4075"),
        ({"A": "1", "B": "2"}, "example|e9f52820c51cef2f"),
    ],
)
def test_headers_are_hashed_in_the_order_of_the_entry(headers, key):
    assert credential_key("example", http(EXAMPLE, headers)) == key


@pytest.mark.requirement("credential-key-missing-headers")
def test_missing_and_null_headers_hash_as_an_empty_object():
    keys = {
        credential_key("notion", config)
        for config in ({"type": "http", "url": NOTION}, {**http(NOTION), "headers": None}, http(NOTION))
    }
    assert keys == {"notion|3fad03f7abd02b9c"}


@pytest.mark.requirement("credential-key-missing-members")
def test_missing_members_hash_as_null_and_what_is_no_object_gives_the_bare_name():
    assert credential_key("x", {"type": "stdio"}) == "x|399a9d29f2bd6387"
    assert credential_key("x", {}) == "x|bc9c56531497a4fe"
    assert [credential_key("x", config) for config in (None, ["a"], "a", 5)] == ["x"] * 4
    assert [runtime_key(runtime, "x", None, {}) for runtime in ("claude", "codex", "pi")] == ["x"] * 3
    assert split_key("x") == ("x", "")


@pytest.mark.requirement("credential-key-non-ascii-raw")
def test_non_ascii_stays_raw_and_quotes_and_control_characters_are_escaped_the_json_way():
    assert credential_key("café", http("https://mcp.example.com/café")) == "café|1d816ae29bb0eea0"
    assert stringify({"h": 'a/b"\\\b\f\n\r\t\x01\x1f\x7f\u2028é'}) == (
        '{"h":"a/b\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\u2028é"}'
    )
    assert stringify("\ud800x \ud83d\ude00") == '"\\ud800x \U0001f600"'


@pytest.mark.requirement("credential-key-munge")
@pytest.mark.parametrize(
    ("headers", "right", "munged"),
    [
        ({"Accept": "application/json, text/event-stream"}, "58decbd541454e28", "c40efadd07652db1"),
        ({"X-Note": "a: b, c"}, "075191ae07a44bb4", "2157124a7aa386a5"),
    ],
)
def test_no_text_inside_a_value_is_altered(headers, right, munged):
    config = http(EXAMPLE, headers)
    assert credential_key("example", config) == f"example|{right}"
    assert known_wrong_keys("example", config) == {"munged": f"example|{munged}"}


@pytest.mark.requirement("credential-key-html-escaping")
def test_ampersands_and_angle_brackets_are_not_escaped():
    config = http(f"{EXAMPLE}?a=1&b=2")
    assert credential_key("example", config) == "example|0716d51a371eb00a"
    assert known_wrong_keys("example", config) == {"html_escaped": "example|e13436596f2eeada"}


@pytest.mark.requirement("credential-key-integer-header-names")
def test_integer_like_header_names_come_first_in_ascending_order():
    assert credential_key("nums", http(EXAMPLE, {"10": "a", "2": "b", "X": "c"})) == "nums|82fe964041708c4b"
    odd = {"b": 1, "01": 2, "4294967295": 3, "4294967294": 4, "0": 5, "-1": 6}
    assert stringify(odd) == '{"0":5,"4294967294":4,"b":1,"01":2,"4294967295":3,"-1":6}'


@pytest.mark.requirement("credential-key-preimage")
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (60.0, "60"),
        (-0.0, "0"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (2**53 + 1, "9007199254740992"),
        (-12.5, "-12.5"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (float("inf"), "null"),
        (10**400, "null"),
    ],
)
def test_numbers_are_printed_as_javascript_prints_them(value, text):
    assert number(value) == text


@pytest.mark.requirement("credential-key-placeholder-expansion")
def test_the_runtime_key_is_over_the_values_that_the_runtime_sees():
    config = http("https://zimmer.example.com/mcp", {"X-API-Key": "${ZIMMER_PROD_API_KEY}"})
    assert credential_key("zim", config) == "zim|21946b0126ab140f"
    assert runtime_key("claude", "zim", config, {"ZIMMER_PROD_API_KEY": "k-123"}) == "zim|a3803c19e6aaf006"
    assert runtime_key("claude", "zim", config, {}) == "zim|21946b0126ab140f"
    assert "unexpanded_placeholders" in known_wrong_keys("zim", config)
    expanded = http("https://h/B${C}", {"${A}": "d", "X": ""})
    written = http("https://h/${A}", {"${A}": "${U:-d}", "X": "${EMPTY:-e}"})
    values = {"A": "B${C}", "C": "no", "EMPTY": ""}
    assert runtime_key("claude", "n", written, values) == credential_key("n", expanded)


@pytest.mark.requirement("credential-key-placeholder-expansion")
def test_codex_sees_the_url_that_the_orchestrator_wrote_where_a_blank_value_counts_for_none():
    written = http("https://h/${A:-d}/${B}")
    assert runtime_key("codex", "n", written, {"A": " ", "B": "b"}) == credential_key("n", http("https://h/d/b"))
    assert runtime_key("claude", "n", written, {"A": " ", "B": "b"}) == credential_key("n", http("https://h/ /b"))


@pytest.mark.requirement("writers-codex-key-forced", "writers-pi-key-is-server-name")
def test_codex_hashes_type_http_without_headers_and_pi_takes_the_name():
    sse = http("https://mcp.notion.com/sse", {"X-Token": "secret"}, transport="sse")
    assert runtime_key("codex", "notion", sse, {}) == "notion|bab21fabb59b2ee5"
    assert runtime_key("codex", "example", http(EXAMPLE, {"X-Team": "acme"}), {}) == "example|510e6869752dca52"
    assert runtime_key("pi", "notion", sse, {}) == "notion"


@pytest.mark.requirement("writers-pi-server-hash")
@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("notion", "31f61ed3e6e210c5f3f729345968bdbcf267cf0fbfec31eac02ed9966ba1d067"),
        ("linear", "7f2fe580edb35154041fa3d4b41dd6d3adaef0c85d2ff6309f1d4b520eeecda3"),
        ("my srv", "4b9c4c90c6fe57c78030d6e283c0ea2617e612b956e598a8d50ac3131e72787b"),
        ("café", "850f7dc43910ff890f8879c0ed26fe697c93a067ad93a7d50f466a7028a9bf4e"),
    ],
)
def test_the_account_of_a_pi_server_is_the_digest_of_its_exact_name(name, digest):
    assert pi_account(name) == f"sha256-{digest}"


@pytest.mark.requirement("credential-key-determinism")
def test_the_key_is_the_same_in_fresh_processes_under_other_hash_seeds():
    program = (
        "from harness.reference.credentials.key import credential_key as key;"
        "print(key('n', {'type': 'http', 'url': 'u', 'headers': {c: c for c in 'qwertyuiop'}}))"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": str(seed), "PATH": ""},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in range(5)
    }
    assert answers == {credential_key("n", http("u", {c: c for c in "qwertyuiop"})) + "\n"}


@pytest.mark.requirement("credential-key-unique-per-row")
def test_two_configs_of_one_name_are_two_rows_and_each_entry_finds_its_own():
    plain, with_team = http(NOTION), http(NOTION, {"X-Team": "acme"})
    rows = {
        credential_key("notion", plain): StoredCredential(60),
        credential_key("notion", with_team): StoredCredential(-60),
    }
    states = [
        judge_all(read_catalog({"notion": config}), lambda _: ABSENT, rows.get)[0].state
        for config in (plain, with_team)
    ]
    assert (len(rows), states) == (2, ["ready", "needs_reauth"])


@pytest.mark.requirement("credential-key-catalog-edit-invalidates")
@pytest.mark.parametrize(
    "edit", [{"headers": {"X-Team": "acme"}}, {"url": f"{NOTION}/v2"}, {"type": "sse"}], ids=["headers", "url", "type"]
)
def test_an_edit_of_the_entry_leaves_its_credential_unclaimed(edit):
    rows = {credential_key("notion", http(NOTION)): StoredCredential(7200)}
    before, after = read_catalog({"notion": http(NOTION)}), read_catalog({"notion": {**http(NOTION), **edit}})
    assert judge_all(before, lambda _: ABSENT, rows.get)[0].state == "ready"
    assert judge_all(after, lambda _: ABSENT, rows.get)[0].state == "needs_authorization"
    assert (unclaimed(before, rows), unclaimed(after, rows)) == ((), tuple(rows))


def test_a_wrong_key_is_told_apart_from_a_missing_credential():
    looked_up, other = "pi|pe|58decbd541454e28", "pi|pe|c40efadd07652db1"
    assert explain_lookup(looked_up, [looked_up, other]).verdict == "found"
    assert explain_lookup(looked_up, ["pi|1", other]) == ("key_mismatch", looked_up, (other,))
    assert explain_lookup(looked_up, ["pi|1"]) == ("no_credential", looked_up, ())


@pytest.mark.parametrize(
    ("seconds", "active", "due"),
    [(None, True, False), (900, True, False), (899, True, True), (1, True, True), (0, False, True), (-60, False, True)],
)
def test_a_credential_is_due_inside_fifteen_minutes_and_active_until_it_expires(seconds, active, due):
    state = credential_state(seconds, "r", "https://as.example.com/token", refresh_token_unsupported=False)
    assert (state.active, state.needs_refresh, state.can_refresh, state.requires_reauth) == (active, due, True, False)


@pytest.mark.requirement("https-can-refresh-false-for-cleartext")
@pytest.mark.parametrize(
    ("token", "endpoint", "renewable"),
    [
        ("r", "https://as/t", True),
        ("r", "http://as/t", False),
        ("r", "http://localhost/t", False),
        ("r", "", False),
        (None, "https://as/t", False),
        (" ", "https://as/t", False),
    ],
)
def test_a_refresh_needs_a_refresh_token_and_an_https_endpoint(token, endpoint, renewable):
    state = state_of(StoredCredential(-60, token, endpoint))
    assert (state.can_refresh, state.requires_reauth) == (renewable, not renewable)


def test_a_server_that_issues_no_refresh_token_needs_a_human_periodically():
    assert state_of(StoredCredential(60, None, None, refresh_token_unsupported=True)).requires_periodic_reauth
    assert not state_of(StoredCredential(60, "r", None, refresh_token_unsupported=True)).requires_periodic_reauth
    assert not state_of(StoredCredential(60, None, None)).requires_periodic_reauth
