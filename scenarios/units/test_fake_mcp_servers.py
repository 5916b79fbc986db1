"""The fake MCP servers: well-behaved they speak MCP, and each field of a behaviour is one way not to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from fake_servers.mcp import Behaviour, HttpServer, Tool, from_table, protocol, to_table
from fake_servers.mcp import program as stdio_program
from fake_servers.mcp.http import NETWORK_ACTIONS
from harness.world import Ambiguous, Child, ReadTimeout, Request, World, header
from harness.world.model import Fault, Outcome, Simulation
from scenarios.worlds import alone, program

URL = "https://mcp.test/mcp"
PATIENCE_SECONDS = 60.0


def request(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def hello(version: str = "2025-11-25") -> dict[str, Any]:
    return request(0, "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "t", "version": "1"})


READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = request(1, "tools/list")


# --- stdio ------------------------------------------------------------------------------------------------------------


class Talk(NamedTuple):
    """What a client saw of a server over stdio, and the whole run."""

    result: Any
    outcome: Outcome
    steps: int


def talked(behaviour: Behaviour, body: Callable[[World, Child], Awaitable[Any]]) -> Talk:
    """Run a client's body beside one server that it has started."""
    results: dict[str, Any] = {}

    async def client(world: World) -> Any:
        child = await world.processes.spawn(["server"], env={}, directory="/")
        return await body(world, child)

    simulation = Simulation(launcher=lambda argv, env, directory: stdio_program(behaviour))
    actor = simulation.start("client", program(client, results))
    outcome = simulation.run()
    error = simulation.ended(actor).error
    if error is not None:
        raise error
    return Talk(results.get("client"), outcome, outcome.steps)


async def ask(child: Child, *messages: dict[str, Any] | str) -> list[Any]:
    """Write each message and read one line for each that wants an answer."""
    answers = []
    for message in messages:
        await child.write_line(message if isinstance(message, str) else json.dumps(message))
        if isinstance(message, str) or "id" in message:
            line = await child.read_line(PATIENCE_SECONDS)
            answers.append(None if line is None else json.loads(line))
    return answers


def asked(behaviour: Behaviour, *messages: dict[str, Any] | str) -> list[Any]:
    async def body(world: World, child: Child) -> list[Any]:
        return await ask(child, *messages)

    answers: list[Any] = talked(behaviour, body).result
    return answers


def errors(answers: list[Any]) -> list[int | None]:
    return [answer.get("error", {}).get("code") for answer in answers]


@pytest.mark.smoke
def test_a_good_server_is_initialized_lists_its_tools_and_answers_a_call():
    behaviour = Behaviour(tools=(Tool("echo", "Says it again", read_only=True, text="hi"), Tool("bad", is_error=True)))
    first, listed, good, bad = asked(
        behaviour,
        hello(),
        READY,
        LIST,
        request(2, "tools/call", name="echo", arguments={}),
        request(3, "tools/call", name="bad"),
    )
    assert first["id"] == 0
    assert first["result"] == {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "server", "version": "1.0.0"},
    }
    schema = {"type": "object"}
    assert listed["result"]["tools"] == [
        {
            "name": "echo",
            "description": "Says it again",
            "inputSchema": schema,
            "annotations": {"readOnlyHint": True},
        },
        {"name": "bad", "inputSchema": schema},
    ]
    assert good["result"] == {"content": [{"type": "text", "text": "hi"}], "isError": False}
    assert bad["result"]["isError"] is True


@pytest.mark.parametrize(
    ("wanted", "given"),
    [(version, version) for version in protocol.PROTOCOL_VERSIONS]
    + [("2026-07-28", "2025-03-26"), ("1", "2025-03-26")],
)
def test_a_known_version_of_the_client_is_taken_else_the_servers_own_is_named(wanted, given):
    [first] = asked(Behaviour(protocol_version="2025-03-26"), hello(wanted))
    assert first["result"]["protocolVersion"] == given


