"""Runs of the fake Codex in a model world: what is waited for, what the model is offered, how it all ends."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from fake_runtimes.codex.command import program
from fake_runtimes.codex.config import read_config
from fake_runtimes.launch import launch
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_runtimes.profile import load_profile
from fake_servers.mcp import Behaviour
from fake_servers.mcp import program as server_program
from fake_servers.npm.npx import program as npx_program
from fake_servers.npm.registry import Package
from harness.world import World
from harness.world.model import Actor, Fault, Outcome, Seeded, Simulation
from harness.world.ports import Program
from scenarios.preparing import goes_through

OLDER: Any = load_profile("codex-0.146.0")
NEWER: Any = load_profile("codex-0.169.0")
BOTH = (OLDER, NEWER)
HOME, CLONE = "/home/u", "/clone"
USER_CONFIG, PROJECT_CONFIG = f"{HOME}/.codex/config.toml", f"{CLONE}/.codex/config.toml"
ENVIRONMENT = {"HOME": HOME, "PATH": "/usr/bin"}
EXEC = ("codex", "exec", "--json", "go on")
FULL = ("--sandbox", "danger-full-access")
GOOD, HANGS = Behaviour(), Behaviour(initialize="never")
SLOW_TWICE = Behaviour(initialize_after_seconds=1, list_after_seconds=2)
TRUSTED = f'[projects."{CLONE}"]\ntrust_level = "trusted"\n'


class Run(NamedTuple):
    """A finished run of one program."""

    simulation: Simulation
    outcome: Outcome
    actor: Actor

    @property
    def exit_code(self) -> int | None:
        return self.actor.exit_code

    @property
    def stdout(self) -> list[Any]:
        return [json.loads(line) for line in self.actor.stdout.lines]

    @property
    def stderr(self) -> list[str]:
        return [line for line in self.actor.stderr.lines if not line.startswith("Reading additional input")]

    def events(self, name: str) -> list[dict[str, Any]]:
        return [event.details for event in self.outcome.events if event.name == name and event.actor == "codex"]

    def at(self, name: str) -> list[float]:
        began = self.simulation.started_seconds
        return [
            round(event.at_seconds - began, 6)
            for event in self.outcome.events
            if event.name == name and event.actor == "codex"
        ]

    def failures(self) -> dict[str, str]:
        return {event["server"]: event["text"] for event in self.events("server.failed")}

    def tools(self, number: int = 1) -> list[str]:
        return list(self.events("model.request")[number - 1]["tools"])

    def text(self, path: str) -> str:
        return self.simulation.tree.read(path, 0).decode()


def entry(name: str, *lines: str, **keys: Any) -> str:
    """A stdio table whose command is `run-NAME`, or one with a url."""
    keys = keys if "url" in keys else {"command": f"run-{name}", **keys}
    return "\n".join([f"[mcp_servers.{name}]", *(f"{key} = {json.dumps(keys[key])}" for key in keys), *lines, ""])


def write(simulation: Simulation, path: str, text: str, mode: int = 0o644) -> None:
    simulation.tree.make_directory(path.rpartition("/")[0], 0o755, 0, simulation.now)
    simulation.tree.write(path, text.encode(), mode, 0, simulation.now)


def run(
    user: str | None = None,
    servers: Mapping[str, Behaviour | Program] | None = None,
    *,
    profile: Any = OLDER,
    plan: Plan = Plan(),  # noqa: B008 - immutable
    argv: Sequence[str] = EXEC,
    files: Mapping[str, str] | None = None,
    environment: Mapping[str, str] = ENVIRONMENT,
    http: Mapping[str, Any] | None = None,
    stdin: Sequence[str] = (),
    started: Program | None = None,
    also: Mapping[str, Program] | None = None,
    **options: Any,
) -> Run:
    """One run of `codex` with this user configuration; `servers` are the programs behind `run-NAME`."""
    programs = {
        f"run-{name}": server_program(server) if isinstance(server, Behaviour) else server
        for name, server in (servers or {}).items()
    }
    options.setdefault("launcher", lambda argv, env, directory: programs.get(argv[0]))
    simulation = Simulation(servers=http, **options)
    simulation.tree.make_directory(CLONE, 0o755, 0, simulation.now)
    for path, text in {**({USER_CONFIG: user} if user is not None else {}), **(files or {})}.items():
        write(simulation, path, text)
    actor = simulation.start(
        "codex", started or program(profile, plan), argv, env=environment, directory=CLONE, stdin=stdin
    )
    for name, other in (also or {}).items():
        simulation.start(name, other)
    outcome = simulation.run()
    ended = simulation.ended(actor)
    assert outcome.verdict == "done", outcome.detail
    assert ended.error is None, ended.error
    assert not ended.lost, ended.lost
    return Run(simulation, outcome, actor)


def alive(found: Run) -> list[str]:
    return [actor.name for actor in found.simulation.actors if actor.exit_code is None]


def connected(found: Run) -> dict[str, float]:
    return {event["server"]: round(event["seconds"], 6) for event in found.events("server.connected")}


def failed_at(found: Run) -> dict[str, float]:
    times = found.at("server.failed")
    return {event["server"]: at for event, at in zip(found.events("server.failed"), times, strict=True)}


def test_a_run_with_a_good_server_offers_its_tool_and_calls_it():
    plan = Plan((Turn((ToolCall("my-srv", "echo", {"a": 1}),)), Turn()))
    for profile in BOTH:
        found = run(entry("my-srv"), {"my-srv": GOOD}, profile=profile, plan=plan, argv=(*EXEC, *FULL))
        assert found.exit_code == 0
        assert [found.tools(number) for number in (1, 2)] == [["mcp__my_srv/echo"]] * 2
        assert found.at("model.request") == [0.0, 1.0]
        kinds = [line["type"] for line in found.stdout]
        assert kinds[:2] == ["thread.started", "turn.started"]
        assert kinds[2:] == ["item.started", "item.completed", "item.completed", "turn.completed"]
        assert found.stdout[4]["item"] == {"id": "item_1", "type": "agent_message", "text": "Done."}
        started, completed = (line["item"] for line in found.stdout[2:4])
        assert (started["server"], started["tool"], started["status"]) == ("my-srv", "echo", "in_progress")
        assert (completed["arguments"], completed["status"], completed["error"]) == ({"a": 1}, "completed", None)
        assert found.stderr == []
        assert alive(found) == []
        assert found.events("run.ended") == [{"exit_code": 0}]


@pytest.mark.parametrize(("servers", "most"), [(0, 15), (1, 40), (6, 150), (16, 360)])
def test_a_run_takes_few_steps(servers, most):
    names = [f"s{number}" for number in range(servers)]
    found = run("".join(map(entry, names)), dict.fromkeys(names, GOOD))
    assert len(found.tools()) == servers
    assert found.outcome.steps <= most


def test_a_run_is_silent_about_mcp_without_json_and_ends_its_servers():
    found = run(entry("a"), {"a": GOOD}, argv=("codex", "exec", "do it"))
    assert (found.exit_code, list(found.actor.stdout.lines), found.stderr, alive(found)) == (0, ["Done."], [], [])


def test_an_open_stdin_keeps_the_run_from_starting_and_its_text_goes_to_the_prompt():
    found = run(entry("a"), {"a": GOOD}, stdin=("more", "words"))
    assert found.tools() == ["mcp__a/echo"]

    async def parent(world: World, argv: Sequence[str]) -> int:
        child = await world.processes.spawn(("codex", "exec", "go on"), env=ENVIRONMENT, directory=CLONE)
        await world.clock.sleep(50)
        assert not [event for event in simulation.events if event.name == "server.connecting"]
        await child.close_stdin()
        return await child.wait() or 0

    simulation = Simulation(launcher=lambda argv, env, directory: program(OLDER))
    simulation.tree.make_directory(CLONE, 0o755, 0, 0)
    write(simulation, USER_CONFIG, entry("a"))
    actor = simulation.start("parent", parent)
    assert simulation.run().verdict == "done"
    assert simulation.ended(actor) == (0, None, ())
    assert [event.name for event in simulation.events].count("server.connecting") == 1


def test_a_run_whose_output_nobody_reads_breaks_off_and_loses_its_servers():
    async def parent(world: World, argv: Sequence[str]) -> int:
        await world.processes.spawn(("codex", "exec", "--json", "go on"), env=ENVIRONMENT, directory=CLONE)
        return 0

    programs = {"codex": program(OLDER), "run-a": server_program(GOOD), "run-dies": server_program(HANGS)}
    simulation = Simulation(launcher=lambda argv, env, directory: programs[argv[0]])
    simulation.tree.make_directory(CLONE, 0o755, 0, 0)
    write(simulation, USER_CONFIG, entry("a") + entry("dies"))
    simulation.start("parent", parent)
    assert simulation.run().verdict == "done"
    ended = {actor.name: simulation.ended(actor) for actor in simulation.actors}
    assert ended["parent/codex"].exit_code == 101
    assert not any(one.error or one.lost or one.exit_code is None for one in ended.values())


# --- budgets and the first model request


@pytest.mark.requirement("prepare-fake-codex-own-default")
def test_a_silent_server_holds_the_older_version_for_its_budget():
    for keys, seconds in (({}, 30.0), ({"startup_timeout_sec": 5}, 5.0), ({"startup_timeout_sec": 180}, 180.0)):
        found = run(entry("x", **keys) + entry("good"), {"x": HANGS, "good": GOOD})
        assert found.at("model.request") == [seconds]
        assert failed_at(found) == {"x": seconds}
        assert found.tools() == ["mcp__good/echo"]
        assert found.exit_code == 0
        assert "mcp" not in json.dumps(found.stdout)
        assert found.failures()["x"] == (
            f"MCP client for `x` timed out after {seconds:g} seconds. Add or adjust `startup_timeout_sec` in your"
            " config.toml:\n[mcp_servers.x]\nstartup_timeout_sec = XX"
        )


@pytest.mark.requirement("startup-timeout-codex-fast-beside-slow")
def test_a_hang_is_given_up_at_its_own_budget_while_a_slow_server_takes_its_time():
    text = entry("hangs", startup_timeout_sec=20) + entry("slow", startup_timeout_sec=300)
    for profile, first_request in ((OLDER, 250.0), (NEWER, 1.0)):
        plan = Plan((Turn(seconds=300.0), Turn()))
        slow = Behaviour(initialize_after_seconds=250.0)
        found = run(text, {"hangs": HANGS, "slow": slow}, profile=profile, plan=plan)
        assert failed_at(found) == {"hangs": 20.0}
        assert connected(found) == {"slow": 250.0}
        assert found.at("model.request")[0] == first_request
        assert found.tools(2) == ["mcp__slow/echo"]
        too_slow = run(
            text, {"hangs": HANGS, "slow": Behaviour(starts_after_seconds=301.0)}, profile=profile, plan=plan
        )
        assert failed_at(too_slow) == {"hangs": 20.0, "slow": 300.0}


@pytest.mark.requirement("prepare-hang-costs-whole-budget")
def test_a_hang_costs_the_whole_budget_in_run_after_run_of_one_home():
    launches = []
    text = entry("hangs", startup_timeout_sec=180) + entry("good")

    async def twice(world: World, argv: Sequence[str]) -> int:
        for _ in range(2):
            child = await world.processes.spawn(EXEC, env=ENVIRONMENT, directory=CLONE)
            await child.close_stdin()
            launches.append(world.clock.now())
            assert await child.wait() == 0
        return 0

    simulation = Simulation(
        launcher=lambda argv, env, directory: {
            "codex": program(OLDER),
            "run-hangs": server_program(HANGS),
            "run-good": server_program(GOOD),
        }[argv[0]]
    )
    simulation.tree.make_directory(CLONE, 0o755, 0, 0)
    write(simulation, USER_CONFIG, text)
    actor = simulation.start("twice", twice)
    assert simulation.run().verdict == "done"
    assert simulation.ended(actor) == (0, None, ())
    requests = [event for event in simulation.events if event.name == "model.request"]
    assert [request.at_seconds - began for request, began in zip(requests, launches, strict=True)] == [180.0] * 2
    assert [request.details["tools"] for request in requests] == [["mcp__good/echo"]] * 2


@pytest.mark.parametrize(
    ("behaviour", "keys", "older", "newer"),
    [
        (HANGS, {"startup_timeout_sec": 3}, (3.0, False), (1.0, False)),
        (HANGS, {"startup_timeout_sec": 0}, (0.0, False), (0.0, False)),
        (GOOD, {"startup_timeout_sec": 0}, (0.0, False), (0.0, False)),
        (Behaviour(initialize_after_seconds=2), {"startup_timeout_sec": 1.5}, (1.5, False), (1.0, False)),
        (Behaviour(initialize_after_seconds=2), {"startup_timeout_sec": 5}, (2.0, True), (1.0, False)),
        (
            Behaviour(initialize_after_seconds=1, list_after_seconds=2),
            {"startup_timeout_sec": 2.5},
            (3.0, True),
            (1.0, False),
        ),
        (Behaviour(list_after_seconds=3), {"startup_timeout_sec": 1}, (1.0, False), (1.0, False)),
        (
            Behaviour(initialize_after_seconds=3),
            {"startup_timeout_sec": 20, "required": True},
            (3.0, True),
            (3.0, True),
        ),
        (Behaviour(initialize_after_seconds=0.9), {}, (0.9, True), (0.9, True)),
    ],
)
def test_the_first_request_leaves_as_measured(behaviour, keys, older, newer):
    for profile, (at_seconds, present) in ((OLDER, older), (NEWER, newer)):
        found = run(entry("x", **keys), {"x": behaviour}, profile=profile)
        assert found.at("model.request") == [at_seconds]
        assert (found.tools() == ["mcp__x/echo"]) is present
        assert found.exit_code == 0


@pytest.mark.requirement("prepare-codex-grace-zero")
def test_a_grace_of_zero_brings_a_slow_server_into_the_newer_version_s_first_request():
    slow = {"x": Behaviour(initialize_after_seconds=2)}
    text, grace = entry("x", startup_timeout_sec=180), "mcp_optional_startup_grace_ms = 0\n"
    plan = Plan((Turn(seconds=1.5), Turn(), Turn()))
    offered = {}
    for profile in BOTH:
        for top in ("", grace):
            found = run(top + text, slow, profile=profile, plan=plan)
            offered[profile.version, top == grace] = [bool(found.tools(number)) for number in (1, 2, 3)]
            pending = found.events("model.request")[0]["pending"]
            assert pending == ([] if offered[profile.version, top == grace][0] else ["x"])
    assert offered == {
        ("0.146.0", False): [True, True, True],
        ("0.146.0", True): [True, True, True],
        ("0.169.0", False): [False, True, True],
        ("0.169.0", True): [True, True, True],
    }
    strict = run(grace + text, slow, argv=(*EXEC, "--strict-config"))
    assert (strict.exit_code, strict.events("server.connecting")) == (1, [])
    assert "unknown configuration field `mcp_optional_startup_grace_ms`" in strict.stderr[0]
    assert run(grace + text, slow, profile=NEWER, argv=(*EXEC, "--strict-config")).exit_code == 0


def npx_run(config: str, install_seconds: Mapping[str, float]) -> Run:
    """A run over a prepared clone, npx installing at these speeds."""
    packages = {name: Package(name, install_seconds=seconds) for name, seconds in install_seconds.items()}
    return run(
        files={PROJECT_CONFIG: config},
        argv=(*EXEC, *FULL),
        launcher=lambda argv, env, directory: npx_program(packages) if argv[0] == "npx" else None,
    )


@pytest.mark.requirement(
    "prepare-codex-default-stdio", "npx-cold-clone-fits-budget", "prepare-nine-cold-npx-within-budget"
)
def test_nine_cold_npx_servers_connect_under_the_written_budget_and_are_dropped_without_it():
    names = [f"pkg-{number}" for number in range(9)]
    installs = {name: 25.0 + 2.5 * number for number, name in enumerate(names)}
    assert max(installs.values()) == 45.0
    catalog = {name: {"type": "stdio", "command": "npx", "args": ["-y", name]} for name in names}
    config = goes_through("codex", names, catalog, clone=CLONE).text
    assert config is not None
    written = npx_run(config, installs)
    assert sorted(connected(written)) == names
    assert written.tools() == [f"mcp__pkg_{number}/echo" for number in range(9)]
    assert 45.0 <= written.at("model.request")[0] < 50.0
    dropped = npx_run(re.sub("startup_timeout_sec = .*", "", config), installs)
    in_time = [name for name, seconds in installs.items() if seconds < 30.0]
    assert sorted(connected(dropped)) == in_time
    lost = {name: at for name, at in failed_at(dropped).items() if name in names}
    assert lost == dict.fromkeys(names[len(in_time) :], 30.0)
    assert (dropped.at("model.request"), dropped.exit_code) == ([30.0], 0)


# --- required servers


def test_a_required_server_that_dies_ends_the_run_before_the_thread_starts():
    died = "handshaking with MCP server failed: connection closed: initialize response"
    prefix = (
        "Error: thread/start: thread/start failed: error creating thread: Fatal error: Failed to initialize session:"
        " required MCP servers failed to initialize: "
    )
    told = {OLDER: died, NEWER: f"{died}: connection closed: initialize response"}
    for profile in BOTH:
        text = entry("bad", required=True) + entry("slow") + entry("good")
        servers = {"bad": Behaviour(exits="at-start"), "slow": HANGS, "good": GOOD}
        found = run(text, servers, profile=profile)
        assert (found.exit_code, found.stdout, found.outcome.seconds) == (1, [], 0.0)
        assert found.stderr == [f"{prefix}bad: {told[profile]} (code -32603)"]
        assert found.events("model.request") == []
        assert alive(found) == []


def test_a_required_server_that_hangs_ends_the_run_at_its_budget():
    for profile, tail in ((OLDER, ""), (NEWER, ": deadline has elapsed")):
        found = run(entry("bad", required=True, startup_timeout_sec=2), {"bad": HANGS}, profile=profile)
        assert (found.exit_code, found.outcome.seconds) == (1, 2.0)
        assert f"bad: timed out handshaking with MCP server after 2s{tail} (code" in found.stderr[0]


# --- the child


@pytest.mark.requirement("prepare-codex-child-env-whitelist")
def test_a_child_gets_the_listed_variables_its_env_vars_and_its_env():
    seen: dict[str, str] = {}

    async def server(world: World, argv: Sequence[str]) -> int:
        seen.clear()
        seen.update(world.env.variables)
        seen["cwd"] = world.env.directory
        return await server_program(GOOD)(world, argv)

    exported = {
        "HOME": HOME, "PATH": "/usr/bin", "LANG": "C", "USER": "u", "TZ": "UTC", "SSL_CERT_FILE": "/ca",
        "NPM_CONFIG_CACHE": "/cache", "HTTPS_PROXY": "http://p", "OPENAI_API_KEY": "k", "WANTED": "w",
    }  # fmt: skip
    text = entry("a", 'env = { OWN = "1" }', env_vars=["WANTED", "ABSENT"])
    for profile, extra, below in ((OLDER, set(), "tmp/arg0"), (NEWER, {"SSL_CERT_FILE"}, "tmp/arg0-linux")):
        found = run(text, {"a": server}, profile=profile, environment=exported)
        assert found.tools() == ["mcp__a/echo"]
        assert seen.keys() == {"HOME", "PATH", "LANG", "USER", "TZ", "WANTED", "OWN", "cwd"} | extra
        first, _, last = seen["PATH"].split(":")
        assert first.startswith(f"{HOME}/.codex/{below}/codex-arg0")
        assert (last, seen["cwd"]) == ("/usr/bin", CLONE)
    run(entry("a", 'env = { PATH = "/own" }', cwd="/home"), {"a": server}, files={"/home/x": ""})
    assert (seen["PATH"], seen["cwd"]) == ("/own", "/home")


def test_every_child_is_ended_whatever_it_ignores_and_however_far_it_came():
    stubborn = Behaviour(ignores_signals=True, ignores_stdin_end=True)
    servers = {
        "stubborn": stubborn,
        "hangs": stubborn._replace(initialize="never"),
        "refuses": stubborn._replace(initialize="error"),
        "late": stubborn._replace(starts_after_seconds=100.0),
    }
    text = "".join(entry(name, startup_timeout_sec=3) for name in ("stubborn", "hangs", "refuses"))
    for profile in BOTH:
        found = run(text + entry("late", startup_timeout_sec=180), servers, profile=profile, plan=Plan(()))
        assert alive(found) == []
        assert found.exit_code == 0
        assert found.outcome.seconds == (100.0 if profile is OLDER else 1.0)


def test_the_same_run_twice_is_the_same_run():
    text = entry("a") + entry("b", startup_timeout_sec=5)
    digests = {run(text, {"a": GOOD, "b": HANGS}, profile=NEWER).outcome.trace_digest for _ in range(2)}
    assert len(digests) == 1


@pytest.mark.parametrize("seed", range(12))
def test_under_any_schedule_a_run_ends_with_nothing_left_and_the_good_server_unhurt(seed):
    text = "".join(entry(name, startup_timeout_sec=5) for name in ("good", "hangs", "dies", "deaf", "late"))
    servers = {
        "good": GOOD,
        "hangs": HANGS,
        "dies": Behaviour(exits="at-initialize"),
        "deaf": HANGS._replace(ignores_signals=True, ignores_stdin_end=True),
        "late": Behaviour(starts_after_seconds=3.0),
    }
    plan = Plan((Turn(seconds=10.0), Turn((ToolCall("good", "echo"),)), Turn()))
    for profile in BOTH:
        argv = (*EXEC, *FULL)
        found = run(text, servers, profile=profile, plan=plan, argv=argv, decisions=Seeded(seed), step_limit=20_000)
        assert (found.exit_code, alive(found)) == (0, [])
        assert set(found.failures()) >= {"hangs", "dies", "deaf"}
        assert not set(found.failures()) & set(connected(found))
        assert len(found.events("model.request")) == 3


@pytest.mark.parametrize("label", ["read *", "mkdir *", "append *", "write *", "rename *"])
def test_a_file_that_is_refused_ends_no_run_in_a_crash(label):
    fault = Fault("eacces", port="files", label=label)
    for profile in BOTH:
        plan = Plan((Turn((ToolCall("a", "echo"),)),))
        found = run(entry("a"), {"a": GOOD}, profile=profile, plan=plan, argv=(*EXEC, *FULL), faults=[fault])
        refused = label in ("read *", "mkdir *", "append *")
        assert (found.exit_code, alive(found)) == (1 if refused else 0, [])
        assert any("Permission denied (os error 13)" in line for line in found.stderr) is refused


def test_a_run_and_the_plain_rules_agree_on_time_and_tools():
    """The rules of `fake_runtimes.launch` tell the same as a run, without a scheduler."""
    delays = {"a": 0.5, "b": 1.5, "c": 3.0, "d": None}
    for profile in BOTH:
        for budget in (2.0, 5.0):
            for required in ("", "b", "d"):
                tables = [entry(name, startup_timeout_sec=budget, required=name == required) for name in delays]
                told = launch(profile, read_config("".join(tables), {}, profile).servers, delays, {})
                servers = {
                    name: HANGS if delay is None else Behaviour(initialize_after_seconds=delay)
                    for name, delay in delays.items()
                }
                found = run("".join(tables), servers, profile=profile)
                assert found.exit_code == (0 if told.killed is None else 1)
                if told.killed is None:
                    assert found.at("model.request") == [told.first_request_at_seconds]
                    assert found.tools() == [f"mcp__{name}/echo" for name in told.offered]
