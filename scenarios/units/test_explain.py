"""`mcp-harness explain` of everything that reports name."""

from __future__ import annotations

import ast
import datetime
import inspect
import json
import re
from itertools import product

import pytest

from harness.canary.claims import all_probes
from harness.cli import main
from harness.cli.explaining import shipped
from harness.cli.explaining.chains import BEHIND
from harness.cli.explaining.gate import allowing
from harness.cli.explaining.kinds import KINDS, explained
from harness.gate.allowances import AllowanceBook
from harness.gate.model import Finding, Place, Severity
from harness.gate.rule import CATALOG_CHECKS, COMPARISON_CHECKS, ENTRY_CHECKS, RULES, Asked
from harness.gate.rules import load_rules
from harness.inputs.settings import Allow
from harness.requirements.holes import load_holes
from harness.requirements.manifest import load_manifest
from harness.scenario import invariants
from harness.scenario.production import play
from harness.scenario.rendering import list_document, run_document
from harness.scenario.variants import find_variant, in_place
from harness.scenario.verdicts import Verdict
from scenarios.units.canary_results import upgrade
from scenarios.units.gate_run import context_of, events_of, found, settings_of

load_rules()
REQUIREMENTS = load_manifest().requirements
CLAIMS = {claim.id: claim for probe in all_probes() for claim in probe.claims}


def flat(text):
    """A text without its lines' ends."""
    return " ".join(text.split())


def heads(text):
    """The ids with which the texts of an output begin, and of what kind each is said to be."""
    return [re.split(r"  |: ", line)[:2] for line in text.splitlines() if line and line[0] != " "]


def everything():
    """Every id with its kind."""
    return [(kind, name) for kind in KINDS for name in kind.ids()]


@pytest.mark.parametrize("kind", KINDS, ids=[kind.name for kind in KINDS])
def test_every_id_of_every_kind_is_explained_in_lines_that_fit(kind):
    assert kind.ids()
    for name in kind.ids():
        text = kind.explain(name)
        assert text.startswith(f"{name}  "), name
        told = [line for line in text.splitlines()[1:] if "mcp-harness" not in line and " " in line.strip()[14:]]
        assert max(map(len, told), default=0) <= 100, name
        assert text.count("\n") > 1, f"nothing is told of {name}"


def test_an_id_of_two_kinds_is_told_as_both():
    text = explained("Hole-Store-Of-Another-Runtime")
    assert [head[1].partition(":")[0] for head in heads(text)] == [
        "scenario",
        "state that a campaign must have reached, or it has proved less than it seems",
    ]
    assert [head[0] for head in heads(explained("version"))] == ["version", "version"]
    assert len(heads(explained("codex.wait.optional"))) == 1


