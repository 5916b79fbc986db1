"""A rejected key, a child that says so, the ladder and its record: how a server is left out and the session runs on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.reference.catalog.entry import read_entry
from harness.reference.session import ladder, routes
from harness.reference.session import rows as sessions
from harness.reference.session.refusals import is_stderr_rejected, stderr_detail
from harness.reference.session.routes import Failing
from harness.reference.session.shown_errors import redacted, secret_values
from harness.world import World
from scenarios.units.failed_handshakes_run import (
    CLOSED,
    CONNECTED,
    FILES,
    INVALID_TOKEN,
    NOTION,
    REFUSED_KEY,
    STATIC,
    UNAUTHORIZED,
    Handshakes,
)
from scenarios.units.oauth_run import START_SECONDS
from scenarios.units.spawn_gate_run import CLONE, SESSION, credential, remote, stdio

NOW = START_SECONDS


SAID_TWICE = f"{REFUSED_KEY} | {CLOSED}"


# --- a rejected key


@pytest.mark.requirement(
    "gate-static-rejection-session-runs", "failure-static-no-retry", "gate-only-fatal-class",
    "failure-exhaustion-reason-text", "failure-only-oauth-is-fatal",
)  # fmt: skip
def test_a_rejected_key_costs_its_server_at_once_and_the_session_runs_on():
    run = Handshakes(STATIC, [{"zimmer-sessions": INVALID_TOKEN}])
    assert run.record == {"zimmer-sessions": "their credentials were rejected"}
    assert "mcp_retry_count" not in run.metadata
    assert run.spawned == [0.5, 3.0]
    assert run.row.get("status") != "failed"
    assert [each["exit_code"] for each in run.ran.named("session.ended")] == [0]


@pytest.mark.requirement(
    "gate-static-rejection-log", "failure-static-log-names-variables", "failure-record-no-secret-values"
)
@pytest.mark.parametrize(
    ("catalog", "error", "told"),
    [
        (STATIC, INVALID_TOKEN, INVALID_TOKEN),
        (STATIC, f"{INVALID_TOKEN} for the-key-of-production", f"{INVALID_TOKEN} for [REDACTED]"),
        (
            {"zimmer-sessions": stdio(env={"KEY": "${ZIMMER_PROD_API_KEY}"})},
            f"Server stderr: starting\nInvalid API key the-key-of-production\nbye | {CLOSED}",
            "Invalid API key [REDACTED]",
        ),
    ],
)
def test_the_log_has_the_words_of_a_rejection_and_the_names_of_the_variables_and_no_value(catalog, error, told):
    run = Handshakes(catalog, [{"zimmer-sessions": error}])
    (line,) = [text for level, text in run.log if level == "warn"]
    assert line.endswith(told)
    assert "ZIMMER_PROD_API_KEY" in line
    assert "the-key-of-production" not in run.ran.told
    assert "the-key-of-production" not in json.dumps(run.row)
    (kept,) = run.metadata["mcp_degraded_servers"]
    assert kept["error"] == error.replace("the-key-of-production", "[REDACTED]")
    assert [each["text"] for each in run.row["timeline"] if each["kind"] == "left_out"] == [line]


def test_tokens_and_credential_headers_are_no_part_of_an_error_that_is_shown():
    entry = read_entry("x", remote("x", headers={"Authorization": "Bearer ${T}", "X-Team": "harness"}))
    prepared = {"headers": {"Authorization": "Bearer literal-token", "X-Team": "harness"}}
    row = credential("x", client_secret="the-secret")
    secrets = secret_values(entry, prepared, {"T": "value-of-t"}.get, row)
    text = "value-of-t Bearer literal-token literal-token access-of-x refresh-of-x the-secret harness"
    assert redacted(text, secrets) == " ".join(["[REDACTED]"] * 6) + " harness"
    assert redacted(None, secrets) is None
    assert secret_values(entry, prepared, {"T": "abc"}.get, None) == ("Bearer literal-token", "literal-token")


# --- the child's own words


@pytest.mark.requirement("failure-stderr-example-blob", "failure-stderr-dialects")
@pytest.mark.parametrize(
    "closed",
    [
        "Connection failed after 3941ms (CONNECTION_CLOSED): Connection closed",
        "Connection failed after 568ms (-32000): MCP error -32000: Connection closed",
        "Connection failed after 1053ms, 1053ms of it awake (CONNECTION_CLOSED): Connection closed",
    ],
)
def test_a_server_that_says_its_key_is_refused_is_left_out_at_once_in_every_dialect(closed):
    run = Handshakes(FILES, [{"files": f"{REFUSED_KEY} | {closed} | Connection failed (x): Connection closed"}])
    assert run.record == {"files": "their credentials were rejected"}
    assert "mcp_retry_count" not in run.metadata
    silent = Handshakes(FILES, [{"files": closed}, {"files": CONNECTED}])
    assert (silent.record, silent.retried) == ({}, [["files"]])


@pytest.mark.requirement(
    "failure-stderr-marker-and-phrase", "failure-stderr-same-segment", "failure-stderr-newline-not-a-separator",
    "failure-stderr-phrases", "failure-stderr-marker-any-case", "failure-stderr-never-broad-words",
    "failure-stderr-not-permission-denied",
)  # fmt: skip
@pytest.mark.parametrize(
    ("error", "rejected"),
    [
        ("Server stderr: FATAL: invalid API token", True),
        ("authentication failed", False),
        ("Server stderr: listening on stdio", False),
        ("Connection failed after 1200ms: authentication failed", False),
        ("Server stderr: listening on stdio | Connection failed after 1200ms: authentication failed", False),
        ("Server stderr: a|b authentication failed", True),
        ("Server stderr: ok |authentication failed", True),
        ("Server stderr: authorization failed|Connection closed", True),
        (
            "Server stderr: Pulse Fetch starting\nhealth checks...\nBrightData: Invalid API key | Connection closed",
            True,
        ),
        ("Server stderr: error: invalid_api_key", True),
        ("Server stderr: invalid-api-token", True),
        ("Server stderr: invalidapikey", True),
        ("Server stderr: Bad  Credentials", True),
        ("Server stderr: incorrect credentials supplied", True),
        ("Server stderr: badcredentials", False),
        ("Server stderr: API key invalid", False),
        ("server STDERR: bad credentials", True),
        ("Server stderr: listening on 401 sockets", False),
        ("Server stderr: unauthorized access logged", False),
        ("Server stderr: oauth token missing", False),
        ("Server stderr: invalid_token", False),
        ("Server stderr: sh: 1: server: Permission denied | Connection closed", False),
        ("Server stderr: npm error EACCES: permission denied, rename x", False),
        ("Server stderr: access denied", False),
        ("", False),
        (None, False),
    ],
)
def test_marker_and_phrase_stand_in_one_segment(error, rejected):
    assert is_stderr_rejected(error) is rejected
    assert (routes.cause_of(Failing("x", error)) == "rejected") is rejected


@pytest.mark.requirement("failure-stderr-oauth-capable-keeps-ladder")
def test_a_child_cannot_speak_of_a_server_that_takes_oauth():
    assert routes.cause_of(Failing("notion", SAID_TWICE, takes_oauth=True)) == "other"


@pytest.mark.requirement("failure-stderr-detail-line")
@pytest.mark.parametrize(
    ("error", "line"),
    [
        (f"Server stderr: starting\nB: Invalid API key | {CLOSED}", "B: Invalid API key"),
        (SAID_TWICE, REFUSED_KEY),
        (f"Server stderr: x\nbad credentials {'y' * 400}", f"bad credentials {'y' * 284}"),
        (CLOSED, None),
    ],
)  # fmt: skip
def test_what_is_told_of_a_child_is_the_line_that_says_so(error, line):
    assert stderr_detail(error) == line


@pytest.mark.requirement("failure-stderr-only-claude-has-input")
def test_where_nobody_hands_on_what_a_child_prints_nothing_is_guessed():
    error = "handshaking with MCP server failed: connection closed: initialize response"
    run = Handshakes(FILES, [{"files": error}, {"files": CONNECTED}], runtime="codex")
    assert (run.record, run.retried) == ({}, [["files"]])


# --- the ladder and the record


@pytest.mark.requirement(
    "failure-ladder-three-attempts", "failure-ladder-delays", "failure-ladder-total-schedule",
    "failure-exhaustion-degrades", "failure-ladder-backoff-is-not-stable",
)  # fmt: skip
@pytest.mark.parametrize("runtime", ["claude", "codex", "pi"])
def test_a_server_that_never_connects_is_started_four_times_and_then_left_out(runtime):
    run = Handshakes(FILES, [{"files": CLOSED}], runtime=runtime)
    assert [each["after_seconds"] for each in run.ran.named("session.retry")] == [30, 60, 120]
    pauses = [round(later - earlier, 1) for earlier, later in zip(run.spawned, run.spawned[1:], strict=False)]
    assert [int(pause - 2.5) for pause in pauses] == [30, 60, 120, 0]
    assert run.record == {"files": "they did not connect after 3 retries"}
    assert "failure_reason" not in run.metadata
    assert [each["exit_code"] for each in run.ran.named("session.ended")] == [0]


@pytest.mark.requirement("failure-ladder-transient-classes")
@pytest.mark.parametrize("capable", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        '(ENOENT): Executable not found in $PATH: "x"',
        'Connection failed after 4009ms (CONNECT_TIMEOUT): MCP server "hang" connection timed out after 4000ms',
        "(ENDPOINT_NOT_FOUND): MCP endpoint not found at https://x. Check the URL in your MCP config.",
        "(500): Error POSTing to endpoint: oh",
        "EACCES: permission denied, posix_spawn '/x'",
        "HTTP Connection failed after 21ms: no (code: 403, errno: none)",
        "npm error ENOTEMPTY",
        "",
        None,
    ],
)
def test_no_other_failure_is_final_at_first(error, capable):
    assert routes.cause_of(Failing("x", error, takes_oauth=capable)) == "other"
    decision = routes.route({}, {"x": error}, {"x": "other"}, NOW)
    assert decision.routes == {"x": "retry"}


@pytest.mark.requirement("failure-ladder-counter-fields", "failure-mixed-pass-single-write")
def test_a_mixed_pass_writes_all_its_notes_at_once():
    states: list[tuple[bool, bool]] = []

    async def looks(world: World) -> None:
        for _ in range(400):
            noted = (await sessions.read(world, SESSION)).get("metadata", {})
            states.append(("mcp_degraded_servers" in noted, "mcp_retry_count" in noted))
            await world.clock.sleep(0.01)

    Handshakes({**STATIC, **FILES}, [{"zimmer-sessions": INVALID_TOKEN, "files": CLOSED}], others={"somebody": looks})
    assert set(states) == {(False, False), (True, True)}


@pytest.mark.requirement("failure-ladder-empty-set-retries")
def test_something_that_nobody_knows_rides_the_ladder():
    first = routes.route({}, {}, {}, NOW)
    assert (first.route, first.after_seconds, first.metadata["mcp_retry_count"]) == ("retry", 30, 1)
    last = routes.route({"mcp_retry_count": 3}, {}, {}, NOW)
    assert (last.route, last.servers, last.metadata["mcp_degraded_servers"]) == ("degrade", (), [])


@pytest.mark.requirement(
    "failure-record-repeat-is-noop", "failure-record-old-plus-new", "failure-heal-whole-failed-set"
)
def test_a_server_that_is_left_out_already_decides_nothing_and_is_not_stamped_again():
    record = [{"name": "zimmer-sessions", "reason": "their credentials were rejected", "degraded_at": "then"}]
    known = {"mcp_degraded_servers": record}
    again = Handshakes(STATIC, [{"zimmer-sessions": INVALID_TOKEN}], metadata=known)
    assert (len(again.spawned), again.metadata["mcp_degraded_servers"]) == (1, record)
    beside = Handshakes(
        {**STATIC, **FILES}, [{"zimmer-sessions": INVALID_TOKEN, "files": CLOSED}, {"files": CONNECTED}], metadata=known
    )
    assert beside.retried == [["files"]]
    assert beside.metadata["mcp_degraded_servers"] == record


@pytest.mark.requirement(
    "failure-record-key-and-fields", "failure-record-own-reason", "failure-record-replaces-same-name",
    "failure-exhaustion-reason-text", "failure-record-error-kept",
)  # fmt: skip
def test_the_record_has_one_entry_a_server_with_its_own_reason_in_its_own_place():
    classes: dict[str, routes.Class] = {"z": "rejected", "p": "other"}
    decision = routes.route({"mcp_retry_count": 3}, {"p": None, "z": "401"}, classes, NOW)
    stamp = ladder.stamp(NOW)
    assert decision.metadata["mcp_degraded_servers"] == [
        {"name": "z", "error": "401", "reason": "their credentials were rejected", "degraded_at": stamp},
        {"name": "p", "reason": "they did not connect after 3 retries", "degraded_at": stamp},
    ]
    renewed = ladder.left_out(decision.metadata, {"z": None}, NOW + 1)
    assert [(each["name"], each.get("error")) for each in renewed["mcp_degraded_servers"]] == [("z", None), ("p", None)]


@pytest.mark.requirement("failure-log-level-not-error")
def test_neither_a_retry_nor_a_server_that_is_left_out_is_an_error():
    run = Handshakes({**STATIC, **FILES}, [{"zimmer-sessions": INVALID_TOKEN, "files": CLOSED}])
    assert {level for level, _ in run.log} == {"info", "warn"}
    assert [level for level, text in run.log if "left out" in text] == ["warn", "warn"]


@pytest.mark.requirement("failure-record-config-untouched")
def test_leaving_a_server_out_rewrites_nothing():
    texts: list[str] = []

    async def looks(world: World) -> None:
        for _ in range(3):
            await world.clock.sleep(1.4)
            texts.append((await world.files.read(f"{CLONE}/.mcp.json")).decode())

    run = Handshakes(STATIC, [{"zimmer-sessions": INVALID_TOKEN}], others={"somebody": looks})
    assert list(run.record) == ["zimmer-sessions"]
    assert len(set(texts)) == 1
    assert run.row["mcp_servers"] == ["zimmer-sessions"]


def broken(tree: str) -> str:
    """What npm says of a tree that is half there."""
    return (
        f"Connection failed | Server stderr: npm error ENOTEMPTY: directory not empty, rename '{tree}/node_modules/x'"
    )


@pytest.mark.requirement(
    "failure-heal-on-retry", "failure-heal-on-degrade", "failure-heal-whole-failed-set", "failure-heal-not-on-oauth",
    "failure-replay-slack-and-npx",
)  # fmt: skip
@pytest.mark.parametrize(("retries", "parks"), [(0, False), (3, False), (0, True)])
def test_the_heal_runs_over_all_that_failed_unless_the_session_is_parked(retries, parks):
    trees = [f"{CLONE}/.npm-cache/_npx/{digit * 16}" for digit in "ab"]
    said = {"files": broken(trees[0]), "slack": f"{REFUSED_KEY} | {broken(trees[1])}"}
    said = {**said, "notion": UNAUTHORIZED} if parks else said
    run = Handshakes(
        {**FILES, "slack": stdio(), **NOTION}, [said, {"files": CONNECTED, "notion": CONNECTED}],
        chosen=[*said], files={f"{tree}/package.json": "{" for tree in trees}, metadata={"mcp_retry_count": retries},
    )  # fmt: skip
    assert [set(each["removed"]) for each in run.ran.named("heal.ran")] == ([] if parks else [set(trees)])
    assert run.record == ({} if parks else {"slack": "their credentials were rejected"})
    assert run.retried == ([] if parks or retries else [["files"]])


@pytest.mark.requirement("failure-heal-error-is-harmless")
def test_a_heal_that_cannot_be_done_changes_no_verdict(monkeypatch):
    async def raises(world: World, clone: str, base: str, errors: Any) -> Any:
        raise RuntimeError

    monkeypatch.setattr("harness.reference.session.job.heal_after", raises)
    run = Handshakes(FILES, [{"files": CLOSED}, {"files": CONNECTED}])
    assert [each["after_seconds"] for each in run.ran.named("session.retry")] == [30]
    assert (run.record, len(run.spawned)) == ({}, 2)


@pytest.mark.requirement("failure-record-no-secret-values")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('Raw body: {"access_token": "at-1234", "refresh_t', 'Raw body: {"access_token": "[REDACTED]", "refresh_t'),
        ('{"access_token":"at-1234","refresh_token":"rt-9', '{"access_token":"[REDACTED]","refresh_token":"[REDACTED]'),
        (r'"body {\"id_token\":\"eyJ.a.b\"}"', r'"body {\"id_token\":\"[REDACTED]\"}"'),
        ("access_token=at-1234&token_type=bearer", "access_token=[REDACTED]&token_type=bearer"),
        ('{"error": "invalid_token", "token_type": "x"}', '{"error": "invalid_token", "token_type": "x"}'),
    ],
)
def test_tokens_that_nobody_has_stored_are_told_by_their_names(text, shown):
    assert redacted(text, ()) == shown
