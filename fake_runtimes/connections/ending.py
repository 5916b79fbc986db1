"""Ending server processes: signal after signal, each with its time."""

from __future__ import annotations

from collections.abc import Sequence

from fake_runtimes.connections.results import Closed, Signals
from harness.world import Child, World

CLOSE_STDIN = "EOF"


async def end_child(child: Child, signals: Signals) -> Closed:
    """End one process; only it is signalled, nothing that it started."""
    sent: list[str] = []
    exit_code = None
    for name, patience_seconds in signals:
        await send(child, name)
        sent.append(name)
        exit_code = await child.wait(patience_seconds)
        if exit_code is not None:
            break
    return Closed(tuple(sent), exit_code)


async def end_children(world: World, children: Sequence[Child], signals: Signals) -> tuple[Closed, ...]:
    """End processes side by side: each signal goes to all that are left, who then share its time."""
    sent: list[list[str]] = [[] for _ in children]
    codes: list[int | None] = [None for _ in children]
    left = list(range(len(children)))
    for name, patience_seconds in signals:
        for index in left:
            await send(children[index], name)
            sent[index].append(name)
        until = world.clock.now() + patience_seconds
        for index in left:
            codes[index] = await children[index].wait(max(until - world.clock.now(), 0.0))
        left = [index for index in left if codes[index] is None]
        if not left:
            break
    return tuple(Closed(tuple(names), code) for names, code in zip(sent, codes, strict=True))


async def send(child: Child, name: str) -> None:
    """One signal, or the end of its stdin."""
    if name == CLOSE_STDIN:
        await child.close_stdin()
    else:
        await child.signal(name)