def test_every_id_is_found_by_the_kind_that_it_is_of():
    for kind, name in everything():
        assert kind.find(name.upper()) == name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "no-spent-token-presented",
            (
                "invariant",
                "holds Nobody presents",
                "rules refresh-chain-never-burned: ",
                "broken by chains.nothing_is_ad",
            ),
        ),
        ("losses-are-named", ("invariant", "asked in", "see it mcp-harness run deploy-restart-stale-token --variant")),
        ("every-end-is-good", ("invariant", "broken by resume_authorization.the_session_stays_failed: ")),
        (
            "refreshed-under-a-live-runtime",
            (
                "accepted hole",
                "happens The orchestrator, or another session, renews",
                "why open no rule of the orchestrator's documents",
                "proposals closing.refresh_under_the_runtimes_lock: ",
                "play it mcp-harness run hole-refreshed-under-a-live-runtime",
                "closed mcp-harness run hole-refreshed-under-a-live-runtime --variant closing.",
            ),
        ),
        (
            "chains.nothing_is_adopted",
            (
                "known-bad variant",
                "does The row is written over whatever a runtime has renewed.",
                "caught by reconcile-survives-relaunch: ",
                "shown by clock-skew-of-a-provider (",
                "breaks no-spent-token-presented (scenario ",
            ),
        ),
        (
            "702",
            (
                "scenario: A cold npx server that needs 45 s is not dropped by Codex",
                "decides prepare-codex-default-stdio: ",
                "old bugs scenario.codex_is_left_to_its_own_budget: playwright is dropped at 30 s",
                "play it mcp-harness run 702",
            ),
        ),
        (
            "optional_grace_ms",
            (
                "line of the profiles of codex",
                "in the part 'starting servers'",
                "0 means that the first request waits each server's own budget",
                "codex-0.146.0 (pinned): 0 (",
                "codex-0.169.0: 1000 (servers without",
                "claims codex.wait.optional, ",
            ),
        ),
        (
            "openai/codex#17265",
            (
                "bug of a runtime",
                "does not use a stored refresh token",
                "claims codex.refresh.expired",
                "codex-17265: ",
            ),
        ),
        ("#595", ("incident", "rules npx-cache-pinned-per-entry: ", "gate MH401", "play it mcp-harness run 595")),
        ("writers-codex-workaround-bugs", ("requirement", "incidents openai/codex#15122", "codex.login.kept")),
        ("reconcile-survives-relaunch", ("variants chains.nothing_is_adopted", "scenarios deploy-restart-stale-token")),
        ("codex@0.169.0", ("version of a runtime", "others server_name_pattern", "gate --runtime codex@0.169.0")),
        ("token-chain", ("family of scenarios", "adopted: the orchestrator takes over")),
        ("required-first", ("probe of the canary", "claims codex.wait.optional")),
        ("refresh", ("area of ", "status done")),
        ("startup-timeout.normalize", ("operation of the test vectors", "startup-timeout-integer-5-600: ")),
    ],
)
def test_a_text_says_what_whoever_met_the_id_needs_to_know(text, told):
    whole = flat(explained(text))
    places = [whole.find(part) for part in told]
    assert -1 not in places, dict(zip(told, places, strict=True))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("nothing-is-adopted", "chains.nothing_is_adopted"),
        ("chains.nothing-is-adopted", "chains.nothing_is_adopted"),
        ("#702", "#702"),
        ("222", "222"),
        ("113", "113"),
        ("195", "#195"),
        ("#17265", "openai/codex#17265"),
        ("codex-0.169.0", "codex@0.169.0"),
        ("claude", "claude@2.1.268"),
    ],
)
def test_other_spellings_mean_what_the_other_commands_mean_by_them(text, meant):
    assert explained(text).split("  ")[0] == meant


def test_a_claim_says_what_follows_and_what_to_call_next_with_the_versions():
    text = flat(explained("codex.wait.optional"))
    assert "if not so no longer true of that version: prepare-canary-budgets, prepare-hang-costs-whole-budget" in text
    assert (
        "; that touches entries with a budget its fake needs a profile of its own: 2 lines (optional_grace_ms" in text
    )
    assert "ask it mcp-harness canary codex@0.169.0 --claims codex.wait.optional" in text
    assert "since when mcp-harness canary --bisect codex.wait.optional 0.146.0..0.169.0" in text
    assert "catalog mcp-harness gate --runtime codex@0.169.0" in text
    alike = explained("codex.login.kept")
    assert "mcp-harness canary codex@0.146.0 --claims codex.login.kept" in alike
    assert "--bisect" not in alike


def test_without_a_source_tree_the_variants_are_not_there_and_the_rest_is(monkeypatch):
    monkeypatch.setattr(shipped, "find_source_root", lambda: None)
    shipped.variants.cache_clear()
    try:
        assert "a known-bad variant of the source tree" in flat(explained("losses-are-named"))
        assert "702  scenario" in explained("702")
    finally:
        shipped.variants.cache_clear()


# --- what reports name


def ids_in(document, keys):
    """All texts that stand in a document behind one of these keys, alone or in a list."""
    if isinstance(document, dict):
        for key, value in document.items():
            if key in keys:
                yield from (value if isinstance(value, list) else value.keys() if isinstance(value, dict) else [value])
            else:
                yield from ids_in(value, keys)
    elif isinstance(document, list):
        for value in document:
            yield from ids_in(value, keys)


def outputs(capsys, *words):
    """The document of a command."""
    assert main([*words, "--format", "json"]) in (0, 1)
    return json.loads(capsys.readouterr().out)


