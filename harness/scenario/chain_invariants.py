"""What must hold of every token chain, whatever a scenario expects (issue of the token chain: safety of refreshes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from harness.scenario.chain_notes import Attempt, Note
from harness.scenario.desk import CRON, ROTATE_ACCOUNT
from harness.scenario.foreign import Known, touched
from harness.scenario.holes import Count, counted
from harness.scenario.losses import Loss, losses
from harness.scenario.mishaps import CLIENTS_WAIT_SECONDS
from harness.scenario.naming import plain
from harness.scenario.session_runs import is_launch
from harness.scenario.stores import is_of_a_runtime
from harness.scenario.theatre import Evidence
from harness.world.model import Event

NOT_SENT = ("refused", "dns", "tls", "open-timeout")
"""Faults by which a request never left: trying again spends nothing."""
UNKNOWN = ("reset-before", "reset-after")
"""Faults after which nobody can know whether the request was processed."""
IN_BAND_SECONDS = 20 * 60.0
"""A repetition within it is no matter of the next scheduled run, which is half an hour away; the ladder ends sooner."""
ANSWERED = 200
NEW_SPAWN = "session.retry"


class Broken(NamedTuple):
    """How a rule was broken, and the numbers of the events that did it, the last one last."""

    detail: str
    events: tuple[int, ...] = ()


def around(stage: Evidence, actor: str, at: int) -> tuple[int, ...]:
    """What tells of something that an actor did when there were so many events: what it told next, or last before."""
    own = [number for number, event in enumerate(stage.events) if event.actor == actor]
    after = [number for number in own if number >= at]
    return tuple(after[:1] or own[-1:])


def presented_wrongly(stage: Evidence) -> Broken | None:
    """Who presented a spent token though it could have known; None where nobody did."""
    for attempt in stage.monitor.attempts:
        if attempt.wrong:
            stores = ", ".join(attempt.fresher)
            told = f"{attempt.actor} presents generation {attempt.generation}: {attempt.wrong} ({stores})"
            return Broken(told, (attempt.event,))
    return None


def repeated(stage: Evidence) -> Broken | None:
    """Which actor of the orchestrator presented one token again though its request may have been processed."""
    earlier: dict[tuple[str, str, int, int], Attempt] = {}
    for attempt in stage.monitor.attempts:
        if is_of_a_runtime(attempt.actor):
            continue
        which = (attempt.actor, *attempt.chain, attempt.generation)
        before = earlier.get(which)
        earlier[which] = attempt
        if before is None or attempt.at - before.at >= IN_BAND_SECONDS:
            continue
        if not is_settled(stage, before, stage.events[before.event : attempt.event]):
            what = f"{attempt.actor} presents generation {attempt.generation} again, and cannot know what became of it"
            return Broken(what, (before.event, attempt.event))
    return None


def is_settled(stage: Evidence, attempt: Attempt, since: Sequence[Event]) -> bool:
    """Whether who presented a token knows what became of it: it never left, or it was answered. What a session does
    after it has started its runtime, or decided to try again, is for another spawn.
    """
    label = f"POST {attempt.url}"
    action, status = "", 0
    for event in since:
        if event.actor == attempt.actor and (event.name == NEW_SPAWN or (event.name == "spawn" and is_launch(event))):
            return True
        if event.actor != attempt.actor or event.details.get("at") != label or status:
            continue
        if event.name == "fault":
            action = str(event.details.get("action"))
            if action in NOT_SENT:
                return True
        elif event.name == "request":
            status = int(event.details.get("status", 0)) or -1
    return status >= ANSWERED and action not in UNKNOWN and not is_late(stage, attempt, since)


def is_late(stage: Evidence, attempt: Attempt, since: Sequence[Event]) -> bool:
    """Whether the answer came when nobody waited for it any more: by the server's will, or by a slow network."""
    asked = stage.monitor.servers[attempt.chain[0]].requests
    own = (each for each in asked if each.who == attempt.actor and each.at >= attempt.at)
    first = next((each for each in own if each.generation == attempt.generation), None)
    slow = any(event.actor == attempt.actor and event.details.get("action") == "slow" for event in since)
    return slow or (first is not None and first.answer.after_seconds >= CLIENTS_WAIT_SECONDS)


def moved_backwards(stage: Evidence) -> Broken | None:
    """Who put older tokens over newer ones of the same chain in the orchestrator's row."""
    return first_of(stage, stage.monitor.backwards)


def first_of(stage: Evidence, notes: Sequence[Note]) -> Broken | None:
    """The first of what was noted."""
    return next((Broken(each.text, around(stage, each.actor, each.event)) for each in notes), None)


def overwritten(stage: Evidence) -> Broken | None:
    """Who put older tokens over newer ones in a runtime's store though it could have known."""
    for each in stage.monitor.overwrites:
        if each.wrong:
            told = f"{each.actor} puts generation {each.after} over {each.before} in {each.store}"
            return Broken(f"{told}: {each.wrong}", around(stage, each.actor, each.event))
    return None


def revived(stage: Evidence) -> Broken | None:
    """Who put tokens back that had been retired."""
    return first_of(stage, stage.monitor.revived)


def foreign_touched(stage: Evidence) -> Broken | None:
    """Which entry of nobody's business the orchestrator changed in a store."""
    known = Known.of(stage.cast.known)
    rotates = any(event.name == "step.job" and event.details.get("job") == ROTATE_ACCOUNT for event in stage.events)
    for change in stage.monitor.changes:
        account = rotates and plain(change.actor) == CRON
        what = touched(change.path, change.before, change.after, known, may_change_account=account)
        if what:
            told = f"{change.actor} changes {what} in {change.path}"
            return Broken(told, around(stage, change.actor, change.event))
    return None


def unnamed_loss(stage: Evidence) -> Broken | None:
    """A chain that was lost by no accepted hole."""
    unnamed = next((loss for loss in lost(stage) if not loss.hole), None)
    if unnamed is None:
        return None
    told = f"the chain {unnamed.chain[0]} {unnamed.chain[1]} is lost: {unnamed.detail}"
    return Broken(told, () if unnamed.event is None else (unnamed.event,))


def lost(stage: Evidence) -> list[Loss]:
    """The chains that were lost."""
    return losses(stage.monitor, stage.events, stage.cast.authorizations.revoked)


def walked(stage: Evidence) -> Count:
    """How often each accepted hole was walked into, and how many chains it cost."""
    monitor = stage.monitor
    met = [*(each.hole for each in monitor.attempts), *(each.hole for each in monitor.overwrites)]
    return counted(met, (loss.hole for loss in lost(stage))) if monitor.servers else {}
