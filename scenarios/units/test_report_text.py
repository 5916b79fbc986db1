"""The report for a terminal."""

from __future__ import annotations

import pytest

from harness.gate.events import Changed, Finished, Judged, Planned
from harness.gate.model import Allowance, Change, Need, Severity, State
from harness.report.formats import FORMATS, load_formats
from harness.report.text import MAXIMUM_CHANGES, MAXIMUM_FINDINGS_OF_A_RULE
from harness.report.wrapping import NARROWEST, WIDEST, WIDTH, fitting
from scenarios.units.report_events import (
    RUNTIMES,
    clean_run,
    finding,
    finished,
    judgement,
    place,
    pull_request_run,
    rules,
    started,
    stream,
)


def render(events) -> str:
    load_formats()
    return FORMATS["text"](events, rules)


def lines_of(*findings, judgements=()):
    return render(stream(*findings, judgements=judgements)).splitlines()


def test_the_clean_catalog_fits_fifteen_lines_of_a_hundred_columns():
    lines = render(clean_run()).splitlines()
    assert len(lines) <= 18
    assert all(len(line) <= WIDTH for line in lines[:-1])


def test_the_last_line_says_verdict_counts_time_seed_and_exit():
    last = render(clean_run()).splitlines()[-1]
    assert last == (
        "PASS  0 errors, 0 warnings, 1 note; 16/16 entries judged; 1.9 s; seed 0; exit 0"
        "   (explain a rule: mcp-harness explain MH431)"
    )


def test_without_findings_the_last_line_ends_with_the_exit_code():
    assert lines_of()[-1].endswith("exit 0")


def test_the_last_line_names_what_was_let_pass_and_why():
    allowed = Allowance("mcp-harness.toml:4:1", "acme-legacy", "2027-01-31")
    lines = lines_of(finding(allowance=allowed), finding("MH9", allowance=allowed))
    assert '(allowed: 2, see mcp-harness.toml:4:1 "acme-legacy, until 2027-01-31")' in lines[-1]
    assert not any("MH203" in line for line in lines[:-1])


def test_many_allowances_are_counted_instead_of_listed():
    many = [finding(allowance=Allowance(f"h.toml:{n}", "because " * 50, None)) for n in range(9)]
    last = lines_of(*many)[-1]
    assert "allowed: 9" in last
    assert "and 6 more" in last
    assert len(last) < 500


def test_entries_with_the_same_outcomes_share_a_row():
    text = render(clean_run())
    assert "  linear, remote-fs-screenshots, image-diff, svg-tracer: same on every runtime as context7\n" in text
    assert "  zimmer and 5 zimmer-*    starts " in text


def test_a_default_entry_is_starred_and_explained_once():
    judgements = (
        judgement("one", roots=("zimmer",), needs=(Need("secret", "A"),)),
        judgement("two", roots=("zimmer",)),
        judgement("three", roots=("docs", "ops")),
    )
    text = "\n".join(lines_of(judgements=judgements))
    assert text.count("(* default in root zimmer)") == 1
    assert text.count("(* default in roots docs, ops)") == 1
    assert text.count("  * ") == 3


def test_entries_that_differ_on_one_runtime_only_do_not_share_a_row():
    judgements = (judgement("alpha"), judgement("beta", states={RUNTIMES[1]: State.SKIPPED}), judgement("gamma"))
    rows = [line.split() for line in lines_of(judgements=judgements)[3:6]]
    assert rows == [
        ["beta", "starts", "skipped", "starts", "-"],
        ["alpha", "starts", "starts", "starts", "-"],
        ["gamma", "starts", "starts", "starts", "-"],
    ]


@pytest.mark.parametrize(
    ("first_request", "word", "legend"),
    [("late", "starts late", "(late: its tools miss"), ("never", "starts unseen", "(unseen: no model request")],
)
def test_tools_that_miss_the_first_request_are_shown_and_explained(first_request, word, legend):
    text = "\n".join(lines_of(judgements=(judgement("one", first_request=first_request),)))
    assert text.count(word) == len(RUNTIMES)
    assert legend in text


def test_two_versions_of_one_runtime_show_their_versions():
    runtimes = ("claude@2.1.268", "claude@2.1.328", "codex@0.146.0")
    events = [started(entries=1, runtimes=runtimes), *stream(judgements=(judgement("a", runtimes=runtimes),))[1:]]
    assert "CLAUDE@2.1.268 CLAUDE@2.1.328 CODEX" in render(events)


def test_a_thousand_entries_keep_the_table_short_and_the_bad_ones_in_it():
    names = [f"{'abcdefghij'[n % 10]}{n}" for n in range(1000)]
    judgements = [judgement(name, n + 1, needs=(Need("secret", f"S{n}"),)) for n, name in enumerate(names)]
    judgements[700] = judgement("broken", 701, state=State.KILLS_RUN)
    lines = lines_of(judgements=tuple(judgements))
    assert len(lines) < 70
    assert lines[3].split()[0] == "broken"
    assert any("secret, each its own" in line for line in lines)


def test_rows_that_only_start_are_cut_first():
    odd = [judgement(f"odd{n}", n + 1, roots=(f"root{n}",)) for n in range(80)]
    waiting = judgement("waiting", 99, state=State.AUTHORIZE, needs=(Need("consent", "waiting|1"),))
    lines = lines_of(judgements=(*odd, waiting))
    assert any(line.split()[:1] == ["waiting"] for line in lines)
    assert "  ... and 31 more (--format json lists all)" in lines


