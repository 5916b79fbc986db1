"""The execute bit of npx bin targets: repairs, refusals, and when the guard runs."""

import pytest

from harness.reference.npx import guard
from harness.reference.npx.guard import Shim, Tree

HOME = "/home/u"
BASE = "/home/u/.zimmer/clones"
CLONE = f"{BASE}/c1"
SHARED = ".npm-cache/_npx"
ISOLATED = ".npm-cache/isolated/1password-tadas-rw/_npx"
BIN = "04f14e66d79e7af4/node_modules/.bin"


def shim(
    root: str = SHARED,
    name: str = "x",
    target: str | None = None,
    kind: str = "file",
    mode: int | None = 0o644,
) -> Shim:
    inside = f"{CLONE}/{root}/04f14e66d79e7af4/node_modules/{name}/cli.js"
    return Shim(f"{root}/{BIN}/{name}", target or inside, kind, mode)


def repaired(*shims: Shim, links: dict[str, str] | None = None, unreadable: tuple[str, ...] = ()) -> list[str]:
    planned = guard.plan(CLONE, Tree(shims, links or {}, frozenset(unreadable)), BASE)
    return [repair.link for repair in planned.repairs]


def refused(*shims: Shim, links: dict[str, str] | None = None) -> tuple[str, ...]:
    return guard.plan(CLONE, Tree(shims, links or {}), BASE).refusals


@pytest.mark.requirement("npx-guard-mode-mirror")
@pytest.mark.parametrize(
    ("mode", "after"),
    [
        (0o644, 0o755),
        (0o600, 0o700),
        (0o640, 0o750),
        (0o604, 0o705),
        (0o000, 0o100),
        (0o200, 0o300),
        (0o222, 0o322),
        (0o4644, 0o755),
        (0o7600, 0o700),
        (0o755, None),
        (0o744, None),
        (0o641, None),
        (0o4755, None),
    ],
)
def test_execute_is_granted_where_read_is(mode, after):
    assert guard.repaired_mode(mode) == after


@pytest.mark.requirement("npx-guard-repairs-0644")
def test_a_target_without_an_execute_bit_gets_one_and_no_other_is_touched():
    planned = guard.plan(CLONE, Tree((shim(name="a"), shim(name="b", mode=0o755))), BASE)
    assert [(repair.link, repair.mode) for repair in planned.repairs] == [(f"{SHARED}/{BIN}/a", 0o755)]
    assert planned.repairs[0].target == f"{CLONE}/{SHARED}/04f14e66d79e7af4/node_modules/a/cli.js"


@pytest.mark.requirement("npx-guard-all-roots")
def test_every_root_of_the_layout_is_swept():
    assert repaired(shim(SHARED), shim(ISOLATED)) == [f"{SHARED}/{BIN}/x", f"{ISOLATED}/{BIN}/x"]


@pytest.mark.requirement("npx-guard-root-outside-not-walked", "npx-guard-roots-independent")
@pytest.mark.parametrize("outside", [f"{HOME}/elsewhere/_npx", f"{BASE}/c1-evil/_npx", f"{BASE}/c2/.npm-cache/_npx"])
def test_a_root_that_resolves_outside_the_clone_is_not_walked_and_stops_no_other(outside):
    bad = shim(".npm-cache/isolated/a/_npx", target=f"{outside}/x/cli.js")
    links = {f"{CLONE}/.npm-cache/isolated/a/_npx": outside}
    assert repaired(bad, shim(ISOLATED), links=links) == [f"{ISOLATED}/{BIN}/x"]
    assert refused(bad, links=links) == ()


@pytest.mark.requirement("npx-guard-roots-independent")
def test_a_root_that_cannot_be_read_does_not_stop_the_others():
    first, looping = ".npm-cache/isolated/a/_npx", ".npm-cache/isolated/b/_npx"
    links = {f"{CLONE}/{looping}": "_npx"}
    assert repaired(shim(first), shim(looping), shim(SHARED), links=links, unreadable=(first,)) == [f"{SHARED}/{BIN}/x"]


