"""What the surfaces make of one computation of the statuses: options, roster, page, warning, REST."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft7Validator

from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.readiness.probe import Status, judge_all, judge_named
from harness.reference.readiness.states import State
from harness.reference.secrets.loader import UNREACHABLE, SecretsLoader
from harness.reference.secrets.location import where_to_set
from harness.reference.surfaces.connectors import attention_line, rows, unclaimed
from harness.reference.surfaces.options import (
    computed_statuses,
    configs_answer,
    mcp_servers_answer,
    options,
    picker,
)
from harness.reference.surfaces.roster import mcp_section, root_defaults
from harness.reference.surfaces.static_files import static_files
from harness.reference.surfaces.warnings import CannotStart, cannot_start, creation_warning, sentence
from scenarios.shipped import shipped_catalog

NO_DISCOVERY = "The endpoint accepts only static bearer tokens and exposes no OAuth discovery."

STANDARD: dict[str, dict[str, Any]] = {
    "context7": {
        "title": "Context7",
        "description": "Up-to-date library documentation lookup.",
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "@upstash/context7-mcp@latest"],
        "startup_timeout_sec": 20,
    },
    "zimmer-self-session": {
        "title": "Zimmer Self Session",
        "description": "Zimmer's own session tools.",
        "type": "streamable-http",
        "url": "https://zimmer.example.com/mcp",
        "headers": {"X-API-Key": "${ZIMMER_PROD_API_KEY}"},
    },
    "strad-secrets-staging-rw": {
        "title": "Strad Secrets Staging",
        "description": "Staging secrets, read-write.",
        "type": "streamable-http",
        "url": "https://staging.example.com/mcp",
        "headers": {"Authorization": "Bearer ${STRAD_STAGING_API_KEY}"},
    },
    "strad-secrets-oauth": {
        "title": "Strad Secrets (OAuth)",
        "description": "Secrets over OAuth.",
        "type": "streamable-http",
        "url": "https://secrets.example.com/mcp",
        "unavailable": f"  {NO_DISCOVERY}\n",
    },
}
LOADER = SecretsLoader(environment={"ZIMMER_PROD_API_KEY": "k"})


def nothing_stored(_: str) -> None:
    return None


def judged(catalog: Catalog) -> tuple[Status, ...]:
    return judge_all(catalog, LOADER.resolution, nothing_stored)


def told_where(name: str) -> str:
    return where_to_set(name, "production", store_configured=False)


@pytest.fixture
def standard():
    return read_catalog(STANDARD)


@pytest.mark.requirement("unavailable-shown-in-roster", "offer-get-configs-roster", "offer-roster-not-a-catalog")
def test_a_server_that_cannot_start_is_one_line_of_the_roster_and_no_item(standard):
    text = mcp_section(standard, judged(standard))
    assert f"\n- `strad-secrets-oauth` — unavailable: {NO_DISCOVERY}\n" in text
    assert "\n- `strad-secrets-staging-rw` — unavailable: `STRAD_STAGING_API_KEY` unresolved\n" in text
    assert "### Strad Secrets" not in text
    assert "Staging secrets, read-write." not in text


@pytest.mark.requirement("offer-get-configs-usable-only", "offer-get-configs-header", "offer-roster-exists-message")
def test_the_usable_list_is_counted_and_the_roster_says_that_its_servers_exist(standard):
    text = mcp_section(standard, judged(standard))
    assert "Found 2 usable servers (of 4 in the catalog; the other 2 are unavailable, listed below):" in text
    assert [line for line in text.splitlines() if line.startswith("### ")] == [
        "### Context7",
        "### Zimmer Self Session",
        "### Unavailable",
    ]
    assert text.count("2 catalog servers cannot be attached right now. They exist") == 1
    two = read_catalog({name: STANDARD[name] for name in ("context7", "strad-secrets-oauth")})
    short = mcp_section(two, judged(two))
    assert "Found 1 usable server (of 2 in the catalog; the other 1 is unavailable, listed below):" in short
    assert "1 catalog server cannot be attached right now. It exists" in short


@pytest.mark.requirement("readiness-store-blip-no-emptying", "offer-uncertain-stays-listed")
def test_an_outage_of_the_store_leaves_the_roster_to_what_no_variable_decides():
    declared = {**STANDARD["context7"], "unavailable": "Gone."}
    secret = {**STANDARD["context7"], "env": {"K": "${K}"}}
    catalog = read_catalog({"a": secret, "b": secret, "c": STANDARD["context7"], "d": declared})
    text = mcp_section(catalog, judge_all(catalog, lambda _: UNREACHABLE, nothing_stored))
    assert "Found 3 usable servers (of 4 in the catalog; the other 1 is unavailable, listed below):" in text
    assert [line for line in text.splitlines() if line.startswith("- `")] == ["- `d` — unavailable: Gone."]


@pytest.mark.requirement("offer-no-roster-when-all-ok", "offer-get-configs-empty-forms")
def test_the_section_has_forms_for_nothing_blocked_nothing_there_and_all_blocked():
    one, none = read_catalog({"context7": STANDARD["context7"]}), read_catalog({})
    blocked = read_catalog({"strad-secrets-oauth": STANDARD["strad-secrets-oauth"]})
    healthy, empty, nothing_usable = (mcp_section(each, judged(each)) for each in (one, none, blocked))
    assert "Found 1 usable server:" in healthy
    assert "Unavailable" not in healthy + empty
    assert "*No MCP servers available.*" in empty
    assert "*Every catalog server is currently unavailable — see below.*" in nothing_usable
    assert "### Unavailable" in nothing_usable


@pytest.mark.requirement("offer-roster-one-line")
def test_a_reason_of_many_lines_stays_one_line_of_the_roster():
    catalog = read_catalog({"a": {**STANDARD["strad-secrets-oauth"], "unavailable": "- x\n### y\n" * 100}})
    lines = mcp_section(catalog, judged(catalog)).splitlines()
    (entry,) = [line for line in lines if line.startswith("- `a`")]
    assert len(entry.removeprefix("- `a` — unavailable: ")) <= 200
    assert sum(line.startswith("### ") for line in lines) == 1


@pytest.mark.requirement("offer-root-default-marked", "offer-root-default-mark-scope")
def test_a_root_default_that_cannot_start_is_marked_and_no_other(standard):
    defaults = ["context7", "strad-secrets-staging-rw", "not-in-the-catalog"]
    assert root_defaults(defaults, judged(standard)) == (
        "`context7`, `strad-secrets-staging-rw` (unavailable), `not-in-the-catalog`"
    )
    uncertain = judge_all(standard, lambda _: UNREACHABLE, nothing_stored)
    assert root_defaults(defaults[:2], uncertain) == "`context7`, `strad-secrets-staging-rw`"


@pytest.mark.requirement("unavailable-shown-on-connectors", "offer-connectors-all-servers")
def test_the_page_lists_every_server_and_a_declared_one_without_any_button(standard):
    page = rows(judged(standard), told_where)
    assert [row.name for row in page] == [
        "strad-secrets-oauth",
        "strad-secrets-staging-rw",
        "zimmer-self-session",
        "context7",
    ]
    declared, missing = page[0], page[1]
    assert (declared.state, declared.label, declared.reason) == ("declared_unavailable", "Unavailable", NO_DISCOVERY)
    assert (declared.authorizable, declared.instructions) == (False, ())
    assert (missing.label, missing.authorizable) == ("Missing configuration", False)
    assert missing.instructions == (told_where("STRAD_STAGING_API_KEY"),)
    assert attention_line([row.state for row in page]) == "2 need attention, listed first"


@pytest.mark.requirement("connectors-attention-count")
@pytest.mark.parametrize(
    ("states", "line"),
    [
        ([], "Everything is configured"),
        (["ready", "no_credential_required"], "Everything is configured"),
        (["ready", "token_expired"], "1 needs attention, listed first"),
        (["needs_reauth"] * 3, "3 need attention, listed first"),
    ],
)
def test_the_page_counts_what_needs_attention(states, line):
    assert attention_line(states) == line


@pytest.mark.requirement("connectors-unclaimed-not-counted", "connectors-other-key-not-matched")
def test_a_credential_under_another_key_is_listed_apart_and_claims_no_server():
    catalog = read_catalog({"n": {"type": "http", "url": "https://n/mcp"}})
    assert unclaimed(catalog, ["n|staleconfighash", "gone|1"]) == ("n|staleconfighash", "gone|1")


@pytest.mark.requirement("unavailable-same-text-everywhere")
def test_every_surface_shows_the_same_normalised_reason():
    catalog = read_catalog({"a": {**STANDARD["strad-secrets-oauth"], "unavailable": "  Gone.\n\tUse x.  "}})
    statuses = judged(catalog)
    (option,), (row,) = options(catalog, statuses), rows(statuses, told_where)
    (rest,) = mcp_servers_answer([option])["mcp_servers"]
    warning = creation_warning(lambda: statuses)
    assert {option.unavailable_reason, row.reason, rest["unavailable_reason"]} == {"Gone. Use x."}
    assert "- `a` — unavailable: Gone. Use x.\n" in mcp_section(catalog, statuses)
    assert warning is not None
    assert "a (Gone. Use x). The session was created anyway and will run without those tools" in warning


@pytest.mark.requirement("startup-timeout-rest-reports-accepted", "startup-timeout-rest-both-equal")
def test_both_rest_lists_report_the_accepted_budget_of_every_server():
    declared = {"a": 20, "b": 900, "c": "20", "d": 4, "e": 600, "f": None}
    catalog = read_catalog(
        {
            **{
                name: {"type": "stdio", "command": "c", "startup_timeout_sec": value}
                for name, value in declared.items()
            },
            "none": {"type": "stdio", "command": "c"},
        }
    )
    offered = options(catalog, judged(catalog))
    servers, configs = mcp_servers_answer(offered)["mcp_servers"], configs_answer(offered)["mcp_servers"]
    expected = {"a": 20, "b": None, "c": None, "d": None, "e": 600, "f": None, "none": None}
    assert {server["name"]: server.get("startup_timeout_sec", "no key") for server in servers} == expected
    assert servers == configs


@pytest.mark.requirement(
    "offer-rest-unavailable-bool", "offer-rest-reason", "offer-rest-shape", "offer-rest-all-listed"
)
def test_the_rest_list_holds_every_server_in_catalog_order_with_flag_and_plain_reason(standard):
    servers = mcp_servers_answer(options(standard, judged(standard)))["mcp_servers"]
    assert [(server["name"], server["unavailable"], server["unavailable_reason"]) for server in servers] == [
        ("context7", False, None),
        ("zimmer-self-session", False, None),
        ("strad-secrets-staging-rw", True, "STRAD_STAGING_API_KEY unresolved"),
        ("strad-secrets-oauth", True, NO_DISCOVERY),
    ]
    keys = {"name", "title", "description", "unavailable", "unavailable_reason", "startup_timeout_sec"}
    assert [set(server) for server in servers] == [keys] * 4


@pytest.mark.requirement("offer-rest-configs-sections")
def test_the_configs_answer_has_four_sections_and_plain_root_defaults(standard):
    roots = [{"name": "r", "default_mcp_servers": ["strad-secrets-staging-rw"]}]
    models, goals = [{"runtime": "claude", "models": ["m"]}], [{"name": "g"}]
    body = configs_answer(options(standard, judged(standard)), agent_roots=roots, runtime_models=models, goals=goals)
    assert list(body) == ["mcp_servers", "agent_roots", "runtime_models", "goals"]
    assert (body["agent_roots"], body["runtime_models"], body["goals"]) == (roots, models, goals)


@pytest.mark.requirement("offer-picker-sorted-last", "offer-picker-badge", "offer-picker-keeps-all")
def test_a_picker_keeps_every_server_and_puts_the_badged_ones_last(standard):
    order = [("bad1", True), ("ok1", False), ("bad2", True), ("ok2", False)]
    assert picker(order) == (("ok1", "ok2", "bad1", "bad2"), ("bad1", "bad2"))
    offered = options(standard, judged(standard))
    shown = picker((option.name, option.unavailable) for option in offered)
    assert shown.order == tuple(STANDARD)
    assert shown.badged == ("strad-secrets-staging-rw", "strad-secrets-oauth")


@pytest.mark.requirement("offer-options-fallback")
def test_where_readiness_cannot_run_every_server_is_offered_without_a_flag(standard):
    def cannot_run():
        raise RuntimeError("no database")

    offered = options(standard, computed_statuses(cannot_run))
    assert [(option.name, option.unavailable, option.unavailable_reason) for option in offered] == [
        (name, False, None) for name in STANDARD
    ]
    assert "Found 4 usable servers:" in mcp_section(standard, computed_statuses(cannot_run))


@pytest.mark.requirement("catalog-entry-order-kept")
def test_every_list_keeps_the_order_of_the_catalog():
    catalog = read_catalog({name: {"type": "stdio", "command": "c", "title": name} for name in ("z", "a", "m")})
    statuses = judged(catalog)
    offered = options(catalog, statuses)
    section = mcp_section(catalog, statuses)
    assert [option.name for option in offered] == ["z", "a", "m"]
    assert [server["name"] for server in configs_answer(offered)["mcp_servers"]] == ["z", "a", "m"]
    assert [line for line in section.splitlines() if line.startswith("### ")] == ["### z", "### a", "### m"]
    assert picker((option.name, option.unavailable) for option in offered).order == ("z", "a", "m")


@pytest.mark.requirement("catalog-snapshot-served")
def test_the_schema_copy_is_served_at_its_path():
    served = static_files()
    schema = json.loads(served.get("/mcp.schema.json", "null"))
    assert schema is not None
    assert schema["$schema"].startswith("http://json-schema.org/draft-07/schema")
    Draft7Validator.check_schema(schema)


@pytest.mark.requirement("catalog-sixteen-readiness-no-secrets")
def test_without_any_secret_six_of_the_shipped_servers_are_usable_and_ten_are_not():
    catalog = read_catalog(shipped_catalog())
    statuses = judge_all(catalog, SecretsLoader().resolution, nothing_stored)
    by_state: dict[str, list[str]] = {}
    for status in statuses:
        by_state.setdefault(status.state, []).append(status.name)
    zimmer = [name for name in catalog.names if name.startswith("zimmer")]
    usable = ["playwright-custom", "context7", "linear", "remote-fs-screenshots", "image-diff", "svg-tracer"]
    assert by_state.get(State.NO_CREDENTIAL_REQUIRED) == usable
    assert set(by_state.get(State.MISSING_CONFIGURATION, [])) == {"slack-workspace", "secrets-service-account", *zimmer}
    assert by_state.get(State.NEEDS_AUTHORIZATION) == ["figma", "notion"]
    assert len(zimmer) == 6
    assert "Found 6 usable servers (of 16 in the catalog; the other 10 are unavailable, listed below):" in mcp_section(
        catalog, statuses
    )


FAILS = "preparing it is expected to fail outright until the missing value is set"
PARKS = "it will park for OAuth authorization before the agent runs"
LACKS = "will run without those tools"


@pytest.mark.requirement(
    "warnings-branch-on-worst", "warnings-missing-text", "warnings-oauth-text", "warnings-declared-text"
)
@pytest.mark.parametrize(
    ("states", "told"),
    [
        (["missing_configuration", "declared_unavailable"], FAILS),
        (["needs_authorization", "missing_configuration"], FAILS),
        (["needs_reauth", "declared_unavailable"], PARKS),
        (["needs_authorization"], PARKS),
        (["declared_unavailable"], LACKS),
    ],
)
def test_the_warning_names_what_the_worst_state_costs_and_nothing_else(states, told):
    text = sentence([CannotStart(f"s{number}", state, "X") for number, state in enumerate(states)])
    assert text is not None
    assert [clause for clause in (FAILS, PARKS, LACKS) if clause in text] == [told]


@pytest.mark.requirement("warnings-sentence-head", "warnings-says-which-and-why", "warnings-plain-reasons")
def test_the_warning_names_every_server_with_its_reason(standard):
    blocked = cannot_start(judge_named(standard, STANDARD, LOADER.resolution, nothing_stored))
    text = sentence(blocked)
    assert text is not None
    assert text.startswith(
        "Zimmer cannot start MCP servers strad-secrets-staging-rw (STRAD_STAGING_API_KEY unresolved) "
        "and strad-secrets-oauth (The endpoint accepts only static bearer tokens and exposes no OAuth discovery). "
    )
    three = sentence(
        [CannotStart(name, "declared_unavailable", reason) for name, reason in [("a", "X."), ("b", None), ("c", "Z..")]]
    )
    assert three is not None
    assert three.startswith("Zimmer cannot start MCP servers a (X), b, and c (Z.). ")
    assert sentence([]) is None


@pytest.mark.requirement("warnings-sentence-head")
@pytest.mark.parametrize("reason", [None, "", "  ", ".", " ."])
def test_the_warning_gives_a_name_alone_where_the_reason_says_nothing(reason):
    text = sentence([CannotStart("a", "declared_unavailable", reason)])
    assert str(text).startswith("Zimmer cannot start MCP server a. ")


@pytest.mark.requirement("warnings-points-at-connectors")
def test_the_warning_points_at_the_page_where_that_helps():
    for state in ("missing_configuration", "needs_authorization", "needs_reauth"):
        assert "/connectors" in str(sentence([CannotStart("a", state, "X")]))


@pytest.mark.requirement("warnings-readiness-raises-silent")
def test_where_readiness_cannot_be_computed_nothing_is_said():
    class OddError(Exception):
        """No error that the warning could know."""

    def cannot_run():
        raise OddError("plugins")

    assert creation_warning(cannot_run) is None