def test_every_id_in_a_report_of_scenarios_is_explained():
    scenario = shipped.scenarios()["hole-refreshed-under-a-live-runtime"]
    reports = [(play(scenario, runtime), 0.0) for runtime in scenario.runtimes]
    document = run_document(reports, seed=0, variant=None, disputed=(), verdict=Verdict.PASS, exit_code=0)
    named = {
        *ids_in([run["invariants"] for run in document["runs"]], {"name"}),
        *ids_in(document, {"holes", "runtime"}),
    }
    named |= {
        *ids_in(list_document(list(shipped.scenarios().values())), {"id", "incidents", "requirements", "old_bugs"})
    }
    assert {"losses-are-named", "refreshed-under-a-live-runtime", "#222", "702", "chains.nothing_is_adopted"} <= named
    assert all(map(explained, named))


def test_every_id_in_the_lists_of_variants_and_requirements_is_explained(capsys):
    listed = outputs(capsys, "dev", "variants", "--list", "chains")
    named = {*ids_in(listed, {"name", "catches", "closes"})}
    named |= {each["name"] for each in outputs(capsys, "dev", "vectors", "list")["operations"]}
    assert "chains.nothing_is_adopted" in named
    assert "startup-timeout.normalize" in named
    assert all(map(explained, named))


def test_every_id_in_a_report_of_the_gate_is_explained(capsys):
    document = outputs(capsys, "gate")
    named = {*ids_in(document, {"rule"}), *document["runtimes"]}
    assert {"MH431", "MH956", "claude@2.1.268"} <= named
    assert all(map(explained, named))


def test_every_id_in_a_report_of_the_canary_is_explained():
    probes = {probe.name for probe in all_probes()}
    lines = {line for claim in CLAIMS.values() for line in claim.lines}
    bugs = {bug for claim in CLAIMS.values() for bug in claim.shows}
    assert upgrade().checked
    assert all(map(explained, probes | lines | bugs))


# --- invariants


def test_every_invariant_has_rules_and_variants_that_break_it():
    assert set(BEHIND) == set(invariants.names())
    assert all(rule in REQUIREMENTS for behind in BEHIND.values() for rule in behind.rules)
    assert all(behind.broken_by for behind in BEHIND.values())


@pytest.mark.parametrize(
    ("name", "variant", "scenario"),
    [(name, variant, where) for name, behind in BEHIND.items() for variant, where in behind.broken_by.items()],
)
def test_a_variant_that_is_said_to_break_an_invariant_does_in_the_scenario_that_is_named(name, variant, scenario):
    it = shipped.scenarios()[scenario]

    def fallen():
        reports = [play(it, runtime) for runtime in it.runtimes]
        return {each.name for report in reports for each in report.invariants if each.holds is False}

    assert name not in fallen()
    with in_place(find_variant(variant)):
        assert name in fallen()


def test_every_hole_has_a_scenario_that_walks_into_it():
    assert set(shipped.walking()) == set(load_holes())


# --- advice


def is_ever_found(rule):
    """Whether a rule of the gate can find anything: one that never looks at what it is given cannot."""
    if rule in COMPARISON_CHECKS:
        return True
    check = ENTRY_CHECKS.get(rule) or CATALOG_CHECKS.get(rule)
    if check is None:
        return False
    (body,) = ast.parse(inspect.getsource(check).lstrip()).body
    names = {node.id for node in ast.walk(body) if isinstance(node, ast.Name)}
    return bool(names & set(inspect.signature(check).parameters))


def test_an_allowance_is_offered_for_what_can_be_found_and_for_nothing_else():
    offered = {rule.id for rule in RULES.values() if allowing(rule).startswith("[[allow]]")}
    assert offered == {identifier for identifier in RULES if is_ever_found(identifier)}
    assert {"MH001", "MH002", "MH956", "MH957"} & offered == set()
    assert "nothing to allow: " in explained("MH956")