def test_findings_stand_worst_first_where_an_editor_can_jump_to():
    note = finding("MH1", Severity.NOTE, where=place(2, 3))
    lines = lines_of(note, finding("MH2", where=place(40, 12), fix="write x"))
    assert lines[2] == "  mcp.json:40:12 error   MH2 acme-search: the runtime refuses the entry. Fix: write x"
    assert lines[3] == "  mcp.json:2:3   note    MH1 acme-search: the runtime refuses the entry."


def test_long_findings_are_wrapped_under_their_message():
    lines = lines_of(finding(message="word " * 60))
    assert all(len(line) <= WIDTH for line in lines[:-1])
    assert lines[3].startswith(" " * 30 + "word")


@pytest.mark.parametrize(("columns", "width"), [(None, WIDTH), (80, 80), (7, NARROWEST), (400, WIDEST)])
def test_a_report_fits_the_terminal_that_shows_it_and_is_the_same_wherever_else_it_goes(columns, width):
    with fitting(columns):
        lines = lines_of(finding(message="word " * 60))[:-1]
    assert width - len("word ") < max(map(len, lines)) <= width
    assert render(clean_run()) == FORMATS["text"](clean_run(), rules)


def test_what_has_no_room_beside_many_runtimes_stands_below_them():
    versions = tuple(f"claude@2.1.{number}" for number in range(100, 110))
    entry = judgement("acme", needs=(Need("secret", "ACME_KEY"),), runtimes=versions)
    lines = render([started(runtimes=versions), Judged(entry), finished()]).splitlines()
    assert "      secret ACME_KEY" in lines


def test_a_long_path_does_not_push_the_message_out_of_sight():
    lines = lines_of(finding(message="word " * 60, where=place(1, 1, file="a/" * 60 + "mcp.json")))
    assert lines[3].startswith("        word")


def test_the_runtimes_concerned_are_named_unless_the_message_does():
    some = finding(message="it fails.", runtimes=RUNTIMES[1:2])
    assert "acme-search: it fails. [codex@0.146.0]" in "\n".join(lines_of(some))
    for other in (some._replace(runtimes=RUNTIMES), some._replace(message="Codex says no.")):
        assert "[codex" not in "\n".join(lines_of(other))


@pytest.mark.parametrize("extra", [0, 1, 800])
def test_one_rule_lists_two_hundred_findings_and_counts_the_rest(extra):
    number = MAXIMUM_FINDINGS_OF_A_RULE + extra
    many = [finding("MH7", Severity.WARNING, entry=f"e{n}", where=place(n + 1)) for n in range(number)]
    lines = lines_of(finding("MH1", Severity.NOTE), *many)
    assert sum(" MH7 e" in line for line in lines) == MAXIMUM_FINDINGS_OF_A_RULE
    closing = [line for line in lines if line.startswith("  ... and")]
    assert closing == ([f"  ... and {extra} more of MH7 (--format json lists all)"] if extra else [])
    assert any(" MH1 " in line for line in lines)


def test_a_comparison_is_told_in_the_first_line():
    first = " ".join(render(pull_request_run()).split("\n\n")[0].split())
    assert first == (
        "mcp.json against origin/main@4f1c2e9: 1 added, 2 changed, 1 removed, 13 untouched "
        "(not run again; --all runs them)"
    )


def test_a_comparison_that_judged_all_says_so():
    events = pull_request_run()
    assert isinstance(events[-1], Finished)
    events[-1] = events[-1]._replace(judged=16)
    assert "13 untouched (judged too)" in render(events)


def test_a_comparison_shows_touched_entries_only():
    text = render(pull_request_run())
    assert "context7" not in text
    assert "  acme-search  *" in text


def test_changes_and_plans_come_after_the_findings():
    text = render(pull_request_run())
    places = [text.index(word) for word in ("MH431", "WHAT THIS CHANGE DOES", "BEFORE YOU MERGE", "AFTER YOU MERGE")]
    assert places == sorted(places)
    assert "    + acme-search root zimmer gets it by default" in text
    assert "    ~ notion      url https" in text
    assert "    - svg-tracer  still named" in text
    assert "  BEFORE YOU MERGE seed ACME_TOKEN_ (or fix its name)\n                   tell users" in text


def test_without_a_base_nothing_is_said_about_merging():
    text = render(clean_run())
    assert "MERGE" not in text
    assert "CHANGE" not in text


def test_many_changes_are_cut_with_a_count():
    changes = [Changed(Change("added", f"e{n}", ("by choice only",), {})) for n in range(MAXIMUM_CHANGES + 3)]
    text = render([started(base="main"), *changes, Planned("before", "look"), finished()])
    assert text.count("    + e") == MAXIMUM_CHANGES
    assert "    ... and 3 more (--format json lists all)" in text


def test_an_empty_catalog_has_no_table():
    assert lines_of()[0].startswith("mcp.json: 0 entries, roots.json: 1 root;")
    assert len(lines_of()) == 3


def test_a_finding_that_was_there_before_says_so():
    old = finding("MH203", Severity.ERROR, entry="figma")._replace(new=False)
    assert "figma, already there: " in render(stream(old))
    assert "already there" not in render(stream(old._replace(new=True)))
