"""Readiness for any catalog and any local state: one computation, and what an outage may change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential
from harness.reference.oauth.capability import oauth_capable
from harness.reference.readiness.probe import Status, judge_all
from harness.reference.readiness.states import by_severity
from harness.reference.secrets.loader import ABSENT, UNREACHABLE, Resolution, SecretsLoader
from harness.reference.secrets.location import where_to_set
from harness.reference.secrets.placeholders import variables
from harness.reference.surfaces.connectors import rows
from harness.reference.surfaces.options import computed_statuses, mcp_servers_answer, options, picker
from harness.reference.surfaces.roster import mcp_section
from harness.reference.surfaces.warnings import cannot_start, sentence

NAMES = ["K1", "K2", "K3"]
HEADER_NAMES = ["Authorization", "X-API-Key", "X-Trace", "X-Author", "Idempotency-Key", "X-Password"]
TEXTS = st.sampled_from(["plain", "", "${K1}", "Bearer ${K2}", "${K3:-d}", "${K1}${K2}"])


@st.composite
def server_entries(draw):
    raw = {
        "title": draw(st.sampled_from(["Alpha", "beta", "Gamma"])),
        "type": draw(st.sampled_from(["stdio", "http", "streamable-http", "sse"])),
        "url": draw(st.sampled_from(["https://h/mcp", "https://${K2}/mcp"])),
        "headers": draw(st.dictionaries(st.sampled_from(HEADER_NAMES), TEXTS, max_size=2)),
        "env": draw(st.dictionaries(st.sampled_from("XY"), TEXTS, max_size=2)),
    }
    declared = draw(st.sampled_from([None, None, " ", "Gone.\n- now"]))
    return raw if declared is None else {**raw, "unavailable": declared}


CATALOGS = st.dictionaries(st.sampled_from(["z", "a", "m", "b-1", "q"]), server_entries(), max_size=5)
OUTCOMES = st.fixed_dictionaries({name: st.sampled_from(["found", "absent", "unreachable"]) for name in NAMES})
ROWS = st.lists(
    st.one_of(
        st.none(),
        st.builds(
            StoredCredential,
            st.sampled_from([None, 60, 0, -60]),
            st.sampled_from([None, "refresh-marker"]),
            st.sampled_from([None, "https://as.test/token", "http://localhost/token"]),
        ),
    ),
    min_size=5,
    max_size=5,
)


def judged(
    tree: Mapping[str, Any], outcomes: Mapping[str, str], stored: Sequence[StoredCredential | None]
) -> tuple[Catalog, tuple[Status, ...]]:
    catalog = read_catalog(tree)
    answers = {"found": Resolution("found", "ENV"), "absent": ABSENT, "unreachable": UNREACHABLE}
    return catalog, judge_all(catalog, lambda name: answers[outcomes[name]], filed(catalog, stored).get)


def filed(catalog: Catalog, stored: Sequence[StoredCredential | None]) -> dict[str, StoredCredential]:
    """The rows under the keys of the servers, in the catalog's order."""
    return {
        credential_key(name, entry.credential_config()): row
        for (name, entry), row in zip(catalog.entries.items(), stored, strict=False)
        if row is not None
    }


def told_where(name: str) -> str:
    return where_to_set(name, "production", store_configured=True)


@pytest.mark.requirement(
    "readiness-one-computation",
    "connectors-one-probe-all-surfaces",
    "offer-reader-idiom",
    "unavailable-same-text-everywhere",
)
@given(CATALOGS, OUTCOMES, ROWS)
def test_all_surfaces_agree_on_which_servers_cannot_start_and_why(tree, outcomes, stored):
    catalog, statuses = judged(tree, outcomes, stored)
    blocked = {status.name: status.reason_plain for status in statuses if not status.available}
    rest = {
        server["name"]: server["unavailable_reason"]
        for server in mcp_servers_answer(options(catalog, statuses))["mcp_servers"]
        if server["unavailable"]
    }
    roster = dict(re.findall(r"^- `(.+?)` — unavailable: (.*)$", mcp_section(catalog, statuses), re.M))
    page = {row.name: row.reason for row in rows(statuses, told_where) if row.reason is not None}
    warned = {server.name: server.reason for server in cannot_start(statuses)}
    badged = picker((option.name, option.unavailable) for option in options(catalog, statuses)).badged
    plain = {name: reason.replace("`", "") for name, reason in roster.items()}
    assert blocked == rest == warned == plain
    assert {name: reason.replace("`", "") for name, reason in page.items()} == blocked
    assert set(badged) == set(blocked)
    assert (sentence(cannot_start(statuses)) is None) == (not blocked)


@pytest.mark.requirement("offer-roster-partition", "offer-picker-keeps-all", "offer-rest-reason-invariant")
@given(CATALOGS, OUTCOMES, ROWS)
def test_list_and_roster_share_the_catalog_and_a_reason_goes_with_every_flag(tree, outcomes, stored):
    catalog, statuses = judged(tree, outcomes, stored)
    section = mcp_section(catalog, statuses)
    listed = re.findall(r"^- \*\*Name:\*\* `(.+)`$", section, re.M)
    roster = re.findall(r"^- `(.+?)` — unavailable: .+$", section, re.M)
    assert sorted(listed + roster) == sorted(catalog.names)
    offered = options(catalog, statuses)
    assert [option.name for option in offered] == list(catalog.names)
    assert all((option.unavailable_reason is None) != option.unavailable for option in offered)
    shown = picker((option.name, option.unavailable) for option in offered)
    assert sorted(shown.order) == sorted(catalog.names)


