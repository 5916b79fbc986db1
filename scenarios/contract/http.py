"""Requests, answers and streams, over servers that are the same pure functions everywhere."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from harness.world import Ambiguous, NotSent, Request, Response, StreamEvent, World, header
from harness.world.model import Fault
from scenarios.contract.cases import case, how

ORIGIN = "http://contract.test"
SECURE = "https://secure.test"
NEVER = 100_000.0
STREAM = {"Content-Type": "text/event-stream"}
TOLD = ("X-Test", "Accept", "Content-Type", "Cookie", "Authorization")
EVENTS = (StreamEvent("one"), StreamEvent("two\nlines", 2.0), StreamEvent("three", event="endpoint"))


class Server:
    """Answers by path, and counts what it has processed."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def handle(self, request: Request, now: float, who: str) -> Response:
        path = request.url.partition("//")[2].partition("/")[2].partition("?")[0]
        if path.startswith("counted/"):
            return Response(200, body=str(self.counts[path.partition("/")[2]]).encode())
        self.counts[path] += 1
        kind = path.partition("/")[0]
        if kind == "echo":
            told = {name: value for name in TOLD if (value := header(request.headers, name)) is not None}
            seen = {"method": request.method, "url": request.url, "headers": told, "body": request.body.decode()}
            return Response(200, {"X-Answer": who, "Content-Type": "application/json"}, json.dumps(seen).encode())
        return {
            "late": Response(200, body=b"late", after_seconds=4.0),
            "never": Response(200, body=b"never", after_seconds=NEVER),
            "redirect": Response(302, {"Location": f"{ORIGIN}/echo"}, b"elsewhere"),
            "cookie": Response(200, {"Set-Cookie": "a=b"}),
            "nothing": Response(204),
            "broken": Response(0),
            "busy": Response(503, {"Retry-After": "7"}, b"busy"),
            "bytes": Response(200, body=bytes(range(256))),
            "events": Response(200, STREAM, events=EVENTS),
            "open": Response(200, STREAM, events=EVENTS[:1], ends=False),
        }.get(kind, Response(200, body=b"plain"))


def servers() -> dict[str, Server]:
    """New ones, by their origins."""
    return {ORIGIN: Server(), SECURE: Server()}


async def send(world: World, path: str, method: str = "GET", *, read: float = 600.0, **rest: Any) -> Response:
    url = path if "//" in path else f"{ORIGIN}/{path}"
    request = Request(method, url, **rest)
    return await world.http.send(request, open_timeout_seconds=600, read_timeout_seconds=read)


async def brief(world: World, path: str, **rest: Any) -> Any:
    """Status and body, or what was raised."""
    try:
        response = await send(world, path, **rest)
    except (NotSent, Ambiguous) as error:
        return repr(error)
    return f"{response.status} {response.body.decode()}"


async def stream(world: World, path: str) -> Any:
    request = Request("GET", f"{ORIGIN}/{path}")
    return await world.http.open(request, open_timeout_seconds=600, read_timeout_seconds=600)


@case(
    "http",
    {
        "method": "POST", "url": f"{ORIGIN}/echo/a%20b%2Fc?q=%C3%BC&q=2&empty=",
        "headers": {"X-Test": "yes", "Content-Type": "text/plain"}, "body": "grant_type=ü&x=1",
    },
)  # fmt: skip
async def a_request_arrives_as_it_was_written_and_with_nothing_added(world: World, at: str) -> Any:
    headers = {"x-test": "yes", "Content-Type": "text/plain"}
    body = "grant_type=ü&x=1".encode()
    answer = await send(world, "echo/a%20b%2Fc?q=%C3%BC&q=2&empty=", "POST", headers=headers, body=body)
    return json.loads(answer.body)


@case("http", {"method": "DELETE", "url": f"{SECURE}/echo", "headers": {}, "body": ""})
async def https_goes_to_the_server_of_its_host(world: World, at: str) -> Any:
    return json.loads((await send(world, f"{SECURE}/echo", "DELETE")).body)


