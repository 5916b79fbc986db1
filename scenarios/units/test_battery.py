"""The battery: every fault stays with its entry, and whoever is hurt all the same is found and shown."""

from __future__ import annotations

import pytest

from harness.gate.battery.course import Trouble
from harness.gate.battery.judging import HURT, Hurt
from harness.gate.battery.kinds import KINDS, NPX, REMOTE, STDIO, kinds_for
from harness.gate.battery.proof import proof_of, strikes_others
from harness.gate.battery.results import QUICK_ENTRIES, Mode
from harness.gate.battery.sessions import prepare_session
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from scenarios.benchmarks.catalogs import entries
from scenarios.units.battery_run import LOCAL, PACKAGE, rules_of, tried
from scenarios.units.battery_run import REMOTE as REMOTE_ENTRY
from scenarios.units.gate_run import context_of

SHARED_CACHE = {"NPM_CONFIG_CACHE": "/shared/cache"}
KEY_IN_URL = {"type": "streamable-http", "url": "https://keyed.example.com/mcp?key=${KEYED_KEY}"}


def test_every_fault_of_a_sound_catalog_stays_with_its_entry():
    trial = tried({"local": LOCAL, "package": PACKAGE, "remote": REMOTE_ENTRY})
    assert trial.troubles == ()
    spawns = 3 * sum(len(kinds_for(transport)) for transport in (STDIO, NPX, REMOTE))
    assert (trial.tried.spawns, trial.tried.entries, trial.tried.hurt, trial.tried.untried) == (spawns, 3, 0, 0)
    assert trial.tried.kinds == (7, 10)
    survivors = 3 * (2 * 1 + 1)  # noise on two of the entries, one slow install
    assert trial.tried.survived == survivors


def test_each_kind_of_fault_strikes_what_it_is_made_for():
    names = [kind.name for kind in KINDS]
    assert len(set(names)) == len(names) == len(kinds_for(NPX)) + len(kinds_for(REMOTE))
    assert {kind.name for kind in kinds_for(STDIO)} < {kind.name for kind in kinds_for(NPX)}


def test_an_entry_that_starts_nowhere_is_not_struck():
    trial = tried({"local": LOCAL, "none": {"type": "stdio"}})
    assert (trial.tried.entries, trial.tried.untried) == (1, 1)


def test_what_a_runtime_does_to_everybody_is_told_once_and_not_of_each_entry():
    trial = tried({"local": LOCAL, "other": {**LOCAL, "command": "/opt/tools/other"}})
    facts = {(fact.runtime.partition("@")[0], fact.rule): fact for fact in trial.tried.facts}
    assert trial.troubles == ()
    assert set(facts) == {("claude", "MH957"), ("codex", "MH956"), ("codex", "MH957"), ("pi", "MH956")}
    assert facts["claude", "MH957"].kinds == ("hangs-at-list",)
    assert facts["codex", "MH956"].seconds == pytest.approx(180, abs=2)
    assert facts["pi", "MH956"].seconds == pytest.approx(180, abs=2)


def test_a_longer_budget_of_its_own_is_no_finding():
    trial = tried({"slow": {**LOCAL, "startup_timeout_sec": 600}, "other": PACKAGE})
    assert trial.troubles == ()


@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_entries_that_install_into_one_tree_do_not_come_up_together(runtime):
    twins = {name: {**PACKAGE, "env": SHARED_CACHE, "args": ["-y", "pkg@1.0.0", name]} for name in ("one", "two")}
    trial = tried(twins, runtimes=[runtime])
    assert {rule for rule, _ in rules_of(trial)} >= {"MH955"}
    apart = {(each.entry, each.hurt.other) for each in trial.troubles if each.hurt.rule == "MH955"}
    assert apart == ({("two", "one"), ("one", "two")} if runtime == "claude" else {("two", "one")})


@pytest.mark.requirement("npx-collide-detects")
def test_entries_of_one_package_come_up_together_when_each_has_a_cache_of_its_own():
    twins = {name: {**PACKAGE, "args": ["-y", "pkg@1.0.0", name]} for name in ("one", "two")}
    assert rules_of(tried(twins, runtimes=["claude", "codex"])) == set()


