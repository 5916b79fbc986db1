"""What holds of every catalog."""

from __future__ import annotations

import json
from copy import deepcopy

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.connection import connectable
from harness.reference.catalog.roots import default_mcp_servers
from harness.reference.catalog.schema import validate
from harness.reference.credentials.key import credential_key
from harness.reference.oauth.capability import oauth_capable
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.surfaces.options import options

FIELDS = (
    "title",
    "description",
    "type",
    "command",
    "args",
    "env",
    "url",
    "headers",
    "oauth",
    "default_in_roots",
    "unavailable",
    "startup_timeout_sec",
    "frob",
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-10, 700),
    st.sampled_from(["", " ", "stdio", "sse", "http", "npx", "https://x.test/mcp", "${T}", "r", "a\nb"]),
)
VALUES = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(st.sampled_from(["A", "Authorization", "clientId", "scopes", "a/b~c"]), SCALARS, max_size=3),
)
ENTRIES = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=8)
NAMES = st.sampled_from(["a", "b", "z", "zimmer", "a b", "$x", "", "mcpServers"])
TREES = st.dictionaries(NAMES, st.one_of(ENTRIES, SCALARS), max_size=5)


@pytest.mark.requirement("catalog-readonly")
@given(TREES)
@example(
    {"a": {"type": "stdio", "command": "npx", "env": {"A": "${T}"}, "unavailable": "a\nb", "startup_timeout_sec": 900}}
)
def test_reading_judging_and_validating_leave_the_tree_as_it_was(tree):
    before = deepcopy(tree)
    catalog = read_catalog(tree)
    statuses = judge_all(catalog, SecretsLoader(environment={"T": "the-secret"}).resolution, lambda _: None)
    options(catalog, statuses)
    connectable(catalog.entries.values())
    validate(tree)
    assert tree == before
    kept = json.loads(catalog.snapshot_text())
    assert kept == {name: raw for name, raw in tree.items() if isinstance(raw, dict)}
    assert list(kept) == [name for name, raw in tree.items() if isinstance(raw, dict)]


@pytest.mark.requirement("catalog-known-fields")
@given(ENTRIES)
def test_any_entry_is_read_and_none_takes_another_down(entry):
    good = {"type": "stdio", "command": "npx"}
    catalog = read_catalog({"odd": entry, "good": good})
    result = connectable(catalog.entries.values())
    assert catalog.names == ("odd", "good")
    assert "good" in [usable.name for usable in result.entries]
    assert len(result.entries) + len(result.warnings) == 2


@pytest.mark.requirement("catalog-http-alias-everywhere")
@given(ENTRIES)
def test_both_spellings_of_http_are_judged_alike(entry):
    judged = []
    for spelling in ("http", "streamable-http"):
        catalog = read_catalog({"a": {**entry, "type": spelling}})
        server = catalog.require("a")
        judged.append(
            (
                server.remote,
                oauth_capable(server.raw),
                credential_key("a", server.credential_config()),
                judge_all(catalog, SecretsLoader().resolution, lambda _: None),
                connectable([server]).warnings,
            )
        )
    assert judged[0] == judged[1]


@pytest.mark.requirement("catalog-default-order")
@given(st.permutations("abcd"), st.sets(st.sampled_from("abcd")))
def test_defaults_are_in_catalog_order(order, named):
    catalog = read_catalog({name: {"default_in_roots": ["r", "r"] if name in named else []} for name in order})
    assert default_mcp_servers("r", catalog, ["r"]) == tuple(name for name in order if name in named)


@pytest.mark.requirement("catalog-schema-open-world")
@given(VALUES, VALUES, VALUES)
def test_fields_that_the_schema_does_not_know_never_make_a_fault(first, second, third):
    unknown = {"unavailable": first, "startup_timeout_sec": second, "frob": third}
    assert validate({"a": {"type": "stdio", "command": "npx", **unknown}}) == ()


@given(TREES)
def test_faults_are_sorted_unique_and_of_the_known_rules(tree):
    faults = validate(tree)
    places = [(fault.at, fault.rule) for fault in faults]
    assert places == sorted(set(places))
    assert {rule for _, rule in places} <= {
        "enum",
        "forbidden",
        "name",
        "required",
        "too_long",
        "too_short",
        "type",
        "uri",
    }