REFUSED_MESSAGES: list[tuple[str | dict[str, Any], int, Any]] = [
    ("{", protocol.PARSE_ERROR, None),
    ("no json", protocol.PARSE_ERROR, None),
    ("[]", protocol.INVALID_REQUEST, None),
    ('{"jsonrpc":"2.0","id":4}', protocol.INVALID_REQUEST, 4),
    ('{"jsonrpc":"1.0","id":4,"method":"ping"}', protocol.INVALID_REQUEST, 4),
    ('{"jsonrpc":"2.0","id":null,"method":"ping"}', protocol.INVALID_REQUEST, None),
    ('{"jsonrpc":"2.0","id":4,"method":5}', protocol.INVALID_REQUEST, 4),
    ('{"jsonrpc":"2.0","id":4,"method":"ping","params":[]}', protocol.INVALID_PARAMS, 4),
    (request(4, "resources/list"), protocol.METHOD_NOT_FOUND, 4),
    (request(4, "server/discover"), protocol.METHOD_NOT_FOUND, 4),
    (request(4, "tools/list", cursor="x"), protocol.INVALID_PARAMS, 4),
    (request(4, "tools/call", name="none"), protocol.INVALID_PARAMS, 4),
    (request(4, "tools/call", name="echo", arguments=[]), protocol.INVALID_PARAMS, 4),
    (request(4, "initialize"), protocol.INVALID_PARAMS, 4),
]


@pytest.mark.parametrize(("message", "code", "number"), REFUSED_MESSAGES)
def test_what_cannot_be_answered_is_an_error_with_its_code_and_id_and_the_server_goes_on(message, code, number):
    _, refused, pong = asked(Behaviour(), hello(), READY, message, request(5, "ping"))
    assert (refused["error"]["code"], refused["id"]) == (code, number)
    assert pong == {"jsonrpc": "2.0", "id": 5, "result": {}}


def modern(number: int, method: str, version: str = protocol.MODERN_VERSION, **params: Any) -> dict[str, Any]:
    return request(number, method, _meta={protocol.META_VERSION: version}, **params)


