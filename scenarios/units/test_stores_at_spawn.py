"""The stores around a spawn: what is written and forgotten before it, after a consent, and what a running CLI loses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes.claude.command import program as claude_program
from fake_runtimes.claude.credentials import lookup_key
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.plan import Plan
from fake_runtimes.profile import load_profile
from fake_servers.mcp import HttpServer
from fake_servers.oauth import AuthorizationServer, Protected, Resource, Site
from harness.reference.credentials.cron import run_refresh_job
from harness.reference.credentials.key import pi_account
from harness.reference.credentials.writers.registry import registered_writers
from harness.reference.oauth.web import initiate
from harness.reference.session.job import run_session
from harness.world import World
from harness.world.model import Hold, Simulation
from harness.world.model.simulation import DEFAULT_START_SECONDS
from scenarios.claude_runs import ARGV, CLONE, NEW, OLD
from scenarios.units import oauth_house, refresh_run
from scenarios.units.oauth_run import START_SECONDS, run_world
from scenarios.units.spawn_gate_run import (
    CACHE,
    HOME,
    STORE,
    TOKEN,
    Session,
    answers_json,
    credential,
    order_of,
    remote,
)
from scenarios.units.writer_run import CLAUDE, WRITERS, full, launched, program, staged_file, writing
from scenarios.units.writer_run import HOME as WRITER_HOME

CODEX_STORE = f"{HOME}/.codex/.credentials.json"


def poisoned(*names: str) -> str:
    """A memory in which these servers were refused a second ago."""
    return json.dumps({name: {"timestamp": START_SECONDS * 1000 - 1000} for name in names})


@pytest.mark.requirement(
    "store-inject-clears-entry", "store-inject-clears-before-spawn", "writers-written-at-every-spawn"
)
def test_a_spawn_writes_then_forgets_the_servers_it_injects_then_starts():
    names = ("notion", "linear")
    session = Session(
        {name: remote(name) for name in names},
        credentials=[credential(name) for name in names],
        files={CACHE: poisoned(*names, "other")},
    )
    assert list(json.loads(session.text(CACHE) or "")) == ["other"]
    assert set(session.tokens()) == set(names)
    happened = [event.name for event in session.ran.events]
    order = [happened.index(name) for name in ("credential.injected", "needs_auth.cleared", "spawn")]
    assert order == sorted(order)


@pytest.mark.requirement("writers-written-at-every-spawn")
@pytest.mark.parametrize("meanwhile", ["stays", "is removed"])
def test_every_spawn_writes_the_store_anew_before_its_process_starts(meanwhile):
    async def twice(world: World, order: Any) -> int:
        await run_session(world, order)
        if meanwhile == "is removed":
            await world.files.remove(STORE)
        world.events.emit("between")
        return await run_session(world, order)

    session = Session({"notion": remote("notion")}, credentials=[credential("notion")], program=twice)
    assert session.tokens() == {"notion": "access-of-notion"}
    told = ("credential.injected", "spawn", "between")
    happened = [event.name for event in session.ran.events if event.name in told]
    assert happened == ["credential.injected", "spawn", "between", "credential.injected", "spawn"]


@pytest.mark.requirement("writers-codex-zimmer-refreshes", "writers-codex-rewrites-every-spawn")
def test_codex_is_handed_a_token_that_zimmer_has_just_renewed():
    renewed = answers_json(200, access_token="renewed", refresh_token="next", expires_in=3600)
    session = Session(
        {"notion": remote("notion")},
        {f"POST {TOKEN}": renewed},
        credentials=[credential("notion", 10 * 60)],
        runtime="codex",
    )
    (entry,) = json.loads(session.text(CODEX_STORE) or "").values()
    assert entry["access_token"] == "renewed"
    assert entry["expires_at"] > (START_SECONDS + 15 * 60) * 1000
    assert session.posts == 1


# --- after a consent --------------------------------------------------------------------------------------------------


def authorized(session: str | None, profile: str = "notion", until: str = "spawn", **options: Any) -> Any:
    """A consent to a server that an earlier session was refused by, and the spawn of another session after it."""
    stage = oauth_house.stage_of(profile)
    tree = {"notion": {"title": "Notion", "type": "streamable-http", "url": oauth_house.NOTION["notion"]["url"]}}
    deps = oauth_house.deployment(tree, **options)

    async def body(world: World) -> Any:
        started = await initiate(world, deps, server_name="notion", session=session)
        answer = await oauth_house.finish(world, deps, started, stage)
        if until == "spawn":
            await run_session(world, order_of(tree))
        return answer

    async def ends(_world: World, _argv: Any) -> int:
        return 0

    rows = dict(oauth_house.parked("s1", "notion"))
    return run_world(
        body,
        servers=stage.servers,
        rows=rows,
        files={CACHE: poisoned("notion", "other")},
        launcher=lambda *_: ends,
    )


@pytest.mark.requirement("store-authorize-clears-entry")
@pytest.mark.parametrize("session", ["s1", None])
def test_a_consent_makes_every_runtime_forget_that_the_server_wanted_one(session):
    ran = authorized(session, until="consent")
    assert list(json.loads(ran.simulation.tree.read(CACHE, 0))) == ["other"]


@pytest.mark.requirement("store-sessionless-clear-at-injection")
def test_after_a_consent_without_a_session_the_next_spawn_forgets_it_at_the_latest():
    ran = authorized(None)
    assert list(json.loads(ran.simulation.tree.read(CACHE, 0))) == ["other"]


# --- no push into what runs -------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-pi-no-push")
def test_a_renewal_by_the_job_writes_nothing_for_a_pi_that_runs():
    row = refresh_run.credential("notion")
    staged = staged_file("linear", f"{HOME}/.pi/agent/mcp-oauth")
    kept = f"/run/keyring/pi-mcp-adapter.oauth/{pi_account('notion')}"
    old = json.dumps({"serverUrl": row.server_url, "tokens": {"accessToken": "held", "refreshToken": "by Pi"}})

    async def body(world: World) -> None:
        await run_refresh_job(world, registered_writers(world))

    ran = run_world(
        body,
        servers={"https://as.test": refresh_run.TokenServer()},
        rows=refresh_run.rows_of(row),
        files={staged: "{}", kept: old},
        launcher=lambda argv, _env, _directory: launched(argv),
    )
    assert refresh_run.stored(ran).access_token == refresh_run.NEW_ACCESS
    tree = ran.simulation.tree
    assert tree.stat(kept, 0) is not None
    assert (tree.read(staged, 0), tree.read(kept, 0).decode()) == (b"{}", old)
    assert tree.stat(staged_file("notion", f"{HOME}/.pi/agent/mcp-oauth"), 0) is None
    assert {asked["operation"] for asked in ran.named("keyring")} == {"read"}


# --- a runtime that knows no lock of ours -----------------------------------------------------------------------------


@pytest.mark.requirement("store-cli-does-not-lock")
@pytest.mark.parametrize("profile", [OLD, NEW])
@pytest.mark.parametrize("overlapping", [False, True])
def test_what_a_running_cli_saves_between_our_read_and_our_rename_is_lost_which_is_a_known_hole(profile, overlapping):
    url = "https://srv.test/mcp"
    authorization = AuthorizationServer("/as")
    access, refresh = authorization.issue("client-123", now=DEFAULT_START_SECONDS, expires_in=0)
    site = Site(authorization, Protected(HttpServer(), authorization, Resource("/mcp")))
    key = lookup_key(LoadedServer("srv", "http", url=url))
    entry = {"accessToken": access, "refreshToken": refresh, "clientId": "client-123", "expiresAt": 1}
    store = f"{CLAUDE}/.credentials.json"
    saved = Hold("zimmer", f"write {store}", lambda event: event.actor == "claude" and event.name == "ended")
    simulation = Simulation(servers={"https://srv.test": site}, holds=[saved] if overlapping else [])
    for path, text in {
        store: json.dumps({"mcpOAuth": {key: entry}}),
        f"{CLONE}/.mcp.json": json.dumps({"mcpServers": {"srv": {"type": "http", "url": url}}}),
    }.items():
        simulation.tree.make_directory(path.rpartition("/")[0], 0o755, 0, 0.0)
        simulation.tree.write(path, text.encode(), 0o600, 0, 0.0)
    # not overlapping: Zimmer comes when the CLI has long ended
    credential = full("linear", expires_at_ms=None)
    simulation.start("zimmer", program(after(0 if overlapping else 600, writing(WRITERS["claude"], credential)), {}),
                     env={"HOME": WRITER_HOME}, directory="/")  # fmt: skip
    simulation.start("claude", claude_program(load_profile(profile), Plan()), ARGV,
                     env={"HOME": WRITER_HOME, "PATH": "/bin"}, directory=CLONE, after_seconds=(1.0,))  # fmt: skip
    outcome = simulation.run()
    assert outcome.verdict == "done"
    assert (outcome.unmet_holds, outcome.unreached_holds) == ((), ())
    connected = [event.details["seconds"] for event in outcome.events if event.name == "server.connected"]
    assert [seconds < 5 for seconds in connected] == [True]  # it has waited for nobody
    left = json.loads(simulation.tree.read(store, 0))["mcpOAuth"]
    assert authorization.tokens[-1].access != access
    assert left[key]["accessToken"] == (access if overlapping else authorization.tokens[-1].access)
    assert "linear|0123456789abcdef" in left


def after(seconds: float, body: Any) -> Any:
    """A body that comes later."""

    async def later(world: World) -> Any:
        await world.clock.sleep(seconds)
        return await body(world)

    return later
