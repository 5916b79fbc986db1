"""What holds for every preparation, whatever the catalog, the secrets and the clone's own files hold."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.preparation import RUNTIMES
from harness.reference.catalog.catalog import read_catalog
from harness.reference.npx.isolation import colliding
from harness.reference.prepare.failures import PreparationError, classify_error
from harness.reference.prepare.request import Runtime
from harness.reference.prepare.spawn import claude_spawn
from harness.reference.prepare.toml_text import table_text
from harness.reference.readiness.probe import judge
from harness.reference.readiness.states import State
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.secrets.placeholders import MissingVariableError
from harness.reference.selection.zimmer import Instance
from scenarios.preparing import CLONE, FILES, PRODUCTION, STAGING, again, document, loaded, prepared, servers

runtimes = st.sampled_from(RUNTIMES)
NAMES = ["alpha", "beta", "gamma", "zimmer", "zimmer-sessions", "zimmerman", "a.b"]
VARIABLES = ["TOKEN", "KEY_2", "_V", "REGION"]
RESOLVABLE = re.compile(r"\$\{[A-Z_][A-Z0-9_]*(:-[^}]*)?\}")

plain = st.sampled_from(["", "x", "a b", "ünï", '"q"', "back\\slash", "$V", "\x7f", "\u2028", "line\nbreak"])
placeholders = st.one_of(
    st.sampled_from(VARIABLES).map(lambda name: f"${{{name}}}"),
    st.sampled_from(VARIABLES).map(lambda name: f"${{{name}:-d}}"),
    st.just("${TOKEN:-}"),
)
texts = st.lists(st.one_of(plain, placeholders), max_size=3).map("".join)
tables = st.dictionaries(st.sampled_from(["A", "B", "X-Key", "NPM_CONFIG_CACHE"]), texts, max_size=3)
budgets = st.one_of(st.none(), st.sampled_from([4, 5, 20, 180, 300, 600, 601, "20", 60.0, True]))
stdio = st.fixed_dictionaries(
    {"type": st.just("stdio"), "command": st.sampled_from(["npx", "/bin/x", "sh"])},
    optional={
        "args": st.lists(st.one_of(texts, st.sampled_from(["-y", "p@1", "q"])), max_size=4),
        "env": tables,
        "startup_timeout_sec": budgets,
        "title": texts,
        "unavailable": st.sampled_from(["broken", None]),
    },
)
remote = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["http", "streamable-http", "sse"]),
        "url": st.sampled_from(
            ["https://a.test/mcp", "https://zimmer.example.com/mcp?tool_groups=sessions", "https://${TOKEN}/m"]
        ),
    },
    optional={"headers": tables, "startup_timeout_sec": budgets, "oauth": st.just({"clientId": "c"})},
)
catalogs = st.dictionaries(st.sampled_from(NAMES), st.one_of(stdio, remote), min_size=1, max_size=4)
all_values = st.fixed_dictionaries({name: st.sampled_from(["v1", "s3cr3t", 'with "quotes"']) for name in VARIABLES})
some_values = st.dictionaries(st.sampled_from(VARIABLES), st.sampled_from(["v1", "", "  "]), max_size=4)
instances = st.sampled_from([PRODUCTION, STAGING])

probed_tables = st.dictionaries(st.sampled_from(["A", "X-Key"]), placeholders, max_size=2)
probed_catalogs = st.dictionaries(
    st.sampled_from(["alpha", "zimmer"]),
    st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("stdio"), "command": st.just("npx")},
            optional={"args": st.lists(placeholders, max_size=2), "env": probed_tables},
        ),
        st.fixed_dictionaries(
            {"type": st.just("sse"), "url": st.sampled_from(["https://a.test", "https://${TOKEN}/m"])},
            optional={"headers": probed_tables},
        ),
    ),
    min_size=1,
)

local_entries = st.fixed_dictionaries(
    {"command": st.sampled_from(["npx", "mine"])},
    optional={
        "args": st.lists(plain, max_size=2),
        "env": st.dictionaries(st.sampled_from(["A", "NPM_CONFIG_CACHE"]), st.sampled_from(["x", "/own"]), max_size=2),
        "startup_timeout_sec": st.integers(1, 900),
        "startup_timeout_ms": st.integers(1, 900_000),
        "requestTimeoutMs": st.integers(0, 900_000),
        "enabled": st.booleans(),
    },
)
local_servers = st.dictionaries(st.sampled_from(["alpha", "mine", "zimmerman"]), local_entries, max_size=3)
OWN_KEYS = st.fixed_dictionaries(
    {}, optional={"model": plain, "n": st.integers(), "t": st.just({"deep": {"x": [1, 2]}})}
)


ADAPTERS: list[tuple[Runtime, str]] = [
    ("claude", "checked"),
    ("codex", "checked"),
    ("codex", "real"),
    ("pi", "checked"),
]


def local_text(runtime: str, entries: dict[str, Any], others: dict[str, Any]) -> str:
    """A file of the repository's own."""
    if runtime != "codex":
        return json.dumps({**others, "mcpServers": entries})
    content = {**others, **({"mcp_servers": entries} if entries else {})}
    return "# the user's own\n" + table_text((), content) + "# the end\n"


