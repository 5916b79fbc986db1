"""The MCP client of the fake runtimes against servers that behave well and badly."""

from __future__ import annotations

import pytest

from fake_runtimes.client import (
    CallResult,
    Connection,
    Failure,
    HttpConnection,
    Identity,
    connect_http,
    connect_stdio,
    end_child,
    end_children,
)
from fake_runtimes.connections.messages import reply_to
from fake_runtimes.loaded import LoadedServer
from fake_servers.mcp import Behaviour, HttpServer, Tool
from fake_servers.mcp import program as server_program
from harness.scenario.production import play
from harness.scenario.trees import scenario_from
from harness.scenario.verdicts import Verdict
from harness.world import World
from harness.world.model import Fault
from scenarios.worlds import Ran, ran

OLD = Identity("client", "1.0", "2025-11-25", user_agent="client/1.0")
PROBING = OLD._replace(probe=True, probe_seconds=3.0, respawn_on_probe_exit=True)
STDIO = LoadedServer("srv", "stdio", command="srv", args=("--serve",))
HTTP = LoadedServer("srv", "http", url="https://srv.test/mcp")
GOOD = Behaviour()


def over_stdio(behaviour, identity=OLD, then=None, budget_seconds=30.0, **options):
    """What connecting gives, with the run; `then` goes on with a connection."""

    async def body(world: World):
        came = await connect_stdio(world, STDIO, {"A": "1"}, "/", identity, budget_seconds, **options)
        if then is not None and isinstance(came, Connection):
            return came, await then(world, came)
        return came, None

    run = ran(
        bodies={"client": body},
        launcher=lambda argv, env, directory: server_program(behaviour) if argv[0] == "srv" else None,
    )
    came, after = run.results["client"]
    return run, came, after


def over_http(server, identity=OLD, then=None, headers=None, loaded=HTTP, faults=(), budget_seconds=30.0, **options):
    """The same with a remote server."""

    async def body(world: World):
        came = await connect_http(world, loaded, headers or {}, identity, budget_seconds, **options)
        if then is not None and isinstance(came, Connection):
            return came, await then(world, came)
        return came, None

    run = ran(bodies={"client": body}, servers={"https://srv.test": server}, faults=faults)
    assert run.ended("client").error is None, run.ended("client").error
    came, after = run.results["client"]
    return run, came, after


async def echo(_world: World, connection: Connection) -> CallResult:
    return await connection.call("echo", {}, 5.0)


def received(run: Ran) -> list[str]:
    return [event.details["method"] for event in run.outcome.events if event.name == "mcp.received"]


@pytest.mark.parametrize("identity", [OLD, PROBING])
def test_a_good_process_is_connected_its_tools_listed_and_called(identity):
    run, came, result = over_stdio(GOOD, identity, echo)
    assert came.tools == ("echo",)
    assert came.server_info == {"name": "server", "version": "1.0.0"}
    assert result == CallResult(ok=True, text="ok")
    probe = ["server/discover"] if identity.probe else []
    assert received(run) == [*probe, "initialize", "notifications/initialized", "tools/list", "tools/call"]
    spawns = [event.details["argv"] for event in run.outcome.events if event.name == "spawn"]
    assert spawns == [["srv", "--serve"]]


@pytest.mark.parametrize("loaded", [HTTP, HTTP._replace(transport="sse")])
@pytest.mark.parametrize("identity", [OLD, PROBING, OLD._replace(opens_stream=True)])
@pytest.mark.parametrize("answers_as", ["json", "sse"])
def test_a_good_remote_server_is_connected_its_tools_listed_and_called(loaded, identity, answers_as):
    server = HttpServer(Behaviour(answers_as=answers_as, supports_get=True), transport=loaded.transport)
    run, came, result = over_http(server, identity, echo, loaded=loaded)
    assert came.tools == ("echo",)
    assert result == CallResult(ok=True, text="ok")
    assert {seen.headers["User-Agent"] for seen in server.requests} == {"client/1.0"}
    assert run.outcome.seconds == 0


