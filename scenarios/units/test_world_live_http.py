"""The live driver on the network: no way but the straight one, and what each failure says about the request."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from fake_servers.mounts import Mount, TestAuthority
from harness.world import Ambiguous, NotSent, Request, Response, World
from harness.world.live import live_world
from harness.world.outside.setting import Pace, Setting

REPOSITORY = Path(__file__).parents[2]
PACE = Pace(50.0, 0.0, 0.0)
HOST = "127.0.0.1"
Behaviour = Callable[[socket.socket], None]


class Echo:
    """Says who asked, and with which headers."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.asked.append(request)
        return Response(200, body=who.encode())


def inside(body: Callable[[World], Any], setting: Setting | None = None) -> Any:
    """What a body answers in a live world."""

    async def entered() -> Any:
        async with live_world(setting or Setting(pace=PACE)) as world:
            return await body(world)

    return anyio.run(entered)


def sent(
    url: str, setting: Setting | None = None, *, opens: float = 1_000.0, reads: float = 1_000.0, **rest: Any
) -> str:
    """Status and body of an answer, or what was raised."""

    async def body(world: World) -> str:
        try:
            request = Request(rest.pop("method", "GET"), url, **rest)
            answer = await world.http.send(request, open_timeout_seconds=opens, read_timeout_seconds=reads)
        except (NotSent, Ambiguous) as error:
            return repr(error)
        return f"{answer.status} {answer.body.decode()}"

    answer: str = inside(body, setting)
    return answer


@contextmanager
def listening(behaviour: Behaviour) -> Iterator[str]:
    """The URL of something that accepts one connection and does what it is told to with it."""
    with socket.create_server((HOST, 0)) as server:

        def serve() -> None:
            accepted, _ = server.accept()
            with accepted:
                behaviour(accepted)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"{HOST}:{server.getsockname()[1]}"
        thread.join(timeout=20)


