"""Why a chain ended: which hole it was, whose will, or that a rule was broken; what counts as a repetition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from harness.scenario import holes
from harness.scenario.campaign import Tally, batch_of, run_one, tally_from
from harness.scenario.chain_invariants import Broken, repeated
from harness.scenario.families import family_named
from harness.scenario.foreign import Known, touched
from harness.scenario.holes import Walked, counted, summed
from harness.scenario.library import find
from harness.scenario.losses import losses
from harness.scenario.model import HoldFacts, Match
from harness.scenario.production import play
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.rendering import run_document
from harness.scenario.timeline import accepted
from harness.scenario.verdicts import Verdict
from scenarios.playing import told
from scenarios.report_schemas import validate
from scenarios.units.test_chains import CLAUDE, TOKEN, Scene, rotated

ALPHA = SimpleNamespace(name="a", url="https://a.test/mcp")
KNOWN = Known.of([ALPHA])


def lost(scene: Scene, revoked: Sequence[tuple[str, int]] = ()) -> list[tuple[str, str]]:
    """The holes and details of all chains that were lost."""
    return [(loss.hole, loss.detail) for loss in losses(scene.monitor, scene.events, revoked)]


def test_a_chain_whose_newest_tokens_are_held_is_not_lost():
    assert lost(Scene()) == []
    assert lost(rotated()) == []


def test_an_answer_that_broke_off_is_a_lost_one():
    scene = Scene()
    scene.server.answer_next("token", "drop-after")
    scene.renew(1, "cron")
    assert lost(scene) == [(holes.ANSWER_LOST, "generation 2 was given to cron")]


@pytest.mark.parametrize("answer", ["ok-slow", "ok-truncated", "ok-as-503"])
def test_an_answer_that_nobody_can_use_is_a_lost_one(answer):
    scene = Scene()
    scene.server.answer_next("token", answer)
    try:
        scene.renew(1, "cron")
    except ValueError:
        assert answer == "ok-truncated"
    assert lost(scene)[0][0] == holes.ANSWER_LOST


@pytest.mark.parametrize("answer", ["ok-expires-text", "ok-without-expiry"])
@pytest.mark.parametrize(("actor", "hole"), [("S/codex", holes.ANSWER_LOST), ("cron", "")])
@pytest.mark.requirement("refresh-chain-never-burned")
def test_an_answer_that_is_otherwise_in_one_member_may_be_none_to_a_runtime_and_is_one_to_the_orchestrator(
    answer, actor, hole
):
    scene = Scene()
    scene.server.answer_next("token", answer)
    scene.renew(1, actor)
    assert lost(scene)[0][0] == hole


@pytest.mark.requirement("refresh-chain-never-burned")
def test_tokens_that_were_given_and_kept_nowhere_are_a_broken_rule():
    scene = Scene()
    scene.renew(1, "cron")
    assert lost(scene) == [("", "cron was given generation 2, and it is in no store")]


@pytest.mark.parametrize(
    ("name", "details"),
    [("killed", {"signal": "SIGKILL"}), ("fault", {"action": "enospc", "at": f"write {CLAUDE}"})],
)
def test_whoever_was_struck_may_have_lost_them(name, details):
    scene = Scene()
    scene.renew(1, "cron")
    scene.tell("cron", name, details)
    assert lost(scene)[0][0] == holes.ANSWER_LOST


@pytest.mark.parametrize(
    ("actor", "name", "details", "later"),
    [
        ("S", "killed", {"signal": "SIGKILL"}, 0.0),
        ("cron", "killed", {"signal": "SIGKILL"}, 3600.0),
        ("cron", "fault", {"action": "eacces", "at": "read /home/agent/.claude/mcp-needs-auth-cache.json"}, 0.0),
        ("cron", "ended", {"exit_code": 0}, 0.0),
    ],
)
@pytest.mark.requirement("refresh-chain-never-burned")
def test_what_befell_others_or_elsewhere_or_later_is_no_excuse(actor, name, details, later):
    scene = Scene()
    scene.renew(1, "cron")
    scene.now += later
    scene.tell(actor, name, details)
    assert lost(scene)[0][0] == ""


@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_row_that_drops_its_tokens_without_a_reason_breaks_a_rule():
    scene = Scene()
    scene.row = {**scene.row, "refresh_token": None}
    scene.monitor.arrived("cron", "committed", None)
    assert lost(scene) == [("", "generation 1 was in the orchestrator's row, and is not any more")]


@pytest.mark.parametrize("event", ["credential.retired", "oauth.completed"])
@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_row_may_drop_what_was_retired_or_authorized_anew(event):
    scene = Scene()
    scene.row = {**scene.row, "refresh_token": None}
    scene.monitor.arrived("web", "committed", None)
    scene.tell("web", event, {"server": "another"})
    scene.tell("cron", event, {"server": "a"})
    assert lost(scene)[0][0] == "", "another server, and somebody else"
    scene.tell("web", event, {"server": "a"})
    assert lost(scene) == []


@pytest.mark.parametrize(("event", "expected"), [("oauth.completed", []), ("credential.retired", [holes.OVERWRITTEN])])
def test_what_a_runtime_had_renewed_goes_with_the_grant_that_was_authorized_anew(event, expected):
    scene = rotated()
    scene.row = {**scene.row, "refresh_token": None}
    scene.monitor.arrived("web", "committed", None)
    scene.tell("web", event, {"server": "a"})
    scene.monitor.arrived("web", f"remove {CLAUDE}", None)
    del scene.tree[CLAUDE]
    scene.monitor.arrived("web", "begin", None)
    assert [hole for hole, _ in lost(scene)] == expected


@pytest.mark.parametrize(("later", "expected"), [(1.0, holes.OLD_GRANT), (0.0, "")])
@pytest.mark.requirement("refresh-chain-never-burned")
def test_an_older_grant_comes_back_by_a_later_expiry_alone(later, expected):
    scene = Scene()
    scene.renew(1)
    scene.tokens.append(scene.server.issue("another", "read", 3600.0, now=scene.now))
    scene.store(3, actor="web", expires_at=scene.now + 3600)
    scene.tell("web", "oauth.completed", {"server": "a"})
    scene.store(2, actor="T", expires_at=scene.now + 3600 + later)
    assert [(loss.chain, loss.hole) for loss in losses(scene.monitor, scene.events)] == [(("as", 2), expected)]
    assert bool(scene.monitor.backwards) == (not expected)


@pytest.mark.parametrize(("held", "first"), [("session web", "web#2"), ("web#2", "session web")])
def test_of_consents_at_once_the_one_that_is_stored_last_counts_whichever_was_granted_first(held, first):
    scenario = load_scenario(find("oauth-two-tabs"))
    stored = HoldFacts(held, "processed POST https://desk-as.test/token", Match("credential.stored", first))
    report = play(scenario._replace(holds=(scenario.holds[0], stored)), "claude")
    assert report.verdict is Verdict.PASS, told(report)


@pytest.mark.requirement("refresh-chain-never-burned")
def test_what_went_before_a_consent_was_lost_all_the_same():
    scene = rotated()
    scene.monitor.arrived("S/claude", f"remove {CLAUDE}", None)
    del scene.tree[CLAUDE]
    scene.monitor.arrived("S/claude", "begin", None)
    scene.row = {**scene.row, "refresh_token": None}
    scene.monitor.arrived("web", "committed", None)
    scene.tell("web", "oauth.completed", {"server": "a"})
    assert [hole for hole, _ in lost(scene)] == [holes.OVERWRITTEN]


def test_a_row_may_drop_what_the_provider_refuses():
    scene = Scene()
    scene.server.answer_next("token", "invalid_grant")
    scene.renew(1, "cron")
    scene.row = {**scene.row, "refresh_token": None}
    scene.monitor.arrived("cron", "committed", None)
    assert lost(scene) == []


@pytest.mark.parametrize("answer", ["429", "503"])
@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_row_may_not_drop_what_the_provider_only_puts_off(answer):
    scene = Scene()
    scene.server.answer_next("token", answer)
    scene.renew(1, "cron")
    scene.row = {**scene.row, "refresh_token": None}
    scene.monitor.arrived("cron", "committed", None)
    assert lost(scene)[0][0] == ""


def test_a_second_use_names_its_race_or_its_rule():
    scene = rotated()
    scene.read("cron", CLAUDE)
    scene.renew(1, "cron")
    assert lost(scene) == [("", "it had read the fresher one")]
    scene = Scene()
    scene.write(CLAUDE, 1)
    scene.renew(1, "cron")
    scene.store(2)
    scene.renew(1, "S/claude")
    assert lost(scene)[0][0] == holes.STALE_UNDER_RUNTIME


def test_what_a_provider_bears_or_ends_by_itself_is_no_loss():
    scene = Scene(grace_seconds=600.0)
    scene.write(CLAUDE, 1)
    scene.renew(1, "cron")
    scene.store(2)
    scene.renew(1, "S/claude")
    assert lost(scene) == []
    scene = Scene()
    scene.server.revoke_family(scene.tokens[0][0])
    assert lost(scene, [("as", 1)]) == []
    assert lost(scene) == []


def test_an_entry_that_was_written_over_is_lost_by_that():
    scene = rotated()
    scene.tree[CLAUDE] = scene.text_of(1)
    assert lost(scene) == [(holes.OVERWRITTEN, f"generation 2 was in {CLAUDE}")]


# --- repetitions


def again(scene: Scene, number: int, seconds: float, *, actor: str = "cron") -> Broken | None:
    """What is said of a request that comes again so much later."""
    scene.now += seconds
    scene.present(number, actor)
    return repeated(scene)  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "is_told"), [(0.0, True), (480.0, True), (1800.0, False)])
@pytest.mark.requirement("refresh-ambiguous-never-in-band")
def test_a_request_without_an_answer_is_not_repeated_before_the_next_run(seconds, is_told):
    scene = Scene()
    scene.server.answer_next("token", "drop-before")
    scene.renew(1, "cron")
    assert bool(again(scene, 1, seconds)) is is_told


@pytest.mark.parametrize(("action", "is_told"), [("refused", False), ("dns", False), ("reset-before", True)])
@pytest.mark.requirement("refresh-ambiguous-never-in-band")
def test_a_request_that_never_left_may_come_again(action, is_told):
    scene = Scene()
    scene.present(1, "cron")
    scene.tell("cron", "fault", {"action": action, "at": f"POST {TOKEN}"})
    assert bool(again(scene, 1, 120)) is is_told


@pytest.mark.requirement("refresh-ambiguous-never-in-band")
def test_an_answer_to_another_request_settles_nothing():
    scene = Scene()
    scene.present(1, "cron")
    scene.tell("cron", "request", {"at": "POST https://other.test/token", "status": 200})
    assert again(scene, 1, 120)


def test_an_answer_settles_it_whoever_else_asks_is_another_and_so_is_a_new_start():
    scene = Scene()
    scene.server.answer_next("token", "503")
    scene.renew(1, "cron")
    assert not again(scene, 1, 120)
    scene = Scene()
    scene.present(1, "cron")
    assert not again(scene, 1, 5, actor="S")
    scene.tell("S", "session.retry", {"servers": ["a"], "after_seconds": 30})
    assert not again(scene, 1, 30, actor="S")


@pytest.mark.parametrize(("child", "is_told"), [("S/codex#2", False), ("S/keyctl", True)])
def test_what_a_session_asks_before_it_starts_its_runtime_again_is_no_repetition(child, is_told):
    scene = Scene()
    scene.present(1, "S")
    scene.tell("S", "spawn", {"child": child, "argv": ["it"]})
    scene.tell("S", "session.degraded", {"servers": ["a"]})
    assert bool(again(scene, 1, 1, actor="S")) is is_told


# --- entries of others


def claude(**entries: Any) -> str:
    """Claude's file with an account and these entries."""
    return json.dumps({"claudeAiOauth": {"accessToken": "x"}, "mcpOAuth": entries})


