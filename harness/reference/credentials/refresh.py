"""Renewing a stored credential with its refresh token: one request, under the row's lock.

Source: seed 002 "Refresh", "The token endpoint must be https". The rules that keep a chain of single-use tokens alive:
whether to post is decided under the lock, on the row as it is then; the request is sent once; nothing that might keep
its result from being saved is left to be found out afterwards.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from harness.reference.credentials import attempts, table
from harness.reference.credentials.refresh_answer import Refreshed, body_kind, refreshed_row
from harness.reference.credentials.refresh_error import ErrorClass, error_class, error_kind
from harness.reference.credentials.row import Credential
from harness.reference.credentials.state import can_refresh, expires_in, is_active, is_due
from harness.reference.oauth import transport
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.secrets.blank import is_blank
from harness.world import Ambiguous, NotSent, Response, World
from harness.world.ports import Transaction

Reason = Literal["cron", "retry", "gate", "injection", "manual"]
"""Who asks. The gate before a spawn renews what has expired, the injection what is about to; `manual` always posts."""
RefreshResult = Literal["refreshed", "permanent", "failed", "retryable", "ambiguous", "unexpected", "skipped"]
Level = Literal["info", "warn", "error"]

WINDOW_SECONDS = 60 * 60
MAX_EXPIRED_AGE_SECONDS = 24 * 60 * 60
PROACTIVE_REFRESH_MIN_INTERVAL_SECONDS = 4 * 60 * 60


class CannotRefreshError(ValueError):
    """A row that has nothing to be renewed with; no request was made. The texts are the system's own."""


class RefreshOutcome(NamedTuple):
    """`row` is the row as it is stored now, None where there is none.

    `skipped`: nothing was sent, as there was no row, or none that needs it and can be renewed. `failed` and all that
    follow it in the type leave every column as it was; `ambiguous` and `unexpected` may have spent the refresh token.
    `attempts` is the row's count of them when the request had failed.
    """

    result: RefreshResult
    row: Credential | None
    attempts: int = 0


class Tried(NamedTuple):
    """The attempts that there had been when somebody began, and how long the row's lock was waited for."""

    began: attempts.Counts
    waited_seconds: float


def refresh_form(row: Credential) -> dict[str, str]:
    """The form of the refresh grant; blank optional fields are left out. Raises CannotRefreshError."""
    if row.refresh_token is None or is_blank(row.refresh_token):
        raise CannotRefreshError("Cannot refresh: missing refresh_token")
    if not acceptable_endpoint(row.token_endpoint):
        raise CannotRefreshError("Cannot refresh: missing token_endpoint")
    form = {"grant_type": "refresh_token", "refresh_token": row.refresh_token, "client_id": row.client_id}
    optional = {"client_secret": row.client_secret, "resource": row.resource}
    return form | {name: value for name, value in optional.items() if value is not None and not is_blank(value)}


def is_renewable(row: Credential) -> bool:
    """Whether a refresh could be posted at all (`can_refresh?`)."""
    return can_refresh(row.refresh_token, row.token_endpoint)


def in_window(row: Credential, now: float) -> bool:
    """Whether the job is concerned with its expiry: within the hour, and not more than a day ago."""
    left = expires_in(row, now)
    return left is not None and -MAX_EXPIRED_AGE_SECONDS <= left < WINDOW_SECONDS


def is_throttled(row: Credential, now: float) -> bool:
    """Whether anybody has changed the row within the last four hours. Counts for scheduled runs alone."""
    return now - row.updated_at <= PROACTIVE_REFRESH_MIN_INTERVAL_SECONDS


def due(row: Credential, reason: Reason, now: float) -> bool:
    """Whether a run of the job selects the row: the scheduled one, or a retry."""
    if not (in_window(row, now) and is_renewable(row)):
        return False
    return reason != "cron" or not is_throttled(row, now)


def still_wanted(row: Credential, reason: Reason, seen: Credential | None, now: float) -> bool:
    """The decision to post, taken on the row under its lock.

    `seen` is the row as the caller selected it: where it holds another pair by now that is good, somebody has renewed
    it, or adopted what a runtime had renewed, and nothing is posted.
    """
    if seen is not None and row.access_token != seen.access_token and is_active(expires_in(row, now)):
        return False
    if reason in ("cron", "retry"):
        return in_window(row, now) and is_renewable(row)
    left = expires_in(row, now)
    return is_renewable(row) and (is_due(left) if reason == "injection" else not is_active(left))


