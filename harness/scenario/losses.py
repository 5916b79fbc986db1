"""Why a token chain has ended: an accepted hole by its name, the provider's will, or a rule that was broken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fake_servers.oauth import AuthorizationServer, Generation
from fake_servers.oauth.asking import Received
from harness.scenario import holes
from harness.scenario.chain_notes import Attempt, Chain
from harness.scenario.chains import Monitor, giving
from harness.scenario.mishaps import befell
from harness.scenario.stores import ROW
from harness.world.model import Event

RETIRED, AUTHORIZED = "credential.retired", "oauth.completed"
"""What takes a chain out of the orchestrator's row on purpose."""
TOO_MANY = 429
SAME_SECONDS = 10.0
"""A request arrives at most so long after it was sent off."""


class Loss(NamedTuple):
    """A chain that nobody can go on with. `hole` names it, "" where a rule was broken; `detail` says what was seen,
    `event` is the number of the event that ended it, where it was one.
    """

    chain: Chain
    hole: str
    detail: str
    event: int | None = None


def losses(monitor: Monitor, events: Sequence[Event], revoked: Sequence[Chain] = ()) -> list[Loss]:
    """The chains that were lost in a run. Those that the provider ended, or that were retired, are none."""
    held = monitor.held()
    found = []
    for name, server in monitor.servers.items():
        for family in dict.fromkeys(each.family for each in server.tokens):
            chain = (name, family)
            generations = [each for each in server.tokens if each.family == family and each.refresh is not None]
            stored = {number for store in held.values() if chain in store for number in (store[chain].number,)}
            if (
                not generations
                or chain in revoked
                or any(each.number in stored and is_good(server, each, monitor.stage.now) for each in generations)
            ):
                continue
            newest = generations[-1]
            loss = (
                of_a_reuse(monitor, chain)
                if newest.refresh_revoked
                else of_an_answer(monitor, chain, newest.number, events)
            )
            if loss is not None:
                found.append(loss)
    return found


def is_good(server: AuthorizationServer, generation: Generation, now: float) -> bool:
    """Whether its refresh token can still be exchanged."""
    if generation.refresh_revoked:
        return False
    return generation.spent_at is None or now < generation.spent_at + server.provider.grace_seconds


def of_a_reuse(monitor: Monitor, chain: Chain) -> Loss | None:
    """Whoever presented a spent token had the family ended. None: nobody did, so the provider has."""
    reused = [each for each in monitor.attempts if each.chain == chain and each.reuse and came(monitor, each)]
    if not reused:
        return None
    first = reused[0]
    told = f"{first.actor} presents generation {first.generation}, which is spent"
    return Loss(chain, "" if first.wrong else first.hole, first.wrong or told, first.event)


def came(monitor: Monitor, attempt: Attempt) -> bool:
    """Whether the provider has seen it."""
    return any(
        (each.family, each.generation) == (attempt.chain[1], attempt.generation)
        and each.processed
        and 0 <= each.at - attempt.at <= SAME_SECONDS
        for each in monitor.servers[attempt.chain[0]].requests
    )


def of_an_answer(monitor: Monitor, chain: Chain, newest: int, events: Sequence[Event]) -> Loss | None:
    """The newest tokens are in no store: they never were, or they were overwritten. None: the chain was given up."""
    stores = [store for store, chains in monitor.ever.items() if chains.get(chain, 0) >= newest]
    if ROW in stores:
        if is_given_up(monitor, chain, newest, events):
            return None
        hole = holes.OLD_GRANT if chain in monitor.outlived else holes.NO_LATER if chain in monitor.mistaken else ""
        return Loss(chain, hole, f"generation {newest} was in the orchestrator's row, and is not any more")
    wrong = next((each for each in monitor.overwrites if each.chain == chain and each.wrong), None)
    if wrong is not None:
        return Loss(chain, "", f"{wrong.actor} puts generation {wrong.after} over {wrong.before}: {wrong.wrong}")
    if stores:
        is_removed = is_refused(monitor, chain, newest) or monitor.operated.issuperset(stores)
        if is_removed or is_replaced(monitor, chain, newest, events):
            return None
        return Loss(chain, monitor.taken_by(chain, newest - 1), f"generation {newest} was in {stores[0]}")
    given = giving(monitor.servers[chain[0]], chain[1], newest)
    whose = "nobody" if given is None else given.who
    if given is None or befell(events, given):
        return Loss(chain, holes.ANSWER_LOST, f"generation {newest} was given to {whose}")
    return Loss(chain, "", f"{whose} was given generation {newest}, and it is in no store")


def is_given_up(monitor: Monitor, chain: Chain, newest: int, events: Sequence[Event]) -> bool:
    """Whether the orchestrator had a reason to drop the tokens: authorized anew, retired, refused by the provider."""
    return is_dropped_by(monitor, chain, events, (RETIRED, AUTHORIZED)) or is_refused(monitor, chain, newest)


def is_dropped_by(monitor: Monitor, chain: Chain, events: Sequence[Event], names: Sequence[str]) -> bool:
    """Whether whoever took a chain out of the orchestrator's row did one of these."""
    dropped, server = monitor.dropped.get(chain), monitor.server_of.get(chain)
    did = (event for event in events if dropped is not None and event.actor == dropped.actor and event.name in names)
    return any(event.details.get("server") == server for event in did)


def is_replaced(monitor: Monitor, chain: Chain, newest: int, events: Sequence[Event]) -> bool:
    """Whether somebody had authorized the server anew before the newest tokens went out of a runtime's store."""
    left, dropped = monitor.left.get((chain, newest)), monitor.dropped.get(chain)
    if left is None or dropped is None or left.arrival < dropped.arrival:
        return False
    return is_dropped_by(monitor, chain, events, (AUTHORIZED,))


def is_refused(monitor: Monitor, chain: Chain, newest: int) -> bool:
    """Whether somebody who presented the newest tokens was told, by whoever answers there, that they are no good."""
    presented = [each for each in monitor.attempts if each.chain == chain and each.generation == newest]
    refused = [each for each in monitor.servers[chain[0]].requests if is_refusal(each) and each.generation == newest]
    return any(each.family == chain[1] for each in refused) or any(
        status_of(monitor.stage.events, each) in range(400, 500) and status_of(monitor.stage.events, each) != TOO_MANY
        for each in presented
    )


def is_refusal(request: Received) -> bool:
    """Whether an answer says that a grant is good no more: by its status, or in a good one."""
    if request.issued is not None:
        return False
    return request.status == 200 or (400 <= request.status < 500 and request.status != TOO_MANY)


def status_of(events: Sequence[Event], attempt: Attempt) -> int:
    """What an attempt was answered, by the server or by whoever stands in between; 0 where nobody did."""
    label = f"POST {attempt.url}"
    own = (event for event in events[attempt.event :] if event.actor == attempt.actor and event.name == "request")
    return next((int(event.details.get("status", 0)) for event in own if event.details.get("at") == label), 0)
