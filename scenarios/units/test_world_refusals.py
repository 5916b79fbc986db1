"""What breaks the rules of a world ends the run on every driver, whatever the program catches."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from harness.world import World
from harness.world.model import Simulation
from harness.world.values import row_values

REPOSITORY = Path(__file__).parents[2]
LIMIT_SECONDS = 60.0
DRIVERS = ("model", "blocking", "live")
SCRIPT = """\
import sys
sys.path.insert(0, {repository!r})
from harness.world import Request, WorldFault
from harness.world.model import Simulation

nan, inf = float("nan"), float("inf")
ASKED = Request("GET", "http://127.0.0.1:9/")

async def program(world, argv):
    try:
        {body}
    except Exception:
        pass
    return 0

driver = sys.argv[1]
if driver == "model":
    simulation = Simulation()
    actor = simulation.start("subject", program)
    try:
        simulation.run()
    except WorldFault as fault:
        sys.exit(f"WorldFault: {{fault}}")
    sys.exit(actor.exit_code)
if driver == "blocking":
    from harness.world.blocking import run
else:
    from harness.world.live import run
sys.exit(run(program, ["subject"]))
"""
NO_TIME = {
    "sleep": "await world.clock.sleep(nan)",
    "endless past": "await world.clock.sleep(-inf)",
    "lock": "await world.files.lock('lock', timeout_seconds=nan)",
    "stdin": "await world.processes.read_line(nan)",
    "signal": "await world.processes.next_signal(nan)",
    "tasks": "await world.tasks.wait([], timeout_seconds=nan)",
    "open": "await world.http.send(ASKED, open_timeout_seconds=nan, read_timeout_seconds=1)",
    "read": "await world.http.open(ASKED, open_timeout_seconds=1, read_timeout_seconds=nan)",
}
NO_DETAIL = {
    "object": "world.events.emit('told', a=object())",
    "set": "world.events.emit('told', a=[{1, 2}])",
    "name": "world.events.emit('told', a={1: 2})",
}


def ran(tmp_path: Path, driver: str, body: str) -> Any:
    script = tmp_path / "script.py"
    text = SCRIPT.format(repository=str(REPOSITORY), body=textwrap.dedent(body))
    script.write_text(text, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script), driver],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("body", NO_TIME.values(), ids=NO_TIME)
def test_a_time_that_is_none_ends_the_run(tmp_path, driver, body):
    ended = ran(tmp_path, driver, body)
    assert (ended.returncode, "waits for a time that is no number" in ended.stderr) == (1, True)


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("body", NO_DETAIL.values(), ids=NO_DETAIL)
def test_details_of_events_are_plain_values(tmp_path, driver, body):
    ended = ran(tmp_path, driver, body)
    assert (ended.returncode, "details of an event are plain values" in ended.stderr) == (1, True)


@pytest.mark.parametrize("driver", DRIVERS)
def test_every_plain_value_can_be_told(tmp_path, driver):
    body = "world.events.emit('told', a='x', b=[1, (2.5, None)], c={'d': True}, e=b'f')"
    assert ran(tmp_path, driver, body).returncode == 0


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_foreign_await_that_raises_before_it_waits_is_an_error_like_any_other(tmp_path, driver):
    """Where there is an event loop, it waits."""
    ended = ran(tmp_path, driver, "import asyncio; await asyncio.sleep(0.01)")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("driver", DRIVERS)
def test_a_program_that_is_interrupted_by_itself_fails(tmp_path, driver):
    assert ran(tmp_path, driver, "raise KeyboardInterrupt").returncode == 1


def test_ctrl_c_of_whoever_runs_a_simulation_is_no_error_of_a_subject():
    async def subject(world: World, argv: Any) -> int:
        signal.raise_signal(signal.SIGINT)
        return 0

    simulation = Simulation()
    simulation.start("subject", subject)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            simulation.run()
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_the_dead_raise_in_the_end_is_nobodys():
    async def stubborn(world: World) -> None:
        try:
            await world.clock.sleep(1_000)
        finally:
            raise KeyboardInterrupt

    async def subject(world: World, argv: Any) -> int:
        world.tasks.start(stubborn(world), "stubborn")
        await world.clock.sleep(1)
        return 0

    simulation = Simulation()
    actor = simulation.start("subject", subject)
    assert (simulation.run().verdict, actor.exit_code) == ("done", 0)


def test_errors_that_would_end_a_process_are_kept_as_errors_of_their_task():
    async def fails(error: BaseException) -> None:
        raise error

    async def subject(world: World, argv: Any) -> int:
        errors = (SystemExit(7), KeyboardInterrupt())
        await world.tasks.wait([world.tasks.start(fails(error), "fails") for error in errors])
        return 3

    simulation = Simulation()
    actor = simulation.start("subject", subject)
    simulation.run()
    assert actor.exit_code == 3
    assert [type(error) for error in simulation.ended(actor).lost] == [SystemExit, KeyboardInterrupt]


def test_values_of_a_row_are_those_of_json_and_nobody_elses():
    class Name(str):
        __slots__ = ()

    given = {"a": (1, [2]), "b": {"c": Name("d")}, "e": 1.5, "f": None}
    kept = row_values(given)
    assert kept == {"a": [1, [2]], "b": {"c": "d"}, "e": 1.5, "f": None}
    assert type(kept["b"]["c"]) is str
    given["b"]["c"] = "changed"  # type: ignore[index]
    assert kept["b"] == {"c": "d"}
