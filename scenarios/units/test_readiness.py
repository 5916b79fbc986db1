"""ConnectorStatusProbe: the state of each server from local inputs alone."""

from __future__ import annotations

import builtins
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.entry import read_entry
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential
from harness.reference.readiness.probe import ResolutionLookup, Status, judge, judge_all, judge_named
from harness.reference.readiness.states import (
    LABELS,
    RANKS,
    STATES,
    State,
    blocks,
    by_severity,
    label,
    needs_attention,
    rank,
)
from harness.reference.secrets.loader import ABSENT, UNREACHABLE, Resolution, SecretsLoader, StoreUnavailableError
from harness.reference.selection.zimmer import Instance
from scenarios.shipped import shipped_catalog

FOUND = Resolution("found", "ENV")
NOT_AUTHORIZED = "OAuth authorization not completed"
NOT_RENEWABLE = "OAuth token expired and cannot be refreshed"
OAUTH_SERVER = {"type": "streamable-http", "url": "https://mcp.notion.example.com/mcp"}


def nothing_stored(_: str) -> None:
    return None


def resolving(**outcomes: str) -> ResolutionLookup:
    """A lookup by outcome: found or unreachable; every other name is absent."""
    return lambda name: {"found": FOUND, "unreachable": UNREACHABLE}.get(outcomes.get(name, ""), ABSENT)


def answering(resolution: Resolution) -> ResolutionLookup:
    """A lookup that answers the same for every name."""
    return lambda _: resolution


def probe(
    raw: dict[str, Any],
    *,
    variables: dict[str, str] | None = None,
    row: StoredCredential | None = None,
    name: str = "notion",
    instance: Instance | None = None,
) -> Status:
    entry = read_entry(name, raw)
    rows = {} if row is None else {credential_key(name, entry.credential_config()): row}
    status = judge(name, entry, resolving(**(variables or {})), rows.get, instance)
    assert status is not None
    return status


def expired(refresh_token: str | None = None, token_endpoint: str | None = None) -> StoredCredential:
    return StoredCredential(-3600, refresh_token, token_endpoint)


STDIO_TWO = {"type": "stdio", "command": "x", "env": {"A": "${ALPHA}"}, "args": ["${BETA}"]}

EVERY_STATE: dict[State, Callable[[], Status]] = {
    State.READY: lambda: probe(OAUTH_SERVER, row=StoredCredential(7200)),
    State.NO_CREDENTIAL_REQUIRED: lambda: probe({"type": "stdio", "command": "npx"}),
    State.NEEDS_AUTHORIZATION: lambda: probe(OAUTH_SERVER),
    State.TOKEN_EXPIRED: lambda: probe(OAUTH_SERVER, row=expired("r", "https://t/token")),
    State.NEEDS_REAUTH: lambda: probe(OAUTH_SERVER, row=expired()),
    State.MISSING_CONFIGURATION: lambda: probe(STDIO_TWO),
    State.DECLARED_UNAVAILABLE: lambda: probe({**STDIO_TWO, "unavailable": "Gone."}),
    State.STORE_UNAVAILABLE: lambda: probe(STDIO_TWO, variables={"ALPHA": "unreachable"}),
    State.PROBE_FAILED: lambda: failed_probe(),
}


def failed_probe() -> Status:
    status = judge("n", read_entry("n", STDIO_TWO), broken_lookup, nothing_stored)
    assert status is not None
    return status


def broken_lookup(_: str) -> Resolution:
    raise RuntimeError("catalog exploded")


@pytest.mark.requirement("readiness-states-nine")
def test_there_are_nine_states_and_each_is_reached():
    assert set(STATES) == set(EVERY_STATE)
    assert {state: reach().state for state, reach in EVERY_STATE.items()} == {state: state for state in STATES}


@pytest.mark.requirement("readiness-blocking-four", "connectors-badge-vs-block")
def test_exactly_four_states_block_a_spawn():
    blocking = {"missing_configuration", "needs_authorization", "needs_reauth", "declared_unavailable"}
    assert {state.value for state in STATES if blocks(state)} == blocking
    assert {state.value for state, reach in EVERY_STATE.items() if not reach().available} == blocking


@pytest.mark.requirement("readiness-labels")
def test_every_state_has_its_label():
    assert [label(state) for state in STATES] == [
        "Ready",
        "No credential required",
        "Needs authorization",
        "Token expired",
        "Needs re-auth",
        "Missing configuration",
        "Unavailable",
        "Secret store unreachable",
        "Probe failed",
    ]
    assert set(LABELS) == set(STATES)


