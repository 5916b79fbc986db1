"""The programs `mcp-fake-server` and `mcp-fake-npx` (also as `npx` and `npm`). Without HTTP they need no more than
the standard library.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from fake_servers.documents import Refused, document, one_line
from fake_servers.mcp import behaviour as behaviours
from fake_servers.mcp import stdio
from fake_servers.mcp.behaviour import Behaviour
from fake_servers.words import MISUSED, port_of, value_of
from harness.world.blocking import main
from harness.world.ports import World

if TYPE_CHECKING:
    from fake_servers.mounts import Mount

BEHAVIOUR_VARIABLE = "MCP_FAKE_BEHAVIOUR"
REGISTRY_VARIABLE = "MCP_FAKE_REGISTRY"
PATHS = {"http": "/mcp", "sse": "/sse"}
HELP = f"""\
usage: mcp-fake-server [--behaviour FILE|JSON] [--http PORT | --sse PORT] [--stateless] [-- WORDS...]

An MCP server that behaves as it is told. Over stdin and stdout, unless a port is given.

  --behaviour FILE|JSON  what it does: a file, JSON or *.toml, or JSON itself
                         (else {BEHAVIOUR_VARIABLE} of the environment, else it does all well)
  --http PORT            streamable HTTP at http://127.0.0.1:PORT{PATHS["http"]}; 0 takes any port
  --sse PORT             the older transport, HTTP with server-sent events, at {PATHS["sse"]}
  --stateless            streamable HTTP without session ids
  -- WORDS               passed over: what a server would be called with
  --help                 this text

Over HTTP the URL is printed on stderr when the server is ready; SIGINT or SIGTERM ends it.
"""


class Options(NamedTuple):
    """A command line. `transport` is stdio, http or sse."""

    behaviour: str | None = None
    transport: str = "stdio"
    port: int = 0
    sessions: bool = True
    help: bool = False


def server() -> NoReturn:
    """Be `mcp-fake-server`."""
    main(serve, sys.argv)


def npx() -> NoReturn:
    """Be `mcp-fake-npx`, `npx` or `npm`."""
    main(execute, sys.argv)


async def serve(world: World, argv: Sequence[str]) -> int:
    """Be a server."""
    try:
        options = read_options(argv[1:])
        if options.help:
            await printed(world, HELP)
            return 0
        behaviour = await chosen(world, options)
        if options.transport == "stdio":
            return await stdio.serve(world, behaviour)
        return await listen(world, behaviour, options)
    except Refused as refused:
        await world.processes.write_error(f"mcp-fake-server: {refused}")
        return MISUSED


def read_options(words: Sequence[str]) -> Options:
    """The options of a command line. Raises Refused."""
    options = Options()
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, given, value = word.partition("=")
        if word == "--":
            break
        if word in ("--help", "-h"):
            return Options(help=True)
        if word == "--stateless":
            options = options._replace(sessions=False)
            continue
        if name not in ("--behaviour", "--http", "--sse"):
            raise Refused(f"what is {word}? See --help")
        value = value_of(name, given, value, waiting)
        options = with_value(options, name, value)
    return options


def with_value(options: Options, name: str, value: str) -> Options:
    """An option's value put in its place. Raises Refused."""
    if name == "--behaviour":
        return options._replace(behaviour=value)
    if options.transport != "stdio":
        raise Refused("one of --http and --sse, once")
    return options._replace(transport=name.removeprefix("--"), port=port_of(name, value))


async def chosen(world: World, options: Options) -> Behaviour:
    """What the command line says, else the environment, else nothing out of the ordinary. Raises Refused."""
    given, what = options.behaviour, "--behaviour"
    if given is None:
        given, what = world.env.variables.get(BEHAVIOUR_VARIABLE), BEHAVIOUR_VARIABLE
    if not given:
        return Behaviour()
    table = await document(world, given, what)
    try:
        return behaviours.from_table(table)
    except ValueError as error:
        raise Refused(f"{what}: {one_line(error)}") from error


async def listen(world: World, behaviour: Behaviour, options: Options) -> int:
    """Serve over HTTP until a signal. Raises Refused when the port is taken or the means are not installed."""
    from fake_servers.mcp.http import HttpServer

    address = f"http://127.0.0.1:{options.port}"
    one = HttpServer(behaviour, transport=options.transport, sessions=options.sessions)
    try:
        with mounted(address, one, options.port) as mount:
            await world.processes.write_error(mount.url(f"{address}{PATHS[options.transport]}"))
            while await world.processes.next_signal() is None:
                pass
    except OSError as error:
        raise Refused(f"port {options.port}: {error.strerror}") from error
    return 0


def mounted(address: str, one: Any, port: int) -> Mount:
    """A server behind a real port, at the pace that this process was told. Raises Refused."""
    import os  # noqa: TID251 - how fast time goes is what no program is told
    import site

    from harness.world.outside.setting import pace_from

    if sys.flags.no_site:
        site.main()  # what is installed besides the standard library is needed only here
    try:
        from fake_servers.mounts import Mount
    except ImportError as error:
        raise Refused(f"HTTP needs what is installed with mcp-harness[process] ({error})") from error
    return Mount({address: one}, ports={address: port}, pace=pace_from(os.environ))


async def execute(world: World, argv: Sequence[str]) -> int:
    """Be npx, or npm when called so."""
    from fake_servers.npm.npx import program
    from fake_servers.npm.registry import registry_from

    given = world.env.variables.get(REGISTRY_VARIABLE)
    try:
        table = await document(world, given, REGISTRY_VARIABLE) if given else {}
        registry = registry_from(table)
    except (Refused, ValueError) as error:
        what = "" if isinstance(error, Refused) else f"{REGISTRY_VARIABLE}: "
        await world.processes.write_error(f"{argv[0].rpartition('/')[2]}: {what}{one_line(error)}")
        return MISUSED
    return await program(registry, serving())(world, argv)


def serving() -> tuple[str, ...]:
    """How to call `mcp-fake-server` from anywhere: this interpreter, and the program beside this file."""
    return (sys.executable, "-IS", f"{__file__.rpartition('/')[0]}/bin/mcp-fake-server")


async def printed(world: World, text: str) -> None:
    """Write a text to stdout."""
    for line in text.splitlines():
        await stdio.printed(world, line)