def test_a_server_that_answers_the_probe_speaks_the_newer_revision_without_a_handshake():
    behaviour = Behaviour(discover="answer", tools=(Tool("echo", text="hi"),))
    messages = [
        modern(0, "server/discover"), modern(1, "tools/list"), modern(2, "tools/call", name="echo"), modern(3, "ping"),
        modern(4, "tools/list", "1999-01-01"), LIST, hello(), request(5, "tools/list"),
    ]  # fmt: skip
    discovered, listed, called, ping, other, early, greeted, late = asked(behaviour, *messages)
    server = {"_meta": {protocol.META_SERVER: {"name": "server", "version": "1.0.0"}}, "resultType": "complete"}
    cached = {"cacheScope": "private", "ttlMs": 0}
    assert discovered["result"] == {
        **server, **cached, "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
    }  # fmt: skip
    assert listed["result"] == {**server, **cached, "tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}
    assert called["result"] == {**server, "content": [{"type": "text", "text": "hi"}], "isError": False}
    assert errors([ping, other, early]) == [
        protocol.METHOD_NOT_FOUND, protocol.UNSUPPORTED_VERSION, protocol.INVALID_REQUEST,
    ]  # fmt: skip
    assert other["error"]["data"] == {"supported": ["2026-07-28"], "requested": "1999-01-01"}
    assert (greeted["result"]["protocolVersion"], "resultType" in late["result"]) == ("2025-11-25", False)


@pytest.mark.parametrize(
    ("message", "headers", "status", "code"),
    [
        (modern(1, "tools/list"), {"Mcp_Method": "tools/list"}, 200, None),
        (modern(1, "tools/list"), {}, 400, -32020),
        (modern(1, "tools/list"), {"Mcp_Method": "tools/list", "MCP_Protocol_Version": "2025-11-25"}, 400, -32020),
        (modern(1, "tools/call", name="echo"), {"Mcp_Method": "tools/call"}, 400, -32020),
        (modern(1, "tools/call", name="echo"), {"Mcp_Method": "tools/call", "Mcp_Name": "echo"}, 200, None),
        (modern(1, "tools/call", name="no"), {"Mcp_Method": "tools/call", "Mcp_Name": "no"}, 400, -32602),
        (modern(1, "ping"), {"Mcp_Method": "ping"}, 404, -32601),
    ],
)
def test_a_request_of_the_newer_revision_needs_headers_that_agree_and_no_session(message, headers, status, code):
    server = HttpServer(Behaviour(discover="answer"))
    [answer] = handled(server, post(message, **{"MCP_Protocol_Version": "2026-07-28", **headers}))
    assert (answer.status, json.loads(answer.body).get("error", {}).get("code")) == (status, code)


def test_tools_are_refused_before_initialize_and_ping_is_not():
    answers = asked(Behaviour(), LIST, request(2, "tools/call", name="echo"), request(3, "ping"))
    assert errors(answers) == [protocol.INVALID_REQUEST, protocol.INVALID_REQUEST, None]


def test_notifications_answers_and_blank_lines_get_no_answer():
    async def body(world: World, child: Child) -> Any:
        await ask(child, hello(), READY, {"jsonrpc": "2.0", "method": "notifications/unknown"})
        for line in ("", "  ", '{"jsonrpc":"2.0","id":9,"result":{}}'):
            await child.write_line(line)
        return (await ask(child, request(7, "ping")))[0]["id"]

    assert talked(Behaviour(), body).result == 7


def test_a_session_with_a_server_takes_few_steps():
    async def body(world: World, child: Child) -> Any:
        await ask(child, hello(), READY, LIST, request(2, "tools/call", name="echo"))
        await child.close_stdin()
        return await child.wait()

    talk = talked(Behaviour(), body)
    assert talk.result == 0
    assert talk.outcome.verdict == "done"
    assert talk.steps < 60


def test_a_slow_call_does_not_hold_up_other_requests():
    async def body(world: World, child: Child) -> Any:
        await ask(child, hello(), READY)
        await child.write_line(json.dumps(request(1, "tools/call", name="slow")))
        pong = await ask(child, request(2, "ping"))
        late = json.loads(await child.read_line(PATIENCE_SECONDS) or "")
        return pong[0]["id"], late["id"], world.clock.now()

    pong, late, now = talked(Behaviour(tools=(Tool("slow", answers_after_seconds=20.0),)), body).result
    assert (pong, late, now - Simulation().started_seconds) == (2, 1, 20.0)


WAITS = [
    (Behaviour(starts_after_seconds=4.0), 4.0),
    (Behaviour(initialize_after_seconds=5.0), 5.0),
    (Behaviour(list_after_seconds=6.0), 6.0),
    (Behaviour(starts_after_seconds=1.0, initialize_after_seconds=2.0, list_after_seconds=3.0), 6.0),
]


@pytest.mark.parametrize(("behaviour", "seconds"), WAITS)
def test_each_delay_takes_its_time(behaviour, seconds):
    async def body(world: World, child: Child) -> float:
        started = world.clock.now()
        await ask(child, hello(), READY, LIST)
        return world.clock.now() - started

    assert talked(behaviour, body).result == seconds


SILENT = [
    (Behaviour(initialize="never"), [hello()]),
    (Behaviour(discover="never"), [request(0, "server/discover")]),
    (Behaviour(list_tools="never"), [hello(), READY, LIST]),
]


@pytest.mark.parametrize(("behaviour", "messages"), SILENT)
def test_a_request_that_is_never_answered_leaves_the_server_alive(behaviour, messages):
    async def body(world: World, child: Child) -> Any:
        await ask(child, *messages[:-1])
        await child.write_line(json.dumps(messages[-1]))
        with pytest.raises(ReadTimeout):
            await child.read_line(PATIENCE_SECONDS)
        return (await ask(child, request(5, "ping")))[0]["id"]

    assert talked(behaviour, body).result == 5


def test_errors_and_garbage_stand_in_for_the_answers():
    assert errors(asked(Behaviour(initialize="error"), hello())) == [protocol.INTERNAL_ERROR]
    assert errors(asked(Behaviour(list_tools="error"), hello(), READY, LIST))[-1] == protocol.INTERNAL_ERROR
    [garbage] = asked(Behaviour(initialize="garbage"), hello())
    assert not {"id", "result", "error"} & set(garbage)
    [empty] = asked(Behaviour(discover="empty"), request(0, "server/discover"))
    assert empty["result"] == {}


EXITS = [
    ("at-start", [], 0),
    ("at-initialize", [hello()], 0),
    ("after-initialize", [hello()], 1),
    ("on-call", [hello(), READY, LIST, request(2, "tools/call", name="echo")], 2),
]


@pytest.mark.parametrize(("exits", "messages", "answered"), EXITS)
def test_a_server_exits_where_it_is_told_to_with_its_stderr_read(exits, messages, answered):
    async def body(world: World, child: Child) -> Any:
        for message in messages:
            await child.write_line(json.dumps(message))
        lines = []
        while (line := await child.read_line()) is not None:
            lines.append(line)
        return len(lines), await child.wait(), await child.read_error(), await child.read_error()

    behaviour = Behaviour(exits=exits, exit_code=7, stderr=("Error: no key",))
    assert talked(behaviour, body).result == (answered, 7, "Error: no key", None)


def test_a_server_that_exits_on_the_probe_ends_there():
    async def body(world: World, child: Child) -> Any:
        return await ask(child, request(0, "server/discover")), await child.wait()

    assert talked(Behaviour(discover="exits", exit_code=3), body).result == ([None], 3)


def test_a_server_that_exits_later_dies_with_its_delay():
    async def body(world: World, child: Child) -> float:
        started = world.clock.now()
        await child.write_line(json.dumps(hello()))
        await child.wait()
        return world.clock.now() - started

    behaviour = Behaviour(exits="at-initialize", starts_after_seconds=2.0, initialize_after_seconds=3.0)
    assert talked(behaviour, body).result == 5.0


def test_noise_comes_before_the_first_answer():
    async def body(world: World, child: Child) -> Any:
        noise = [await child.read_line(), await child.read_line()]
        return noise, (await ask(child, hello()))[0]["id"]

    assert talked(Behaviour(stdout_noise=("Welcome!", "> ready")), body).result == (["Welcome!", "> ready"], 0)


async def ended_by(world: World, child: Child, *signals: str) -> list[int | None]:
    """The exit code known a second after each signal, stdin closed first."""
    await ask(child, hello())
    await child.close_stdin()
    seen = [await child.wait(1.0)]
    for name in signals:
        await child.signal(name)
        seen.append(await child.wait(1.0))
    return seen


ENDINGS = [
    (Behaviour(), [0, 0, 0]),
    (Behaviour(ignores_stdin_end=True), [None, -2, -2]),
    (Behaviour(ignores_stdin_end=True, ignores_signals=True), [None, None, -9]),
    (Behaviour(ignores_signals=True), [0, 0, 0]),
]


@pytest.mark.parametrize(("behaviour", "codes"), ENDINGS)
def test_a_server_ends_with_its_stdin_unless_it_ignores_that(behaviour, codes):
    async def body(world: World, child: Child) -> Any:
        return await ended_by(world, child, "SIGINT", "SIGKILL")

    assert talked(behaviour, body).result == codes


@pytest.mark.parametrize(("ignores", "codes"), [(False, [-15, -15]), (True, [None, -9])])
def test_a_server_dies_of_a_signal_unless_it_ignores_them(ignores, codes):
    async def body(world: World, child: Child) -> Any:
        await ask(child, hello())
        seen = []
        for name in ("SIGTERM", "SIGKILL"):
            await child.signal(name)
            seen.append(await child.wait(1.0))
        return seen

    assert talked(Behaviour(ignores_signals=ignores), body).result == codes


def test_a_server_whose_client_is_gone_ends_without_an_error():
    async def body(world: World, child: Child) -> None:
        await ask(child, hello(), READY)
        await child.write_line(json.dumps(request(1, "tools/call", name="slow")))

    talk = talked(Behaviour(tools=(Tool("slow", answers_after_seconds=5.0),)), body)
    assert (talk.outcome.verdict, talk.outcome.seconds) == ("done", 0.0)
    lines = [event for event in talk.outcome.events if event.name == "ended" and event.actor.startswith("client/")]
    assert [event.details for event in lines] == [{"exit_code": 0}]


def test_what_a_server_receives_is_told_by_events():
    async def body(world: World, child: Child) -> None:
        await ask(child, hello(), READY, LIST, request(2, "tools/call", name="echo"))

    received = [event.details for event in talked(Behaviour(), body).outcome.events if event.name == "mcp.received"]
    assert [details["method"] for details in received] == [
        "initialize", "notifications/initialized", "tools/list", "tools/call",
    ]  # fmt: skip
    assert received[-1]["tool"] == "echo"


# --- HTTP -------------------------------------------------------------------------------------------------------------


def post(message: dict[str, Any] | str, **headers: str) -> Request:
    body = message if isinstance(message, str) else json.dumps(message)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("POST", URL, {"Content-Type": "application/json", **named}, body.encode())


def handled(server: HttpServer, *requests: Request) -> list[Any]:
    return [server.handle(item, 0.0, "client") for item in requests]


def opened(server: HttpServer) -> str:
    [response] = handled(server, post(hello()))
    session = header(response.headers, "mcp-session-id")
    assert session
    return session


def test_a_good_http_server_keeps_a_session_from_initialize_to_delete():
    server = HttpServer()
    session = opened(server)
    ready, listed, gone, late = handled(
        server,
        post(READY, Mcp_Session_Id=session),
        post(LIST, Mcp_Session_Id=session, MCP_Protocol_Version="2025-11-25"),
        Request("DELETE", URL, {"mcp-session-id": session}),
        post(LIST, Mcp_Session_Id=session),
    )
    assert (ready.status, ready.body) == (202, b"")
    assert json.loads(listed.body)["result"]["tools"][0]["name"] == "echo"
    assert listed.headers["Content-Type"] == "application/json"
    assert (gone.status, late.status) == (200, 404)
    assert [seen.rpc_method for seen in server.requests] == [
        "initialize", "notifications/initialized", "tools/list", None, "tools/list",
    ]  # fmt: skip


def test_two_clients_have_two_sessions_and_a_second_run_the_same_ids():
    server = HttpServer()
    first, second = opened(server), opened(server)
    assert first != second
    assert opened(HttpServer()) == first


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (post(LIST), 400),
        (post(READY), 400),
        (post(LIST, Mcp_Session_Id="unknown"), 404),
        (post("{"), 400),
        (post("[]"), 400),
        (Request("GET", URL), 405),
        (Request("PUT", URL), 405),
        (Request("DELETE", URL), 400),
        (Request("DELETE", URL, {"Mcp-Session-Id": "unknown"}), 404),
        (Request("GET", "https://mcp.test/.well-known/oauth-protected-resource/mcp"), 404),
        (post(hello()), 200),
        (post(request(0, "server/discover"), MCP_Protocol_Version="2026-07-28"), 200),
    ],
)
def test_requests_outside_a_session_have_their_status(given, status):
    server = HttpServer()
    opened(server)
    assert handled(server, given)[0].status == status