OURS = {"serverName": "a", "serverUrl": "https://a.test/mcp", "accessToken": "1"}
NAMESAKE = {"serverName": "a", "serverUrl": "https://elsewhere.test/mcp"}


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (claude(k=OURS), claude(), ""),
        (claude(k=OURS), claude(k={**OURS, "accessToken": "2"}), ""),
        (claude(k=NAMESAKE), claude(k=NAMESAKE, other=OURS), ""),
        (claude(k=NAMESAKE), claude(), "the entry k"),
        (claude(k=7), claude(), "the entry k"),
        (claude(), json.dumps({"mcpOAuth": {}}), "the entry claudeAiOauth"),
        (claude(), None, "the entry claudeAiOauth"),
        ("no json", "{}", ""),
        (None, claude(), ""),
        (json.dumps({"k": {"server_name": "b", "server_url": "https://b.test"}}), "{}", "the entry k"),
        (json.dumps({"k": {"server_name": "a", "server_url": "https://a.test/mcp"}}), "{}", ""),
    ],
)
@pytest.mark.requirement("store-other-blocks-kept")
def test_entries_of_nobody_in_the_catalog_stay(before, after, what):
    assert touched(CLAUDE, before, after, KNOWN) == what


def test_a_memory_of_refusals_and_pis_accounts_go_by_name():
    cache = "/home/agent/.claude/mcp-needs-auth-cache.json"
    assert touched(cache, '{"a": {"timestamp": 1}}', "{}", KNOWN) == ""
    assert touched(cache, '{"b": {"timestamp": 1}}', "{}", KNOWN) == "the entry b"
    ring = f"/run/keyring/service/{KNOWN.accounts[0]}"
    assert touched(ring, "x", None, KNOWN) == ""
    assert touched("/run/keyring/service/sha256-0", "x", None, KNOWN) == "the account of another server"


