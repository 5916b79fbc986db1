"""The npx heal and the bin guard at work in whole sessions: what is broken, what the next start finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from fake_servers.npm import Package
from fake_servers.npm.arguments import install_key, parse
from harness.reference.prepare.request import Prepared, Record
from harness.reference.session import npx_tree
from harness.reference.session.order import Order
from harness.reference.session.prepare import PreparedClone
from harness.reference.session.spawn import spawn_runtime
from harness.world import World
from harness.world.model import Fault, Simulation
from scenarios.session_runs import CACHE, CLONE, HOME, SESSION, SessionRun, npx

CLAUDES = ("claude-2.1.268", "claude-2.1.328")
CTX = {"ctx": npx("ctx@latest")}
CONTEXT7 = Package("ctx")
KEY = install_key(parse(["-y", "ctx@latest"]))
TREE = f"{CACHE}/_npx/{KEY}"
BASE = f"{HOME}/.zimmer/clones"
BIN = "node_modules/.bin/ctx"
FOUR_STARTS_AND_ONE_RESUME = 5


def install(tree: Any, place: str, *, mode: int = 0o755, pieces: int = 4) -> None:
    """An install of `ctx` in a tree, whole or with modules missing."""
    package = f"{place}/node_modules/ctx"
    for directory in (f"{package}/dist", f"{place}/node_modules/.bin"):
        tree.make_directory(directory, 0o755, 0, 0.0)
    tree.write(f"{package}/package.json", json.dumps({"name": "ctx", "version": "1.0.0"}).encode(), 0o644, 0, 0.0)
    tree.write(f"{package}/dist/index.js", b"#!/usr/bin/env node\n", mode, 0, 0.0)
    for number in range(1, pieces + 1):
        tree.write(f"{package}/dist/part-{number}.js", b"", 0o644, 0, 0.0)
    tree.make_link(f"{place}/{BIN}", "../ctx/dist/index.js", 0, 0.0)


def half(tree: Any) -> None:
    """What an install that was killed left in the clone."""
    install(tree, TREE, pieces=1)


def entry_mode(run: Any, place: str = TREE) -> int:
    status = run.tree.stat(f"{place}/node_modules/ctx/dist/index.js", 0)
    assert status is not None
    mode: int = status.mode
    return mode


# --- heal -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("npx-heal-then-retry-connects")
@pytest.mark.parametrize("profile", CLAUDES)
def test_after_the_heal_the_retry_installs_afresh_and_connects(profile):
    run = SessionRun(profile, CTX, [CONTEXT7], edit=half).finished()
    assert run.removed() == [TREE]
    assert run.connected() == ["ctx"]
    assert len(run.spawned) == 2
    assert [event.details["tree"] for event in run.events("install.finished")] == [TREE]
    assert run.degraded == []
    assert run.actor.exit_code == 0


@pytest.mark.requirement("npx-heal-still-corrupt-package")
@pytest.mark.parametrize("profile", CLAUDES)
def test_a_package_broken_as_published_is_reinstalled_once_a_retry_and_then_left_out(profile):
    run = SessionRun(profile, CTX, [CONTEXT7._replace(broken=True)]).finished()
    assert run.removed() == [TREE] * 4
    assert len(run.events("install.started")) == FOUR_STARTS_AND_ONE_RESUME
    assert run.degraded == ["ctx"]
    (record,) = run.row["metadata"]["mcp_degraded_servers"]
    assert record["reason"] == "they did not connect after 3 retries"
    assert "ERR_MODULE_NOT_FOUND" in record["error"]
    assert [event.details["after_seconds"] for event in run.events("session.retry")] == [30, 60, 120]
    assert (run.actor.exit_code, len(run.spawned)) == (0, FOUR_STARTS_AND_ONE_RESUME)
    assert "ctx" in run.servers()


@pytest.mark.requirement("npx-heal-still-corrupt-package")
def test_a_retry_starts_no_earlier_than_its_delay_after_the_failure():
    run = SessionRun(CLAUDES[0], CTX, [CONTEXT7._replace(broken=True)]).finished()
    failures = [event.at_seconds for event in run.events("killed") if event.actor.startswith("zimmer/claude")]
    starts = [event.at_seconds for event in run.events("spawn") if event.actor == "zimmer"]
    # A preparation lies between the end of the delay and the start.
    waits = [round(start - failed, 3) for failed, start in zip(failures, starts[1:], strict=False)]
    assert waits == [30.5, 60.5, 120.5, 0.5]


@pytest.mark.requirement("npx-heal-covers-other-causes", "npx-heal-then-retry-connects")
@pytest.mark.parametrize("profile", CLAUDES)
def test_the_tree_of_a_single_server_whose_install_was_killed_is_healed(profile):
    killed = Fault("kill", port="files", actor="*npx", label="write */part-2.js", times=1)
    run = SessionRun(profile, CTX, [CONTEXT7], faults=[killed]).finished()
    assert [event.details["action"] for event in run.events("fault")] == ["kill"]
    assert run.removed() == [TREE]
    assert run.connected() == ["ctx"]
    assert run.degraded == []


@pytest.mark.requirement("npx-heal-covers-other-causes")
def test_a_server_that_is_left_out_gets_its_tree_healed_too_and_connects_at_the_next_start():
    spent = {"mcp_retry_count": 3}
    run = SessionRun(CLAUDES[0], CTX, [CONTEXT7], edit=half, metadata=spent).finished()
    assert [event.details["servers"] for event in run.events("session.degraded")] == [["ctx"]]
    assert run.removed() == [TREE]
    assert run.connected() == ["ctx"]
    assert run.degraded == [], "a server that connects is left out no more"
    assert len(run.spawned) == 2


@pytest.mark.requirement("npx-heal-not-for-permissions", "npx-heal-covers-other-causes")
def test_a_server_without_an_npx_tree_to_blame_heals_nothing():
    run = SessionRun(CLAUDES[0], {"gone": npx("nobody-published-this")}, []).finished()
    assert run.removed() == []
    assert run.degraded == ["gone"]


def healed(edit: Any, *errors: str, faults: Any = (), clone: str = CLONE, env: Mapping[str, str] | None = None) -> Any:
    """What one heal of a clone removes; the file system afterwards."""
    simulation = Simulation(faults=faults)
    edit(simulation.tree)
    answers = []

    async def body(world: World, _argv: Any) -> int:
        base = world.env.variables.get("AGENT_CLONES_DIR", BASE)
        answers.append(await npx_tree.heal_after(world, clone, base, errors))
        return 0

    actor = simulation.start("zimmer", body, env=env or {})
    simulation.run()
    error = simulation.ended(actor).error
    assert error is None, repr(error)
    return answers[0].removed, simulation.tree


def corrupt(place: str) -> str:
    """An error that names a tree."""
    return f"Error: Cannot find module './part-2.js' Require stack: - {place}/node_modules/ctx/dist/index.js"


@pytest.mark.requirement("npx-layout-containment-resolved", "npx-heal-containment")
def test_a_root_that_leads_out_of_the_clone_loses_nothing():
    outside = f"{HOME}/elsewhere/_npx"

    def edit(tree: Any) -> None:
        install(tree, f"{outside}/{KEY}", pieces=1)
        tree.make_directory(CACHE, 0o755, 0, 0.0)
        tree.make_link(f"{CACHE}/_npx", outside, 0, 0.0)

    for error in (corrupt(TREE), corrupt(f"_npx/{KEY}"), "Cannot find module from the _npx cache", corrupt(outside)):
        removed, tree = healed(edit, error)
        assert removed == ()
        assert tree.stat(f"{outside}/{KEY}/{BIN}", 0) is not None


@pytest.mark.requirement("npx-heal-isolated-path", "npx-heal-bare-hash", "npx-heal-missing-not-counted")
def test_the_walk_finds_isolated_roots_and_only_what_is_there():
    isolated = f"{CACHE}/isolated/twin-a/_npx/{KEY}"

    def edit(tree: Any) -> None:
        install(tree, isolated, pieces=1)
        tree.make_directory(f"{CACHE}/isolated/twin-a/_npx/aaaaaaaaaaaaaaaa", 0o755, 0, 0.0)

    for error in (corrupt(isolated), corrupt(f"_npx/{KEY}")):
        removed, tree = healed(edit, error, error)
        assert removed == (isolated,)
        assert tree.names(f"{CACHE}/isolated/twin-a/_npx", 0) == ("aaaaaaaaaaaaaaaa",)
    assert healed(edit, corrupt(f"{CACHE}/_npx/{KEY}"))[0] == ()


@pytest.mark.requirement("npx-heal-error-safe")
def test_a_tree_that_cannot_be_removed_stops_no_other():
    other = f"{CACHE}/_npx/aaaaaaaaaaaaaaaa"

    def edit(tree: Any) -> None:
        install(tree, TREE, pieces=1)
        install(tree, other, pieces=1)

    refused = Fault("eacces", port="files", label=f"remove {TREE}*")
    removed, tree = healed(edit, corrupt(TREE), corrupt(other), faults=[refused])
    assert removed == (other,)
    assert tree.stat(TREE, 0) is not None
    unreadable = Fault("eacces", port="files", label=f"list {CACHE}/_npx")
    assert healed(edit, corrupt(TREE), faults=[unreadable])[0] == ()


@pytest.mark.requirement("npx-layout-symlinked-base-ok")
def test_a_clone_that_is_reached_through_a_link_is_healed_by_either_name():
    disk = "/mnt/disk/clones"

    def edit(tree: Any) -> None:
        install(tree, f"{disk}/one/.npm-cache/_npx/{KEY}", pieces=1)
        tree.make_link("/clones", disk, 0, 0.0)

    for base in ("/clones", disk):
        removed, tree = healed(
            edit, corrupt(f"{base}/one/.npm-cache/_npx/{KEY}"), clone="/clones/one", env={"AGENT_CLONES_DIR": "/clones"}
        )
        assert removed == (f"{base}/one/.npm-cache/_npx/{KEY}",)
        assert tree.names(f"{disk}/one/.npm-cache/_npx", 0) == ()


# --- guard ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("npx-guard-before-claude-mcp-spawn", "npx-guard-repairs-0644")
@pytest.mark.parametrize("profile", CLAUDES)
def test_a_bin_without_an_execute_bit_has_one_when_claude_is_started(profile):
    modes: list[int] = []
    run = SessionRun(
        profile,
        CTX,
        [CONTEXT7],
        edit=lambda tree: install(tree, TREE, mode=0o644),
        at_spawn=lambda simulation, _env: modes.append(entry_mode(simulation)),
    ).finished()
    assert modes == [0o755]
    assert run.connected() == ["ctx"]
    (guarded,) = run.events("guard.ran")
    assert guarded.details["repaired"] == [f".npm-cache/_npx/{KEY}/{BIN}"]


@pytest.mark.requirement("npx-guard-before-claude-mcp-spawn", "prepare-spawn-claude-mcp-env")
def test_a_claude_without_servers_gets_neither_guard_nor_cache():
    seen: list[tuple[bool, Mapping[str, str]]] = []

    async def spawn_alone(world: World, order: Order) -> None:
        empty = Prepared((), {}, (), (), Record(), (), ())
        running = await spawn_runtime(world, order, PreparedClone(empty, None, {}, (), frozenset()))
        await running.send(())
        await running.ended(None)

    run = SessionRun(
        CLAUDES[0],
        {},
        program=spawn_alone,
        at_spawn=lambda simulation, env: seen.append((simulation.tree.stat(CACHE, 0) is not None, env)),
    ).finished()
    ((cache_is_there, variables),) = seen
    assert not cache_is_there
    assert not {"NPM_CONFIG_CACHE", "MCP_TIMEOUT"} & set(variables)
    assert run.events("guard.ran") == []


@pytest.mark.requirement("prepare-spawn-claude-mcp-env")
def test_claude_starts_with_a_cache_that_is_there_and_named_and_one_guard():
    seen: list[tuple[bool, str | None]] = []
    run = SessionRun(
        CLAUDES[0],
        CTX,
        [CONTEXT7],
        at_spawn=lambda simulation, env: seen.append(
            (simulation.tree.stat(CACHE, 0) is not None, env.get("NPM_CONFIG_CACHE"))
        ),
    ).finished()
    assert seen == [(True, CACHE)]
    assert len(run.events("guard.ran")) == 1


@pytest.mark.requirement("npx-guard-next-launch-repairs")
@pytest.mark.parametrize("profile", CLAUDES)
def test_a_package_that_installs_without_its_execute_bit_connects_at_the_retry(profile):
    run = SessionRun(profile, CTX, [CONTEXT7._replace(bin_mode=0o644)]).finished()
    assert [event.details["servers"] for event in run.events("session.retry")] == [["ctx"]]
    assert run.connected() == ["ctx"]
    assert run.degraded == []
    assert run.removed() == [], "a mode is no corruption"
    assert [len(event.details["repaired"]) for event in run.events("guard.ran")] == [0, 1]


@pytest.mark.requirement("npx-guard-not-on-codex")
@pytest.mark.parametrize(("profile", "as_app_server"), [("codex-0.169.0", False), ("codex-0.146.0", True)])
def test_codex_is_not_covered_by_the_guard_and_its_server_ends_left_out(profile, as_app_server):
    def edit(tree: Any) -> None:
        install(tree, TREE, mode=0o644)
        tree.make_directory(f"{HOME}/.codex", 0o755, 0, 0.0)
        trusted = f'[projects."{CLONE}"]\ntrust_level = "trusted"\n'
        tree.write(f"{HOME}/.codex/config.toml", trusted.encode(), 0o600, 0, 0.0)

    run = SessionRun(profile, CTX, [CONTEXT7], edit=edit, as_app_server=as_app_server).finished()
    assert entry_mode(run) == 0o644
    assert run.events("guard.ran") == []
    assert run.degraded == ["ctx"]
    assert len(run.spawned) == FOUR_STARTS_AND_ONE_RESUME
    assert run.actor.exit_code == 0


@pytest.mark.requirement("npx-guard-not-on-pi")
def test_pi_is_not_covered_by_the_guard():
    run = SessionRun("pi-0.84.1+2.32.1", CTX, [CONTEXT7], edit=lambda tree: install(tree, TREE, mode=0o644)).finished()
    assert run.events("guard.ran") == []
    assert entry_mode(run) == 0o644


def guarded(edit: Any, *, faults: Any = (), clone: str = CLONE, base: str = BASE, user: int = 0) -> Any:
    """What one run of the guard repairs and refuses; the file system afterwards."""
    simulation = Simulation(faults=faults)
    edit(simulation.tree)
    plans = []

    async def body(world: World, _argv: Any) -> int:
        plans.append(await npx_tree.guard_bins(world, clone, base))
        return 0

    actor = simulation.start("zimmer", body, user=user)
    simulation.run()
    error = simulation.ended(actor).error
    assert error is None, repr(error)
    return plans[0], simulation.tree


@pytest.mark.requirement("npx-guard-root-outside-not-walked", "npx-guard-shim-outside-refused", "npx-guard-all-roots")
def test_the_guard_follows_nothing_out_of_a_root_and_repairs_the_others():
    outside, isolated = f"{HOME}/elsewhere/_npx", f"{CACHE}/isolated/ctx/_npx/{KEY}"

    def edit(tree: Any) -> None:
        install(tree, f"{outside}/{KEY}", mode=0o644)
        install(tree, isolated, mode=0o644)
        tree.write(f"{HOME}/escapee.js", b"", 0o644, 0, 0.0)
        tree.make_link(f"{isolated}/node_modules/.bin/escapes", f"{HOME}/escapee.js", 0, 0.0)
        tree.make_link(f"{isolated}/node_modules/.bin/dangles", "../gone.js", 0, 0.0)
        tree.make_link(f"{CACHE}/_npx", outside, 0, 0.0)

    plan, tree = guarded(edit)
    assert [repair.target for repair in plan.repairs] == [f"{isolated}/node_modules/ctx/dist/index.js"]
    assert plan.refusals == (f".npm-cache/isolated/ctx/_npx/{KEY}/node_modules/.bin/escapes",)
    for untouched in (f"{outside}/{KEY}/node_modules/ctx/dist/index.js", f"{HOME}/escapee.js"):
        assert tree.stat(untouched, 0).mode == 0o644


@pytest.mark.requirement("npx-guard-roots-independent", "npx-guard-never-blocks-spawn")
def test_a_root_that_cannot_be_read_or_a_mode_that_cannot_be_changed_stops_no_other():
    isolated = f"{CACHE}/isolated/ctx/_npx/{KEY}"

    def edit(tree: Any) -> None:
        install(tree, TREE, mode=0o644)
        install(tree, isolated, mode=0o644)

    unreadable = Fault("eacces", port="files", label=f"list {CACHE}/_npx")
    refused = Fault("eacces", port="files", label=f"chmod {TREE}/*")
    for fault in (unreadable, refused):
        plan, tree = guarded(edit, faults=[fault])
        assert [repair.target for repair in plan.repairs] == [f"{isolated}/node_modules/ctx/dist/index.js"]
        assert tree.stat(f"{TREE}/node_modules/ctx/dist/index.js", 0).mode == 0o644
    assert guarded(lambda _tree: None)[0].repairs == ()
    assert guarded(edit, base="/another/base")[0].repairs == ()


@pytest.mark.requirement("npx-layout-symlinked-base-ok")
def test_a_clones_base_that_is_a_link_is_still_guarded():
    def edit(tree: Any) -> None:
        install(tree, f"/mnt/disk/one/.npm-cache/_npx/{KEY}", mode=0o644)
        tree.make_link("/clones", "/mnt/disk", 0, 0.0)

    plan, tree = guarded(edit, clone="/clones/one", base="/clones")
    assert len(plan.repairs) == 1
    assert tree.stat(f"/mnt/disk/one/.npm-cache/_npx/{KEY}/node_modules/ctx/dist/index.js", 0).mode == 0o755


# --- Pi, and what is left behind --------------------------------------------------------------------------------------


@pytest.mark.requirement("npx-pi-killed-install-leftover")
@pytest.mark.parametrize("profile", ["pi-0.84.1+2.32.1", "pi-0.86.1+2.36.0"])
def test_what_pis_killed_install_leaves_at_home_stays_and_the_fallback_connects_in_the_clone(profile):
    leftover = f"{HOME}/.npm/_npx/{KEY}"

    def edit(tree: Any) -> None:
        tree.make_directory(f"{leftover}/node_modules/.ctx-deadbeef/dist", 0o755, 0, 0.0)

    run = SessionRun(profile, CTX, [CONTEXT7._replace(install_seconds=70.0)], edit=edit).finished()
    assert run.events("resolver.killed")
    assert run.exists(f"{leftover}/node_modules/.ctx-deadbeef/dist")
    assert run.removed() == []
    assert run.connected() == ["ctx"]
    assert run.exists(f"{TREE}/{BIN}")
    assert healed(edit, corrupt(leftover), corrupt(f"_npx/{KEY}"))[0] == ()


@pytest.mark.requirement("npx-sizes-and-cleanup")
@pytest.mark.parametrize("profile", ["claude-2.1.268", "codex-0.146.0", "codex-0.169.0"])
def test_a_session_leaves_nothing_in_the_users_npm_directory(profile):
    catalog = {"ctx": npx("ctx@latest"), "twin": npx("ctx@latest"), "other": npx("other@latest")}
    run = SessionRun(profile, catalog, [CONTEXT7, Package("other")]).finished()
    assert sorted(run.connected()) == ["ctx", "other", "twin"]
    assert not run.exists(f"{HOME}/.npm")
    elsewhere = [path for path, _ in run.tree.walk(HOME) if "npm" in path and not f"{path}/".startswith(f"{CACHE}/")]
    assert elsewhere == []


def test_the_row_names_the_servers_that_wait_for_their_retry():
    run = SessionRun(CLAUDES[0], CTX, [CONTEXT7], edit=half).finished()
    (failed,) = run.row["metadata"]["mcp_failed_servers"]
    assert (failed["name"], failed["status"]) == ("ctx", "failed")
    assert run.simulation.table.committed.keys() == {("sessions", SESSION)}
