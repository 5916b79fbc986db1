"""The npx resolver of the fake Pi at work, over a simulated npm in virtual time."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.plan import Plan
from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.mcp.stdio import serve
from fake_servers.npm.npx import program as npm_program
from fake_servers.npm.registry import Package
from harness.world import World
from harness.world.model import Fault, Seeded
from scenarios.units.fake_pi_run import BOTH, CLONE, GOOD, HOME, NEWER, OLDER, run_pi, stdio, turn

PINNED = {"NPM_CONFIG_CACHE": f"{CLONE}/.npm-cache"}
USER_CACHE = f"{HOME}/.npm"
MEMORY = f"{HOME}/.pi/agent/mcp-npx-cache.json"
PACKAGE = Package("pkg", "1.2.3")
OFFERED = ["mcp", "mcpScript", "mcp__s"]
LONG = Plan((turn(seconds=400.0), turn()))
BY_PROFILE = pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)


async def node(world: World, argv) -> int:
    """A program that is a server when its script is there."""
    return await serve(world, GOOD) if await world.files.stat(argv[1]) is not None else 1


def npx(*args, **fields):
    return {"s": {"command": "npx", "args": list(args), **fields}}


def run(entries, package=PACKAGE, **options):
    npm = npm_program({package.name: package})
    return run_pi(entries, {"npx": npm, "/usr/bin/npx": npm, "npm": npm, "node": node, "good": GOOD}, **options)


def installed(cache, version="1.2.3", key="0a"):
    """The files of an installed package in an npm cache."""
    place = f"{cache}/_npx/{key}/node_modules/pkg"
    manifest = json.dumps({"name": "pkg", "version": version, "bin": {"pkg": "bin.js"}})
    return {f"{place}/package.json": manifest, f"{place}/bin.js": "#!/usr/bin/env node\n"}


def commands(ran):
    return [argv[:2] for argv in ran.spawned()]


def trees(ran):
    """The caches in which something was installed."""
    started = [event.details["tree"] for event in ran.outcome.events if event.name == "install.started"]
    return [tree.partition("/_npx/")[0] for tree in started]


@pytest.mark.requirement("npx-pi-resolver-intercepts")
@BY_PROFILE
@pytest.mark.parametrize(
    ("command", "args", "direct"),
    [
        ("npx", ["-y", "pkg"], True),
        ("npx", ["--package=pkg", "pkg"], True),
        ("npm", ["exec", "--package", "pkg", "--", "pkg"], True),
        ("npx", ["-q", "pkg"], False),
        ("/usr/bin/npx", ["-y", "pkg"], False),
    ],
)
def test_a_package_in_the_user_s_cache_runs_without_npx(profile, command, args, direct):
    entry = {"s": {"command": command, "args": args}}
    ran = run(entry, profile=profile, files=installed(USER_CACHE))
    place = f"{USER_CACHE}/_npx/0a/node_modules/pkg/bin.js"
    assert ran.spawned() == [["node", place] if direct else [command, *args]]
    assert ran.requests()[0][1] == OFFERED


@pytest.mark.requirement("npx-pi-resolver-process-cache")
@BY_PROFILE
def test_the_cache_of_the_process_is_read_and_never_the_entry_s(profile):
    pinned = npx("-y", "pkg", env=PINNED)
    in_entry = run(pinned, profile=profile, files=installed(PINNED["NPM_CONFIG_CACHE"]))
    assert commands(in_entry)[0] == ["npm", "exec"]
    in_process = run(pinned, profile=profile, files=installed("/user"), env={"NPM_CONFIG_CACHE": "/user"})
    assert commands(in_process) == [["node", "/user/_npx/0a/node_modules/pkg/bin.js"]]


def test_an_exact_version_must_match_and_the_newest_directory_comes_first():
    both = {**installed(USER_CACHE, "1.0.0", "0a"), **installed(USER_CACHE, "1.2.3", "0b")}
    for spec, key in (("pkg@1.0.0", "0a"), ("pkg@1.2.3", "0b"), ("pkg@latest", "0a")):
        (argv,) = run(npx("-y", spec), files=both).spawned()
        assert argv[1].split("/")[5] == key


@BY_PROFILE
def test_a_miss_installs_by_npm_exec_into_the_process_cache_and_is_remembered(profile):
    ran = run(npx("-y", "pkg", "serve", env=PINNED), Package("pkg", install_seconds=10.0), profile=profile)
    first, second = ran.spawned()
    assert first == ["npm", "exec", "--yes", "--package", "pkg", "--", "node", "-e", "1"]
    assert (second[0], second[2:]) == ("node", ["serve"])
    assert trees(ran) == [USER_CACHE]
    (connected,) = ran.events("server.connected")
    assert (ran.at(connected), connected.details["seconds"]) == (10.0, 0.0)
    memory = json.loads(ran.file(MEMORY) or "")
    assert list(memory["entries"]) == ['["npx","pkg",""]']
    assert (memory["version"], memory["entries"]['["npx","pkg",""]']["isJs"]) == (2, True)


def remembered(path, version="1.2.3", age_seconds=0.0, start=1_700_000_000.0):
    entry = {"resolvedBin": path, "resolvedAt": (start - age_seconds) * 1000, "packageVersion": version, "isJs": True}
    entries = {f'["npx","{spec}",""]': entry for spec in ("pkg", "pkg@1.2.3", "pkg@2.0.0")}
    return {MEMORY: json.dumps({"version": 2, "entries": entries})}


@pytest.mark.parametrize(
    ("spec", "age_seconds", "exists", "used"),
    [
        ("pkg", 0.0, True, True),
        ("pkg@1.2.3", 86399.0, True, True),
        ("pkg", 86400.0, True, False),
        ("pkg", 0.0, False, False),
        ("pkg@2.0.0", 0.0, True, False),
    ],
)
def test_the_memory_counts_for_a_day_while_the_program_is_there_in_the_exact_version(spec, age_seconds, exists, used):
    files = {**remembered("/kept/bin.js", age_seconds=age_seconds), **({"/kept/bin.js": ""} if exists else {})}
    first = run(npx("-y", spec), files=files).spawned()[0]
    assert (first == ["node", "/kept/bin.js"]) is used


@pytest.mark.requirement("npx-pi-resolver-30s-cap", "npx-pi-fallback-uses-pin")
@BY_PROFILE
@pytest.mark.parametrize("fields", [{}, {"requestTimeoutMs": 5000}, {"requestTimeoutMs": 180000}])
def test_a_slow_install_is_killed_at_thirty_seconds_then_plain_npx_installs_for_the_clone(profile, fields):
    slow = Package("pkg", install_seconds=80.0)
    ran = run(npx("-y", "pkg", env=PINNED, **fields), slow, profile=profile, plan=LONG)
    assert [ran.at(event) for event in ran.events("resolver.killed")] == [30.0]
    assert commands(ran) == [["npm", "exec"], ["npx", "-y"]]
    fallback = [event for event in ran.events("spawn") if event.details["argv"][0] == "npx"]
    assert [ran.at(event) for event in fallback] == [30.0]
    assert trees(ran) == [USER_CACHE, PINNED["NPM_CONFIG_CACHE"]]


@pytest.mark.requirement("npx-pi-budget-covers-fallback")
@BY_PROFILE
@pytest.mark.parametrize(
    ("milliseconds", "connected", "failed"),
    [(180000, [130.0], []), (60000, [], [("s", 90.0)])],
)
def test_the_budget_begins_with_the_fallback(profile, milliseconds, connected, failed):
    slow = Package("pkg", install_seconds=100.0)
    entry = npx("-y", "pkg", env=PINNED, requestTimeoutMs=milliseconds)
    ran = run(entry, slow, profile=profile, plan=LONG)
    assert [ran.at(event) for event in ran.events("server.connected")] == connected
    assert ran.failures() == failed
    assert ran.requests()[0] == (30.0, ["mcp", "mcpScript"])


@pytest.mark.requirement("npx-pi-budget-covers-fallback")
@BY_PROFILE
@pytest.mark.parametrize(("milliseconds", "connected"), [(180000, [100.0]), (60000, [])])
def test_the_budget_covers_a_server_that_is_no_npx(profile, milliseconds, connected):
    slow = Behaviour(starts_after_seconds=100.0)
    ran = run_pi({"s": stdio("s", requestTimeoutMs=milliseconds)}, {"s": slow}, profile=profile, plan=LONG)
    assert [ran.at(event) for event in ran.events("server.connected")] == connected


@BY_PROFILE
def test_the_fallback_works_beside_what_a_killed_install_left_in_the_user_s_cache(profile):
    half = {f"{USER_CACHE}/_npx/0a/node_modules/pkg/package.json": '{"name": "pk'}
    ran = run(npx("-y", "pkg", env=PINNED), Package("pkg", install_seconds=70.0, steps=1), profile=profile,
              files=half, plan=LONG)  # fmt: skip
    assert ran.failures() == [("s", 90.0)]
    patient = run(npx("-y", "pkg", env=PINNED, requestTimeoutMs=180000), Package("pkg", install_seconds=70.0),
                  profile=profile, files=half, plan=LONG)  # fmt: skip
    assert [patient.at(event) for event in patient.events("server.connected")] == [100.0]
    assert trees(patient)[-1] == PINNED["NPM_CONFIG_CACHE"]
    assert patient.file(f"{USER_CACHE}/_npx/0a/node_modules/pkg/package.json") == '{"name": "pk'


def test_without_npm_the_line_is_spawned_as_it_is_written():
    ran = run_pi(npx("-y", "pkg"), {"npx": GOOD})
    assert ran.spawned() == [["npx", "-y", "pkg"]]
    assert ran.requests() == [(0.0, OFFERED)]


def test_an_eager_npx_server_resolves_once():
    for profile in (OLDER, NEWER):
        ran = run(npx("-y", "pkg", lifecycle="eager"), profile=profile)
        assert [argv[0] for argv in ran.spawned()] == ["npm", "node"]


def test_two_runs_in_one_home_share_the_package_and_the_memory():
    first = run(npx("-y", "pkg"))
    path = first.spawned()[-1][1]
    files = {MEMORY: first.file(MEMORY) or "", path: ""}
    assert run(npx("-y", "pkg"), files=files).spawned() == [["node", path]]


def test_caches_of_their_own_do_not_keep_two_servers_out_of_one_tree_of_the_resolver():
    entries = {
        name: {
            "command": "npx",
            "args": ["-y", "pkg"],
            "env": {"NPM_CONFIG_CACHE": f"{CLONE}/.npm-cache/isolated/{name}"},
        }
        for name in ("s", "t")
    }
    ran = run(entries)
    started = [event.details["tree"] for event in ran.outcome.events if event.name == "install.started"]
    assert len(started) == 2
    assert set(started) == {f"{USER_CACHE}/_npx/{started[0].rpartition('/')[2]}"}


OWN_FAULTS = ("eacces", "enospc", "torn", "enoent", "eacces-exec", "refused", "reset-before", "reset-after")


def test_whatever_strikes_its_own_ports_a_run_ends_with_0_and_loses_no_error():
    faults = [Fault(action, actor="pi", drawn=True, times=2) for action in OWN_FAULTS]
    entries = {**npx("-y", "pkg"), "eager": stdio(lifecycle="eager"), "remote": {"url": "https://mcp.test/mcp"}}
    plan = Plan((turn(("s", "echo"), ("remote", "echo")), turn(("eager", "echo"), seconds=100.0)))
    struck = set()
    for seed in range(20):
        ran = run(entries, servers={"https://mcp.test": HttpServer()}, plan=plan, decisions=Seeded(seed), faults=faults)
        assert ran.outcome.verdict == "done"
        assert len(ran.calls()) == 3
        struck |= {event.details["action"] for event in ran.events("fault")}
    assert len(struck) > 4
