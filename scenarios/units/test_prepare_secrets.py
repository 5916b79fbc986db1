"""Secrets at preparation: joined there, all or nothing, on every runtime, and nowhere but in the config."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.preparation import RUNTIMES
from harness.reference.catalog.catalog import read_catalog
from harness.reference.prepare.failures import (
    AirFailedError,
    MalformedConfigError,
    PreparationError,
    UnresolvedVariablesError,
    air_error,
    attempts,
    classify_error,
    classify_stderr,
)
from harness.reference.prepare.pipeline import prepare
from harness.reference.prepare.request import PrepareRequest
from harness.reference.readiness.probe import judge
from harness.reference.readiness.states import State
from harness.reference.secrets.loader import SecretsLoader, StoreUnavailableError
from harness.reference.secrets.placeholders import MissingVariableError
from harness.reference.selection.session import create, effective_servers
from scenarios.preparing import CLONE, FILES, LOCAL_BINARY, NPX, PRODUCTION, REMOTE, STAGING, again, prepared, servers

ALL_FORMS = {
    "env": {**NPX, "env": {"A": "x${T}y", "D": "${M:-fallback}"}},
    "headers": {**REMOTE, "headers": {"X-K": "${T}", "Authorization": "Bearer ${T}"}},
    "args": {**LOCAL_BINARY, "args": ["-y", "--token=${T}", "${M:-fallback}"]},
    "url": {**REMOTE, "url": "https://h.test/${T}"},
}
BROKEN = {**REMOTE, "headers": {"Authorization": "Bearer ${STRAD_API_KEYY}"}}
ADAPTERS = [("claude", "checked"), ("codex", "checked"), ("codex", "real"), ("pi", "checked")]


def failure_of(runtime: Any, names: list[str], tree: dict[str, Any], values: Any = None, **more: Any) -> Any:
    """The typed error of a preparation; None where it went through."""
    try:
        prepared(runtime, names, tree, values, **more)
    except (PreparationError, MissingVariableError, StoreUnavailableError) as error:
        return error
    return None


def named_variables(error: Any) -> Any:
    return classify_error(error).unresolved_variables if error else None


@pytest.mark.requirement(
    "prepare-secrets-joined-at-prepare", "secrets-joined-at-prepare", "catalog-placeholder-fields-in-format"
)
@pytest.mark.parametrize(("runtime", "adapter"), ADAPTERS)
def test_every_form_of_placeholder_is_joined_with_its_value(runtime, adapter):
    written = prepared(runtime, list(ALL_FORMS), ALL_FORMS, {"T": "tok"}, codex_adapter=adapter)
    entries = servers(written)
    assert written.text is not None
    assert "${" not in written.text
    assert entries["headers"].get("headers", entries["headers"].get("http_headers")) == {
        "X-K": "tok",
        "Authorization": "Bearer tok",
    }
    assert entries["args"]["args"] == ["-y", "--token=tok", "fallback"]
    assert entries["url"]["url"] == "https://h.test/tok"
    if adapter == "checked":
        assert entries["env"]["env"]["A"] == "xtoky"
        assert entries["env"]["env"]["D"] == "fallback"


@pytest.mark.requirement("secrets-joined-at-prepare")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_secret_changed_between_creation_and_preparation_is_written_in_its_new_form(runtime):
    values = {"T": "old"}
    tree = {"a": {**LOCAL_BINARY, "env": {"A": "${T}"}}}
    session = create(["a"], [], tuple(tree)).session
    assert session is not None
    values["T"] = "new"
    written = prepared(runtime, list(effective_servers(session)), tree, values)
    assert servers(written)["a"]["env"] == {"A": "new"}


@pytest.mark.requirement("secrets-joined-at-prepare")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_changed_secret_reaches_the_file_at_the_next_preparation(runtime):
    tree = {"a": {**LOCAL_BINARY, "env": {"A": "${T}"}}}
    first = prepared(runtime, ["a"], tree, {"T": "old"})
    assert servers(first)["a"]["env"]["A"] == "old"
    second = again(runtime, ["a"], tree, first, {"T": "new"})
    assert servers(second)["a"]["env"]["A"] == "new"


@pytest.mark.requirement(
    "secrets-typo-fails-at-prepare",
    "secrets-fail-all-runtimes",
    "prepare-unresolved-fails-loudly",
    "secrets-no-rescue-per-entry",
)
@pytest.mark.parametrize(("runtime", "adapter"), ADAPTERS)
def test_a_mistyped_name_fails_the_preparation_on_every_runtime(runtime, adapter):
    tree = {"ok1": NPX, "broken": BROKEN, "ok2": REMOTE}
    values = {"STRAD_API_KEY": "k"}
    error = failure_of(runtime, list(tree), tree, values, codex_adapter=adapter)
    assert named_variables(error) == ("STRAD_API_KEYY",)
    assert classify_error(error).failure_reason == "air_secret_unresolvable"
    assert failure_of(runtime, ["ok1", "ok2"], tree, values, codex_adapter=adapter) is None


@pytest.mark.requirement("secrets-only-attached-servers")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_broken_entry_that_no_session_carries_fails_nobody(runtime):
    tree = {"ok": NPX, "broken": BROKEN}
    assert failure_of(runtime, ["ok"], tree) is None
    local = (
        '[mcp_servers.mine]\ncommand = "m"\n' if runtime == "codex" else '{"mcpServers": {"mine": {"command": "m"}}}'
    )
    assert failure_of(runtime, ["ok"], tree, files={FILES[runtime]: local}) is None


@pytest.mark.requirement("prepare-whole-file-or-nothing", "secrets-no-partial-config", "secrets-fail-all-runtimes")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_one_unresolved_placeholder_aborts_the_whole_write(runtime):
    tree = {"fine": {**NPX, "env": {"T": "${T}"}}, "broken": {**NPX, "env": {"N": "${NOPE}"}}}
    request = PrepareRequest(
        runtime,
        CLONE,
        read_catalog(tree),
        PRODUCTION,
        {"T": "tok"}.get,
        chosen=("fine", "broken"),
        translated={} if runtime == "pi" else tree,
    )
    try:
        writes, message = prepare(request).writes, ""
    except MissingVariableError as error:
        writes, message = (), str(error)
    assert writes == ()
    assert message == "Required environment variable 'NOPE' not set"


@pytest.mark.requirement("secrets-failure-recorded", "prepare-unresolved-fails-loudly")
@pytest.mark.parametrize(
    ("stderr", "variables"),
    [
        ("Error: Unresolved variables in /c: ${A}, ${b}. Ensure all variables are provided", ("A", "b")),
        ("Error: Unresolved variable in /c d: ${A:?x}. Ensure all", ("A:?x",)),
        (
            "Error: Unresolved variables in /c/${X}: ${REFRAME_MCP_PLATFORM_API_KEY}, ${some_lowercase_var}. Ensure",
            ("REFRAME_MCP_PLATFORM_API_KEY", "some_lowercase_var"),
        ),
        ("noise\nError: Unresolved variable in /c: ${A}.\nmore ${B}", ("A",)),
        ("Unresolved variables in config scan\nsome error: ${HOME} was found", ()),
        ("", ()),
    ],
)
def test_airs_line_about_survivors_is_read_from_one_line(stderr, variables):
    failure = classify_stderr(stderr)
    assert failure.unresolved_variables == variables
    assert (failure.failure_reason == "air_secret_unresolvable") == bool(variables)
    if variables:
        assert attempts(failure) == 1
        assert not failure.refreshes_catalog
        assert failure.metadata() == {
            "failure_reason": "air_secret_unresolvable",
            "unresolved_variables": list(variables),
        }


@pytest.mark.requirement("secrets-failure-recorded")
def test_air_names_every_survivor_at_once():
    tree = {"a": {**NPX, "env": {"A": "${A}", "B": "${B}"}}, "b": {**REMOTE, "url": "https://${H}/mcp"}}
    error = failure_of("claude", ["a", "b"], tree)
    assert isinstance(error, UnresolvedVariablesError)
    assert named_variables(error) == ("A", "B", "H")


@pytest.mark.requirement("prepare-transient-retries")
@pytest.mark.parametrize(
    ("stderr", "starts"),
    [("Error: spawnSync git ETIMEDOUT", 4), ("Error: bad config", 1), ("Unexpected token in JSON", 4)],
)
def test_a_transient_failure_is_tried_four_times(stderr, starts):
    assert attempts(classify_stderr(stderr)) == starts


@pytest.mark.requirement("secrets-failure-recorded")
def test_another_failure_is_recorded_without_variables():
    other = air_error("Error: bad config")
    assert isinstance(other, AirFailedError)
    for error in (other, MalformedConfigError(".mcp.json", "no JSON")):
        assert classify_error(error).metadata() == {"failure_reason": "air_prepare_failed"}


@pytest.mark.requirement("prepare-root-not-found-refresh")
def test_an_unknown_root_asks_for_one_refresh():
    failure = classify_error(AirFailedError('Error: Root "new" not found'))
    assert (failure.failure_reason, failure.refreshes_catalog, failure.transient) == (
        "air_root_unresolvable",
        True,
        False,
    )


@pytest.mark.requirement("secrets-store-outage-at-spawn")
@pytest.mark.parametrize(("runtime", "adapter"), ADAPTERS)
def test_a_store_outage_is_transient_and_never_a_missing_variable(runtime, adapter):
    def down(name):
        raise StoreUnavailableError("HTTP 503")

    tree = {"a": {**NPX, "env": {"T": "${T}"}}}
    error = failure_of(runtime, ["a"], tree, down, codex_adapter=adapter)
    assert isinstance(error, StoreUnavailableError)
    failure = classify_error(error)
    assert failure.transient
    assert attempts(failure) == 4
    assert failure.failure_reason == "secret_store_unavailable"
    assert failure.unresolved_variables == ()


class OneRow:
    def has_row(self, name):
        return name == "X_OAUTH_ACCESS_TOKEN"

    def mint(self, name):
        return "minted"


class OneValue:
    def read(self, name):
        return "stored" if name == "KEPT" else None


@pytest.mark.requirement("secrets-prepare-uses-whole-chain")
@pytest.mark.parametrize(
    ("loader", "variable", "value"),
    [
        (SecretsLoader(vendor=OneRow()), "X_OAUTH_ACCESS_TOKEN", "minted"),
        (SecretsLoader(store=OneValue()), "KEPT", "stored"),
        (SecretsLoader(credentials={"C": "c"}), "C", "c"),
        (SecretsLoader(environment={"E": "e"}), "E", "e"),
    ],
)
@pytest.mark.parametrize(("runtime", "adapter"), ADAPTERS)
def test_a_value_that_only_one_provider_holds_resolves_at_the_spawn_too(loader, variable, value, runtime, adapter):
    tree = {"a": {**LOCAL_BINARY, "env": {variable: f"${{{variable}}}"}}}
    status = judge("a", read_catalog(tree).find("a"), loader.resolution, lambda _: None)
    assert status is not None
    assert status.state is State.READY
    error = failure_of(runtime, ["a"], tree, loader.value, codex_adapter=adapter)
    assert error is None
    entry = servers(prepared(runtime, ["a"], tree, loader.value, codex_adapter=adapter))["a"]
    assert entry["env"] == {variable: value}


@pytest.mark.requirement("prepare-codex-forwarding-inlined", "npx-pin-not-on-agent-codex")
def test_forwarded_names_become_values_where_the_secrets_know_them():
    text = (
        '[mcp_servers.acme]\ncommand = "npx"\nenv_vars = ["ACME_API_KEY", "ACME_HOST_REGION", "NPM_CONFIG_CACHE"]\n'
        '[mcp_servers.only]\ncommand = "c"\nenv_vars = ["ACME_API_KEY"]\n'
        '[mcp_servers.both]\nurl = "https://b.test"\nhttp_headers = { "X-Own" = "o" }\n'
        'env_http_headers = { "X-Key" = "ACME_API_KEY" }\n'
        '[mcp_servers.plain]\nurl = "https://p.test"\n'
        '[mcp_servers.http]\nurl = "https://h.test"\nbearer_token_env_var = "BLANK"\n'
        'env_http_headers = { "X-Key" = "ACME_API_KEY", "X-Region" = "ACME_HOST_REGION" }\n'
    )
    values = {"ACME_API_KEY": "v", "BLANK": " "}
    entries = servers(prepared("codex", [], {}, values, files={FILES["codex"]: text}))
    assert entries["acme"]["env"] == {"ACME_API_KEY": "v", "NPM_CONFIG_CACHE": f"{CLONE}/.npm-cache"}
    assert entries["acme"]["env_vars"] == ["ACME_HOST_REGION"]
    assert entries["only"]["env"] == {"ACME_API_KEY": "v"}
    assert "env_vars" not in entries["only"]
    assert entries["both"] == {"url": "https://b.test", "http_headers": {"X-Own": "o", "X-Key": "v"}}
    assert entries["plain"] == {"url": "https://p.test"}
    assert entries["http"]["http_headers"] == {"X-Key": "v"}
    assert entries["http"]["env_http_headers"] == {"X-Region": "ACME_HOST_REGION"}
    assert entries["http"]["bearer_token_env_var"] == "BLANK"


@pytest.mark.requirement("secrets-retargeted-key-not-required")
@pytest.mark.parametrize(("runtime", "adapter"), ADAPTERS)
def test_a_production_key_is_required_in_production_alone(runtime, adapter):
    zimmer = {
        **REMOTE,
        "url": "https://zimmer.example.com/mcp?tool_groups=sessions",
        "headers": {"X-API-Key": "${ZIMMER_PROD_API_KEY}"},
    }
    tree = {"zimmer-sessions": zimmer}
    entry = read_catalog(tree).find("zimmer-sessions")
    for instance, fails in ((STAGING, False), (PRODUCTION, True)):
        error = failure_of(runtime, list(tree), tree, instance=instance, codex_adapter=adapter)
        status = judge("zimmer-sessions", entry, SecretsLoader().resolution, lambda _: None, instance)
        assert status is not None
        assert (status.state is State.MISSING_CONFIGURATION) == fails
        assert named_variables(error) == (("ZIMMER_PROD_API_KEY",) if fails else None)


@pytest.mark.requirement("secrets-blank-result-dropped", "secrets-blank-is-missing")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_blank_results_are_dropped_whoever_resolved_them(runtime):
    tree = {"a": {**LOCAL_BINARY, "args": ["", "${E:-}"], "env": {"P": "${P}", "B": "${B:-}", "EMPTY": "", "W": "  "}}}
    entry = servers(prepared(runtime, ["a"], tree, {"P": "yes", "B": " "}))["a"]
    assert entry["env"] == {"P": "yes", "EMPTY": ""}
    assert entry["args"] == ["", ""]
    assert named_variables(failure_of(runtime, ["a"], tree, {"P": " "})) == ("P",)
    remote = {"a": {**REMOTE, "headers": {"P": "${P}", "B": "${B:-}", "EMPTY": "", "W": "  "}}}
    written = servers(prepared(runtime, ["a"], remote, {"P": "yes", "B": " "}))["a"]
    assert written["http_headers" if runtime == "codex" else "headers"] == {"P": "yes", "EMPTY": ""}


@pytest.mark.requirement("secrets-value-confined")
@pytest.mark.parametrize(("runtime", "adapter"), ADAPTERS)
def test_a_value_appears_in_the_config_alone(runtime, adapter):
    marker = "s3cr3t-marker"
    tree = {"a": {**NPX, "env": {"T": "${T}"}}, "bad name": {**REMOTE, "headers": {"H": "${T}"}}, "gone": NPX}
    names = ["a", "bad name", "missing"]
    written = prepared(runtime, names, tree, {"T": marker}, codex_adapter=adapter)
    assert written.text is not None
    assert marker in written.text
    told = (written.warnings, written.prepared.record, written.prepared.injected, written.prepared.steps)
    assert marker not in repr(told)
    tree["broken"] = {**NPX, "env": {"A": "${T}-${NOPE}"}}
    error = failure_of(runtime, ["a", "broken"], tree, {"T": marker}, codex_adapter=adapter)
    assert named_variables(error) == ("NOPE",)
    assert marker not in repr(classify_error(error).metadata())
    chain = [error, getattr(error, "__cause__", None), getattr(error, "__context__", None)]
    assert marker not in repr([(repr(e), str(e), getattr(e, "args", ()), vars(e) if e else {}) for e in chain])


@pytest.mark.requirement("catalog-readonly", "secrets-value-confined", "secrets-catalog-has-placeholder")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_catalog_and_its_snapshot_keep_the_placeholder(runtime):
    tree = {"a": {**NPX, "env": {"T": "${T}"}}, "b": BROKEN}
    text = json.dumps(tree)
    catalog = read_catalog(tree)
    snapshot = catalog.snapshot_text()
    prepared(runtime, ["a"], tree, {"T": "s3cr3t"})
    assert failure_of(runtime, ["b"], tree, {"T": "s3cr3t"}) is not None
    assert json.dumps(tree) == text
    assert catalog.snapshot_text() == snapshot
    assert "s3cr3t" not in snapshot
    assert "${T}" in snapshot
