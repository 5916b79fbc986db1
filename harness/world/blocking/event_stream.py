"""The format of `text/event-stream`: lines into events, wherever the network cuts them."""

from __future__ import annotations

import codecs
from collections import deque

MEDIA_TYPE = "text/event-stream"


class EventParser:
    """Takes pieces of a stream, gives the data of its events. One without a blank line behind it is none."""

    def __init__(self) -> None:
        self.events: deque[str] = deque()
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._line = ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> None:
        """What has come. A carriage return at its end may be half of a line break, so it waits."""
        text = self._line + self._decoder.decode(piece)
        half = text.endswith("\r")
        *lines, self._line = text.removesuffix("\r").replace("\r\n", "\n").replace("\r", "\n").split("\n")
        if half:
            self._line += "\r"
        for line in lines:
            self._take(line)

    def end(self) -> None:
        """Nothing comes any more: a waiting carriage return was a whole line break."""
        if self._line.endswith("\r"):
            self._take(self._line.removesuffix("\r"))
        self._line = ""

    def _take(self, line: str) -> None:
        if not line:
            if self._data:
                self.events.append("\n".join(self._data))
            self._data = []
            return
        field, _, value = line.partition(":")
        if field == "data":
            self._data.append(value.removeprefix(" "))


def is_event_stream(content_type: str | None) -> bool:
    """Whether a body holds events."""
    return (content_type or "").partition(";")[0].strip().lower() == MEDIA_TYPE
