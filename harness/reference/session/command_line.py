"""The words that a turn's process is started with: its message, and the conversation that it goes on with.

Source: seed 000 "When a server cannot connect, the server is left out — not the session", seed 002 "Which prompt the
resume delivers"; requirements failure-block-on-every-prompt, failure-block-not-persisted,
resume-job-reclassifies-no-session.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from harness.reference.prepare.request import Runtime
from harness.reference.secrets.blank import is_blank
from harness.reference.session import rows
from harness.reference.session.blocking import without_conversation
from harness.reference.session.ladder import DEGRADED
from harness.reference.session.order import Order
from harness.reference.session.prompt_block import with_block
from harness.reference.session.timeline import Line, noted, tell
from harness.world import World


class Said(NamedTuple):
    """What a process is to tell the model, and the conversation in which it does; None: a new one."""

    prompt: str
    conversation: str | None = None


def command_line(order: Order, values: rows.Values) -> tuple[str, ...]:
    """The command line of the next process, by the session's row as it is now.

    An order without a prompt has all its words in `argv` and `stdin`.
    """
    if order.prompt is None:
        return order.argv
    said = said_now(order, order.prompt, values.get(rows.CONVERSATION))
    prompt = with_block(said.prompt, rows.metadata(values).get(DEGRADED) or ())
    return (*order.argv, *continuing(order.runtime, said.conversation), prompt)


def said_now(order: Order, first: str, conversation: str | None) -> Said:
    """The message of the turn, in the session's conversation; a first turn begins one."""
    return Said(first) if order.follow_up is None else Said(order.follow_up, conversation)


def continuing(runtime: Runtime, conversation: str | None) -> tuple[str, ...]:
    """How each runtime is told to go on with a conversation."""
    if conversation is None:
        return ()
    word = {"claude": "--resume", "codex": "resume", "pi": "--session"}[runtime]
    return (word, conversation)


async def reclassified(world: World, order: Order, owed: str | None) -> Order:
    """The order as a first turn, where no conversation is there for its message.

    Else an agent that has never seen its task would answer to what is said about it. A human's message (`owed`) is
    quoted in the timeline and kept, as where a resume finds that; a nudge is dropped.
    """
    if order.prompt is None or order.follow_up is None:
        return order
    if not is_blank((await rows.read(world, order.session)).get(rows.CONVERSATION)):
        return order
    if owed is not None:
        await keep_undelivered(world, order.session, owed)
    return replace(order, follow_up=None)


async def keep_undelivered(world: World, session: str, owed: str) -> None:
    """Quote the message in the timeline, and keep it where nothing delivers it."""
    told, now = list[Line](), world.clock.now()

    def changed(values: rows.Values) -> rows.Values:
        moved, warning = without_conversation(values, owed)
        told[:] = [warning]
        return noted(moved, told, now)

    await rows.change(world, session, changed)
    tell(world, told)
