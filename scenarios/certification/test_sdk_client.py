"""The MCP SDK's own client against the fake servers: it takes the good ones for good, and the bad ones fail where
they are told to and nowhere before.
"""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

import fake_servers
from fake_servers.mcp import Behaviour, HttpServer, Tool, to_table
from fake_servers.mounts import Mount

PROGRAM = Path(fake_servers.__file__).parent / "bin" / "mcp-fake-server"
LIMIT_SECONDS = 20.0
PATIENCE_SECONDS = 1.0
STDIO, JSON, EVENTS, STATELESS, OLDER = "stdio", "http json", "http sse", "http stateless", "sse"
TRANSPORTS = (STDIO, JSON, EVENTS, STATELESS, OLDER)
OVER_HTTP = TRANSPORTS[1:]
MODES = ("legacy", "auto")
TOOLS = (Tool("echo", "Says it again", read_only=True, text="hié"), Tool("bad", text="no", is_error=True))
GOOD = Behaviour(name="good", version="2.1", tools=TOOLS)

pytestmark = pytest.mark.filterwarnings("ignore:ping is removed")


class Walk(NamedTuple):
    """How far a client came: what it did, what it got, and the error that ended it."""

    done: tuple[str, ...]
    got: dict[str, Any]
    error: BaseException | None


def walked(behaviour: Behaviour, transport: str, mode: str, patience_seconds: float = LIMIT_SECONDS) -> Walk:
    """Connect, ping, list, call each tool and one that is not there, close."""
    done: list[str] = []
    got: dict[str, Any] = {}

    async def walk() -> None:
        with anyio.fail_after(LIMIT_SECONDS):
            async with served(behaviour, transport) as server:
                async with Client(server, mode=mode, read_timeout_seconds=patience_seconds) as client:
                    done.append("connect")
                    got["version"], got["server"] = client.protocol_version, client.server_info
                    if client.protocol_version < "2026":
                        await client.send_ping()
                    got["tools"] = (await client.list_tools()).tools
                    done.append("list")
                    got["results"] = [await client.call_tool(tool.name, {"a": 1}) for tool in got["tools"]]
                    done.append("call")
                    with pytest.raises(MCPError) as refused:
                        await client.call_tool("none", {})
                    got["refused"] = refused.value
                done.append("close")

    try:
        anyio.run(walk)
    except BaseException as error:  # noqa: BLE001 - whatever ends a client is what the test looks at
        return Walk(tuple(done), got, innermost(error))
    return Walk(tuple(done), got, None)


def innermost(error: BaseException) -> BaseException:
    """The first error that a group of them holds."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@asynccontextmanager
async def served(behaviour: Behaviour, transport: str) -> AsyncIterator[Any]:
    """A server of that behaviour, as the SDK's client takes one."""
    if transport == STDIO:
        table = json.dumps(to_table(behaviour))
        yield StdioServerParameters(command=sys.executable, args=["-IS", str(PROGRAM), "--behaviour", table])
        return
    answers_as = "sse" if transport == EVENTS else "json"
    kind = "sse" if transport == OLDER else "http"
    server = HttpServer(behaviour._replace(answers_as=answers_as), transport=kind, sessions=transport != STATELESS)
    async with Mount({"http://127.0.0.1:0": server}) as mount:
        url = mount.url("http://127.0.0.1:0/mcp")
        yield sse_client(url) if transport == OLDER else url


