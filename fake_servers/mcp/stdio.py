"""An MCP server that talks over its stdin and stdout, one message a line."""

from __future__ import annotations

from collections.abc import Sequence

from fake_servers.mcp import protocol
from fake_servers.mcp.behaviour import Behaviour
from harness.world.ports import Program, World

SIGNAL_NUMBERS = {"SIGINT": 2, "SIGTERM": 15}


def program(behaviour: Behaviour) -> Program:
    """A program that behaves so. It emits `mcp.received` (method, tool) for each message that it reads."""

    async def run(world: World, _argv: Sequence[str]) -> int:
        return await serve(world, behaviour)

    return run


async def serve(world: World, behaviour: Behaviour) -> int:
    """Serve until stdin ends or the behaviour ends it; the answer is the exit code."""
    ignoring = world.tasks.start(ignore_signals(world), "signals") if behaviour.ignores_signals else None
    await announce(world, behaviour)
    if behaviour.exits == "at-start":
        return behaviour.exit_code
    state = protocol.State()
    while (line := await world.processes.read_line()) is not None:
        if not line.strip():
            continue
        answer = received(world, behaviour, line, state)
        state = answer.state
        if answer.exits:
            await send(world, answer)
            return behaviour.exit_code
        if answer.after_seconds:
            world.tasks.start(send(world, answer), "answer")
        elif answer.messages:
            await send(world, answer)
    if not behaviour.ignores_stdin_end:
        return 0
    if ignoring is not None:
        await world.tasks.wait([ignoring])
    return await outlive(world)


async def announce(world: World, behaviour: Behaviour) -> None:
    """What a server prints before it listens, and how long it takes to."""
    for line in behaviour.stderr:
        await printed(world, line, error=True)
    for line in behaviour.stdout_noise:
        await printed(world, line)
    if behaviour.starts_after_seconds:
        await world.clock.sleep(behaviour.starts_after_seconds)


def received(world: World, behaviour: Behaviour, line: str, state: protocol.State) -> protocol.Answer:
    """The answer to one line."""
    message = protocol.parse(line)
    if isinstance(message, protocol.Answer):
        return message._replace(state=state)
    method, params = message.get("method"), message.get("params")
    tool = params.get("name") if method == "tools/call" and isinstance(params, dict) else None
    world.events.emit("mcp.received", method=method, tool=tool)
    return protocol.answer(behaviour, message, state)


async def send(world: World, answer: protocol.Answer) -> None:
    """Write an answer when it is due."""
    if answer.after_seconds:
        await world.clock.sleep(answer.after_seconds)
    for message in answer.messages:
        await printed(world, protocol.encode(message))


async def printed(world: World, line: str, *, error: bool = False) -> None:
    """Write a line; a client that is gone is no error of the server, which learns of it by its stdin."""
    try:
        await (world.processes.write_error(line) if error else world.processes.write_line(line))
    except BrokenPipeError:
        return


async def ignore_signals(world: World) -> None:
    """Take every signal and do nothing."""
    while True:
        await world.processes.next_signal()


async def outlive(world: World) -> int:
    """Stay when stdin has ended, until a signal; the exit code is that of a program without a handler."""
    while True:
        name = await world.processes.next_signal()
        if name is not None:
            return -SIGNAL_NUMBERS[name]
