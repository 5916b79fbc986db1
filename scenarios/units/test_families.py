"""Scenario families: right rules hold in every run, and each old bug is found from random starts."""

from __future__ import annotations

import pytest

from harness.errors import UserInputError
from harness.scenario.campaign import play_seed, run_batch, run_seed
from harness.scenario.draws import Draws
from harness.scenario.families import families, family_named
from harness.scenario.reach import Mark, emitted, never, overlap, reached
from harness.scenario.trees import checked_scenario
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from scenarios.playing import played, told

NAMES = list(families())
RUNS = 30
RUNS_UNTIL_ALL_MARKS = 400
RUNS_UNTIL_FOUND = 400
OLD_BUGS = [(name, bug) for name, family in families().items() for bug in family.old_bugs]


@pytest.mark.parametrize("name", NAMES)
def test_every_drawn_scenario_fits_the_schema(name):
    for seed in range(RUNS):
        checked_scenario(family_named(name).tree(seed), name)


@pytest.mark.parametrize("name", NAMES)
def test_a_family_holds_with_the_right_rules(name):
    for number in range(RUNS):
        report = play_seed(family_named(name), run_seed(1, name, number))
        assert report.verdict is Verdict.PASS, (number, *told(report))


@pytest.mark.parametrize(("name", "bug"), OLD_BUGS)
def test_a_family_finds_its_old_bug_from_random_starts(name, bug):
    family = family_named(name)
    with in_place(find_variant(bug)):
        found = any(run_batch(family, 2, first, 10, bug).failures for first in range(0, RUNS_UNTIL_FOUND, 10))
    assert found


@pytest.mark.parametrize("name", NAMES)
def test_every_reach_mark_of_a_family_is_reached(name):
    family, counts = family_named(name), dict[str, int]()
    for first in range(0, RUNS_UNTIL_ALL_MARKS, 20):
        counts |= run_batch(family, 0, first, 20).marks
        if not never(family.marks, counts):
            return
    assert not never(family.marks, counts)


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_draws_one_scenario_and_seeds_draw_many(name):
    tree = family_named(name).tree
    assert tree(5) == tree(5)
    assert len({repr(tree(seed)) for seed in range(RUNS)}) > RUNS // 2


def test_an_unknown_family_is_told_with_the_nearest_name():
    with pytest.raises(UserInputError, match="Did you mean cold-npx-race"):
        family_named("cold-npx-rase")


def test_a_draw_depends_on_its_name_and_seed_alone():
    draws = Draws("family", 7)
    first = draws.number("one", 1_000_000)
    draws.number("two", 10)
    assert draws.number("one", 1_000_000) == first
    assert Draws("family", 8).number("one", 1_000_000) != first


def test_draws_reach_both_ends_and_nothing_beyond():
    drawn = {Draws("ends", seed).between("n", 3, 5) for seed in range(100)}
    assert drawn == {3, 4, 5}
    assert not any(Draws("chance", seed).chance("never", 0) for seed in range(50))
    assert all(Draws("chance", seed).chance("always", 100) for seed in range(50))


def test_an_overlap_is_two_at_once_and_not_one_after_the_other():
    apart = played(session='[[step]]\nstart = "S"\n[[step]]\nstart = "T"')
    at_once = played(session='[[step]]\nstart = "S"\nwait = false\n[[step]]\nstart = "T"')
    seen = overlap("session.prepared", ("session.ended",))
    assert not seen(apart)
    assert seen(at_once)


def test_a_mark_that_code_emits_is_counted_whether_declared_or_not():
    report = played()
    event = report.events[0]._replace(name="reached", details={"mark": "half-way"})
    marked = report._replace(events=(*report.events, event))
    assert reached((), marked) == ("half-way",)
    assert reached((Mark("half-way", "half of it", emitted("half-way")),), marked) == ("half-way",)
    assert reached((), report) == ()
