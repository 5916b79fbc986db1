"""The table of credentials: what may be saved, what a change touches, and the repair of rows older than the rule."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from harness.reference.credentials import table
from harness.reference.credentials.migration import clear_non_https_endpoints, repaired
from harness.reference.credentials.row import (
    TABLE,
    Credential,
    InvalidCredentialError,
    credential_of,
    row_values,
    storable_endpoint,
)
from harness.reference.credentials.state import state_at
from harness.reference.oauth.flows import TABLE as FLOWS
from harness.reference.oauth.tokens import store_tokens
from harness.world import World
from harness.world.model import Hold
from scenarios.units.oauth_run import Ran
from scenarios.units.refresh_run import (
    ENDPOINT,
    HOUR,
    NOW,
    OLD_REFRESH,
    SECRET,
    TokenServer,
    connectors_state,
    credential,
    run_job,
    stored,
)

KEY = credential().credential_key
CLEARTEXT = ("http://as.test/token", "http://127.0.0.1:9000/token", "http://localhost/t", "http://[::1]/t", "ftp://c/t")
GOOD = ("https://as.test/token", "HTTPS://as.test/token", "https://id:s3cret@as.test/token", "https://[::1]/token")
BLANK = (None, "", " \t")


def changing(row: Credential | None, **changed: Any) -> Ran:
    """Save a row with these columns over what is stored; what was raised is the result."""

    async def program(world: World) -> Any:
        try:
            return await table.change(world, KEY, lambda before: replace(before or credential(), **changed))
        except InvalidCredentialError as error:
            return error

    return run_job(*([row] if row is not None else []), server=TokenServer(), program=program)


@pytest.mark.requirement("https-credential-refuses-save", "https-no-loopback-exception")
@pytest.mark.parametrize("endpoint", CLEARTEXT)
@pytest.mark.parametrize("row", [None, credential()], ids=["create", "update"])
def test_no_credential_with_a_cleartext_endpoint_is_saved(endpoint, row):
    ran = changing(row, token_endpoint=endpoint, access_token="other")
    assert isinstance(ran.result, InvalidCredentialError)
    assert str(ran.result) == "The token endpoint of 'notion' must be an https URL"
    assert ran.rows(TABLE) == ({} if row is None else {KEY: row_values(row)})


def test_a_refused_row_is_free_for_the_next_who_wants_it():
    def moved(endpoint: str) -> table.Changed:
        return lambda row: row and replace(row, token_endpoint=endpoint, scopes="a")

    async def program(world: World) -> Any:
        for endpoint in ("http://as.test/token", ENDPOINT):
            try:
                await table.change(world, KEY, moved(endpoint))
            except InvalidCredentialError:
                world.events.emit("refused")
        return await table.find(world, KEY)

    ran = run_job(credential(), server=TokenServer(), program=program)
    assert len(ran.named("refused")) == 1
    assert ran.result.scopes == "a"


@pytest.mark.requirement("https-credential-blank-legal", "https-can-refresh-false-for-cleartext")
@pytest.mark.parametrize("endpoint", BLANK)
def test_a_blank_endpoint_may_be_saved_and_means_that_a_human_must_authorize_again(endpoint):
    ran = changing(credential(), token_endpoint=endpoint, expires_at=NOW - 1)
    row = stored(ran)
    assert (ran.result, row.token_endpoint) == (row, endpoint)
    assert not state_at(row, NOW).can_refresh
    assert state_at(row, NOW).requires_reauth
    assert connectors_state(row) == "needs_reauth"


@pytest.mark.requirement("https-can-refresh-false-for-cleartext", "https-no-loopback-exception")
@pytest.mark.parametrize(
    ("endpoint", "refresh_token", "can"),
    [*((endpoint, "r", False) for endpoint in (*CLEARTEXT, *BLANK)), *((endpoint, "r", True) for endpoint in GOOD),
     (ENDPOINT, None, False), (ENDPOINT, "", False)],
)  # fmt: skip
def test_a_row_can_be_renewed_with_a_refresh_token_and_an_https_endpoint(endpoint, refresh_token, can):
    row = credential(token_endpoint=endpoint, refresh_token=refresh_token)

    async def program(world: World) -> Any:
        await table.insert_unchecked(world, row)
        return await table.find(world, KEY)

    found = run_job(server=TokenServer(), program=program).result
    assert found == row
    assert state_at(found, NOW).can_refresh is can


@pytest.mark.requirement("https-userinfo-permitted")
@pytest.mark.parametrize("endpoint", GOOD)
def test_a_credential_with_an_https_endpoint_is_saved_as_it_is(endpoint):
    ran = changing(None, token_endpoint=endpoint)
    assert stored(ran).token_endpoint == endpoint
    assert storable_endpoint(endpoint)


def test_a_change_is_timed_and_what_stays_equal_is_not_written():
    async def program(world: World) -> None:
        await world.clock.sleep(5)
        await table.change(world, KEY, lambda row: row)
        world.events.emit("same", row=row_values(await table.find(world, KEY) or credential()))
        await table.change(world, KEY, lambda row: row and replace(row, scopes="read"))

    before = credential()
    ran = run_job(before, server=TokenServer(), program=program)
    assert [credential_of(event["row"]) for event in ran.named("same")] == [before]
    assert stored(ran) == replace(before, scopes="read", updated_at=NOW + 5)


def test_a_row_is_deleted_where_nothing_is_left_of_it():
    async def program(world: World) -> Any:
        return await table.change(world, KEY, lambda row: None), await table.all_rows(world)

    ran = run_job(credential(), credential("other"), server=TokenServer(), program=program)
    assert ran.result == (None, (credential("other"),))


def test_two_who_change_one_row_lose_nothing_of_each_other():
    def scoped(text: str) -> Any:
        async def program(world: World) -> None:
            await table.change(world, KEY, lambda row: row and replace(row, scopes=(row.scopes or "") + text))

        return program

    hold = Hold("zimmer", "put row *", until=lambda event: event.name == "never", limit_seconds=9)
    ran = run_job(credential(), server=TokenServer(), program=scoped("a"), others={"other": scoped("b")}, holds=[hold])
    assert sorted(stored(ran).scopes or "") == ["a", "b"]


def test_a_row_comes_back_as_it_was_put():
    row = credential(
        client_secret=SECRET, scopes="a b", resource="", issuer="https://as.test", redirect_uri="https://z/cb",
        expires_at=None, refresh_token_unsupported=True, runtime_keys={"pi": "notion"},
    )  # fmt: skip
    assert credential_of(row_values(row)) == row
    assert credential_of({**row_values(row), "created_at": 1.0}) == row
    assert row_values(row) == asdict(row)


def granted(**changed: Any) -> Credential:
    return credential(access_token="granted", refresh_token=None, expires_at=None, **changed)


@pytest.mark.requirement("flow-store-upsert-by-key")
@pytest.mark.parametrize(
    ("before", "answered", "kept", "flag"),
    [(None, None, None, True), (OLD_REFRESH, None, OLD_REFRESH, False), (OLD_REFRESH, "r2", "r2", False),
     (None, "r2", "r2", False)],
)  # fmt: skip
def test_an_exchange_is_stored_over_the_row_of_its_key(before, answered, kept, flag):
    rows = [] if before is None else [credential(refresh_token=before)]
    new = replace(granted(), refresh_token=answered)

    async def program(world: World) -> Any:
        return await table.store(world, new)

    ran = run_job(*rows, server=TokenServer(), program=program)
    row = stored(ran)
    assert (row.access_token, row.refresh_token, row.refresh_token_unsupported) == ("granted", kept, flag)
    assert (row.expires_at, row.updated_at, ran.result) == (None, NOW, row)
    assert list(ran.rows(TABLE)) == [KEY]
    assert ran.named("credential.stored") == [{"server": "notion"}]
    assert store_tokens(rows[0] if rows else None, new) == replace(row, updated_at=new.updated_at)


@pytest.mark.requirement("https-reauthorize-rediscovers")
def test_authorizing_again_fills_the_endpoint_that_the_repair_has_cleared():
    async def program(world: World) -> None:
        await clear_non_https_endpoints(world)
        row = await table.find(world, KEY)
        assert row is not None
        world.events.emit("repaired", endpoint=row.token_endpoint)
        await table.store(world, granted(token_endpoint=ENDPOINT))

    ran = run_job(credential(token_endpoint="http://as.test/t"), server=TokenServer(), program=program)
    assert ran.named("repaired") == [{"endpoint": None}]
    assert stored(ran).token_endpoint == ENDPOINT
    assert state_at(stored(ran), NOW).can_refresh


OFFENDING = ["http://a/t", "https://a/t", "", None, "HTTPS://b/t", "ftp://c"]


@pytest.mark.requirement("https-migration-clears-to-null")
def test_the_repair_clears_every_endpoint_that_may_not_be_there():
    rows = [credential(f"s{number}", token_endpoint=endpoint) for number, endpoint in enumerate(OFFENDING)]
    ran = run_job(*rows, server=TokenServer(), program=clear_non_https_endpoints)
    after = [stored(ran, row.server_name).token_endpoint for row in rows]
    assert after == [None, "https://a/t", "", None, "HTTPS://b/t", None]
    assert after == [repaired(endpoint) for endpoint in OFFENDING]
    assert ran.result == (rows[0].credential_key, rows[5].credential_key)


@pytest.mark.requirement("https-migration-keeps-rest")
def test_the_repair_touches_nothing_else_and_finds_nothing_the_second_time():
    async def program(world: World) -> Any:
        await world.clock.sleep(HOUR)
        return await clear_non_https_endpoints(world), await clear_non_https_endpoints(world)

    row = credential(token_endpoint="http://a/t", client_secret=SECRET, scopes="a")
    odd = {(TABLE, KEY): {**row_values(row), "created_at": 7}}
    ran = run_job(server=TokenServer(), rows=odd, program=program)
    assert ran.rows(TABLE) == {KEY: {**row_values(row), "token_endpoint": None, "created_at": 7}}
    assert ran.result == ((KEY,), ())


@pytest.mark.requirement("https-migration-covers-flows")
def test_the_repair_drops_the_flows_that_could_not_be_exchanged():
    flows = {(FLOWS, name): {"state": name, "token_endpoint": endpoint}
             for name, endpoint in {"a": "http://a/t", "b": "https://a/t", "c": None}.items()}  # fmt: skip
    ran = run_job(server=TokenServer(), rows=flows, program=clear_non_https_endpoints)
    assert list(ran.rows(FLOWS)) == ["b"]
    assert ran.result == ()


def test_the_repair_sees_a_row_as_it_is_under_its_lock():
    async def healed(world: World) -> None:
        await table.change(world, KEY, lambda row: row and replace(row, token_endpoint=ENDPOINT))
        world.events.emit("healed")

    hold = Hold("zimmer", "lock row *", until=lambda event: event.name == "healed")
    row = credential(token_endpoint="http://a/t")
    ran = run_job(row, server=TokenServer(), program=clear_non_https_endpoints, others={"other": healed}, holds=[hold])
    assert (ran.result, stored(ran).token_endpoint) == ((), ENDPOINT)
