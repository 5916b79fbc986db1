"""A clone prepared through a world: written in one piece, kept out of commits, remembered; whatever interrupts it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest

from fake_servers.npm import Package
from harness.reference.prepare.failures import AirFailedError, UnresolvedVariablesError
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.reference.session.prepare import prepare_clone
from harness.world import World
from harness.world.model import Fault, Listed
from scenarios.session_runs import CLONE, PARENT, SessionRun, npx

PROFILES = {"claude": "claude-2.1.268", "codex": "codex-0.146.0", "pi": "pi-0.84.1+2.32.1"}
TREE = {"a": npx("a@latest"), "b": npx("b@latest")}
EXCLUDE = f"{CLONE}/.git/info/exclude"
MOST_POINTS = 200


def prepared(runtime: str, chosen: tuple[str, ...], **options: Any) -> SessionRun:
    """One preparation of the clone."""
    return SessionRun(PROFILES[runtime], TREE, chosen=chosen, program=prepare_clone, **options)


def names(run: SessionRun) -> set[str]:
    """The catalog servers that the config names."""
    text = run.text(run.config) or ""
    return {name for name in TREE if f'"{name}"' in text or f"[mcp_servers.{name}]" in text}


def killed_at_each_point(
    runtime: str, chosen: tuple[str, ...], before: Callable[[], SessionRun | None]
) -> Iterator[SessionRun]:
    """The same preparation, killed at its first switch point, at its second, and so on."""
    for point in range(MOST_POINTS):
        kill = Fault("kill", actor="zimmer", drawn=True, times=1)
        run = prepared(runtime, chosen, before=before(), faults=[kill], decisions=Listed([0] * point + [1]))
        if not run.events("fault"):
            return
        yield run
    raise AssertionError("a preparation has no end")


# --- one piece --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("prepare-write-atomic", "prepare-secret-file-mode")
@pytest.mark.parametrize("runtime", PROFILES)
def test_a_preparation_killed_anywhere_leaves_no_file_or_a_whole_one_that_no_commit_takes(runtime):
    whole = prepared(runtime, ("a",)).finished()
    points = 0
    for run in killed_at_each_point(runtime, ("a",), lambda: None):
        points += 1
        assert run.text(run.config) in (None, whole.text(whole.config)), f"point {points}"
        if run.exists(run.config):
            assert run.mode(run.config) == 0o600
            assert f"/{run.config.removeprefix(f'{CLONE}/')}" in (run.text(EXCLUDE) or "").splitlines()
        again = prepared(runtime, ("a",), before=run).finished()
        assert again.text(again.config) == whole.text(whole.config)
        assert again.row == whole.row
    assert points > 10


@pytest.mark.requirement("prepare-write-atomic")
@pytest.mark.parametrize("runtime", PROFILES)
def test_a_change_of_servers_killed_anywhere_leaves_the_old_file_or_the_new_one(runtime):
    def old() -> SessionRun:
        return prepared(runtime, ("a",)).finished()

    before, after = old(), prepared(runtime, ("b",), before=old()).finished()
    texts = (before.text(before.config), after.text(after.config))
    assert [names(before), names(after)] == [{"a"}, {"b"}]
    seen = set()
    for run in killed_at_each_point(runtime, ("b",), old):
        text = run.text(run.config)
        assert text in texts
        seen.add(text)
        # Whatever state was left, the next preparation knows which servers are its own to take away.
        assert names(prepared(runtime, ("b",), before=run).finished()) == {"b"}
    assert seen == set(texts)


@pytest.mark.requirement("prepare-write-atomic")
@pytest.mark.parametrize("action", ["enospc", "torn", "eacces"])
def test_a_disk_that_is_full_leaves_the_file_as_it_was(action):
    before = prepared("claude", ("a",)).finished()
    text = before.text(before.config)
    full = Fault(action, port="files", label=f"write {before.config}")
    run = SessionRun(PROFILES["claude"], TREE, chosen=("b",), before=before, faults=[full]).finished()
    assert run.text(run.config) == text
    assert run.spawned == []
    assert run.events("session.failed")
    assert run.actor.exit_code == 1


@pytest.mark.requirement("prepare-unresolved-fails-loudly", "prepare-whole-file-or-nothing")
def test_a_preparation_that_fails_leaves_the_file_and_says_in_the_row_what_is_missing():
    before = prepared("claude", ("a",)).finished()
    text = before.text(before.config)
    tree = {**TREE, "needy": npx("n", env={"K": "${MISSING_KEY}"})}
    run = SessionRun(PROFILES["claude"], tree, chosen=("a", "needy"), before=before).finished()
    assert run.text(run.config) == text
    assert run.row["metadata"]["failure_reason"] == "air_secret_unresolvable"
    assert run.row["metadata"]["unresolved_variables"] == ["MISSING_KEY"]
    assert run.spawned == []


# --- mode and exclude -------------------------------------------------------------------------------------------------


@pytest.mark.requirement("prepare-secret-file-mode")
@pytest.mark.parametrize("runtime", PROFILES)
def test_a_created_file_is_its_owners_alone_and_excluded_once(runtime):
    first = prepared(runtime, ("a",)).finished()
    line = f"/{first.config.removeprefix(f'{CLONE}/')}"
    assert first.mode(first.config) == 0o600
    first.tree.remove(first.config, 0, 0.0)
    second = prepared(runtime, ("a", "b"), before=first).finished()
    assert (second.text(EXCLUDE) or "").splitlines().count(line) == 1


@pytest.mark.requirement("prepare-secret-file-mode")
def test_a_repositorys_own_file_keeps_its_mode_and_stays_in_commits():
    def edit(tree: Any) -> None:
        tree.write(f"{CLONE}/.mcp.json", b'{"mcpServers": {"mine": {"command": "mine"}}}', 0o640, 0, 0.0)

    run = prepared("claude", ("a",), edit=edit).finished()
    assert run.mode(run.config) == 0o640
    assert set(run.servers()) == {"mine", "a", "zimmer-self-session"}
    assert run.text(EXCLUDE) is None


@pytest.mark.requirement("prepare-secret-file-mode")
@pytest.mark.parametrize("before", ["", "*.log\n", "*.log"])
def test_the_exclude_file_keeps_what_it_holds(before):
    run = prepared("claude", ("a",), edit=lambda tree: tree.write(EXCLUDE, before.encode(), 0o644, 0, 0.0)).finished()
    assert (run.text(EXCLUDE) or "").splitlines() == [*before.splitlines(), "/.mcp.json"]


@pytest.mark.requirement("prepare-secret-file-mode")
def test_a_worktree_excludes_in_the_repository_that_it_belongs_to():
    worktree, main = "/home/u/.zimmer/clones/worktree", "/home/u/repo/.git"

    def edit(tree: Any) -> None:
        tree.remove(f"{worktree}/.git/info", 0, 0.0)
        tree.remove(f"{worktree}/.git", 0, 0.0)
        tree.make_directory(f"{main}/worktrees/one", 0o755, 0, 0.0)
        tree.write(f"{worktree}/.git", f"gitdir: {main}/worktrees/one\n".encode(), 0o644, 0, 0.0)
        tree.write(f"{main}/worktrees/one/commondir", b"../..\n", 0o644, 0, 0.0)

    run = prepared("claude", ("a",), clone=worktree, edit=edit).finished()
    assert run.text(f"{main}/info/exclude") == "/.mcp.json\n"


def test_a_clone_without_a_repository_and_an_exclude_file_that_cannot_be_written_stop_nothing():
    def no_repository(tree: Any) -> None:
        tree.remove(f"{CLONE}/.git/info", 0, 0.0)
        tree.remove(f"{CLONE}/.git", 0, 0.0)

    assert prepared("claude", ("a",), edit=no_repository).finished().servers()
    refused = Fault("eacces", port="files", label=f"append {EXCLUDE}")
    run = prepared("claude", ("a",), faults=[refused]).finished()
    assert set(run.servers()) == {"a", "zimmer-self-session"}
    (event,) = run.events("session.prepared")
    assert any("kept out of commits" in warning for warning in event.details["warnings"])


# --- what is remembered -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("prepare-injected-recorded")
def test_the_row_remembers_what_the_preparation_owns_and_injects():
    run = prepared("claude", ("a",)).finished()
    assert run.row["metadata"]["prepared_mcp_servers"] == {"owned": ["a"], "injected": ["zimmer-self-session"]}
    assert run.row["custom_metadata"] == {"injected_mcp_servers": ["zimmer-self-session"]}
    assert run.row["mcp_servers"] == ["a"]


def test_a_name_that_the_repository_uses_is_not_taken_for_zimmers_own_after_a_kill():
    """The entry was there before: only once Zimmer's has replaced it may a later preparation take it away."""
    own = b'{"mcpServers": {"a": {"command": "mine"}}}'

    def edit(tree: Any) -> None:
        tree.write(f"{CLONE}/.mcp.json", own, 0o644, 0, 0.0)

    kill = Fault("kill", actor="zimmer", label=f"write {CLONE}/.mcp.json")
    killed = prepared("claude", ("a",), edit=edit, faults=[kill])
    assert killed.text(killed.config) == own.decode()
    run = prepared("claude", (), before=killed).finished()
    assert json.loads(run.text(run.config) or "")["mcpServers"]["a"] == {"command": "mine"}


