"""The fake npx: what it reads, where it installs, how two installs ruin one tree, and what isolation makes of that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from fake_servers.mcp import Behaviour, Tool
from fake_servers.npm import Package, program
from fake_servers.npm.arguments import cache_directory, install_key, parse
from fake_servers.npm.registry import Unpublished, find, with_dependencies
from harness.reference.npx import isolation
from harness.world.model import Calm, Decisions, Fault, Seeded, Simulation
from harness.world.model.faults import Event

HOME = "/home/agent"
CLONE = "/home/agent/.zimmer/clones/one"
HELLO = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}})
KEY = "e3e1d528ee105f80"
PACKAGES = (Package("cowsay", "1.6.0"), Package("other", "2.0.0"))
SEEDS = 300


def registry(*packages: Package) -> dict[str, Package]:
    return {package.name: package for package in packages or PACKAGES}


class Launch(NamedTuple):
    """One process to start: its name, argv, NPM_CONFIG_CACHE (None: unset), and after how many seconds."""

    name: str
    argv: Sequence[str]
    cache: str | None = None
    after: Sequence[float] = (0.0,)


class Run(NamedTuple):
    """What a run of npx processes left: exit codes, stdout and stderr by name, all events, and the files."""

    simulation: Simulation
    codes: dict[str, int | None]
    out: dict[str, list[str]]
    errors: dict[str, str]
    events: tuple[Event, ...]
    seconds: float

    def named(self, *names: str) -> list[Event]:
        return [event for event in self.events if event.name in names]

    def downloads(self) -> list[str]:
        return [event.details["package"] for event in self.named("download")]

    def exists(self, path: str) -> bool:
        return self.simulation.tree.stat(path, 0) is not None


def run(
    launches: Iterable[Launch],
    packages: Mapping[str, Package] | None = None,
    *,
    decisions: Decisions | None = None,
    faults: Sequence[Fault] = (),
    before: Run | None = None,
    edit: Any = None,
) -> Run:
    """Start processes that are each sent one `initialize`; `before` gives the files that are there."""
    simulation = Simulation(decisions or Calm(), faults=faults)
    if before is not None:
        simulation.tree = before.simulation.tree
    if edit is not None:
        edit(simulation.tree)
    body = program(packages or registry())
    actors = {}
    for launch in launches:
        env = {"HOME": HOME, **({} if launch.cache is None else {isolation.CACHE_VARIABLE: launch.cache})}
        actors[launch.name] = simulation.start(
            launch.name, body, launch.argv, env=env, stdin=[HELLO], after_seconds=launch.after
        )
    outcome = simulation.run()
    assert outcome.verdict == "done", outcome.detail
    for actor in actors.values():
        error = simulation.ended(actor).error
        if error is not None:
            raise error
    return Run(
        simulation,
        {name: actor.exit_code for name, actor in actors.items()},
        {name: list(actor.stdout.lines) for name, actor in actors.items()},
        {name: "\n".join(actor.stderr.lines) for name, actor in actors.items()},
        outcome.events,
        outcome.seconds,
    )


def one(
    *words: str, packages: Mapping[str, Package] | None = None, cache: str | None = "/cache", **options: Any
) -> Run:
    return run([Launch("npx", ("npx", *words), cache)], packages, **options)


def connected(result: Run, name: str = "npx") -> bool:
    """Did the server answer `initialize` and end well?"""
    return result.codes[name] == 0 and any('"protocolVersion"' in line for line in result.out[name])


# --- what the command line says ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "specs", "wanted", "arguments"),
    [
        (["-y", "p@latest"], ("p@latest",), None, ()),
        (["-y", "srv", "/data", "--readonly", "-p", "x"], ("srv",), None, ("/data", "--readonly", "-p", "x")),
        (["-y", "--prefix", "/x", "p"], ("p",), None, ()),
        (["-y", "--package", "a@1", "--", "node", "--version"], ("a@1",), "node", ("--version",)),
        (["-p", "a@1", "-p", "b@2", "run"], ("a@1", "b@2"), "run", ()),
        (["-p=a@1", "--package=b@2", "run"], ("a@1", "b@2"), "run", ()),
        (["-y", "--", "pkg@1", "arg"], ("pkg@1",), None, ("arg",)),
        (["-c", "echo hi"], (), "echo", ("hi",)),
        (["-p", "a", "-c", "run it"], ("a",), "run", ("it",)),
        (["-p"], (), None, ()),
        (["-y"], (), None, ()),
        ([], (), None, ()),
    ],
)
def test_packages_program_and_arguments_are_read_as_npx_reads_them(words, specs, wanted, arguments):
    command = parse(words)
    assert (command.specs, command.program, command.arguments) == (specs, wanted, arguments)


@pytest.mark.requirement("npx-key-by-spec-only")
@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["cowsay@1.6.0"], KEY),
        (["-y", "cowsay@1.6.0", "--loud"], KEY),
        (["-p", "is-odd@3.0.1", "-p", "cowsay@1.6.0", "run"], "f3d6fe49ce1f05b1"),
        (["--package=cowsay@1.6.0", "--yes", "-p", "is-odd@3.0.1", "other", "-x"], "f3d6fe49ce1f05b1"),
        (["-y", "onepassword-mcp-server@latest"], "04f14e66d79e7af4"),
        (["-y", "@upstash/context7-mcp@latest"], "c35ab75beed40a3c"),
        (["playwright-stealth-mcp-server@latest"], "a4bcc792b5155234"),
    ],
)
def test_the_install_directory_is_named_by_the_specs_alone(words, key):
    assert install_key(parse(words)) == key


@pytest.mark.requirement("npx-key-includes-version-text")
def test_another_version_text_is_another_tree_of_the_same_package():
    result = one("-y", "cowsay@1.6.0")
    again = one("-y", "cowsay@latest", before=result)
    assert install_key(parse(["cowsay@latest"])) == "3eeb5f00c91638ab"
    trees = [event.details["tree"] for event in (*result.events, *again.events) if event.name == "install.started"]
    assert trees == [f"/cache/_npx/{KEY}", "/cache/_npx/3eeb5f00c91638ab"]


@pytest.mark.parametrize(
    ("words", "variables", "cache"),
    [
        ([], {"HOME": "/h"}, "/h/.npm"),
        ([], {}, "/home/agent/.npm"),
        ([], {"HOME": "/h", "NPM_CONFIG_CACHE": "/c"}, "/c"),
        ([], {"HOME": "/h", "npm_config_cache": "/c/"}, "/c"),
        ([], {"HOME": "/h", "NPM_CONFIG_CACHE": ""}, "/h/.npm"),
        ([], {"NPM_CONFIG_CACHE": ".npm-cache"}, "/project/.npm-cache"),
        (["--cache", "/f"], {"NPM_CONFIG_CACHE": "/c"}, "/f"),
        (["--cache=/f", "x"], {"NPM_CONFIG_CACHE": "/c"}, "/f"),
        (["x", "--cache", "/f"], {"NPM_CONFIG_CACHE": "/c"}, "/c"),
    ],
)
def test_the_cache_is_the_flags_then_the_variables_then_the_homes(words, variables, cache):
    assert cache_directory(parse(words), variables, "/project") == cache


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("cowsay", "1.6.0"),
        ("cowsay@latest", "1.6.0"),
        ("cowsay@^1", "1.6.0"),
        ("cowsay@1.6.0", "1.6.0"),
        ("cowsay@1.5.0", "ETARGET"),
        ("cowsai", "E404"),
        ("@scope/cowsay", "E404"),
    ],
)
def test_a_spec_names_a_package_or_a_fault(spec, found):
    try:
        answer = find(registry(), spec).version
    except Unpublished as fault:
        answer = fault.code
    assert answer == found


def test_dependencies_are_installed_once_each_even_in_a_circle():
    packages = registry(Package("a", dependencies=("b", "c")), Package("b", dependencies=("c", "a")), Package("c"))
    assert [package.name for package in with_dependencies(packages, [packages["a"]])] == ["a", "b", "c"]


# --- one process ------------------------------------------------------------------------------------------------------


@pytest.mark.smoke
def test_a_cold_npx_installs_and_is_the_server_and_a_warm_one_reuses_the_tree():
    package = Package("cowsay", "1.6.0", install_seconds=8.0, behaviour=Behaviour(name="moo", tools=(Tool("say"),)))
    cold = one("-y", "cowsay@1.6.0", packages=registry(package))
    warm = one("-y", "cowsay@1.6.0", packages=registry(package), before=cold)
    assert connected(cold)
    assert connected(warm)
    assert '"name":"moo"' in cold.out["npx"][0]
    assert (cold.seconds, warm.seconds) == (8.0, 0.0)
    assert cold.downloads() == ["cowsay"]
    assert warm.downloads() == []
    wanted = ["install.started", "install.finished", "install.reused"]
    happened = [event for event in (*cold.events, *warm.events) if event.name.startswith("install.")]
    assert [event.name for event in happened] == wanted
    assert len({event.details["tree"] for event in happened}) == 1
    assert cold.errors["npx"] == ""


def test_a_cold_and_a_warm_start_take_few_steps():
    cold = one("-y", "cowsay")
    warm = one("-y", "cowsay", before=cold)
    assert cold.simulation.scheduler.steps < 80
    assert warm.simulation.scheduler.steps < 30


def test_a_tarball_in_the_cache_saves_the_download_and_only_that():
    package = Package("cowsay", "1.6.0", install_seconds=8.0)
    cold = one("-y", "cowsay@1.6.0", packages=registry(package))
    other = one("-y", "cowsay@latest", packages=registry(package), before=cold)
    assert other.downloads() == []
    assert other.seconds == 4.0
    assert connected(other)


def test_a_package_is_announced_unless_yes_was_said():
    assert one("cowsay").errors["npx"] == (
        "npm warn exec The following package was not found and will be installed: cowsay@1.6.0"
    )
    assert one("-y", "cowsay").errors["npx"] == ""


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-y", "cowsai"], "npm error code E404\nnpm error 404  'cowsai' is not in this registry.\n"),
        (
            ["-y", "cowsay@9.9.9"],
            "npm error code ETARGET\nnpm error notarget No matching version found for ",
        ),
    ],
)
def test_an_unpublished_spec_is_an_error_of_npm(words, text):
    result = one(*words)
    assert result.codes["npx"] == 1
    assert text in result.errors["npx"]
    assert (
        "npm error A complete log of this run can be found in: /cache/_logs/2023-11-14T22_13_20_000Z"
        in (result.errors["npx"])
    )


@pytest.mark.parametrize(("mode", "code"), [(0o644, 127), (0o600, 127), (0o755, 0), (0o744, 0)])
def test_a_program_without_an_execute_bit_is_denied(mode, code):
    packages = registry(Package("cowsay", bin_name="moo", bin_mode=mode))
    result = one("-y", "cowsay", packages=packages)
    assert result.codes["npx"] == code
    assert result.errors["npx"] == ("sh: 1: moo: Permission denied" if code else "")
    # Installing again does not help; the bit on the file that the shim leads to does.
    again = one("-y", "cowsay", packages=packages, before=result)
    assert again.codes["npx"] == code
    tree = install_key(parse(["cowsay"]))
    path = f"/cache/_npx/{tree}/node_modules/cowsay/dist/index.js"
    repaired = one(
        "-y", "cowsay", packages=packages, before=again, edit=lambda files: files.chmod(path, 0o755, 0)
    )  # fmt: skip
    assert connected(repaired)


def test_the_program_is_chosen_among_the_packages_and_what_the_system_has():
    packages = registry(Package("a", bin_name="run-a"), Package("b", bin_name="run-b", behaviour=Behaviour(name="bee")))
    assert '"name":"bee"' in one("-p", "a", "-p", "b", "run-b", packages=packages).out["npx"][0]
    assert one("-y", "-p", "a", "--", "node", "-e", "1", packages=packages).codes["npx"] == 0
    missing = one("-y", "-p", "a", "run-c", packages=packages)
    assert (missing.codes["npx"], missing.errors["npx"]) == (127, "sh: 1: run-c: not found")


def test_a_broken_package_fails_the_same_way_after_every_install():
    packages = registry(Package("cowsay", broken=True))
    first = one("-y", "cowsay", packages=packages)
    second = one("-y", "cowsay", packages=packages, before=first)
    for result in (first, second):
        assert result.codes["npx"] == 1
        assert "Error [ERR_MODULE_NOT_FOUND]: Cannot find module '/cache/_npx/" in result.errors["npx"]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_killed_install_leaves_a_tree_that_fails_until_it_is_removed(number):
    label = f"write /cache/_npx/{KEY}/node_modules/cowsay/dist/part-{number}.js"
    killed = one("-y", "cowsay@1.6.0", faults=(Fault("kill", label=label),))
    assert killed.codes["npx"] == -9
    half = one("-y", "cowsay@1.6.0", before=killed)
    assert half.codes["npx"] == 1
    assert "code: 'MODULE_NOT_FOUND'" in half.errors["npx"]
    assert f"- /cache/_npx/{KEY}/node_modules/cowsay/dist/index.js" in half.errors["npx"]
    assert [event.details["missing"] for event in half.named("install.incomplete")] == [f"./part-{number}.js"]

    def heal(files: Any) -> None:
        removed(files, f"/cache/_npx/{KEY}")

    assert connected(one("-y", "cowsay@1.6.0", before=half, edit=heal))


def test_a_kill_before_the_package_is_in_place_costs_nothing_but_time():
    label = f"rename /cache/_npx/{KEY}/node_modules/.cowsay-*"
    killed = one("-y", "cowsay@1.6.0", faults=(Fault("kill", label=label),))
    assert killed.codes["npx"] == -9
    assert connected(one("-y", "cowsay@1.6.0", before=killed))


def removed(files: Any, path: str) -> None:
    if files.stat(path, 0).kind == "directory":
        for name in files.names(path, 0):
            removed(files, f"{path}/{name}")
    files.remove(path, 0, 0.0)


@pytest.mark.parametrize(
    ("action", "text"), [("enospc", "ENOSPC: no space left on device"), ("eacces", "EACCES: permission denied")]
)
def test_a_failing_file_system_is_told_in_the_words_of_npm(action, text):
    result = one("-y", "cowsay", faults=(Fault(action, label="mkdir /cache/_npx/*"),))
    assert result.codes["npx"] == 1
    lines = result.errors["npx"].splitlines()
    assert lines[0] == f"npm error code {text.partition(':')[0]}"
    assert lines[1] == "npm error syscall mkdir"
    assert lines[4].startswith(f"npm error {text}, mkdir '/cache/_npx/")
    assert [event.details["code"] for event in result.named("install.failed")] == [text.partition(":")[0]]


def test_npm_itself_execs_tells_its_cache_and_installs_globally():
    launches = [
        Launch("exec", ("npm", "exec", "--yes", "--package", "cowsay", "--", "node", "-e", "1"), "/c"),
        Launch("cache", ("/usr/bin/npm", "config", "get", "cache")),
        Launch("global", ("npm", "install", "-g", "other")),
        Launch("wrong", ("npm", "publish")),
    ]
    result = run(launches)
    assert result.codes == {"exec": 0, "cache": 0, "global": 0, "wrong": 1}
    assert result.out["cache"] == [f"{HOME}/.npm"]
    assert sorted((event.details["package"], event.details["cache"]) for event in result.named("download")) == [
        ("cowsay", "/c"),
        ("other", f"{HOME}/.npm"),
    ]
    assert run([Launch("g", ("npm", "i", "-g", "cowsai"))]).codes == {"g": 1}


# --- races on one tree ------------------------------------------------------------------------------------------------

CORRUPTIONS = ("ENOTEMPTY", "MODULE_NOT_FOUND")
OFFSETS = (0.0, 0.2, 0.6, 0.9, 3.0)


def racing(caches: Mapping[str, str | None], seed: int, package: Package = PACKAGES[0]) -> Run:
    """Byte-identical npx servers, each with its cache, started at times drawn from the seed."""
    launches = [Launch(name, ("npx", "-y", f"{package.name}@latest"), cache, OFFSETS) for name, cache in caches.items()]
    return run(launches, registry(package), decisions=Seeded(seed))


def corruption(result: Run) -> str | None:
    """The corruption some server of a run reports, if any; whoever does not report one has connected."""
    found = None
    for name, text in result.errors.items():
        words = [word for word in CORRUPTIONS if word in text]
        assert bool(words) != connected(result, name), text
        assert not words or "/_npx/" in text
        found = found or (words[0] if words else None)
    return found


def test_two_installs_in_one_tree_end_in_both_known_corruptions_and_some_well():
    seen = {corruption(racing({"a": "/cache", "b": "/cache"}, seed)) for seed in range(60)}
    assert seen == {*CORRUPTIONS, None}


def test_a_lost_race_names_both_ends_of_the_rename():
    texts = [text for seed in range(40) for text in racing({"a": "/c", "b": "/c"}, seed).errors.values()]
    text = next(text for text in texts if "ENOTEMPTY" in text)
    key = install_key(parse(["cowsay@latest"]))
    code, call, source, target, number, words, log = text.splitlines()
    assert code == "npm error code ENOTEMPTY"
    assert (call, number) == ("npm error syscall rename", "npm error errno -39")
    assert source.startswith(f"npm error path /c/_npx/{key}/node_modules/.cowsay-")
    assert target == f"npm error dest /c/_npx/{key}/node_modules/cowsay"
    assert words.startswith("npm error ENOTEMPTY: directory not empty, rename '/c/_npx/")
    assert log.startswith("npm error A complete log of this run can be found in: /c/_logs/")


def test_the_winner_of_a_race_leaves_a_good_tree():
    for seed in range(40):
        result = racing({"a": "/cache", "b": "/cache"}, seed)
        assert connected(run([Launch("late", ("npx", "-y", "cowsay@latest"), "/cache")], before=result), "late")


def twins(clone: str) -> dict[str, str | None]:
    """The caches that two servers with one command line get in a clone."""
    servers = {name: {"command": "npx", "args": ["-y", "cowsay@latest"]} for name in ("twin-a", "twin-b")}
    planned = isolation.cache_directories(clone, servers)
    return {name: planned.get(name) for name in servers}


@pytest.mark.requirement("npx-isolate-cold-race")
def test_twins_of_a_cold_clone_never_ruin_each_others_install():
    for seed in range(SEEDS):
        result = racing(twins(CLONE), seed)
        assert corruption(result) is None, f"seed {seed}: {result.errors}"
    # The same run in one cache finds the race, so the calm above is the isolation's doing.
    assert any(
        corruption(racing(dict.fromkeys(("twin-a", "twin-b"), f"{CLONE}/.npm-cache"), seed)) for seed in range(9)
    )


@pytest.mark.requirement("npx-pin-two-sessions-disjoint")
def test_sessions_in_two_clones_never_meet_in_one_tree():
    entry = {"memory": {"command": "npx", "args": ["-y", "cowsay@latest"]}}
    clones = {"session-1": "/home/agent/.zimmer/clones/one", "session-2": "/home/agent/.zimmer/clones/two"}
    caches = {name: isolation.cache_directories(clone, entry).get("memory") for name, clone in clones.items()}
    for seed in range(SEEDS):
        result = racing(caches, seed)
        assert corruption(result) is None, f"seed {seed}: {result.errors}"
        assert not result.exists(f"{HOME}/.npm")
    unpinned = [racing(dict.fromkeys(clones), seed) for seed in range(9)]
    assert any(corruption(result) for result in unpinned)
    assert all(result.exists(f"{HOME}/.npm/_npx") for result in unpinned)


# --- what is downloaded -----------------------------------------------------------------------------------------------


def session(
    servers: Mapping[str, Mapping[str, Any]], packages: Mapping[str, Package], before: Run | None = None
) -> Run:
    """All npx servers of a clone, one started after the other is up, with the caches planned for them."""
    caches = isolation.cache_directories(CLONE, servers)
    launches = [
        Launch(name, ("npx", *entry["args"]), caches.get(name), (float(number * 100),))
        for number, (name, entry) in enumerate(servers.items())
    ]
    return run(launches, packages, before=before)


@pytest.mark.requirement("npx-isolate-noncolliding-share")
def test_servers_of_different_packages_share_what_they_both_need():
    packages = registry(Package("x", dependencies=("z",)), Package("y", dependencies=("z",)), Package("z"))
    servers = {name: {"command": "npx", "args": ["-y", f"{name}@latest"]} for name in "xy"}
    result = session(servers, packages)
    assert sorted(result.downloads()) == ["x", "y", "z"]
    assert all(connected(result, name) for name in servers)


@pytest.mark.requirement("npx-preinstall-no-help-for-npx")
def test_a_preinstalled_package_is_downloaded_again_in_a_fresh_clone_and_then_no_more():
    servers = {name: {"command": "npx", "args": ["-y", f"{name}@latest"]} for name in ("cowsay", "other")}
    preinstalled = run([Launch("preinstall", ("npm", "install", "-g", "cowsay@latest", "other@latest"))])
    assert sorted(preinstalled.downloads()) == ["cowsay", "other"]
    first = session(servers, registry(), before=preinstalled)
    assert sorted(first.downloads()) == ["cowsay", "other"]
    assert {event.details["cache"] for event in first.named("download")} == {f"{CLONE}/.npm-cache"}
    second = session(servers, registry(), before=first)
    assert second.downloads() == []
    assert all(connected(result, name) for result in (first, second) for name in servers)
