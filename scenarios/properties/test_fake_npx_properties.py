"""The fake npx and the reference read command lines apart from each other: where both read a package it is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fake_servers.mcp import protocol
from fake_servers.mcp.behaviour import Behaviour
from fake_servers.npm.arguments import cache_directory, install_key, parse
from harness.reference.npx.specs import install_hash, package_specs

SPECS = st.sampled_from(["pkg", "pkg@latest", "pkg@1.2.3", "@scope/pkg", "@scope/pkg@2"])
FLAGS = st.sampled_from(["-y", "--yes", "-q", "--no-install", "--yes=true"])
VALUED = st.sampled_from(["--prefix", "--userconfig", "--cache", "--node-options", "--shell"])
PIECES = st.one_of(
    SPECS.map(lambda spec: [spec]),
    FLAGS.map(lambda flag: [flag]),
    st.tuples(VALUED, SPECS).map(list),
    st.tuples(VALUED, SPECS).map(lambda pair: ["=".join(pair)]),
    st.tuples(st.sampled_from(["-p", "--package"]), SPECS).map(list),
    st.tuples(st.sampled_from(["-p", "--package"]), SPECS).map(lambda pair: ["=".join(pair)]),
)
WORDS = st.lists(PIECES, max_size=6).map(lambda pieces: [word for piece in pieces for word in piece])


@given(WORDS)
def test_the_fake_and_the_reference_read_the_same_packages(words):
    command = parse(words)
    assert command.specs == package_specs(words)
    assert install_key(command) == install_hash(package_specs(words))


@given(st.lists(st.one_of(st.text(max_size=8), st.sampled_from(["-p", "--", "-c", "-y", "--cache"])), max_size=8))
def test_any_command_line_can_be_read(words):
    command = parse(words)
    assert not command.arguments or command.program is not None or command.specs
    assert cache_directory(command, {}, "/work").startswith("/")


@given(st.text(max_size=40))
def test_any_line_is_a_message_or_an_error_with_no_id(text):
    read = protocol.parse(text)
    if isinstance(read, protocol.Answer):
        assert [message["id"] for message in read.messages] == [None]
    else:
        protocol.answer(Behaviour(), read)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=2)
)
METHODS = st.sampled_from(["initialize", "ping", "tools/list", "tools/call", "server/discover", "x", "notifications/y"])


@given(
    st.fixed_dictionaries(
        {}, optional={"jsonrpc": st.just("2.0"), "id": JSON, "method": METHODS | JSON, "params": JSON}
    )
)
def test_a_good_server_answers_each_request_once_and_a_notification_never(message):
    answer = protocol.answer(Behaviour(), message, protocol.State("2025-06-18"))
    is_notification = message.get("jsonrpc") == "2.0" and isinstance(message.get("method"), str) and "id" not in message
    assert len(answer.messages) == (0 if is_notification else 1)
    assert all(sent["id"] == protocol.identity(message) for sent in answer.messages)