@given(runtimes, catalogs, all_values, instances)
@pytest.mark.requirement("prepare-secrets-joined-at-prepare", "secrets-joined-at-prepare")
def test_no_resolvable_placeholder_is_left(runtime, tree, values, instance):
    written = prepared(runtime, list(tree), tree, values, instance=instance)
    assert written.text is not None
    assert not RESOLVABLE.search(written.text)


@given(runtimes, catalogs, all_values, local_servers, OWN_KEYS)
@pytest.mark.requirement(
    "prepare-local-values-merge",
    "startup-timeout-local-value-wins",
    "prepare-codex-local-sec-wins",
    "prepare-pi-local-value-wins",
)
def test_no_local_value_is_ever_overridden(runtime, tree, values, local, others):
    files = {FILES[runtime]: local_text(runtime, local, others)}
    written = prepared(runtime, list(tree), tree, values, files=files)
    for name, entry in local.items():
        result = servers(written)[name]
        assert {key: result.get(key) for key in entry if key != "env"} == {k: v for k, v in entry.items() if k != "env"}
        assert result.get("env", {}).items() >= entry.get("env", {}).items()
    after = {key: value for key, value in document(written).items() if key not in ("mcpServers", "mcp_servers")}
    assert {key: value for key, value in after.items() if key != "mcp_oauth_callback_url"} == others


@given(runtimes, catalogs, all_values, local_servers, instances, st.booleans())
@pytest.mark.requirement("prepare-idempotent", "npx-isolate-stable-across-prepare")
def test_preparing_again_changes_no_byte(runtime, tree, values, local, instance, remembers):
    files = {FILES[runtime]: local_text(runtime, local, {})} if local else {}
    more = {"instance": instance, "elicitation": {"ELICITATION_SESSION_ID": "s"}}
    first = prepared(runtime, list(tree), tree, values, files=files, default_subagent_roots=["r"], **more)
    if remembers:
        more["earlier"] = first.prepared.record
    else:
        more["earlier"] = None
    second = again(runtime, list(tree), tree, first, values, default_subagent_roots=["r"], **more)
    assert second.text == first.text
    if remembers:
        assert second.prepared.injected == first.prepared.injected
        assert second.prepared.record == first.prepared.record


@given(runtimes, catalogs, all_values, st.randoms(use_true_random=False))
@pytest.mark.requirement("prepare-deterministic")
def test_the_order_of_the_catalogs_keys_does_not_matter(runtime, tree, values, random):
    shuffled = list(tree.items())
    random.shuffle(shuffled)
    names = sorted(tree)
    files = {FILES[runtime]: local_text(runtime, {"mine": {"command": "m"}}, {})}
    for present in ({}, files):
        one = prepared(runtime, names, tree, values, files=present).text
        assert prepared(runtime, names, dict(shuffled), values, files=present).text == one


