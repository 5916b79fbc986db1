"""No secret leaves through a report; nothing else is hidden."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from enum import Enum
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate.events import Found, Judged
from harness.gate.model import Edit
from harness.report.credential_names import is_credential_name
from harness.report.formats import FORMATS, load_formats
from harness.report.masking import MARKER, MASK, mask, mask_value, masked
from scenarios.units.report_events import finding, judgement, pull_request_run, rules, stream

RANDOM = "Zk3xQ9vLmT2pWr8sYb4nHc6d"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1gFWFOEjXk"
VENDOR_TOKENS = [
    "sk-ant-api03-" + RANDOM,
    "sk-proj-" + RANDOM,
    "sk_live_" + RANDOM,
    "ghp_" + RANDOM,
    "gho_" + RANDOM,
    "ghs_" + RANDOM,
    "github_pat_11AAAA_" + RANDOM,
    "xoxb-123456789012-" + RANDOM,
    "xoxp-123456789012-" + RANDOM,
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
    "glpat-" + RANDOM,
    "ntn_" + RANDOM,
    "secret_" + RANDOM,
    "figd_" + RANDOM,
    "lin_api_" + RANDOM,
    "npm_" + RANDOM + RANDOM[:12],
    "hf_" + RANDOM,
    "gsk_" + RANDOM,
    "whsec_" + RANDOM,
    "dop_v1_" + RANDOM,
    JWT,
]


@pytest.mark.parametrize("secret", VENDOR_TOKENS)
@pytest.mark.parametrize(
    "frame", ["{}", "a {} b", '"{}"', "x={}", "({}).", "%20{}", "\\n{}", "https://h/{}/x", "'{}',"]
)
def test_tokens_of_vendors_are_masked_wherever_they_stand(secret, frame):
    text = mask(frame.format(secret))
    assert secret not in text
    assert secret[-12:] not in text
    assert MASK in text


@pytest.mark.parametrize("secret", VENDOR_TOKENS)
def test_encoded_tokens_are_masked_too(secret):
    for plain in (secret, f"user:{secret}", f"key {secret}\n"):
        for encoded in (base64.b64encode(plain.encode()), base64.urlsafe_b64encode(plain.encode())):
            assert encoded.decode().rstrip("=") not in mask(f"sent {encoded.decode()} there")
    assert secret not in mask(quote(f"Bearer {secret}/+", safe=""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Authorization: Bearer hunter2", "Authorization: Bearer ***"),
        ('"Authorization": "Bearer hunter2"', '"Authorization": "Bearer ***"'),
        ("authorization=hunter2", "authorization=***"),
        ("sent Bearer abc123def.", "sent Bearer ***"),
        ("Basic dXNlcjpwYXNz", "Basic ***"),
        ("https://user:p4ss@host/x", "https://user:***@host/x"),
        ("postgres://u:a%3Ab@db/x", "postgres://u:***@db/x"),
        ("https://h/mcp?api_key=abc&x=1", "https://h/mcp?api_key=***&x=1"),
        ("https://h/cb?code=abcdefgh1&x=1", "https://h/cb?code=***&x=1"),
        ("https://h/#access_token=abc", "https://h/#access_token=***"),
        ('"SLACK_BOT_TOKEN": "hunter2"', '"SLACK_BOT_TOKEN": "***"'),
        ('{\\"API_KEY\\": \\"hunter2\\"}', '{\\"API_KEY\\": \\"***\\"}'),
        ('+    "X-API-Key": "hunter \\" 2",', '+    "X-API-Key": "***",'),
        ('API_KEY = "x y"', 'API_KEY = "***"'),
        ("STRAD_API_KEY=abc", "STRAD_API_KEY=***"),
        ("--api-key hunter2 --port 80", "--api-key *** --port 80"),
        ("--token=hunter2", "--token=***"),
        ('+  "--api-key",\n+  "hunter2"', '+  "--api-key",\n+  "***"'),
        ("X-API-Key: abc123def456", "X-API-Key: ***"),
        ("client_secret='abc'", "client_secret='***'"),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----",
        ),
        ("-----BEGIN PRIVATE KEY-----\\nMIIE", "-----BEGIN PRIVATE KEY-----***"),
    ],
)
def test_credentials_are_known_by_where_they_stand(text, expected):
    assert mask(text) == expected
    assert mask(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a bearer token is refused; basic authentication, too",
        "https://mcp.notion.com/v1/mcp?tool_groups=sessions,health_readonly&max_tokens=5",
        "git+ssh://git@github.com/acme/tools.git",
        "notion|3fad03f7abd02b9c",
        "stored key notion|eac663db915250e7 -> notion|3fad03f7abd02b9c: everyone must AUTHORIZE AGAIN",
        "secret ZIMMER_PROD_API_KEY",
        "needs secret: SLACK_BOT_TOKEN_2",
        "${ACME_TOKEN_} is new and no known secret. Did you mean ACME_TOKEN (used by acme-docs)?",
        "Authorization: Bearer ${STRAD_API_KEY}",
        '"X-API-Key": "${ZIMMER_PROD_API_KEY}"',
        "https://${USER}:${PASSWORD}@host/?token=${TOKEN}",
        "@upstash/context7-mcp@latest",
        "@pulsemcp/svg-tracer-mcp-server@2.0.0-beta.1",
        "playwright-stealth-mcp-server@latest",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "sha512-x3fad03f7abd02b9c3fad03f7abd02b9c",
        "npm_config_cache and NPM_CONFIG_CACHE",
        "risk-free-task-2-with-a-long-name",
        "desk-organiser-for-everybody-2",
        "token_endpoint: https://as.test/token1",
        "token: expired",
        'bearer_token_env_var = "ZIMMER_PROD_API_KEY"',
        "MAX_OUTPUT_TOKENS=25000",
        "the X-API-Key header is missing: everyone",
        "out/MH203-acme-search.toml",
        "resource://documents/quarterly-report-2026.pdf",
    ],
)
def test_everything_else_stays_readable(text):
    assert mask(text) == text


@pytest.mark.parametrize(
    "name",
    [
        "SLACK_BOT_TOKEN",
        "X-API-Key",
        "apiKey",
        "api_key",
        "key",
        "client_secret",
        "clientSecret",
        "PASSWORD",
        "DB_PASSWD",
        "Cookie",
        "Set-Cookie",
        "Authorization",
        "Proxy-Authorization",
        "AWS_SECRET_ACCESS_KEY",
        "PRIVATE_KEY",
        "GITHUB_PAT",
        "x-amz-signature",
        "authToken",
        "--api-key",
        "STRAD_API_KEY",
        "refresh_token",
        "credentials",
        "SENTRY_AUTH",
    ],
)
def test_names_of_credentials(name):
    assert is_credential_name(name)
    assert mask_value(name, "hunter2") == MASK
    assert mask_value(name, "Bearer hunter2") == f"Bearer {MASK}"


@pytest.mark.parametrize(
    "name",
    [
        "HEADLESS",
        "STEALTH_MODE",
        "token_endpoint",
        "client_id",
        "MAX_OUTPUT_TOKENS",
        "token_type",
        "bearer_token_env_var",
        "TOKEN_URL",
        "SECRET_NAME",
        "PATH",
        "HOME",
        "keyboard",
        "monkey",
        "author",
        "startup_timeout_sec",
        "url",
        "type",
        "command",
        "PRIVATE_KEY_PATH",
        "AUTH_MODE",
        "tokenizer",
        "oauth",
    ],
)
def test_names_of_other_things(name):
    assert not is_credential_name(name)
    assert mask_value(name, "hunter2") == "hunter2"


@pytest.mark.parametrize("value", ["${TOKEN}", "Bearer ${TOKEN}", "", " ", "true", "0", f"x-{MARKER}-7", MASK])
def test_values_without_a_secret_are_shown_under_any_name(value):
    assert mask_value("API_TOKEN", value) == value


def written(**fields):
    one = judgement("one", runtimes=("codex@0.146.0",))
    odd = one._replace(outcomes=(one.outcomes[0]._replace(written=fields),))
    judged = masked(stream(judgements=(odd,)))[1]
    assert isinstance(judged, Judged)
    return judged.judgement.outcomes[0].written


def test_a_written_entry_is_masked_by_the_names_in_it():
    result = written(
        env={"SLACK_BOT_TOKEN": "hunter2", "HEADLESS": "true", "ODD": RANDOM, "REF": "${X}"},
        http_headers={"X-API-Key": "hunter2", "X-Trace": "on"},
        env_http_headers={"X-API-Key": "ZIMMER_PROD_API_KEY"},
        bearer_token_env_var="STRAD_API_KEY",
        args=["--api-key", "hunter2", "--header", "X-API-Key: hunter2", "-y", "pkg@1.0.0"],
        url="https://h/mcp?token=hunter2",
        oauth={"clientId": "abc", "clientSecret": "hunter2", "nested": [{"password": "hunter2"}]},
        startup_timeout_sec=20,
    )
    assert result == {
        "env": {"SLACK_BOT_TOKEN": MASK, "HEADLESS": "true", "ODD": MASK, "REF": "${X}"},
        "http_headers": {"X-API-Key": MASK, "X-Trace": "on"},
        "env_http_headers": {"X-API-Key": "ZIMMER_PROD_API_KEY"},
        "bearer_token_env_var": "STRAD_API_KEY",
        "args": ["--api-key", MASK, "--header", f"X-API-Key: {MASK}", "-y", "pkg@1.0.0"],
        "url": f"https://h/mcp?token={MASK}",
        "oauth": {"clientId": "abc", "clientSecret": MASK, "nested": [{"password": MASK}]},
        "startup_timeout_sec": 20,
    }


def test_an_edit_that_would_write_a_mask_is_withheld():
    good, bad = Edit(1, 2, '"${TOKEN}"'), Edit(3, 4, f'"ghp_{RANDOM}"')
    events = masked(stream(finding(edits=(good,)), finding(edits=(good, bad))))
    assert [event.finding.edits for event in events if isinstance(event, Found)] == [(good,), ()]


def test_events_are_masked_once():
    once = masked(pull_request_run())
    assert masked(once) is once
    assert list(masked(list(once))) == list(once)


def test_clean_events_are_not_changed():
    assert list(masked(pull_request_run())) == pull_request_run()


def plant(value, secrets):
    """The same value with a new secret in every string, keys included."""
    if isinstance(value, Enum) or value in ("before", "after", "added", "changed", "removed", "PASS", "FAIL"):
        return value
    if isinstance(value, str):
        secrets.append(f"ghp_{len(secrets):04}{RANDOM}")
        return f"{value} {secrets[-1]}"
    if isinstance(value, Mapping):
        return {plant(key, secrets): plant(item, secrets) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(plant(item, secrets) for item in value))
    return type(value)(plant(item, secrets) for item in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", ["github", "json", "junit", "markdown", "sarif", "text"])
def test_a_secret_in_any_string_of_any_event_appears_in_no_report(name):
    load_formats()
    secrets: list[str] = []
    events = plant(pull_request_run(), secrets)
    assert len(secrets) > 150
    text = FORMATS[name](events, rules)
    assert len(text) > 1000
    for secret in secrets:
        forms = (secret, quote(secret), json.dumps(secret)[1:-1], base64.b64encode(secret.encode()).decode())
        assert not any(form in text for form in forms)
    assert RANDOM not in text


@pytest.mark.parametrize("name", ["github", "json", "junit", "markdown", "sarif", "text"])
@pytest.mark.parametrize(
    "encode", [quote, lambda s: base64.b64encode(s.encode()).decode(), lambda s: json.dumps(f"\n{s}")]
)
def test_a_secret_that_was_encoded_before_appears_in_no_report(name, encode):
    load_formats()
    encoded = encode(f"ghp_{RANDOM}")
    text = FORMATS[name](stream(finding(message=f"got {encoded} back", fix=encoded)), rules)
    assert RANDOM not in text
    assert encoded.strip('"=') not in text


PIECES = [*'ab1Z_-.:=&?@/%"\\ ${}|,+*\n', "token", "Bearer ", "://", "ghp_", "eyJ", "12345678", "%20", "--key "]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_masking_twice_changes_nothing_more(text):
    once = mask(text)
    assert mask(once) == once


@given(st.text())
def test_any_text_can_be_masked(text):
    assert isinstance(mask(text), str)


@pytest.mark.parametrize(
    "unit",
    [
        "a.",
        "%",
        "a-",
        "eyJ",
        "sk-",
        "://",
        '"a":"',
        "token ",
        "--a ",
        "?a=",
        "=",
        "\\",
        "-----BEGIN ",
        "a=",
        "a=b=",
        '\\"a\\":',
    ],
)
def test_long_hostile_texts_are_masked_in_reasonable_time(unit):
    assert len(mask(unit * 40_000)) > 0


IMAGE = "ghcr.io/acme/server"


@pytest.mark.parametrize("words", [["-e", "A_TOKEN"], ["--env", "A_TOKEN"], ["-i", "-e", "A_TOKEN"], ["-eA_TOKEN"]])
def test_what_follows_a_variable_that_is_passed_on_is_no_value_of_it(words):
    args = json.dumps(["run", *words, IMAGE, "--token", RANDOM], indent=2)
    removed = "\n".join(f"{'-' if IMAGE in line else ' '}{line}" for line in args.splitlines())
    for text in (args, removed, json.dumps(["run", *words, IMAGE, "--token", RANDOM])):
        assert IMAGE in mask(text)
        assert RANDOM not in mask(text)
    assert IMAGE in mask(" ".join(("docker run", *words, IMAGE)))
    assert f"A_TOKEN={MASK}" in mask(f"docker run -e A_TOKEN={RANDOM} {IMAGE}")
    outcome = judgement("s").outcomes[0]._replace(written={"args": ["run", *words, IMAGE, "--token", RANDOM]})
    given = masked([Judged(judgement("s")._replace(outcomes=(outcome,)))])
    assert IMAGE in str(given)
    assert RANDOM not in str(given)


@pytest.mark.parametrize("before", [[], ["--yes"], ["x", "y"], ["x", "y", "--yes"]])
def test_the_value_of_an_option_is_hidden_whatever_stands_before_it(before):
    words = [*before, "--api-key", RANDOM.lower()]
    for text in (json.dumps(words), json.dumps(words, indent=2), " ".join(words)):
        assert RANDOM.lower() not in mask(text)
