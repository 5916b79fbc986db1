"""`startup_timeout_sec`: what is accepted, and what each runtime gets."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.reference.catalog import startup_timeout
from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.catalog.entry import read_entry
from harness.reference.catalog.readers import read_servers
from harness.reference.catalog.startup_timeout import accept
from harness.reference.prepare.budgets import claude_mcp_timeout, codex_table, pi_entry
from harness.reference.prepare.pipeline import prepare
from harness.reference.prepare.request import PrepareRequest
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.selection.zimmer import Instance
from harness.reference.surfaces.options import options

STDIO = {"command": "npx", "args": []}
REMOTE = {"url": "https://x.test/mcp"}
REFUSED = [
    2,
    4,
    601,
    900,
    0,
    -30,
    "20",
    "60",
    "90",
    60.0,
    1.5,
    6e1,
    True,
    False,
    [60],
    [],
    {"seconds": 60},
    {},
]


def session(*names: str) -> str:
    """The text of a clone's .mcp.json with these servers."""
    return json.dumps({"mcpServers": dict.fromkeys(names, STDIO)})


def catalog_of(**budgets: Any) -> Catalog:
    """A catalog of stdio servers with these declarations (None: no field)."""
    plain = {"type": "stdio", "command": "npx"}
    return read_catalog(
        {
            name: plain if budget is None else {**plain, "startup_timeout_sec": budget}
            for name, budget in budgets.items()
        }
    )


def claude_milliseconds(**budgets: Any) -> str:
    """MCP_TIMEOUT of a session with all these servers."""
    return claude_mcp_timeout(session(*budgets), catalog_of(**budgets))


@pytest.mark.requirement("startup-timeout-default-180")
def test_without_a_declaration_every_runtime_gets_three_minutes():
    assert claude_milliseconds(a=None) == "180000"
    assert codex_table(STDIO, None) == {**STDIO, "startup_timeout_sec": 180}
    assert pi_entry(STDIO, None) == {**STDIO, "requestTimeoutMs": 180_000}


@pytest.mark.requirement("startup-timeout-default-180")
def test_the_three_spellings_of_the_default_come_from_one_number(monkeypatch):
    monkeypatch.setattr(startup_timeout, "SECONDS", 200)
    assert claude_milliseconds(a=None) == "200000"
    assert codex_table(STDIO, None)["startup_timeout_sec"] == 200
    assert pi_entry(STDIO, 190)["requestTimeoutMs"] == 200_000


@pytest.mark.requirement("startup-timeout-integer-5-600")
def test_whole_seconds_from_5_to_600_are_accepted():
    assert [accept(value).seconds for value in (5, 6, 20, 180, 599, 600)] == [5, 6, 20, 180, 599, 600]
    assert [accept(value) for value in (4, 601, 0, -30, 10**30)] == [(None, "out_of_range")] * 5
    assert read_entry("a", {"startup_timeout_sec": 5}).startup_timeout_sec == 5


@pytest.mark.requirement("startup-timeout-nonintegers-refused")
@pytest.mark.parametrize(
    "spelling", ['"20"', '"60"', "60.0", "1.5", "6e1", "true", "false", "[60]", '{"seconds": 60}', '""', "[]"]
)
def test_what_is_no_json_integer_is_refused(spelling):
    assert accept(json.loads(spelling)) == (None, "not_an_integer")
    assert read_entry("a", {"startup_timeout_sec": json.loads(spelling)}).startup_timeout_sec is None


@pytest.mark.requirement("startup-timeout-null-is-silent")
def test_null_and_absent_declare_nothing_and_say_nothing():
    assert accept(None) == (None, None)
    catalog = read_catalog({"a": {"type": "stdio", "startup_timeout_sec": None}, "b": {"type": "stdio"}})
    assert catalog.warnings == ()
    assert read_servers(lambda: {"mcp": {"a": {"startup_timeout_sec": None}, "b": {}}}).log == ()
    assert [entry.startup_timeout_sec for entry in catalog.entries.values()] == [None, None]