@given(runtimes, catalogs, some_values, instances, local_servers)
@pytest.mark.requirement("prepare-does-not-mutate-catalog", "catalog-readonly")
def test_the_catalog_is_never_changed(runtime, tree, values, instance, local):
    before = deepcopy((tree, values))
    files = {FILES[runtime]: local_text(runtime, local, {})}
    with suppress(PreparationError, MissingVariableError):
        prepared(runtime, list(tree), tree, values, instance=instance, files=files)
    assert (tree, values) == before


@given(catalogs, all_values)
@pytest.mark.requirement("npx-isolate-all-runtimes", "npx-cache-pinned-per-entry")
def test_no_two_servers_with_the_same_package_share_a_directory_of_ours(tree, values):
    places = []
    for runtime in RUNTIMES:
        entries = servers(prepared(runtime, [name for name in tree if name != "a.b"], tree, values))
        for entry in entries.values():
            if entry.get("command") == "npx":
                assert entry.get("env", {}).get("NPM_CONFIG_CACHE")
        ours = {n: e["env"]["NPM_CONFIG_CACHE"] for n, e in entries.items() if e.get("command") == "npx"}
        twins = [ours[name] for name in colliding(entries) if ours[name].startswith(CLONE)]
        assert len(set(twins)) == len(twins)
        places.append(ours)
    assert places[0] == places[1] == places[2]


@given(catalogs, all_values, st.integers(0, 3), OWN_KEYS)
@pytest.mark.requirement("prepare-codex-toml-format")
def test_the_users_toml_is_kept_byte_for_byte_before_what_is_added(tree, values, comments, others):
    text = (
        "#\u00fc note\n" * comments + table_text((), others) + "\n[projects.\"/x\"] # kept\ntrust_level = 'trusted'\n"
    )
    written = prepared("codex", list(tree), tree, values, files={FILES["codex"]: text})
    assert written.text is not None
    assert text in written.text
    added = list(tomllib.loads(written.text)["mcp_servers"])
    assert added == sorted(added)


@given(runtimes, catalogs, all_values, local_servers, instances)
@pytest.mark.requirement("selection-blast-radius", "prepare-prompt-config-agree")
def test_the_file_holds_the_sessions_servers_and_the_repositorys_own_and_no_other(
    runtime, tree, values, local, instance
):
    chosen = list(tree)[:2]
    files = {FILES[runtime]: local_text(runtime, local, {})}
    written = prepared(runtime, chosen, tree, values, instance=instance, files=files)
    names = set(servers(written))
    own = set(written.prepared.record.owned) | set(written.prepared.injected)
    assert own == names - set(written.prepared.local)
    assert set(written.prepared.local) == set(local)
    skipped = set(chosen) - names
    assert own | set(local) >= set(chosen) - skipped
    assert own - set(written.prepared.injected) <= set(chosen)
    for name in skipped:
        assert any(f"'{name}'" in warning for warning in written.warnings)
    assert skipped <= ({"a.b"} if runtime == "codex" else set())


refused_by_codex = st.fixed_dictionaries(
    {"type": st.sampled_from(["stdio", "sse"])},
    optional={
        "command": st.sampled_from(["c", " ", 5]),
        "url": st.sampled_from(["https://a.test", 5]),
        "args": st.sampled_from([["x"], [1], "x"]),
        "env": st.sampled_from([{"A": "a"}, {"A": 1, "B": True}, {"A": None}, {"A": ["a"]}, "x"]),
        "headers": st.sampled_from([{"A": "a"}, {"A": 1}, {"A": None}, "x"]),
        "startup_timeout_sec": budgets,
    },
)