def test_a_version_header_that_no_revision_has_is_refused():
    server = HttpServer()
    session = opened(server)
    old, new = handled(
        server,
        post(LIST, Mcp_Session_Id=session, MCP_Protocol_Version="1999-01-01"),
        post(LIST, Mcp_Session_Id=session),
    )
    assert (old.status, new.status) == (400, 200)


def test_the_probe_of_newer_clients_is_not_found_inside_the_protocol():
    [response] = handled(HttpServer(), post(request("p", "server/discover")))  # type: ignore[arg-type]
    assert json.loads(response.body) == protocol.error("p", protocol.METHOD_NOT_FOUND, "Method not found")


def test_a_stateless_server_gives_no_session_and_wants_none():
    server = HttpServer(sessions=False)
    first, listed, deleted = handled(server, post(hello()), post(LIST), Request("DELETE", URL))
    assert header(first.headers, "mcp-session-id") is None
    assert (listed.status, deleted.status) == (200, 405)


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
@pytest.mark.parametrize("challenge", [None, 'Bearer resource_metadata="https://x.test/m"'])
def test_a_status_answers_every_post_in_place_of_the_protocol(status, challenge):
    server = HttpServer(Behaviour(status=status, challenge=challenge, body='{"error":"no"}'))
    first, second, get = handled(server, post(hello()), post("{"), Request("GET", URL))
    assert first == second
    assert (first.status, first.body) == (status, b'{"error":"no"}')
    assert (first.headers.get("WWW-Authenticate"), first.headers["Content-Type"]) == (challenge, "application/json")
    assert get.status == 405


