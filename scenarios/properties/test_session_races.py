"""Races of whole sessions, from seeds: a change of the list against a preparation, readers, cold caches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest

from fake_runtimes.plan import Plan, Turn
from fake_servers.npm import Package
from harness.reference.selection.patch import change
from harness.reference.selection.session import Session
from harness.reference.session import rows
from harness.reference.session.prepare import prepare_clone
from harness.world import World
from harness.world.model import Seeded
from scenarios.session_runs import CACHE, HOME, SESSION, SessionRun, npx

PROFILES = ("claude-2.1.268", "codex-0.146.0", "pi-0.84.1+2.32.1")
TREE = {"a": npx("a@latest"), "b": npx("b@latest")}
SEEDS = range(120)
FEWER_SEEDS = range(25)


def names(text: str | None) -> set[str]:
    """The catalog servers that a config names."""
    return {name for name in TREE if f'"{name}"' in (text or "") or f"[mcp_servers.{name}]" in (text or "")}


async def patched(world: World, _argv: Sequence[str]) -> int:
    """PATCH the session's list from a to b, as the API does."""

    def changed(values: rows.Values) -> rows.Values:
        answer = change(Session(rows.chosen(values)), {"mcp_servers": ["b"]}, tuple(TREE))
        return {**values, "mcp_servers": list(answer.session.chosen)}

    await rows.change(world, SESSION, changed)
    world.events.emit("patched")
    return 0


@pytest.mark.requirement("selection-patch-race-prepare")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_change_of_the_list_counts_for_a_preparation_as_a_whole_or_for_the_next_one(profile):
    seen = set()
    for seed in SEEDS:
        run = SessionRun(
            profile, TREE, chosen=("a",), program=prepare_clone, others={"patch": patched}, decisions=Seeded(seed)
        ).finished()
        written = names(run.text(run.config))
        assert written in ({"a"}, {"b"}), f"seed {seed}: {written}"
        assert run.row["mcp_servers"] == ["b"], f"seed {seed}: the change is lost"
        assert set(run.row["metadata"]["prepared_mcp_servers"]["owned"]) == written, f"seed {seed}"
        seen |= written
        following = SessionRun(profile, TREE, before=run, program=prepare_clone).finished()
        assert names(following.text(following.config)) == {"b"}, f"seed {seed}"
    assert seen == {"a", "b"}, "neither order of the race is without the other"


@pytest.mark.requirement("prepare-write-atomic")
@pytest.mark.parametrize("profile", PROFILES)
def test_a_reader_sees_no_half_file_while_another_list_is_written(profile):
    for seed in FEWER_SEEDS:
        before = SessionRun(profile, TREE, chosen=("a",), program=prepare_clone).finished()
        texts: list[str] = []
        path, old = before.config, before.text(before.config)

        async def read(world: World, _argv: Any, path: str = path, texts: list[str] = texts) -> int:
            for _ in range(12):
                texts.append((await world.files.read(path)).decode())
                await world.clock.sleep(0.1)
            return 0

        run = SessionRun(
            profile,
            TREE,
            chosen=("b",),
            before=before,
            program=prepare_clone,
            others={"reader": read},
            decisions=Seeded(seed),
        ).finished()
        assert set(texts) <= {old, run.text(path)}, f"seed {seed}"


MANY_TURNS = Plan(tuple(Turn(seconds=3.0) for _ in range(20)))


@pytest.mark.requirement("npx-isolate-cold-race")
@pytest.mark.parametrize("profile", ["claude-2.1.268", "codex-0.169.0"])
def test_twins_of_a_cold_clone_connect_at_the_first_start_of_the_session(profile):
    twins = {"twin-a": npx("p@latest", "--a"), "twin-b": npx("p@latest", "--b")}
    for seed in FEWER_SEEDS:
        # A process that is kept off the CPU past the runtime's own timers connects late, whatever its cache.
        for decisions, stalls in ((Seeded(seed), True), (Seeded(seed, stall=0.0), False)):
            run = SessionRun(profile, twins, [Package("p")], plan=MANY_TURNS, decisions=decisions).finished()
            assert run.events("install.failed") + run.events("install.incomplete") == [], f"seed {seed}"
            assert (run.removed(), run.degraded) == ([], []), f"seed {seed}"
            assert not run.exists(f"{HOME}/.npm")
            assert run.tree.names(f"{CACHE}/isolated", 0) == ("twin-a", "twin-b")
            assert stalls or sorted(run.connected()) == ["twin-a", "twin-b"], f"seed {seed}"


def test_twins_in_one_cache_meet_again_at_each_start_since_the_heal_takes_the_winners_tree_too():
    """Why isolation is needed beside the heal: an operator's own value is kept, so these two share a cache.

    The loser's error names the tree that the winner completed. The heal removes it, the retry starts cold, and the
    race is on again: in some schedules until a server is left out, whose package is sound. Once that connects the next
    outage has a ladder of its own.
    """
    own = {"NPM_CONFIG_CACHE": CACHE}
    twins = {name: npx("p@latest", env=own) for name in ("twin-a", "twin-b")}
    left_out = 0
    for seed in FEWER_SEEDS:
        run = SessionRun("claude-2.1.268", twins, [Package("p")], plan=MANY_TURNS, decisions=Seeded(seed)).finished()
        told = [event.name for event in run.outcome.events if event.name in ("session.retry", "session.degraded")]
        ladders = [list(group) for name, group in groupby(told) if name == "session.retry"]
        assert all(len(ladder) <= 3 for ladder in ladders), f"seed {seed}"
        left_out += bool(run.degraded)
    assert left_out
