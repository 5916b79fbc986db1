"""The check that nothing is left sees what is, and nothing of what others left before."""

from __future__ import annotations

import socket
import threading

from scenarios import leftovers
from scenarios.leftovers import held_here, left_since


def test_an_open_socket_and_a_running_thread_are_left_until_they_have_gone(monkeypatch):
    monkeypatch.setattr(leftovers, "PATIENCE_SECONDS", 0.0)
    before, over = held_here(), threading.Event()
    waiting = threading.Thread(target=over.wait, name="one that waits")
    with socket.socket():
        left = [text.partition(" ")[2].partition(":")[0] for text in left_since(before)]
        assert left == (["socket"] if leftovers.DESCRIPTORS.is_dir() else [])
    waiting.start()
    assert left_since(before) == ["one that waits"]
    over.set()
    waiting.join()
    assert left_since(before) == []


def test_what_was_there_before_and_ends_meanwhile_is_nothing_that_is_left():
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    before = held_here()
    over.set()
    other.join()
    assert left_since(before) == []