def test_a_page_stands_in_for_the_protocol():
    server = HttpServer(Behaviour(status=200, body="<html>", content_type="text/html"))
    [response] = handled(server, post(hello()))
    assert (response.status, response.headers["Content-Type"], response.body) == (200, "text/html", b"<html>")


def test_a_bearer_that_is_not_accepted_is_challenged_with_the_resource_metadata():
    server = HttpServer(Behaviour(requires_bearer=("good", "other")))
    answers = handled(
        server,
        post(hello()),
        post(hello(), Authorization="Bearer bad"),
        post(hello(), Authorization="Basic good"),
        Request("GET", URL),
        post(hello(), authorization="bearer good"),
        post(hello(), Authorization="Bearer other"),
    )
    assert [answer.status for answer in answers] == [401, 401, 401, 401, 200, 200]
    wanted = 'Bearer resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp"'
    assert answers[0].headers["WWW-Authenticate"] == wanted
    [silent] = handled(HttpServer(Behaviour(requires_bearer=("good",), challenge="")), post(hello()))
    assert "WWW-Authenticate" not in silent.headers


async def posted(world: World, request: Request) -> Any:
    started = world.clock.now()
    try:
        response = await world.http.send(request, open_timeout_seconds=5, read_timeout_seconds=PATIENCE_SECONDS)
    except Ambiguous as error:
        return error.reason, world.clock.now() - started
    return response.status, world.clock.now() - started


