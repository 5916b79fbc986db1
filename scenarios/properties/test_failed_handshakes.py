"""Whatever fails together in a handshake: each server has one route, its own, and only one kind of it is fatal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.catalog.entry import read_entry
from harness.reference.session import ladder, routes
from harness.reference.session.failed_handshakes import takes_oauth
from harness.reference.session.gate import is_listed
from harness.reference.session.ladder import Decision
from harness.reference.session.refusals import auth_text
from harness.reference.session.routes import Class, Failing

NOW = 1_800_000_000.0
CLOSED = "Connection failed after 812ms (CONNECTION_CLOSED): Connection closed"
DEAD = (
    "Token refresh failed with invalid_grant: x",
    "INVALID REFRESH TOKEN",
    f"token refresh failed: invalid_client | {CLOSED}",
)
REFUSED = ("Unauthorized", "Connection failed with status 401", "invalid_token", "OAuth authentication required")
CHILD = ("Server stderr: Invalid API key", f"Server stderr: authentication failed | {CLOSED}")
OTHER = (
    "", CLOSED, "403 Forbidden", "connection timed out", "ECONNREFUSED", "(ENOENT): no", "EACCES: permission denied",
    "HTTP 500", "the app said invalid_grant", "Token refresh failed with server_error", "Skipping connection (cached)",
)  # fmt: skip
NAMES = tuple("abcdef")


class Server(NamedTuple):
    """A server that failed, and what is known of it."""

    takes_oauth: bool
    error: str | None
    is_authorized: bool
    is_retired: bool


SERVERS = st.builds(
    Server, st.booleans(), st.sampled_from((None, *DEAD, *REFUSED, *CHILD, *OTHER)), st.booleans(), st.booleans()
)
SETS = st.dictionaries(st.sampled_from(NAMES), SERVERS, min_size=1)
COUNTS = st.integers(0, 5)
RECORDS = st.lists(st.sampled_from(NAMES), unique=True)
HEADERS = st.dictionaries(
    st.sampled_from(("Authorization", "X-API-Key", "Idempotency-Key", "X-Author", "PRIVATE-TOKEN")),
    st.sampled_from(("", " ", "k", "${K}")),
)
ENTRIES = st.fixed_dictionaries(
    {"type": st.sampled_from(("stdio", "http", "streamable-http", "sse")), "headers": HEADERS},
    optional={"url": st.just("https://x.test/mcp"), "unavailable": st.just("It is down.")},
)


def class_of(name: str, server: Server) -> Class:
    """The class of its failure."""
    cause = routes.cause_of(Failing(name, server.error, None, server.takes_oauth))
    asks = routes.needs_sign_in(cause, is_authorized=server.is_authorized, is_retired=server.is_retired)
    return routes.class_of(cause, needs_sign_in=asks)


def decision(servers: Mapping[str, Server], count: int = 0, recorded: tuple[str, ...] = ()) -> Decision:
    """One pass over them."""
    metadata = {"mcp_retry_count": count, "mcp_degraded_servers": [{"name": name} for name in recorded]}
    classes = {name: class_of(name, server) for name, server in servers.items() if name not in recorded}
    return routes.route(metadata, {name: server.error for name, server in servers.items()}, classes, NOW)


def fatal(servers: Mapping[str, Server]) -> list[str]:
    """Those that a human has to authorize."""
    return [name for name, server in servers.items() if class_of(name, server) == "needs_sign_in"]


@pytest.mark.requirement(
    "gate-only-fatal-class", "failure-only-oauth-is-fatal", "failure-three-routes-total", "gate-mixed-oauth-wins"
)
@given(SETS, COUNTS, RECORDS)
def test_every_server_that_is_news_has_one_route_and_one_kind_alone_stops_the_session(servers, count, record):
    recorded = tuple(record)
    news = {name: server for name, server in servers.items() if name not in recorded}
    made = decision(servers, count, recorded)
    assert (made.route == "oauth_required") == bool(fatal(news))
    if fatal(news):
        assert list(made.routes) == fatal(news)
        assert made.metadata["mcp_retry_count"] == count
        return
    assert sorted(made.routes) == sorted(news)
    assert set(made.routes.values()) <= {"retry", "degrade"}
    assert made.route == ("nothing" if not news else "retry" if "retry" in made.routes.values() else "degrade")


@pytest.mark.requirement("failure-verdict-independent", "gate-verdict-per-server", "failure-verdict-per-server")
@given(SETS, COUNTS)
def test_a_servers_route_does_not_depend_on_who_failed_beside_it(servers, count):
    calm = {name: server for name, server in servers.items() if class_of(name, server) != "needs_sign_in"}
    together = decision(calm, count).routes if calm else {}
    assert together == {name: decision({name: server}, count).routes[name] for name, server in calm.items()}


@pytest.mark.requirement("failure-verdict-order-invariant")
@given(SETS, COUNTS, st.randoms())
def test_the_order_of_the_failures_changes_no_route_and_no_reason(servers, count, random):
    names = list(servers)
    random.shuffle(names)
    one, other = decision(servers, count), decision({name: servers[name] for name in names}, count)
    assert one.routes == other.routes
    reasons = [
        {each["name"]: each.get("reason") for each in made.metadata["mcp_degraded_servers"]} for made in (one, other)
    ]
    assert reasons[0] == reasons[1]


@pytest.mark.requirement("gate-cache-shaped-keeps-retry", "gate-unknown-phrasing-retries")
@given(SERVERS)
def test_a_rejected_grant_is_never_retried_and_what_only_looks_refused_always_is(server):
    said = auth_text(server.error, "a")
    found = class_of("a", server._replace(takes_oauth=True, is_authorized=True))
    if said.refresh_token_rejected:
        assert found == ("needs_sign_in" if server.is_retired else "authorized")
    else:
        assert found == ("authorized" if said.auth_error else "other")


@pytest.mark.requirement("gate-fatal-is-human-resolvable")
@given(SETS)
def test_only_a_server_that_can_be_authorized_and_is_not_stops_a_session(servers):
    for name in decision(servers).on("oauth_required"):
        server = servers[name]
        assert server.takes_oauth
        is_rejected = auth_text(server.error, name).refresh_token_rejected
        assert server.is_retired if is_rejected else not server.is_authorized


@pytest.mark.requirement("failure-ladder-bounded", "failure-ladder-three-attempts")
@given(st.lists(SETS, max_size=12))
def test_however_many_servers_fail_in_turn_a_ladder_has_three_retries(passes):
    metadata: ladder.Metadata = {}
    retries = 0
    for servers in passes:
        calm = {name: each for name, each in servers.items() if class_of(name, each) != "needs_sign_in"}
        if not calm:
            continue
        classes = {name: class_of(name, each) for name, each in calm.items()}
        made = routes.route(metadata, {name: each.error for name, each in calm.items()}, classes, NOW)
        metadata, retries = made.metadata, retries + (made.route == "retry")
        before = ladder.recorded_names(metadata)
        assert before >= frozenset(made.on("degrade"))
    assert retries <= 3


@pytest.mark.requirement("gate-single-predicate", "failure-gate-same-predicate")
@given(ENTRIES)
def test_the_gate_lists_exactly_whom_the_pass_may_send_to_a_human(raw):
    entry = read_entry("x", raw)
    cause = routes.cause_of(Failing("x", "Unauthorized", None, takes_oauth(entry)))
    found = routes.class_of(cause, needs_sign_in=routes.needs_sign_in(cause, is_authorized=False, is_retired=True))
    assert (found == "needs_sign_in") is is_listed(entry)