@pytest.mark.parametrize("identifier", sorted(RULES))
def test_whoever_does_what_explain_says_of_an_allowance_is_not_warned_of_it(identifier):
    advice = allowing(RULES[identifier])
    if "nothing to allow" in advice:
        return
    names_entry = "(where the finding names one)" not in advice
    assert names_entry == (identifier not in CATALOG_CHECKS)
    for entry in ["a"] if names_entry else ["a", None]:
        allow = Allow(rule=identifier, entry=entry, reason="because", until=datetime.date(2999, 1, 1))
        book = AllowanceBook(settings_of(allow), datetime.date(2026, 7, 1))
        place = Place("mcp.json", 1, 1, 1, 1, "/a")
        finding = Finding(identifier, Severity.ERROR, place, entry, (), "", "", (), "0" * 16)
        assert book.apply(finding).allowance is not None
        for whole, asked in product((True, False), (tuple(Asked), (Asked.ALWAYS,))):
            left = book.leftovers(whole_catalog=whole, judged=frozenset("a"), altered=frozenset("a"), asked=asked)
            assert list(left) == []


@pytest.mark.parametrize(
    ("identifier", "stale_when_asked"),
    [("MH310", {"known": ["X"]}), ("MH311", {}), ("MH313", {}), ("MH312", None), ("MH708", None), ("MH950", None)],
)
def test_an_allowance_for_a_rule_that_this_run_does_not_ask_is_no_stale_one(identifier, stale_when_asked):
    settings = settings_of(Allow(rule=identifier, reason="because"))
    tree = {"a": {"type": "stdio", "command": "tool"}}

    def warned(**given):
        return [finding.rule for finding in found(events_of(context_of(tree, **given), settings=settings))]

    asked_with_names = identifier == "MH310"
    if stale_when_asked is not None:
        assert "MH001" in warned(**stale_when_asked)
    other = {} if asked_with_names else {"known": ["X"]}
    assert "MH001" not in warned(**other)


def test_an_allowance_for_what_is_no_finding_says_so():
    settings = settings_of(Allow(rule="MH956", reason="because"))
    events = events_of(context_of({"a": {"type": "stdio", "command": "tool"}}), settings=settings)
    (told,) = [finding.message for finding in found(events) if finding.rule == "MH001"]
    assert told.endswith(
        "matches no finding (nothing to allow: it is told as known of the runtimes, is no finding and fails nothing)"
    )


def test_every_id_that_a_claim_of_the_canary_names_is_explained():
    for claim in CLAIMS.values():
        text = flat(explained(claim.id))
        assert flat(claim.says) in text
        for name in claim.relied_on:
            assert f"{name}: {flat(REQUIREMENTS[name].statement)[:200]}" in text


def test_every_requirement_is_explained_in_lines_that_fit():
    for requirement in REQUIREMENTS.values():
        text = explained(requirement.id)
        assert text.startswith(f"{requirement.id}  requirement of the area {requirement.area}, {requirement.level}\n")
        assert max(len(line) for line in text.splitlines() if " " in line.strip()[14:]) <= 100


def test_a_requirement_names_the_claims_and_rules_that_rest_on_it(capsys):
    assert main(["explain", "writers-codex-workaround-bugs", "codex.login.kept"]) == 0
    one, other = flat(capsys.readouterr().out).split(" ask it ")[0].split("codex.login.kept claim of the canary")
    assert "claims codex.refresh.issuer-expired, codex.login.kept, codex.login.renewed" in one
    assert "codex-0.146.0 holds: {" in other


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("codex.login.kep", "codex.login.kept"),
        ("prepare-canary-budget", "prepare-canary-budgets"),
        ("MH2003", "MH203"),
        ("losses-are-name", "losses-are-named"),
        ("refreshed-under-live-runtime", "refreshed-under-a-live-runtime"),
        ("chain.nothing_is_adopted", "chains.nothing_is_adopted"),
        ("optional_grace", "optional_grace_ms"),
        ("runtime-rotate", "runtime-rotates"),
        ("openai/codex#1726", "openai/codex#17265"),
    ],
)
def test_a_slip_gets_the_nearest_id_of_any_kind(capsys, text, near):
    assert main(["explain", text]) == 2
    error = capsys.readouterr().err
    assert error == f"mcp-harness: error: nothing is called {text}. Did you mean {near}?\n"


def test_ids_may_be_written_in_any_case(capsys):
    assert main(["explain", "mh203", "CODEX.LOGIN.KEPT", "Writers-Codex-Workaround-Bugs"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if "  " in line and line[0] != " "] == [
        "MH203",
        "codex.login.kept",
        "writers-codex-workaround-bugs",
    ]