@given(catalogs, st.dictionaries(st.sampled_from(["odd", "a b"]), refused_by_codex), all_values, local_servers)
@example({}, {"odd": {"type": "stdio", "command": "c", "env": {"A": None}}}, dict.fromkeys(VARIABLES, "v"), {})
@example({}, {"odd": {"type": "sse", "url": "https://a.test", "headers": {"A": 1}}}, dict.fromkeys(VARIABLES, "v"), {})
@pytest.mark.requirement("prepare-codex-entry-validated")
def test_codex_always_loads_what_is_written(tree, odd, values, local):
    allowed = {n: {k: v for k, v in e.items() if k != "requestTimeoutMs"} for n, e in local.items()}
    names = [*tree, *odd]
    written = prepared(
        "codex", names, {**tree, **odd}, values, files={FILES["codex"]: local_text("codex", allowed, {})}
    )
    assert not loaded("codex", written).run_killed
    for name in set(names) - set(servers(written)):
        assert any(f"'{name}'" in warning for warning in written.warnings)


class Store:
    """A Parameter Store that answers."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values

    def read(self, name: str) -> str | None:
        return self.values.get(name)


providers = st.builds(
    lambda stored, credentials, environment: SecretsLoader(
        store=None if stored is None else Store(stored), credentials=credentials, environment=environment
    ),
    st.none() | some_values,
    some_values,
    some_values,
)


@given(probed_catalogs, providers, instances)
@example({"alpha": {"type": "stdio", "command": "npx", "env": {"A": "${TOKEN}"}}}, SecretsLoader(), PRODUCTION)
@example({"alpha": {"type": "sse", "url": "https://a.test", "headers": {"A": "${TOKEN}"}}}, SecretsLoader(), PRODUCTION)
@example(
    {"alpha": {"type": "stdio", "command": "npx", "args": ["${_V}"]}}, SecretsLoader(store=Store({"_V": "v"})), STAGING
)
@pytest.mark.requirement(
    "secrets-probe-prepare-agree", "secrets-fail-all-runtimes", "secrets-retargeted-key-not-required"
)
def test_readiness_and_preparation_agree_about_missing_variables(tree, loader, instance):
    catalog = read_catalog({name: {**entry, "unavailable": None} for name, entry in tree.items()})
    missing = set()
    for name, entry in catalog.entries.items():
        status = judge(name, entry, loader.resolution, lambda _: None, instance)
        assert status is not None
        assert status.state is not State.PROBE_FAILED
        missing |= set(status.missing_variables)
    for runtime, adapter in ADAPTERS:
        try:
            prepared(runtime, list(tree), tree, loader.value, instance=instance, codex_adapter=adapter)
            failed = set()
        except (PreparationError, MissingVariableError) as error:
            failed = set(classify_error(error).unresolved_variables)
        assert bool(failed) == bool(missing)
        assert failed <= missing


key_tables = st.dictionaries(
    st.sampled_from(["X-API-Key", "x-api-key", "A"]),
    st.sampled_from(["production-key", "${ZIMMER_PROD_API_KEY}", "${KEY:-production-key}"]),
).map(lambda table: {name: "a" if name == "A" else value for name, value in table.items()})
zimmer_urls = st.builds(
    "{}{}{}".format,
    st.sampled_from(["https://", "http://", "https://user:production-key@"]),
    st.sampled_from(["zimmer.example.com", "zimmer.example.com:8443", "${HOST:-zimmer.example.com}"]),
    st.sampled_from(["", "/mcp", "/mcp?tool_groups=sessions"]),
)
zimmer_names = st.sampled_from(["zimmer", "zimmer-sessions", "zimmer-self-session", "zimmer-x"])
zimmer_entries = st.fixed_dictionaries(
    {"type": st.sampled_from(["streamable-http", "http", "sse"]), "url": zimmer_urls}, optional={"headers": key_tables}
)
elsewhere = st.sampled_from(
    [Instance("staging", "https://staging.test", "own-key"), Instance("development", "http://localhost:3000", "own")]
)


@given(
    st.sampled_from(ADAPTERS),
    st.dictionaries(zimmer_names, zimmer_entries, max_size=3),
    st.dictionaries(zimmer_names, zimmer_entries, max_size=2),
    elsewhere,
    st.sampled_from([[], ["docs"]]),
)
@pytest.mark.requirement("selection-staging-never-production")
def test_no_other_instance_writes_productions_address_or_key(runtime_and_adapter, tree, local, instance, roots):
    runtime, adapter = runtime_and_adapter
    table = "http_headers" if runtime == "codex" else "headers"
    own = {
        name: {"url": entry["url"], table: entry.get("headers", {})} | ({} if runtime == "codex" else {"type": "http"})
        for name, entry in local.items()
    }
    written = prepared(
        runtime,
        list(tree),
        tree,
        {"ZIMMER_PROD_API_KEY": "production-key"},
        files={FILES[runtime]: local_text(runtime, own, {})} if own else {},
        instance=instance,
        default_subagent_roots=roots,
        codex_adapter=adapter,
    )
    assert written.text is not None
    assert "zimmer.example.com" not in written.text
    assert "production-key" not in written.text


@given(st.lists(st.one_of(st.none(), st.integers(-5, 700), st.sampled_from(["20", 60.5, True])), max_size=5))
@pytest.mark.requirement("prepare-claude-timeout-max")
def test_claudes_budget_is_the_largest_and_never_below_the_default(declared):
    tree = {
        f"s{i}": {"type": "stdio", "command": "c", "startup_timeout_sec": value} for i, value in enumerate(declared)
    }
    text = prepared("claude", list(tree), tree).text
    spawn = claude_spawn({}, {}, CLONE, read_catalog(tree), mcp_json=text, has_mcp=True)
    accepted = [value for value in declared if type(value) is int and 5 <= value <= 600]
    assert spawn.variables["MCP_TIMEOUT"] == str(1000 * max([180, *accepted]))


@given(
    runtimes,
    st.lists(st.sampled_from(["alpha", "beta", "gamma"]), unique=True),
    st.lists(st.lists(st.sampled_from(["alpha", "beta"]), unique=True), max_size=4),
)
@pytest.mark.requirement("selection-removed-stays-removed", "selection-blast-radius")
def test_a_file_follows_the_selection_over_any_number_of_preparations(runtime, first, later):
    tree = {name: {"type": "http", "url": f"https://{name}.test"} for name in ("alpha", "beta", "gamma")}
    written = prepared(runtime, first, tree)
    for names in later:
        written = again(runtime, names, tree, written)
        assert set(servers(written)) == {*names, *written.prepared.injected}


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), placeholders),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=4),
                st.sampled_from(
                    ["type", "command", "args", "env", "url", "headers", "oauth", "redirectUri", "startup_timeout_sec"]
                ),
            ),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=12,
)
odd_entries = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {"type": st.sampled_from(["stdio", "sse", "http", "websocket", None, 5, ["x"]])},
        optional=dict.fromkeys(
            ("command", "args", "env", "url", "headers", "oauth", "startup_timeout_sec", "unavailable"), JSON
        ),
    ),
)


@given(
    runtimes,
    st.dictionaries(st.one_of(st.text(max_size=4), st.sampled_from(NAMES)), odd_entries, max_size=3),
    instances,
)
def test_only_typed_errors_come_out_of_any_catalog(runtime, tree, instance):
    for adapter in ("checked", "real"):
        try:
            written = prepared(
                runtime, [*tree, "unknown"], tree, {"TOKEN": "t"}, instance=instance, codex_adapter=adapter
            )
        except (PreparationError, MissingVariableError):
            continue
        document(written)
        (write,) = written.prepared.writes
        write.text.encode()


@given(
    runtimes,
    st.one_of(
        st.text(),
        JSON.map(json.dumps),
        st.dictionaries(st.just("mcpServers"), st.dictionaries(st.text(max_size=3), JSON, max_size=3)).map(json.dumps),
    ),
)
def test_only_typed_errors_come_out_of_any_local_file(runtime, text):
    try:
        written = prepared(
            runtime,
            ["alpha"],
            {"alpha": {"type": "stdio", "command": "npx"}},
            {"TOKEN": "t"},
            files={FILES[runtime]: text},
        )
    except (PreparationError, MissingVariableError):
        return
    assert "alpha" in servers(written)
