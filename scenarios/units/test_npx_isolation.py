"""NPM_CONFIG_CACHE of each entry: scope, the shared cache, and isolation of twins."""

import copy
from typing import Any

import pytest

from harness.reference.npx.isolation import cache_directories, colliding, directory_clashes, pin_caches

CLONE = "/clone"
SHARED = "/clone/.npm-cache"


def npx(*args: Any, **entry: Any) -> dict[str, Any]:
    return {"command": "npx", "args": list(args), **entry}


def cache_of(entry: dict[str, Any]) -> Any:
    return entry["env"]["NPM_CONFIG_CACHE"]


TWINS = {"twin-a": npx("-y", "p@1"), "twin-b": npx("-y", "p@1"), "solo": npx("-y", "q@1")}


@pytest.mark.requirement("npx-pin-scope-exact")
@pytest.mark.parametrize(
    "entry",
    [
        {"command": "sh", "args": ["-c", "npx -y p"]},
        {"command": "/usr/bin/npx", "args": ["-y", "p"]},
        {"command": "npm", "args": ["exec", "p"]},
        {"command": "bunx", "args": ["p"]},
        {"command": "pnpm", "args": ["dlx", "p"]},
        {"command": "npx.cmd", "args": ["p"]},
        {"command": "NPX", "args": ["p"]},
        {"command": "npx ", "args": ["p"]},
        {"type": "http", "url": "https://e/mcp"},
        {"type": "http", "url": "https://e/npx", "env": {}},
        {"command": None},
        "npx",
        None,
    ],
)
def test_no_other_way_to_run_a_package_is_pinned(entry):
    assert pin_caches({"other": entry}, CLONE) == {"other": entry}


@pytest.mark.requirement("npx-pin-operator-value-kept")
def test_an_operators_own_cache_is_kept_even_in_a_collision():
    own = npx("-y", "p@1", env={"NPM_CONFIG_CACHE": "/operators/choice"})
    assert cache_of(pin_caches({"a": own}, CLONE)["a"]) == "/operators/choice"
    assert cache_of(pin_caches({"a": own, "b": npx("p@1")}, CLONE)["a"]) == "/operators/choice"


@pytest.mark.requirement("npx-pin-operator-value-kept")
@pytest.mark.parametrize("blank", ["", "  ", None])
def test_a_blank_cache_counts_as_not_set(blank):
    assert cache_of(pin_caches({"a": npx("p", env={"NPM_CONFIG_CACHE": blank})}, CLONE)["a"]) == SHARED


@pytest.mark.requirement("npx-pin-env-merged")
@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"env": {"API_KEY": "k"}}, {"API_KEY": "k", "NPM_CONFIG_CACHE": SHARED}),
        ({"env": {}}, {"NPM_CONFIG_CACHE": SHARED}),
        ({"env": None}, {"NPM_CONFIG_CACHE": SHARED}),
        ({}, {"NPM_CONFIG_CACHE": SHARED}),
        ({"env": "x"}, "x"),
        ({"env": ["A=1"]}, ["A=1"]),
    ],
)
def test_the_variable_joins_the_env_table_of_a_new_entry(given, written):
    entry = npx("-y", "p", **given)
    before = copy.deepcopy(entry)
    assert pin_caches({"a": entry}, CLONE)["a"]["env"] == written
    assert entry == before


@pytest.mark.requirement("npx-pin-without-args")
@pytest.mark.parametrize("entry", [{"command": "npx"}, npx(), npx("-y"), {"command": "npx", "args": None}, npx("-p")])
def test_an_entry_without_a_readable_package_gets_the_shared_cache(entry):
    pinned = pin_caches({"a": entry, "b": entry}, CLONE)
    assert [pinned[name].get("env") for name in ("a", "b")] == [{"NPM_CONFIG_CACHE": SHARED}] * 2


@pytest.mark.requirement("npx-pin-needs-working-directory")
@pytest.mark.parametrize("clone", ["", "   ", "relative"])
def test_without_a_working_directory_entries_stay_as_they_are(clone):
    assert pin_caches(TWINS, clone) == TWINS


