"""Requests and streams: what never left, what may have been processed, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from harness.world import Ambiguous, NotSent, ReadTimeout, Request, Response, StreamEvent, World, WorldFault, header
from harness.world.model import Fault, Simulation
from harness.world.sites import origin
from scenarios.worlds import alone, program, ran

TOKEN = Request("POST", "https://as.test/token", {"Accept": "*/*"}, b"grant_type=refresh_token&x=1")


class Server:
    """Answers what it is told, and keeps what it was asked."""

    def __init__(self, response: Response | None = None) -> None:
        self.response = response or Response(200, body=b"processed", after_seconds=2.0)
        self.asked: list[tuple[str, float, str]] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.asked.append((request.url, now, who))
        return self.response


async def send(world: World, read_timeout: float = 30.0) -> tuple[str, float]:
    """What came of a request, and when."""
    try:
        response = await world.http.send(TOKEN, open_timeout_seconds=5, read_timeout_seconds=read_timeout)
        return f"{response.status} {response.body.decode()}", world.clock.now()
    except (NotSent, Ambiguous) as error:
        return repr(error), world.clock.now()


@pytest.mark.parametrize(
    ("fault", "came", "at", "processed"),
    [
        (None, "200 processed", 2, 1),
        (Fault("refused"), "NotSent('refused')", 0, 0),
        (Fault("dns"), "NotSent('dns')", 0, 0),
        (Fault("tls"), "NotSent('tls')", 0, 0),
        (Fault("open-timeout"), "NotSent('timeout')", 5, 0),
        (Fault("reset-before"), "Ambiguous('reset')", 0, 0),
        (Fault("reset-after"), "Ambiguous('reset')", 2, 1),
        (Fault("slow", seconds=10), "200 processed", 12, 1),
        (Fault("slow", seconds=28), "200 processed", 30, 1),
        (Fault("slow", seconds=28.5), "Ambiguous('timeout')", 30, 1),
        (Fault("answer", answer=Response(503, body=b"busy")), "503 busy", 0, 0),
        (Fault("answer", answer=Response(503, body=b"busy"), seconds=3), "503 busy", 3, 0),
        (Fault("answer-after", answer=Response(502, body=b"lost", after_seconds=1)), "502 lost", 1, 1),
        (Fault("answer", answer=Response(503), content="*grant_type=authorization_code*"), "200 processed", 2, 1),
        (Fault("answer", answer=Response(503), content="*grant_type=refresh_token*"), "503 ", 0, 0),
    ],
)
def test_each_fault_says_whether_the_request_left_and_the_server_knows_whether_it_came(fault, came, at, processed):
    server = Server()
    faults = [] if fault is None else [fault]
    assert alone(send, servers={"https://as.test": server}, faults=faults, start_seconds=0) == (came, at)
    assert len(server.asked) == processed


@pytest.mark.parametrize(("read_timeout", "came"), [(2.0, "200 processed"), (1.9, "Ambiguous('timeout')")])
def test_a_read_timeout_after_processing_is_ambiguous(read_timeout, came):
    server = Server()

    async def body(world: World) -> tuple[str, float]:
        return await send(world, read_timeout)

    assert alone(body, servers={"https://as.test": server}, start_seconds=0) == (came, min(2.0, read_timeout))
    assert server.asked == [("https://as.test/token", 0.0, "alone")]


@pytest.mark.parametrize(
    "url", ["https://elsewhere.test/", "http://as.test/", "https://as.test:8443/", "not a url", "https://[x"]
)
def test_only_the_servers_of_the_simulation_can_be_reached(url):
    server = Server()

    async def body(world: World) -> None:
        await world.http.send(Request("GET", url), open_timeout_seconds=1, read_timeout_seconds=1)

    with pytest.raises(NotSent, match="dns"):
        alone(body, servers={"https://as.test": server})
    assert server.asked == []


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://[::1]:9000/mcp", "http://[::1]:9000"),
        ("https://[::1]:443/", "https://[::1]"),
        ("https://AS.test:443/x?y#z", "https://as.test"),
        ("http://as.test:80", "http://as.test"),
        ("https://user:pw@as.test:8443/", "https://as.test:8443"),
        ("https://as.test:99999", ""),
    ],
)
def test_an_origin_is_scheme_host_and_port_without_the_default(url, expected):
    assert origin(url) == expected


def test_a_server_may_be_named_by_any_url_of_its_origin():
    server = Server()
    assert alone(send, servers={"https://AS.test:443/": server})[0] == "200 processed"


@pytest.mark.parametrize(("label", "processed"), [("POST *", 0), ("processed POST *", 1)])
def test_a_kill_strikes_before_the_server_knows_or_after(label, processed):
    server = Server()
    finished = ran(bodies={"a": send}, servers={"https://as.test": server}, faults=[Fault("kill", label=label)])
    assert finished.ended("a").exit_code == -9
    assert len(server.asked) == processed


def test_another_actor_may_run_while_a_request_is_on_its_way_and_while_its_answer_is():
    server = Server()
    seen: set[int] = set()

    async def other(world: World) -> None:
        await world.clock.sleep(1)
        seen.add(len(server.asked))

    ran(bodies={"a": send, "other": other}, servers={"https://as.test": server})
    assert seen == {1}


def test_a_server_that_raises_is_a_fault_of_the_harness_whatever_the_subject_catches():
    class Broken:
        def handle(self, request: Request, now: float, who: str) -> Response:
            raise KeyError("client_id")

    async def body(world: World) -> None:
        try:
            await send(world)
        except BaseException:  # noqa: BLE001 - the worst that a subject can do
            return

    with pytest.raises(WorldFault, match=r"the server https://as.test raised KeyError\('client_id'\)") as caught:
        ran(bodies={"a": body}, servers={"https://as.test": Broken()})
    assert isinstance(caught.value.__cause__, KeyError)


def test_headers_are_compared_without_regard_to_case():
    assert header({"Content-Type": "x"}, "content-type") == "x"
    assert header({"content-type": "x"}, "Content-Type") == "x"
    assert header({}, "content-type") is None


EVENTS = (StreamEvent("one", 1.0), StreamEvent("two\nlines", 4.0), StreamEvent("three"))


async def opened(world: World) -> Any:
    return await world.http.open(Request("GET", "https://as.test/sse"), open_timeout_seconds=1, read_timeout_seconds=1)


def streaming(body: Any, *, ends: bool = True, headers: Mapping[str, str] | None = None, faults: Any = ()) -> Any:
    server = Server(Response(200, headers or {}, events=EVENTS, ends=ends))
    return alone(body, servers={"https://as.test": server}, faults=faults, start_seconds=0)


def test_events_of_a_stream_come_when_they_were_sent_and_then_the_end():
    async def body(world: World) -> Any:
        stream = await opened(world)
        return stream.status, stream.headers, [(await stream.read_event(9), world.clock.now()) for _ in range(4)]

    assert streaming(body, headers={"x": "y"}) == (
        200, {"x": "y"}, [("one", 1), ("two\nlines", 5), ("three", 5), (None, 5)]
    )  # fmt: skip


def test_a_late_reader_finds_the_events_that_came_meanwhile():
    async def body(world: World) -> Any:
        stream = await opened(world)
        await world.clock.sleep(3)
        return [(await stream.read_event(9), world.clock.now()) for _ in range(3)]

    assert streaming(body) == [("one", 3), ("two\nlines", 5), ("three", 5)]


def test_a_read_timeout_leaves_a_stream_usable():
    async def body(world: World) -> Any:
        stream = await opened(world)
        seen: list[Any] = []
        while len(seen) < 5:
            try:
                seen.append((await stream.read_event(1.5), world.clock.now()))
            except ReadTimeout:
                seen.append(("silence", world.clock.now()))
        return seen

    assert streaming(body) == [("one", 1), ("silence", 2.5), ("silence", 4), ("two\nlines", 5), ("three", 5)]


def test_a_stream_that_does_not_end_is_silent_after_its_last_event():
    async def body(world: World) -> Any:
        stream = await opened(world)
        for _ in range(3):
            await stream.read_event(9)
        with pytest.raises(ReadTimeout):
            await stream.read_event(60)
        return world.clock.now()

    assert streaming(body, ends=False) == 65


@pytest.mark.parametrize("ends", [True, False])
def test_closing_ends_a_stream_for_whoever_reads_it_now_or_later(ends):
    async def body(world: World) -> Any:
        stream = await opened(world)
        assert await stream.read_event(9) == "one"
        reader = world.tasks.start(stream.read_event(100), "reader")
        await world.clock.sleep(1)
        await stream.close()
        await world.tasks.wait([reader])
        return reader.result(), await stream.read_event(1), world.clock.now()

    assert streaming(body, ends=ends) == (None, None, 2)


def test_a_stream_that_breaks_off_is_ambiguous_then_and_for_good():
    async def body(world: World) -> Any:
        stream = await opened(world)
        seen = [await stream.read_event(9)]
        for _ in range(2):
            with pytest.raises(Ambiguous, match="reset"):
                await stream.read_event(9)
        return seen

    fault = Fault("reset-after", label="event of GET https://as.test/sse", nth=2)
    assert streaming(body, faults=[fault]) == ["one"]


def test_the_whole_of_a_stream_takes_as_long_as_its_events():
    async def body(world: World, read_timeout: float = 4.0) -> Any:
        request = Request("GET", "https://as.test/sse")
        response = await world.http.send(request, open_timeout_seconds=1, read_timeout_seconds=read_timeout)
        return response.body, response.events, world.clock.now()

    assert StreamEvent("/messages", event="endpoint").encoded() == "event: endpoint\ndata: /messages\n\n"
    whole = b"data: one\n\ndata: two\ndata: lines\n\ndata: three\n\n"
    assert streaming(body) == (whole, None, 5)

    async def impatient(world: World) -> Any:
        with pytest.raises(Ambiguous, match="timeout"):
            await body(world, 3.0)
        return world.clock.now()

    assert streaming(impatient) == 4  # one second to the first event, three of silence

    async def endless(world: World) -> Any:
        with pytest.raises(Ambiguous, match="timeout"):
            await body(world)
        return world.clock.now()

    assert streaming(endless, ends=False) == 9


class Growing:
    """A stream at GET, into which each POST puts the events that its body lists: `text seconds, text seconds`."""

    def __init__(self, *, ends: bool = False, opens_after_seconds: float = 0.0) -> None:
        self.events, self.ends, self.opens_after_seconds = [StreamEvent("first", 1.0)], ends, opens_after_seconds

    def handle(self, request: Request, now: float, who: str) -> Response:
        if request.method == "GET":
            after_seconds = self.opens_after_seconds
            return Response(200, after_seconds=after_seconds, events=self.events, ends=self.ends)
        for item in request.body.decode().split(", "):
            text, seconds = item.split()
            self.events.append(StreamEvent(text, float(seconds)))
        return Response(202)


def grown(*posts: tuple[float, str], reads: int, ends: bool = False, opens_after_seconds: float = 0.0) -> Any:
    """What a reader saw of such a stream, and when, while another actor posted at these times."""

    async def reading(world: World) -> Any:
        request = Request("GET", "https://as.test/sse")
        stream = await world.http.open(request, open_timeout_seconds=1, read_timeout_seconds=30)
        return [(await stream.read_event(99), world.clock.now()) for _ in range(reads)]

    async def posting(world: World) -> None:
        for at, text in posts:
            await world.clock.sleep(at - world.clock.now())
            request = Request("POST", "https://as.test/", body=text.encode())
            await world.http.send(request, open_timeout_seconds=1, read_timeout_seconds=1)

    server = Growing(ends=ends, opens_after_seconds=opens_after_seconds)
    finished = ran(bodies={"reader": reading, "poster": posting}, servers={"https://as.test": server}, start_seconds=0)
    assert finished.outcome.verdict == "done"
    return finished.results["reader"]


def test_a_stream_brings_what_a_server_adds_to_it_later_counted_from_then():
    assert grown((2.0, "second 0"), (3.0, "third 4, fourth 1"), reads=4) == [
        ("first", 1), ("second", 2), ("third", 7), ("fourth", 8)
    ]  # fmt: skip


def test_what_one_request_adds_waits_for_nothing_that_another_added():
    assert grown((2.0, "slow 20, behind 1"), (3.0, "quick 0"), reads=4) == [
        ("first", 1), ("quick", 3), ("slow", 22), ("behind", 23)
    ]  # fmt: skip


def test_what_is_added_while_a_stream_still_opens_comes_once():
    assert grown((2.0, "early 0"), (3.0, "due 4"), reads=3, opens_after_seconds=5.0) == [
        ("early", 5), ("first", 6), ("due", 7)
    ]  # fmt: skip


def test_a_stream_that_ends_does_not_grow():
    assert grown((0.5, "late 0"), reads=2, ends=True) == [("first", 1), (None, 1)]


def test_a_growing_stream_wakes_its_reader_for_what_is_its_own_alone():
    async def body(world: World) -> Any:
        streams = [
            await world.http.open(Request("GET", url), open_timeout_seconds=1, read_timeout_seconds=30)
            for url in ("https://one.test/", "https://two.test/")
        ]
        readers = [world.tasks.start(stream.read_event(50), "reader") for stream in streams]
        request = Request("POST", "https://one.test/", body=b"mine 0")
        await world.http.send(request, open_timeout_seconds=1, read_timeout_seconds=1)
        await world.tasks.wait(readers[:1])
        seen = [readers[0].result(), readers[1].done]
        for stream in streams:
            await stream.close()
        await world.tasks.wait(readers)
        return seen, readers[1].result(), await streams[0].read_event(1)

    servers = {f"https://{name}.test": Growing() for name in ("one", "two")}
    for server in servers.values():
        server.events.clear()
    assert alone(body, servers=servers) == (["mine", False], None, None)


@pytest.mark.parametrize(("content", "events"), [(b"plain", ["plain", None]), (b"", [None, None])])
def test_an_answer_that_is_no_stream_comes_as_one_event(content, events):
    async def body(world: World) -> Any:
        stream = await opened(world)
        return [await stream.read_event(1) for _ in range(2)]

    assert alone(body, servers={"https://as.test": Server(Response(401, body=content))}) == events


def test_a_request_is_told_with_its_status():
    simulation = Simulation(servers={"https://as.test": Server()})
    simulation.start("a", program(send))
    events = simulation.run().events
    assert [event.details for event in events if event.name == "request"] == [
        {"at": "POST https://as.test/token", "status": 200}
    ]
