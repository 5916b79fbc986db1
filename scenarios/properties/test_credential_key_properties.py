"""The key that is written equals the key that the runtimes look up, computed twice from two sources."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_runtimes.claude.config import read_config
from fake_runtimes.claude.credentials import find_entry, lookup_key
from fake_runtimes.profile import PINNED, ClaudeProfile, load_profile
from harness.reference.credentials.key import credential_key, runtime_key
from harness.reference.credentials.known_wrong import known_wrong_keys
from harness.reference.credentials.lookup import explain_lookup
from harness.reference.secrets.interpolator import resolve_entry

NAME_TEXTS = st.sampled_from(["notion", "pi|pe", "a.b c", "café", "@org/x"])
VALUE_TEXTS = st.one_of(
    st.sampled_from(["a: b, c", "k&v", "<x>", "${TENANT}", "${REGION:-eu}", "é\u2028", 'q"\\', "", "a/b"]),
    st.text(alphabet='aé:, &"\\\n\x7f\u2029/', max_size=6),
)
HEADERS = st.dictionaries(
    st.sampled_from(["X-B", "X-A", "10", "2", "01", "x-é", "4294967295"]), VALUE_TEXTS, max_size=4
)
URLS = st.sampled_from(
    [
        "https://mcp.test/v1",
        "https://mcp.test/v1/",
        "HTTPS://Mcp.Test:443/?a=1&b=2",
        "https://${TENANT}.test/mcp",
        "https://t/, b: 2",
    ]
)
VARIABLES = {"TENANT": "acme", "UNUSED": "x"}


def profile() -> ClaudeProfile:
    loaded = load_profile(PINNED["claude"])
    assert isinstance(loaded, ClaudeProfile)
    return loaded


@st.composite
def remote_configs(draw):
    config = {"type": draw(st.sampled_from(["http", "streamable-http", "sse"])), "url": draw(URLS)}
    headers = draw(HEADERS)
    members = {**config, "title": "T", "oauth": {"clientId": "c"}}
    return (
        {"headers": headers, **members}
        if draw(st.booleans())
        else {**members, **({"headers": headers} if headers else {})}
    )


def as_read_by_claude(name: str, entry: dict[str, object], environment: dict[str, str]):
    text = json.dumps({"mcpServers": {name: entry}}, ensure_ascii=False)
    (server,) = read_config(text, environment, profile()).servers
    return server


@pytest.mark.requirement("credential-key-agreement-property")
@given(NAME_TEXTS, remote_configs())
def test_the_written_key_is_the_key_that_claude_looks_up(name, config):
    key = runtime_key("claude", name, config, VARIABLES)
    server = as_read_by_claude(name, config, VARIABLES)
    store = json.dumps({"mcpOAuth": {key: {"accessToken": "bearer"}}})
    assert lookup_key(server) == key
    assert find_entry(store, server) == {"accessToken": "bearer"}


@pytest.mark.requirement("credential-key-agreement-property", "credential-key-placeholder-expansion")
@given(NAME_TEXTS, remote_configs())
def test_the_key_also_holds_for_the_config_that_zimmer_resolved_before_claude_reads_it(name, config):
    written = resolve_entry(config, VARIABLES.get)
    server = as_read_by_claude(name, written, {})
    assert lookup_key(server) == credential_key(name, written)


@pytest.mark.requirement("credential-key-miss-is-silent", "credential-key-munge", "credential-key-html-escaping")
@given(NAME_TEXTS, remote_configs())
def test_a_wrong_key_is_missed_in_silence_and_reported_as_a_mismatch(name, config):
    resolved = {**config, "url": "https://t/, b: 2&c"}
    server = as_read_by_claude(name, resolved, VARIABLES)
    wrong = known_wrong_keys(name, resolved)
    assert {"munged", "html_escaped"} <= set(wrong)
    for key in (wrong["munged"], wrong["html_escaped"]):
        store = {"mcpOAuth": {key: {"accessToken": "bearer"}}}
        assert find_entry(json.dumps(store), server) is None
        told = explain_lookup(lookup_key(server), store["mcpOAuth"])
        assert told == ("key_mismatch", runtime_key("claude", name, resolved, VARIABLES), (key,))