@pytest.mark.parametrize("answers_as", ["json", "sse"])
@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        (Behaviour(), (200, 0.0)),
        (Behaviour(initialize_after_seconds=9.0), (200, 9.0)),
        (Behaviour(initialize="never"), ("timeout", PATIENCE_SECONDS)),
    ],
)
def test_delays_and_silence_are_the_same_as_json_and_as_events(answers_as, behaviour, outcome):
    server = HttpServer(behaviour._replace(answers_as=answers_as))

    async def body(world: World) -> Any:
        return await posted(world, post(hello()))

    assert alone(body, servers={URL: server}) == outcome


def test_an_answer_as_events_holds_one_message_an_event():
    async def body(world: World) -> Any:
        stream = await world.http.open(post(hello()), open_timeout_seconds=5, read_timeout_seconds=5)
        return stream.headers["Content-Type"], await stream.read_event(5), await stream.read_event(5)

    kind, event, end = alone(body, servers={URL: HttpServer(Behaviour(answers_as="sse"))})
    assert (kind, json.loads(event)["id"], end) == ("text/event-stream", 0, None)


def test_a_get_stream_stays_open_where_it_is_supported():
    server = HttpServer(Behaviour(supports_get=True))
    session = opened(server)

    async def body(world: World) -> Any:
        request = Request("GET", URL, {"Mcp-Session-Id": session})
        stream = await world.http.open(request, open_timeout_seconds=5, read_timeout_seconds=5)
        with pytest.raises(ReadTimeout):
            await stream.read_event(30)
        return stream.status

    assert alone(body, servers={URL: server}) == 200
    assert handled(server, Request("GET", URL))[0].status == 400


