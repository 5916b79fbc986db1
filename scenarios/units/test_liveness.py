"""Which ends of a launch are good ones, once nothing goes wrong any more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from harness.reference.credentials.row import TABLE, Credential, row_values
from harness.scenario.liveness import Launch, end_of
from harness.world.model import Event

NOW = 1_700_000_000.0
NOT_CONNECTED = "it is not connected, and nobody is asked for it"
LEFT_OUT = {"metadata": {"mcp_degraded_servers": [{"name": "a", "reason": "it did not connect"}]}}


def stage_of(told: str, refresh_token: str | None, session: dict[str, Any]) -> Any:
    """A stage on which server a came to this for S's runtime, with a row whose access token has run out."""
    row = Credential(
        server_name="a",
        server_url="https://a.test/mcp",
        client_id="client",
        credential_key="a|1",
        access_token="spent",
        refresh_token=refresh_token,
        token_endpoint="https://as.test/token",
        expires_at=NOW - 1,
    )
    tables = {TABLE: {"a|1": row_values(row)}}
    return SimpleNamespace(
        events=[Event(NOW, "S/claude", told, {"server": "a"})],
        rows=lambda table: tables.get(table, {}),
        row=lambda _table, _key: session,
        monitor=SimpleNamespace(stage=SimpleNamespace(now=NOW), servers={}),
    )


@pytest.mark.parametrize(
    ("told", "refresh_token", "session", "expected"),
    [
        ("server.connected", "good", {}, ""),
        ("server.needs_auth", None, LEFT_OUT, ""),
        ("server.needs_auth", "good", LEFT_OUT, NOT_CONNECTED),
        ("server.needs_auth", None, {}, NOT_CONNECTED),
        ("server.failed", None, {"metadata": {}}, NOT_CONNECTED),
    ],
)
def test_a_server_that_is_left_out_may_stay_so_only_where_the_next_spawn_asks_for_it(
    told, refresh_token, session, expected
):
    launch = Launch("S", NOW, "S/claude")
    assert end_of(stage_of(told, refresh_token, session), launch, "a") == expected