@case("http", ["subject", "application/json", [503, "busy", "7"], [204, "", None], [200, 256, True]])
async def an_answer_has_a_status_headers_and_a_body(world: World, at: str) -> Any:
    echo, busy, nothing = [await send(world, path) for path in ("echo", "busy", "nothing")]
    whole = await send(world, "bytes")
    told = [header(echo.headers, "x-answer"), header(echo.headers, "content-type")]
    seen = [[each.status, each.body.decode(), header(each.headers, "retry-after")] for each in (busy, nothing)]
    return [*told, *seen, [whole.status, len(whole.body), whole.body == bytes(range(256))]]


@case("http", [302, f"{ORIGIN}/echo", "0", {}])
async def no_redirect_is_followed_and_no_cookie_kept(world: World, at: str) -> Any:
    before = (await send(world, "redirect")), (await send(world, "counted/echo/redirected")).body.decode()
    await send(world, "cookie")
    again = json.loads((await send(world, "echo/cookie")).body)
    return [before[0].status, header(before[0].headers, "location"), before[1], again["headers"]]


@case("http", ["200 late", "Ambiguous('timeout')", "1"])
async def silence_is_borne_as_long_as_the_read_timeout_says(world: World, at: str) -> Any:
    seen = [await brief(world, "late"), await brief(world, "never/unanswered", read=6.0)]
    return [*seen, (await send(world, "counted/never/unanswered")).body.decode()]


@case("http", ["NotSent('dns')"] * 5)
async def only_what_is_there_can_be_reached(world: World, at: str) -> Any:
    urls = (
        "https://elsewhere.test/",
        "https://contract.test/",
        "http://contract.test:8443/",
        "ftp://contract.test//",
        "//x",
    )
    return [await how(send(world, url)) for url in urls]


IMPOSSIBLE = (
    "http://contract.test:99999/", "http://contract.test:-1/", "http://contract.test:port/", "http://[x/",
    "http://contract.test/a\nb", " http://contract.test/", "http://contract.test/" + "x" * 70_000,
)  # fmt: skip


@case("http", ["NotSent('dns')"] * len(IMPOSSIBLE))
async def what_is_no_url_leads_nowhere(world: World, at: str) -> Any:
    return [await how(send(world, url)) for url in IMPOSSIBLE]


UNSENDABLE: tuple[dict[str, str], ...] = (
    {"X": "a\r\nb"},
    {"X": "a\nb"},
    {"X": "nul\0"},
    {"a b": "x"},
    {"": "x"},
    {"ü": "x"},
)


@case("http", [["NotSent('refused')"] * (len(UNSENDABLE) + 2), "0", "TypeError"])
async def what_cannot_be_written_is_not_sent(world: World, at: str) -> Any:
    seen = [await how(send(world, "unsendable", headers=headers)) for headers in UNSENDABLE]
    seen += [await how(send(world, "unsendable", method)) for method in ("", "GET X")]
    counted = (await send(world, "counted/unsendable")).body.decode()
    return [seen, counted, await how(send(world, "unsendable", body="text"))]


@case("http", ["Ambiguous('reset')", "Ambiguous('reset')", "2"])
async def a_server_that_answers_nothing_has_broken_the_connection(world: World, at: str) -> Any:
    seen = [await brief(world, "broken/unanswered"), await how(stream(world, "broken/unanswered"))]
    return [*seen, (await send(world, "counted/broken/unanswered")).body.decode()]


@case("http", [200, "text/event-stream", ["one", "two\nlines", "three", None, None]])
async def events_of_a_stream_come_one_by_one_and_then_the_end(world: World, at: str) -> Any:
    opened = await stream(world, "events")
    seen = [await opened.read_event(600) for _ in range(5)]
    return [opened.status, header(opened.headers, "content-type"), seen]


@case("http", ["one", "ReadTimeout", "ReadTimeout", None, None])
async def a_silent_stream_stays_usable_until_it_is_closed(world: World, at: str) -> Any:
    opened = await stream(world, "open")
    seen = [await opened.read_event(600), await how(opened.read_event(2)), await how(opened.read_event(0))]
    await opened.close()
    return [*seen, await opened.read_event(2), await opened.read_event(2)]


