"""The one predicate: can an OAuth flow apply to a server?"""

from __future__ import annotations

import pytest

from harness.reference.catalog.catalog import read_catalog
from harness.reference.oauth.capability import has_static_credential, is_credential_header, oauth_capable
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import SecretsLoader


@pytest.mark.requirement("gate-capable-needs-catalog", "readiness-oauth-capability")
def test_a_server_that_is_not_in_the_catalog_is_not_capable():
    assert oauth_capable(None) is False


@pytest.mark.requirement("gate-capable-needs-remote", "readiness-oauth-capability")
@pytest.mark.parametrize(
    ("transport", "capable"),
    [
        ("http", True),
        ("streamable-http", True),
        ("sse", True),
        ("stdio", False),
        ("ws", False),
        ("HTTP", False),
        (None, False),
    ],
)
def test_only_the_remote_transports_are_capable(transport, capable):
    assert oauth_capable({"type": transport, "url": "https://a/mcp"}) is capable


@pytest.mark.requirement("gate-capable-no-static-header", "readiness-oauth-capability")
@pytest.mark.parametrize(
    ("headers", "capable"),
    [
        ({"X-API-Key": "${K}"}, False),
        ({"X-Trace-Id": "1"}, True),
        ({}, True),
        (None, True),
        ({"authorization": "x"}, False),
    ],
)
def test_a_static_credential_header_takes_the_capability_away(headers, capable):
    assert oauth_capable({"type": "http", "url": "https://a/mcp", "headers": headers}) is capable


@pytest.mark.requirement("readiness-oauth-capability")
@pytest.mark.parametrize(
    ("header", "value", "state"),
    [
        (None, "", "needs_authorization"),
        ("Authorization", "v", "no_credential_required"),
        ("authorization", "v", "no_credential_required"),
        ("X-API-Key", "v", "no_credential_required"),
        ("X-Goog-Api-Key", "v", "no_credential_required"),
        ("PRIVATE-TOKEN", "v", "no_credential_required"),
        ("Authorization", "  ", "needs_authorization"),
        ("Idempotency-Key", "v", "needs_authorization"),
        ("X-Author", "v", "needs_authorization"),
        ("X-Subscription-Key", "v", "needs_authorization"),
    ],
)
def test_readiness_asks_for_an_authorization_exactly_where_the_predicate_says_so(header, value, state):
    entry = {"type": "http", "url": "https://a/mcp", "headers": {} if header is None else {header: value}}
    (status,) = judge_all(read_catalog({"a": entry}), SecretsLoader().resolution, lambda _: None)
    assert status.state == state
    assert oauth_capable(entry) is (state == "needs_authorization")


WORDS = (
    "Authorization Auth Api-Key apikey X-ApiKey X_API_KEY X-Figma-Token X-Client-Secret X-Password "
    "X-Credential X-Credentials"
)
ROUTINE = "Content-Type Accept User-Agent Cookie"


@pytest.mark.requirement("gate-header-words")
def test_the_credential_words_are_recognised_and_routine_names_are_not():
    assert [name for name in WORDS.split() if not is_credential_header(name, "v")] == []
    assert [name for name in ROUTINE.split() if is_credential_header(name, "v")] == []


@pytest.mark.requirement("gate-header-whole-parts")
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("X-Author", False),
        ("X-Authentication", False),
        ("Tokenizer", False),
        ("XToken", False),
        ("Secrets", False),
        ("X-Auth-Email", True),
        ("X-Token-Id", True),
        ("X-Access_Token", True),
        ("X-Token\n", False),
    ],
)
def test_a_word_counts_only_as_a_whole_part_of_the_name(name, counts):
    assert is_credential_header(name, "v") is counts


@pytest.mark.requirement("gate-header-key-only-in-api-key")
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("Idempotency-Key", False),
        ("X-Subscription-Key", False),
        ("Ocp-Apim-Subscription-Key", False),
        ("X-Access-Key", False),
        ("X-Goog-Api-Key", True),
        ("api--key", False),
    ],
)
def test_key_counts_only_behind_api(name, counts):
    assert is_credential_header(name, "v") is counts


@pytest.mark.requirement("gate-header-case-insensitive")
@pytest.mark.parametrize("name", ["authorization", "AUTHORIZATION", "PRIVATE-TOKEN", "private-token", "x-api-key"])
def test_case_does_not_matter(name):
    assert is_credential_header(name, "v")


@pytest.mark.requirement("gate-header-vendor-spellings")
@pytest.mark.parametrize("name", ["X-API-Key", "X-Goog-Api-Key", "X-Figma-Token", "PRIVATE-TOKEN", "X-Acme-Token"])
def test_vendor_spellings_are_recognised_by_their_words(name):
    assert not oauth_capable({"type": "http", "url": "https://a/mcp", "headers": {name: "v"}})


@pytest.mark.requirement("gate-header-name-decides")
def test_the_name_decides_and_not_the_shape_of_the_value():
    assert oauth_capable({"type": "http", "headers": {"X-Trace": "Bearer abc"}})
    assert not oauth_capable({"type": "http", "headers": {"X-API-Key": 0}})
    assert not oauth_capable({"type": "http", "headers": {"X-API-Key": "plain"}})


@pytest.mark.requirement("gate-header-blank-value", "readiness-oauth-capability")
@pytest.mark.parametrize(
    ("value", "counts"),
    [("", False), ("  ", False), (None, False), ("\u00a0", False), ("Bearer ${T}", True), (False, True)],
)
def test_a_blank_value_is_no_credential(value, counts):
    assert is_credential_header("Authorization", value) is counts


@pytest.mark.requirement("gate-header-any-of-several")
def test_one_credential_header_among_several_is_enough_wherever_it_stands():
    assert has_static_credential({"X-Other": "a", "X-API-Key": "k"})
    assert has_static_credential({"X-API-Key": "k", "X-Other": "a"})
    assert not has_static_credential({"X-Other": "a", "Authorization": " "})


@pytest.mark.requirement("https-predicate", "https-predicate-strict-whitespace", "https-no-loopback-exception")
@pytest.mark.parametrize(
    ("endpoint", "accepted"),
    [
        ("https://auth.example.com/token", True),
        ("HTTPS://auth.example.com/token", True),
        ("https://[::1]/token", True),
        ("https://user:pass@h:8443/t?x=1#f", True),
        ("http://auth.example.com/token", False),
        ("http://localhost/token", False),
        ("http://127.0.0.1:9000/token", False),
        ("http://[::1]:9000/token", False),
        ("auth.example.com/token", False),
        ("https://", False),
        ("httpsx://h/t", False),
        ("https:/auth.example.com/token", False),
        ("wss://h/t", False),
        ("https://:443/t", False),
        ("https://user@/t", False),
        ("not-a-uri", False),
        ("https://[::zz]/token", False),
        ("https://h/t ", False),
        ("https://h/a path", False),
        ("\nhttps://h/t", False),
        ("https://h/t\n", False),
        ("https://h/%zz", False),
        (None, False),
    ],
)
def test_an_endpoint_must_be_https_with_a_host(endpoint, accepted):
    assert acceptable_endpoint(endpoint) is accepted
