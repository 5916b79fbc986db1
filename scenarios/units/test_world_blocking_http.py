"""The blocking driver's HTTP: answers and streams over real sockets, what never left, what may have been processed."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
import trustme

from harness.world.blocking.event_stream import EventParser, is_event_stream
from scenarios.units.blocking_run import PATIENCE_SECONDS, Controller, ran, striking

Answering = Callable[["Talk"], None]


class Talk:
    """One connection, as its server sees it: the request, and what it does about it."""

    def __init__(self, connection: socket.socket, stopped: threading.Event) -> None:
        self.connection, self.stopped = connection, stopped
        self.head, self.body = b"", b""

    def read(self) -> None:
        """The whole request."""
        content = b""
        while b"\r\n\r\n" not in content and not content.startswith(b"\x16"):  # that is TLS
            content += self.connection.recv(65_536) or b"\r\n\r\n"
        self.head, _, self.body = content.partition(b"\r\n\r\n")
        for line in self.head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                while len(self.body) < int(line.partition(b":")[2]):
                    self.body += self.connection.recv(65_536)

    def send(self, *pieces: bytes) -> None:
        """One after the other."""
        for piece in pieces:
            self.connection.sendall(piece)

    def reset(self) -> None:
        """Break the connection off."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    def be_silent(self) -> None:
        """Until the test is over."""
        self.stopped.wait(PATIENCE_SECONDS)


@contextmanager
def serving(answer: Answering, context: ssl.SSLContext | None = None) -> Iterator[tuple[int, list[Talk]]]:
    """A server on a port of this machine, and what it was asked."""
    talks: list[Talk] = []
    stopped = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                connection = context.wrap_socket(self.request, server_side=True) if context else self.request
                with connection:
                    talk = Talk(connection, stopped)
                    talk.read()
                    talks.append(talk)
                    answer(talk)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1], talks
        finally:
            stopped.set()
            server.shutdown()
            thread.join(PATIENCE_SECONDS)


BODY = """
async def send(method="POST", headers={{"A": "b"}}, body=b"question", path="/x?y=1", read=5, opening=5):
    request = Request(method, "{url}" + path, headers, body)
    try:
        response = await world.http.send(request, open_timeout_seconds=opening, read_timeout_seconds=read)
        return response.status, response.body
    except (NotSent, Ambiguous) as error:
        return repr(error)

async def opened(read=5):
    request = Request("GET", "{url}/sse")
    return await world.http.open(request, open_timeout_seconds=5, read_timeout_seconds=read)

{body}
return 0
"""