@pytest.mark.parametrize("loaded", [STDIO, HTTP, HTTP._replace(transport="sse")])
@pytest.mark.parametrize("identity", [OLD, PROBING])
def test_the_newer_protocol_is_spoken_by_those_who_both_know_it(loaded, identity):
    behaviour = Behaviour(discover="answer")
    server = HttpServer(behaviour, transport=loaded.transport if loaded is not STDIO else "http")
    run, came, result = (
        over_stdio(behaviour, identity, echo) if loaded is STDIO else over_http(server, identity, echo, loaded=loaded)
    )
    assert (came.era, came.tools, result.ok) == ("modern" if identity.probe else "legacy", ("echo",), True)
    methods = received(run) if loaded is STDIO else [seen.rpc_method for seen in server.requests if seen.rpc_method]
    assert ("initialize" in methods) != identity.probe


def test_the_session_id_and_the_version_go_with_every_request_behind_the_first():
    server = HttpServer(GOOD)
    over_http(server, OLD, echo)
    first, *others = server.requests
    assert "Mcp-Session-Id" not in first.headers
    assert len({seen.headers["Mcp-Session-Id"] for seen in others}) == 1
    assert {seen.headers["Mcp-Protocol-Version"] for seen in others} == {"2025-11-25"}


FAILURES = [
    ("never", Behaviour(initialize="never"), ("timeout", "initialize", 30.0), True),
    ("garbage", Behaviour(initialize="garbage"), ("timeout", "initialize", 30.0), True),
    ("error", Behaviour(initialize="error"), ("protocol", "initialize", 0.0), True),
    ("slow", Behaviour(starts_after_seconds=30.5), ("timeout", "initialize", 30.0), True),
    ("at-start", Behaviour(exits="at-start", exit_code=3), ("exited", "initialize", 0.0), False),
    ("at-initialize", Behaviour(exits="at-initialize", exit_code=3), ("exited", "initialize", 0.0), False),
    ("list never", Behaviour(list_tools="never"), ("timeout", "list", 30.0), True),
    ("list error", Behaviour(list_tools="error"), ("protocol", "list", 0.0), True),
]


@pytest.mark.parametrize(
    ("behaviour", "expected", "lives"), [case[1:] for case in FAILURES], ids=[c[0] for c in FAILURES]
)
def test_a_process_that_does_not_connect_is_told_with_its_stage_and_time_and_is_left_alone(behaviour, expected, lives):
    run, failure, _ = over_stdio(behaviour._replace(stderr=("one", "two")))
    assert (failure.kind, failure.stage, round(failure.after_seconds, 6)) == expected
    assert failure.stderr == ("one", "two")
    assert (failure.child is not None) == lives
    assert failure.exit_code == (None if lives else 3)
    assert not [event for event in run.outcome.events if event.name == "killed"]


def test_a_list_of_tools_may_have_its_own_budget_or_be_left_out():
    slow = Behaviour(initialize_after_seconds=8.0, list_after_seconds=8.0)
    assert over_stdio(slow, budget_seconds=10.0)[1].stage == "list"
    assert over_stdio(slow, budget_seconds=10.0, list_budget_seconds=10.0)[1].tools == ("echo",)
    assert over_stdio(slow, budget_seconds=10.0, lists_tools=False)[1].tools == ()


def test_what_is_no_message_on_stdout_is_passed_over():
    _, came, result = over_stdio(Behaviour(stdout_noise=("hello", "[1]", "{", "")), then=echo)
    assert (came.tools, result.ok) == (("echo",), True)


@pytest.mark.parametrize(
    ("error", "kind"), [(FileNotFoundError(2, "x"), "enoent"), (PermissionError(13, "x"), "eacces")]
)
def test_a_command_that_cannot_be_executed_is_told_with_its_name(error, kind):
    def launcher(argv, env, directory):
        raise error

    async def body(world: World):
        return await connect_stdio(world, STDIO, {}, "/", OLD, 5.0)

    failure = ran(bodies={"client": body}, launcher=launcher).results["client"]
    assert (failure.kind, failure.detail, failure.stage, failure.child) == (kind, "srv", "spawn", None)