# --- tried again ------------------------------------------------------------------------------------------------------


def refusing(error: Exception, times: int) -> Callable[[World, Order], Any]:
    """A session whose AIR refuses so many times."""
    left = [times]

    async def body(world: World, order: Order) -> int:
        air = order.air

        async def refuses(own: World, request: Any) -> Any:
            if left[0]:
                left[0] -= 1
                own.events.emit("air.refused")
                raise error
            return await air(own, request)

        changed = Order(**{**{name: getattr(order, name) for name in Order.__slots__}, "air": refuses})
        return await run_session(world, changed)

    return body


@pytest.mark.requirement("prepare-transient-retries")
def test_a_failure_that_passes_is_tried_again_and_one_that_stays_is_not():
    passing, staying = AirFailedError("spawnSync git ETIMEDOUT"), AirFailedError("bad config")
    unresolved = UnresolvedVariablesError(("A",), "Unresolved variables in /c: ${A}. Ensure it")
    for error, times, waits, starts in (
        (passing, 1, [5.0], 1),
        (passing, 9, [5.0, 10.0, 20.0], 0),
        (staying, 9, [], 0),
        (unresolved, 9, [], 0),
    ):
        run = SessionRun(
            PROFILES["claude"], {"a": npx("a@latest")}, [Package("a")], program=refusing(error, times)
        ).finished()
        at = [event.at_seconds for event in run.events("air.refused")]
        assert [later - earlier for earlier, later in pairwise(at)] == waits[: len(at) - 1]
        assert len(at) == min(times, len(waits) + 1)
        assert len(run.spawned) == starts


def test_a_runtime_that_is_not_there_ends_the_session_without_a_crash():
    missing = Fault("enoent", port="processes", label="spawn claude")
    run = SessionRun(PROFILES["claude"], TREE, faults=[missing]).finished()
    assert run.actor.exit_code == 1
    assert run.events("session.failed")


def test_the_clones_dotenv_reaches_the_process():
    seen: list[str | None] = []
    SessionRun(
        PROFILES["claude"],
        {"a": npx("a@latest")},
        [Package("a")],
        edit=lambda tree: tree.write(f"{CLONE}/.env", b"TEAM=blue\nMCP_TIMEOUT=1\n", 0o600, 0, 0.0),
        at_spawn=lambda _simulation, env: seen.extend((env.get("TEAM"), env.get("MCP_TIMEOUT"), env.get("HOME"))),
    ).finished()
    assert seen == ["blue", "180000", PARENT["HOME"]]
