"""MH601 to MH607: agent roots and their defaults."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.gate.context import Context
from harness.gate.default_roots import default_roots
from harness.gate.judge import judge
from harness.gate.model import Finding, Severity
from harness.gate.spawn import runtime_named
from harness.inputs.document import Document
from scenarios.shipped import shipped_catalog, shipped_roots
from scenarios.units.gate_fixture import PRODUCTION, RUNTIMES, only, rule_findings, where

STDIO = {"type": "stdio", "command": "node", "args": ["x"]}
ROOT_RULES = ["MH601", "MH602", "MH603", "MH604", "MH605", "MH606", "MH607"]


def of_roots(tree: dict[str, Any], roots: Any, rules: list[str] | None = None) -> list[Finding]:
    """What the rules find; `roots` None: there is no roots file."""
    roots_document = None if roots is None else Document.parse("roots.json", json.dumps(roots, indent=2).encode())
    context = Context(
        Document.parse("mcp.json", json.dumps(tree, indent=2).encode()),
        runtimes=tuple(map(runtime_named, RUNTIMES)),
        roots_document=roots_document,
        instance=PRODUCTION,
    )
    return rule_findings(context, rules or ROOT_RULES)


def test_the_shipped_roots_are_fine():
    assert of_roots(shipped_catalog(), shipped_roots()) == []


def test_a_root_that_names_an_unknown_server_is_an_error_in_the_roots_file():
    roots = {"main": {"default_mcp_servers": ["linear", 3, "linaer", None, "linaer"]}}
    finding = only(of_roots({"linear": {**STDIO, "default_in_roots": ["main"]}}, roots))
    assert (finding.rule, finding.severity, finding.entry) == ("MH601", Severity.ERROR, None)
    assert str(finding.place) == "roots.json:6:7"
    assert finding.message.startswith("root main names linaer, which the catalog does not hold")
    assert finding.message.endswith("Did you mean linear?")


@pytest.mark.parametrize("value", ["linear", 3, None, {}, {"linaer": 1}, True, []])
def test_a_list_of_servers_of_another_kind_names_none(value):
    assert of_roots({"a": STDIO}, {"main": {"default_mcp_servers": value, "default_subagent_roots": value}}) == []


@pytest.mark.requirement("catalog-default-unknown-root")
@pytest.mark.parametrize("roots", [{"main": {}}, {}, {"ghost": 3, "main": {}}])
def test_a_default_in_a_root_that_does_not_exist_is_a_warning_at_its_place(roots):
    finding = only(of_roots({"a": {**STDIO, "default_in_roots": [3, "ghost", "ghost"]}, "b": STDIO}, roots, ["MH602"]))
    assert (finding.severity, finding.entry, where(finding)) == (Severity.WARNING, "a", (10, 7))
    assert finding.message.startswith("it is a default in ghost, which is no root: no session gets it there.")


def test_a_misspelt_root_is_suggested_and_a_star_is_explained():
    tree = {"a": {**STDIO, "default_in_roots": ["genral-agent", "*"]}}
    slip, star = of_roots(tree, {"general-agent": {}}, ["MH602"])
    assert slip.message.endswith("no session gets it there. Did you mean general-agent?")
    assert star.message.endswith("no session gets it there. Only newer AIR versions read * as every root.")


@pytest.mark.requirement("catalog-default-unknown-root")
def test_without_a_roots_file_and_with_known_roots_every_default_is_believed():
    tree = {"a": {**STDIO, "default_in_roots": ["main"]}}
    assert of_roots(tree, None) == []
    assert of_roots(tree, {"main": {}}) == []


def test_a_subagent_root_that_does_not_exist_is_a_warning_in_the_roots_file():
    roots = {"general": {"default_subagent_roots": ["general", "genral"]}, "dropped": []}
    found = of_roots({}, roots, ["MH603"])
    assert [(f.severity, str(f.place), f.message) for f in found] == [
        (Severity.WARNING, "roots.json:5:7", "root general may spawn genral, which is no root. Did you mean general?")
    ]


@pytest.mark.parametrize(
    ("unavailable", "listed", "roots", "shown"),
    [
        ("Broken.", ["main", "ops", "main"], None, "main and ops"),
        ("Broken.", ["main", "ghost"], {"main": {}}, "main"),
        ("Broken.", ["ghost"], {"main": {}}, None),
        ("Broken.", ["main"], {}, None),
        ("Broken.", [], None, None),
        ("  ", ["main"], None, None),
        (True, ["main"], None, None),
        (None, ["main"], None, None),
    ],
)
def test_a_default_that_is_declared_unavailable_is_a_warning_for_the_roots_that_get_it(
    unavailable, listed, roots, shown
):
    found = of_roots({"a": {**STDIO, "unavailable": unavailable, "default_in_roots": listed}}, roots, ["MH604"])
    assert [f.message.split(" still a default in ")[1].split(":")[0] for f in found] == ([shown] if shown else [])
    assert all((f.place.pointer, f.severity) == ("/a/default_in_roots", Severity.WARNING) for f in found)


@pytest.mark.parametrize(("count", "hits"), [(50, 0), (51, 1)])
def test_a_root_may_have_fifty_defaults(count, hits):
    tree = {f"s{index}": {**STDIO, "default_in_roots": ["main"]} for index in range(count)}
    found = of_roots(tree, {"other": {}, "main": {}})
    assert [(f.rule, f.severity, str(f.place)) for f in found] == [("MH605", Severity.ERROR, "roots.json:3:3")] * hits


@pytest.mark.parametrize("value", ["x", 3, None, [], True])
def test_a_root_that_is_no_object_is_a_warning_and_a_schema_key_is_not(value):
    found = of_roots({}, {"$schema": "x", "main": value, "other": {}})
    assert [(f.rule, f.severity, str(f.place)) for f in found] == [("MH606", Severity.WARNING, "roots.json:3:3")]


LISTS = [
    (["a"], ["a"], None),
    (["b", "a"], ["a", "b"], None),
    (["a", "ghost", 3, "a"], ["a"], None),
    ([], [], None),
    ("b", ["a"], None),
    (None, ["a"], None),
    (["b"], [], "its new sessions do not get b"),
    ([], ["a"], "its new sessions also get a"),
    (["b"], ["a"], "its new sessions do not get b, and they do get a"),
]


@pytest.mark.parametrize(("listed", "declared", "words"), LISTS)
def test_a_roots_own_list_of_servers_has_no_effect_and_is_a_warning_where_it_says_otherwise(listed, declared, words):
    tree = {name: {**STDIO, "default_in_roots": ["main"] if name in declared else []} for name in ("a", "b")}
    found = of_roots(tree, {"main": {"default_mcp_servers": listed}}, ["MH607"])
    assert [f.message for f in found] == (
        [f"the list of servers of root main has no effect: {words}."] if words else []
    )
    assert all((f.severity, f.place.pointer) == (Severity.WARNING, "/main/default_mcp_servers") for f in found)


def test_the_fix_of_a_list_without_effect_names_the_entries_to_edit():
    tree = {"a": {**STDIO, "default_in_roots": ["main"]}, "b": STDIO}
    finding = only(of_roots(tree, {"main": {"default_mcp_servers": ["b"]}}, ["MH607"]))
    assert finding.fix == (
        "Write main into default_in_roots of b, take main out of default_in_roots of a if the list is what you want,"
        " drop default_mcp_servers from the root."
    )


@pytest.mark.parametrize(
    ("listed", "roots", "expected"),
    [
        (["infra", "main"], {"main": {}}, ("main",)),
        (["infra"], {"main": {}}, ()),
        (["ops", "main", "ops"], {"main": {}, "ops": {}}, ("main", "ops")),
        (["infra", "infra"], None, ("infra",)),
        (["infra"], {}, ()),
    ],
)
def test_the_roots_that_get_an_entry_are_known_ones_where_there_is_a_roots_file(listed, roots, expected):
    documents = Document.parse("mcp.json", json.dumps({"a": {**STDIO, "default_in_roots": listed}}).encode())
    context = Context(
        documents,
        runtimes=(),
        roots_document=None if roots is None else Document.parse("roots.json", json.dumps(roots).encode()),
        instance=PRODUCTION,
    )
    assert default_roots(context, context.catalog.find("a")) == expected
    assert default_roots(context, context.catalog.find("none")) == ()
    assert judge(context.entries["a"], context, touched=False).default_in_roots == expected
