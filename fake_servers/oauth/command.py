"""The program `mcp-fake-oauth`: a provider behind real sockets, with TLS unless it is told otherwise."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from fake_servers.documents import Refused, one_line
from fake_servers.oauth.answers import ANSWERS
from fake_servers.oauth.authorization import METHODS
from fake_servers.oauth.profiles import Profile, Stage, profile_named, profile_names
from fake_servers.words import MISUSED, port_of, value_of
from harness.world.blocking import main
from harness.world.ports import World

if TYPE_CHECKING:
    from fake_servers.mounts import TestAuthority
    from fake_servers.oauth.site import Server

LOOPBACK = "127.0.0.1"
VALUED = ("--profile", "--port", "--ca", "--answers")
HELP = f"""\
usage: mcp-fake-oauth [--profile NAME] [--port PORT] [--http] [--ca DIRECTORY] [--answers ENDPOINT=NAME,NAME...]...

An OAuth authorization server that behaves like a provider, and an MCP server that it protects.

  --profile NAME  one of {", ".join(profile_names())}
  --port PORT     where the authorization server is, at {LOOPBACK}; any port when it is 0 or left out
  --http          without TLS
  --ca DIRECTORY  where the certificate is written that clients must trust, in place of a folder for this run
  --answers ENDPOINT=NAME,NAME...
                  what the next requests to {", ".join(METHODS)} get, one each; NAME is one of
                  {", ".join(ANSWERS)}
  --help          this text

One line of JSON on stdout tells where it is when it is ready: profile, issuer, mcp (the protected URL), ca (the
certificate's file, null without TLS), clients (those that are registered). SIGINT or SIGTERM ends it.
"""


class Options(NamedTuple):
    """A command line. `answers` are pairs of an endpoint and the name of an answer."""

    profile: str = "well-behaved"
    port: int = 0
    tls: bool = True
    directory: str = ""
    answers: tuple[tuple[str, str], ...] = ()
    help: bool = False


def oauth() -> NoReturn:
    """Be `mcp-fake-oauth`."""
    main(serve, sys.argv)


async def serve(world: World, argv: Sequence[str]) -> int:
    """Be the servers until a signal comes."""
    try:
        options = read_options(argv[1:])
        if options.help:
            for line in HELP.splitlines():
                await world.processes.write_line(line)
            return 0
        profile = chosen(options)
        return await listen(world, profile, options)
    except Refused as refused:
        await world.processes.write_error(f"mcp-fake-oauth: {refused}")
        return MISUSED


def read_options(words: Sequence[str]) -> Options:
    """The options of a command line. Raises Refused."""
    options = Options()
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, given, value = word.partition("=")
        if word in ("--help", "-h"):
            return Options(help=True)
        if word == "--http":
            options = options._replace(tls=False)
            continue
        if name not in VALUED:
            raise Refused(f"what is {word}? See --help")
        value = value_of(name, given, value, waiting)
        options = with_value(options, name, value)
        while name == "--answers" and waiting and "=" in waiting[0] and not waiting[0].startswith("-"):
            options = with_value(options, name, waiting.pop(0))
    return options


def with_value(options: Options, name: str, value: str) -> Options:
    """An option's value put in its place. Raises Refused."""
    if name == "--profile":
        return options._replace(profile=value)
    if name == "--ca":
        return options._replace(directory=value)
    if name == "--answers":
        endpoint, _, names = value.partition("=")
        return options._replace(answers=(*options.answers, *((endpoint, each) for each in names.split(","))))
    return options._replace(port=port_of(name, value))


def chosen(options: Options) -> Profile:
    """The profile that was asked for, and whose answers can be scripted. Raises Refused."""
    try:
        profile = profile_named(options.profile)
    except ValueError as error:
        raise Refused(f"--profile: {one_line(error)}") from error
    scripted(profile.stage(), options)
    return profile


def scripted(stage: Stage, options: Options) -> Stage:
    """The servers with what was scripted for them. Raises Refused."""
    try:
        for endpoint, answer in options.answers:
            stage.authorization.answer_next(endpoint, answer)
    except ValueError as error:
        raise Refused(f"--answers: {one_line(error)}") from error
    return stage


async def listen(world: World, profile: Profile, options: Options) -> int:
    """Serve until a signal. Raises Refused when the port is taken or the means are not installed."""
    with ExitStack() as stack:
        try:
            told = started(stack, profile, options)
        except OSError as error:
            reason = (error.strerror or "").partition(" (")[0]  # what more is said of a port varies with Python
            raise Refused(f"{error.filename or f'port {options.port}'}: {reason}") from error
        await world.processes.next_signal(timeout_seconds=0)  # from here on a signal is heard
        await world.processes.write_line(json.dumps(told))
        while await world.processes.next_signal() is None:
            pass
    return 0


def started(stack: ExitStack, profile: Profile, options: Options) -> dict[str, object]:
    """Bring the servers up, to go down with the stack, and tell where they are. Raises OSError, Refused.

    Their origins are known once they listen: until then they are those of whoever asks.
    """
    authority = authority_of(stack, options)
    stage = scripted(profile.moved("", "").stage(), options)
    front: Server = stage.site if profile.is_one_origin else stage.authorization
    at = opened(stack, front, authority, options.port)
    stage.authorization.issuer = issuer = f"{at}{stage.authorization.issuer}"
    there = at if profile.is_one_origin else opened(stack, stage.protected, authority, 0)
    resource = stage.protected.resource = stage.protected.resource._replace(
        url=f"{there}{stage.protected.resource.url}"
    )
    if profile.provider.resources:
        stage.authorization.provider = profile.provider._replace(resources=(resource.url,))
    return {
        "profile": profile.name,
        "issuer": issuer,
        "mcp": resource.url,
        "ca": str(authority.path) if authority is not None else None,
        "clients": [client.client_id for client in profile.clients],
    }


def authority_of(stack: ExitStack, options: Options) -> TestAuthority | None:
    """Whose certificates the servers have; None without TLS. Raises OSError, and Refused without the means."""
    import site
    import tempfile
    from pathlib import Path

    if sys.flags.no_site:
        site.main()  # what is installed besides the standard library is needed only here
    try:
        from fake_servers.mounts import TestAuthority
    except ImportError as error:
        raise Refused(f"HTTP needs what is installed with mcp-harness[process] ({error})") from error
    if not options.tls:
        return None
    folder = options.directory or stack.enter_context(tempfile.TemporaryDirectory(prefix="mcp-fake-oauth-"))
    return TestAuthority(Path(folder))


def opened(stack: ExitStack, server: Server, authority: TestAuthority | None, port: int) -> str:
    """The origin at which a server listens from now on."""
    import os  # noqa: TID251 - how fast time goes is what no program is told

    from fake_servers.mounts import Mount
    from harness.world.outside.setting import pace_from

    place = f"{'http' if authority is None else 'https'}://{LOOPBACK}:0"
    mount = Mount({place: server}, authority=authority, ports={place: port}, pace=pace_from(os.environ))
    stack.enter_context(mount)
    return mount.url(place)
