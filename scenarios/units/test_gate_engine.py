"""The gate's course: what is asked of which entry, what is shown in which order, and when it fails."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

from harness.gate.engine import covers
from harness.gate.events import Finished, Found, Judged, Started
from harness.gate.fixes import apply_edits
from harness.gate.model import Finding, Place, Severity
from harness.gate.spawn import marker, runtime_named, spawn_entry
from harness.inputs.settings import Allow
from scenarios.units.gate_fixture import only
from scenarios.units.gate_run import (
    REMOTE,
    STDIO,
    TODAY,
    as_text,
    changes,
    context_of,
    events_of,
    finished,
    found,
    rules,
    settings_of,
)

SCHEMA = {"$schema": "https://pulsemcp.github.io/air/schemas/mcp.schema.json"}
OTHER = {**STDIO, "args": ["-y", "other@1.0.0"]}
BUNX = {**STDIO, "command": "bunx"}  # MH401, a warning
FLOATING = {**STDIO, "args": ["-y", "pkg"]}  # MH431, a note on the catalog
BROKEN: dict[str, Any] = {"type": "stdio"}  # MH201, an error
YESTERDAY, TOMORROW = TODAY - datetime.timedelta(days=1), TODAY + datetime.timedelta(days=1)


def judged(events: list[Any]) -> list[Judged]:
    return [event for event in events if isinstance(event, Judged)]


def test_the_stream_begins_with_started_and_ends_with_finished():
    events = events_of(context_of({**SCHEMA, "a": STDIO, "b": BROKEN}, {"main": {}}))
    kinds = [type(event) for event in events]
    assert kinds[:3] == [Started, Judged, Judged]
    assert kinds[3:] == [Found] * (len(kinds) - 4) + [Finished]
    assert events[0][:4] == ("mcp.json", 2, "roots.json", 1)
    assert events[0][4:7] == (("claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1"), True, None)


def test_an_untouched_entry_is_placed_but_never_spawned(monkeypatch):
    spawned: list[tuple[str, str]] = []

    def counted(view, runtime, context):
        spawned.append((view.name, runtime.family))
        return spawn_entry(view, runtime, context)

    monkeypatch.setattr("harness.gate.context.spawn_entry", counted)
    tree = {**SCHEMA, "a": STDIO, "b": {**REMOTE, "headers": {"X": "1"}}, "c": OTHER}
    changed = {**tree, "c": {**OTHER, "title": "C"}}
    roots = {"main": {"default_mcp_servers": ["a"]}}
    events = events_of(context_of(changed, roots), context_of(tree, roots))
    assert {name for name, _ in spawned} == {"c"}
    assert len(spawned) == 6  # three runtimes, both sides
    assert [(e.judgement.entry, e.judgement.touched, len(e.judgement.outcomes)) for e in judged(events)] == [
        ("a", False, 0),
        ("b", False, 0),
        ("c", True, 3),
    ]
    assert finished(events).judged == 1
    spawned.clear()
    events_of(context_of(changed), context_of(tree), every_entry=True)
    assert {name for name, _ in spawned} == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("before", "after", "touched"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),  # the order of headers is part of a credential's key
        ({"a": True}, {"a": 1}, True),
        ({"a": "x"}, {"a": "x"}, False),
        ({"a": [1, 2]}, {"a": [2, 1]}, True),
        ({"a": None}, {}, True),
    ],
)
def test_an_entry_is_touched_where_it_reads_otherwise_than_in_the_base(before, after, touched):
    events = events_of(context_of({"s": {**REMOTE, "x": after}}), context_of({"s": {**REMOTE, "x": before}}))
    assert [event.judgement.touched for event in judged(events)] == [touched]


def test_a_reformatted_and_reordered_catalog_has_no_touched_entry():
    tree = {**SCHEMA, "a": STDIO, "b": REMOTE}
    turned = {"b": REMOTE, "a": STDIO, **SCHEMA}
    events = events_of(context_of(as_text(turned, None)), context_of(as_text(tree, 7)))
    assert finished(events).judged == 0
    assert found(events) == []


def test_findings_come_worst_first_then_in_file_order_the_catalog_before_other_files():
    roots = {"main": {"default_mcp_servers": ["ghost"], "default_subagent_roots": ["nobody"]}}
    tree = {**SCHEMA, "z": BUNX, "y": BROKEN, "x": FLOATING, "w": BUNX}
    settings = settings_of(Allow(rule="MH102", reason="none"))
    events = events_of(context_of(tree, roots), settings=settings)
    order = [(f.severity.rank, f.place.file != "mcp.json", f.place.line) for f in found(events)]
    assert order == sorted(order)
    assert {f.place.file for f in found(events)} == {"mcp.json", "roots.json", "mcp-harness.toml"}
    assert [f.rule for f in found(events) if f.severity is Severity.WARNING] == ["MH401", "MH401", "MH001", "MH603"]
    assert [f.rule for f in found(events) if f.severity is Severity.NOTE] == ["MH431"]


@pytest.mark.parametrize(
    ("tree", "fail_on", "code"),
    [
        ({"a": BROKEN}, "error", 1),
        ({"a": BUNX}, "error", 0),
        ({"a": BUNX}, "warning", 1),
        ({"a": FLOATING}, "warning", 0),
        ({"a": FLOATING}, "note", 1),
        ({"a": STDIO}, "note", 0),
        ({"a": BROKEN}, "note", 1),
    ],
)
def test_the_verdict_follows_the_worst_finding_and_the_level(tree, fail_on, code):
    end = finished(events_of(context_of({**SCHEMA, **tree}), fail_on=fail_on))
    assert (end.exit_code, end.verdict) == (code, "FAIL" if code else "PASS")


def test_the_counts_leave_out_what_an_allowance_lets_pass():
    settings = settings_of(Allow(rule="MH401", entry="a", reason="old"))
    events = events_of(context_of({**SCHEMA, "a": BUNX, "b": BUNX}), settings=settings, fail_on="warning")
    end = finished(events)
    assert (end.errors, end.warnings, end.notes, end.allowed, end.exit_code) == (0, 1, 0, 1, 1)
    passed = only([f for f in found(events) if f.allowance])
    assert passed.allowance is not None
    assert (passed.entry, passed.allowance) == ("a", ("mcp-harness.toml:1:1", "old", None))


ALLOWANCES = [
    ("one entry", [Allow(rule="MH401", entry="a", reason="r")], ["a"], []),
    ("any entry", [Allow(rule="MH401", reason="r")], ["a", "b"], []),
    ("another rule", [Allow(rule="MH101", reason="r")], [], ["MH001"]),
    ("an entry that is not there", [Allow(rule="MH401", entry="zz", reason="r")], [], ["MH001"]),
    ("its last day", [Allow(rule="MH401", reason="r", until=TODAY)], ["a", "b"], []),
    ("a day too late", [Allow(rule="MH401", reason="r", until=YESTERDAY)], [], ["MH002"]),
    ("over and of no use", [Allow(rule="MH101", reason="r", until=YESTERDAY)], [], ["MH002"]),
    (
        "one for an entry beside one for all",
        [Allow(rule="MH401", entry="a", reason="r"), Allow(rule="MH401", reason="s")],
        ["a", "b"],
        [],
    ),
    (
        "an old one beside a new one",
        [Allow(rule="MH401", reason="r", until=YESTERDAY), Allow(rule="MH401", reason="s", until=TOMORROW)],
        ["a", "b"],
        ["MH002"],
    ),
]


@pytest.mark.parametrize(
    ("allow", "passed", "about"), [case[1:] for case in ALLOWANCES], ids=[c[0] for c in ALLOWANCES]
)
def test_an_allowance_lets_its_findings_pass_and_is_reported_when_it_is_of_no_use(allow, passed, about):
    events = events_of(context_of({**SCHEMA, "a": BUNX, "b": BUNX}), settings=settings_of(*allow))
    assert [f.entry for f in found(events) if f.allowance] == passed
    assert [f.rule for f in found(events) if f.rule < "MH100"] == about


def test_a_second_allowance_for_one_finding_is_no_stale_one():
    allow = Allow(rule="MH401", entry="a", reason="r"), Allow(rule="MH401", reason="s")
    assert rules(events_of(context_of({**SCHEMA, "a": BUNX}), settings=settings_of(*allow))) == ["MH401"]


@pytest.mark.parametrize(
    ("entry", "stale"),
    [("same", False), ("changed", True), ("gone", True), (None, False)],
)
def test_with_a_base_an_allowance_is_stale_only_where_this_run_could_have_used_it(entry, stale):
    base = {**SCHEMA, "same": BUNX, "changed": BUNX, "gone": BUNX}
    head = {**SCHEMA, "same": BUNX, "changed": OTHER}
    settings = settings_of(Allow(rule="MH401", entry=entry, reason="r"))
    assert ("MH001" in rules(events_of(context_of(head), context_of(base), settings=settings))) is stale
    everything = rules(events_of(context_of(head), context_of(base), settings=settings, every_entry=True))
    assert ("MH001" in everything) is (entry in ("changed", "gone"))


def test_an_allowance_for_a_finding_that_the_comparison_hides_is_not_stale():
    roots = {"main": {"default_mcp_servers": ["ghost"]}}
    settings = settings_of(Allow(rule="MH601", reason="r"))
    head, base = context_of({**SCHEMA, "a": OTHER}, roots), context_of({**SCHEMA, "a": STDIO}, roots)
    assert rules(events_of(head, base, settings=settings)) == ["MH852"]


def test_a_finding_that_only_repeats_another_is_left_out_on_the_runtimes_of_its_cause():
    tree = {**SCHEMA, "a[b]": {**STDIO, "args": ["-y", "p@1.0.0"]}}
    said = rules(events_of(context_of(tree)))
    assert "MH701" in said
    assert "MH805" not in said
    events = events_of(context_of({**SCHEMA, "a[b]": {**STDIO, "env": {"T": "${T}", "U": "${T"}}}))
    assert "MH805" not in rules(events)


def test_a_cause_on_one_runtime_speaks_for_no_other():
    def finding(rule: str, *runtimes: str) -> Finding:
        return Finding(rule, Severity.ERROR, Place("f", 1, 1, 1, 1, ""), "a", runtimes, "", "", (), "")

    on_codex = finding("MH701", "codex@0.146.0")
    assert covers(on_codex, finding("MH805", "codex@0.146.0"))
    assert not covers(on_codex, finding("MH805", "claude@2.1.268", "codex@0.146.0"))
    assert not covers(on_codex, finding("MH802", "codex@0.146.0"))
    assert covers(finding("MH204"), finding("MH805", "claude@2.1.268"))


COMPARISONS = [
    ("nothing changed", {"a": FLOATING, "b": STDIO}, {"a": FLOATING, "b": STDIO}, 0),
    ("another entry changed", {"a": FLOATING, "b": OTHER}, {"a": FLOATING, "b": STDIO}, 0),
    ("it changed", {"a": {**FLOATING, "title": "A"}}, {"a": FLOATING}, 1),
    ("it is new", {"a": FLOATING}, {}, 1),
    ("one more floats", {"a": FLOATING, "c": {**FLOATING, "args": ["c"]}}, {"a": FLOATING}, 1),
    ("one floats no more", {"a": FLOATING}, {"z": {**FLOATING, "args": ["z"]}, "a": FLOATING}, 0),
]


@pytest.mark.parametrize(("head", "base", "shown"), [c[1:] for c in COMPARISONS], ids=[c[0] for c in COMPARISONS])
def test_a_finding_on_the_catalog_is_shown_again_only_where_a_touched_entry_takes_part(head, base, shown):
    events = events_of(context_of({**SCHEMA, **head}), context_of({**SCHEMA, **base}))
    assert rules(events).count("MH431") == shown


GROUPS = [
    ("MH703", {"a-_b": STDIO, "a_-b": OTHER}, "a--b"),
    ("MH704", {"a-b": STDIO, "a_b": OTHER}, "a b"),
    ("MH403", {"one": STDIO, "two": STDIO}, "three"),
    ("MH404", {"a$": STDIO, "a_": STDIO}, "a]"),
]


@pytest.mark.parametrize(("rule", "pair", "third"), GROUPS)
def test_a_group_that_only_loses_a_member_is_no_new_finding(rule, pair, third):
    assert rule in rules(events_of(context_of(pair)))
    for three in ({third: STDIO, **pair}, {**pair, third: STDIO}):
        assert rule not in rules(events_of(context_of(pair), context_of(three)))
        assert rule in rules(events_of(context_of(three), context_of(pair)))
    first = next(iter(pair))
    assert rule in rules(events_of(context_of(pair), context_of({first: pair[first]})))


def test_a_dropped_server_and_a_dropped_root_show_the_references_that_now_dangle():
    roots = {"main": {"default_mcp_servers": ["a", "old"]}, "ops": {}}
    base = context_of({**SCHEMA, "a": STDIO, "b": {**OTHER, "default_in_roots": ["ops"]}}, roots)
    head = context_of({**SCHEMA, "b": {**OTHER, "default_in_roots": ["ops"]}}, {"main": roots["main"]})
    shown = [(f.rule, f.message.split(",")[0]) for f in found(events_of(head, base))]
    assert shown == [("MH601", "root main names a"), ("MH602", "it is a default in ops")]
    everything = rules(events_of(head, base, every_entry=True))
    assert everything.count("MH601") == 2


def test_more_defaults_than_before_are_shown_although_the_root_had_too_many_already():
    def catalog(count: int) -> dict[str, Any]:
        return {f"s{number}": {**REMOTE, "default_in_roots": ["main"]} for number in range(count)}

    head, base = context_of(catalog(53), {"main": {}}), context_of(catalog(52), {"main": {}})
    assert "MH605" in rules(events_of(head, base))
    assert "MH605" not in rules(events_of(base, base))


def test_an_entry_whose_roots_change_is_judged_although_its_text_stays():
    tree = {**SCHEMA, "a": {**BUNX, "default_in_roots": ["ops"]}, "b": {**BUNX, "default_in_roots": ["main"]}}
    head, base = context_of(tree, {"main": {}, "ops": {}}), context_of(tree, {"main": {}})
    for one, other in ((head, base), (base, head)):
        events = events_of(one, other)
        assert [event.judgement.touched for event in judged(events)] == [True, False]
        assert finished(events).judged == 1
        assert [f.entry for f in found(events) if f.rule == "MH401"] == ["a"]
    assert finished(events_of(head, context_of(tree))).judged == 0  # the base has no roots file yet


def test_the_table_and_the_comparison_agree_on_who_gets_an_entry_by_default():
    tree = {**SCHEMA, "a": {**STDIO, "default_in_roots": ["infra"]}}
    events = events_of(context_of(tree, {"main": {}}), context_of(SCHEMA, {"main": {}}))
    assert judged(events)[0].judgement.default_in_roots == ()
    assert changes(events)[0].consequences[0].startswith("by choice only")
    assert "MH602" in rules(events)


def test_a_byte_order_mark_says_of_the_table_when_it_holds():
    events = events_of(context_of("\ufeff" + as_text({**SCHEMA, "a": STDIO})))
    finding = only(found(events))
    assert (finding.rule, finding.entry) == ("MH102", None)
    assert finding.message.endswith(
        "sessions go on with the last good catalog. What is said of the entries holds once the mark is gone."
    )
    assert {outcome.state.value for event in judged(events) for outcome in event.judgement.outcomes} == {"starts"}


TEAM = {"headers": {"X-Team": "a"}}
PI, CODEX = "pi@0.84.1+2.32.1", "codex@0.146.0"
WORSE: list[tuple[str, Any, Any, list[tuple[str, ...]], str]] = [
    ("a routine header", REMOTE, {**REMOTE, **TEAM}, [(PI,)], "/s/headers"),
    ("another transport", REMOTE, {**REMOTE, "type": "sse"}, [(CODEX,)], "/s/type"),
    ("both", REMOTE, {**REMOTE, **TEAM, "type": "sse"}, [(CODEX,), (PI,)], "/s"),
    ("a better one", {**REMOTE, **TEAM}, REMOTE, [], ""),
    ("as bad as before", {**REMOTE, **TEAM}, {**REMOTE, **TEAM, "title": "A"}, [], ""),
    ("another way to start", STDIO, REMOTE, [], ""),
    ("a declaration", REMOTE, {**REMOTE, "unavailable": "Broken."}, [], ""),
    ("no declaration any more", {**REMOTE, **TEAM, "unavailable": "Broken."}, {**REMOTE, **TEAM}, [], ""),
    ("an error of its own says it", STDIO, {"type": "stdio"}, [], ""),
]


@pytest.mark.parametrize(
    ("before", "after", "runtimes", "pointer"), [case[1:] for case in WORSE], ids=[case[0] for case in WORSE]
)
def test_a_change_that_takes_a_runtime_away_from_an_entry_is_an_error(before, after, runtimes, pointer):
    head, base = context_of({**SCHEMA, "s": after}), context_of({**SCHEMA, "s": before})
    for every_entry in (False, True):
        events = events_of(head, base, every_entry=every_entry)
        told = [f for f in found(events) if f.rule == "MH850"]
        assert [(f.runtimes, f.place.pointer, f.severity) for f in told] == [
            (labels, pointer, Severity.ERROR) for labels in runtimes
        ]
        assert finished(events).exit_code == int(bool(runtimes) or after == {"type": "stdio"})
    assert "MH850" not in rules(events_of(head))


def test_what_a_change_takes_away_is_told_by_runtime_and_may_be_allowed():
    head, base = context_of({**SCHEMA, "s": {**REMOTE, **TEAM}}), context_of({**SCHEMA, "s": REMOTE})
    events = events_of(head, base, settings=settings_of(Allow(rule="MH850", entry="s", reason="claude only")))
    finding = only([f for f in found(events) if f.rule == "MH850"])
    assert finding.message == (
        f"users could authorize it on {PI}; after this change the server never connects:"
        " never considers OAuth for an entry with headers"
    )
    assert finding.allowance is not None
    assert finished(events).exit_code == 0


def test_an_allowance_for_a_change_is_stale_only_where_the_entry_was_changed():
    settings = settings_of(Allow(rule="MH850", entry="s", reason="claude only"), Allow(rule="MH850", reason="any"))
    base, same = {**SCHEMA, "s": REMOTE, "x": STDIO}, {**SCHEMA, "s": REMOTE, "x": OTHER}
    altered = {**SCHEMA, "s": {**REMOTE, "title": "S"}, "x": STDIO}
    assert "MH001" not in rules(events_of(context_of(same), settings=settings))
    for every_entry in (False, True):
        one = events_of(context_of(same), context_of(base), settings=settings, every_entry=every_entry)
        other = events_of(context_of(altered), context_of(base), settings=settings, every_entry=every_entry)
        assert "MH001" not in rules(one)
        assert rules(other).count("MH001") == 1


def test_an_error_that_was_there_before_does_not_hide_that_a_runtime_is_lost():
    secret = {"X-Api-Key-Hint": "a", "X-Team": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}
    before = {**REMOTE, "headers": secret}
    assert "MH320" in rules(events_of(context_of({"s": before})))
    after = {**before, "type": "sse"}
    told = [f for f in found(events_of(context_of({"s": after}), context_of({"s": before}))) if f.rule == "MH850"]
    assert [f.runtimes for f in told] == [(CODEX,)]


def fingerprints(tree: Any, roots: Any = None) -> dict[tuple[str, str | None, str], str]:
    return {(f.rule, f.entry, f.message): f.fingerprint for f in found(events_of(context_of(tree, roots)))}


def test_a_fingerprint_survives_reformatting_and_unrelated_entries():
    tree = {**SCHEMA, "a": BUNX, "b": BROKEN, "c": {**OTHER, "default_in_roots": ["ghost"]}, "x_y": STDIO, "x-y": OTHER}
    roots = {"main": {"default_mcp_servers": ["nobody"]}}
    before = fingerprints(tree, roots)
    wider = {"new": REMOTE, **tree, "last": REMOTE}
    wider["c"] = {**OTHER, "default_in_roots": ["main", "ghost"]}
    more = {"other": {}, "main": {"default_mcp_servers": ["new", "nobody"]}}
    after = fingerprints(as_text(wider, 8), more)
    assert before.items() <= after.items()
    assert {rule for rule, _, _ in before} >= {"MH401", "MH201", "MH602", "MH601", "MH703"}


def test_fingerprints_differ_between_entries_rules_runtimes_and_subjects():
    tree = {"a": BUNX, "b": BUNX, "c": {**STDIO, "default_in_roots": ["x1", "y1"]}, "d.e": {**STDIO, "args": 3}}
    roots = {"main": {"default_mcp_servers": ["p", "q"]}, "ops": {"default_mcp_servers": ["p"]}}
    shown = found(events_of(context_of(tree, roots)))
    assert len({f.fingerprint for f in shown}) == len(shown) > 9
    assert all(len(f.fingerprint) == 16 for f in shown)


def test_edits_of_two_findings_on_one_stretch_are_made_one_at_a_time():
    text = as_text({"a": {**STDIO, "command": "NPX"}})
    events = events_of(context_of(text))
    finding = only([f for f in found(events) if f.rule == "MH401"])
    fixed, done, _ = apply_edits(text, [finding, finding._replace(rule="MH999")], "mcp.json")
    assert [each.rule for each in done] == ["MH401"]
    assert json.loads(fixed)["a"]["command"] == "npx"
    assert apply_edits(text, [finding], "roots.json")[1] == []


def test_a_port_has_a_marker_of_its_own_that_is_a_port():
    ports = {marker(name) for name in ("A_PORT", "B_PORT", "PORT")}
    assert len(ports) == 3
    assert all(49_152 <= int(port) <= 65_535 for port in ports)
    assert marker("TOKEN") == "marker-TOKEN-marker"


def test_what_is_written_names_each_variable_where_its_value_would_stand():
    entry = {**REMOTE, "url": "https://${HOST}:${A_PORT}/${B_PORT}", "headers": {"Authorization": "Bearer ${T}"}}
    (view,) = context_of({"a": entry}).entries.values()
    for spawn in view.spawns:
        assert spawn.written is not None
        assert spawn.written["url"] == entry["url"]
        assert spawn.written.get("headers", spawn.written.get("http_headers")) == entry["headers"]


def test_a_runtime_is_named_by_family_or_by_version():
    assert runtime_named("codex").label == "codex@0.146.0"
    assert runtime_named("pi@0.86.1+2.36.0").label == "pi@0.86.1+2.36.0"


def test_a_finding_that_a_changed_entry_had_before_is_marked_and_comes_behind_the_new_ones():
    before: dict[str, Any] = {**SCHEMA, "s": {**STDIO, "startup_timeout_sec": 20}, "z": REMOTE}
    after = {**SCHEMA, "s": {**before["s"], "title": "S"}, "z": {**REMOTE, "startup_timeout_sec": 20}}
    events = events_of(context_of(after), context_of(before))
    told = [(each.entry, each.new) for each in found(events) if each.rule == "MH512"]
    assert told == [("z", True), ("s", False)]
    assert {each.new for each in found(events_of(context_of(after)))} == {None}


def test_what_the_whole_catalog_had_before_is_marked_and_stands_at_an_entry_that_was_touched():
    floating = {**STDIO, "args": ["-y", "pkg"]}
    before: dict[str, Any] = {**SCHEMA, "a": floating, "b": {**floating, "args": ["-y", "other"]}}
    after = {**before, "b": {**before["b"], "title": "B"}}
    (old,) = [each for each in found(events_of(context_of(after), context_of(before))) if each.rule == "MH431"]
    assert (old.entry, old.place.pointer, old.new) == ("b", "/b/args", False)
    (alone,) = [each for each in found(events_of(context_of(after))) if each.rule == "MH431"]
    assert (alone.entry, alone.fingerprint) == ("a", old.fingerprint)
    fresh = found(events_of(context_of(after), context_of({**SCHEMA, "a": STDIO, "b": STDIO})))
    assert [each.new for each in fresh if each.rule == "MH431"] == [True]


def test_a_list_of_a_root_with_an_unknown_name_is_one_finding():
    roots = {"main": {"default_mcp_servers": ["ghost", "s"]}}
    tree = {**SCHEMA, "s": STDIO}
    assert [rule for rule in rules(events_of(context_of(tree, roots))) if rule in ("MH601", "MH607")] == ["MH601"]
    roots = {"main": {"default_mcp_servers": ["s"]}}
    assert "MH607" in rules(events_of(context_of(tree, roots)))


def test_a_short_budget_is_one_finding():
    said = rules(events_of(context_of({**SCHEMA, "s": {**STDIO, "startup_timeout_sec": 20}})))
    assert [rule for rule in said if rule in ("MH512", "MH514")] == ["MH512"]
