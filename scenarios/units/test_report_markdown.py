"""The job summary and pull request comment."""

from __future__ import annotations

import re

import pytest

from harness.gate.events import Changed, Found, Planned
from harness.gate.model import Allowance, Change, Need
from harness.report.formats import FORMATS, load_formats
from harness.report.markdown import MARKER, MAXIMUM_BYTES
from harness.report.markdown_text import block, code, code_in_table, plain
from scenarios.units.report_events import (
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
    return FORMATS["markdown"](events, rules)


def test_the_hidden_marker_is_the_first_line_and_the_verdict_the_second():
    for events, verdict in ((clean_run(), "**PASS** 0 errors"), (pull_request_run(), "**FAIL** 3 errors")):
        lines = render(events).splitlines()
        assert lines[0] == MARKER
        assert lines[1].startswith(verdict)


def test_the_parts_stand_in_the_order_of_their_use():
    text = render(pull_request_run())
    parts = ["**FAIL**", "### Before you merge", "| Change |", "### Findings", "<details>", "Reproduce locally: "]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    assert text.splitlines()[-1] == "Reproduce locally: `mcp-harness gate mcp.json --base origin/main`"


def test_what_to_do_before_merging_is_a_task_list():
    assert "- [ ] seed ACME\\_TOKEN\\_ (or fix its name)\n- [ ] tell users" in render(pull_request_run())


def test_with_a_base_the_table_holds_changed_entries_only():
    rows = [line for line in render(pull_request_run()).splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[1] for row in rows[2:]] == ["`acme-search`", "`notion`", "`acme-fast`", "`svg-tracer`"]


def test_without_a_base_the_table_holds_all_entries():
    text = render(clean_run())
    assert "| `context7`<br>and alike: `linear`" in text
    assert "Merge" not in text
    assert "<details>" not in text


def test_a_run_on_other_versions_is_reproduced_with_them():
    events = pull_request_run()
    events[0] = started(base="main")._replace(pinned=False, catalog="my catalog.json")
    assert render(events).splitlines()[-1] == (
        "Reproduce locally: `mcp-harness gate 'my catalog.json' --base main --runtime claude@2.1.268 "
        "--runtime codex@0.146.0 --runtime pi@0.84.1+2.32.1`"
    )


def huge_run(number, length=1):
    """A comparison with `number` of everything, its texts `length` times as long."""
    wide = "wörter | und `@mehr` " * length
    return [
        started(base="main", entries=number),
        *(Found(finding(entry=f"e{n}", message=f"finding {n} {wide}", where=place(n + 1))) for n in range(number)),
        *(
            Changed(Change("added", f"e{n}", (f"effect {n} {wide}",), {"codex@1": f"+diff {n} {wide}\n"}))
            for n in range(number)
        ),
        *(Planned("before", f"task {n} {wide}") for n in range(min(number, 20))),
        finished(errors=number, entries=number),
    ]


@pytest.mark.parametrize(("number", "length"), [(5, 1), (100, 5), (1000, 1), (300, 15), (3, 1000)])
def test_a_comment_is_always_under_its_limit(number, length):
    text = render(huge_run(number, length))
    assert len(text.encode()) <= MAXIMUM_BYTES
    assert text.splitlines()[-1].startswith("Reproduce locally")
    assert text.count("\n- [ ] task ") == min(number, 20)


def test_the_least_important_parts_go_first_and_it_says_what_went():
    text = render(huge_run(100, 5))
    assert text.count("**error**") == 100
    (note,) = re.findall(r"_Left out to stay short: (.*) \(`--format json` lists all\)\._", text)
    assert re.fullmatch(r"(\d+ of 100 changed entries, )?\d+ of 100 config diffs", note)
    text = render(huge_run(1000))
    assert re.search(r"Left out to stay short: 1000 of 1000 changed entries, \d+ of 1000 findings", text)
    assert "finding 0 " in text
    assert "<details>" not in text


def test_a_small_comment_leaves_nothing_out():
    assert "Left out" not in render(huge_run(5))


def test_one_oversized_diff_does_not_push_out_the_others():
    diffs = [Change("changed", f"e{n}", (), {"codex@1": "+x\n" * (50_000 if n == 0 else 1)}) for n in range(3)]
    text = render([started(base="main"), *map(Changed, diffs), finished()])
    assert "1 of 3 config diffs" in text
    assert text.count("```diff") == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b", r"a\|b"),
        (r"a\|b", r"a\\\|b"),
        ("`x`", r"\`x\`"),
        ("<img src=x>&", "&lt;img src=x&gt;&amp;"),
        ("*a* _b_ ~c~ [d](e)", r"\*a\* \_b\_ \~c\~ \[d\](e)"),
        ("@octocat and x@latest", "@&#8203;octocat and x@&#8203;latest"),
        ("fixes #12", "fixes #&#8203;12"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("a\nb", r"a\\nb"),
        ("${A} costs", "${A} costs"),
        ("${A}${B}", "<span>$</span>{A}<span>$</span>{B}"),
        ("-->", "--&gt;"),
    ],
)
def test_text_is_shown_as_it_is(text, expected):
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", "`a`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a``b`", "``` a``b` ```"),
        ("", "` `"),
        ("@octocat", "`@octocat`"),
        ("a|b", "`a|b`"),
        ("<b>", "`<b>`"),
    ],
)
def test_a_code_span_cannot_be_left(text, expected):
    assert code(text) == expected


@pytest.mark.parametrize("text", ["a|b", "a\\|b", "a`|b", "\\"])
def test_code_in_a_table_has_no_bare_bar(text):
    shown = code_in_table(text)
    assert not re.search(r"(?<!\\)(?:\\\\)*\|", shown)


@pytest.mark.parametrize("content", ["```", "+ ````\n```", "~~~", "</details>", "x\n" + "`" * 50])
def test_a_fence_is_longer_than_anything_in_it(content):
    first, *_, last = block(content, "diff").split("\n")
    fence = first.removesuffix("diff")
    assert fence == last
    assert not any(line.lstrip("+ ").startswith(fence) for line in content.split("\n"))


HOSTILE = [
    "a|b",
    "`",
    "```",
    "<script>",
    "</details>",
    "<!-- x",
    "@octocat",
    "a\nb",
    "[x](y)",
    "\x1b[31m",
    "\u202e",
    "|\\|",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_break_neither_table_nor_list(hostile):
    change = Change("added", hostile, (hostile,), {hostile: f"+{hostile}"})
    allowed = Allowance("h.toml:1", hostile, None)
    found = (finding(entry=hostile, message=hostile, fix=hostile), finding(entry=hostile, allowance=allowed))
    text = render(
        [
            started(base=hostile),
            *stream(*found, judgements=(judgement(hostile, needs=(Need("secret", hostile),), roots=(hostile,)),))[1:-1],
            Changed(change),
            Planned("before", hostile),
            Planned("after", hostile),
            finished(errors=1),
        ]
    )
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows} == {8}
    assert text.count("\n- ") == 4
    assert text.count("<details>") == 1
    outside = re.sub(r"(`{3,})diff\n.*?\n\1\n", "", text, flags=re.DOTALL)
    prose = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", outside.replace("\\`", ""))
    assert "<script" not in prose
    assert "@octocat" not in prose
    assert prose.count("</details>") == 1
    assert prose.count("<!--") == 1
