"""The places of a document agree with its values, whatever JSON it is and however it is laid out."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st

from harness.inputs.document import Document

CHARACTERS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), CHARACTERS
)
TREES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(CHARACTERS, inner, max_size=4)),
    max_leaves=15,
)
LAYOUTS = st.sampled_from([(None, (",", ":")), (2, (",", ": ")), ("\t", (" ,\r\n", " :  "))])


@given(tree=TREES, layout=LAYOUTS, ascii_only=st.booleans())
def test_the_text_at_each_place_is_the_value_at_its_pointer(tree, layout, ascii_only):
    indent, separators = layout
    text = json.dumps(tree, indent=indent, separators=separators, ensure_ascii=ascii_only)
    document = Document.parse("x.json", text.encode())
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n|$)", text)
    seen = 0
    for member in document.members:
        value = document.tree
        for part in member.pointer:
            value = value[part]
        assert json.loads(document.text[slice(*member.value)]) == value
        assert member.counts
        if member.key is not None:
            assert json.loads(document.text[slice(*member.key)]) == member.pointer[-1]
        line, column = document.position(member.value.start)
        assert lines[line - 1][column - 1 :].startswith(document.text[slice(*member.value)].splitlines()[0][:1])
        assert sum(map(len, lines[: line - 1])) + column - 1 == member.value.start
        seen += 1
    assert seen == size(tree)


@given(trees=st.lists(TREES, min_size=2, max_size=4))
def test_of_a_repeated_key_only_the_last_value_and_what_it_holds_count(trees):
    text = "{" + ", ".join(f'"k": {json.dumps(tree)}' for tree in trees) + "}"
    document = Document.parse("x.json", text.encode())
    counted = [member for member in document.members if member.counts]
    assert len(counted) == 1 + size(trees[-1])
    assert json.loads(document.text[slice(*document.find(("k",)).value)]) == trees[-1]
    assert len([pair for pair in document.duplicates if pair[0].pointer == ("k",)]) == len(trees) - 1


def size(tree: object) -> int:
    if isinstance(tree, dict):
        return 1 + sum(size(value) for value in tree.values())
    if isinstance(tree, list):
        return 1 + sum(size(value) for value in tree)
    return 1
