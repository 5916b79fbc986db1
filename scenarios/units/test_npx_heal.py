"""What an npm error text leads the heal to remove."""

import json
from typing import Any

import pytest

from fake_runtimes.pi.config import read_config
from fake_runtimes.pi.resolver import FALLBACK, NpmExec, child_cache
from fake_runtimes.pi.resolver import plan as resolver_plan
from fake_runtimes.profile import load_profile
from harness.reference.npx import guard, heal
from harness.reference.npx.isolation import colliding, pin_caches
from harness.reference.npx.listing import Listing

HOME = "/home/u"
BASE = "/home/u/.zimmer/clones"
CLONE = f"{BASE}/c1"
CACHE = f"{CLONE}/.npm-cache"
HASH = "49a1f4c1ceebda27"
OTHER_HASH = "deadbeefdeadbeef"


def plan(error: str, *directories: str, clone: str | None = CLONE) -> tuple[str, ...]:
    return heal.plan(error, clone, Listing(frozenset(directories)), BASE).removals


@pytest.mark.requirement("npx-heal-detects")
@pytest.mark.parametrize(
    "error",
    [
        "npm error code ENOTEMPTY npm error syscall rename /x/_npx/abc/node_modules/foo",
        "ERR_UNSUPPORTED_DIR_IMPORT /x/_npx/abc/zod/v4",
        "MODULE_NOT_FOUND /x/_npx/abc",
        "ERR_MODULE_NOT_FOUND /x/_npx/abc",
        "Cannot find module 'ajv' from /x/_npx/abc",
        "cannot find PACKAGE 'ajv' from /x/_npx/abc",
        "ERR_PACKAGE_PATH_NOT_EXPORTED /x/_npx/abc",
        "is not supported resolving ES modules in /x/_npx/abc",
        "npm warn tar TAR_ENTRY_ERROR ENOENT /x/_npx/abc",
        "enotempty /x/_npx/abc",
    ],
)
def test_an_error_about_an_npx_tree_that_lacks_parts_is_corruption(error):
    assert heal.is_corruption(error)


@pytest.mark.requirement("npx-heal-detects")
@pytest.mark.parametrize(
    "error",
    [
        "ERR_UNSUPPORTED_DIR_IMPORT /opt/app/zod/v4",
        "MODULE_NOT_FOUND somewhere else",
        "TAR_ENTRY_ERROR ENOENT /opt/app/node_modules/ajv",
        "connection timed out _npx",
        "ENOTEMPTY /x/_NPX/abc",
        "",
    ],
)
def test_a_mark_without_npx_or_npx_without_a_mark_is_no_corruption(error):
    assert not heal.is_corruption(error)


@pytest.mark.requirement("npx-heal-not-for-permissions")
@pytest.mark.parametrize(
    "error",
    [
        f"npm error EACCES: permission denied, rename {CACHE}/_cacache/tmp/a -> {CACHE}/_cacache/b",
        f"npm error EEXIST: file already exists, mkdir {CACHE}/_cacache/content",
        f"sh: 1: {CACHE}/_npx/{HASH}/node_modules/.bin/x: Permission denied",
        f"EACCES: permission denied, open '{CACHE}/_npx/{HASH}/x'",
    ],
)
def test_a_permission_problem_removes_nothing(error):
    assert plan(error, f"{CACHE}/_npx/{HASH}") == ()


@pytest.mark.requirement("npx-heal-named-hash-only")
@pytest.mark.parametrize(
    "text",
    [
        f"Cannot find module '{CACHE}/_npx/{HASH}/node_modules/x.js'",
        f"ERR_MODULE_NOT_FOUND imported from file://{CACHE}/_npx/{HASH}/node_modules/x.js",
        f"ENOTEMPTY: rename {CACHE}/_npx/{HASH} (see also _npx/{OTHER_HASH})",
        f"ENOTEMPTY: see _npx/{OTHER_HASH}, rename [{CACHE}//_npx/{HASH}].",
        f"ENOTEMPTY {CACHE}/_npx/{HASH}.",
    ],
)
def test_only_the_tree_that_is_named_by_its_path_is_removed(text):
    assert plan(text, f"{CACHE}/_npx/{HASH}", f"{CACHE}/_npx/{OTHER_HASH}") == (f"{CACHE}/_npx/{HASH}",)


@pytest.mark.requirement("npx-heal-isolated-path")
def test_a_tree_of_an_isolated_cache_is_removed_like_any_other():
    tree = f"{CACHE}/isolated/1password-tadas-rw/_npx/04f14e66d79e7af4"
    assert plan(f"Cannot find module {tree}/node_modules/which", tree) == (tree,)