@case("http", ["one", [None]], races=True)
async def closing_ends_a_stream_for_whoever_reads_it(world: World, at: str) -> Any:
    opened = await stream(world, "open")
    first = await opened.read_event(600)
    task = world.tasks.start(opened.read_event(NEVER), "reader")
    await world.tasks.wait([task], timeout_seconds=2)
    await opened.close()
    await world.tasks.wait([task])
    return [first, [task.result()]]


@case("http", [[200, ["plain", None, None]], [503, ["busy", None, None]], [204, [None, None, None]]])
async def an_answer_that_is_no_stream_comes_as_one_event(world: World, at: str) -> Any:
    seen = []
    for path in ("plain", "busy", "nothing"):
        opened = await stream(world, path)
        seen.append([opened.status, [await opened.read_event(600) for _ in range(3)]])
    return seen


@case("http", ["data: one\n\ndata: two\ndata: lines\n\nevent: endpoint\ndata: three\n\n", "Ambiguous('timeout')"])
async def a_stream_that_is_read_whole_takes_as_long_as_its_events(world: World, at: str) -> Any:
    return [(await send(world, "events")).body.decode(), await brief(world, "open", read=20.0)]


INSTEAD = Response(502, {"X-Instead": "yes"}, b"instead")
FAULTS = [
    Fault("refused", label="POST */fault/refused"), Fault("dns", label="POST */fault/dns"),
    Fault("tls", label="POST */fault/tls"), Fault("open-timeout", label="POST */fault/open-timeout"),
    Fault("reset-before", label="POST */fault/reset-before"),
    Fault("reset-after", label="POST */fault/unanswered/reset-after"),
    Fault("answer", label="POST */fault/answer", answer=INSTEAD),
    Fault("answer", label="POST */fault/late-answer", answer=INSTEAD, seconds=NEVER),
    Fault("answer-after", label="POST */fault/answer-after", answer=INSTEAD),
    Fault("slow", label="POST */fault/slow", seconds=4.0), Fault("slow", label="POST */fault/too-slow", seconds=NEVER),
    Fault("answer", label="POST */fault/content", content="*grant_type=refresh_token*", answer=INSTEAD),
    Fault("reset-after", label="event of * */events/broken", nth=2),
]  # fmt: skip
STRUCK = {
    "refused": ["NotSent('refused')", "0"], "dns": ["NotSent('dns')", "0"], "tls": ["NotSent('tls')", "0"],
    "open-timeout": ["NotSent('timeout')", "0"],
    "reset-before": ["Ambiguous('reset')", "0"], "unanswered/reset-after": ["Ambiguous('reset')", "1"],
    "answer": ["502 instead", "0"], "late-answer": ["Ambiguous('timeout')", "0"],
    "answer-after": ["502 instead", "1"], "slow": ["200 plain", "1"], "too-slow": ["Ambiguous('timeout')", "1"],
    "content": ["200 plain", "1"],
}  # fmt: skip


@case("http", STRUCK)
async def each_fault_says_whether_the_request_left_and_the_server_whether_it_came(world: World, at: str) -> Any:
    seen = {}
    for name in STRUCK:
        url, body = f"{ORIGIN}/fault/{name}", b"grant_type=authorization_code"
        request = Request("POST", url, body=body)
        try:
            opens, reads = 2.0 if name == "open-timeout" else 600.0, 6.0 if "too-" in name or "late" in name else 600.0
            response = await world.http.send(request, open_timeout_seconds=opens, read_timeout_seconds=reads)
            came = f"{response.status} {response.body.decode()}"
        except (NotSent, Ambiguous) as error:
            came = repr(error)
        seen[name] = [came, (await send(world, f"counted/fault/{name}")).body.decode()]
    return seen


@case("http", "502 instead")
async def a_fault_may_look_at_what_a_request_carries(world: World, at: str) -> Any:
    return await brief(world, "fault/content", method="POST", body=b"grant_type=refresh_token&x=1")


@case("http", ["one", "Ambiguous('reset')", "Ambiguous('reset')"])
async def a_stream_that_breaks_off_is_broken_for_good(world: World, at: str) -> Any:
    opened = await stream(world, "events/broken")
    return [await how(opened.read_event(600)) for _ in range(3)]