@pytest.mark.requirement("npx-guard-shim-outside-refused")
@pytest.mark.parametrize(
    "target", [f"{HOME}/escapee.js", f"{CLONE}/.npm-cache/isolated/b/_npx/1/x.js", f"{CLONE}/src/cli.js"]
)
def test_a_shim_that_resolves_outside_its_own_root_is_refused(target):
    bad = shim(".npm-cache/isolated/a/_npx", "bad", target=target)
    good = shim(".npm-cache/isolated/a/_npx", "good")
    assert refused(bad, good) == (bad.link,)
    assert repaired(bad, good) == [good.link]
    assert guard.refusal_line(bad.link).startswith(f"Refusing to repair {bad.link}")


@pytest.mark.requirement("npx-guard-shim-kinds")
def test_dangling_shims_directories_and_nested_bins_are_left_alone():
    nested = Shim(f"{SHARED}/0/node_modules/x/node_modules/.bin/y", f"{CLONE}/{SHARED}/0/y.js", "file", 0o644)
    foreign = Shim("node_modules/.bin/y", f"{CLONE}/node_modules/y.js", "file", 0o644)
    elsewhere = Shim(f"{SHARED}/0/lib/bin/y", f"{CLONE}/{SHARED}/0/y.js", "file", 0o644)
    deeper = Shim(f"{SHARED}/{BIN}/d/y", f"{CLONE}/{SHARED}/0/y.js", "file", 0o644)
    looping = shim(name="l", target=f"{CLONE}/{SHARED}/loop")
    links = {f"{CLONE}/{SHARED}/loop": "loop"}
    regular = Shim(f"{SHARED}/{BIN}/r", f"{CLONE}/{SHARED}/{BIN}/r", "file", 0o644)
    dangling = shim(name="d", kind="missing", target=f"{HOME}/gone.js", mode=None)
    assert repaired(nested, foreign, regular, dangling, shim(name="e", kind="directory")) == [regular.link]
    assert refused(nested, foreign, dangling) == ()
    assert repaired(elsewhere, deeper, shim(name="m", mode=None)) == []
    assert (repaired(looping, links=links), refused(looping, links=links)) == ([], (looping.link,))


@pytest.mark.requirement("npx-guard-shim-kinds")
def test_a_chmod_that_fails_does_not_stop_the_sweep():
    def chmod(target: str, _mode: int) -> None:
        if "/a/" in target:
            raise PermissionError(target)

    planned = guard.plan(CLONE, Tree((shim(name="a"), shim(name="b"))), BASE)
    assert guard.carry_out(planned.repairs, chmod) == (f"{SHARED}/{BIN}/b",)


@pytest.mark.requirement("npx-guard-never-blocks-spawn")
@pytest.mark.parametrize("clone", ["/elsewhere/c1", "", "relative", BASE + "-evil/c1"])
def test_a_clone_that_is_no_clone_gives_an_empty_plan(clone):
    there = Shim(f"{SHARED}/{BIN}/x", f"{clone}/{SHARED}/x.js", "file", 0o644)
    assert guard.plan(clone, Tree((there,)), BASE) == guard.GuardPlan()
    assert guard.plan(CLONE, Tree(), BASE) == guard.GuardPlan()


@pytest.mark.requirement("npx-guard-never-blocks-spawn")
def test_without_a_clones_base_any_absolute_clone_is_swept_and_no_other():
    there = Shim(f"{SHARED}/{BIN}/x", f"/elsewhere/c1/{SHARED}/x.js", "file", 0o644)
    assert [repair.link for repair in guard.plan("/elsewhere/c1", Tree((there,))).repairs] == [there.link]
    assert guard.plan("elsewhere/c1", Tree((there,))) == guard.GuardPlan()


@pytest.mark.requirement("npx-guard-acts-on-modes")
def test_the_plan_follows_from_modes_with_no_error_text_at_hand():
    assert repaired(shim(mode=0o644)) == [f"{SHARED}/{BIN}/x"]
    assert repaired(shim(mode=0o755)) == []


@pytest.mark.requirement("npx-guard-not-on-codex", "npx-guard-not-on-pi")
def test_only_claude_spawns_with_mcp_servers_go_through_the_guard():
    assert guard.runs_before_spawn("claude", has_mcp_servers=True)
    assert not guard.runs_before_spawn("claude", has_mcp_servers=False)
    assert not guard.runs_before_spawn("codex", has_mcp_servers=True)
    assert not guard.runs_before_spawn("pi", has_mcp_servers=True)
