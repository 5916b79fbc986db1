"""The writers for any credential and any file: nothing invented, nothing foreign lost, nobody's write in between."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.credentials.writers import claude, codex, needs_auth, pi
from harness.reference.credentials.writers.protocol import StagedCredential
from harness.reference.credentials.writers.staging import is_writable
from harness.reference.credentials.writers.store_file import document_of, parse, text_of
from harness.reference.oauth.loopback import localhost_flow
from harness.world.model import Fault, Seeded
from scenarios.units.writer_run import CLAUDE, STORES, WRITERS, full, run_writers, staged_file, writing

NOW_MS = 1_800_000_000_000
FORMAT = {"", "bearer"}
"""What the formats themselves put into a document: Claude's empty scope, the keychain's type of token."""

texts = st.text(max_size=12)
optional = st.none() | texts
names = st.text(min_size=1, max_size=12).filter(str.strip)
credentials = st.builds(
    StagedCredential,
    credential_key=names,
    server_name=names,
    server_url=names,
    client_id=optional,
    access_token=names,
    refresh_token=optional,
    expires_at_ms=st.none() | st.integers(0, 4_000_000_000_000),
    scope=optional,
    issuer=optional,
    redirect_uris=st.lists(names, max_size=2).map(tuple),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=4)


def leaves(value: Any) -> Iterator[Any]:
    """All values of a document that hold no others; names of members are the format's."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    else:
        for one in inner:
            yield from leaves(one)


