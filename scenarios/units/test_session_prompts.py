"""What the runtime is told in each turn: the message, the conversation that it continues, the servers left out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.session import rows as sessions
from harness.reference.session.command_line import command_line
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.reference.session.prompt_block import TAG, block
from harness.reference.session.prompts import is_nudge
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from harness.world import World
from scenarios.units.failed_handshakes_run import CLOSED, CONNECTED, FILES, NOTION, Handshakes
from scenarios.units.spawn_gate_run import AGENT as ARGV
from scenarios.units.spawn_gate_run import HOUR, SESSION, credential, key_of, order_of, refuses, stdio

PROMPT = "Do A"
BOTH = {"a": stdio(), "b": stdio(command="/opt/tools/b")}
RECORD = [{"name": name, "error": "closed", "reason": "they did not connect"} for name in BOTH]
LEFT_OUT = {"mcp_degraded_servers": RECORD}
SPENT = {"mcp_retry_count": 3, "mcp_last_retry_at": "2027-01-15T08:00:00.000Z"}
RUNTIMES = ("claude", "codex", "pi")
RESUMES = {"claude": "--resume", "codex": "resume", "pi": "--session"}


def order(runtime: str = "claude", follow_up: str | None = None, **more: Any) -> Order:
    return order_of(FILES, runtime=runtime, prompt=PROMPT, follow_up=follow_up, **more)


def turns(*messages: str | None) -> Any:
    """One turn after the other; None is the first one."""

    async def story(world: World, given: Order) -> None:
        for message in messages:
            await run_session(world, Order(**{**fields(given), "follow_up": message}))

    return story


def fields(given: Order) -> dict[str, Any]:
    return {name: getattr(given, name) for name in Order.__slots__}


def named_in(prompt: str) -> list[str]:
    """The servers that the block of a prompt names."""
    return [line[2:].partition(" ")[0] for line in prompt.splitlines() if line.startswith("- ")]


# --- the conversation


@pytest.mark.requirement("resume-job-reclassifies-no-session", "resume-silent-substitution-forbidden")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_message_without_a_conversation_starts_the_first_turn_and_is_quoted_and_kept(runtime):
    run = Handshakes(FILES, [{}], runtime=runtime, prompt=PROMPT, follow_up="do X")
    assert run.words == [(*ARGV[runtime], PROMPT)]
    lines = run.row.get("timeline", ())
    assert [(line["level"], line["text"].endswith("do X")) for line in lines] == [("warn", True)]
    assert run.metadata["oauth_undelivered_follow_up_prompt"] == "do X"
    assert "pending_follow_up_prompt" not in run.metadata


@pytest.mark.requirement("resume-job-reclassifies-no-session")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_message_with_a_conversation_continues_it(runtime):
    row = {"session_id": "c", "mcp_servers": ["files"], "metadata": {}}
    more = {(sessions.TABLE, SESSION): row}
    run = Handshakes(FILES, [{}], runtime=runtime, prompt=PROMPT, follow_up="do X", more_rows=more)
    assert run.words == [(*ARGV[runtime], RESUMES[runtime], "c", "do X")]
    assert "timeline" not in run.row
    first = Handshakes(FILES, [{}], runtime=runtime, prompt=PROMPT, more_rows=more)
    assert first.words == [(*ARGV[runtime], PROMPT)]


def test_a_nudge_without_a_conversation_is_dropped_without_a_word():
    nudge = order().prompts.recovery
    run = Handshakes(FILES, [{}], prompt=PROMPT, follow_up=nudge)
    assert run.words == [(*ARGV["claude"], PROMPT)]
    assert "timeline" not in run.row
    assert "oauth_undelivered_follow_up_prompt" not in run.metadata


@pytest.mark.parametrize(("answers", "noted"), [([1], "the conversation"), ([], None)])
def test_a_conversation_is_noted_once_its_model_has_answered(answers, noted):
    assert Handshakes(FILES, [{}], answers=answers, prompt=PROMPT).row.get("session_id") == noted


@pytest.mark.requirement("resume-no-original-rerun")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_follow_up_continues_the_conversation_that_the_runtime_itself_has_named(runtime):
    report = play(read_scenario(TWO_TURNS), runtime)
    assert report.verdict is Verdict.PASS, report.failures
    first, second = [
        event.details["argv"] for event in report.events if event.name == "spawn" and event.actor in ("S", "S#2")
    ]
    assert RESUMES[runtime] not in first
    word, conversation, _ = second[-3:]
    assert word == RESUMES[runtime]
    assert f'"session_id":"{conversation}"' in report.judged[0].seen.instead


TWO_TURNS = """
schema = 1
id = "two-turns"
title = "A session is told two things"
runtime = ["claude", "codex", "pi"]

