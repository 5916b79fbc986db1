"""Known-bad variants of the https rule where credentials are stored, renewed and repaired."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from harness.reference.credentials import table
from harness.reference.credentials.migration import COLUMN
from harness.reference.credentials.migration import repaired as repaired_rule
from harness.reference.credentials.refresh import refresh as refresh_rule
from harness.reference.credentials.row import TABLE
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.oauth.tokens import store_tokens as store_tokens_rule
from harness.reference.secrets.blank import is_blank
from harness.requirements.variants import variant
from harness.world import Request

REFRESH = "harness.reference.credentials.refresh"
ROW = "harness.reference.credentials.row"
STATE = "harness.reference.credentials.state"
TABLES = "harness.reference.credentials.table"
MIGRATION = "harness.reference.credentials.migration"


@variant(f"{ROW}:require_storable", catches=("https-credential-refuses-save",))
def any_endpoint_is_saved(row):
    """Checks nothing on saving."""


@variant(f"{ROW}:storable_endpoint", catches=("https-credential-refuses-save",))
def an_endpoint_need_only_be_there(endpoint):
    """Tests presence."""
    return True


@variant(f"{ROW}:storable_endpoint", catches=("https-credential-blank-legal",))
def an_endpoint_is_required(endpoint):
    """Makes rows of providers without an endpoint unsavable."""
    return acceptable_endpoint(endpoint)


@variant(f"{STATE}:can_refresh", catches=("https-can-refresh-false-for-cleartext",
                                          "https-cron-never-refreshes-cleartext",
                                          "https-injector-never-refreshes-cleartext",
                                          "refresh-needs-token-endpoint"))  # fmt: skip
def both_fields_need_only_be_there(refresh_token, token_endpoint):
    """Tests presence, and leaves the rest to what a refresh raises."""
    return not is_blank(refresh_token) and not is_blank(token_endpoint)


@variant(f"{REFRESH}:refresh", catches=("https-anti-brick", "https-refresh-direct-call-raises",
                                        "https-injector-never-refreshes-cleartext"))  # fmt: skip
async def the_request_comes_before_the_check(world, key, *, reason, seen=None, since=None, retries_left=True):
    """Posts, and validates on saving: the single-use token is burned and the row bricked."""
    row = await table.find(world, key)
    if row is not None and row.refresh_token and row.token_endpoint:
        form = {"grant_type": "refresh_token", "refresh_token": row.refresh_token, "client_id": row.client_id}
        request = Request("POST", row.token_endpoint, {}, urlencode(form).encode())
        await world.http.send(request, open_timeout_seconds=30.0, read_timeout_seconds=30.0)
    return await refresh_rule(world, key, reason=reason, seen=seen, since=since, retries_left=retries_left)


@variant("harness.reference.oauth.x:acceptable_x_endpoint", catches=("https-differs-from-x",))
def one_validator_serves_both(endpoint):
    """Lets X have userinfo, which its transport then overwrites."""
    return acceptable_endpoint(endpoint)


@variant(f"{MIGRATION}:repaired", catches=("https-migration-clears-to-null",))
def the_repair_guesses_https(endpoint):
    """Rewrites the scheme."""
    return endpoint.replace("http://", "https://") if endpoint else repaired_rule(endpoint)


@variant(f"{MIGRATION}:clear", catches=("https-migration-keeps-rest",))
async def the_repair_is_a_change_like_any_other(world, key):
    """Moves `updated_at`, and the pause of the refresh job begins."""
    transaction = await world.store.begin()
    row = await transaction.get(TABLE, key, lock=True)
    if row is not None:
        await transaction.put(TABLE, key, {**row.values, COLUMN: None, "updated_at": world.clock.now()})
    await transaction.commit()
    return row is not None


@variant(f"{MIGRATION}:drop", catches=("https-migration-covers-flows",))
async def old_flows_stay(world, key):
    """Repairs the credentials alone."""


@variant(f"{TABLES}:store_tokens", catches=("https-reauthorize-rediscovers",))
def the_stored_endpoint_is_reused(stored, granted):
    """Authorizes again and keeps the endpoint that the repair has cleared."""
    row = store_tokens_rule(stored, granted)
    return row if stored is None else replace(row, token_endpoint=stored.token_endpoint)


@variant(f"{TABLES}:store_tokens", catches=("flow-store-upsert-by-key",))
def an_exchange_overwrites_the_row(stored, granted):
    """Empties the refresh token when the answer has none."""
    return store_tokens_rule(None, granted)