def test_a_probe_that_nobody_answers_is_paid_out_of_the_same_budget():
    silent = Behaviour(discover="never", initialize_after_seconds=1.0)
    _, came, _ = over_stdio(silent, PROBING, budget_seconds=4.5)
    assert came.connected_seconds - came.started_seconds == 4.0
    _, failure, _ = over_stdio(silent, PROBING, budget_seconds=3.5)
    assert (failure.kind, failure.stage, failure.after_seconds) == ("timeout", "initialize", 3.5)
    _, failure, _ = over_stdio(silent, PROBING, budget_seconds=2.0)
    assert (failure.kind, failure.stage, failure.after_seconds) == ("timeout", "probe", 2.0)
    server = HttpServer(silent)
    _, remote, _ = over_http(server, PROBING._replace(probe_seconds=5.0))
    assert remote.connected_seconds - remote.started_seconds == 6.0


@pytest.mark.parametrize(
    ("identity", "spawns"), [(OLD, 1), (PROBING, 2), (PROBING._replace(respawn_on_probe_exit=False), 1)]
)
def test_a_process_that_ends_over_the_probe_is_started_once_more_where_the_client_does(identity, spawns):
    run, failure, _ = over_stdio(Behaviour(exits="at-start", stderr=("no key",)), identity)
    assert len([event for event in run.outcome.events if event.name == "spawn"]) == spawns
    assert failure.kind == "exited"
    assert (failure.respawned, failure.stderr_before) == ((True, ("no key",)) if spawns == 2 else (False, ()))


def test_a_process_that_cannot_bear_the_probe_connects_at_its_second_start():
    run, came, _ = over_stdio(Behaviour(discover="exits", stderr=("what?",)), PROBING)
    assert (came.tools, came.respawned, came.stderr_before) == (("echo",), True, ("what?",))
    assert received(run)[:2] == ["server/discover", "initialize"]


def test_an_empty_answer_to_the_probe_passes_for_a_newer_server_without_tools():
    run, came, _ = over_stdio(Behaviour(discover="empty"), PROBING)
    assert (came.era, came.tools) == ("modern", ())
    assert received(run) == ["server/discover"]


REFUSALS = [
    (Behaviour(status=401, challenge="Bearer", body="no"), ("status", 401, "Bearer", "no")),
    (Behaviour(status=403, body="no"), ("status", 403, None, "no")),
    (Behaviour(status=404), ("status", 404, None, "")),
    (Behaviour(status=500, body="boom"), ("status", 500, None, "boom")),
    (Behaviour(status=200, content_type="text/html", body="<p>"), ("content", 200, None, "<p>")),
    (Behaviour(requires_bearer=("t",), challenge="Bearer"), ("status", 401, "Bearer", "")),
]


@pytest.mark.parametrize("identity", [OLD, PROBING])
@pytest.mark.parametrize(("behaviour", "expected"), REFUSALS)
def test_a_remote_server_that_refuses_is_told_with_status_challenge_and_body(behaviour, expected, identity):
    _, failure, _ = over_http(HttpServer(behaviour), identity)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.status, failure.challenge, failure.body) == expected


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("refused", "refused"),
        ("dns", "dns"),
        ("reset-before", "reset"),
        ("reset-after", "reset"),
        ("open-timeout", "timeout"),
    ],
)
@pytest.mark.parametrize("identity", [OLD, PROBING])
def test_a_network_that_fails_is_told_by_what_it_did(action, kind, identity):
    run, failure, _ = over_http(HttpServer(GOOD), identity, faults=[Fault(action, port="http")])
    assert failure.kind == kind
    assert run.outcome.seconds == (30.0 if kind == "timeout" else 0.0)


def test_a_remote_server_that_never_answers_costs_the_budget():
    _, failure, _ = over_http(HttpServer(Behaviour(initialize="never")), budget_seconds=7.0)
    assert (failure.kind, failure.after_seconds) == ("timeout", 7.0)