def answering(content: bytes, *, reset: bool = False) -> Behaviour:
    """Reads the request, then sends this and closes."""

    def answer(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(content)
        if reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return answer


def silent(connection: socket.socket) -> None:
    """Waits for the other one to leave."""
    while connection.recv(65_536):
        continue


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


@pytest.mark.parametrize(
    ("behaviour", "came"),
    [
        (answering(HEAD + b"whole"), "200 whole"),
        (answering(b"HTTP/1.1 200 OK\r\n\r\nto the end"), "200 to the end"),
        (answering(HEAD + b"pa"), "Ambiguous('reset')"),
        (answering(HEAD[:20]), "Ambiguous('reset')"),
        (answering(b""), "Ambiguous('reset')"),
        (answering(b"", reset=True), "Ambiguous('reset')"),
        (answering(b"no HTTP at all\r\n\r\n"), "Ambiguous('reset')"),
        (silent, "Ambiguous('timeout')"),
    ],
)
def test_what_comes_back_says_whether_the_answer_is_whole(behaviour, came):
    with listening(behaviour) as place:
        assert sent(f"http://{place}/", reads=5.0 if behaviour is silent else 1_000.0) == came


def test_silence_in_the_middle_of_an_answer_is_a_timeout():
    def half(connection: socket.socket) -> None:
        answering(HEAD + b"pa")(connection)
        silent(connection)

    with listening(half) as place:
        assert sent(f"http://{place}/", reads=5.0) == "Ambiguous('timeout')"


def test_a_stream_gives_what_came_before_it_broke_off():
    def breaks(connection: socket.socket) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nContent-Length: 99\r\n\r\n"
        answering(head + b": comment\r\n\r\nid: 1\r\ndata: one\r\ndata: lines\r\n\r\ndata: half")(connection)

    async def body(world: World, url: str) -> Any:
        stream = await world.http.open(Request("GET", url), open_timeout_seconds=1_000, read_timeout_seconds=1_000)
        seen = [await stream.read_event(600)]
        for _ in range(2):
            with pytest.raises(Ambiguous, match="reset"):
                await stream.read_event(600)
        return seen

    with listening(breaks) as place:
        assert inside(lambda world: body(world, f"http://{place}/")) == ["one\nlines"]


def closed_port() -> int:
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        return int(unused.getsockname()[1])


def test_where_nobody_listens_nothing_was_sent():
    assert sent(f"http://{HOST}:{closed_port()}/") == "NotSent('refused')"


@pytest.mark.parametrize(
    "url",
    [
        "not a url",
        "http://",
        "ftp://127.0.0.1/",
        "http://[x",
        "http://x.invalid/",
        "http://a..b/",
        "http://xn--/",
        "http://127.0.0.1:99999/",
    ],
)
def test_what_names_no_host_is_sent_nowhere(url):
    assert sent(url) == "NotSent('dns')"


@pytest.mark.parametrize("headers", [{"X": "a\nb"}, {"a b": "x"}, {"X": "nul\0"}])
def test_a_header_that_cannot_be_sent_leaves_the_request_unsent(headers):
    assert sent(f"http://{HOST}:{closed_port()}/", headers=headers) == "NotSent('refused')"
    with Mount({"http://127.0.0.1:0": (echo := Echo())}) as mount:
        assert sent(mount.url("http://127.0.0.1:0/"), headers=headers) == "NotSent('refused')"
    assert not echo.asked


def test_blanks_around_a_header_are_no_part_of_it_and_other_letters_are_kept():
    with Mount({"http://127.0.0.1:0": (echo := Echo())}) as mount:
        sent(mount.url("http://127.0.0.1:0/"), headers={"X-Blank": " value\t", "X-Letter": "Zoë"})
    assert (echo.asked[0].headers["X-Blank"], echo.asked[0].headers["X-Letter"]) == ("value", "Zoë")


def test_a_handshake_that_never_ends_is_no_connection():
    with listening(silent) as place:
        assert sent(f"https://{place}/", opens=10.0) == "NotSent('timeout')"


def test_a_handshake_that_fails_is_no_connection():
    with listening(answering(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as place:
        assert sent(f"https://{place}/") == "NotSent('tls')"


@pytest.mark.parametrize(
    ("host", "trusted", "came"),
    [(HOST, True, "200 "), (HOST, False, "NotSent('tls')"), ("other.test", True, "NotSent('tls')")],
)
def test_a_certificate_must_be_trusted_and_be_for_the_host_of_the_url(host, trusted, came, tmp_path):
    authority = TestAuthority(tmp_path)
    with Mount({f"https://{host}:0" if host == HOST else f"https://{host}": Echo()}, authority=authority) as mount:
        _, port = next(iter(mount.addresses.values()))
        setting = Setting(pace=PACE, certificates=str(authority.path) if trusted else "")
        assert sent(f"https://{HOST}:{port}/", setting) == came


def test_production_wiring_cannot_be_redirected(tmp_path):
    """No proxy, no variable of ours and no certificate of the environment's leads a request elsewhere."""
    (tmp_path / "authority").mkdir()
    authority = TestAuthority(tmp_path / "authority")
    script = f"""
import sys; sys.path.insert(0, {str(REPOSITORY)!r})
from harness.world import *
from harness.world.live import run
async def program(world, argv):
    for url in argv:
        try:
            answer = await world.http.send(Request("GET", url), open_timeout_seconds=9, read_timeout_seconds=9)
            await world.processes.write_line(f"{{answer.status}} {{answer.body.decode()}}")
        except NotSent as error:
            await world.processes.write_line(repr(error))
    return 0
sys.exit(run(program, sys.argv[1:]))
"""
    servers = {"http://127.0.0.1:0": (echo := Echo()), "https://secure.test": (secure := Echo())}
    with socket.create_server((HOST, 0)) as proxy, Mount(servers, authority=authority) as mount:
        proxy.settimeout(0)
        place = f"http://{HOST}:{proxy.getsockname()[1]}"
        names = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
        own = {"WORLD_CONTROL": str(tmp_path / "control"), "WORLD_CERTIFICATES": str(authority.path)}
        own |= {"WORLD_TIME_SCALE": "1000", "SSLKEYLOGFILE": ""}
        urls = [mount.url("http://127.0.0.1:0/"), mount.url("https://secure.test/"), "http://secure.invalid/"]
        finished = subprocess.run(
            [sys.executable, "-c", script, *urls],
            env=dict.fromkeys(names, place) | own,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert finished.stdout.splitlines() == ["200 ", "NotSent('tls')", "NotSent('dns')"], finished.stderr
        with pytest.raises(BlockingIOError):
            proxy.accept()
    assert [request.headers.keys() - {"Host"} for request in echo.asked] == [set()]
    assert secure.asked == []


def test_what_is_sent_is_the_request_and_nothing_else():
    received: list[bytes] = []

    def keep(connection: socket.socket) -> None:
        content = b""
        while not content.endswith(b"\r\n\r\nbody"):
            content += connection.recv(65_536)
        received.append(content)
        connection.sendall(HEAD + b"whole")

    with listening(keep) as place:
        sent(f"http://{place}/a%2Fb?c=%20", method="POST", headers={"X": "y"}, body=b"body")
    head, _, body = received[0].partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /a%2Fb?c=%20 HTTP/1.1"
    assert {line.partition(b":")[0].lower() for line in lines[1:]} == {b"x", b"host", b"content-length"}
    assert body == b"body"
