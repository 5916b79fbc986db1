"""Lines from real descriptors: how long one may be, on both drivers that read them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import anyio
import pytest

from harness.world.blocking import pipes as blocking
from harness.world.blocking.baton import Baton, Deadline
from harness.world.live import pipes as live
from harness.world.sites import LONGEST_LINE_BYTES

LONGEST = 10
Read = Callable[[int, int], list[str | None]]


def read_blocking(descriptor: int, count: int) -> list[str | None]:
    reader = blocking.LineReader(Baton(), descriptor)
    return [reader.read(Deadline(0)) for _ in range(count)]


def read_live(descriptor: int, count: int) -> list[str | None]:
    async def body() -> list[str | None]:
        reader = live.LineReader(descriptor)
        return [await reader.read(lambda: anyio.move_on_after(0)) for _ in range(count)]

    return anyio.run(body)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """A reader and a writer."""
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.mark.parametrize("read", [read_blocking, read_live])
@pytest.mark.parametrize(
    ("sent", "lines"),
    [
        (b"a\n" + b"x" * LONGEST + b"\n", ["a", "x" * LONGEST]),
        (b"a\n" + b"x" * (LONGEST + 1), ["a", None, None]),
        (b"a\n" * LONGEST + b"b\n", [*["a"] * LONGEST, "b"]),
    ],
)
def test_a_stream_is_broken_that_sends_too_much_without_a_line_break(monkeypatch, pipe, read: Read, sent, lines):
    for module in (blocking, live):
        monkeypatch.setattr(module, "LONGEST_LINE_BYTES", LONGEST)
    reader, writer = pipe
    os.write(writer, sent)
    assert read(reader, len(lines)) == lines


def test_the_longest_line_is_longer_than_any_message_of_use():
    assert LONGEST_LINE_BYTES == 64 * 1024 * 1024
