"""MH701 to MH709: server names, and the tool names that runtimes make of them."""

from __future__ import annotations

import json

import pytest

from fake_runtimes.profile import known_profiles
from harness.gate.context import Context
from harness.gate.engine import entry_findings as entry_findings_of_engine
from harness.gate.model import Finding, Severity
from harness.gate.rule import RULES
from harness.gate.rules.names import hashed, log_folder
from harness.gate.spawn import runtime_named
from harness.inputs.document import Document
from scenarios.shipped import shipped_catalog
from scenarios.units.gate_fixture import (
    PRODUCTION,
    RUNTIMES,
    catalog_context,
    entry_findings,
    findings,
    only,
    rule_findings,
)

STDIO = {"type": "stdio", "command": "node", "args": ["x"]}
CLAUDE, CODEX, PI = "claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1"
NAME_RULES = ["MH701", "MH702", "MH703", "MH704", "MH705", "MH706", "MH707"]


def of_names(rule: str, *names: str, runtimes=RUNTIMES) -> list[Finding]:
    return findings(json.dumps(dict.fromkeys(names, STDIO), ensure_ascii=False), [rule], runtimes=runtimes)


def with_tools(names: tuple[str, ...], tools: dict[str, tuple[str, ...]], runtimes=RUNTIMES) -> list[Finding]:
    context = Context(
        Document.parse("mcp.json", json.dumps(dict.fromkeys(names, STDIO)).encode()),
        runtimes=tuple(map(runtime_named, runtimes)),
        tools=tools,
        instance=PRODUCTION,
    )
    return rule_findings(context, ["MH708", "MH709"])


@pytest.mark.requirement("catalog-name-codex-unsafe-lint", "prepare-codex-entry-validated")
@pytest.mark.parametrize("name", ["a[b]", "$a", "a.b", "a b", "ä", "😀", "", "a\n", "@s/p", "a:b"])
def test_a_name_that_codex_refuses_is_an_error_on_codex_alone(name):
    finding = only(of_names("MH701", name))
    assert finding.runtimes == (CODEX,)
    assert (finding.severity, finding.entry) == (Severity.ERROR, name)
    assert "no server name on Codex: the entry is left out of its config" in finding.message
    assert ("refuses the whole catalog" in finding.message) is (name not in ("a[b]", "$a"))


@pytest.mark.requirement("catalog-name-codex-unsafe-lint")
@pytest.mark.parametrize("name", ["zimmer-work-backlog", "a_b", "A9", "-", "_", "x" * 100])
def test_letters_digits_dashes_and_underscores_are_fine_on_codex(name):
    assert of_names("MH701", name) == []


def test_without_codex_nobody_refuses_the_name_and_every_codex_version_is_named():
    assert of_names("MH701", "a.b", runtimes=["claude", "pi"]) == []
    finding = only(of_names("MH701", "a.b", runtimes=["codex@0.146.0", "codex@0.169.0"]))
    assert finding.runtimes == ("codex@0.146.0", "codex@0.169.0")


@pytest.mark.requirement("catalog-name-codex-unsafe-lint")
@pytest.mark.parametrize(
    ("name", "hits"), [("a__b", 1), ("__a", 1), ("a___b", 1), ("a_b", 0), ("a-_-b", 0), ("_a_", 0)]
)
def test_a_double_underscore_in_a_name_is_a_warning(name, hits):
    found = of_names("MH702", name)
    assert [(finding.severity, finding.runtimes) for finding in found] == [(Severity.WARNING, ())] * hits


@pytest.mark.parametrize(
    ("names", "runtimes"),
    [
        (("a-b", "a_b"), (CODEX, PI)),
        (("a$b", "a_b"), (CLAUDE,)),  # Codex never gets a$b, Pi writes it in hexadecimal
        (("a b", "a.b"), (CLAUDE,)),
        (("mcp__a", "a"), (CODEX,)),
        (("ab", "a_b"), ()),
        (("a", "A"), ()),
        (("workspace", "work-space"), ()),
    ],
)
def test_names_that_read_alike_are_told_for_the_runtimes_that_load_both(names, runtimes):
    found = of_names("MH703", *names)
    assert tuple(label for finding in found for label in finding.runtimes) == runtimes
    assert all(finding.entry == names[-1] and finding.severity is Severity.WARNING for finding in found)


def test_a_group_that_reads_alike_is_one_finding_with_words_for_its_size():
    pair = only(of_names("MH703", "a-b", "x", "a_b"))
    assert "the name reads like a-b in tool names on codex@0.146.0 and pi" in pair.message
    assert "a session with both loses or renames tools." in pair.message
    groups = of_names("MH703", "a--b", "a_-b", "a-_b", runtimes=["pi", "codex"])
    assert [finding.entry for finding in groups] == ["a-_b"]
    assert "the name reads like a--b and a_-b in tool names on every runtime: a session with two of them" in (
        groups[0].message
    )


def test_a_name_that_a_runtime_never_loads_meets_no_other_there():
    assert of_names("MH703", "a.b", "a_b", runtimes=["codex"]) == []
    assert [finding.runtimes for finding in of_names("MH703", "a.b", "a_b", runtimes=["claude"])] == [(CLAUDE,)]


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [("a.b", "a_b", True), ("a-b", "a b", True), ("a😀", "a--", True), ("a😀", "a-", False), ("ab", "a-b", False)],
)
def test_claude_logs_of_names_that_differ_in_odd_characters_share_a_folder(one, other, meet):
    found = of_names("MH704", one, other)
    assert [finding.runtimes for finding in found] == [(CLAUDE,)] * meet
    assert all(f"log folder {log_folder(one)} with {one}:" in finding.message for finding in found)
    assert of_names("MH704", one, other, runtimes=["codex", "pi"]) == []