def asking(tmp_path: Any, url: str, body: str, **options: Any) -> list[Any]:
    """What a program says that asks a server."""
    ended = ran(tmp_path, BODY.format(url=url, body=body.strip()), **options)
    assert (ended.code, ended.error) == (0, "")
    return ended.said


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("pieces", "came"),
    [
        ([OK + b"Content-Length: 6\r\n\r\nanswer"], (200, b"answer")),
        ([OK, b"content-length:", b" 6\r\n\r", b"\nan", b"swer and more"], (200, b"answer")),
        ([OK + b"\r\nuntil it ", b"closes"], (200, b"until it closes")),
        ([OK + b"Content-Length: 0\r\n\r\n"], (200, b"")),
        ([b"HTTP/1.1 204 None\r\n\r\nnever read"], (204, b"")),
        ([b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\n!"], (200, b"!")),
        (
            [OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nansw\r\n2;x=y\r", b"\ner\r\n0\r\nT: x\r\n\r\n"],
            (200, b"answer"),
        ),
        (
            [OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1", b"0\r\n" + b"x" * 16, b"\r\n0", b"\r\n\r\n"],
            (200, b"x" * 16),
        ),
        ([b"HTTP/1.0 401 No\r\nContent-Length: 2\r\n\r\nno"], (401, b"no")),
        ([OK + b"Content-Type: text/event-stream\r\n\r\ndata: x\n\n"], (200, b"data: x\n\n")),
        ([OK + b"Content-Length: 9\r\n\r\nanswer"], "Ambiguous('reset')"),
        ([OK + b"Transfer-Encoding: chunked\r\n\r\n4\r\nansw\r\n"], "Ambiguous('reset')"),
        ([OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"], "Ambiguous('reset')"),
        ([OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\ntoo long\r\n0\r\n\r\n"], "Ambiguous('reset')"),
        ([OK + b"Content-Length: many\r\n\r\n"], "Ambiguous('reset')"),
        ([OK], "Ambiguous('reset')"),
        ([b"SSH-2.0-x\r\n\r\n"], "Ambiguous('reset')"),
        ([b""], "Ambiguous('reset')"),
    ],
)
def test_an_answer_is_whole_or_ambiguous(tmp_path, pieces, came):
    with serving(lambda talk: talk.send(*pieces)) as (port, talks):
        assert asking(tmp_path, f"http://127.0.0.1:{port}", "say(await send())") == [came]
    assert talks[0].head.split(b"\r\n") == [
        b"POST /x?y=1 HTTP/1.1", f"Host: 127.0.0.1:{port}".encode(), b"A: b", b"Content-Length: 8", b"Connection: close"
    ]  # fmt: skip
    assert talks[0].body == b"question"


def test_what_is_sent_is_the_request_and_nothing_can_be_smuggled_into_it(tmp_path):
    body = """
    say(await send("GET", {"Host": "as.test", "content-length": "99", "é": "x"}, b""))
    headers = {"Host": "as.test", "content-length": "99", "X": "  é\\u2028 "}
    say(await send("GET", headers, b"", path="/a b/é?q=<%41>#part"))
    say(await send("POST", {"X": "a\\r\\nY: b"}), await send("GE T"), await send("POST", {"X y": "a"}))
    say(await send("HEAD", {}, b"", ""))
    say(await send(body=b"z" * 2_000_000))
    """.replace("\n    ", "\n")

    def answer(talk):
        talk.send(OK + b"Content-Length: 2\r\n\r\n" + (b"" if talk.head.startswith(b"HEAD") else b"ok"))

    with serving(answer) as (port, talks):
        assert asking(tmp_path, f"http://localhost:{port}", body) == [
            "NotSent('refused')", (200, b"ok"), ("NotSent('refused')",) * 3, (200, b""), (200, b"ok")
        ]  # fmt: skip
    asked, headed, large = talks
    assert asked.head.split(b"\r\n") == [
        b"GET /a%20b/%C3%A9?q=%3C%41%3E HTTP/1.1", b"Host: as.test", b"X: " + "é\u2028".encode(), b"Connection: close"
    ]  # fmt: skip
    assert headed.head.startswith(f"HEAD / HTTP/1.1\r\nHost: localhost:{port}\r\nConnection".encode())
    assert len(large.body) == 2_000_000


def test_headers_of_an_answer_are_given_as_they_came(tmp_path):
    body = "response = await world.http.send(Request('GET', '{url}'), open_timeout_seconds=5, read_timeout_seconds=5)\n"
    body += "say(dict(response.headers))"
    with serving(lambda talk: talk.send(OK + b"X-One: a: b \r\nX-One:c\r\nEmpty:\r\nContent-Length: 0\r\n\r\n")) as (
        port,
        _,
    ):
        url = f"http://127.0.0.1:{port}"
        said = asking(tmp_path, url, body.format(url=url))
    assert said == [{"X-One": "a: b, c", "Empty": "", "Content-Length": "0"}]


def test_what_never_left_says_why(tmp_path):
    with socket.socket() as closed, socket.socket() as full:
        closed.bind(("127.0.0.1", 0))
        urls = [
            f"http://127.0.0.1:{closed.getsockname()[1]}/", "http://name.invalid/", "ftp://as.test/", "http:///x",
            "not a url", "https://[x", "http://as.test:99999/",
        ]  # fmt: skip
        full.bind(("127.0.0.1", 0))
        body = f"""
for url in {urls}:
    try:
        await world.http.send(Request("GET", url), open_timeout_seconds=20, read_timeout_seconds=5)
    except NotSent as error:
        say(error.reason)
"""
        assert asking(tmp_path, "", body) == ["refused", "dns", "dns", "dns", "dns", "dns", "dns"]


def test_silence_after_the_request_is_ambiguous_and_time_is_the_worlds(tmp_path):
    def answer(talk):
        talk.send(OK + b"Content-Length: 6\r\n\r\n" if b" /head " in talk.head else b"")
        talk.be_silent()

    body = """
began = world.clock.now()
say(await send(path="/", read=30), world.clock.now() - began >= 30)
began = world.clock.now()
say(await send(path="/head", read=30), world.clock.now() - began >= 30)
"""
    with serving(answer) as (port, _):
        said = asking(tmp_path, f"http://127.0.0.1:{port}", body, env={"WORLD_TIME_SCALE": "300"})
    assert said == [("Ambiguous('timeout')", True)] * 2


def test_a_connection_that_breaks_off_is_ambiguous(tmp_path):
    with serving(lambda talk: talk.reset()) as (port, _):
        assert asking(tmp_path, f"http://127.0.0.1:{port}", "say(await send())") == ["Ambiguous('reset')"]


def test_other_tasks_run_while_an_answer_is_waited_for(tmp_path):
    asked = threading.Barrier(2)

    def answer(talk):
        asked.wait(PATIENCE_SECONDS)  # only when both requests are on their way
        talk.send(OK + b"Content-Length: 2\r\n\r\nok")

    body = """
tasks = [world.tasks.start(send(), name) for name in "ab"]
await world.tasks.wait(tasks)
say([task.result() for task in tasks])
"""
    with serving(answer) as (port, _):
        assert asking(tmp_path, f"http://127.0.0.1:{port}", body) == [[(200, b"ok")] * 2]


# --- TLS


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def secured(authority: trustme.CA, host: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


@pytest.mark.parametrize(
    ("certificate", "trusted", "came"),
    [
        ("localhost", True, (200, b"ok")),
        ("elsewhere.test", True, "NotSent('tls')"),
        ("localhost", False, "NotSent('tls')"),
    ],
)
def test_a_certificate_must_be_for_the_host_and_of_an_authority_that_is_trusted(
    tmp_path, authority, certificate, trusted, came
):
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    env = {"WORLD_CERTIFICATES": "ca.pem"} if trusted else {}
    with serving(lambda talk: talk.send(OK, b"Content-Length: 2\r\n\r\nok"), secured(authority, certificate)) as (
        port,
        _,
    ):
        assert asking(tmp_path, f"https://localhost:{port}", "say(await send())", env=env) == [came]


def test_a_server_that_speaks_no_tls_is_never_asked(tmp_path):
    with serving(lambda talk: talk.send(OK)) as (port, _):
        assert asking(tmp_path, f"https://127.0.0.1:{port}", "say(await send())") == ["NotSent('tls')"]


def test_a_handshake_that_takes_too_long_has_sent_nothing(tmp_path):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        assert asking(tmp_path, url, "say(await send(opening=0.05))") == ["NotSent('timeout')"]


def test_a_large_stream_over_tls_comes_as_it_is(tmp_path, authority):
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    def answer(talk):
        talk.send(OK + b"Content-Type: text/event-stream\r\n\r\n", *[b"data: " + b"x" * 50_000 + b"\n\n"] * 20)

    body = (
        "stream = await opened()\nsay([len(await stream.read_event(5)) for _ in range(20)], await stream.read_event(5))"
    )
    with serving(answer, secured(authority, "localhost")) as (port, _):
        said = asking(tmp_path, f"https://localhost:{port}", body, env={"WORLD_CERTIFICATES": "ca.pem"})
    assert said == [([50_000] * 20, None)]


# --- streams

STREAM = OK + b"Content-Type: Text/Event-Stream; charset=utf-8\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        ([b"data: one\n\ndata: two\ndata: lines\n\n"], ["one", "two\nlines"]),
        ([b"data:one\r\n\r", b"\ndata: x\r\rdata:  y\r", b"\r"], ["one", "x", " y"]),
        (["data: é".encode()[:-1], "é".encode()[-1:] + b"\n\n"], ["é"]),
        (["\ufeffdata: x\n\n".encode(), b": comment\n\nid: 1\nevent: kind\nretry: 5\ndata: {}\n\n"], ["x", "{}"]),
        ([b"data\n\ndata:\n\nid: 7\n\n"], ["", ""]),
        ([b"data: whole\n\ndata: torn\n"], ["whole"]),
        ([b"\n\n\n"], []),
        ([b"data: \xff\n\n"], ["\ufffd"]),
    ],
)
def test_events_are_read_however_their_bytes_are_cut(pieces, events):
    for parts in (pieces, [b"".join(pieces)], [bytes([byte]) for byte in b"".join(pieces)]):
        parser = EventParser()
        for part in parts:
            parser.feed(part)
        parser.end()
        assert list(parser.events) == events


@pytest.mark.parametrize(
    ("content_type", "holds"),
    [
        ("text/event-stream", True),
        ("TEXT/event-stream ; x", True),
        ("application/json", False),
        ("", False),
        (None, False),
    ],
)
def test_a_body_of_events_is_known_by_its_type(content_type, holds):
    assert is_event_stream(content_type) is holds


def test_events_come_one_by_one_and_then_the_end(tmp_path):
    body = """
stream = await opened()
say(stream.status, stream.headers["Content-Type"])
say([await stream.read_event(5) for _ in range(4)])
await stream.close()
say(await stream.read_event(5))
"""
    with serving(lambda talk: talk.send(STREAM + b"data: one\n\nda", b"ta: two\n\n")) as (port, _):
        assert asking(tmp_path, f"http://127.0.0.1:{port}", body) == [
            (200, "Text/Event-Stream; charset=utf-8"), ["one", "two", None, None], None
        ]  # fmt: skip


def test_a_read_timeout_leaves_a_stream_usable_and_closing_ends_it_for_whoever_reads(tmp_path):
    go = threading.Event()

    def answer(talk):
        if b"GET /go" in talk.head:
            go.set()
            return talk.send(OK + b"Content-Length: 0\r\n\r\n")
        talk.send(STREAM + b"data: on")
        go.wait(PATIENCE_SECONDS)
        talk.send(b"e\n\n")
        return talk.be_silent()

    body = """
stream = await opened()
for seconds in (0, 0.01):
    try:
        await stream.read_event(seconds)
    except ReadTimeout:
        say("silence")
await send("GET", {}, b"", "/go")
say(await stream.read_event(5))
reader = world.tasks.start(stream.read_event(600), "reader")
await world.clock.sleep(0.02)
say(reader.done)
await stream.close()
await world.tasks.wait([reader])
say(reader.result(), await stream.read_event(5))
await stream.close()
"""
    with serving(answer) as (port, _):
        said = asking(tmp_path, f"http://127.0.0.1:{port}", body)
    assert said == ["silence", "silence", "one", False, (None, None)]


def test_a_stream_that_breaks_off_is_ambiguous_then_and_for_good(tmp_path):
    body = """
stream = await opened()
say(await stream.read_event(5))
for _ in range(2):
    try:
        await stream.read_event(5)
    except Ambiguous as error:
        say(error.reason)
"""
    chunked = OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\nb\r\ndata: one\n\n\r\n"
    with serving(lambda talk: talk.send(chunked)) as (port, _):
        assert asking(tmp_path, f"http://127.0.0.1:{port}", body) == ["one", "reset", "reset"]


@pytest.mark.parametrize(("content", "events"), [(b"plain", ["plain", None]), (b"", [None, None])])
def test_an_answer_that_is_no_stream_comes_as_one_event(tmp_path, content, events):
    body = "stream = await opened()\nsay([await stream.read_event(5) for _ in range(2)])"
    with serving(lambda talk: talk.send(OK + b"\r\n" + content)) as (port, _):
        assert asking(tmp_path, f"http://127.0.0.1:{port}", body) == [events]


# --- steered

LABEL = "POST https://as.test/x?y=1"
GIVEN = {"status": 503, "headers": {"a": "b"}, "body": "busy"}


@pytest.mark.parametrize(
    ("fault", "came", "asked", "processed"),
    [
        (None, (200, b"ok"), 1, True),
        ("refused", "NotSent('refused')", 0, False),
        ("dns", "NotSent('dns')", 0, False),
        ("tls", "NotSent('tls')", 0, False),
        ("open-timeout", "NotSent('timeout')", 0, False),
        ("reset-before", "Ambiguous('reset')", 1, False),
        ("reset-after", "Ambiguous('reset')", 1, True),
        ({"action": "slow", "seconds": 5}, (200, b"ok"), 1, True),
        ({"action": "slow", "seconds": 40}, "Ambiguous('timeout')", 1, True),
        ({"action": "answer", "answer": GIVEN}, (503, b"busy"), 0, True),
        ({"action": "answer", "answer": GIVEN, "seconds": 40}, "Ambiguous('timeout')", 0, True),
        ({"action": "answer-after", "answer": GIVEN}, (503, b"busy"), 1, True),
    ],
)
def test_each_fault_has_its_effect(tmp_path, authority, fault, came, asked, processed):
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))

    def answer(talk):
        if b"X-World-Fault: reset-" in talk.head:
            return talk.reset()
        return talk.send(OK, b"Content-Length: 2\r\n\r\nok")

    body = "began = world.clock.now()\nsay(await send(opening=20, read=30))\nsay(world.clock.now() - began)"
    with socket.socket() as closed, serving(answer, secured(authority, "as.test")) as (port, talks):
        closed.bind(("127.0.0.1", 0))
        if fault == "refused":
            fault = {"action": "refused", "port": closed.getsockname()[1]}
        answers = striking({LABEL: fault} if fault else {}, resolve={"host": "127.0.0.1", "port": port})
        with Controller(tmp_path / "control", answers) as controller:
            env = {**controller.variables(), "WORLD_CERTIFICATES": "ca.pem", "WORLD_TIME_SCALE": "100"}
            said = asking(tmp_path, "https://as.test", body, env=env)
            labels, events = controller.labels(), controller.events()
            resolved = [each["origin"] for each in controller.asked if each["do"] == "resolve"]
            content = next(each["content"] for each in controller.asked if each["do"] == "point")
    assert said[0] == came
    assert labels == ([LABEL, f"processed {LABEL}"] if processed else [LABEL])
    assert events == ([("request", {"at": LABEL, "status": said[0][0]})] if isinstance(came, tuple) else events)
    assert (len(talks), content) == (asked, "question")
    assert resolved in ([], ["https://as.test"])
    least = {"open-timeout": 20, "slow": 5, "answer": 0}.get(fault if isinstance(fault, str) else "", 0)
    assert said[1] >= (30 if "timeout" in str(came) and "Ambiguous" in str(came) else least)
    for talk in talks:
        assert b"X-World-Actor: me" in talk.head


def test_an_origin_for_which_nobody_stands_in_is_unknown(tmp_path):
    with Controller(tmp_path / "control", striking({})) as controller:
        assert asking(tmp_path, "https://real.example", "say(await send())", env=controller.variables()) == [
            "NotSent('dns')"
        ]


def test_nobody_hears_of_the_actor_where_nobody_steers(tmp_path):
    with serving(lambda talk: talk.send(OK + b"Content-Length: 0\r\n\r\n")) as (port, talks):
        asking(tmp_path, f"http://127.0.0.1:{port}", "await send()")
    assert b"x-world" not in talks[0].head.lower()


def test_a_stream_may_be_struck_at_an_event(tmp_path):
    body = """
stream = await opened()
say(await stream.read_event(5))
try:
    await stream.read_event(5)
except Ambiguous as error:
    say(error.reason)
await stream.close()
"""
    with serving(lambda talk: talk.send(STREAM + b"data: one\n\ndata: two\n\n")) as (port, _):
        met: list[str] = []

        def answer(message):
            if message["do"] == "resolve":
                return {"host": "127.0.0.1", "port": port}
            met.append(message.get("label", ""))
            strikes = met.count("event of GET http://as.test/sse") == 2
            return {"fault": {"action": "reset-after"}} if strikes and met[-1].startswith("event of") else {}

        with Controller(tmp_path / "control", answer) as controller:
            said = asking(tmp_path, "http://as.test", body, env=controller.variables())
            labels = controller.labels()
    assert said == ["one", "reset"]
    event = "event of GET http://as.test/sse"
    get = "GET http://as.test/sse"
    assert labels == [get, f"processed {get}", event, event, f"close {event}"]