GOOD_ONES = {
    "plain": GOOD,
    "newest": GOOD._replace(discover="answer"),
    "empty probe": GOOD._replace(discover="empty"),
    "stream": GOOD._replace(supports_get=True),
    "slow": GOOD._replace(
        starts_after_seconds=0.05, initialize_after_seconds=0.05, list_after_seconds=0.05,
        tools=tuple(tool._replace(answers_after_seconds=0.05) for tool in TOOLS),
    ),
    "words on stderr": GOOD._replace(stderr=("starting", "ready")),
}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("behaviour", GOOD_ONES.values(), ids=GOOD_ONES)
def test_the_sdks_client_gets_all_that_a_good_server_offers(behaviour, transport, mode):
    walk = walked(behaviour, transport, mode)
    assert walk.error is None
    assert walk.done == ("connect", "list", "call", "close")
    modern = behaviour.discover == "answer" and mode == "auto"
    assert walk.got["version"] == ("2026-07-28" if modern else "2025-11-25")
    assert (walk.got["server"].name, walk.got["server"].version) == ("good", "2.1")
    echo, bad = walk.got["tools"]
    assert (echo.name, echo.description, echo.annotations.read_only_hint) == ("echo", "Says it again", True)
    assert (bad.name, bad.description, bad.annotations) == ("bad", None, None)
    results = [(result.content[0].text, result.is_error) for result in walk.got["results"]]
    assert results == [("hié", False), ("no", True)]
    assert (walk.got["refused"].code, walk.got["refused"].message) == (-32602, "Unknown tool: none")


LISTED, CALLED = ("connect",), ("connect", "list")
SILENT: list[tuple[str, Behaviour, tuple[str, ...]]] = [
    ("initialize never", Behaviour(initialize="never"), ()),
    ("initialize garbage", Behaviour(initialize="garbage"), ()),
    ("list never", Behaviour(list_tools="never"), LISTED),
    ("call never", Behaviour(tools=(Tool("slow", answers_after_seconds=3600.0),)), CALLED),
]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("behaviour", "done"), [case[1:] for case in SILENT], ids=[case[0] for case in SILENT])
def test_a_silent_server_costs_the_sdks_client_its_patience_in_the_one_place_where_it_is_silent(
    behaviour, done, transport
):
    walk = walked(behaviour, transport, "legacy", PATIENCE_SECONDS)
    assert isinstance(walk.error, MCPError)
    assert walk.done == done


QUIRKS: list[tuple[str, Behaviour, tuple[str, ...], tuple[str, ...]]] = [
    ("initialize error", Behaviour(initialize="error"), TRANSPORTS, ()),
    ("list error", Behaviour(list_tools="error"), TRANSPORTS, LISTED),
    ("exits at start", Behaviour(exits="at-start"), (STDIO,), ()),
    ("exits at initialize", Behaviour(exits="at-initialize"), (STDIO,), ()),
    ("exits on call", Behaviour(exits="on-call"), (STDIO,), CALLED),
    ("401", Behaviour(status=401), OVER_HTTP, ()),
    ("500", Behaviour(status=500), OVER_HTTP, ()),
    ("a page", Behaviour(status=200, body="<html>", content_type="text/html"), OVER_HTTP, ()),
    ("drops before", Behaviour(drops="before"), OVER_HTTP, ()),
    ("drops after", Behaviour(drops="after"), OVER_HTTP, ()),
]
QUIRK_CASES = [
    pytest.param(behaviour, transport, done, id=f"{name} {transport}")
    for name, behaviour, transports, done in QUIRKS
    for transport in transports
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("behaviour", "transport", "done"), QUIRK_CASES)
def test_a_bad_server_fails_the_sdks_client_in_the_one_place_where_it_is_bad(behaviour, transport, done, mode):
    walk = walked(behaviour, transport, mode)
    assert walk.error is not None
    assert not isinstance(walk.error, TimeoutError)
    assert walk.done == done


@pytest.mark.parametrize("noise", [("Welcome!", "> ready"), ("{",)])
def test_the_sdks_client_passes_over_what_is_no_message(noise):
    assert walked(GOOD._replace(stdout_noise=noise), STDIO, "legacy").done == ("connect", "list", "call", "close")


def test_a_server_that_cannot_bear_the_probe_fails_the_newer_lifecycle_alone():
    behaviour = GOOD._replace(discover="exits")
    assert walked(behaviour, STDIO, "legacy").error is None
    assert walked(behaviour, STDIO, "auto").done == ()
