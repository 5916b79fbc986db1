"""A run of real processes leaves nothing behind, however it ends, and touches nothing that a catalog names."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from harness.scenario.process.stage import PRELOADED
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.tiers import PROCESS
from harness.scenario.verdicts import Verdict
from harness.world.live.forks import prepare
from harness.world.outside.reaping import marked
from harness.world.outside.setting import CONTROL_VARIABLE
from scenarios.leftovers import held_here, left_since
from scenarios.listening import Listener
from scenarios.playing import short, told

PATIENCE_SECONDS = 20.0
RUNS_AT_NIGHT = 200
ALIVE = """
[[step]]
start = "S"
wait = false
turns = [{ seconds = 600 }]

[[step]]
advance = 300

[[expect]]
server = "a"
is = "connected"
"""
HANGING = "[server.a]\nignores_signals = true\nignores_stdin_end = true\n"


@pytest.fixture
def folder(monkeypatch):
    """Where temporary folders are made, here and in whatever is started; its path is short, as sockets want it."""
    prepare(PRELOADED)  # the server of forks keeps its own folder as long as this process lives
    with tempfile.TemporaryDirectory(prefix="left-") as name:
        monkeypatch.setenv("TMPDIR", name)
        monkeypatch.setattr(tempfile, "tempdir", name)
        yield Path(name).resolve()


def left_in(folder: Path, *kinds: str) -> list[str]:
    """What of any run is still there: processes that are steered from the folder, and files in it."""
    files = [path.name for path in folder.iterdir() if path.name.startswith(("mcp-", *kinds))]
    return [*(f"process {pid}" for pid in marked(f"{CONTROL_VARIABLE}={folder}/")), *files]


OF_FORKS = "pymp-"
"""The folder of a process that forks; this one keeps its own as long as it lives."""


def soon_nothing(folder: Path) -> list[str]:
    """What is left when everybody has had time to go: whoever was killed leaves the cleaning to another process."""
    until = time.monotonic() + PATIENCE_SECONDS
    while left_in(folder, OF_FORKS) and time.monotonic() < until:
        time.sleep(0.02)
    return left_in(folder, OF_FORKS)


@pytest.mark.parametrize("extra", ["", HANGING, "[server.a]\ninitialize = 'never'"], ids=["good", "stays", "hangs"])
@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_a_run_leaves_neither_process_nor_file_nor_thread_nor_socket(runtime, extra, folder):
    scenario = read_scenario(short(extra))
    play(scenario, runtime, tier=PROCESS)
    before = held_here()
    report = play(scenario, runtime, tier=PROCESS)
    assert report.verdict is not Verdict.HARNESS_ERROR, told(report)
    assert left_since(before) == []
    assert left_in(folder) == []


def interrupted(folder: Path, name: str, after_events: int) -> subprocess.CompletedProcess[bytes]:
    """The command line, sent a signal when so many of its processes run."""
    file = folder / "scenario.toml"
    file.write_text(short(HANGING, session=ALIVE), encoding="utf-8")
    command = [sys.executable, "-m", "harness", "run", str(file), "--tier", PROCESS, "--runtime", "claude"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as child:
        until = time.monotonic() + PATIENCE_SECONDS
        while len(marked(f"{CONTROL_VARIABLE}={folder}/")) < after_events and time.monotonic() < until:
            assert child.poll() is None, child.communicate()
            time.sleep(0.002)
        os.kill(child.pid, getattr(signal, name))
        out, errors = child.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(command, child.returncode, out, errors)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_an_interrupted_run_leaves_nothing(name, processes, folder):
    ended = interrupted(folder, name, processes)
    assert ended.returncode != 0
    assert soon_nothing(folder) == []
    assert b"Traceback" not in ended.stderr


@pytest.mark.nightly
def test_nothing_is_left_after_two_hundred_runs(folder):
    scenario = read_scenario(short(HANGING))
    for number in range(RUNS_AT_NIGHT):
        if number % 4 == 3:
            interrupted(folder, ("SIGINT", "SIGTERM", "SIGKILL")[number % 3], 1 + number % 2)
            assert soon_nothing(folder) == []
        else:
            play(scenario, ("claude", "codex", "pi")[number % 3], tier=PROCESS)
    assert left_in(folder) == []


HOSTILE = """
schema = 1
id = "hostile"
title = "A catalog that would do harm if anything of it were executed"
runtime = ["claude", "codex", "pi"]

[catalog.touches]
type = "stdio"
command = "/usr/bin/touch"
args = ["{victim}"]

[catalog.shell]
type = "stdio"
command = "sh"
args = ["-c", "echo x > {victim}; curl {url}"]

[catalog.python]
type = "stdio"
command = "python3"
args = ["-c", "open('{victim}', 'w')"]

[catalog.npm]
type = "stdio"
command = "npx"
args = ["-y", "--", "left-pad@1.3.0"]

[catalog.host]
type = "streamable-http"
url = "{url}"

[[step]]
start = "S"
turns = [{ seconds = 30 }]
"""


@pytest.mark.parametrize("runtime", ["claude", "codex", "pi"])
@pytest.mark.parametrize("tier", ["model", PROCESS])
def test_a_hostile_catalog_executes_and_contacts_nothing(tier, runtime, tmp_path):
    victim = tmp_path / "victim"
    with Listener() as listener:
        text = HOSTILE.replace("{victim}", str(victim)).replace("{url}", f"http://localhost:{listener.port}/mcp")
        report = play(read_scenario(text), runtime, tier=tier)
        assert not victim.exists()
        assert listener.connections == 0
    reached = {event.details["server"] for event in report.events if event.name == "server.connected"}
    assert reached >= {"touches", "shell", "python", "npm", "host"}, told(report)


ASKED = """
schema = 1
id = "asked"
title = "The scheduled job asks Pi's keyring, whose helper has no time to begin"
runtime = ["pi"]
time_scale = 100

[catalog.tickets]
type = "streamable-http"
url = "https://tickets.test/mcp"

[authorization.desk-as]
provider = "well-behaved"

[server.tickets]
protected_by = "desk-as"

[[credential]]
server = "tickets"
issued_by = "desk-as"
expires_in_seconds = 300
held_by = ["orchestrator"]

[[step]]
job = "refresh"

[[expect]]
event = "spawn"
who = "cron"
at_least = 1
"""


def test_who_was_killed_before_a_first_word_is_known_to_have_ended(folder):
    report = play(read_scenario(ASKED), "pi", tier=PROCESS)
    assert report.verdict is Verdict.PASS, told(report)
    ended = [event.details for event in report.events if event.name == "ended" and event.actor == "cron/keyctl"]
    assert ended == [{"exit_code": -signal.SIGKILL}]
    assert soon_nothing(folder) == []