@pytest.mark.parametrize(
    ("name", "folder"), [("My_Srv.1", "My-Srv-1"), ("a__b", "a--b"), ("@org/x", "-org-x"), ("é😀", "---"), ("", "")]
)
def test_a_log_folder_has_a_dash_for_each_odd_utf16_unit(name, folder):
    assert log_folder(name) == f"mcp-logs-{folder}"


@pytest.mark.parametrize(
    ("name", "labels"),
    [("a.b", ("_mcpns_61_2e_62", "_mcpns_a_2e_b")), ("😀", ("_mcpns_1f600", "_mcpns__1f600_")), ("a_b-c", ())],
)
def test_a_name_that_pi_encodes_is_a_warning_for_each_version_that_does(name, labels):
    found = of_names("MH705", name, runtimes=["claude", "pi@0.84.1+2.32.1", "pi@0.86.1+2.36.0"])
    assert [finding.message.split(" reads ")[1].split(" on ")[0] for finding in found] == list(labels)
    assert all(finding.fix == RULES["MH705"].fix for finding in found)


def test_a_name_that_codex_refuses_is_one_finding_that_says_what_the_others_make_of_it():
    context = catalog_context(json.dumps({"a.b": STDIO}))
    finding = only(entry_findings_of_engine(context, context.entries["a.b"]))
    assert finding.rule == "MH701"
    assert finding.message.endswith("It reads _mcpns_61_2e_62 to the agent on pi@0.84.1+2.32.1.")


def test_a_plain_name_that_is_too_long_for_pi_is_to_be_shortened():
    assert of_names("MH705", "x" * 59, runtimes=["pi@0.86.1+2.36.0"]) == []
    finding = only(of_names("MH705", "x" * 60, runtimes=["pi@0.84.1+2.32.1", "pi@0.86.1+2.36.0"]))
    assert finding.runtimes == ("pi@0.86.1+2.36.0",)
    assert finding.fix == "Shorten the server's name."


@pytest.mark.parametrize(
    ("length", "room"),
    [(33, None), (34, "23 characters"), (56, "1 character"), (57, "0 characters"), (90, "0 characters")],
)
def test_little_room_for_tool_names_is_a_warning_from_twenty_three_characters_down(length, room):
    found = of_names("MH706", "x" * length)
    assert [finding.message.split(" leaves ")[1].split(" for ")[0] for finding in found] == ([room] if room else [])
    assert all(finding.runtimes == (CODEX,) for finding in found)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x" * 101, "its name of 101 characters is cut"),
        ("é" * 101, "its name of 101 characters is cut"),
        (" a", "the blanks around its name are trimmed"),
        ("a\n", "the blanks around its name are trimmed"),
        ("", "a blank name is dropped"),
        (" \t", "a blank name is dropped"),
    ],
)
def test_a_name_that_no_session_can_choose_is_an_error(name, words):
    finding = only(of_names("MH707", name))
    assert finding.message == f"no session can choose this server: {words} before the lookup."
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize("name", ["x" * 100, "é" * 100, "a b", "😀" * 100])
def test_a_name_of_a_hundred_characters_can_be_chosen(name):
    assert of_names("MH707", name) == []


def test_the_shipped_names_are_fine_on_every_version_of_every_runtime():
    assert findings(json.dumps(shipped_catalog()), NAME_RULES, runtimes=known_profiles()) == []


def test_a_tool_name_without_room_is_told_for_the_version_that_cuts_it():
    long, tidy = "t" * 60, "get_deadbeef0123"
    finding = only(with_tools(("a",), {"a": (long, tidy)}, known_profiles()))
    assert finding.message == f"codex@0.146.0 offers under a hashed name tool {long}."
    assert (finding.entry, finding.severity) == ("a", Severity.WARNING)
    assert finding.fix.startswith("Shorten")


def test_tools_whose_names_meet_are_lost_on_claude_and_renamed_on_codex():
    lost, renamed = with_tools(("a",), {"a": ("x.y", "x y", "z")})
    assert lost.message == "claude@2.1.268 loses tool x y."
    assert renamed.message == "codex@0.146.0 offers under a hashed name tools x y and x.y."
    assert (lost.fix[:9], renamed.fix[:11]) == ("Rename it", "Rename them")


def test_tools_of_a_server_that_codex_never_gets_are_not_renamed_there():
    assert with_tools(("a.b",), {"a.b": ("t" * 60,)}) == []


def test_a_tool_list_for_a_server_that_is_not_there_is_a_note():
    finding = only(with_tools(("a",), {"b": ("t",), "a": ("t",)}))
    assert (finding.rule, finding.severity, finding.entry) == ("MH709", Severity.NOTE, None)
    assert "names b, which" in finding.message


@pytest.mark.parametrize(
    ("tool", "name", "expected"),
    [
        ("t", "mcp__a/t_0123456789ab", True),
        ("t_0123456789ab", "mcp__a/t_0123456789ab", False),
        ("t", "mcp__a/t", False),
    ],
)
def test_a_tool_that_is_called_like_a_hash_is_not_taken_for_a_hashed_one(tool, name, expected):
    assert hashed(tool, name) is expected


def test_a_swallowed_or_reserved_name_is_left_to_the_rules_that_know_it():
    assert entry_findings(STDIO, ["MH701", "MH707"], name="workspace") == []


@pytest.mark.parametrize("name", [" a", "a\n", "x" * 101, "a b" * 40])
def test_a_name_that_cannot_be_chosen_is_one_finding(name):
    context = catalog_context(json.dumps({name: STDIO}))
    assert [found.rule for found in entry_findings_of_engine(context, context.entries[name])] == ["MH707"]
