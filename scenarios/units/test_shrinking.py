"""Shrinking: what is left fails as before, and without any one part of it passes."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.cli import main
from harness.cli.shrink import Rule
from harness.scenario.campaign import run_one
from harness.scenario.failure import Failure, failure_of, failure_text, load_failure, nonzero, replay
from harness.scenario.families import families, family_named
from harness.scenario.holds import Proposal, Search, anywhere
from harness.scenario.parts import parts, size, without_server, without_session
from harness.scenario.production import play
from harness.scenario.proposals import incident_text
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.shrinking import DoesNotFailError, Progress, Shrinker
from harness.scenario.signature import alike, chains_lost, signatures
from harness.scenario.trees import fits
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from harness.world.model import Decision, Listed, Seeded
from scenarios.playing import SESSION, short
from scenarios.report_schemas import validate

LARGE = "token-chain"
"""Its failures have thousands of steps: all but two of its old bugs are for `make nightly`."""
SOON = ("gate_retire.the_row_only_expires", "writers.claudes_block_is_replaced_whole")
OLD_BUGS = [
    pytest.param(name, bug, marks=[pytest.mark.nightly] if name == LARGE and bug not in SOON else [])
    for name, family in families().items()
    for bug in family.old_bugs
]
CODEX_UNPINNED = "campaign.codex_entries_are_not_pinned"
RACE_THAT_NEEDS_A_HOLD = """
schema = 1
id = "race"
title = "Two Codex sessions, the second a minute after the first"
runtime = "codex"
watched = false

[catalog.tool]
type = "stdio"
command = "npx"
args = ["-y", "@playwright/mcp@0.0.41"]

[[step]]
start = "A"
wait = false

[[step]]
start = "B"