@pytest.mark.requirement("npx-heal-bare-hash")
def test_a_bare_hash_is_looked_up_in_every_root_of_the_clone():
    isolated = f"{CACHE}/isolated/s/_npx"
    trees = (f"{isolated}/04f14e66d79e7af4", f"{isolated}/aaaaaaaaaaaaaaaa")
    text = "ENOTEMPTY rename _npx/04f14e66d79e7af4/node_modules/x"
    assert plan(text, *trees) == (f"{isolated}/04f14e66d79e7af4",)
    both = (f"{CACHE}/_npx/04f14e66d79e7af4", f"{isolated}/04f14e66d79e7af4")
    assert plan(text, *both) == both
    assert plan(text, *both, clone=None) == ()


@pytest.mark.requirement("npx-heal-no-hash")
def test_corruption_without_a_hash_removes_every_root_of_the_clone():
    text = "Cannot find module 'ajv' from the _npx cache"
    roots = (f"{CACHE}/_npx", f"{CACHE}/isolated/s/_npx")
    assert plan(text, *roots) == roots
    assert plan(text, *roots, clone=None) == ()
    assert plan(text, *roots, clone="") == ()


@pytest.mark.requirement("npx-heal-containment")
@pytest.mark.parametrize(
    "tree",
    [
        f"{HOME}/evil/.npm-cache/_npx/{HASH}",
        f"{HOME}/.npm/_npx/{HASH}",
        f"{HOME}/.npm-cache/_npx/{HASH}",
        f"{CLONE}/node_modules/_npx/{HASH}",
        f"{BASE}-evil/c/.npm-cache/_npx/{HASH}",
        f"/_npx/{HASH}",
    ],
)
def test_a_path_outside_a_clones_cache_is_not_removed(tree):
    assert plan(f"ENOTEMPTY {tree}/node_modules", tree) == ()


@pytest.mark.requirement("npx-heal-containment")
def test_dots_do_not_lead_out_of_the_clone():
    climbing = f"{CLONE}/../../../evil/.npm-cache/_npx/dead"
    assert plan(f"ENOTEMPTY {climbing}", "/home/u/evil/.npm-cache/_npx/dead") == ()


@pytest.mark.requirement("npx-heal-missing-not-counted")
def test_a_tree_that_does_not_exist_is_no_repair_and_a_tree_counts_once():
    text = f"ENOTEMPTY {CACHE}/_npx/{HASH}/a | ENOTEMPTY {CACHE}/_npx/{HASH}/b"
    assert plan(text) == ()
    assert heal.carry_out(plan(text), lambda _tree: None) == (False, ())
    assert plan(text, f"{CACHE}/_npx/{HASH}") == (f"{CACHE}/_npx/{HASH}",)


@pytest.mark.requirement("npx-heal-error-safe")
def test_a_removal_that_fails_is_left_out_and_the_others_are_done():
    def remove(tree: str) -> None:
        if tree == "/a":
            raise PermissionError(tree)

    assert heal.carry_out(("/a", "/b"), remove) == (True, ("/b",))
    assert heal.carry_out(("/a",), remove) == (False, ())


@pytest.mark.requirement("npx-heal-covers-other-causes")
def test_a_single_server_whose_install_was_killed_is_healed_too():
    server = {"only": {"command": "npx", "args": ["-y", "p"]}}
    tree = f"{CACHE}/_npx/{HASH}"
    assert colliding(server) == ()
    assert plan(f"Cannot find module 'x' Require stack: {tree}/node_modules/p/cli.js", tree) == (tree,)


@pytest.mark.requirement("npx-pi-killed-install-leftover")
def test_what_pis_killed_install_left_outside_the_clone_is_not_touched_and_the_fallback_installs_inside():
    leftover = f"{HOME}/.npm/_npx/{HASH}"
    assert plan(f"Cannot find module '{leftover}/node_modules/x'", leftover) == ()
    shim = guard.Shim(f"{leftover}/node_modules/.bin/x", f"{leftover}/node_modules/x.js", "file", 0o644)
    assert guard.plan(CLONE, guard.Tree((shim,)), BASE) == guard.GuardPlan()

    profile: Any = load_profile("pi-0.84.1+2.32.1")
    pinned = pin_caches({"x": {"command": "npx", "args": ["-y", "p"]}}, CLONE)
    server = read_config(json.dumps({"mcpServers": pinned}), {}, profile).servers[0]
    started = resolver_plan(server, {}, profile, {}, NpmExec(None), f"{HOME}/.npm")
    assert (started.how, started.argv) == (FALLBACK, ("npx", "-y", "p"))
    assert child_cache(server, {}, profile, f"{HOME}/.npm") == CACHE


def test_a_long_hostile_text_is_read_in_one_pass():
    assert plan("ENOTEMPTY " + "/_npx" * 200_000) == ()