@pytest.mark.requirement("readiness-severity-ranks", "connectors-sort-by-severity")
def test_severities_cover_every_state_and_an_unknown_one_ranks_like_ready():
    worst_first = [
        "declared_unavailable",
        "missing_configuration",
        "needs_reauth",
        "needs_authorization",
        "store_unavailable",
        "probe_failed",
        "token_expired",
        "ready",
        "no_credential_required",
    ]
    assert [rank(state) for state in worst_first] == list(range(9))
    assert (rank("brand_new"), needs_attention("brand_new")) == (7, False)
    assert [needs_attention(state) for state in worst_first] == [True] * 7 + [False] * 2
    assert set(RANKS) == set(STATES)
    rows = [("a", "ready"), ("b", "needs_authorization"), ("c", "missing_configuration"), ("d", "needs_authorization")]
    assert [name for name, _ in by_severity(rows, lambda row: row[1])] == ["c", "b", "d", "a"]


@pytest.mark.requirement("readiness-question")
def test_a_known_server_has_one_status_and_an_unknown_name_has_none():
    catalog = read_catalog({"known": {"type": "stdio", "command": "c"}})
    assert judge("not-a-real-server", catalog.find("not-a-real-server"), resolving(), nothing_stored) is None
    assert [status.name for status in judge_all(catalog, resolving(), nothing_stored)] == ["known"]


@pytest.mark.requirement("readiness-token-expired-not-blocking", "connectors-token-expired-not-blocking")
def test_an_expired_token_that_can_be_renewed_does_not_block():
    status = probe(OAUTH_SERVER, row=expired("r", "https://t/token"))
    assert (status.state, status.available) == ("token_expired", True)
    assert (status.reason_plain, status.reason_markdown, status.authorizable) == (None, None, False)


@pytest.mark.requirement("readiness-could-not-find-out-usable")
@pytest.mark.parametrize("state", [State.STORE_UNAVAILABLE, State.PROBE_FAILED])
def test_what_could_not_be_found_out_counts_as_usable(state):
    status = EVERY_STATE[state]()
    assert (status.state, status.available, status.reason_plain) == (state, True, None)


@pytest.mark.requirement("readiness-store-not-missing", "secrets-store-outage-no-fallthrough")
def test_a_name_that_could_not_be_looked_up_is_never_reported_as_unset():
    class Down:
        def read(self, _: str) -> str | None:
            raise StoreUnavailableError("503")

    loader = SecretsLoader(store=Down(), credentials={"STRAD_API_KEY": "stale"})
    entry = read_entry("s", {**OAUTH_SERVER, "headers": {"Authorization": "Bearer ${STRAD_API_KEY}"}})
    status = judge("s", entry, loader.resolution, nothing_stored)
    assert status is not None
    assert (status.state, status.label) == ("store_unavailable", "Secret store unreachable")
    assert (status.unreachable_variables, status.missing_variables) == (("STRAD_API_KEY",), ())
    assert "unresolved" not in repr(status)


@pytest.mark.requirement("readiness-probe-isolated")
def test_an_unexpected_error_makes_only_that_server_probe_failed():
    class OddError(Exception):
        """No error that the probe could know."""

    def raising(name: str) -> Resolution:
        if name == "THIRD":
            raise OddError("catalog exploded")
        return FOUND

    servers = {name: {"type": "stdio", "command": "c", "env": {"V": f"${{{name.upper()}}}"}} for name in ("one", "two")}
    catalog = read_catalog({**servers, "third": {**STDIO_TWO, "args": ["${THIRD}"]}, "four": OAUTH_SERVER})
    judged = judge_all(catalog, raising, nothing_stored)
    assert [status.state for status in judged] == ["ready", "ready", "probe_failed", "needs_authorization"]
    assert judged[2].error_message == "OddError: catalog exploded"


@pytest.mark.requirement("readiness-missing-names-all", "secrets-blank-is-missing")
def test_every_absent_name_is_listed_in_scan_order_and_none_that_resolves():
    both = probe(STDIO_TWO)
    one = probe(STDIO_TWO, variables={"ALPHA": "found"})
    assert (both.missing_variables, both.reason_plain) == (("ALPHA", "BETA"), "ALPHA, BETA unresolved")
    assert (one.missing_variables, one.reason_plain) == (("BETA",), "BETA unresolved")
    blank = judge("s", read_entry("s", STDIO_TWO), SecretsLoader(environment={"BETA": " "}).resolution, nothing_stored)
    assert blank is not None
    assert blank.missing_variables == ("ALPHA", "BETA")


