"""Pure servers behind real sockets: what a client sees, what the server sees, and that nothing is left."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.mounts import Mount, TestAuthority
from harness.world import Request, Response, StreamEvent, WorldFault
from harness.world.outside.setting import Pace
from scenarios.leftovers import held_here, left_since

ORIGIN = "http://as.test"
URL = f"{ORIGIN}/token"
FAST = Pace(1000.0, 0.0, 0.0)
LIMIT_SECONDS = 20.0


class Server:
    """Answers what it is told, and keeps what it was asked."""

    def __init__(self, response: Response | None = None) -> None:
        self.response = response or Response(200, {"X-Mark": "é"}, b"processed")
        self.asked: list[tuple[Request, float, str]] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.asked.append((request, now, who))
        return self.response


def ask(mount: Mount, method: str = "GET", url: str = URL, **options: Any) -> httpx.Response:
    return httpx.request(method, mount.url(url), timeout=LIMIT_SECONDS, trust_env=False, **options)


def opened(mount: Mount, url: str) -> AbstractContextManager[httpx.Response]:
    return httpx.stream("GET", mount.url(url), timeout=LIMIT_SECONDS, trust_env=False)


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No test leaves threads or open files."""
    before = held_here()
    yield
    assert left_since(before) == []


def test_a_server_sees_the_request_as_it_was_meant_and_who_asks():
    server = Server()
    headers = {"X-World-Actor": "claude", "authorization": "Bearer t", "X-World-Fault": ""}
    with Mount({ORIGIN: server}, pace=Pace(1.0, 0.0, 0.0)) as mount:
        answer = ask(mount, "POST", f"{URL}%2Fx?a=1&b=%20", headers=headers, content=b"x" * 200_000)
        ask(mount)
    assert (answer.status_code, answer.headers["X-Mark"], answer.content) == (200, "é", b"processed")
    (request, now, who), (_, _, nobody) = server.asked
    assert (request.method, request.url) == ("POST", f"{URL}%2Fx?a=1&b=%20")
    assert request.body == b"x" * 200_000
    assert request.headers["Authorization"] == "Bearer t"
    assert not [name for name in request.headers if name.lower().startswith("x-world")]
    assert (who, nobody) == ("claude", "")
    assert now > 1_700_000_000


def test_each_origin_has_its_own_address_and_one_of_port_0_is_its_own():
    first, second = Server(), Server(Response(404))
    with Mount({ORIGIN: first, "http://127.0.0.1:0": second}) as mount:
        assert ask(mount).status_code == 200
        assert ask(mount, url="http://127.0.0.1:0/here").status_code == 404
        host, port = mount.addresses["http://127.0.0.1:0"]
    assert len(set(mount.addresses.values())) == 2
    assert second.asked[0][0].url == f"http://{host}:{port}/here"


def test_a_connection_carries_several_requests():
    with Mount({ORIGIN: Server()}) as mount, socket.create_connection(mount.addresses[ORIGIN], LIMIT_SECONDS) as client:
        for _ in range(3):
            client.sendall(b"GET / HTTP/1.1\r\nHost: as.test\r\n\r\n")
            received = b""
            while not received.endswith(b"processed"):
                received += client.recv(65536)
            assert received.startswith(b"HTTP/1.1 200 ")


def test_a_delay_takes_the_worlds_time():
    with Mount({ORIGIN: Server(Response(200, after_seconds=600.0))}, pace=FAST) as mount:
        assert ask(mount).status_code == 200


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_may_have_no_body_has_none(status):
    with Mount({ORIGIN: Server(Response(status, body=b"dropped"))}) as mount:
        answer = ask(mount)
    assert (answer.status_code, answer.content) == (status, b"")


def test_the_events_of_a_stream_come_in_the_order_of_their_times_and_then_the_end():
    events = (StreamEvent("one", 1.0, "endpoint"), StreamEvent("two\nlines", 20.0))
    with Mount({ORIGIN: Server(Response(200, {"Content-Type": "text/event-stream"}, events=events))}, pace=FAST) as m:
        answer = ask(m)
    assert answer.headers["Content-Type"] == "text/event-stream"
    assert answer.text == "event: endpoint\ndata: one\n\ndata: two\ndata: lines\n\n"


