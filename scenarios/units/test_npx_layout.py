"""Where a clone's npm caches are, and what may be touched there."""

import pytest

from harness.reference.npx import guard, heal, layout
from harness.reference.npx.containment import clones_base, is_contained, is_contained_resolved
from harness.reference.npx.listing import Listing

CLONE = "/clone"
HOME = "/home/u"
BASE = "/home/u/.zimmer/clones"


@pytest.mark.requirement("npx-layout-shared-root")
def test_the_shared_cache_lies_directly_in_the_clone():
    assert layout.shared_cache("/clone") == "/clone/.npm-cache"
    assert layout.shared_cache("/clone/") == "/clone/.npm-cache"
    assert layout.shared_root("/clone") == "/clone/.npm-cache/_npx"


@pytest.mark.requirement("npx-layout-isolated-root")
def test_an_isolated_cache_is_keyed_by_the_server():
    assert layout.isolated_cache("/clone", "twin-a") == "/clone/.npm-cache/isolated/twin-a"
    assert layout.isolated_cache("/clone", "twin-b") == "/clone/.npm-cache/isolated/twin-b"


@pytest.mark.requirement("npx-layout-name-sanitize")
@pytest.mark.parametrize(
    ("name", "directory"),
    [
        ("1password-tadas-rw", "1password-tadas-rw"),
        ("weird/name 1", "weird_name_1"),
        ("@scope/id", "_scope_id"),
        ("a..b", "a..b"),
        ("Ünï", "_n_"),
        ("a\nb", "a_b"),
        (" ", "_"),
        ("./.", "._."),
        ("..", "unnamed"),
        (".", "unnamed"),
        ("...", "unnamed"),
        ("", "unnamed"),
        (None, "unnamed"),
    ],
)
def test_a_server_name_becomes_one_harmless_segment(name, directory):
    assert layout.directory_name(name) == directory


@pytest.mark.requirement("npx-layout-discovery-roots")
@pytest.mark.parametrize(
    ("directories", "roots"),
    [
        ([], ["_npx"]),
        (["isolated/b/_npx", "isolated/a/_npx"], ["_npx", "isolated/a/_npx", "isolated/b/_npx"]),
        (["other/.hidden/_npx"], ["_npx", "other/.hidden/_npx"]),
        (["x/_npx"], ["_npx"]),
        (["a/b/c/_npx"], ["_npx"]),
        (["isolated/a"], ["_npx"]),
    ],
)
def test_discovery_lists_the_shared_root_and_those_exactly_two_levels_down(directories, roots):
    cache = f"{CLONE}/.npm-cache"
    found = layout.install_roots(CLONE, [f"{cache}/{directory}" for directory in directories])
    assert found == tuple(f"{cache}/{root}" for root in roots)


@pytest.mark.requirement("npx-layout-discovery-roots")
@pytest.mark.parametrize("clone", ["", " ", "relative/clone"])
def test_without_a_working_directory_there_is_no_root(clone):
    assert layout.install_roots(clone, ["/x/.npm-cache/_npx"]) == ()
    assert layout.clear_targets(clone, []) == ()


@pytest.mark.requirement("npx-layout-discovery-hash")
def test_discovery_of_a_hash_names_the_shared_tree_and_each_isolated_one_that_exists():
    cache = f"{CLONE}/.npm-cache"
    listing = [f"{cache}/isolated/s/_npx/abc0", f"{cache}/isolated/t/_npx/ffff"]
    assert layout.install_trees(CLONE, listing, "abc0") == (
        f"{cache}/_npx/abc0",
        f"{cache}/isolated/s/_npx/abc0",
    )


@pytest.mark.requirement("npx-layout-clear-covers-isolated")
def test_clearing_a_cache_leaves_no_file_of_it():
    cache = f"{CLONE}/.npm-cache"
    files = ("_npx/1/x", "_cacache/y", "isolated/a/_npx/2/z", "isolated/a/_cacache/q", "_logs/l")
    targets = layout.clear_targets(CLONE, [f"{cache}/isolated/a/_npx"])
    assert all(any(f"{cache}/{file}".startswith(f"{target}/") for target in targets) for file in files)


