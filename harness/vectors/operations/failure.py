"""Vectors of the area `failure`: the pass over a failed handshake, the record it leaves, and who is told of that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.reference.catalog.entry import Entry, read_entry
from harness.reference.session import ladder, routes
from harness.reference.session.blocking import Blocked
from harness.reference.session.failed_handshakes import takes_oauth
from harness.reference.session.ladder import LeftOut
from harness.reference.session.prompt_block import with_block
from harness.reference.session.refusals import is_stderr_rejected, stderr_detail
from harness.reference.session.routes import Class, Failing
from harness.reference.session.shown_errors import credential_variables
from harness.reference.session.stale import is_stale, without_stale_keys
from harness.vectors.registry import operation

NOW = 1_800_000_000.0
URL = "https://server.example.com/mcp"
REMOTE, STDIO = ("oauth", "static"), "stdio"
UNTOUCHED: Mapping[str, Any] = {
    "handled": False,
    "routes": {},
    "session": "untouched",
    "failure_reason": None,
    "oauth_required_servers": [],
    "paused_by": None,
    "job": None,
    "needs_auth_cleared": [],
    "retired": [],
    "heal_over": [],
    "log_variables": {},
    "killed": False,
    "flag_dropped": False,
}


@operation(
    "failure.stderr_rejected",
    requirements=(
        "failure-stderr-example-blob",
        "failure-stderr-marker-and-phrase",
        "failure-stderr-same-segment",
        "failure-stderr-newline-not-a-separator",
        "failure-stderr-phrases",
        "failure-stderr-marker-any-case",
        "failure-stderr-never-broad-words",
        "failure-stderr-not-permission-denied",
        "failure-stderr-dialects",
    ),
)
def _stderr_rejected(given: dict[str, Any]) -> Any:
    return is_stderr_rejected(given["error"])


@operation("failure.stderr_detail", requirements=("failure-stderr-detail-line",))
def _stderr_detail(given: dict[str, Any]) -> Any:
    return stderr_detail(given["error"])


@operation("failure.stale_key", requirements=("failure-stale-excludes-record", "failure-stale-keys-members"))
def _stale_key(given: dict[str, Any]) -> Any:
    return is_stale(given["key"])


@operation("failure.clear_stale", requirements=("failure-stale-excludes-record", "failure-stale-cleared-as-a-set"))
def _clear_stale(given: dict[str, Any]) -> Any:
    return without_stale_keys(given["metadata"])


@operation(
    "failure.record",
    requirements=("failure-record-key-and-fields", "failure-record-own-reason", "failure-record-replaces-same-name"),
)
def _record(given: dict[str, Any]) -> Any:
    return ladder.with_verdicts(given["record"], [LeftOut(**each) for each in given["verdicts"]], given["now"])


@operation(
    "failure.retire",
    requirements=("failure-retire-on-connected", "failure-retire-only-connected", "failure-retire-others-stay"),
)
def _retire(given: dict[str, Any]) -> Any:
    record = [{"name": name} for name in given["degraded"]]
    connected = [name for name, each in given["statuses"].items() if each["status"] == "connected"]
    after = ladder.retired({ladder.DEGRADED: record}, connected)
    return {"degraded": [each["name"] for each in after.get(ladder.DEGRADED, ())], "key_present": record_is_kept(after)}


def record_is_kept(metadata: Mapping[str, Any]) -> bool:
    """Whether the key is still there."""
    return ladder.DEGRADED in metadata


@operation(
    "failure.block",
    requirements=(
        "failure-block-wrapper",
        "failure-block-absent-when-empty",
        "failure-block-bullets",
        "failure-block-own-reason",
        "failure-block-blank-prompt",
    ),
)
def _block(given: dict[str, Any]) -> Any:
    prompt = given["prompt"]
    added = with_block(prompt, given["degraded"])[len(prompt) :].strip("\n")
    lines = added.split("\n") if added else []
    return {
        "appended": bool(lines),
        "first_line": lines[0] if lines else None,
        "last_line": lines[-1] if lines else None,
        "bullets": [line for line in lines if line.startswith("- ")],
    }


# --- one pass


@operation(
    "failure.route",
    requirements=(
        "failure-three-routes-total",
        "failure-flag-gates-handler",
        "failure-oauth-route",
        "failure-oauth-ignores-budget",
        "failure-oauth-required-list",
        "failure-oauth-ends-the-pass",
        "failure-auth-static-header-degrades",
        "failure-auth-authorized-retries",
        "failure-auth-authorized-survives-peer",
        "failure-grant-rejected-retires",
        "failure-grant-retire-failure-retries",
        "failure-ladder-three-attempts",
        "failure-ladder-prompt-original",
        "failure-ladder-empty-set-retries",
        "failure-exhaustion-reason-text",
        "failure-static-no-retry",
        "failure-verdict-per-server",
        "failure-mixed-pass-paused-by",
        "failure-record-repeat-is-noop",
        "failure-record-old-plus-new",
        "gate-post-spawn-oauth-required",
        "gate-post-spawn-nonauth-not-oauth",
        "gate-post-spawn-not-capable",
        "gate-mixed-oauth-wins",
        "gate-retire-failure-retries",
        "gate-rejected-no-row-still-oauth",
        "gate-skips-declared-unavailable",
        "gate-verdict-per-server",
    ),
)
def _route(given: dict[str, Any]) -> Any:
    metadata = {ladder.DEGRADED: given["degraded"], ladder.COUNT: given["retry_count"]}
    untouched = {**UNTOUCHED, "degraded": given["degraded"], "retry_count": given["retry_count"]}
    if not given.get("should_fail_session", True):
        return untouched
    failed = {each["name"]: each for each in given["failed"]}
    errors = {name: each["error"] for name, each in failed.items()}
    new = {name: failed[name] for name in ladder.news(metadata, errors)}
    classes = {name: class_of(each) for name, each in new.items()}
    decision = routes.route(metadata, errors, classes, NOW)
    if decision.route == "nothing":
        return {**untouched, "flag_dropped": True}
    parks = decision.route == "oauth_required"
    rejected = () if parks else [name for name, found in classes.items() if found == "rejected"]
    entries = {name: entry_of(failed[name]) for name in (*rejected, *decision.on("oauth_required"))}
    after = decision.metadata
    return {
        "handled": True,
        "routes": dict(decision.routes),
        "session": "failed" if parks else "paused",
        "failure_reason": "oauth_required" if parks else None,
        "oauth_required_servers": [listed(entries[name], failed[name]) for name in decision.on("oauth_required")],
        "degraded": [without_stamp(each) for each in after[ladder.DEGRADED]],
        "retry_count": ladder.retries_made(after),
        "paused_by": after.get(ladder.PAUSED_BY),
        "job": None if parks else job(given, decision),
        "needs_auth_cleared": [name for name, found in classes.items() if found == "authorized"],
        "retired": [name for name, each in new.items() if is_retired(each)],
        "heal_over": [] if parks else list(failed),
        "log_variables": {name: names for name in rejected if (names := list(credential_variables(entries[name])))},
        "killed": True,
        "flag_dropped": False,
    }


def class_of(each: Mapping[str, Any]) -> Class:
    """The class of a failure, with what is stored for its server."""
    cause = routes.cause_of(failing(each))
    asks = routes.needs_sign_in(cause, is_authorized=has_credential(each), is_retired=not retire_fails(each))
    return routes.class_of(cause, needs_sign_in=asks)


def failing(each: Mapping[str, Any]) -> Failing:
    """A failed server as the rule sees it."""
    return Failing(each["name"], each["error"], each.get("url"), takes_oauth(entry_of(each)))


def is_retired(each: Mapping[str, Any]) -> bool:
    """Whether its credential is taken away."""
    is_rejected = routes.cause_of(failing(each)) == "grant_rejected"
    return is_rejected and has_credential(each) and not retire_fails(each)


def has_credential(each: Mapping[str, Any]) -> bool:
    """Whether an active one is stored."""
    return each.get("credential") == "active"


def retire_fails(each: Mapping[str, Any]) -> bool:
    """Whether its store refuses."""
    return bool(each.get("retire_raises", False))


def entry_of(each: Mapping[str, Any]) -> Entry | None:
    """A catalog entry of that kind."""
    kind, names = each["kind"], each.get("variables", ())
    more = {"unavailable": "it is down"} if each.get("declared_unavailable") else {}
    placeholders = [f"${{{name}}}" for name in names]
    if kind == STDIO:
        env = dict(zip(names, placeholders, strict=True))
        return read_entry(each["name"], {"type": "stdio", "command": "server", "env": env, **more})
    if kind not in REMOTE:
        return None
    headers = {"X-API-Key": "".join(placeholders) or "key"} if kind == "static" else {}
    raw = {"type": "streamable-http", "url": each.get("url") or URL, "headers": headers, **more}
    return read_entry(each["name"], raw)


def listed(entry: Entry | None, each: Mapping[str, Any]) -> dict[str, Any]:
    """The server as the session's list of servers to authorize has it."""
    url = each.get("url") if entry is not None else None
    return {"error": None, **Blocked(each["name"], url, None, each["error"]).entry()}


def without_stamp(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of the record, whenever it was made."""
    return {key: value for key, value in entry.items() if key != "degraded_at"}


def job(given: Mapping[str, Any], decision: ladder.Decision) -> dict[str, Any]:
    """What is enqueued. A session that only leaves servers out is nudged, at once."""
    if decision.route == "degrade":
        return {"prompt": "recovery", "delay_s": 0}
    pending, original = given["pending_follow_up_prompt"], given["prompt"]
    prompt = routes.turn_to_deliver(pending, original, has_reached_agent=given["turn_reached_agent"])
    return {"prompt": prompt, "delay_s": decision.after_seconds}
