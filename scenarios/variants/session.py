"""Known-bad variants of the orchestrator around a runtime: old bugs, and plausible ones."""

from __future__ import annotations

from dataclasses import replace

from harness.reference.npx import heal
from harness.reference.prepare.spawn import SpawnEnvironment
from harness.reference.session import rows
from harness.reference.session.job import settle as settle_rule
from harness.reference.session.ladder import decide as decide_rule
from harness.reference.session.npx_tree import guard_bins as guard_bins_rule
from harness.reference.session.npx_tree import heal_after as heal_after_rule
from harness.reference.session.order import base_of_clones
from harness.reference.session.prepare import remembered as remembered_rule
from harness.reference.session.spawn import environment_of as environment_of_rule
from harness.reference.session.spawn import spawn_runtime as spawn_runtime_rule
from harness.requirements.variants import variant

JOB = "harness.reference.session.job"
LADDER = "harness.reference.session.ladder"
PREPARE = "harness.reference.session.prepare"
SPAWN = "harness.reference.session.spawn"
TREE = "harness.reference.session.npx_tree"


@variant(f"{TREE}:heal_after", catches=("npx-heal-then-retry-connects", "npx-heal-covers-other-causes"))
async def retries_over_the_broken_tree(world, clone, base, errors):
    """Heals nothing, so each retry fails as the one before."""
    return heal.HealResult(healed=False, removed=())


@variant(f"{TREE}:heal_after", catches=("npx-heal-covers-other-causes",))
async def heals_only_where_servers_collide(world, clone, base, errors):
    """Takes isolation for the only source of corruption."""
    return await heal_after_rule(world, clone, base, [error for error in errors if "/isolated/" in error])


@variant(f"{LADDER}:decide", catches=("npx-heal-still-corrupt-package",))
def a_heal_hands_the_budget_back(metadata, failed, now_seconds):
    """A failure that could be healed counts as a first one, so a package that is broken as published never ends."""
    healable = any(heal.is_corruption(error) for error in failed.values())
    before = {**metadata, "mcp_retry_count": 0} if healable else metadata
    return decide_rule(before, failed, now_seconds)


@variant(f"{LADDER}:decide", catches=("npx-heal-still-corrupt-package",))
def every_retry_comes_at_once(metadata, failed, now_seconds):
    """Starts again without a delay."""
    return decide_rule(metadata, failed, now_seconds)._replace(after_seconds=0)


@variant(f"{JOB}:settle", catches=("npx-heal-then-retry-connects", "npx-guard-next-launch-repairs"))
async def the_first_failure_is_final(world, order, ready, running, seen):
    """Leaves a server out without a retry."""
    await rows.change(
        world,
        order.session,
        lambda values: rows.with_metadata(values, {**rows.metadata(values), "mcp_retry_count": 3}),
    )
    return await settle_rule(world, order, ready, running, seen)


@variant(
    f"{SPAWN}:run_guard",
    catches=("npx-guard-before-claude-mcp-spawn", "npx-guard-next-launch-repairs", "prepare-spawn-claude-mcp-env"),
)
async def the_guard_never_runs(world, order):
    """Starts Claude over bins that cannot run."""
    return


@variant(f"{SPAWN}:spawn_runtime", catches=("npx-guard-before-claude-mcp-spawn",))
async def the_guard_runs_after_the_spawn(world, order, ready):
    """Repairs what has failed already."""
    environment = environment_of_rule(world, order, ready)
    running = await spawn_runtime_rule(world, replace(order, runtime="pi"), ready)
    running.runtime = order.runtime
    if environment.runs_bin_guard:
        plan = await guard_bins_rule(world, order.clone, base_of_clones(world))
        world.events.emit("guard.ran", repaired=[repair.link for repair in plan.repairs], refused=[], log=[])
    return running


@variant(f"{SPAWN}:environment_of", catches=("npx-guard-not-on-codex", "npx-guard-not-on-pi"))
def every_runtime_is_guarded(world, order, ready):
    """Claims a coverage that the documents deny."""
    return environment_of_rule(world, order, ready)._replace(runs_bin_guard=True)


