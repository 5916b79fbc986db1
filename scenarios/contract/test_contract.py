"""The contract: every driver answers each case alike, passes the same switch points and tells the same events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import pytest

from scenarios.contract import files, processes, tasks  # noqa: F401 - they add their cases
from scenarios.contract.cases import GROUPS, Case
from scenarios.contract.stages import MODEL, SUBJECT, Point, drivers_of, seen

RUNS = [(driver, group) for group in GROUPS for driver in drivers_of(group)]
CASES = [(driver, group, case) for driver, group in RUNS for case in GROUPS[group]]
REAL = [(driver, group) for driver, group in RUNS if driver != MODEL]


@pytest.mark.parametrize(("driver", "group", "case"), CASES, ids=[f"{driver}-{case.name}" for driver, _, case in CASES])
def test_a_case_has_the_same_answer_on_every_driver(driver: str, group: str, case: Case):
    assert seen(driver, group).results[case.name] == json.loads(json.dumps(case.expected))


@pytest.mark.parametrize(("driver", "group"), REAL)
def test_the_same_switch_points_are_passed_as_in_the_model(driver, group):
    expected, found = seen(MODEL, group).points, seen(driver, group).points
    assert set(found) == set(expected)
    races = {case.name for case in GROUPS[group] if case.races}
    for actor in expected:
        assert by_case(actor, found[actor], races) == by_case(actor, expected[actor], races)


def by_case(actor: str, points: Sequence[Point], races: set[str]) -> dict[str, list[Point]]:
    """The points of each case, what is asked again and again only once; as a set where tasks race for them."""
    parts: dict[str, list[Point]] = {"": []}
    part = parts[""]
    for point, _ in groupby(points):
        if actor == SUBJECT and point[:2] in {("files", f"mkdir /{case.name}") for case in all_cases()}:
            part = parts[point[1]] = []
        part.append(point)
    return {name: sorted(set(found)) if name.rpartition("/")[2] in races else found for name, found in parts.items()}


def all_cases() -> list[Case]:
    return [case for members in GROUPS.values() for case in members]


@pytest.mark.parametrize(("driver", "group"), REAL)
def test_the_same_events_are_told_as_in_the_model(driver, group):
    assert seen(driver, group).events == seen(MODEL, group).events


@pytest.mark.parametrize(("driver", "group"), RUNS)
def test_a_run_ends_well_and_leaves_nothing(driver, group):
    run = seen(driver, group)
    assert (run.exit_code, list(run.unmet), list(run.left)) == (0, [], [])


@pytest.mark.parametrize("driver", drivers_of("own streams"))
def test_what_an_actor_prints_is_on_its_streams(driver):
    printed = seen(driver, "own streams").printed
    assert printed == {"stdout": ["to stdout"], "stderr": ["to stderr"]}


def lost(printed: Sequence[str]) -> list[Any]:
    """The last lines of the tracebacks."""
    return sorted(line for line in printed if line.endswith("Error: lost") or line in map(last_line, tasks.LOST))


def last_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("driver", "group"), [run for run in REAL if run[1] == "tasks"])
def test_what_a_task_raised_and_nobody_asked_for_is_told_on_stderr(driver, group):
    assert lost(seen(driver, group).printed["stderr"]) == sorted(map(last_line, tasks.LOST))