[catalog.a]
type = "stdio"
command = "/opt/a"

[[step]]
start = "S"

[[step]]
follow_up = "S"

[[expect]]
row = "sessions/S"
contains = '"session_id"'
"""


# --- the servers that are left out


@pytest.mark.requirement("failure-block-on-every-prompt")
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", ["first turn", "follow-up", "retry", "nudge", "heartbeat"])
@pytest.mark.parametrize("record", [RECORD[:1], RECORD], ids=["one", "two"])
def test_every_prompt_names_what_is_left_out(runtime, kind, record):
    prompts = order().prompts
    said = {"follow-up": "do X", "nudge": prompts.recovery, "heartbeat": prompts.heartbeat}.get(kind)
    retry = SPENT if kind == "retry" else {}
    values = {"session_id": "c", "metadata": {"mcp_degraded_servers": record, **retry}}
    prompt = command_line(order(runtime, said), values)[-1]
    assert prompt == f"{said or PROMPT}\n\n{block(record)}"
    assert (prompt.count(f"<{TAG}>"), prompt.count(f"</{TAG}>")) == (1, 1)


@pytest.mark.requirement("failure-block-on-every-prompt")
def test_the_replay_of_a_retry_names_what_is_left_out():
    catalog = {**BOTH, "c": stdio(command="/opt/tools/c")}
    run = Handshakes(catalog, [{"c": CLOSED}, {"c": CONNECTED}], prompt=PROMPT, metadata=LEFT_OUT)
    assert [named_in(words[-1]) for words in run.words] == [["a", "b"], ["a", "b"]]


@pytest.mark.requirement("failure-block-not-persisted")
def test_the_block_is_in_each_prompt_once_and_in_nothing_that_is_stored():
    story = turns(None, "do X", "do Y")
    run = Handshakes(BOTH, [{}], answers=[1, 2, 3], prompt=PROMPT, metadata=LEFT_OUT, program=story)
    assert [words[-1].partition("\n")[0] for words in run.words] == [PROMPT, "do X", "do Y"]
    assert [words[-1].count(f"<{TAG}>") for words in run.words] == [1, 1, 1]
    assert TAG not in json.dumps(run.row)


@pytest.mark.requirement("failure-block-not-persisted")
def test_a_message_that_is_handed_back_has_no_block():
    catalog = {**BOTH, **NOTION}
    run = Handshakes(
        catalog, [{}], prompt=PROMPT, follow_up="do X", servers={"https://notion.test": Refusing()},
        more_rows={(sessions.TABLE, SESSION): {"session_id": "c", "mcp_servers": list(catalog), "metadata": LEFT_OUT}},
    )  # fmt: skip
    assert run.required == ["notion"]
    assert run.metadata["pending_follow_up_prompt"] == "do X"


@pytest.mark.requirement("failure-block-gone-after-retire")
def test_the_first_prompt_after_a_server_has_connected_does_not_name_it():
    starts: Sequence[Mapping[str, str]] = [{"a": CONNECTED}, {"a": CONNECTED, "b": CONNECTED}, {}]
    story = turns(None, "do X", "do Y")
    run = Handshakes(BOTH, starts, answers=[1, 2, 3], prompt=PROMPT, metadata=LEFT_OUT, program=story)
    assert [named_in(words[-1]) for words in run.words] == [["a", "b"], ["b"], []]
    assert run.words[-1][-1] == "do Y"


# --- the turn after a pause


@pytest.mark.requirement("failure-nudge-system-recovery")
def test_a_session_that_worked_is_nudged_with_the_names_of_what_was_left_out():
    run = Handshakes(FILES, [{"files": CLOSED}, {}], answers=[1, 2], prompt=PROMPT, metadata=SPENT)
    assert run.words[0] == (*ARGV["claude"], PROMPT)
    *start, prompt = run.words[1]
    assert start == [*ARGV["claude"], "--resume", "the conversation"]
    said, _, block_of_it = prompt.partition(f"\n\n<{TAG}>")
    assert said.startswith(run.order.prompts.recovery)
    assert said.endswith("\n\n(What triggered this nudge: MCP servers did not connect: files. No human sent it.)")
    assert is_nudge(prompt, run.order.prompts)
    assert named_in(block_of_it) == ["files"]


@pytest.mark.requirement("failure-nudge-never-started-runs-original")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_session_whose_model_was_never_heard_hears_its_own_prompt_after_the_last_retry(runtime):
    run = Handshakes(FILES, [{"files": CLOSED}] * 4 + [{}], runtime=runtime, prompt=PROMPT)
    assert len(run.words) == 5
    assert [words for words in run.words[:4] if words != (*ARGV[runtime], PROMPT)] == []
    *start, prompt = run.words[4]
    assert start == [*ARGV[runtime]]
    assert (prompt.partition("\n")[0], named_in(prompt)) == (PROMPT, ["files"])


class Refusing:
    """A server that wants a token."""

    def handle(self, _request: Any, _now: float, _who: str) -> Any:
        (answer,) = refuses("notion").values()
        return answer


@pytest.mark.requirement("failure-nudge-not-a-pending-follow-up")
def test_a_nudge_that_the_check_before_the_spawn_stops_is_owed_to_nobody():
    async def signs_out(world: World) -> None:
        await world.clock.sleep(1.0)
        transaction = await world.store.begin()
        await transaction.delete(CREDENTIALS, key_of(NOTION["notion"], "notion"))
        await transaction.commit()

    run = Handshakes(
        {**FILES, **NOTION}, [{"files": CLOSED, "notion": CONNECTED}], answers=[1], prompt=PROMPT, metadata=SPENT,
        credentials=[credential("notion", HOUR)], servers={"https://notion.test": Refusing()},
        others={"person": signs_out},
    )  # fmt: skip
    assert len(run.words) == 1
    assert (set(run.record), run.required) == ({"files"}, ["notion"])
    assert "pending_follow_up_prompt" not in run.metadata
    assert "oauth_undelivered_follow_up_prompt" not in run.metadata
    assert [line["kind"] for line in run.row["timeline"]] == ["left_out", "blocked"]


# --- the ladder after a stable run


@pytest.mark.requirement("failure-ladder-reset-after-stable")
@pytest.mark.parametrize(
    ("stable_seconds", "last", "tries"),
    [(59, SPENT["mcp_last_retry_at"], 3), (60, SPENT["mcp_last_retry_at"], 1), (3600, "not-a-valid-timestamp", 3)],
)
def test_a_ladder_begins_anew_after_a_minute_in_which_every_server_was_there(stable_seconds, last, tries):
    """The servers are looked at two seconds after the start, and from then on the process is stable."""
    counts: list[Any] = []

    async def story(world: World, given: Order) -> None:
        await run_session(world, given)
        await run_session(world, given)

    async def looks(world: World) -> None:
        await world.clock.sleep(2.0 + stable_seconds + 10.0)
        counts.append((await sessions.read(world, SESSION))["metadata"])

    run = Handshakes(
        FILES, [{"files": CONNECTED}, {"files": CLOSED}, {"files": CONNECTED}], prompt=PROMPT,
        metadata={"mcp_retry_count": 2, "mcp_last_retry_at": last}, goes_on_seconds=2.0 + stable_seconds,
        program=story, others={"watcher": looks},
    )  # fmt: skip
    assert run.retried == [["files"]]
    assert counts[0]["mcp_retry_count"] == tries
    assert [failed["name"] for failed in counts[0]["mcp_failed_servers"]] == ["files"]
