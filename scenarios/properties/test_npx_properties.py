"""What holds of the npx rules for any names, clones and error texts."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.reference.npx import guard, heal, isolation, layout
from harness.reference.npx.listing import Listing

BASE = "/home/u/.zimmer/clones"
CLONE = f"{BASE}/c1"

segments = st.sampled_from(["a", "..", ".", ".npm-cache", "_npx", "isolated", "s", "abc0", "node_modules", "clones"])
paths = st.lists(segments, min_size=1, max_size=8).map(lambda parts: "/" + "/".join(parts))
hostile = st.one_of(paths, paths.map(lambda path: BASE + path), paths.map(lambda path: CLONE + path))
modes = st.integers(min_value=0, max_value=0o7777)
names = st.text(max_size=12)
clones = st.lists(st.text("abc-. ${}", min_size=1, max_size=6), min_size=1, max_size=4).map("/".join).map("/{}".format)


@pytest.mark.requirement("npx-pin-absolute-path")
@given(clones, st.dictionaries(names, st.sampled_from(["p@1", "q@1"]), max_size=5))
def test_every_written_cache_is_absolute_and_inside_the_clones_cache(clone, packages):
    servers = {name: {"command": "npx", "args": ["-y", package]} for name, package in packages.items()}
    cache = f"{clone}/.npm-cache"
    directories = isolation.cache_directories(clone, servers)
    assert set(directories) == set(servers)
    for directory in directories.values():
        assert directory.startswith("/")
        assert directory == cache or directory.startswith(f"{cache}/isolated/")


@pytest.mark.requirement("npx-isolate-stable-across-prepare")
@given(st.dictionaries(names, st.sampled_from(["p@1", "q@1", "r@1"]), max_size=5), st.data())
def test_pinning_again_changes_nothing_also_when_servers_have_gone(packages, data):
    servers = {name: {"command": "npx", "args": ["-y", package]} for name, package in packages.items()}
    first = isolation.pin_caches(servers, CLONE)
    gone = data.draw(st.sets(st.sampled_from(sorted(packages)))) if packages else set()
    left = {name: entry for name, entry in first.items() if name not in gone}
    assert isolation.pin_caches(left, CLONE) == left


@pytest.mark.requirement("npx-layout-name-sanitize")
@given(names)
def test_a_directory_name_is_one_segment_that_does_not_climb(name):
    directory = layout.directory_name(name)
    assert directory
    assert "/" not in directory
    assert directory.strip(".")


@pytest.mark.requirement("npx-heal-containment")
@given(st.lists(hostile, min_size=1, max_size=4), st.sampled_from([CLONE, None, "", "/"]))
def test_nothing_outside_a_clones_cache_is_removed_whatever_the_text_says(named, clone):
    listing = Listing(frozenset(named))
    error = "ENOTEMPTY " + " ".join(f"rename {path}/_npx/abc0/x" for path in named)
    existing = Listing(frozenset({*listing.directories, *heal.named_trees(error)}))
    for removal in heal.plan(error, clone, existing, BASE).removals:
        assert ".." not in removal.split("/")
        assert removal.startswith(f"{BASE}/")
        assert "/.npm-cache/" in removal


OUTSIDE = ("/home/u/.npm/_npx/abc0", "/home/u/.npm-cache/_npx/abc0", f"{CLONE}/node_modules/_npx/abc0", "/_npx/abc0")
INSIDE = (f"{CLONE}/.npm-cache/_npx/abc0", f"{CLONE}/.npm-cache/isolated/s/_npx/abc0")
fragments = st.one_of(st.text(max_size=20), st.sampled_from((*OUTSIDE, *INSIDE, "_npx/abc0", "/", "..", "'")))


@pytest.mark.requirement("npx-heal-containment")
@given(st.lists(fragments, max_size=6).map("".join), st.sampled_from([CLONE, None, "relative"]))
@example(f"rename '{OUTSIDE[0]}/node_modules/x'", CLONE)
@example("", CLONE)
def test_of_all_trees_that_exist_no_text_at_all_costs_one_outside_the_cache(text, clone):
    listing = Listing(frozenset((*OUTSIDE, *INSIDE)))
    removals = heal.plan(f"ENOTEMPTY _npx {text}", clone, listing, BASE).removals
    cache = f"{CLONE}/.npm-cache"
    assert set(removals) <= {*INSIDE, f"{cache}/_npx", f"{cache}/isolated/s/_npx"}


@pytest.mark.requirement("npx-guard-idempotent")
@given(st.lists(modes, max_size=6))
def test_a_second_sweep_finds_nothing_to_repair(found):
    root = f"{CLONE}/.npm-cache/_npx/0/node_modules"

    def sweep(current: list[int]) -> guard.GuardPlan:
        shims = (
            guard.Shim(f".npm-cache/_npx/0/node_modules/.bin/{n}", f"{root}/{n}.js", "file", mode)
            for n, mode in enumerate(current)
        )
        return guard.plan(CLONE, guard.Tree(tuple(shims)), BASE)

    first = {repair.target: repair.mode for repair in sweep(found).repairs}
    after = [first.get(f"{root}/{n}.js", mode) for n, mode in enumerate(found)]
    assert sweep(after) == guard.GuardPlan()