@pytest.mark.requirement("npx-layout-single-owner")
def test_a_new_root_shape_reaches_heal_clear_and_guard_through_the_layout(monkeypatch):
    clone = f"{BASE}/c"
    root = f"{clone}/.npm-cache/pool/_npx"
    listing = Listing(frozenset({f"{root}/abc0/node_modules"}))
    shim = ".npm-cache/pool/_npx/abc0/node_modules/.bin/x"
    tree = guard.Tree((guard.Shim(shim, f"{root}/abc0/node_modules/x.js", "file", 0o644),))
    error = "ENOTEMPTY rename _npx/abc0/node_modules"
    assert heal.plan(error, clone, listing, BASE).removals == ()
    assert guard.plan(clone, tree, BASE).repairs == ()

    shapes = (*layout.ROOT_SHAPES, (".npm-cache", "pool", "_npx"), ("npm-extra", "_npx"))
    monkeypatch.setattr(layout, "ROOT_SHAPES", shapes)

    assert heal.plan(error, clone, listing, BASE).removals == (f"{root}/abc0",)
    assert [repair.link for repair in guard.plan(clone, tree, BASE).repairs] == [shim]
    extra = f"{clone}/npm-extra/_npx"
    assert layout.clear_targets(clone, [root, extra]) == (f"{clone}/.npm-cache", extra)


@pytest.mark.requirement("npx-layout-containment")
@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        (f"{BASE}/c/.npm-cache/_npx", True),
        (f"{BASE}/c/.npm-cache/_npx/", True),
        (f"{BASE}/c//.npm-cache/./_npx", True),
        (f"{BASE}/c/.npm-cache/isolated/s/_npx/04f14e66d79e7af4", True),
        (f"{BASE}/c/agents/roots/z/.npm-cache/_npx/x", True),
        (f"{BASE}/c/../d/.npm-cache/_npx", True),
        (f"{HOME}/.npm/_npx", False),
        (f"{HOME}/.npm-cache/_npx", False),
        (f"{BASE}/c", False),
        (f"{BASE}/c/.npm-cache", False),
        (f"{BASE}/c/.npm-cache/_cacache", False),
        (f"{BASE}/c/_npx/.npm-cache", False),
        (f"{BASE}/c/.npm-cache/my_npx", False),
        (f"{BASE}/c/.npm-cache-old/_npx", False),
        (f"{BASE}/c/node_modules", False),
        (f"{BASE}-evil/x/.npm-cache/_npx", False),
        (f"{BASE}/c/.npm-cache/_npx/../../../../../.ssh", False),
        (f"{BASE}/c/../../../evil/.npm-cache/_npx/dead", False),
        ("c/.npm-cache/_npx", False),
        ("~/.zimmer/clones/c/.npm-cache/_npx", False),
        ("", False),
        (None, False),
    ],
)
def test_only_an_install_root_below_the_clones_base_may_be_touched(path, allowed):
    assert is_contained(path, clones_base(HOME)) is allowed


@pytest.mark.requirement("npx-layout-containment")
def test_agent_clones_dir_replaces_the_base_below_home():
    base = clones_base(HOME, "/srv/clones")
    assert is_contained("/srv/clones/c/.npm-cache/_npx", base)
    assert not is_contained(f"{BASE}/c/.npm-cache/_npx", base)
    assert clones_base(HOME, " ") == BASE


@pytest.mark.requirement("npx-layout-containment-resolved")
@pytest.mark.parametrize(
    "target",
    [
        f"{HOME}/elsewhere/_npx",
        f"{BASE}/other/.npm-cache/_npx",
        f"{BASE}/c/src",
        "../../../../elsewhere/_npx",
        "_npx",
    ],
)
def test_a_root_that_resolves_outside_its_clones_cache_is_neither_walked_nor_deleted_from(target):
    clone = f"{BASE}/c"
    links = {f"{clone}/.npm-cache/_npx": target}
    outside = (
        "dead",
        f"{HOME}/elsewhere/_npx/dead",
        f"{BASE}/other/.npm-cache/_npx/dead",
        f"{clone}/src/dead",
    )
    listing = Listing(frozenset(outside), links)
    error = f"ENOTEMPTY {clone}/.npm-cache/_npx/dead/node_modules/x"
    assert is_contained(f"{clone}/.npm-cache/_npx/dead", BASE)
    assert not is_contained_resolved(f"{clone}/.npm-cache/_npx/dead", BASE, links)
    assert heal.plan(error, clone, listing, BASE).removals == ()


