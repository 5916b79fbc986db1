"""Invariants that are judged in every run, accepted holes, and known-bad variants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.cli.explaining.kind import Kind, labelled, listed, paragraphs, text_of
from harness.cli.explaining.requirements import requirement_line
from harness.cli.explaining.shipped import scenarios, showing, variants, walking
from harness.requirements.holes import load_holes
from harness.requirements.manifest import load_manifest
from harness.requirements.variants import Variant
from harness.scenario import invariants
from harness.scenario.families import families
from harness.scenario.model import InvariantHolds, Scenario


class Behind(NamedTuple):
    """What stands behind an invariant: the rules that it watches over, and variants that break it, each with a shipped
    scenario in which it does. Judging all pairs takes seconds, so they are written down and a test plays them.
    """

    rules: tuple[str, ...]
    broken_by: Mapping[str, str]


BEHIND: Mapping[str, Behind] = {
    "no-secret-shown": Behind(
        ("reconcile-adopting-emits-log", "refresh-log-line-names-server"),
        {"reconcile.the_line_shows_the_entry": "pi-rotates", "refresh.the_line_holds_the_token": "222"},
    ),
    "only-struck-servers-fail": Behind(
        ("failure-verdict-independent", "npx-isolate-cold-race"),
        {
            "npx.isolates_nobody": "npx-equal-entries-cold",
            "spawn_gate.the_memory_of_refusals_is_left": "689",
            "store.only_the_write_is_locked": "two-spawns-one-store",
        },
    ),
    "installs-never-share-a-tree": Behind(
        ("npx-isolate-each", "npx-isolate-cold-race"),
        {"npx.isolates_nobody": "npx-equal-entries-cold", "campaign.codex_entries_are_not_pinned": "595"},
    ),
    "user-npm-untouched": Behind(("npx-pin-without-args",), {"campaign.codex_entries_are_not_pinned": "595"}),
    "no-orphans": Behind((), {"left_out_servers.a_childs_words_are_not_read": "stdio-credential-exit"}),
    "no-spent-token-presented": Behind(
        ("refresh-chain-never-burned",),
        {
            "chains.nothing_is_adopted": "idle-longer-than-the-tokens-life",
            "reconcile.codex_is_left_out_by_name": "runtime-rotates",
            "reconcile.whatever_lies_under_the_key_is_the_rows": "two-configs-one-entry",
        },
    ),
    "no-refresh-repeated": Behind(
        ("refresh-ambiguous-never-in-band",),
        {"refresh.an_ambiguous_failure_is_repeated": "response-lost-after-rotation"},
    ),
    "rows-move-forward": Behind(
        ("reconcile-chain-advances-only", "reconcile-adopt-strictly-later-expiry"),
        {"reconcile.another_pair_is_enough": "idle-longer-than-the-tokens-life"},
    ),
    "stores-move-forward": Behind(
        ("refresh-chain-never-burned",),
        {
            "chains.nothing_is_adopted": "pi-rotates",
            "writers.whatever_was_handed_in_is_replaced": "pi-handed-over-by-two",
        },
    ),
    "foreign-entries-untouched": Behind(
        ("store-other-blocks-kept",), {"writers.stores_are_written_in_place": "store-full"}
    ),
    "retired-stays-retired": Behind(
        ("reconcile-retired-credential-stays-dead",), {"gate_retire.the_row_only_expires": "222"}
    ),
    "every-end-is-good": Behind(
        ("gate-rejected-grant-resolves",), {"resume_authorization.the_session_stays_failed": "oauth-parked-follow-up"}
    ),
    "losses-are-named": Behind(
        ("refresh-chain-never-burned",),
        {
            "chains.nothing_is_adopted": "deploy-restart-stale-token",
            "oauth_flow.the_bots_token_comes_first": "slack",
            "reconcile.whatever_lies_under_the_key_is_the_rows": "two-configs-one-entry",
        },
    ),
}


def invariant_explanation(name: str) -> str:
    """What holds, of which rules, and what breaks it."""
    judge = dict(zip(invariants.names(), invariants.invariants(), strict=True))[name]
    behind = BEHIND[name]
    lines = labelled("holds", one_line(judge.__doc__))
    lines += paragraphs("rules", map(requirement_line, behind.rules))
    lines += paragraphs(
        "broken by", (f"{bug}: {in_words(bug)} (scenario {where})" for bug, where in behind.broken_by.items())
    )
    lines += listed("asked in", [it.id for it in scenarios().values() if asks_for(it, name)])
    bug, where = next(iter(behind.broken_by.items()))
    commands = {"see it": f"mcp-harness run {where} --variant {bug}"}
    return text_of(f"{name}  invariant, judged in every run of a scenario", lines, commands)


def asks_for(scenario: Scenario, name: str) -> bool:
    """Whether a scenario asks that an invariant was put to the test."""
    checks = (expected.check for expected in scenario.expectations)
    return any(isinstance(check, InvariantHolds) and check.name == name for check in checks)


def in_words(variant: str) -> str:
    """What a variant does, as far as variants are there."""
    found = variants().get(variant)
    return one_line(found.replacement.__doc__) if found else "a known-bad variant of the source tree"


def one_line(text: str | None) -> str:
    """The first paragraph of a docstring."""
    return " ".join((text or "").strip().split("\n\n")[0].split())


# --- holes


def hole_explanation(name: str) -> str:
    """What happens, why no rule closes it, which change would, and who walks into it."""
    hole = load_holes()[name]
    lines = [*labelled("happens", hole.what), *labelled("loses", hole.loses)]
    why = "no rule of the orchestrator's documents forbids what anybody did: it is told and counted, and fails nothing"
    lines += labelled("why open", why)
    lines += paragraphs("rules", map(requirement_line, named_rules(" ".join(hole))))
    lines += labelled("closes it", hole.closes)
    closing = [each for each in variants().values() if name in each.closes]
    lines += paragraphs("proposals", (f"{it.name}: {one_line(it.replacement.__doc__)}" for it in closing))
    walked = sorted(walking().get(name, ()), key=lambda scenario: name not in scenario)
    lines += listed("scenarios", walked)
    lines += labelled("more", "how often it is met, and what closes it: harness/scenario/HOLES.md")
    commands = {"play it": f"mcp-harness run {walked[0]}"} if walked else {}
    shown = next(((it.id, bug.name) for each in closing for it, bug in showing(each.name) if it.id in walked), None)
    shown = shown or next(((it.id, bug.name) for each in closing for it, bug in showing(each.name)), None)
    if shown is not None:
        commands["closed"] = f"mcp-harness run {shown[0]} --variant {shown[1]}"
    return text_of(f"{name}  accepted hole", lines, commands)


def named_rules(text: str) -> list[str]:
    """The requirements that a text names."""
    return [word for word in dict.fromkeys(re.findall(r"[a-z0-9-]+", text)) if word in load_manifest().requirements]


# --- variants


def meant_variant(text: str) -> str:
    """A variant with dashes, or without its file where only one is called so."""
    wanted = text.casefold().replace("-", "_")
    found = [name for name in variants() if name.casefold() == wanted or name.partition(".")[2].casefold() == wanted]
    return found[0] if len(found) == 1 else ""


def variant_explanation(name: str) -> str:
    """What it does, what catches it, and which scenarios show it."""
    it = variants()[name]
    lines = [*labelled("does", one_line(it.replacement.__doc__)), *labelled("in place of", it.target)]
    lines += paragraphs("caught by", map(requirement_line, it.catches))
    lines += paragraphs("closes", (f"{hole}: {load_holes()[hole].what}" for hole in it.closes))
    lines += paragraphs("shown by", shown_by(it))
    breaking = [(invariant, where[name]) for invariant, (_, where) in BEHIND.items() if name in where]
    lines += paragraphs("breaks", (f"{invariant} (scenario {scenario})" for invariant, scenario in breaking))
    lines += listed("families", [each.name for each in families().values() if name in each.old_bugs])
    scenario = next((each.id for each, _ in showing(name)), next((where for _, where in breaking), ""))
    commands = {"play it": f"mcp-harness run {scenario} --variant {name}"} if scenario else {}
    commands |= {"catch it": f"mcp-harness dev variants {name}"} if it.catches else {}
    what = "known-bad variant" if it.catches else "proposal: a change that would close accepted holes, no bug"
    return text_of(f"{name}  {what}", lines, commands)


def shown_by(variant: Variant) -> Iterator[str]:
    """The scenarios that are no more the same under it."""
    for scenario, bug in showing(variant.name):
        yield f"{scenario.id} ({scenario.title}): {bug.shows}"


INVARIANT = Kind("invariant", invariants.names, invariant_explanation)
HOLE = Kind("accepted hole", load_holes, hole_explanation)
VARIANT = Kind("known-bad variant", variants, variant_explanation, meant_variant)