async def refresh(
    world: World,
    key: str,
    *,
    reason: Reason,
    seen: Credential | None = None,
    since: attempts.Counts | None = None,
    retries_left: bool = True,
) -> RefreshOutcome:
    """Renew the credential of a key, if that is still wanted once its row is locked.

    `since` are the attempts that there had been when the caller began (None: now): a token that another one has
    presented after that, or whose renewal has failed by then, is not presented again. Emits `credential.refreshed`
    (server), or `credential.refresh_failed` (server, kind) and a log line. `retries_left` False: a retryable failure is
    the last, and is told as an error. Raises CannotRefreshError for `manual` alone. A process that dies between the
    answer and the commit has lost the pair: the row holds the spent token then.
    """
    began = await attempts.counts(world) if since is None else since
    transaction = await world.store.begin()
    try:
        asked_at = world.clock.now()
        row = await table.read(transaction, key, lock=True)
        tried = Tried(began, world.clock.now() - asked_at)
        if row is None or not await is_to_be_posted(world, row, reason, seen, tried):
            await transaction.rollback()
            return RefreshOutcome("skipped", row)
        return await post_locked(world, transaction, row, retries_left=retries_left)
    except BaseException:
        await transaction.rollback()
        raise


async def is_to_be_posted(world: World, row: Credential, reason: Reason, seen: Credential | None, tried: Tried) -> bool:
    """The whole decision under the lock: the row needs it, and nobody else has just tried."""
    if reason == "manual":
        return True
    if not still_wanted(row, reason, seen, world.clock.now()):
        return False
    return not await attempts.attempted_since(world, row, tried.began, tried.waited_seconds)


async def post_locked(world: World, transaction: Transaction, row: Credential, *, retries_left: bool) -> RefreshOutcome:
    """Send the request, and end the transaction by what became of it."""
    try:
        answer = await post(world, row)
    except (NotSent, Ambiguous) as error:
        count = await note_failure(world, row, "failed" if isinstance(error, Ambiguous) else "never left")
        await transaction.rollback()
        kind = error_class(error)
        tell_failure(world, row, kind, error_level(kind, retries_left=retries_left), error_kind(error))
        return RefreshOutcome(kind, row, count)
    text = answer.body.decode("utf-8-sig", "replace")
    refreshed = refreshed_row(row, answer.status, text, world.clock.now())
    row, count = await settle(world, transaction, row, refreshed)
    if refreshed.log_level is None:
        world.events.emit("credential.refreshed", server=row.server_name)
    else:
        what = f"HTTP {answer.status}, body {body_kind(text)}"
        tell_failure(world, row, refreshed.result, refreshed.log_level, what)
    return RefreshOutcome(refreshed.result, row, count)


async def post(world: World, row: Credential) -> Response:
    """The one request. Nothing is sent for a row that could not be saved afterwards, nor to a cleartext endpoint."""
    form = refresh_form(row)
    await attempts.note(world, row)
    return await transport.post_form(world, row.token_endpoint or "", form)


async def note_failure(world: World, row: Credential, outcome: attempts.Outcome) -> int:
    """Tell those who came while the request was under way, and wait for the row, whether its token was presented; the
    count of attempts from now on.
    """
    return await attempts.note(world, row, outcome)


async def settle(
    world: World, transaction: Transaction, before: Credential, refreshed: Refreshed
) -> tuple[Credential, int]:
    """Save what an answer has changed; the row as it is stored then, and the attempts at it where it has failed. A
    failure that changes nothing touches nothing.
    """
    if refreshed.result not in ("refreshed", "permanent"):
        count = await note_failure(world, before, "failed")
        await transaction.rollback()
        return before, count
    saved = await table.save(transaction, refreshed.row, world.clock.now())
    await transaction.commit()
    return saved, 0


def error_level(kind: ErrorClass, *, retries_left: bool) -> Level:
    """Info for what is going to be tried again by itself, error for what nobody will look at otherwise."""
    if kind == "unexpected" or (kind == "retryable" and not retries_left):
        return "error"
    return "info"


def tell_failure(world: World, row: Credential, kind: str, level: Level, what: str) -> None:
    """The event and the log line of a refresh that failed. No token, secret or endpoint in either."""
    world.events.emit("credential.refresh_failed", server=row.server_name, kind=kind)
    text = f"MCP OAuth refresh of {row.server_name} ({row.credential_key}) failed: {kind} ({what})"
    world.events.emit("log", level=level, text=text)