@pytest.mark.requirement("npx-layout-containment-resolved")
def test_the_guard_repairs_nothing_under_a_root_that_is_a_link_out_of_the_clone():
    clone = f"{BASE}/c"
    shim = guard.Shim(".npm-cache/_npx/dead/node_modules/.bin/x", f"{HOME}/elsewhere/_npx/dead/x.js", "file", 0o644)
    tree = guard.Tree((shim,), {f"{clone}/.npm-cache/_npx": f"{HOME}/elsewhere/_npx"})
    assert guard.plan(clone, tree, BASE) == guard.GuardPlan()


@pytest.mark.requirement("npx-layout-symlinked-base-ok")
@pytest.mark.parametrize("clone", ["/srv/clones/c", "/mnt/disk/clones/c"])
def test_a_base_that_is_itself_a_link_does_not_stop_heal_and_guard(clone):
    links = {"/srv/clones": "/mnt/disk/clones"}
    real = "/mnt/disk/clones/c/.npm-cache/_npx/abc0"
    shim = guard.Shim(".npm-cache/_npx/abc0/node_modules/.bin/x", f"{real}/node_modules/x.js", "file", 0o644)
    assert [each.mode for each in guard.plan(clone, guard.Tree((shim,), links), "/srv/clones").repairs] == [0o755]
    listing = Listing(frozenset({real}), links)
    named = heal.plan("ENOTEMPTY /srv/clones/c/.npm-cache/_npx/abc0", clone, listing, "/srv/clones")
    assert named.removals == ("/srv/clones/c/.npm-cache/_npx/abc0",)


@pytest.mark.requirement("npx-layout-containment-resolved")
@pytest.mark.parametrize(
    "target",
    [
        "../../_npx",
        "../../../.npm-cache/_npx",
        f"{BASE}/c/.npm-cache/_npx",
        "/home/u/.zimmer/here/../clones/c/.npm-cache/_npx",
    ],
)
def test_a_root_that_is_a_link_within_its_clones_cache_is_healed_and_guarded(target):
    clone = f"{BASE}/c"
    links = {f"{clone}/.npm-cache/isolated/s/_npx": target}
    tree = f"{clone}/.npm-cache/isolated/s/_npx/abc0"
    assert is_contained_resolved(tree, BASE, links)
    assert heal.plan(f"ENOTEMPTY {tree}/x", clone, Listing(frozenset({tree}), links), BASE).removals == (tree,)
    shim = guard.Shim(
        ".npm-cache/isolated/s/_npx/abc0/node_modules/.bin/x", f"{clone}/.npm-cache/_npx/abc0/x.js", "file", 0o644
    )
    assert [each.link for each in guard.plan(clone, guard.Tree((shim,), links), BASE).repairs] == [shim.link]


@pytest.mark.requirement("npx-layout-containment-resolved")
@pytest.mark.parametrize("looping", [BASE, f"{BASE}/c", f"{BASE}/c/.npm-cache", f"{BASE}/c/.npm-cache/_npx"])
def test_a_loop_of_links_leads_nowhere_and_raises_nothing(looping):
    clone = f"{BASE}/c"
    links = {looping: f"{looping}-2", f"{looping}-2": looping}
    tree = f"{clone}/.npm-cache/_npx/abc0"
    shim = guard.Shim(".npm-cache/_npx/abc0/node_modules/.bin/x", f"{tree}/x.js", "file", 0o644)
    assert not is_contained_resolved(tree, BASE, links)
    assert heal.plan(f"ENOTEMPTY {tree}/x", clone, Listing(frozenset({tree}), links), BASE).removals == ()
    assert guard.plan(clone, guard.Tree((shim,), links), BASE).repairs == ()


@pytest.mark.requirement("npx-layout-containment")
def test_a_base_that_is_no_absolute_path_contains_nothing():
    assert not is_contained("/clones/c/.npm-cache/_npx", "clones")
    assert not is_contained("/clones/c/.npm-cache/_npx", "")