@pytest.mark.requirement("startup-timeout-refusal-warns")
@pytest.mark.parametrize(
    ("value", "shown", "why"),
    [
        (900, "startup_timeout_sec=900", "outside the 5-600s range"),
        (4, "startup_timeout_sec=4", "outside the 5-600s range"),
        ("60", 'startup_timeout_sec="60"', "expected an integer number of seconds"),
        (60.0, "startup_timeout_sec=60.0", "expected an integer number of seconds"),
        (True, "startup_timeout_sec=true", "expected an integer number of seconds"),
        ("a\nb\u2028c", 'startup_timeout_sec="a\\nb\\u2028c"', "expected an integer number of seconds"),
    ],
)
def test_a_refused_value_leaves_one_line_that_says_what_and_where(value, shown, why):
    warnings = catalog_of(loud=value, quiet=20).warnings
    assert len(warnings) == 1
    line = warnings[0]
    for part in (shown, "loud", why, "Falling back to 180s"):
        assert part in line
    assert len(line.splitlines()) == 1
    log = read_servers(lambda: {"mcp": {"loud": {"startup_timeout_sec": value}}}).log
    assert [(entry.level, shown in entry.text) for entry in log] == [("warning", True)]


@pytest.mark.requirement("startup-timeout-refusal-falls-to-default")
@pytest.mark.parametrize("value", REFUSED)
def test_a_refused_value_is_like_no_declaration_on_every_runtime(value):
    assert claude_milliseconds(a=value) == claude_milliseconds(a=None) == "180000"
    for entry in (STDIO, REMOTE):
        assert codex_table(entry, value) == codex_table(entry, None)
        assert pi_entry(entry, value) == pi_entry(entry, None)
    assert codex_table(STDIO, value)["startup_timeout_sec"] == 180
    assert pi_entry(STDIO, value)["requestTimeoutMs"] == 180_000


@pytest.mark.requirement("startup-timeout-refusal-not-fatal")
@pytest.mark.parametrize("value", REFUSED)
def test_a_refused_value_costs_neither_entry_nor_session(value):
    catalog = catalog_of(a=value, b=None)
    statuses = judge_all(catalog, SecretsLoader().resolution, lambda _: None)
    assert catalog.names == ("a", "b")
    assert [status.available for status in statuses] == [True, True]
    assert [option.startup_timeout_sec for option in options(catalog, statuses)] == [None, None]


@pytest.mark.requirement("startup-timeout-warn-once-per-load")
def test_a_refused_value_is_warned_about_once_a_load():
    tree: dict[str, Any] = {"mcp": {"a": {**REMOTE, "type": "sse", "startup_timeout_sec": 900}}}
    logged: list[str] = []
    told: frozenset[str] = frozenset()

    def view() -> None:
        nonlocal told
        read = read_servers(lambda: tree, told)
        told = read.told
        logged.extend(line.text for line in read.log)
        options(read.catalog, ())

    for _ in range(100):
        view()
    assert len(logged) == 1
    tree["mcp"]["a"]["startup_timeout_sec"] = 901
    for _ in range(100):
        view()
    assert [("=900:" in line, "=901:" in line) for line in logged] == [(True, False), (False, True)]


@pytest.mark.requirement("startup-timeout-longer-reaches-all")
def test_a_longer_budget_reaches_all_three_runtimes():
    assert codex_table(STDIO, 300)["startup_timeout_sec"] == 300
    assert pi_entry(STDIO, 300)["requestTimeoutMs"] == 300_000
    assert claude_milliseconds(a=300) == "300000"


@pytest.mark.requirement("startup-timeout-shorter-codex-only")
@pytest.mark.parametrize("seconds", [5, 15, 179])
def test_a_shorter_budget_reaches_codex_alone(seconds):
    assert codex_table(STDIO, seconds)["startup_timeout_sec"] == seconds
    assert pi_entry(STDIO, seconds)["requestTimeoutMs"] == 180_000
    assert claude_milliseconds(a=seconds) == "180000"


@pytest.mark.requirement("startup-timeout-codex-startup-scoped")
def test_codex_gets_each_servers_own_number_and_keeps_its_tool_budget():
    declared = {"fast": 20, "plain": None, "own": None}
    before = {"fast": STDIO, "plain": STDIO, "own": {**STDIO, "tool_timeout_sec": 7}}
    tables = {name: codex_table(before[name], declared[name]) for name in before}
    assert {name: table["startup_timeout_sec"] for name, table in tables.items()} == {
        "fast": 20,
        "plain": 180,
        "own": 180,
    }
    assert {name: table.get("tool_timeout_sec") for name, table in tables.items()} == {
        "fast": None,
        "plain": None,
        "own": 7,
    }