@pytest.mark.requirement("readiness-default-not-missing")
@pytest.mark.parametrize("outcome", ["absent", "unreachable"])
def test_a_placeholder_with_a_default_never_counts_as_missing(outcome):
    raw = {"type": "stdio", "command": "npx", "env": {"MODE": "${MODE:-headless}"}}
    assert probe(raw, variables={"MODE": outcome}).state == "no_credential_required"


@pytest.mark.requirement("readiness-needs-authorization")
def test_an_oauth_server_without_a_credential_needs_authorization():
    status = probe(OAUTH_SERVER)
    assert (status.state, status.reason_plain, status.authorizable) == ("needs_authorization", NOT_AUTHORIZED, True)


@pytest.mark.requirement("readiness-needs-reauth", "https-can-refresh-false-for-cleartext")
@pytest.mark.parametrize(
    ("refresh_token", "token_endpoint"),
    [(None, "https://t/token"), ("", "https://t/token"), ("r", None), ("r", ""), ("r", "http://127.0.0.1/token")],
)
def test_an_expired_credential_that_cannot_be_renewed_needs_reauth(refresh_token, token_endpoint):
    status = probe(OAUTH_SERVER, row=expired(refresh_token, token_endpoint))
    assert (status.state, status.reason_plain, status.authorizable) == ("needs_reauth", NOT_RENEWABLE, True)


@pytest.mark.requirement("readiness-oauth-ready")
@pytest.mark.parametrize(
    ("expires_in_s", "state"), [(7200, "ready"), (None, "ready"), (1, "ready"), (0, "needs_reauth")]
)
def test_a_credential_is_ready_until_the_moment_it_expires(expires_in_s, state):
    assert probe(OAUTH_SERVER, row=StoredCredential(expires_in_s)).state == state


@pytest.mark.requirement("readiness-oauth-exact-key", "credential-key-catalog-edit-invalidates")
def test_only_the_credential_under_the_current_key_counts():
    rows = {"notion|staleconfighash": StoredCredential(7200), "notion": StoredCredential(7200)}
    status = judge("notion", read_entry("notion", OAUTH_SERVER), resolving(), rows.get)
    assert status is not None
    assert status.state == "needs_authorization"


@pytest.mark.requirement("readiness-static-header-resolved")
def test_a_static_credential_header_is_never_offered_an_authorization():
    raw = {**OAUTH_SERVER, "headers": {"X-Goog-Api-Key": "${GOOGLE_MAPS_API_KEY}"}}
    found, absent = probe(raw, variables={"GOOGLE_MAPS_API_KEY": "found"}), probe(raw)
    assert (found.state, found.authorizable) == ("ready", False)
    assert (absent.state, absent.authorizable) == ("missing_configuration", False)


@pytest.mark.requirement("readiness-no-credential")
def test_a_server_without_variables_needs_no_credential_and_one_whose_variables_resolve_is_ready():
    slack = {"type": "stdio", "command": "npx", "env": {"T": "${SLACK_BOT_TOKEN}"}}
    assert probe({"type": "stdio", "command": "npx"}).state == "no_credential_required"
    assert probe(slack, variables={"SLACK_BOT_TOKEN": "found"}).state == "ready"


@pytest.mark.requirement("readiness-check-order")
def test_declaration_then_unreachable_then_absent_then_the_credential_decide():
    tenant = {"type": "http", "url": "https://e.test/${TENANT}/mcp"}
    states = [
        probe({**STDIO_TWO, "unavailable": "Gone."}, variables={"ALPHA": "unreachable"}).state,
        probe(STDIO_TWO, variables={"BETA": "unreachable"}).state,
        probe(tenant).state,
        probe(tenant, variables={"TENANT": "found"}).state,
    ]
    assert states == ["declared_unavailable", "store_unavailable", "missing_configuration", "needs_authorization"]


@pytest.mark.requirement("readiness-unreachable-beats-absent")
def test_one_unreachable_name_hides_an_absent_one_and_the_server_stays_usable():
    status = probe(STDIO_TWO, variables={"ALPHA": "absent", "BETA": "unreachable"})
    assert (status.available, status.unreachable_variables, status.missing_variables) == (True, ("BETA",), ())


