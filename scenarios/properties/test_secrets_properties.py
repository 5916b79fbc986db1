"""Placeholders for any text: what a pass leaves alone, and how scanning and resolving agree."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.reference.catalog.catalog import read_catalog
from harness.reference.secrets.interpolator import resolve_entry, resolve_servers
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.secrets.placeholders import MissingVariableError, resolve_text, variables

NAMES = st.sampled_from(["A", "B", "_C1"])
PIECES = st.one_of(
    st.text(alphabet="ab$ {}:-", max_size=4),
    NAMES.map(lambda name: f"${{{name}}}"),
    st.tuples(NAMES, st.sampled_from(["", "d", "${"])).map(lambda pair: f"${{{pair[0]}:-{pair[1]}}}"),
    st.sampled_from(["${lower}", "${ A }", "$A", "${A-d}", "{{A}}"]),
)
TEXTS = st.lists(PIECES, max_size=5).map("".join)
VALUES = st.dictionaries(NAMES, st.sampled_from(["1", "${B}", "", " ", "v w", r"\1"]))


@st.composite
def entries(draw):
    return {
        "type": draw(st.sampled_from(["stdio", "http"])),
        "env": draw(st.dictionaries(st.sampled_from("XY"), TEXTS, max_size=2)),
        "headers": draw(st.dictionaries(st.sampled_from("HI"), TEXTS, max_size=2)),
        "args": draw(st.lists(st.one_of(TEXTS, st.integers()), max_size=3)),
        "url": draw(TEXTS),
    }


@pytest.mark.requirement("secrets-grammar", "secrets-values-not-rescanned")
@given(TEXTS, VALUES)
@example("${A}", {"A": "${B}", "B": "no"})
@example("x${A:-d}${_C1}", {"A": " ", "_C1": "${B}", "B": "no"})
def test_resolving_is_one_pass_of_replacements_from_left_to_right(text, values):
    expected, position = "", 0
    for found in re.finditer(r"\$\{([A-Z_][A-Z0-9_]*)(:-([^}]*))?\}", text):
        value = values.get(found[1], "").strip() and values[found[1]]
        expected += text[position : found.start()] + (value or (found[3] if found[2] else "<missing>"))
        position = found.end()
    expected += text[position:]
    assert resolved_or_missing(text, values) == ("<missing>" if "<missing>" in expected else expected)


def resolved_or_missing(text, values) -> str:
    try:
        return resolve_text(text, values.get)
    except MissingVariableError:
        return "<missing>"


@pytest.mark.requirement("secrets-required-variable", "secrets-blank-is-missing")
@given(entries(), VALUES)
def test_an_entry_resolves_exactly_when_each_of_its_required_variables_has_a_value(entry, values):
    loader = SecretsLoader(environment=values)
    absent = [name for name in variables(entry).required if loader.resolution(name).state != "found"]
    assert first_missing(entry, values) == (absent[0] if absent else None)


def first_missing(entry, values) -> str | None:
    try:
        resolve_entry(entry, values.get)
    except MissingVariableError as missing:
        return missing.name
    return None


@pytest.mark.requirement("secrets-catalog-has-placeholder")
@given(entries())
def test_resolving_never_changes_the_catalog(entry):
    tree = {"s": entry}
    before = json.dumps(tree)
    catalog = read_catalog(tree)
    resolve_servers({name: each.raw for name, each in catalog.entries.items()}, lambda _: "s3cr3t-marker")
    assert json.dumps(tree) == before
    assert "s3cr3t-marker" not in catalog.snapshot_text()


@pytest.mark.requirement("secrets-loader-order")
@given(st.lists(st.booleans(), min_size=3, max_size=3))
def test_the_first_provider_that_has_a_name_wins(holding):
    class Vendor:
        def has_row(self, _: str) -> bool:
            return bool(holding[0])

        def mint(self, _: str) -> str | None:
            return "vendor"

    name = "X_OAUTH_ACCESS_TOKEN"
    loader = SecretsLoader(
        vendor=Vendor(),
        credentials={name: "credentials"} if holding[1] else {},
        environment={name: "env"} if holding[2] else {},
    )
    holders = [label for label, holds in zip(["vendor", "credentials", "env"], holding, strict=True) if holds]
    assert loader.value(name) == (holders[0] if holders else None)
    assert (loader.resolution(name).state == "found") == bool(holders)