class Growing:
    """A stream at GET, into which a POST puts an event with its body's text, as late as its query says."""

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        if request.method == "GET":
            return Response(200, {"Content-Type": "text/event-stream"}, events=self.events, ends=False)
        self.events.append(StreamEvent(request.body.decode(), float(request.url.rpartition("?")[2])))
        return Response(202)


def test_a_stream_stays_open_and_brings_what_is_added_by_when_it_is_due():
    with Mount({ORIGIN: Growing()}, pace=Pace(20.0, 0.0, 0.0)) as mount, opened(mount, URL) as stream:
        lines = stream.iter_lines()
        ask(mount, "POST", f"{URL}?10", content=b"slow")
        ask(mount, "POST", f"{URL}?0", content=b"quick")
        assert [next(lines) for _ in range(4)] == ["data: quick", "", "data: slow", ""]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    ("header", "drops", "processed"),
    [
        ("reset-before", "never", 0), ("reset-after", "never", 1), (None, "before", 0), (None, "after", 1),
        (None, "never", None),
    ],
)  # fmt: skip
def test_a_broken_connection_is_a_reset_before_or_after_the_server_knew(tmp_path, scheme, header, drops, processed):
    """Below TLS some clients take any sudden end for an end of the connection."""
    server = HttpServer(Behaviour(drops=drops))
    authority = TestAuthority(tmp_path)
    headers = {} if header is None else {"X-World-Fault": header}
    with Mount({f"{scheme}://127.0.0.1": server}, authority=authority) as mount:
        context = authority.client_context() if scheme == "https" else False
        if processed is None:
            assert ask(mount, url=f"{scheme}://127.0.0.1/", verify=context).status_code == 405
            return
        with pytest.raises(httpx.TransportError, match=r"reset|disconnected" if scheme == "https" else "reset"):
            ask(mount, url=f"{scheme}://127.0.0.1/", headers=headers, verify=context)
    assert len(server.requests) == processed


@pytest.mark.parametrize("host", ["mcp.test", "deep.mcp.test", "127.0.0.1"])
def test_a_certificate_is_for_the_host_of_its_origin_by_an_authority_of_the_run(tmp_path, host):
    authority = TestAuthority(tmp_path)
    assert authority.path == tmp_path / "ca.pem"
    with Mount({f"https://{host}": Server()}, authority=authority) as mount:
        address = mount.addresses[f"https://{host}"]
        assert shaken(address, authority.client_context(), host).startswith("TLSv1")
        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            shaken(address, authority.client_context(), "other.test")
        with pytest.raises(ssl.SSLCertVerificationError, match=r"unable to get local issuer|self.signed"):
            shaken(address, ssl.create_default_context(), host)
        with httpx.Client(verify=authority.client_context(), trust_env=False, timeout=LIMIT_SECONDS) as client:
            answer = client.get(mount.url(f"https://{host}/"), extensions={"sni_hostname": host})
    assert answer.status_code == 200