def test_a_rotation_of_the_account_may_change_the_account_alone():
    rotated_account = json.dumps({"claudeAiOauth": {"accessToken": "y"}, "mcpOAuth": {"k": NAMESAKE}})
    assert touched(CLAUDE, claude(k=NAMESAKE), rotated_account, KNOWN, may_change_account=True) == ""
    lost_entry = json.dumps({"claudeAiOauth": {"accessToken": "y"}, "mcpOAuth": {}})
    assert touched(CLAUDE, claude(k=NAMESAKE), lost_entry, KNOWN, may_change_account=True) == "the entry k"


# --- counts


def test_a_count_has_each_hole_once_and_a_lost_chain_was_walked_over():
    assert counted(["x", "", "x"], ["y"]) == {"x": Walked(2, 0), "y": Walked(1, 1)}
    total: dict[str, Walked] = {}
    summed(total, {"x": Walked(2, 1)})
    summed(total, {"x": Walked(1, 0), "y": Walked(1, 1)})
    assert total == {"x": Walked(3, 1), "y": Walked(1, 1)}


def test_a_report_tells_the_holes_and_the_chains_that_they_cost():
    report = play(load_scenario(find("response-lost-after-rotation")), "claude")
    assert report.verdict is Verdict.PASS, told(report)
    assert accepted(report)[0].startswith("  holes: answer-lost 1x; chains lost: answer-lost 1x ")
    document = run_document([(report, 0.0)], seed=None, variant=None, disputed=(), verdict=report.verdict, exit_code=0)
    assert document["runs"][0]["holes"] == {"answer-lost": {"met": 1, "lost": 1}}
    validate("run-report", document)


def test_a_run_without_a_hole_says_nothing_of_them():
    report = play(load_scenario(find("702")), "codex")
    assert (accepted(report), dict(report.holes)) == ([], {})


def test_a_campaign_counts_holes_and_keeps_them():
    family = family_named("token-chain")
    tally = Tally(family.name, 0)
    tally.add(batch_of(0, (run_one(family, 0, number) for number in range(25))))
    assert tally.holes["answer-lost"].met >= tally.holes["answer-lost"].lost
    again = tally_from(json.loads(json.dumps(tally.state())), "state")
    assert again.holes == dict(sorted(tally.holes.items()))


def test_an_account_that_rotates_is_a_job_of_its_own():
    text = load_scenario(find("account-rotation-third-writer")).text.replace('"rotate-account"', '"refresh"')
    report = play(read_scenario(text), "claude")
    assert report.verdict is Verdict.UNTESTABLE
