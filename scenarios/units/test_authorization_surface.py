"""The Authorize buttons as data, the routes behind them, and the note about credentials that nothing renews."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness.reference
from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials.cron import run_refresh_job
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.credentials.row import Credential, row_values
from harness.reference.credentials.state import StoredCredential, state_at
from harness.reference.readiness.probe import Status, judge
from harness.reference.readiness.states import State
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.surfaces.authorization import (
    INITIATE,
    Button,
    authorize_button,
    banner_button,
    is_admitted,
    one_shot_note,
    routes,
)
from harness.world import World
from scenarios.units.oauth_house import NOTION, credential_rows, deployment, flow_rows, only, stage_of, whole_flow
from scenarios.units.oauth_run import START_SECONDS, Answers, run_world

AUTHORIZE = Button("Authorize", INITIATE, {"server_name": "notion"})
AGAIN = Button("Re-authorize", INITIATE, {"server_name": "notion"})
BUTTONS = {State.NEEDS_AUTHORIZATION: AUTHORIZE, State.NEEDS_REAUTH: AGAIN}


def status_of(entry: dict[str, Any], row: StoredCredential | None = None, **variables: str) -> Status:
    """The status of one server."""
    catalog = read_catalog({"notion": entry})
    found = judge("notion", catalog.find("notion"), SecretsLoader(environment=variables).resolution, lambda _: row)
    assert found is not None
    return found


@pytest.mark.requirement("authorize-button-states", "authorize-button-label", "authorize-row-posts-initiate")
@pytest.mark.parametrize("state", list(State))
def test_the_button_is_there_in_two_states_and_reads_differently(state: State) -> None:
    assert authorize_button(Status("notion", "Notion", state)) == BUTTONS.get(state)


@pytest.mark.requirement("authorize-row-posts-initiate")
def test_row_and_banner_post_to_one_endpoint_and_the_banner_names_its_session() -> None:
    row, banner = authorize_button(Status("notion", "Notion", State.NEEDS_AUTHORIZATION)), banner_button("notion", "7")
    assert row is not None
    assert (row.action, row.method, dict(row.fields)) == ("/mcp_oauth/initiate", "post", {"server_name": "notion"})
    assert (banner.action, banner.method) == (row.action, row.method)
    assert banner.fields == {"server_name": "notion", "session_id": "7"}


@pytest.mark.requirement("authorize-no-button-token-expired", "authorize-button-label")
@pytest.mark.parametrize(
    ("row", "state", "button"),
    [
        (None, State.NEEDS_AUTHORIZATION, AUTHORIZE),
        (StoredCredential(60, None), State.READY, None),
        (StoredCredential(-1, "r", "https://as.test/t"), State.TOKEN_EXPIRED, None),
        (StoredCredential(-1, None, "https://as.test/t"), State.NEEDS_REAUTH, AGAIN),
        (StoredCredential(-1, "r", None), State.NEEDS_REAUTH, AGAIN),
        (StoredCredential(-1, "r", "http://as.test/t"), State.NEEDS_REAUTH, AGAIN),
    ],
)
def test_a_row_that_the_refresh_job_cures_has_no_button(
    row: StoredCredential | None, state: State, button: Button | None
) -> None:
    status = status_of(NOTION["notion"], row)
    assert status.state is state
    assert authorize_button(status) == button


@pytest.mark.requirement("authorize-no-button-missing-config", "authorize-no-button-static-header")
@pytest.mark.parametrize("name", ["X-API-Key", "X-Goog-Api-Key", "X-Figma-Token", "PRIVATE-TOKEN", "Authorization"])
def test_a_static_credential_never_has_the_button_however_it_is_spelt(name: str) -> None:
    entry = {**NOTION["notion"], "headers": {name: "${V}"}}
    for status, state in ((status_of(entry, V="token"), State.READY), (status_of(entry), State.MISSING_CONFIGURATION)):
        assert status.state is state
        assert authorize_button(status) is None


@pytest.mark.requirement("authorize-no-button-missing-config", "authorize-no-button-static-header")
@pytest.mark.parametrize("name", ["Idempotency-Key", "X-Author"])
def test_another_header_leaves_a_server_to_oauth_once_its_variables_are_set(name: str) -> None:
    entry = {**NOTION["notion"], "headers": {name: "${V}"}}
    assert authorize_button(status_of(entry, V="x")) == AUTHORIZE
    unset = status_of(entry)
    assert (unset.state, authorize_button(unset)) == (State.MISSING_CONFIGURATION, None)


# --- routes


@pytest.mark.requirement("authorize-forgery-exempt-actions", "flow-forgery-exempt-routes")
def test_forgery_protection_is_skipped_on_exactly_three_actions() -> None:
    assert [route.action for route in routes() if not route.protected] == ["initiate", "callback", "complete"]
    assert {route.action for route in routes() if route.protected} == {"status", "destroy"}


@pytest.mark.requirement("authorize-forgery-exempt-actions", "flow-forgery-exempt-routes", "authorize-no-user-auth")
@pytest.mark.parametrize(
    ("method", "action", "admitted"),
    [
        ("POST", "initiate", True),
        ("POST", "complete", True),
        ("GET", "callback", True),
        ("POST", "callback", True),
        ("DELETE", "destroy", False),
        ("POST", "status", False),
        ("POST", "anything", False),
        ("GET", "status", True),
    ],
)
def test_a_request_without_the_token_reaches_what_a_flow_itself_protects(
    method: str, action: str, admitted: bool
) -> None:
    assert is_admitted(method, action, has_token=False) is admitted
    assert is_admitted(method, action, has_token=True)


# --- one-shot credentials


def expired(seconds: float = 0.0) -> Credential:
    """A one-shot credential that expired so many seconds ago."""
    return Credential(
        "notion|0", "notion", "https://notion.test/mcp", "c", "a", token_endpoint="https://notion.test/token",
        expires_at=START_SECONDS - seconds, refresh_token_unsupported=True,
    )  # fmt: skip


@pytest.mark.requirement("authorize-note-while-green", "authorize-flag-set-at-exchange")
@pytest.mark.parametrize(("script", "noted"), [((), False), (("ok-without-refresh",), True)])
def test_the_note_stands_while_the_row_is_still_ready(script: tuple[str, ...], noted: bool) -> None:
    stage = stage_of("notion", token_answers=script)
    ran = run_world(whole_flow(deployment(), stage, "notion"), servers=stage.servers)
    values = only(credential_rows(ran).values())
    row = Credential(**values)
    state = state_at(row, START_SECONDS)
    assert (state.active, one_shot_note(row, START_SECONDS) is not None) == (True, noted)
    kept = StoredCredential(row.expires_at and row.expires_at - START_SECONDS, row.refresh_token, row.token_endpoint)
    assert status_of(NOTION["notion"], kept).state is State.READY
    assert one_shot_note(None, START_SECONDS) is None
    assert one_shot_note(replace(row, refresh_token="came later"), START_SECONDS) is None


@pytest.mark.requirement("authorize-no-refresh-token-is-one-shot", "authorize-reauth-is-manual")
def test_nothing_posts_and_nothing_asks_for_consent_when_a_one_shot_credential_lapses() -> None:
    answers = Answers({})

    async def program(world: World) -> None:
        for _ in range(4):
            await run_refresh_job(world, ())
            await world.clock.sleep(1800)

    for seconds in (-1.0, 0.0, 60.0):
        row = expired(seconds)
        ran = run_world(
            program, servers=answers.origins("https://notion.test"), rows={(CREDENTIALS, "notion|0"): row_values(row)}
        )
        assert state_at(row, START_SECONDS).requires_reauth is (seconds >= 0)
        assert flow_rows(ran) == []
        assert credential_rows(ran) == {"notion|0": row_values(row)}
    assert answers.requests == []


@pytest.mark.requirement("authorize-reauth-is-manual")
def test_only_the_endpoint_behind_the_button_starts_a_flow() -> None:
    package = Path(harness.reference.__file__).parent
    starting = ("planned_flow", "authorization_url", "put_only")
    callers = {
        (path.name, node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }
    assert {(file, name) for file, name in callers if name in starting} == {
        ("web.py", "planned_flow"),
        ("web.py", "authorization_url"),
        ("flows.py", "put_only"),
    }
    assert ("web.py", "start") in callers