[[expect]]
session = "A"
server = "tool"
is = "connected"
"""


def never() -> bool:
    """There is time enough."""
    return False


def after(runs: int) -> Callable[[], bool]:
    """The time is over after so many looks at the clock."""
    looks = iter(range(runs))
    return lambda: next(looks, None) is None


def found(family: str, bug: str) -> Failure:
    """The first failure of a family; the bug is in place."""
    outcomes = (run_one(family_named(family), 3, number, bug) for number in range(500))
    return next(outcome.failure for outcome in outcomes if outcome.failure is not None)


def still_fails(failure: Failure, tree: dict[str, Any], values: list[int]) -> bool:
    """Whether the same falls with this tree and these choices."""
    scenario = fits(tree)
    if scenario is None:
        return False
    return failure.signature in signatures(play(scenario, failure.runtime, Listed(values), seed=failure.seed))


class Small(NamedTuple):
    """A failure of a family, shrunk with its old bug in place, and that said without any choice."""

    failure: Failure
    small: Failure
    proposal: Proposal | None


SHRUNK: dict[tuple[str, str], Small] = {}
"""Kept by hand: a variant that is put in place clears every cache of functions."""


def small_one(family: str, bug: str) -> Small:
    """The first failure of a family, made small."""
    if (family, bug) not in SHRUNK:
        SHRUNK[family, bug] = made_small(family, bug)
    return SHRUNK[family, bug]


def made_small(family: str, bug: str) -> Small:
    """Shrunk, and searched for holds."""
    with Rule(find_variant(bug)) as rule:
        failure = found(family, bug)
        is_right = functools.partial(rule.passes_right, failure=failure)
        small = Shrinker(failure, is_over=never, accepts=is_right).run().failure
        return Small(failure, small, Search(small, is_over=never, accepts=is_right).run())


@pytest.mark.parametrize(("family", "bug"), OLD_BUGS)
def test_what_is_left_fails_and_without_any_one_part_of_it_passes(family, bug):
    failure, small, _ = small_one(family, bug)
    assert small.minimal
    assert small.signature == failure.signature
    assert size(small.scenario) < size(failure.scenario)
    values = [decision.value for decision in small.decisions]
    with Rule(find_variant(bug)) as rule:
        assert replay(small).report.verdict is Verdict.FAIL
        for part in parts(small.scenario):
            smaller = part.without(small.scenario)
            is_wrong_itself = not rule.passes_right(smaller, values, failure=small)
            assert is_wrong_itself or not still_fails(small, smaller, values), str(part)
        for index in nonzero(small.decisions):
            assert not still_fails(small, small.scenario, [*values[:index], 0, *values[index + 1 :]]), index


@pytest.mark.parametrize(("family", "bug"), OLD_BUGS)
def test_a_shrunk_failure_of_a_family_is_said_without_any_choice(family, bug):
    """Save in the large one, where a race may need more holds than are looked for."""
    _, small, proposal = small_one(family, bug)
    if proposal is None and family == LARGE:
        assert any(nonzero(small.decisions)), "what needs no choice needs no holds either"
        return
    assert proposal is not None
    scenario = fits(proposal.tree)
    assert scenario is not None
    written = read_scenario(incident_text(small, proposal, "made-small"))
    assert written.authorizations == scenario.authorizations
    with in_place(find_variant(bug)):
        assert small.signature in signatures(play(scenario, small.runtime))
    assert play(scenario, small.runtime).verdict is Verdict.PASS


def lost_race() -> Failure:
    """A in a drawn order in which B overtakes it; in the calmest order only B fails."""
    scenario = read_scenario(RACE_THAT_NEEDS_A_HOLD)
    for seed in range(300):
        report = play(scenario, "codex", Seeded(seed), seed=seed)
        of_a = next((each for each in signatures(report) if each.who == "A tool"), None)
        if of_a is not None:
            return failure_of(report, seed=seed, variant=CODEX_UNPINNED)._replace(signature=of_a)
    raise AssertionError("no seed shows it")


def test_a_race_that_the_calmest_order_does_not_show_becomes_a_hold():
    with in_place(find_variant(CODEX_UNPINNED)):
        small = Shrinker(lost_race(), is_over=never).run().failure
        assert any(nonzero(small.decisions))
        proposal = Search(small, is_over=never).run()
        assert proposal is not None
        assert len(proposal.holds) == 1
        assert proposal.holds[0]["actor"] == "A/codex/tool"
        assert proposal.holds[0]["until"]["who"].startswith("B/")


def test_a_proposal_that_the_right_rule_does_not_pass_is_not_taken():
    with in_place(find_variant(CODEX_UNPINNED)):
        small = Shrinker(lost_race(), is_over=never).run().failure
        assert Search(small, is_over=after(40), accepts=lambda _: False).run() is None


def test_when_the_time_is_over_what_there_is_is_kept_and_goes_on_from_there():
    with in_place(find_variant("npx.repairs_nothing")):
        failure = found("bin-guard", "npx.repairs_nothing")
        kept: list[Failure] = []
        first = Shrinker(failure, is_over=after(12), keep=kept.append).run()
        assert not first.failure.minimal
        assert kept[-1] == first.failure
        assert replay(first.failure).report.verdict is Verdict.FAIL
        second = Shrinker(first.failure, is_over=never).run()
        assert second.failure.minimal
        assert second.after.parts <= first.after.parts


def test_progress_is_told():
    told: list[Progress] = []
    with in_place(find_variant(CODEX_UNPINNED)):
        Shrinker(lost_race(), is_over=never, tell=told.append).run()
    assert told
    assert [each.runs for each in told] == sorted(each.runs for each in told)


def test_a_failure_that_does_not_show_any_more_is_not_shrunk():
    with in_place(find_variant(CODEX_UNPINNED)):
        failure = lost_race()
    with pytest.raises(DoesNotFailError):
        Shrinker(failure, is_over=never).run()


def test_a_server_and_a_session_are_taken_with_all_that_speaks_of_them():
    tree = {
        "catalog": {"a": {}, "b": {}},
        "server": {"a": {"initialize": "never"}},
        "step": [
            {"start": "S", "servers": ["a", "b"], "turns": [{"calls": [{"server": "a", "tool": "t"}]}]},
            {"start": "T"},
            {"wait_for": "T"},
        ],
        "fault": [{"action": "kill", "server": "a"}],
        "expect": [
            {"request": 1, "session": "S", "offers": ["a/t", "b"]},
            {"event": "server.failed", "where": {"server": "a"}},
            {"session": "T", "exit": 0},
        ],
    }
    before = deepcopy(tree)
    without_a = without_server(tree, "a")
    assert "a" not in json.dumps(
        [without_a["catalog"], without_a["step"][0]["servers"], without_a["expect"][0]["offers"]]
    )
    assert "fault" not in without_a
    assert len(without_a["expect"]) == 2
    without_t = without_session(tree, "T")
    assert [step["start"] for step in without_t["step"]] == ["S"]
    assert len(without_t["expect"]) == 2
    assert tree == before


@pytest.mark.parametrize(
    ("label", "glob"),
    [
        ("write /clones/S/.npm-cache/_npx/70c625cde90c18a8/node_modules/x/dist/part-1.js", "write */dist/part-1.js"),
        ("stat /home/agent/.npm/_cacache/content-v2/sha512/0123456789abcdef", "stat */sha512/*"),
        ("rename /c/node_modules/.x-0a1b2c3d to /c/node_modules/x", "rename * to */node_modules/x"),
        ("POST https://as.test/token", "POST https://as.test/token"),
        ("spawn npx", "spawn npx"),
    ],
)
def test_a_hold_names_a_point_without_folders_and_drawn_names(label, glob):
    assert anywhere(label) == glob


LOST_LAST_NIGHT = """
schema = 1
id = "lost"
title = "The answer to a refresh is lost, and the next session has no tickets"
runtime = "claude"
app_host = "zimmer.example.com"
catalog.tickets = { type = "streamable-http", url = "https://tickets.test/mcp" }
server.tickets.protected_by = "desk-as"