def test_headers_go_with_every_request_and_may_change_between_two():
    server = HttpServer(Behaviour(requires_bearer=("one", "two")))

    async def changing(world: World, connection: Connection):
        assert isinstance(connection, HttpConnection)
        connection.headers = {"Authorization": "Bearer two"}
        return await connection.call("echo", {}, 5.0)

    _, _, result = over_http(server, then=changing, headers={"Authorization": "Bearer one"})
    assert result.ok
    assert [seen.headers["Authorization"] for seen in server.requests] == ["Bearer one"] * 3 + ["Bearer two"]


def test_the_older_transport_is_tried_after_the_statuses_that_the_client_names():
    falling = OLD._replace(fallback_statuses=(404, 405))
    older = HttpServer(GOOD, transport="sse")
    _, came, result = over_http(older, falling, echo)
    assert (came.tools, result.ok) == (("echo",), True)
    assert over_http(HttpServer(GOOD, transport="sse"))[1].status == 405
    _, failure, _ = over_http(HttpServer(Behaviour(status=404)), falling)
    assert (failure.status, failure.fallback_status) == (404, 405)


def test_the_older_transport_answers_in_the_stream_whoever_asked_first():
    tools = (Tool("slow", answers_after_seconds=3.0, text="slow"), Tool("echo", text="quick"))
    server = HttpServer(Behaviour(tools=tools), transport="sse")

    async def both(world: World, connection: Connection):
        calls = [world.tasks.start(connection.call(name, {}, 5.0), name) for name in ("slow", "echo", "slow")]
        seen = []
        for each in (calls[1], calls[0], calls[2]):
            await world.tasks.wait([each])
            seen.append((each.result().text, world.clock.now() - connection.connected_seconds))
        return seen

    _, _, seen = over_http(server, OLD, both, loaded=HTTP._replace(transport="sse"))
    assert seen == [("quick", 0.0), ("slow", 3.0), ("slow", 3.0)]


def test_a_patient_call_of_the_older_transport_outlasts_an_impatient_one_beside_it():
    server = HttpServer(Behaviour(tools=(Tool("slow", answers_after_seconds=6.0),)), transport="sse")

    async def both(world: World, connection: Connection):
        calls = [world.tasks.start(connection.call("slow", {}, seconds), "call") for seconds in (5.0, 9.0, 2.0)]
        await world.tasks.wait(calls)
        return [each.result().kind for each in calls]

    assert over_http(server, OLD, both, loaded=HTTP._replace(transport="sse"))[2] == ["timeout", None, "timeout"]


@pytest.mark.parametrize(("action", "kind"), [("reset-after", "reset"), ("reset-before", "reset")])
def test_a_broken_stream_of_the_older_transport_ends_the_call(action, kind):
    label = "event of GET *" if action == "reset-after" else f"POST {HTTP.url}*"
    fault = Fault(action, port="http", label=label, nth=4)
    server = HttpServer(GOOD, transport="sse")
    assert over_http(server, OLD, echo, loaded=HTTP._replace(transport="sse"), faults=[fault])[2].kind == kind


CALLS = [
    (Behaviour(tools=(Tool("echo", text="broken", is_error=True),)), ("error", "broken")),
    (Behaviour(exits="on-call"), ("exited", "")),
    (Behaviour(tools=(Tool("echo", answers_after_seconds=6.0),)), ("timeout", "")),
    (Behaviour(tools=(Tool("other"),)), ("protocol", "Unknown tool: echo")),
]


@pytest.mark.parametrize(("behaviour", "expected"), CALLS)
def test_a_call_that_fails_is_told_by_what_happened(behaviour, expected):
    _, _, result = over_stdio(behaviour, then=echo)
    assert not result.ok
    assert (result.kind, result.text) == expected


