"""Drawn scenarios with drawn choices hold; what is written of them is read back as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UserInputError
from harness.scenario.failure import decisions_text, failure_of, failure_text, parse_decisions, read_failure
from harness.scenario.families import families, family_named
from harness.scenario.parts import parts, size
from harness.scenario.production import Report, play
from harness.scenario.signature import signature
from harness.scenario.trees import Tree, fits, scenario_from
from harness.scenario.writing import toml_text
from harness.world.model import Calm, Decision, Listed

OUT = Path("out")
SEEDS = st.integers(0, 2**31 - 1)
CHOICES = st.lists(st.integers(0, 7), max_size=80)
KINDS = st.sampled_from(["run", "stall", "fault", "start"])
DECISIONS = st.lists(
    st.integers(2, 9).flatmap(lambda arity: st.builds(Decision, KINDS, st.just(arity), st.integers(0, arity - 1))),
    max_size=30,
)
NAMES = st.sampled_from(list(families()))
SCALARS = st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


def passes(report: Report, tree: Tree, seed: int) -> None:
    """Fails with the file that replays it."""
    if signature(report) is not None:
        failure = failure_of(report, seed=seed, tree=tree)
        OUT.mkdir(exist_ok=True)
        (OUT / failure.name).write_text(failure_text(failure), encoding="utf-8")
        pytest.fail(f"{failure.signature}; reproduce: mcp-harness run {OUT / failure.name}")


@given(name=NAMES, seed=SEEDS, choices=CHOICES)
def test_a_family_holds_whatever_is_drawn(name, seed, choices):
    tree = family_named(name).tree(seed)
    passes(play(scenario_from(tree), tree["runtime"], Listed(choices), seed=seed), tree, seed)


@given(name=NAMES, seed=SEEDS)
def test_zeros_are_the_calmest_run(name, seed):
    tree = family_named(name).tree(seed)
    zeros, calm = (play(scenario_from(tree), tree["runtime"], each) for each in (Listed(()), Calm()))
    assert zeros.trace_digest == calm.trace_digest
    assert not any(decision.value for decision in zeros.decisions)


@given(decisions=DECISIONS, repeated=st.integers(1, 5))
def test_decisions_are_read_back_as_they_were_written(decisions, repeated):
    assert parse_decisions(decisions_text(decisions * repeated)) == tuple(decisions * repeated)


@given(text=st.text(alphabet="runstalf.=*+0123 \n", max_size=40))
def test_a_text_is_decisions_or_an_error_of_one_line(text):
    try:
        decisions = parse_decisions(text)
    except ValueError as error:
        told = str(error)
    else:
        told = ""
        assert parse_decisions(decisions_text(decisions)) == decisions
    assert not told or "is no decision" in told or "more than" in told


@given(tree=st.dictionaries(st.text(max_size=6), VALUES, max_size=6))
def test_a_tree_is_read_back_as_it_was_written(tree):
    assert tomllib.loads(toml_text(tree)) == tree


@given(text=st.text(max_size=200))
def test_only_a_line_comes_out_of_a_text_that_is_no_failure(text):
    with pytest.raises(UserInputError) as error:
        read_failure(text)
    assert "\n" not in str(error.value)


@given(name=NAMES, seed=SEEDS)
def test_every_part_can_be_taken_away_and_leaves_less(name, seed):
    tree = family_named(name).tree(seed)
    whole = repr(tree)
    for part in parts(tree):
        smaller = part.without(tree)
        assert size(smaller) < size(tree)
        fits(smaller)
    assert repr(tree) == whole