[authorization.desk-as]
answers = { token = ["ok", "drop-after"] }

[[step]]
authorize = "tickets"

[[step]]
advance = 90000

[[step]]
start = "S"
turns = [{ seconds = 5 }, { calls = [{ server = "tickets", tool = "echo" }] }]

[[expect]]
event = "tool.call"
where = { server = "tickets", ok = true }
"""


def test_what_falls_since_a_chain_was_lost_is_made_small_with_the_loss():
    failure = failure_of(play(read_scenario(LOST_LAST_NIGHT), "claude"))
    shrunk = Shrinker(failure, is_over=never).run()
    assert shrunk.failure.minimal
    assert shrunk.cost == {"answer-lost"}
    assert size(shrunk.failure.scenario) < size(failure.scenario)
    assert chains_lost(replay(shrunk.failure).report) == {"answer-lost"}
    proposal = Search(shrunk.failure, is_over=never, cost=shrunk.cost).run()
    assert proposal is not None
    assert Search(shrunk.failure, is_over=never, cost=frozenset({"no-such-hole"})).run() is None


# --- the command


@pytest.fixture
def shrink(tmp_path, monkeypatch, capsys):
    """Run the command in a folder of its own: (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def go(*arguments: str) -> tuple[int, str, str]:
        code = main(["shrink", *arguments])
        output = capsys.readouterr()
        return code, output.out, output.err

    return go


@pytest.fixture
def failure_file(tmp_path):
    """A failure with an old bug, as a campaign leaves it."""
    with in_place(find_variant(CODEX_UNPINNED)):
        failure = lost_race()
    path = tmp_path / failure.name
    path.write_text(failure_text(failure), encoding="utf-8")
    return path


def test_the_command_leaves_a_smaller_failure_and_a_scenario_to_commit(shrink, failure_file):
    code, out, err = shrink(failure_file.name)
    assert code == 0
    assert "now looking for holds" in err
    assert out.splitlines()[-1].startswith("MINIMAL  ")
    assert out.splitlines()[-1].endswith("exit 0")
    small = load_failure(failure_file.with_name(failure_file.name.replace(".failure.toml", ".small.failure.toml")))
    assert small.minimal
    committed = load_scenario(failure_file.with_name(failure_file.name.replace(".failure.toml", ".toml")))
    assert committed.id == failure_file.name.removesuffix(".failure.toml")
    assert play(committed, "codex").verdict is Verdict.PASS
    with in_place(find_variant(CODEX_UNPINNED)):
        assert play(committed, "codex").verdict is Verdict.FAIL
    assert [bug.name for bug in committed.old_bugs] == [CODEX_UNPINNED]


def test_the_command_goes_on_with_its_own_result_in_place(shrink, failure_file):
    shrink(failure_file.name)
    small = failure_file.name.replace(".failure.toml", ".small.failure.toml")
    code, out, _ = shrink(small)
    assert code == 0
    assert f"mcp-harness run {small}" in out


def test_the_report_as_json_fits_its_schema(shrink, failure_file):
    code, out, _ = shrink(failure_file.name, "--format", "json", "--save", "elsewhere")
    document = json.loads(out)
    validate("shrink-report", document)
    assert code == document["exit_code"] == 0
    assert document["failure_file"].startswith("elsewhere/")
    commands = [each["command"] for each in document["next"]]
    assert commands[0] == f"mcp-harness run {document['failure_file']}"
    assert commands[1].startswith(f"mcp-harness run {document['scenario_file']}")
    assert len(commands) == (2 if document["minimal"] else 3)
    assert len(document["holds"]) == 1


def test_a_failure_that_passes_now_ends_with_1_and_says_so(shrink, tmp_path):
    scenario = read_scenario(short("[[expect]]\nexit = 7"))
    failure = failure_of(play(scenario, "pi", Seeded(1), seed=1), seed=1)
    failure.scenario["expect"][0]["exit"] = 0
    (tmp_path / "gone.failure.toml").write_text(failure_text(failure), encoding="utf-8")
    code, out, err = shrink("gone.failure.toml")
    assert (code, out) == (1, "")
    assert "does not fail any more" in err


NEVER_FAILED = "[[expect]]\nsession = 'S'\nserver = 'a'\nis = 'failed'\nrun = 2\n"
"""It falls in each run: S connects a whenever it is started."""
TURNS = "turns = [{ seconds = 5 }, { calls = [{ server = 'a', tool = 'echo' }] }]"
FOLLOW_UP = f"[[step]]\nfollow_up = 'S'\n{TURNS}\n"
FOLLOWED = f"{SESSION}{FOLLOW_UP}"


def shrunk_tree(*texts: str, session: str = FOLLOWED, runtime: str = "pi") -> dict[str, Any]:
    """What is left of the scenario of a failure."""
    scenario = read_scenario(short(*texts, session=session))
    small = Shrinker(failure_of(play(scenario, runtime)), is_over=never).run().failure
    assert small.minimal
    return small.scenario


@pytest.mark.parametrize("says", ["", "says = 'it never comes up'\n"])
def test_a_run_that_is_not_needed_goes_with_the_number_that_named_it(says):
    left = shrunk_tree(f"{NEVER_FAILED}{says}")
    assert [step.get("start") for step in left["step"]] == ["S"]
    (expectation,) = left["expect"]
    assert {key: expectation[key] for key in expectation if key not in ("says", "session")} == {
        "server": "a",
        "is": "failed",
    }


def test_the_number_of_an_actor_goes_down_with_the_runs_before_it():
    left = shrunk_tree(
        "[[expect]]\nevent = 'server.connected'\nwho = 'S#3/*'\nwhere = { server = 'a' }\nnever = true",
        session=f"{FOLLOWED}{FOLLOW_UP}",
    )
    assert len(left["step"]) == 1
    assert [each["who"] for each in left["expect"]] == ["S/*"]


def test_a_failure_is_not_made_small_by_having_nothing_left_to_look_at():
    left = shrunk_tree("[[expect]]\nrequest = 2\nlacks = ['a']", session=SESSION, runtime="claude")
    assert len(left["step"][0]["turns"]) == 2
    of_nothing = shrunk_tree("[[expect]]\nrequest = 7\nlacks = ['a']", session=SESSION, runtime="claude")
    assert "turns" not in of_nothing["step"][0]


@pytest.mark.parametrize(
    ("one", "other", "alike_to_each_other"),
    [
        ("b is connected in run 2: x", "b is connected: x", True),
        ("S run 2 exits 1", "S exits 1", True),
        ("request 1 of run 2 offers b", "request 1 offers b", True),
        ("stdout of run 3 has 'x'", "stdout has 'x'", True),
        ("session.blocked by S#3 1x", "session.blocked by S 1x", True),
        ("session.blocked by S#N 1x", "session.blocked by S#2 1x", True),
        ("tool-1 is failed", "tool-2 is failed", True),
        ("request 1 offers b", "request 2 offers b", False),
        ("S exits 1", "S exits 2", False),
        ("what #702 says", "what it says", False),
    ],
)
def test_of_what_run_something_is_makes_no_other_failure_of_it(one, other, alike_to_each_other):
    assert (alike(one) == alike(other)) is alike_to_each_other


TWO_FALL = "[[expect]]\nsession = 'S'\nexit = 7\n[[expect]]\nsession = 'T'\nserver = 'a'\nis = 'failed'"


@pytest.fixture
def two_fall(tmp_path):
    """A failure in which two expectations fall, of a session each."""
    scenario = read_scenario(short(TWO_FALL, session=f"{SESSION}[[step]]\nstart = 'T'\n"))
    (tmp_path / "two.failure.toml").write_text(failure_text(failure_of(play(scenario, "pi"))), encoding="utf-8")
    return "two.failure.toml"


def test_what_is_kept_is_told_and_so_is_what_may_go(shrink, two_fall):
    code, out, _ = shrink(two_fall)
    assert code == 0
    first, second, *_ = out.splitlines()
    assert first == "keeps  fail: S exits 7 on S"
    assert second == "  not kept   fail: a is failed on T a (not-started)"
    (expectation,) = load_failure(Path("two.small.failure.toml")).scenario["expect"]
    assert expectation["session"] == "S"


@pytest.mark.parametrize("word", ["T", "is failed"])
def test_another_of_what_fell_can_be_kept_and_lies_beside_the_first(shrink, two_fall, word):
    code, out, _ = shrink(two_fall, "--keep", word, "--format", "json")
    document = json.loads(out)
    validate("shrink-report", document)
    assert (code, document["signature"]["rule"]) == (0, "a is failed")
    assert [each["rule"] for each in document["not_kept"]] == ["S exits 7"]
    assert document["failure_file"] != "two.small.failure.toml"
    (expectation,) = load_failure(Path(document["failure_file"])).scenario["expect"]
    assert expectation["session"] == "T"
    code, out, _ = shrink(document["failure_file"])
    assert (code, out.splitlines()[0]) == (0, "keeps  fail: a is failed on T a (not-started)"), (
        "it goes on with what was chosen"
    )


def test_the_report_names_the_holes_that_still_cost_a_chain(shrink, tmp_path):
    failure = failure_of(play(read_scenario(LOST_LAST_NIGHT), "claude"))
    (tmp_path / "lost.failure.toml").write_text(failure_text(failure), encoding="utf-8")
    kept = f"keeps  {failure.signature}, and the chain that is lost by answer-lost"
    assert shrink("lost.failure.toml")[1].splitlines()[0] == kept
    document = json.loads(shrink("lost.failure.toml", "--format", "json")[1])
    validate("shrink-report", document)
    assert document["chains_lost"] == ["answer-lost"]


def test_to_keep_what_did_not_fall_is_refused_with_what_did(shrink, two_fall):
    code, out, err = shrink(two_fall, "--keep", "no-orphans")
    assert (code, out) == (2, "")
    assert "--keep no-orphans: nothing that fell is called so" in err
    assert "There is: S exits 7 on S; a is failed on T a." in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("missing.toml",), ("missing.toml", "--seconds", "0"), ("missing.toml", "--seconds", "x")]
)
def test_unusable_arguments_end_with_2(shrink, arguments):
    code, out, err = shrink("missing.toml", *arguments)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_a_scenario_is_no_failure_and_is_answered_with_how_to_get_one(shrink, tmp_path):
    (tmp_path / "mine.toml").write_text(short("[[expect]]\nexit = 7"), encoding="utf-8")
    code, out, err = shrink("mine.toml")
    assert (code, out) == (2, "")
    assert "mine.toml: is no failure file. A run that fails writes one: mcp-harness run mine.toml --save out." in err
    assert err.count("\n") == 1


def test_a_decision_is_lowered_as_far_as_the_failure_goes():
    scenario = read_scenario(short("[[expect]]\nexit = 7"))
    failure = failure_of(play(scenario, "codex", Seeded(4, run=0.9), seed=4), seed=4)
    small = Shrinker(failure, is_over=never).run().failure
    assert any(nonzero(failure.decisions))
    assert all(decision == Decision(decision.kind, decision.arity, 0) for decision in small.decisions)