def shaken(address: tuple[str, int], context: ssl.SSLContext, host: str) -> str:
    """The TLS version of a handshake in which the server is checked to be `host`."""
    with (
        socket.create_connection(address, LIMIT_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        return secured.version() or ""


def test_two_authorities_do_not_trust_each_other(tmp_path):
    one, other = (TestAuthority(tmp_path / name) for name in ("one", "other") if not (tmp_path / name).mkdir())
    with Mount({"https://mcp.test": Server()}, authority=one) as mount, pytest.raises(ssl.SSLCertVerificationError):
        shaken(mount.addresses["https://mcp.test"], other.client_context(), "mcp.test")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_the_end_cuts_whoever_is_connected(tmp_path, scheme):
    """A silent stream, a request that is never answered, a kept connection, one that has not said anything."""
    authority = TestAuthority(tmp_path)
    verify = authority.client_context() if scheme == "https" else False
    never = HttpServer(Behaviour(initialize="never"))
    servers: dict[str, Any] = {f"{scheme}://127.0.0.1": Growing(), f"{scheme}://127.0.0.1:81": never}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    outcome: list[Exception] = []

    def wait_for_nothing(url: str) -> None:
        try:
            httpx.post(url, json=hello, timeout=LIMIT_SECONDS, trust_env=False, verify=verify)
        except httpx.HTTPError as error:
            outcome.append(error)

    with httpx.Client(timeout=LIMIT_SECONDS, trust_env=False, verify=verify) as client:
        with Mount(servers, authority=authority) as mount:
            silent = socket.create_connection(mount.addresses[f"{scheme}://127.0.0.1"], LIMIT_SECONDS)
            waiting = threading.Thread(target=wait_for_nothing, args=(mount.url(f"{scheme}://127.0.0.1:81/"),))
            waiting.start()
            stream = client.send(client.build_request("GET", mount.url(f"{scheme}://127.0.0.1/")), stream=True)
            assert client.post(mount.url(f"{scheme}://127.0.0.1/?0"), content=b"first").status_code == 202
            lines = stream.iter_lines()
            assert next(lines) == "data: first"
            asked(never)
        with pytest.raises(httpx.HTTPError):
            list(lines)
        stream.close()
    waiting.join()
    silent.close()
    assert len(outcome) == 1


def asked(server: HttpServer) -> None:
    """Come back when a server has been asked."""
    gate = threading.Event()
    while not server.requests:
        gate.wait(0.001)


def test_a_client_that_leaves_is_waited_for_by_nobody():
    server = Growing()
    with Mount({ORIGIN: server}) as mount:
        for _ in range(5):
            with opened(mount, URL) as stream:
                assert stream.status_code == 200
        assert ask(mount, "POST", f"{URL}?0", content=b"nobody reads").status_code == 202


class Raising:
    def handle(self, request: Request, now: float, who: str) -> Response:
        raise KeyError("client_id")


def test_a_server_that_raises_is_a_fault_of_the_harness():
    def body(error: Exception | None) -> None:
        with Mount({ORIGIN: Raising()}) as mount:
            with pytest.raises(httpx.ReadError):
                ask(mount)
            if error is not None:
                raise error

    with pytest.raises(WorldFault, match=r"the server http://as.test raised KeyError\('client_id'\)") as caught:
        body(None)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(LookupError, match="mine"):
        body(LookupError("mine"))


def test_a_port_can_be_asked_for_and_one_that_is_taken_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match="in use"), Mount({ORIGIN: Server(), URL: Server()}, ports={ORIGIN: port}):
            pass
    with Mount({ORIGIN: Server()}, ports={ORIGIN: port}) as mount:
        assert mount.addresses == {ORIGIN: ("127.0.0.1", port)}


def test_https_needs_an_authority():
    servers = {ORIGIN: Server(), "https://mcp.test": Server()}
    with pytest.raises(ValueError, match=r"https://mcp.test needs an authority"), Mount(servers):
        pass


def test_a_mount_can_live_in_the_loop_that_is_there():
    async def body() -> tuple[int, bytes]:
        async with Mount({ORIGIN: Server()}) as mount, httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(mount.url(URL), timeout=LIMIT_SECONDS)
            return answer.status_code, answer.content

    assert asyncio.run(body()) == (200, b"processed")


def test_the_older_transport_answers_in_its_stream_over_real_sockets():
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": hello}
    with Mount({ORIGIN: HttpServer(transport="sse")}) as mount, opened(mount, f"{ORIGIN}/sse") as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: endpoint"
        endpoint = next(lines).removeprefix("data: ")
        accepted = ask(mount, "POST", f"{ORIGIN}{endpoint}", json=message)
        answer = next(line for line in lines if line.startswith("data: "))
    assert (accepted.status_code, accepted.text) == (202, "Accepted")
    assert json.loads(answer.removeprefix("data: "))["id"] == 7


def test_the_certificates_of_a_run_are_in_its_directory_alone(tmp_path: Path):
    TestAuthority(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["ca.pem"]
