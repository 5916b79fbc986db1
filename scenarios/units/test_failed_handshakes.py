"""What becomes of a session whose servers fail in the handshake: authorize, try again, or go on without them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness.reference.catalog.entry import read_entry
from harness.reference.credentials.authorized import is_server_authorized
from harness.reference.credentials.row import TABLE
from harness.reference.credentials.state import is_active
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.oauth.web import initiate
from harness.reference.session import routes
from harness.reference.session import rows as sessions
from harness.reference.session.blocking import offered
from harness.reference.session.failed_handshakes import takes_oauth
from harness.reference.session.gate import is_listed
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.reference.session.routes import Failing
from harness.world import Request, Response, World
from harness.world.model import Fault
from scenarios.units.failed_handshakes_run import (
    CLOSED,
    CONNECTED,
    DEAD_GRANT,
    FILES,
    INVALID_TOKEN,
    NOTION,
    REFUSED_KEY,
    STATIC,
    UNAUTHORIZED,
    Handshakes,
)
from scenarios.units.oauth_house import deployment, finish, stage_of
from scenarios.units.oauth_run import START_SECONDS
from scenarios.units.spawn_gate_run import CACHE, HOME, HOUR, SESSION, STORE, credential, deps_of, remote, stdio

NOW = START_SECONDS
OTHER = {"other": remote("other")}
STALE_NEEDS_AUTH = json.dumps({"notion": {"timestamp": 1}, "linear": {"timestamp": 1}})
SAID_TWICE = f"{REFUSED_KEY} | {CLOSED}"


def held(name: str = "notion") -> str:
    """Claude's store with the pair of a server's row."""
    row = credential(name)
    entry = {
        "serverName": name, "serverUrl": row.server_url, "clientId": "client", "accessToken": row.access_token,
        "refreshToken": row.refresh_token, "expiresAt": int((NOW + HOUR) * 1000),
    }  # fmt: skip
    return json.dumps({"mcpOAuth": {row.runtime_keys["claude"]: entry}, "claudeAiOauth": {"accessToken": "account"}})


# --- a human has to authorize


@pytest.mark.requirement("gate-post-spawn-oauth-required", "failure-oauth-route", "failure-oauth-ignores-budget")
@pytest.mark.parametrize("retries", [0, 3])
@pytest.mark.parametrize("error", [UNAUTHORIZED, "Connection failed with status 401"])
def test_a_server_that_has_to_be_authorized_parks_the_session_whatever_was_tried_before(retries, error):
    run = Handshakes(NOTION, [{"notion": error}], metadata={"mcp_retry_count": retries} if retries else {})
    assert (run.row["status"], run.metadata.get("failure_reason")) == ("failed", "oauth_required")
    assert run.required == ["notion"]
    assert len(run.spawned) == 1
    assert run.retried == []
    assert run.record == {}
    assert run.metadata.get("mcp_retry_count", 0) == retries
    assert run.ran.simulation.now < START_SECONDS + 10
    assert [each["exit_code"] for each in run.ran.named("session.ended")] == [1]


@pytest.mark.requirement("failure-oauth-required-list", "gate-required-entry-shape")
def test_the_list_names_the_server_its_address_as_in_the_catalog_and_what_was_said():
    catalog = {"notion": remote("notion", url="https://${TENANT}.test/mcp"), **FILES}
    run = Handshakes(
        catalog, [{"notion": UNAUTHORIZED, "files": CLOSED}], lookup={"TENANT": "notion"}.get,
        servers={"https://notion.test": Nobody()},
    )  # fmt: skip
    assert run.metadata["oauth_required_servers"] == [
        {"server_name": "notion", "server_url": "https://${TENANT}.test/mcp", "error": UNAUTHORIZED}
    ]


class Nobody:
    """A server that knows of nothing."""

    def handle(self, request: Request, now: float, who: str) -> Response:
        return Response(404)


@pytest.mark.requirement(
    "gate-mixed-oauth-wins",
    "failure-oauth-ends-the-pass",
    "failure-heal-not-on-oauth",
    "gate-fatal-is-human-resolvable",
)
@pytest.mark.parametrize("beside", [{"zimmer-sessions": INVALID_TOKEN}, {"files": CLOSED}, {"files": SAID_TWICE}])
def test_beside_a_server_that_has_to_be_authorized_nobody_is_left_out_or_tried_again(beside):
    run = Handshakes({**NOTION, **STATIC, **FILES}, [{**beside, "notion": UNAUTHORIZED}])
    assert run.required == ["notion"]
    assert run.record == {}
    assert run.retried == []
    assert "mcp_retry_count" not in run.metadata
    assert len(run.spawned) == 1


@pytest.mark.requirement("gate-post-spawn-nonauth-not-oauth", "failure-oauth-nonauth-rides-ladder")
@pytest.mark.parametrize(
    "error", [CLOSED, "Connection failed: Connection refused", "Connection failed: 403 Forbidden", SAID_TWICE]
)
def test_another_failure_of_a_server_without_a_credential_is_tried_again(error):
    run = Handshakes(NOTION, [{"notion": error}, {"notion": CONNECTED}])
    assert run.retried == [["notion"]]
    assert run.required == []
    assert run.row["status"] == "needs_input"


@pytest.mark.requirement("gate-post-spawn-not-capable", "failure-auth-static-header-degrades", "gate-only-fatal-class")
@pytest.mark.parametrize(
    ("catalog", "error"),
    [
        (STATIC, INVALID_TOKEN),
        (FILES, "Connection failed: Unauthorized"),
        ({"old": remote("old", unavailable="It is down.")}, UNAUTHORIZED),
    ],
)
def test_a_refusal_that_no_sign_in_can_help_costs_the_server_alone(catalog, error):
    (name,) = catalog
    run = Handshakes(catalog, [{name: error}])
    assert run.required == []
    assert "failure_reason" not in run.metadata
    assert run.record == {name: "their credentials were rejected"}
    assert run.retried == []
    assert len(run.spawned) == 2


@pytest.mark.requirement("gate-capable-needs-catalog", "failure-auth-static-header-degrades")
def test_a_server_that_the_catalog_does_not_have_takes_no_sign_in():
    assert not takes_oauth(None)
    assert routes.cause_of(Failing("gone", "Unauthorized")) == "rejected"


@pytest.mark.requirement("gate-skips-declared-unavailable")
def test_a_declared_server_that_refuses_is_left_out_and_the_session_runs():
    catalog = {"old": remote("old", unavailable="It is down."), **FILES}
    run = Handshakes(catalog, [{"old": UNAUTHORIZED, "files": CONNECTED}])
    assert list(run.record) == ["old"]
    assert "failure_reason" not in run.metadata
    assert [each["exit_code"] for each in run.ran.named("session.ended")] == [0]


@pytest.mark.requirement("gate-excludes-injected-servers")
def test_an_injected_server_that_refuses_changes_nothing_of_the_session():
    run = Handshakes(FILES, [{"zimmer-self-session": UNAUTHORIZED, "files": CONNECTED}])
    assert "zimmer-self-session" in next(iter(run.ran.named("session.prepared")))["servers"]
    assert (run.required, run.record, run.retried) == ([], {}, [])
    assert len(run.spawned) == 1


@pytest.mark.requirement("gate-single-predicate", "failure-oauth-capable-predicate", "failure-gate-same-predicate")
@pytest.mark.parametrize(
    ("entry", "capable"),
    [
        (remote("x"), True),
        (remote("x", type="sse", headers={"Idempotency-Key": "1"}), True),
        (remote("x", type="http", headers={"X-Author": "a"}), True),
        (remote("x", headers={"X-API-Key": " "}), True),
        (remote("x", headers={"X-API-Key": "k"}), False),
        (remote("x", headers={"PRIVATE-TOKEN": "k"}), False),
        (remote("x", unavailable="Down."), False),
        (stdio(), False),
    ],
)
def test_the_gate_and_the_pass_after_the_spawn_look_at_the_same_servers(entry, capable):
    read = read_entry("x", entry)
    assert is_listed(read) is capable
    cause = routes.cause_of(Failing("x", "Unauthorized", read.url, takes_oauth(read)))
    assert (cause == "unauthorized") is capable


# --- what is stored


@pytest.mark.requirement(
    "gate-authorized-401-clears-retries", "failure-auth-authorized-retries", "gate-fatal-is-human-resolvable"
)
def test_an_authorized_server_that_refuses_is_forgotten_as_refused_and_tried_again():
    seen: list[str] = []

    async def looks(world: World) -> None:
        await world.clock.sleep(10.0)
        seen.append((await world.files.read(CACHE)).decode())

    run = Handshakes(
        NOTION, [{"notion": UNAUTHORIZED}, {"notion": CONNECTED}], credentials=[credential("notion")],
        remembers=["notion"], others={"somebody": looks},
    )  # fmt: skip
    assert run.retried == [["notion"]]
    assert (run.required, run.record) == ([], {})
    assert json.loads(seen[0]) == {}


@pytest.mark.requirement("gate-authorized-401-clears-retries")
def test_only_the_refused_server_is_struck_off_the_memory():
    seen: list[str] = []

    async def looks(world: World) -> None:
        await world.clock.sleep(10.0)
        seen.append((await world.files.read(CACHE)).decode())

    run = Handshakes(
        NOTION, [{"notion": UNAUTHORIZED}, {"notion": CONNECTED}], credentials=[credential("notion")],
        files={CACHE: STALE_NEEDS_AUTH}, others={"somebody": looks},
    )  # fmt: skip
    assert list(json.loads(seen[0])) == ["linear"]
    assert run.record == {}


@pytest.mark.requirement("gate-post-spawn-oauth-required")
def test_a_credential_that_expired_while_the_runtime_started_is_none():
    run = Handshakes(NOTION, [{"notion": UNAUTHORIZED}], credentials=[credential("notion", 1.5, refresh_token=None)])
    assert run.required == ["notion"]


@pytest.mark.requirement(
    "gate-retry-survives-cofailure", "failure-auth-authorized-survives-peer", "gate-verdict-per-server",
    "failure-verdict-per-server", "failure-mixed-pass-paused-by", "failure-single-resume-per-pass",
)  # fmt: skip
def test_each_server_of_a_handshake_has_its_own_verdict():
    seen: list[Mapping[str, Any]] = []

    async def looks(world: World) -> None:
        await world.clock.sleep(10.0)
        seen.append((await sessions.read(world, SESSION))["metadata"])

    first = {"notion": UNAUTHORIZED, "zimmer-sessions": INVALID_TOKEN, "files": CLOSED}
    run = Handshakes(
        {**NOTION, **STATIC, **FILES}, [first, {"notion": CONNECTED, "files": CONNECTED}],
        credentials=[credential("notion")], others={"somebody": looks},
    )  # fmt: skip
    assert run.record == {"zimmer-sessions": "their credentials were rejected"}
    assert run.retried == [["notion", "files"]]
    assert len(run.spawned) == 2
    assert seen[0]["paused_by"] == "mcp_retry"
    assert [each["name"] for each in seen[0]["mcp_failed_servers"]] == ["notion", "files"]
    assert [each["name"] for each in seen[0]["mcp_degraded_servers"]] == ["zimmer-sessions"]
    assert "paused_by" not in run.metadata


@pytest.mark.requirement("gate-authorized-consulted-by-three")
@pytest.mark.parametrize(("seconds", "is_authorized"), [(HOUR, True), (None, True), (1.5, False)])
def test_the_pass_the_banner_and_the_initiate_action_agree_on_who_is_authorized(seconds, is_authorized):
    """The last of the rows expires while the runtime starts."""
    found: dict[str, bool] = {}

    async def story(world: World, order: Order) -> None:
        await run_session(world, order)
        entry = {"server_name": "notion", "server_url": "https://notion.test/mcp"}
        good = await is_server_authorized(world, order.catalog, entry)
        stale = {"status": "running", "metadata": {"oauth_required_servers": [entry]}}
        found["banner"] = offered(stale, lambda _entry: good) == ()
        answer = await initiate(world, deps_of(NOTION), server_name="notion", session=SESSION)
        found["initiate"] = any("already authorized" in text for text in answer.texts) or "already authorized" in str(
            answer.message
        )

    row = credential("notion", seconds, refresh_token=None)
    starts = [{"notion": UNAUTHORIZED}, {"notion": CONNECTED}]
    run = Handshakes(NOTION, starts, credentials=[row], program=story)
    found["pass"] = run.retried == [["notion"]]
    assert found == dict.fromkeys(("banner", "initiate", "pass"), is_authorized)


# --- a rejected grant


@pytest.mark.requirement(
    "gate-rejected-grant-precedes", "gate-rejected-grant-routes-oauth", "failure-grant-rejected-retires",
    "gate-fatal-is-human-resolvable",
)  # fmt: skip
def test_a_rejected_grant_ends_an_active_credential_in_both_places_and_parks():
    run = Handshakes(NOTION, [{"notion": DEAD_GRANT}], credentials=[credential("notion")], files={STORE: held()})
    assert run.required == ["notion"]
    assert "mcp_retry_count" not in run.metadata
    (row,) = run.ran.rows(TABLE).values()
    assert row["refresh_token"] is None
    assert not is_active(row["expires_at"] - run.ran.simulation.now)
    store = json.loads(run.text(STORE) or "{}")
    assert store == {"mcpOAuth": {}, "claudeAiOauth": {"accessToken": "account"}}
    assert run.ran.named("credential.retired") == [{"server": "notion"}]
    assert run.ran.named("needs_auth.cleared") == []


@pytest.mark.requirement("gate-rejected-grant-routes-oauth")
def test_a_session_with_a_config_directory_of_its_own_loses_the_copy_there():
    own = f"{HOME}/own"
    run = Handshakes(
        NOTION, [{"notion": DEAD_GRANT}], credentials=[credential("notion")], files={f"{own}/.keep": "", STORE: held()},
        env={"CLAUDE_CONFIG_DIR": own},
    )  # fmt: skip
    assert json.loads(run.text(f"{own}/.credentials.json") or "{}")["mcpOAuth"] == {}


@pytest.mark.requirement("gate-rejected-no-row-still-oauth")
def test_a_rejected_grant_without_a_row_parks_as_well():
    assert Handshakes(NOTION, [{"notion": DEAD_GRANT}]).required == ["notion"]


@pytest.mark.requirement("gate-retire-failure-retries", "failure-grant-retire-failure-retries")
def test_a_credential_that_cannot_be_retired_keeps_its_server_on_the_ladder():
    codex = f"{HOME}/.codex/.credentials.json"
    run = Handshakes(
        NOTION, [{"notion": DEAD_GRANT}, {"notion": CONNECTED}], credentials=[credential("notion")],
        files={codex: json.dumps({credential("notion").runtime_keys["codex"]: {"access_token": "a"}})},
        faults=[Fault("eacces", port="files", label=f"*{HOME}/.codex/*")],
    )  # fmt: skip
    assert run.required == []
    assert "failure_reason" not in run.metadata
    assert run.retried == [["notion"]]
    (row,) = run.ran.rows(TABLE).values()
    assert row["refresh_token"] == "refresh-of-notion"
    assert any(level == "error" and "notion" in text for level, text in run.log)


@pytest.mark.requirement("failure-grant-needs-capable-server")
@pytest.mark.parametrize("catalog", [STATIC, {"zimmer-sessions": stdio()}])
def test_the_same_words_about_another_kind_of_server_retire_nothing(catalog):
    namesake = credential("zimmer-sessions", entry=remote("zimmer-sessions"))
    run = Handshakes(catalog, [{"zimmer-sessions": DEAD_GRANT}], credentials=[namesake])
    assert list(run.record) == ["zimmer-sessions"]
    assert run.ran.named("credential.retired") == []
    (row,) = run.ran.rows(TABLE).values()
    assert row["refresh_token"] == "refresh-of-zimmer-sessions"


@pytest.mark.requirement("gate-unknown-phrasing-retries", "gate-cache-shaped-keeps-retry")
@pytest.mark.parametrize(
    "error",
    [
        "Refresh token has been revoked (401)",
        "Grant not found: Unauthorized",
        "The notion MCP server requires OAuth reauthentication. Run `codex mcp login notion`.",
        "OAuth authentication required. Run /mcp-auth notion.",
        "the connected Google account returned invalid_grant: Unauthorized",
        "Token refresh failed, retrying in 1000ms | HTTP Connection failed: Unauthorized | it says invalid_grant",
    ],
)
def test_other_words_about_a_refresh_retire_nothing(error):
    run = Handshakes(
        NOTION, [{"notion": f"Connection failed | {error}"}, {"notion": CONNECTED}],
        credentials=[credential("notion")], files={STORE: held()},
    )  # fmt: skip
    assert run.retried == [["notion"]]
    assert run.required == []
    (row,) = run.ran.rows(TABLE).values()
    assert row["refresh_token"] == "refresh-of-notion"
    assert "access-of-notion" in (run.text(STORE) or "")


@pytest.mark.requirement("gate-unknown-phrasing-retries")
def test_codex_own_words_of_a_rejected_grant_are_known():
    error = "OAuth token refresh failed: Server returned error response: invalid_grant: Grant not found"
    run = Handshakes(NOTION, [{"notion": error}], credentials=[credential("notion")], runtime="codex")
    assert run.required == ["notion"]


@pytest.mark.requirement("gate-rejected-grant-resolves")
def test_after_a_rejected_grant_authorize_starts_a_real_flow_that_resumes_the_session():
    stage = stage_of("notion")
    tree = {"notion": {"title": "Notion", "type": "streamable-http", "url": "https://notion.test/mcp"}}
    pages: list[Any] = []

    async def story(world: World, order: Order) -> None:
        await run_session(world, order)
        deps = deployment(tree)
        started = await initiate(world, deps, server_name="notion", session=SESSION)
        pages.append(started)
        pages.append(await finish(world, deps, started, stage))

    run = Handshakes(
        tree, [{"notion": DEAD_GRANT}], credentials=[credential("notion")], files={STORE: held()},
        servers=stage.servers, program=story, oauth=OAuthSettings("zimmer.example.com"),
    )  # fmt: skip
    assert str(pages[0].location).startswith(stage.authorization.issuer)
    (row,) = run.ran.rows(TABLE).values()
    assert is_active(row["expires_at"] - run.ran.simulation.now)
    assert row["access_token"] != "access-of-notion"
    assert run.row["status"] == "waiting"
    assert len(run.ran.rows("jobs")) == 1