@pytest.mark.requirement("startup-timeout-pi-lengthens-only")
def test_pi_gets_a_declared_budget_only_above_the_default():
    stdio = {15: 180_000, 180: 180_000, 181: 181_000, 420: 420_000}
    remote = {20: None, 180: None, 181: 181_000, 300: 300_000}
    assert {seconds: pi_entry(STDIO, seconds).get("requestTimeoutMs") for seconds in stdio} == stdio
    assert {seconds: pi_entry(REMOTE, seconds).get("requestTimeoutMs") for seconds in remote} == remote


@pytest.mark.requirement("startup-timeout-claude-process-max")
@pytest.mark.parametrize(
    ("budgets", "expected"),
    [
        ({}, "180000"),
        ({"fast": 15}, "180000"),
        ({"slow": 300}, "300000"),
        ({"fast": 15, "slow": 300, "other": None}, "300000"),
        ({"slow": 300, "fast": 15}, "300000"),
        ({"a": 200, "b": 400, "c": 300}, "400000"),
        ({"x": 601}, "180000"),
    ],
)
def test_claude_gets_the_largest_budget_of_its_servers(budgets, expected):
    assert claude_milliseconds(**budgets) == expected


@pytest.mark.requirement("startup-timeout-claude-session-servers")
def test_servers_that_the_session_does_not_carry_do_not_count():
    catalog = catalog_of(slow=600, mine=None)
    assert claude_mcp_timeout(session("mine"), catalog) == "180000"
    assert claude_mcp_timeout(session("mine", "slow"), catalog) == "600000"


@pytest.mark.requirement("startup-timeout-claude-key-not-written")
def test_claudes_entries_get_no_budget_of_their_own():
    catalog = catalog_of(a=20, b=None)
    request = PrepareRequest(
        runtime="claude",
        clone="/clone",
        catalog=catalog,
        instance=Instance("production", "https://zimmer.test", "key"),
        lookup=lambda _: None,
        chosen=("a", "b"),
        translated={"a": STDIO, "b": STDIO},
    )
    prepared = prepare(request)
    assert {"a", "b"} <= set(prepared.servers)
    for entry in prepared.servers.values():
        assert not {"startupTimeoutSec", "startup_timeout_sec", "requestTimeoutMs"} & set(entry)
    assert all("timeout" not in write.text.lower() for write in prepared.writes)


@pytest.mark.requirement("startup-timeout-stdio-default-only")
def test_the_default_is_written_to_stdio_entries_only():
    assert codex_table(REMOTE, None) == REMOTE
    assert pi_entry(REMOTE, None) == REMOTE
    assert codex_table(REMOTE, 300) == {**REMOTE, "startup_timeout_sec": 300}
    assert pi_entry(REMOTE, 300) == {**REMOTE, "requestTimeoutMs": 300_000}
    assert codex_table(REMOTE, 15) == {**REMOTE, "startup_timeout_sec": 15}
    assert pi_entry(REMOTE, 15) == REMOTE


@pytest.mark.requirement("startup-timeout-local-value-wins")
@pytest.mark.parametrize("entry", [STDIO, REMOTE])
def test_a_budget_in_the_file_beats_the_catalogs(entry):
    for local, declared in ((12, 30), (500, None), (500, 20), (1, 900)):
        assert codex_table({**entry, "startup_timeout_sec": local}, declared) == {
            **entry,
            "startup_timeout_sec": local,
        }
    for declared in (None, 30, 600):
        kept = {**entry, "startup_timeout_ms": 9000}
        assert codex_table(kept, declared) == kept
    for local, declared in ((9000, 420), (0, None), (0, 300), (500_000, 200)):
        assert pi_entry({**entry, "requestTimeoutMs": local}, declared) == {
            **entry,
            "requestTimeoutMs": local,
        }


@pytest.mark.requirement("startup-timeout-earlier-prepare-wins")
def test_an_in_place_preparation_keeps_what_an_earlier_one_wrote():
    assert codex_table(codex_table(STDIO, 20), 60)["startup_timeout_sec"] == 20
    assert pi_entry(pi_entry(STDIO, 300), 400)["requestTimeoutMs"] == 300_000
    assert codex_table(codex_table(STDIO, None), 60)["startup_timeout_sec"] == 180