@pytest.mark.requirement("readiness-declared-skips-lookups")
def test_a_declared_server_is_judged_without_a_lookup():
    asked: list[str] = []

    def asking(name: str) -> Resolution:
        asked.append(name)
        return UNREACHABLE

    def asking_rows(key: str) -> None:
        asked.append(key)

    entry = read_entry("n", {**OAUTH_SERVER, "url": "https://${T}/", "unavailable": "Gone."})
    status = judge("n", entry, asking, asking_rows)
    assert status is not None
    assert (status.state, status.sources, asked) == ("declared_unavailable", (), [])


@pytest.mark.requirement("readiness-reason-forms")
def test_a_blocking_state_has_its_reason_in_two_forms_and_the_others_have_none():
    missing = probe({"type": "stdio", "command": "c", "env": {"K": "${STRAD_API_KEY}"}})
    assert (missing.reason_plain, missing.reason_markdown) == (
        "STRAD_API_KEY unresolved",
        "`STRAD_API_KEY` unresolved",
    )
    assert probe(STDIO_TWO).reason_markdown == "`ALPHA`, `BETA` unresolved"
    for state, reach in EVERY_STATE.items():
        status = reach()
        if state is not State.MISSING_CONFIGURATION:
            assert status.reason_plain == status.reason_markdown
        assert (status.reason_plain is None) == status.available


@pytest.mark.requirement("readiness-one-store-snapshot")
def test_one_list_asks_for_each_name_once_so_a_blip_cannot_divide_two_servers():
    reads: list[str] = []

    class GoesDown:
        def read(self, name: str) -> str | None:
            reads.append(name)
            if len(reads) > 1:
                raise StoreUnavailableError("503")
            return "value"

    catalog = read_catalog({name: {"type": "stdio", "command": "c", "env": {"K": "${K}"}} for name in "ab"})
    judged = judge_all(catalog, SecretsLoader(store=GoesDown()).resolution, nothing_stored)
    assert ([status.state for status in judged], reads) == (["ready", "ready"], ["K"])


@pytest.mark.requirement("readiness-one-store-snapshot")
def test_a_store_that_went_down_is_not_asked_again_within_one_list():
    reads: list[str] = []

    class Down:
        def read(self, name: str) -> str | None:
            reads.append(name)
            raise StoreUnavailableError("503")

    catalog = read_catalog({name: {"type": "stdio", "command": "c", "env": {"K": f"${{{name}}}"}} for name in "AB"})
    judged = judge_all(catalog, SecretsLoader(store=Down()).one_snapshot().resolution, nothing_stored)
    assert [status.state for status in judged] == ["store_unavailable"] * 2
    assert reads == ["A"]


@pytest.mark.requirement("readiness-named-only", "warnings-order-and-dedup")
def test_a_given_list_is_judged_alone_in_its_order_each_name_once():
    asked: list[str] = []

    def asking(name: str) -> Resolution:
        asked.append(name)
        return FOUND

    servers = {
        f"s{number}": {"type": "stdio", "command": "c", "env": {"K": f"${{K{number}}}"}} for number in range(100)
    }
    names = ["s7", "s3", "s7", "", None, "no-such-server", "s50"]
    judged = judge_named(read_catalog(servers), names, asking, nothing_stored)
    assert ([status.name for status in judged], asked) == (["s7", "s3", "s50"], ["K7", "K3", "K50"])


@pytest.mark.requirement("readiness-catalog-order", "catalog-entry-order-kept")
def test_all_servers_come_in_catalog_order():
    catalog = read_catalog(
        {
            "z-ready": {"type": "stdio", "command": "c"},
            "m-broken": STDIO_TWO,
            "a-declared": {"type": "stdio", "command": "c", "unavailable": "Gone."},
        }
    )
    judged = judge_all(catalog, resolving(), nothing_stored)
    assert [(status.name, status.state) for status in judged] == [
        ("z-ready", "no_credential_required"),
        ("m-broken", "missing_configuration"),
        ("a-declared", "declared_unavailable"),
    ]


