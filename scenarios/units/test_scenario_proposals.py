"""What a scenario that was made from a failure says of where it came from, and that it can be read again."""

from __future__ import annotations

import pytest

from harness.scenario.failure import Failure, failure_of
from harness.scenario.holds import Proposal
from harness.scenario.parts import without_server, without_session
from harness.scenario.production import play
from harness.scenario.proposals import incident_text, origin
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.trees import fits
from harness.scenario.verdicts import Verdict
from harness.world.model import Decisions, Listed, Seeded
from scenarios.playing import short

FALLS = "[[expect]]\nexit = 7"
STAYS = "[server.a]\nignores_stdin_end = true"
AWAY = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 60 }]\n[[step]]\nadvance = 10\n"


def failed(text: str, decisions: Decisions | None = None, seed: int = 0) -> Failure:
    """The failure of a scenario on Codex."""
    return failure_of(play(read_scenario(text), "codex", decisions, seed=seed), seed=seed)


def proposed(failure: Failure, found: Failure | None = None) -> str:
    """The text of a scenario that needs no further hold."""
    return incident_text(failure, Proposal(failure.scenario, (), (), 1, ""), "made", found)


@pytest.mark.parametrize(
    ("decisions", "seed", "words"),
    [
        (None, 0, "found in the calmest order."),
        (Seeded(3), 3, "found with seed 3."),
        (Listed([1, 1, 0, 2]), 0, "found with choices of its own."),
    ],
)
def test_a_scenario_says_truly_how_its_failure_was_found(decisions, seed, words):
    failure = failed(short(FALLS), decisions, seed)
    assert origin(failure) == words.removesuffix(".").removeprefix("found ")
    head = proposed(failure).splitlines()[:2]
    assert head[1] == f"# Made from a failure that was {words}"
    small = failure._replace(decisions=())
    assert proposed(small, failure).splitlines()[1] == head[1]


def test_a_scenario_whose_invariant_fell_expects_that_invariant(tmp_path):
    failure = failed(short(STAYS, session=f"{AWAY}[[step]]\nkill = 'S/codex'"))
    path = tmp_path / "made.toml"
    path.write_text(proposed(failure))
    made = load_scenario(path)
    assert [each.says for each in made.expectations] == ["no orphans"]
    assert play(made, "codex").verdict is Verdict.FAIL


def test_a_scenario_that_never_ends_expects_its_end(tmp_path):
    failure = failed(short(session="[[step]]\nstart = 'S'\n[[step]]\nwait_for = { event = 'download' }"))
    path = tmp_path / "made.toml"
    path.write_text(proposed(failure))
    assert [each.says for each in load_scenario(path).expectations] == ["the sessions come to an end"]


def test_what_speaks_of_a_server_or_a_session_goes_with_it():
    text = short(
        "[[hold]]\nactor = 'T'\nat = 'spawn *'\nuntil = { event = 'server.connected', who = 'S/*' }",
        "[[expect]]\nevent = 'server.failed'\nwhere = { server = 'a' }\nnever = true",
        "[[expect]]\nevent = 'session.ended'\nwho = 'S'\nbefore = { event = 'session.ended', who = 'T' }",
        "[[expect]]\nevent = 'mcp.received'\nwho = 'S/claude/a'",
        session="[[step]]\nstart = 'S'\n[[step]]\nstart = 'T'\n[[step]]\nkill = 'T/*'",
    )
    tree = failed(text + f"\n{FALLS}\nsession = 'S'").scenario
    for smaller in (without_server(tree, "a"), without_session(tree, "T"), without_session(tree, "S")):
        assert fits(smaller) is not None
    assert "hold" not in without_session(tree, "T")
    assert len(without_session(tree, "T")["step"]) == 1