@pytest.mark.requirement(
    "readiness-store-blip-no-emptying", "connectors-blip-keeps-list", "offer-uncertain-stays-listed"
)
@given(CATALOGS, OUTCOMES, ROWS)
def test_an_outage_of_the_store_never_shrinks_the_list_but_for_what_no_variable_decides(tree, outcomes, stored):
    catalog, normal = judged(tree, outcomes, stored)
    _, outage = judged(tree, dict.fromkeys(NAMES, "unreachable"), stored)
    listed = {status.name for status in normal if status.available}
    still = {status.name for status in outage if status.available}
    needs_no_store = {name for name, entry in catalog.entries.items() if not variables(entry.raw).required}
    assert listed <= still
    by_variable = {
        name for name in catalog.names if name not in needs_no_store and catalog.entries[name].unavailable is None
    }
    assert by_variable <= still
    assert not any("unresolved" in str(status.reason_plain) for status in outage)


@pytest.mark.requirement("readiness-check-order", "readiness-missing-names-all")
@given(CATALOGS, OUTCOMES, ROWS)
@example({"a": {"type": "stdio", "env": {"X": "${K1}${K2}"}}}, {"K1": "absent", "K2": "absent", "K3": "found"}, [])
@example({"a": {"type": "stdio", "env": {"X": "${K1}${K2}"}}}, {"K1": "absent", "K2": "unreachable", "K3": "found"}, [])
def test_the_first_of_declaration_unreachable_and_absent_decides(tree, outcomes, stored):
    catalog, statuses = judged(tree, outcomes, stored)
    for status in statuses:
        entry = catalog.entries[status.name]
        answers = {name: outcomes[name] for name in variables(entry.raw).required}
        if entry.unavailable is not None:
            assert status.state == "declared_unavailable"
        elif "unreachable" in answers.values():
            assert status.state == "store_unavailable"
        elif "absent" in answers.values():
            assert status.state == "missing_configuration"
            absent = [name for name, answer in answers.items() if answer == "absent"]
            assert list(status.missing_variables) == absent
            assert status.reason_plain == f"{', '.join(absent)} unresolved"
        else:
            assert status.state not in {"declared_unavailable", "store_unavailable", "missing_configuration"}


@pytest.mark.requirement("gate-single-predicate", "readiness-oauth-capability", "readiness-static-header-resolved")
@given(CATALOGS)
def test_readiness_and_the_gate_mean_the_same_servers_when_they_speak_of_oauth(tree):
    catalog, statuses = judged(
        {name: {key: value for key, value in raw.items() if key != "unavailable"} for name, raw in tree.items()},
        dict.fromkeys(NAMES, "found"),
        [],
    )
    assert {status.name for status in statuses if status.state == "needs_authorization"} == {
        name for name, entry in catalog.entries.items() if oauth_capable(entry.raw)
    }


@pytest.mark.requirement("gate-header-bias-to-authorize")
@given(
    st.lists(
        st.sampled_from(["trace", "id", "team", "version", "author", "idempotency", "key"]), min_size=1, max_size=4
    ),
    st.sampled_from("-_"),
    st.booleans(),
)
def test_names_of_routine_words_alone_keep_the_authorize_button(words, separator, upper):
    name = separator.join(words)
    headers = {name.upper() if upper else name: "v"}
    assert oauth_capable({"type": "http", "url": "https://h/mcp", "headers": headers})


@pytest.mark.requirement("readiness-deterministic", "offer-get-configs-deterministic")
@given(CATALOGS, OUTCOMES, ROWS)
def test_the_same_inputs_give_the_same_bytes(tree, outcomes, stored):
    def rendered() -> str:
        catalog, statuses = judged(tree, outcomes, stored)
        answers = json.dumps(mcp_servers_answer(options(catalog, statuses)))
        return "\n".join([repr(statuses), mcp_section(catalog, statuses), answers])

    assert rendered() == rendered()


@pytest.mark.requirement("readiness-no-secret-values", "secrets-value-confined", "warnings-warning-no-secret")
@given(CATALOGS, ROWS, st.sampled_from(["value-marker", "value-marker ${K1}"]))
def test_no_surface_and_no_status_holds_a_secret_or_a_token(tree, stored, value):
    catalog = read_catalog(tree)
    loader = SecretsLoader(environment=dict.fromkeys(NAMES[:2], value))
    statuses = judge_all(catalog, loader.resolution, filed(catalog, stored).get)
    shown = [
        repr(statuses),
        repr(filed),
        repr(loader),
        repr([loader.resolution(name) for name in NAMES]),
        mcp_section(catalog, statuses),
        json.dumps(mcp_servers_answer(options(catalog, computed_statuses(lambda: statuses)))),
        repr(rows(statuses, told_where)),
        str(sentence(cannot_start(statuses))),
    ]
    assert [text for text in shown if "value-marker" in text or "refresh-marker" in text] == []


@pytest.mark.requirement("readiness-severity-ranks")
@given(CATALOGS, OUTCOMES, ROWS)
def test_the_sort_is_stable(tree, outcomes, stored):
    _, statuses = judged(tree, outcomes, stored)
    ordered = by_severity(statuses, lambda status: status.state)
    for state in {status.state for status in statuses}:
        assert [each for each in ordered if each.state == state] == [each for each in statuses if each.state == state]
