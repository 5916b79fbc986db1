"""A conversation that is gone on with keeps its id, in each runtime's own words for it."""

from __future__ import annotations

from typing import Any

import pytest

from fake_runtimes.codex.arguments import read_arguments
from fake_runtimes.plan import AT_ONCE
from fake_runtimes.profile import load_profile
from harness.reference.session.evidence import conversation
from harness.scenario.runtimes import runtime_programs
from harness.world.model import Simulation

PROFILES = {"claude": "claude-2.1.328", "codex": "codex-0.169.0", "pi": "pi-0.84.1+2.32.1"}
FRESH = {
    "claude": ("claude", "-p", "--output-format", "stream-json", "--verbose"),
    "codex": ("codex", "exec", "--json"),
    "pi": ("pi", "-p", "--mode", "json"),
}
GOES_ON = {"claude": ("--resume", "the-id"), "codex": ("resume", "the-id"), "pi": ("--session", "the-id")}


def told(runtime: Any, *words: str) -> list[str]:
    """The conversations that a run's output names."""
    simulation = Simulation()
    simulation.tree.make_directory("/clone", 0o755, 0, simulation.now)
    program = runtime_programs()[runtime](load_profile(PROFILES[runtime]), AT_ONCE)
    actor = simulation.start(
        runtime, program, (*FRESH[runtime], *words, "go on"), env={"HOME": "/home/u"}, directory="/clone"
    )
    outcome = simulation.run()
    assert outcome.verdict == "done", outcome.detail
    assert simulation.ended(actor).error is None
    return [found for line in actor.stdout.lines if (found := conversation(runtime, line))]


@pytest.mark.parametrize("runtime", list(PROFILES))
def test_a_conversation_that_is_gone_on_with_keeps_its_id(runtime):
    assert told(runtime, *GOES_ON[runtime]) == ["the-id"]
    (fresh,) = told(runtime)
    assert fresh != "the-id"


@pytest.mark.parametrize(
    ("words", "resumed", "prompt"),
    [
        (("exec", "resume", "the-id", "go", "on"), "the-id", "go on"),
        (("exec", "--json", "resume", "the-id", "go on"), "the-id", "go on"),
        (("exec", "resume", "--last", "go on"), "", "go on"),
        (("exec", "resume"), "", ""),
        (("exec", "go on"), "", "go on"),
        (("mcp", "resume", "x"), "", "resume x"),
    ],
)
def test_codex_is_told_which_thread_by_a_word_behind_the_command(words, resumed, prompt):
    found = read_arguments(("codex", *words), load_profile(PROFILES["codex"]))  # type: ignore[arg-type]
    assert (found.resumed, found.prompt, found.error) == (resumed, prompt, None)


@pytest.mark.parametrize(
    ("runtime", "line", "found"),
    [
        ("claude", '{"type":"system","subtype":"init","session_id":"c"}', "c"),
        ("claude", '{"type":"system","subtype":"status","session_id":"init"}', ""),
        ("claude", '{"type":"assistant","session_id":"init"}', ""),
        ("codex", '{"type":"thread.started","thread_id":"t"}', "t"),
        ("codex", '{"type":"turn.started","thread_id":"thread.started"}', ""),
        ("pi", '{"type":"session","id":"s"}', "s"),
        ("pi", '{"type":"message","id":"session"}', ""),
        ("pi", '{"type":"session","id":5}', ""),
        ("pi", "MCP: Failed to connect to session: gone", ""),
        ("codex", "[thread.started]", ""),
    ],
)
def test_the_id_of_a_conversation_stands_in_one_line_alone(runtime, line, found):
    assert conversation(runtime, line) == found
