"""What holds of every declared reason."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.reference.catalog.catalog import read_catalog
from harness.reference.catalog.unavailable import LIMIT_CHARACTERS, declared_reason
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import SecretsLoader

BLANKS = "\t\n\v\f\r \u0085\u00a0\u2028\u2029"
TEXTS = st.text(alphabet=st.one_of(st.sampled_from(BLANKS), st.characters()), max_size=400)
LONG = st.builds(lambda text, times: text * times, st.text(alphabet="aé \n😀", min_size=1), st.integers(1, 300))


@pytest.mark.requirement("unavailable-collapse-whitespace", "unavailable-collapse-unicode-breaks")
@given(TEXTS)
@example("a\u2028b")
@example("a\r\n\tb")
def test_a_reason_is_one_line_without_runs_or_ends_of_whitespace(text):
    reason = declared_reason(text)
    if reason is None:
        assert text.split() == []
        return
    assert len(reason.splitlines()) == 1
    assert not set(reason) & set(BLANKS) - {" "}
    assert "  " not in reason
    assert reason == reason.strip()


@pytest.mark.requirement("unavailable-truncate-200")
@given(st.one_of(TEXTS, LONG))
@example("y" * 201)
def test_a_reason_is_the_collapsed_text_or_its_first_197_characters_and_dots(text):
    whole = " ".join(text.split())
    reason = declared_reason(text) or ""
    assert len(reason) <= LIMIT_CHARACTERS == 200
    assert reason == (whole if len(whole) <= 200 else whole[:197] + "...")


@pytest.mark.requirement("unavailable-normalise-idempotent")
@given(st.one_of(TEXTS, LONG))
@example("y" * 300)
def test_normalising_a_reason_again_changes_nothing(text):
    reason = declared_reason(text)
    assert declared_reason(reason) == reason


@pytest.mark.requirement("unavailable-nonstring-ignored")
@given(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.lists(st.text()), st.dictionaries(st.text(), st.text())
    )
)
@example(value=True)
def test_no_value_but_a_text_declares(value):
    assert declared_reason(value) is None


@pytest.mark.requirement("unavailable-description-never-read")
@given(st.text())
@example("⚠️ NOT USABLE YET")
def test_no_description_makes_a_server_unavailable(description):
    catalog = read_catalog({"a": {"type": "stdio", "command": "npx", "description": description}})
    (status,) = judge_all(catalog, SecretsLoader().resolution, lambda _: None)
    assert status.available