@pytest.mark.requirement("startup-timeout-regenerated-picks-new")
def test_a_regenerated_config_gets_the_current_declaration():
    codex_table(STDIO, 20)
    pi_entry(STDIO, 300)
    assert codex_table(STDIO, 60)["startup_timeout_sec"] == 60
    assert pi_entry(STDIO, 400)["requestTimeoutMs"] == 400_000


@pytest.mark.requirement("startup-timeout-claude-current-catalog")
def test_claudes_budget_follows_the_catalog_of_the_spawn():
    clone = session("a")
    assert claude_mcp_timeout(clone, catalog_of(a=None)) == "180000"
    assert claude_mcp_timeout(clone, catalog_of(a=300)) == "300000"
    assert claude_mcp_timeout(clone, catalog_of(a=None)) == "180000"


@pytest.mark.requirement("startup-timeout-claude-unreadable-config")
@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "not json",
        "[]",
        "null",
        '{"mcpServers": ["slow"]}',
        '{"mcpServers": null}',
        '{"servers": {"slow": {}}}',
        '{"mcpServers": {"ghost": {}}}',
        '{"mcpServers": {"slow": NaN}}',
        "[" * 100_000,
    ],
)
def test_a_config_that_names_no_known_server_means_the_default(text):
    try:
        milliseconds = claude_mcp_timeout(text, catalog_of(slow=300))
    except (ValueError, TypeError, RecursionError) as error:
        pytest.fail(f"the spawn failed: {error}")
    assert milliseconds == "180000"


@pytest.mark.requirement("startup-timeout-claude-no-server-starved")
def test_a_byte_order_mark_hides_no_server():
    assert claude_mcp_timeout("\ufeff" + session("slow"), catalog_of(slow=300)) == "300000"


@pytest.mark.requirement("startup-timeout-bounds-are-borrowed")
def test_the_bounds_are_claude_codes_and_no_setting_moves_them(monkeypatch):
    for name in ("MCP_TIMEOUT", "MCP_STARTUP_TIMEOUT_MAX", "STARTUP_TIMEOUT_MAX"):
        monkeypatch.setenv(name, "900000")
    assert (startup_timeout.MINIMUM, startup_timeout.MAXIMUM) == (5, 600)
    assert (accept(5).seconds, accept(600).seconds) == (5, 600)
    assert (accept(4).seconds, accept(601).seconds) == (None, None)
    package = Path(startup_timeout.__file__).parents[1]  # the reference
    stating = [path.name for path in package.rglob("*.py") if re.search(r"\b600\b(?!\")", path.read_text("utf-8"))]
    assert stating == ["startup_timeout.py"]


@pytest.mark.requirement("startup-timeout-seconds-to-ms-exact")
@pytest.mark.parametrize("seconds", [181, 300, 599, 600])
def test_milliseconds_are_a_whole_number_or_its_decimal_text(seconds):
    written = pi_entry(STDIO, seconds)["requestTimeoutMs"]
    assert json.dumps(written) == claude_milliseconds(a=seconds) == f"{seconds}000"


@pytest.mark.requirement("startup-timeout-readiness-independent")
@pytest.mark.parametrize("budget", [5, 600, 900, "x"])
@pytest.mark.parametrize("entry", [{"type": "stdio", "command": "npx"}, {"type": "sse", **REMOTE}])
def test_a_budget_never_takes_part_in_readiness(entry, budget):
    plain, declared = (read_catalog({"a": raw}) for raw in (entry, {**entry, "startup_timeout_sec": budget}))
    resolution = SecretsLoader().resolution
    assert judge_all(declared, resolution, lambda _: None) == judge_all(plain, resolution, lambda _: None)


@pytest.mark.parametrize("entry", ["not-a-table", None, [], 5])
def test_what_is_no_table_is_given_back_untouched(entry):
    assert codex_table(entry, 300) == entry
    assert pi_entry(entry, 300) == entry


def test_the_given_entry_is_not_changed():
    entry = dict(STDIO)
    codex_table(entry, 20)
    pi_entry(entry, 300)
    assert entry == STDIO


def test_a_long_refused_value_is_cut_in_the_log():
    fits, long = "x" * 98, "x" * 99
    assert f'="{fits}":' in catalog_of(a=fits).warnings[0]
    assert f'="{"x" * 96}...:' in catalog_of(a=long).warnings[0]


def test_a_refused_value_that_no_json_can_say_costs_nothing():
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    assert "startup_timeout_sec=list:" in catalog_of(a=nested).warnings[0]