@pytest.mark.requirement("npx-collide-detects")
@pytest.mark.parametrize(
    ("servers", "names"),
    [
        (TWINS, ("twin-a", "twin-b")),
        ({"a": npx("-p", "x", "-p", "y", "run"), "b": npx("-p", "y", "-p", "x", "other")}, ("a", "b")),
        ({"a": npx("-y", "p", "--ro"), "b": npx("p", "/data")}, ("a", "b")),
        ({"a": npx("p"), "b": npx("-p", "p", "run")}, ("a", "b")),
        ({"a": npx("p"), "b": npx("-p", "p", "-p", "q", "run")}, ()),
        (
            {
                "a": {"command": "node", "args": ["server.js"]},
                "b": {"command": "node", "args": ["server.js"]},
            },
            (),
        ),
        ({name: {"command": "/usr/bin/npx", "args": ["-y", "p"]} for name in "ab"}, ()),
        ({"a": npx("-y"), "b": npx("-y")}, ()),
        ({"a": npx("p"), "b": "junk", "c": None, "d": npx("p")}, ("a", "d")),
        ({"c": npx("q"), "b": npx("p"), "a": npx("q")}, ("c", "a")),
        ({}, ()),
    ],
)
def test_entries_collide_when_their_sorted_packages_are_equal(servers, names):
    assert colliding(servers) == names


@pytest.mark.requirement("npx-key-includes-version-text")
def test_two_versions_of_a_package_do_not_collide():
    assert colliding({"a": npx("cowsay@1.6.0"), "b": npx("cowsay@latest"), "c": npx("cowsay")}) == ()


@pytest.mark.requirement("npx-key-by-spec-only")
def test_other_arguments_do_not_keep_two_servers_of_one_package_apart():
    assert colliding({"a": npx("-y", "p@1", "--read-only"), "b": npx("--yes", "p@1", "--write")}) == (
        "a",
        "b",
    )


@pytest.mark.requirement("npx-isolate-each")
def test_every_member_of_a_collision_gets_a_cache_of_its_own():
    assert cache_directories(CLONE, TWINS) == {
        "twin-a": f"{SHARED}/isolated/twin-a",
        "twin-b": f"{SHARED}/isolated/twin-b",
        "solo": SHARED,
    }


@pytest.mark.requirement("npx-isolate-noncolliding-share")
def test_servers_of_different_packages_share_one_cache():
    assert set(cache_directories(CLONE, {"a": npx("x@latest"), "b": npx("y@latest")}).values()) == {SHARED}


@pytest.mark.requirement("npx-isolate-operator-value-counts")
def test_a_twin_of_an_operators_own_cache_is_still_isolated():
    own = npx("-y", "p", env={"NPM_CONFIG_CACHE": "/operators/choice"})
    expected = {"a": "/operators/choice", "b": f"{SHARED}/isolated/b"}
    assert cache_directories(CLONE, {"a": own, "b": npx("p")}) == expected


@pytest.mark.requirement("npx-isolate-stable-across-prepare")
def test_a_written_cache_stays_after_its_collision_is_gone():
    first = pin_caches(TWINS, CLONE)
    alone = {name: entry for name, entry in first.items() if name != "twin-b"}
    assert pin_caches(first, CLONE) == first
    assert pin_caches(alone, CLONE) == alone
    assert cache_of(alone["twin-a"]) == f"{SHARED}/isolated/twin-a"


@pytest.mark.requirement("npx-layout-name-collision")
def test_names_that_sanitise_alike_share_a_directory_with_one_warning():
    servers = {"a/b": npx("p"), "a_b": npx("p"), "c": npx("p")}
    directories = cache_directories(CLONE, servers)
    assert directories["a/b"] == directories["a_b"] == f"{SHARED}/isolated/a_b"
    assert len(directory_clashes(servers)) == 1
    assert "a/b, a_b" in directory_clashes(servers)[0]
    assert directory_clashes({"a/b": npx("p"), "a_b": npx("q")}) == ()


@pytest.mark.requirement("npx-isolate-injected-irrelevant")
def test_remote_entries_never_get_an_env_table():
    remote = {
        "zimmer-self-session": {"type": "http", "url": "http://h/mcp"},
        "codex": {"url": "http://h/mcp"},
    }
    assert pin_caches(remote, CLONE) == remote


def test_a_pinned_entry_does_not_forward_the_variable_from_codex():
    forwarding = npx("p", env_vars=["HOME", "NPM_CONFIG_CACHE", {"name": "NPM_CONFIG_CACHE"}])
    only = npx("q", env_vars=["NPM_CONFIG_CACHE"])
    pinned = pin_caches({"a": forwarding, "b": only}, CLONE)
    assert pinned["a"]["env_vars"] == ["HOME"]
    assert "env_vars" not in pinned["b"]
    assert cache_of(pinned["a"]) == cache_of(pinned["b"]) == SHARED
