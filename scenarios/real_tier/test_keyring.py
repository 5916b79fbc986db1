"""A run's own keyring in the kernel: kept from session to session, seen by the run alone, gone with it.

They need a system that lets its users have namespaces and keyrings of their own, as most do outside of containers.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.scenario.library import load_all
from harness.scenario.production import play
from harness.scenario.tiers import REAL
from harness.scenario.verdicts import Verdict
from harness.world.outside import keyring
from harness.world.outside.keyring import RunKeyring
from harness.world.outside.reaping import marked
from scenarios.playing import told

pytestmark = pytest.mark.nightly
SOURCES = str(Path(harness.__file__).parents[1])
KEYS = """
import ctypes, sys
sys.path.insert(0, sys.argv[1])
from harness.world.outside.keyring import ADD_KEY, LINK_PERSISTENT, SESSION, keyctl, system_call

def text(word):
    return ctypes.create_string_buffer(word.encode())

lasting = keyctl(LINK_PERSISTENT, -1, SESSION, 0)
kind, name, value = text("user"), text("mcp-harness-trial"), text("value")
if sys.argv[2] == "write":
    words = map(ctypes.addressof, (kind, name, value))
    print(system_call(ADD_KEY, *words, len(value), lasting) > 0)
else:
    print(keyctl(10, SESSION, ctypes.addressof(kind), ctypes.addressof(name)) > 0)
"""


def asked(namespace, operation):
    """What a program says that writes or looks for a key of a fixed name, each time in a new session."""
    inside = (keyring.__file__, namespace, sys.executable, "-ISc", KEYS, SOURCES, operation)
    outside = ("-c", KEYS, SOURCES, operation)
    argv = [sys.executable, "-IS", *(inside if namespace else outside)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip() == "True"


def test_what_one_program_of_a_run_stores_the_next_finds_and_nobody_else():
    with RunKeyring() as one, RunKeyring() as other:
        assert asked(one.namespace, "write")
        assert asked(one.namespace, "read")
        assert not asked(other.namespace, "read")
    with RunKeyring() as later:
        assert not asked(later.namespace, "read")


def test_a_program_in_a_run_is_who_it_was():
    with RunKeyring() as run:
        argv = [sys.executable, "-IS", keyring.__file__, run.namespace, "/usr/bin/id"]
        inside = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    outside = subprocess.run(["/usr/bin/id"], capture_output=True, text=True, check=True).stdout
    assert inside.split()[:2] == outside.split()[:2]


def test_the_keyring_of_a_run_is_held_by_a_process_that_is_found_by_its_mark_and_ends_with_it():
    with RunKeyring("MCP_HARNESS_KEYRING=/a-run-of-this-test/") as run:
        assert len(marked("=/a-run-of-this-test/")) == 1
        assert Path(run.namespace).exists()
    assert marked("=/a-run-of-this-test/") == set()
    assert not Path(run.namespace).exists()


@pytest.mark.requirement("reconcile-pi-keyring-session-seam")
def test_the_real_helper_under_a_session_keyring_tells_what_the_real_pi_has_renewed():
    scenario = next(each for each in load_all() if each.id == "pi-rotates")
    report = play(scenario, "pi", tier=REAL)
    assert report.verdict is Verdict.PASS, told(report)
    adopted = [event for event in report.events if event.name == "credential.adopted"]
    assert [event.actor for event in adopted] == ["S#2"]
