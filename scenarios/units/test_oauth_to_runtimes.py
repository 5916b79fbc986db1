"""From a click on Authorize to the bearer that a runtime sends: the credential reaches each runtime's own store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fake_runtimes.plan import Plan, Turn
from fake_runtimes.profile import load_profile
from fake_servers.oauth import Answer as Scripted
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.oauth.web import initiate
from harness.reference.session.job import run_session
from harness.scenario.runtimes import runtime_programs
from harness.world import World
from scenarios.session_runs import ARGV
from scenarios.units.oauth_house import NOTION, deployment, finish, only, parked, stage_of
from scenarios.units.oauth_run import Ran, run_world
from scenarios.units.spawn_gate_run import CLONE, HOME, SESSION, order_of

PROFILES = {"claude": "claude-2.1.268", "codex": "codex-0.146.0", "pi": "pi-0.84.1+2.32.1"}
TREE = {"notion": {"title": "Notion", **NOTION["notion"]}}
LINEAR = {"notion": {**TREE["notion"], "url": "https://linear.test/mcp"}}


def authorized_and_run(
    stage: Any, runtimes: tuple[str, ...], session: str | None, tree: Mapping[str, Any] = TREE
) -> Ran:
    """Authorize the server once, then start a session of each runtime in turn."""
    deps = deployment(tree)

    async def program(world: World) -> list[int]:
        started = await initiate(world, deps, server_name="notion", session=session)
        await finish(world, deps, started, stage)
        codes = []
        for runtime in runtimes:
            order = order_of(tree, runtime=runtime, oauth=OAuthSettings("zimmer.example.com"))
            flags = ("--sandbox", "danger-full-access") if runtime == "codex" else ()
            argv = (*ARGV[runtime][:-1], *flags, ARGV[runtime][-1])
            codes.append(await run_session(world, replace(order, argv=argv)))
        return codes

    def launcher(argv: Any, _variables: Any, _directory: str) -> Any:
        name = argv[0].rpartition("/")[2]
        if name not in PROFILES:
            return None
        return runtime_programs()[name](load_profile(PROFILES[name]), Plan((Turn(seconds=90.0),)))

    rows = {**parked(SESSION, "notion")}
    files = {f"{CLONE}/.git/info/exclude": "", f"{HOME}/.claude/.keep": ""}
    return run_world(
        program, servers=stage.servers, rows=rows, files=files, launcher=launcher, env={"PATH": "/usr/bin"}
    )


@pytest.mark.requirement("flow-tokens-land-in-runtime-store", "flow-zimmer-runs-whole-flow")
@pytest.mark.parametrize("runtime", sorted(PROFILES))
def test_the_first_request_of_a_runtime_bears_the_token_that_was_issued(runtime: str) -> None:
    stage = stage_of("notion")
    ran = authorized_and_run(stage, (runtime,), SESSION)
    generation = only(stage.authorization.tokens)
    posts = [knock for knock in stage.protected.requests if knock.who != "zimmer" and knock.method == "POST"]
    assert {knock.token for knock in posts} == {generation.access}
    assert {knock.status for knock in posts} <= {200, 202}
    assert "notion" in {details["server"] for details in ran.named("server.connected")}
    names = [event.name for event in ran.events if event.name in ("credential.stored", "spawn")]
    assert names[0] == "credential.stored"


@pytest.mark.requirement("authorize-credential-keyed-by-config")
def test_a_connector_that_was_authorized_from_its_page_serves_sessions_of_every_runtime() -> None:
    stage = stage_of("linear")
    ran = authorized_and_run(stage, ("claude", "codex"), None, LINEAR)
    assert [details["runtime"] for details in ran.named("credential.injected")] == ["claude", "codex"]
    assert len(stage.authorization.received("token")) == 1


@pytest.mark.requirement("flow-tokens-land-in-runtime-store", "flow-store-upsert-by-key")
@pytest.mark.parametrize("runtime", sorted(PROFILES))
@pytest.mark.parametrize("seconds", [1e308, 10**18])
def test_a_token_that_is_said_to_live_for_ever_reaches_the_runtime(runtime: str, seconds: float) -> None:
    stage = stage_of("notion", token_answers=(Scripted(says={"expires_in": seconds}),))
    ran = authorized_and_run(stage, (runtime,), SESSION)
    assert ran.result == [0]
    assert [details["runtime"] for details in ran.named("credential.injected")] == [runtime]
    assert "notion" in {details["server"] for details in ran.named("server.connected")}