def test_a_secret_in_the_url_is_found_in_the_log():
    trial = tried({"keyed": KEY_IN_URL, "local": LOCAL}, runtimes=["claude"])
    assert rules_of(trial) == {("MH953", "keyed")}
    first = trial.troubles[0]
    assert first.kind is None
    assert first.hurt.text == "the value of ${KEYED_KEY} is in the log mcp-logs-keyed"


def test_a_secret_in_a_header_or_in_env_comes_out_nowhere():
    header = {**REMOTE_ENTRY, "headers": {"Authorization": "Bearer ${HEADER_KEY}"}}
    env = {**LOCAL, "env": {"TOKEN": "${ENV_KEY}"}}
    assert rules_of(tried({"header": header, "env": env})) == set()


@pytest.mark.parametrize(
    ("tree", "runtime", "rule"),
    [
        ({"keyed": KEY_IN_URL, "local": LOCAL}, "claude", "MH953"),
        (
            {name: {**PACKAGE, "env": SHARED_CACHE, "args": ["-y", "pkg@1.0.0", name]} for name in ("one", "two")},
            "codex",
            "MH955",
        ),
    ],
)
def test_the_scenario_of_a_finding_shows_it_when_it_is_played(tree, runtime, rule):
    trouble = next(each for each in tried(tree, runtimes=[runtime]).troubles if each.hurt.rule == rule)
    proof = proof_of(trouble)
    assert proof is not None
    report = play(read_scenario(proof.text), trouble.runtime)
    assert report.verdict is Verdict.FAIL
    assert proof.events
    assert max(proof.events, default=0) < len(report.events)


@pytest.mark.parametrize("runtime", ["claude", "codex", "pi"])
def test_a_tool_that_is_named_anew_as_its_namesake_fails_is_no_loss(runtime):
    tree = {"a-b": PACKAGE, "a_b": {**PACKAGE, "args": ["-y", "other@1.0.0"]}}
    assert rules_of(tried(tree, runtimes=[runtime])) == set()


def test_no_scenario_is_offered_whose_fault_strikes_the_one_who_is_hurt():
    tree = {"one": PACKAGE, "two": {**PACKAGE, "args": ["-y", "other@1.0.0"]}, "three": LOCAL}
    session = prepare_session(context_of(tree, runtimes=["codex"]).runtimes[0], tree, {})
    assert session is not None

    def proof(kind: str, other: str) -> bool:
        struck = next(each for each in KINDS if each.name == kind)
        hurt = Hurt(HURT, other, "loses its tools, which are never offered")
        return proof_of(Trouble("one", session.runtime, struck, hurt, session)) is not None

    assert not proof("no-program", "two")
    assert not proof("not-executable", "two")
    assert not strikes_others(Trouble("one", session.runtime, KINDS[0], Hurt(HURT, "three", ""), session))


def test_a_big_catalog_is_tried_by_shape_and_every_entry_is_struck_once():
    tree = entries(QUICK_ENTRIES + 8)
    trial = tried(tree, runtimes=["codex"], mode=Mode.QUICK)
    shapes = 4
    assert (trial.tried.shapes, trial.tried.entries) == (shapes, len(tree))
    whole = 2 * len(kinds_for(NPX)) + 2 * len(kinds_for(REMOTE))
    assert trial.tried.spawns == whole + len(tree) - shapes
    assert trial.troubles == ()


def test_the_full_battery_takes_no_entry_for_another():
    tree = entries(QUICK_ENTRIES + 1)
    trial = tried(tree, runtimes=["codex"], struck=list(tree)[:3], mode=Mode.FULL)
    assert trial.tried.shapes is None
    assert trial.tried.spawns == 2 * len(kinds_for(NPX)) + len(kinds_for(REMOTE))


def test_only_what_was_touched_is_struck_but_everybody_may_be_a_partner():
    twins = {name: {**PACKAGE, "env": SHARED_CACHE, "args": ["-y", "pkg@1.0.0", name]} for name in ("one", "two")}
    trial = tried(twins, runtimes=["codex"], struck=["two"])
    assert trial.tried.entries == 1
    assert ("MH955", "two") in rules_of(trial)


def test_the_same_catalog_gives_the_same_trial():
    tree = {"local": LOCAL, "package": PACKAGE, "keyed": KEY_IN_URL}
    assert tried(tree) == tried(tree)
