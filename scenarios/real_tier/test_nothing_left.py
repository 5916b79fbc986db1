"""A run of a real program leaves nothing behind, and executes and contacts nothing that a scenario names.

They need the pinned runtimes in the cache (`mcp-harness canary install all`); without them they fail and say so.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.tiers import REAL
from harness.scenario.verdicts import Verdict
from harness.world.outside.reaping import marked
from scenarios.leftovers import held_here, left_since
from scenarios.listening import Listener
from scenarios.playing import short, told
from scenarios.process_tier.test_nothing_left import HANGING, HOSTILE

pytestmark = pytest.mark.nightly
RUNTIMES = ("claude", "claude@2.1.328", "codex", "codex@0.169.0", "pi", "pi@0.86.1+2.36.0")
FILES = """
[files]
".mcp.json" = '{"mcpServers": {"inside": {"command": "/usr/bin/touch", "args": ["VICTIM"]}}}'
".codex/config.toml" = "[mcp_servers.inside]\\ncommand = '/usr/bin/touch'\\nargs = ['VICTIM']\\n"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary folders are made."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def left_in(folder: Path) -> list[str]:
    """What of any run is still there."""
    files = [path.name for path in folder.iterdir() if path.name.startswith("mcp-")]
    return [*(f"process {pid}" for pid in marked(f"={folder}/")), *files]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("files", ["", FILES], ids=["catalog", "files"])
def test_a_hostile_catalog_executes_and_contacts_nothing(files, runtime, folder):
    victim = folder / "victim"
    with Listener() as listener:
        text = HOSTILE.replace("[catalog.touches]", f"{files}\n[catalog.touches]", 1).replace(
            "seconds = 30", "seconds = 2"
        )
        text = text.replace("{victim}", str(victim)).replace("{url}", f"http://localhost:{listener.port}/mcp")
        report = play(read_scenario(text.replace("VICTIM", str(victim))), runtime, tier=REAL)
        assert not victim.exists()
        assert listener.connections == 0
    spoken_to = {event.actor.rpartition("/")[2] for event in report.events if event.name == "mcp.received"}
    assert spoken_to >= {"touches", "shell", "python", "npm"}, told(report)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("extra", ["", HANGING], ids=["good", "stays"])
def test_a_run_leaves_neither_process_nor_file_nor_thread_nor_socket(extra, runtime, folder):
    scenario = read_scenario(short(extra).replace("seconds = 5", "seconds = 1"))
    play(scenario, runtime, tier=REAL)
    before = held_here()
    report = play(scenario, runtime, tier=REAL)
    assert report.verdict in (Verdict.PASS, Verdict.FAIL), told(report)
    assert left_since(before) == []
    assert left_in(folder) == []


KILLED = """
[[step]]
start = "S"
wait = false
turns = [{ seconds = 60 }]

[[step]]
wait_for = { event = "model.request" }
limit_seconds = 60

[[step]]
kill = "NAME"
"""


@pytest.mark.parametrize("killed", ["S", "S/*"])
@pytest.mark.parametrize("runtime", ["claude", "codex", "pi"])
def test_a_killed_run_leaves_nothing_either(killed, runtime, folder):
    report = play(read_scenario(short(session=KILLED.replace("NAME", killed))), runtime, tier=REAL)
    assert report.verdict in (Verdict.PASS, Verdict.FAIL), told(report)
    assert any(event.name == "killed" for event in report.events)
    assert left_in(folder) == []