@pytest.mark.requirement("readiness-fresh-moment")
def test_the_next_computation_sees_a_secret_and_a_credential_set_in_between():
    environment: dict[str, str] = {}
    rows: dict[str, StoredCredential] = {}
    catalog = read_catalog({"s": {"type": "stdio", "command": "c", "env": {"K": "${K}"}}, "o": OAUTH_SERVER})
    loader = SecretsLoader(environment=environment)
    before = judge_all(catalog, loader.resolution, rows.get)
    environment["K"] = "set"
    rows[credential_key("o", OAUTH_SERVER)] = StoredCredential(60)
    after = judge_all(catalog, loader.resolution, rows.get)
    assert [status.state for status in before] == ["missing_configuration", "needs_authorization"]
    assert [status.state for status in after] == ["ready", "ready"]


@dataclass
class CountingRows:
    """Stored rows that count how often they are read, and take no write."""

    rows: dict[str, StoredCredential]
    reads: list[str] = field(default_factory=list)

    def get(self, key: str) -> StoredCredential | None:
        self.reads.append(key)
        return self.rows.get(key)


def guard_against_contacts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every socket, name resolution, process and file that is opened from now on; each is refused as well."""
    contacts: list[str] = []

    def forbidden(what: str):
        def refuse(*_: object, **__: object) -> None:
            contacts.append(what)
            raise AssertionError(f"{what} used while judging")

        return refuse

    monkeypatch.setattr(socket, "socket", forbidden("socket"))
    monkeypatch.setattr(socket, "getaddrinfo", forbidden("name resolution"))
    monkeypatch.setattr(subprocess, "Popen", forbidden("process"))
    monkeypatch.setattr(builtins, "open", forbidden("file"))
    return contacts


@pytest.mark.requirement("readiness-local-only")
def test_the_shipped_servers_are_judged_from_local_inputs_in_every_state(monkeypatch):
    tree = shipped_catalog()
    contacts = guard_against_contacts(monkeypatch)
    catalog = read_catalog({**tree, "figma": {**tree["figma"], "unavailable": "Gone."}})
    keys = [credential_key(name, entry.credential_config()) for name, entry in catalog.entries.items()]
    reached = set()
    for row in (None, StoredCredential(60), expired(), expired("r", "https://t/token")):
        rows = {} if row is None else dict.fromkeys(keys, row)
        for resolution in (ABSENT, FOUND, UNREACHABLE, None):
            lookup = broken_lookup if resolution is None else answering(resolution)
            reached |= {status.state for status in judge_all(catalog, lookup, rows.get)}
    assert (reached, contacts) == (set(STATES), [])


@pytest.mark.requirement("readiness-never-spawns-job", "readiness-local-only", "readiness-ready-claims-little")
def test_judging_contacts_nothing_starts_nothing_and_leaves_the_rows_as_they_are(monkeypatch):
    contacts = guard_against_contacts(monkeypatch)
    closed_port = {"type": "http", "url": "http://127.0.0.1:9/mcp"}
    active = {"type": "http", "url": "http://127.0.0.1:9/other"}
    rows = CountingRows(
        {
            credential_key("expired", closed_port): expired("r", "https://t/token"),
            credential_key("active", active): StoredCredential(60, "r", "https://t/token"),
        }
    )
    catalog = read_catalog({"expired": closed_port, "active": active, "stdio": STDIO_TWO})
    kept = dict(rows.rows)
    for _ in range(10):
        judged = judge_all(catalog, resolving(), rows.get)
    assert [status.state for status in judged] == ["token_expired", "ready", "missing_configuration"]
    assert (len(rows.reads), rows.rows, contacts) == (20, kept, [])
    assert not {"connected", "reachable"} & set(judged[1].label.lower().split())


@pytest.mark.requirement("secrets-retargeted-key-not-required")
def test_outside_production_the_key_of_a_retargeted_server_is_not_required():
    raw = {
        "type": "streamable-http",
        "url": "https://zimmer.example.com/mcp?tool_groups=sessions",
        "headers": {"X-API-Key": "${ZIMMER_PROD_API_KEY}"},
    }
    staging = Instance("staging", "https://staging.example.com", "staging-key")
    production = Instance("production", "https://zimmer.example.com", "prod-key")
    assert probe(raw, name="zimmer-sessions", instance=staging).state == "ready"
    assert probe(raw, name="zimmer-sessions", instance=production).missing_variables == ("ZIMMER_PROD_API_KEY",)
    assert probe(raw, name="other", instance=staging).missing_variables == ("ZIMMER_PROD_API_KEY",)
    catalog = read_catalog({"zimmer-sessions": raw, "other": raw})
    judged = judge_all(catalog, resolving(), lambda _: None, staging)
    assert [status.state for status in judged] == ["ready", "missing_configuration"]
