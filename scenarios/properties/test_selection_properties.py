"""What holds of the selection rules for any lists, urls and entries."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reference.selection import session as rules
from harness.reference.selection.patch import patch
from harness.reference.selection.session import Session
from harness.reference.selection.zimmer import Instance, inject, retarget

PRODUCTION_HOST = "zimmer.example.com"
PRODUCTION_KEY = "production-key"
INSTANCE = Instance("staging", "https://staging.test", "staging-key")

names = st.lists(st.sampled_from("abcdef"), max_size=6).map(tuple)
key_names = st.sampled_from(["X-API-Key", "x-api-key", "X-Api-Key", "X-API-KEY"])
header_tables = st.dictionaries(key_names, st.just(PRODUCTION_KEY), max_size=3)
urls = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["https://", "http://", "HTTPS://", "//", ""]),
    st.sampled_from(["", "user@", "user:production-key@"]),
    st.sampled_from([PRODUCTION_HOST, "${HOST:-zimmer.example.com}"]),
    st.sampled_from(["", ":443", ":8080"]),
    st.sampled_from(["", "/mcp", "/mcp?tool_groups=sessions", "?x=1", "/a/../b#f"]),
)
entries = st.fixed_dictionaries(
    {"url": urls},
    optional={"headers": header_tables, "http_headers": header_tables, "env_http_headers": header_tables},
)


@pytest.mark.requirement("selection-retarget-every-zimmer", "selection-retarget-key")
@given(st.sampled_from(["zimmer", "zimmer-sessions", "zimmer-x"]), entries)
def test_a_retargeted_entry_holds_no_trace_of_production(name, entry):
    written = json.dumps(retarget(name, entry, INSTANCE))
    assert PRODUCTION_HOST not in written
    assert PRODUCTION_KEY not in written
    assert '"X-API-Key": "staging-key"' in written


@given(entries)
def test_retargeting_twice_is_retargeting_once(entry):
    once = retarget("zimmer", entry, INSTANCE)
    assert retarget("zimmer", once, INSTANCE) == once


@pytest.mark.requirement("selection-all-is-union")
@given(names, names, names)
def test_all_servers_hold_each_name_once_in_the_order_of_their_sources(chosen, plugin, injected):
    shown = rules.all_mcp_servers(Session(chosen, plugin_servers=plugin, injected=injected))
    assert len(shown) == len(set(shown))
    assert set(shown) == {*chosen, *plugin, *injected}
    assert [*shown] == sorted(shown, key=[*chosen, *plugin, *injected].index)


@pytest.mark.requirement("selection-owned-after-seeding")
@given(names, st.lists(names, max_size=4))
def test_a_seeded_list_survives_any_later_defaults(chosen, later):
    given_list, from_the_root = rules.seed(list(chosen), ("a",)), rules.seed(None, chosen or ("a",))
    for defaults in later:
        given_list = rules.backfill(given_list, defaults, "abcdef")
        from_the_root = rules.backfill(from_the_root, defaults, "abcdef")
    assert given_list.chosen == chosen
    assert from_the_root.chosen == (chosen or ("a",))


@pytest.mark.requirement("selection-patch-mutates")
@given(names, st.lists(st.sampled_from(["a", " b", "", "nope", None, 3]), max_size=60))
def test_a_patch_takes_the_whole_list_or_changes_nothing(before, sent):
    answer = patch({"mcp_servers": sent}, before, "abcdef")
    if answer.status == 200:
        assert answer.mcp_servers == tuple(name.strip() for name in sent if isinstance(name, str) and name.strip())
    else:
        assert answer.mcp_servers == before
        assert answer.error


@pytest.mark.requirement("selection-zimmer-entries-deliberate")
@given(st.dictionaries(st.sampled_from(["a", "zimmer", "zimmer-x", "zimmer-self-session"]), st.none() | urls), names)
def test_only_the_two_names_are_ever_injected(existing, roots):
    assert set(inject(existing, roots, "http://h")) <= {"zimmer", "zimmer-self-session"}