def given_by(credential: StagedCredential) -> set[Any]:
    """All that a document may hold: what the credential has, its scope's words, its expiry in either unit."""
    known: set[Any] = {None, *FORMAT, *credential.redirect_uris, *codex.scope_list(credential.scope)}
    known |= {getattr(credential, field.name) for field in fields(credential) if field.name != "redirect_uris"}
    known.add(codex.scope_text(credential.scope))
    return known if credential.expires_at_ms is None else known | {credential.expires_at_ms // 1000}


@pytest.mark.requirement("writers-input-resolved-credential", "writers-pi-nothing-synthesized")
@given(credentials)
def test_every_value_of_every_document_is_one_of_the_credentials(credential):
    documents = {
        "claude": claude.entry_of(credential),
        "codex": codex.entry_of(credential),
        "keychain": codex.keychain_item(credential).value,
        "pi": pi.entry_of(credential),
    }
    for runtime, document in documents.items():
        invented = [leaf for leaf in leaves(document) if leaf not in given_by(credential)]
        assert invented == [], runtime
    assert None not in list(leaves(documents["pi"]))


@pytest.mark.requirement("writers-claude-keeps-other-blocks", "store-other-blocks-kept")
@given(objects, st.dictionaries(texts, values, max_size=3), credentials)
def test_claude_loses_nothing_that_is_somebody_elses(document, entries, credential):
    before = {**document, "mcpOAuth": entries}
    after = claude.merged(before, [credential], NOW_MS / 1000)
    assert {**after, "mcpOAuth": None} == {**before, "mcpOAuth": None}
    others = {key: value for key, value in entries.items() if key != credential.credential_key}
    kept = {key: value for key, value in after["mcpOAuth"].items() if key != credential.credential_key}
    assert kept == others
    assert is_writable(credential)
    assert credential.credential_key in after["mcpOAuth"]


@pytest.mark.requirement("writers-codex-one-entry-per-server", "writers-codex-invalid-entry-kills-file")
@given(objects, credentials)
def test_codex_loses_nothing_of_other_servers_and_keeps_one_entry_of_this_one(document, credential):
    after = codex.rewritten(document, [credential])
    if not codex.is_readable_to_codex(credential):
        assert after == document
        return
    pair = (credential.server_name, credential.server_url)
    mine = [key for key, entry in after.items() if codex.is_of(entry, *pair)]
    assert mine == [credential.credential_key]
    others = {key: value for key, value in document.items() if key != credential.credential_key}
    assert {key: value for key, value in after.items() if key != credential.credential_key} == {
        key: value for key, value in others.items() if not codex.is_of(value, *pair)
    }


@given(objects)
def test_a_document_survives_being_written_and_read(document):
    assert document_of(text_of(document)) == document
    spelled = json.dumps(document)
    assert text_of(document_of(spelled)) == text_of(document_of(text_of(document_of(spelled))))


@pytest.mark.requirement("writers-missing-store-not-error", "store-corrupt-store")
@given(st.text(max_size=40) | st.sampled_from(["[" * 100_000, '{"a":' * 5000, "1" * 5000, '{"a":1E999}', "\ufeff{}"]))
def test_any_text_is_an_object_or_empty(text):
    read = parse(text)
    assert read is None or isinstance(read, dict)
    assert claude.pairs(document_of(text)) is not None
    assert codex.pairs(document_of(text)) is not None


@pytest.mark.requirement("store-clear-only-named", "gate-needs-auth-clear-by-name")
@given(objects, st.lists(texts, max_size=4))
def test_clearing_takes_what_is_named_and_there_and_leaves_the_rest(cache, asked):
    removed = needs_auth.without_names(cache, asked)
    assert removed.keys == tuple(name for name in dict.fromkeys(asked) if name in cache)
    assert removed.document == {name: entry for name, entry in cache.items() if name not in asked}


@pytest.mark.requirement("store-loopback-host-not-substring", "store-loopback-case-and-userinfo")
@given(
    st.sampled_from(["localhost", "127.0.0.1", "[::1]", "LocalHost"]),
    st.sampled_from(["", ".evil.com", "x", ".", "-"]),
    st.sampled_from(["", "not", "evil.com/", "evil.com?x=", "evil.com#"]),
    st.sampled_from(["", "user@", "localhost@", "a:b@"]),
    st.sampled_from(["", ":1", ":65535"]),
    st.sampled_from(["", "/", "/cb?x=localhost", "?a#b"]),
)
def test_only_a_whole_host_is_loopback(host, after, before, userinfo, port, rest):
    uri = f"http://{userinfo}{before}{host}{after}{port}{rest}"
    assert localhost_flow(uri) is (not after and not before)


@pytest.mark.requirement("writers-codex-no-lock", "store-codex-store-unlocked-race", "store-three-writers-one-file")
@pytest.mark.parametrize("runtime", ["claude", "codex"])
@given(st.integers(0, 10_000))
def test_writers_that_share_a_lock_lose_no_key_of_one_another_in_any_order(runtime, seed):
    foreign = {"theirs|1": {"accessToken": "t"}}
    before = {"claudeAiOauth": {"a": 1}, "mcpOAuth": foreign} if runtime == "claude" else dict(foreign)
    bodies = [writing(WRITERS[runtime], full(f"s{number}", access_token=f"a{number}")) for number in range(3)]
    ran = run_writers(*bodies, files={STORES[runtime]: json.dumps(before)}, decisions=Seeded(seed, run=0.5, stall=0.2))
    document = ran.json(STORES[runtime])
    entries = document["mcpOAuth"] if runtime == "claude" else document
    assert ran.errors == {}
    assert set(entries) == {"theirs|1", *(f"s{number}|0123456789abcdef" for number in range(3))}
    assert entries["theirs|1"] == foreign["theirs|1"]


@given(st.integers(0, 10_000))
def test_whatever_strikes_a_store_is_whole_private_and_holds_what_it_held(seed):
    faults = [Fault(action, actor="zimmer*", drawn=True, times=2) for action in ("kill", "enospc", "torn", "eacces")]
    bodies = [writing(WRITERS["claude"], full(f"s{number}")) for number in range(3)]
    text = json.dumps({"claudeAiOauth": {"a": 1}, "mcpOAuth": {"theirs|1": {}}})
    ran = run_writers(*bodies, files={STORES["claude"]: text}, faults=faults, decisions=Seeded(seed, fault=0.1))
    document = ran.json(STORES["claude"])
    assert (document["claudeAiOauth"], document["mcpOAuth"]["theirs|1"]) == ({"a": 1}, {})
    done = [number for number, name in enumerate(["zimmer", "zimmer2", "zimmer3"]) if ran.results.get(name)]
    assert {f"s{number}|0123456789abcdef" for number in done} <= set(document["mcpOAuth"])
    assert {ran.mode(f"{CLAUDE}/{name}") for name in ran.names(CLAUDE)} == {0o600}


@given(st.integers(0, 10_000))
def test_whatever_strikes_pis_file_is_whole(seed):
    faults = [Fault(action, drawn=True, times=2) for action in ("kill", "enospc", "torn", "eacces", "enoent")]
    bodies = [writing(WRITERS["pi"], full(), full(f"s{number}")) for number in range(2)]
    ran = run_writers(*bodies, faults=faults, decisions=Seeded(seed, fault=0.1))
    for name in ("notion", "s0", "s1"):
        text = ran.text(staged_file(name))
        assert text is None or json.loads(text) == pi.entry_of(full(name))
