"""The gate's rules on the file and its entries hold up against catalogs of any shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.gate.edits import applied
from harness.gate.foreign_fields import FOREIGN, KNOWN_FIELDS
from harness.gate.judge import judge
from harness.gate.model import Severity, State
from harness.gate.rule import CATALOG_CHECKS, ENTRY_CHECKS, RULES
from harness.gate.rules import load_rules
from scenarios.units.gate_fixture import catalog_context, findings, rule_findings

SHIPPED = Path(__file__).parents[2] / "mcp.json"

load_rules()
OURS = frozenset({*ENTRY_CHECKS, *CATALOG_CHECKS}) - {
    "MH708",
    "MH709",
}  # these look at a list of tools that is not drawn
QUOTING = {"MH801", "MH802", "MH803", "MH804", "MH805"}
"""These tell what preparation and runtimes say in their own words; reports mask what is secret in them."""

TEXTS = st.sampled_from(
    [
        "",
        " ",
        "${A}",
        "${A:-${B}}",
        "${lower}",
        "${env:X}",
        "$env:X",
        "{{X}}",
        "!run",
        "--token",
        "--api-key=abc",
        "http://x.test/?a=b&token=c",
        "https://${H}/sse",
        "http://[",
        "stdio",
        "http",
        "SSE",
        "streamable-http",
        "⚠️ broken",
        "20",
        "docker",
        "podman ",
        "uvx",
        "npx",
        "run",
        "-it",
        "-d",
        "-y",
        "-e",
        "--name",
        "~/x",
        "./x.js",
        "/Users/jane/x",
        "wss://x.test",
        "https://u@x.test#a",
        "<your key>",
        "a\nb",
        "Bearer",
        "x" * 501,
        "a\u2028b\n",
    ]
) | st.text(max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-10, 700) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
TABLES = st.dictionaries(
    st.sampled_from(["TOKEN", "Authorization", "X", "x", "Bearer", "X A ", "${K}", "__proto__", "1"]), TEXTS, max_size=3
)
FIELDS = st.sampled_from([*KNOWN_FIELDS, *FOREIGN, "header", "cwd", "__proto__", "oauth"])
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "type": TEXTS | VALUES,
        "command": TEXTS,
        "args": st.lists(TEXTS, max_size=6),
        "env": TABLES,
        "headers": TABLES,
        "url": TEXTS,
    },
) | st.dictionaries(FIELDS, VALUES, max_size=5)
NAMES = st.sampled_from(["a", "$schema", "mcpServers", "servers", "__proto__", "10", "x y", "${N}", "", "zimmer"])
CATALOGS = st.dictionaries(NAMES | TEXTS, ENTRIES | VALUES, max_size=4)


def written(catalog: dict[str, Any]) -> str:
    """A catalog as text; lone surrogates are refused before any rule sees them."""
    return json.dumps(catalog, ensure_ascii=False, indent=1).encode("utf-8", "replace").decode("utf-8")


@given(CATALOGS, st.none() | st.dictionaries(st.sampled_from("AB"), TEXTS, max_size=2))
def test_no_rule_raises_and_each_finding_has_a_place_and_one_line(catalog, values):
    for found in rule_findings(catalog_context(written(catalog), values=values), OURS):
        assert found.place.line >= 1
        assert found.place.column >= 1
        assert found.message
        assert found.fix


@given(CATALOGS)
def test_an_edit_leaves_json_and_takes_its_finding_away(catalog):
    text = written(catalog)
    for found in findings(text, OURS):
        if found.edits:
            result = applied(text, found.edits)
            json.loads(result)
            left = findings(result, {found.rule})
            assert found.fingerprint not in {each.fingerprint for each in left}, (found, result)


@given(st.sampled_from(["env", "headers", "args", "url"]), st.sampled_from(["TOKEN", "Authorization", "X"]))
def test_no_message_holds_the_literal_value_of_an_entry(place, name):
    secret = "ghp_" + "Zq9" * 12
    fields: dict[str, dict[str, Any]] = {
        "env": {"env": {name: secret}},
        "headers": {"headers": {name: f"!{secret}"}},
        "args": {"args": ["--token", secret]},
        "url": {"url": f"http://u:{secret}@x.test/${{lower-{secret}}}?token={secret}"},
    }
    oauth = {"clientSecret": "${A-" + secret + "}"}
    entry = {"type": secret, "startup_timeout_sec": secret, "oauth": oauth, **fields[place]}
    found = findings(json.dumps({"$schema": secret, "a": entry}), OURS - QUOTING)
    assert found
    assert all(secret not in each.message for each in found)


def test_the_shipped_catalog_gives_no_error_and_no_warning():
    found = findings(SHIPPED.read_text(encoding="utf-8"), OURS)
    assert [each for each in found if each.severity is not Severity.NOTE] == []


@given(ENTRIES)
def test_no_message_repeats_the_name_of_its_entry(entry):
    name = "Zyx_Wvu"
    for found in findings(written({name: entry}), OURS - QUOTING):
        assert name not in found.message, found


@given(ENTRIES)
def test_what_never_starts_by_an_error_of_a_rule_is_never_shown_as_starting(entry):
    context = catalog_context(written({"a": entry}))
    stopping = {rule for rule in OURS if RULES[rule].never_starts}
    stopped = {
        label
        for found in rule_findings(context, stopping)
        if found.severity is Severity.ERROR
        for label in found.runtimes or [runtime.label for runtime in context.runtimes]
    }
    for outcome in judge(context.entries["a"], context, touched=True).outcomes:
        assert outcome.runtime not in stopped or outcome.state not in (State.STARTS, State.AUTHORIZE)