@pytest.mark.parametrize(("drops", "arrived"), [("before", 0), ("after", 1)])
def test_a_dropped_connection_is_a_fault_of_the_network(drops, arrived):
    server = HttpServer(Behaviour(drops=drops))
    action = NETWORK_ACTIONS[server.behaviour.drops]
    assert action is not None

    async def body(world: World) -> Any:
        return (await posted(world, post(hello())))[0]

    assert alone(body, servers={URL: server}, faults=(Fault(action, port="http"),)) == "reset"
    assert len(server.requests) == arrived


def test_the_older_transport_names_its_endpoint_and_answers_in_the_stream():
    server = HttpServer(transport="sse")
    [stream, plain] = handled(server, Request("GET", URL), post(hello()))
    assert (stream.status, stream.ends, plain.status) == (200, False, 405)
    endpoint = f"https://mcp.test{stream.events[0].data}"
    accepted, ready, broken, unknown = (
        server.handle(Request("POST", url, {}, body.encode()), 0.0, "client")
        for url, body in [
            (endpoint, json.dumps(hello())),
            (endpoint, json.dumps(READY)),
            (endpoint, "{"),
            (f"{URL}?session_id=unknown", json.dumps(hello())),
        ]
    )
    assert [answer.status for answer in (accepted, ready, broken, unknown)] == [202, 202, 400, 404]
    [first, answer] = stream.events
    assert (first.event, answer.event) == ("endpoint", "message")
    assert json.loads(answer.data)["result"]["protocolVersion"] == "2025-11-25"
    assert accepted.body == b"Accepted"


def test_the_older_transport_refuses_its_stream_too():
    server = HttpServer(Behaviour(status=500), transport="sse")
    assert handled(server, Request("GET", URL))[0].status == 500


# --- behaviours as tables ---------------------------------------------------------------------------------------------


def test_a_table_gives_the_behaviour_that_it_describes():
    table = {
        "name": "s", "tools": ["a", {"name": "b", "read_only": True, "answers_after_seconds": 2}],
        "initialize": "error", "stderr": ["x"], "exit_code": 0, "status": 404, "requires_bearer": ["t"],
        "starts_after_seconds": 1,
    }  # fmt: skip
    assert from_table(table) == Behaviour(
        name="s", tools=(Tool("a"), Tool("b", read_only=True, answers_after_seconds=2.0)), initialize="error",
        stderr=("x",), exit_code=0, status=404, requires_bearer=("t",), starts_after_seconds=1.0,
    )  # fmt: skip
    assert from_table({}) == Behaviour()


def test_every_field_of_a_behaviour_can_be_given_by_its_own_value():
    for record in (Behaviour(), Behaviour(status=401, challenge="x", content_type="y")):
        assert from_table(to_table(record)) == record
        given = {key: value for key, value in record._asdict().items() if value is not None}
        given["tools"] = [tool._asdict() for tool in record.tools]
        assert from_table(given) == record


@pytest.mark.parametrize(
    ("table", "named"),
    [
        ({"initialise": "never"}, "initialise"),
        ({"initialize": "maybe"}, "initialize"),
        ({"initialize": 1}, "initialize"),
        ({"starts_after_seconds": "1"}, "starts_after_seconds"),
        ({"starts_after_seconds": True}, "starts_after_seconds"),
        ({"starts_after_seconds": -1}, "starts_after_seconds"),
        ({"starts_after_seconds": float("nan")}, "starts_after_seconds"),
        ({"status": 99}, "status"),
        ({"status": "404"}, "status"),
        ({"exit_code": 256}, "exit_code"),
        ({"stderr": "one"}, "stderr"),
        ({"stderr": [1]}, "stderr"),
        ({"supports_get": 1}, "supports_get"),
        ({"name": None}, "name"),
        ({"tools": "echo"}, "tools"),
        ({"tools": [1]}, "tool"),
        ({"tools": [{}]}, "name"),
        ({"tools": [{"name": "x", "speed": 1}]}, "speed"),
    ],
)
def test_a_wrong_key_or_value_is_refused_by_name(table, named):
    with pytest.raises(ValueError, match=named):
        from_table(table)