@variant(f"{SPAWN}:environment_of", catches=("npx-guard-before-claude-mcp-spawn", "prepare-spawn-claude-mcp-env"))
def claude_is_guarded_without_servers_too(world, order, ready):
    """Guards a spawn that has nothing to guard."""
    return environment_of_rule(world, order, ready)._replace(runs_bin_guard=True)


@variant(f"{SPAWN}:make_directory", catches=("prepare-spawn-claude-mcp-env",))
async def the_cache_is_named_and_not_made(world, directory):
    """Exports a directory that does not exist."""
    return


@variant(f"{SPAWN}:environment_of", catches=("prepare-spawn-claude-mcp-env",))
def the_cache_is_made_and_not_named(world, order, ready):
    """Keeps the variable from the process."""
    environment: SpawnEnvironment = environment_of_rule(world, order, ready)
    kept = {name: value for name, value in environment.variables.items() if name != "NPM_CONFIG_CACHE"}
    return environment._replace(variables=kept)


@variant(f"{TREE}:remove_trees", catches=("npx-heal-error-safe",))
async def the_first_refusal_ends_the_heal(world, trees):
    """Leaves the trees behind the one that cannot be removed."""
    removed: list[str] = []
    for tree in trees:
        try:
            await world.files.remove_tree(tree)
        except OSError:
            break
        removed.append(tree)
    return tuple(removed)


@variant(f"{TREE}:heal_after", catches=("npx-pi-killed-install-leftover", "npx-heal-containment"))
async def removes_what_the_text_names(world, clone, base, errors):
    """Takes a path for one that may be removed because an error names it."""
    named = tuple(dict.fromkeys(tree for error in errors for tree in heal.named_trees(error)))
    for tree in named:
        await world.files.remove_tree(tree)
    return heal.HealResult(bool(named), named)


@variant("harness.reference.npx.isolation:planned_cache", catches=("npx-sizes-and-cleanup",))
def codex_and_claude_use_the_users_cache(name, clone, collides):
    """Writes the user-level npm directory into the entries."""
    return "/home/u/.npm"


@variant(f"{PREPARE}:write_whole", catches=("prepare-write-atomic",))
async def truncates_and_writes(world, path, content, mode):
    """Writes in place: a reader or a kill finds half a file."""
    await world.files.write(path, content, mode=0o644 if mode is None else mode)


@variant(f"{PREPARE}:write_whole", catches=("prepare-secret-file-mode",))
async def writes_with_the_usual_mode(world, path, content, mode):
    """Leaves a file with secrets readable for everybody."""
    await world.files.write_atomic(path, content)


@variant(f"{PREPARE}:excluded", catches=("prepare-secret-file-mode",))
async def a_created_file_can_be_committed(world, clone, path):
    """Adds no exclude entry."""
    return ""


@variant(f"{PREPARE}:translated", catches=("selection-patch-race-prepare",))
async def the_list_is_read_twice(world, order, request):
    """AIR gets the list as it was, and the steps behind it add what the list says by then."""
    ran = await order.air(world, request)
    by_now = rows.chosen(await rows.read(world, order.session))
    return replace(ran, chosen=tuple(dict.fromkeys((*ran.chosen, *by_now))))


@variant(f"{PREPARE}:remembered", catches=("prepare-injected-recorded",))
def injected_names_join_the_users_choice(values, record):
    """Writes the injected servers into the session's own list."""
    after = remembered_rule(values, record)
    return {**after, "mcp_servers": [*rows.chosen(values), *record.injected], "custom_metadata": {}}


@variant("harness.reference.session.rows:change", catches=("selection-patch-race-prepare",))
async def the_row_is_written_back_as_it_was_read(world, session, changed):
    """Reads without the lock and writes later: what was changed in between is lost."""
    before = await rows.read(world, session)
    await world.clock.sleep(0.3)
    transaction = await world.store.begin()
    await transaction.put(rows.TABLE, session, changed(before))
    await transaction.commit()
