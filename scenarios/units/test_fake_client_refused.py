"""The MCP client of the fake runtimes where a server cannot be started, never stops talking, or ends too early."""

from __future__ import annotations

import errno
import os

import pytest

from fake_runtimes.claude.wording import WORDINGS, tell
from fake_runtimes.client import Connection, Failure, StdioConnection, connect_stdio
from fake_runtimes.codex.texts import not_started
from fake_runtimes.connections.stdio import ERROR_CHARACTERS_KEPT
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.connect import failure_text
from fake_runtimes.profile import CodexProfile, load_profile
from fake_servers.mcp import Behaviour
from fake_servers.mcp import program as server_program
from harness.world import World
from harness.world.ports import Program
from scenarios.claude_runs import HOME, NEW, OLD, ClaudeRun
from scenarios.units.test_fake_client import OLD as IDENTITY
from scenarios.units.test_fake_client import PROBING, STDIO
from scenarios.units.test_fake_codex_session import entry as codex_entry
from scenarios.units.test_fake_codex_session import run as codex_run
from scenarios.worlds import ran


def connected(serving: Program | OSError, server: LoadedServer = STDIO, identity=IDENTITY, budget_seconds=5.0):
    """What connecting gives; the server is that program, or an error of its spawn."""

    def launcher(argv, env, directory):
        if isinstance(serving, OSError):
            raise serving
        return serving

    async def body(world: World):
        return await connect_stdio(world, server, {}, "/", identity, budget_seconds)

    run = ran(bodies={"client": body}, launcher=launcher)
    assert run.ended("client").error is None, run.ended("client").error
    return run.results["client"]


@pytest.mark.parametrize("identity", [IDENTITY, PROBING])
@pytest.mark.parametrize("number", [errno.E2BIG, errno.EMFILE, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO, 9_999])
def test_any_error_of_a_spawn_is_a_failure_of_that_server_in_each_runtimes_words(number, identity):
    failed = connected(OSError(number, os.strerror(number), "srv"), identity=identity)
    assert (failed.kind, failed.stage, failed.detail, failed.child) == ("spawn", "spawn", "srv", None)
    name = errno.errorcode.get(number, f"E{number}")
    for wording in WORDINGS.values():
        told = tell(STDIO, failed, 1, wording, static_authorization=False)
        assert told.text == f"Connection failed ({name}): {name}: {os.strerror(number).lower()}, posix_spawn 'srv'"
    profile = load_profile("codex-0.146.0")
    assert isinstance(profile, CodexProfile)
    assert not_started(STDIO, failed, profile).cause == f"{os.strerror(number)} (os error {number})"
    assert failure_text(failed) == f"spawn srv {name}"


def test_what_no_process_can_be_given_is_a_failure_of_the_server():
    failed = connected(server_program(Behaviour()), STDIO._replace(args=("a\0b",)))
    assert (failed.kind, failed.error_name) == ("spawn", "EINVAL")


@pytest.mark.parametrize("line", ["noise", "{}", '{"jsonrpc":"2.0","id":9,"method":"ping"}'])
def test_a_server_that_has_always_something_to_say_runs_out_of_time(line):
    async def talker(world: World, argv) -> int:
        while True:
            await world.processes.write_line(line)
            await world.clock.sleep(0.25)

    failed = connected(talker, budget_seconds=5.125)
    assert (failed.kind, failed.stage, failed.after_seconds) == ("timeout", "initialize", 5.125)


def test_a_server_whose_lines_are_there_whenever_they_are_read_runs_out_of_time():
    async def talker(world: World, argv) -> int:
        await world.processes.read_line()
        while True:
            for _ in range(10):
                await world.processes.write_line("noise")
            await world.clock.sleep(0.25)

    class Slow:
        """A child whose lines take longer to read than to come."""

        def __init__(self, world: World, child) -> None:
            self.world, self.child = world, child

        def __getattr__(self, name):
            return getattr(self.child, name)

        async def read_line(self, timeout_seconds=None):
            await self.world.clock.sleep(0.25)
            return await self.child.read_line(timeout_seconds)

    async def body(world: World):
        child = await world.processes.spawn(["srv"], env={}, directory="/")
        connection = StdioConnection(world, STDIO, IDENTITY, world.clock.now(), Slow(world, child))
        return await connection.shake_hands(world.clock.now() + 5.0, probing=False)

    failed = ran(bodies={"client": body}, launcher=lambda argv, env, directory: talker).results["client"]
    assert (failed.kind, failed.stage, failed.after_seconds) == ("timeout", "initialize", 5.25)


def test_of_many_errors_the_last_are_kept():
    async def complainer(world: World, argv) -> int:
        for number in range(300):
            await world.processes.write_error(f"{number} {'x' * 5_000}")
        return 1

    failed = connected(complainer)
    assert (failed.kind, failed.exit_code) == ("exited", 1)
    assert sum(len(line) + 1 for line in failed.stderr) <= ERROR_CHARACTERS_KEPT
    assert failed.stderr[-1].startswith("299 ")
    assert len(failed.stderr) > 200


def test_who_never_stops_complaining_is_not_heard_out():
    async def complainer(world: World, argv) -> int:
        await world.processes.read_line()
        for number in range(1_000):
            await world.processes.write_error(f"{number} {'x' * 9_990}")
        await world.clock.sleep(1_000)
        return 0

    failed = connected(complainer)
    assert (failed.kind, failed.after_seconds) == ("timeout", 5.0)
    assert int(failed.stderr[-1].partition(" ")[0]) < 300


@pytest.mark.parametrize("identity", [IDENTITY, PROBING])
def test_a_server_that_ends_behind_its_first_answer_is_missed_when_it_is_asked_for_its_tools(identity):
    failed = connected(server_program(Behaviour(exits="after-initialize", exit_code=3)), identity=identity)
    assert isinstance(failed, Failure)
    assert (failed.kind, failed.stage, failed.exit_code) == ("exited", "list", 3)


def test_a_server_without_tools_is_connected_whether_or_not_it_has_ended_since():
    async def terse(world: World, argv) -> int:
        await world.processes.read_line()
        await world.processes.write_line(
            '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}'
        )
        return 0

    assert isinstance(connected(terse), Connection)


@pytest.mark.parametrize("profile", [OLD, NEW])
def test_claude_calls_a_server_failed_that_ended_before_its_tools_were_listed(profile):
    run = ClaudeRun(profile, {"x": Behaviour(exits="after-initialize"), "y": Behaviour()})
    assert {name: status for name, (status, _) in run.outcomes().items()} == {"x": "failed", "y": "connected"}
    assert run.events("server.failed")[0]["kind"] == "exited"


async def broken(*_args, **_options):
    raise ZeroDivisionError


def test_a_fault_of_our_own_in_a_required_servers_start_ends_the_run_of_codex(monkeypatch):
    monkeypatch.setattr("fake_runtimes.codex.servers.connect_stdio", broken)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        codex_run(codex_entry("a", required=True), {})


def test_a_fault_of_our_own_in_a_check_ends_the_list_of_claude(monkeypatch):
    monkeypatch.setattr("fake_runtimes.claude.connecting.connect_stdio", broken)
    settings = {f"{HOME}/.claude/settings.json": '{"enableAllProjectMcpServers": true}'}
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        ClaudeRun(OLD, {"x": Behaviour()}, argv=("claude", "mcp", "list"), files=settings)