def test_a_late_answer_is_not_taken_for_the_next_calls():
    tools = (Tool("slow", answers_after_seconds=6.0, text="late"), Tool("echo", answers_after_seconds=2.0))

    async def twice(world: World, connection: Connection):
        return await connection.call("slow", {}, 5.0), await connection.call("echo", {}, 5.0)

    _, _, (first, second) = over_stdio(Behaviour(tools=tools), then=twice)
    assert (first.kind, second) == ("timeout", CallResult(ok=True, text="ok"))


def test_a_call_after_the_process_has_ended_says_so():
    async def late(world: World, connection: Connection):
        assert await connection.running()
        await connection.close()
        return await connection.running(), await connection.call("echo", {}, 5.0)

    _, _, (running, result) = over_stdio(GOOD, then=late)
    assert (running, result.kind) == (False, "exited")


@pytest.mark.parametrize(
    ("behaviour", "sent", "code", "seconds"),
    [
        (GOOD, ("SIGINT",), -2, 0.0),
        (Behaviour(ignores_signals=True), ("SIGINT", "SIGTERM", "SIGKILL"), -9, 0.5),
    ],
)
def test_signals_follow_each_other_until_the_process_is_gone(behaviour, sent, code, seconds):
    async def closing(world: World, connection: Connection):
        return await connection.close()

    run, _, closed = over_stdio(behaviour, then=closing)
    assert (closed.sent, closed.exit_code) == (sent, code)
    assert run.outcome.seconds == seconds


def test_the_end_of_stdin_can_stand_among_the_signals():
    async def closing(world: World, connection: Connection):
        return await connection.close((("EOF", 1.0), ("SIGTERM", 1.0)))

    assert over_stdio(Behaviour(ignores_signals=True), then=closing)[2] == (("EOF",), 0)
    assert over_stdio(Behaviour(ignores_stdin_end=True), then=closing)[2] == (("EOF", "SIGTERM"), -15)


def test_processes_are_ended_side_by_side():
    kinds = {"good": GOOD, "deaf": Behaviour(ignores_signals=True), "deaf too": Behaviour(ignores_signals=True)}

    async def body(world: World):
        children = [await world.processes.spawn([name], env={}, directory="/") for name in kinds]
        await world.clock.sleep(1.0)
        began = world.clock.now()
        closed = await end_children(world, children, (("SIGINT", 0.1), ("SIGKILL", 0.0)))
        assert await end_child(children[0], (("SIGTERM", 1.0),)) == (("SIGTERM",), -2)
        return [one.exit_code for one in closed], round(world.clock.now() - began, 6)

    run = ran(bodies={"client": body}, launcher=lambda argv, env, directory: server_program(kinds[argv[0]]))
    assert run.results["client"] == ([-2, -9, -9], 0.1)


def test_a_client_answers_a_servers_ping_and_refuses_its_other_requests():
    assert reply_to({"id": 7, "method": "ping"}) == {"jsonrpc": "2.0", "id": 7, "result": {}}
    refused = reply_to({"id": 8, "method": "roots/list"})
    assert refused is not None
    assert refused["error"]["code"] == -32601
    assert reply_to({"method": "notifications/progress"}) is None
    assert reply_to({"id": 1, "result": {}}) is None


@pytest.mark.parametrize("runtime", ["claude", "pi"])
def test_a_server_whose_name_is_half_a_surrogate_pair_is_authorized_and_reached_as_any_other(runtime):
    """JSON can spell such a name, so a catalog may hold it. The TOML of Codex cannot."""
    name = "tick\ud800ets"
    tree = {
        "schema": 1, "id": "half", "title": "Half", "runtime": ["claude", "codex", "pi"],
        "app_host": "zimmer.example.com",
        "catalog": {name: {"type": "streamable-http", "url": "https://tickets.test/mcp"}},
        "authorization": {"desk-as": {}},
        "server": {name: {"protected_by": "desk-as"}},
        "step": [{"start": "S", "turns": [{"seconds": 5}]}, {"authorize": name, "session": "S"}],
        "expect": [{"event": "server.connected", "where": {"server": name}}],
    }  # fmt: skip
    report = play(scenario_from(tree), runtime)
    assert (report.verdict, report.failures, report.detail) == (Verdict.PASS, (), "")
