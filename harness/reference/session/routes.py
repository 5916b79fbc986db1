"""Which way each server of a failed handshake goes: a human authorizes it, it is tried again, or it is left out.

Source: seed 000 "When a server cannot connect, the server is left out — not the session", seed 002 "The gate";
requirements failure-three-routes-total, failure-verdict-*, gate-post-spawn-*, gate-only-fatal-class. The verdict is the
server's own: which others failed beside it does not matter, except that one that needs authorization ends the pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal, NamedTuple

from harness.reference.secrets.blank import is_blank
from harness.reference.session import ladder
from harness.reference.session.ladder import Decision, Errors, Metadata, Route
from harness.reference.session.refusals import auth_text, is_stderr_rejected

Cause = Literal["grant_rejected", "unauthorized", "rejected", "other"]
Class = Literal["needs_sign_in", "authorized", "rejected", "other"]
Delivered = Literal["pending", "original", "recovery"]


class Failing(NamedTuple):
    """A server that did not connect: what was said of it, its URL as the runtime reads it, and whether an OAuth flow
    can apply to it: by the very predicate that the gate before a spawn has.
    """

    name: str
    error: str | None = None
    url: str | None = None
    takes_oauth: bool = False


def cause_of(failing: Failing) -> Cause:
    """What the text says. A refused key is no matter of OAuth, whoever says it, and OAuth none of a child's words.

    `grant_rejected` comes before `unauthorized`, so that no unexpired row can shadow it.
    """
    said = auth_text(failing.error, failing.name, failing.url)
    if not failing.takes_oauth:
        return "rejected" if said.auth_error or is_stderr_rejected(failing.error) else "other"
    if said.refresh_token_rejected:
        return "grant_rejected"
    return "unauthorized" if said.auth_error else "other"


def class_of(cause: Cause, *, needs_sign_in: bool) -> Class:
    """The class of a failure. `needs_sign_in`: what the stored credential says of one that OAuth can apply to."""
    if cause in ("rejected", "other"):
        return cause
    return "needs_sign_in" if needs_sign_in else "authorized"


def needs_sign_in(cause: Cause, *, is_authorized: bool, is_retired: bool) -> bool:
    """Whether clicking Authorize can help. A dead grant's credential has to be out of the way for that.

    `is_retired`: nothing of it stands any more, or nothing ever did; False: that could not be achieved.
    """
    return is_retired if cause == "grant_rejected" else not is_authorized


def route(metadata: Metadata, failed: Errors, classes: Mapping[str, Class], now_seconds: float) -> Decision:
    """One pass over all that failed, on the notes as they are now. A server that is left out already has no route.

    `classes` are those of the servers that are news. With an empty set something failed and nobody knows what.
    """
    new = ladder.news(metadata, failed)
    if failed and not new:
        return Decision("nothing", metadata)
    required = of_class(new, classes, "needs_sign_in")
    if required:
        return Decision("oauth_required", metadata, required, routes=all_on("oauth_required", required))
    rejected = of_class(new, classes, "rejected")
    others = {name: error for name, error in new.items() if name not in rejected}
    noted = metadata
    if rejected:
        noted = ladder.left_out(metadata, {name: new[name] for name in rejected}, now_seconds, ladder.REJECTED)
    return with_ladder(noted, rejected, others, now_seconds)


def with_ladder(noted: Metadata, rejected: Collection[str], others: Errors, now_seconds: float) -> Decision:
    """The ladder's decision about all others, in the same notes as the record of the rejected ones."""
    degraded = all_on("degrade", rejected)
    if rejected and not others:
        return Decision("degrade", noted, tuple(rejected), routes=degraded)
    decision = ladder.decide(noted, others, now_seconds) if others else ladder.climb(noted, others, now_seconds)
    if decision.route == "retry":
        return decision._replace(routes={**degraded, **all_on("retry", others)})
    return decision._replace(servers=(*rejected, *others), routes={**degraded, **all_on("degrade", others)})


def of_class(new: Iterable[str], classes: Mapping[str, Class], wanted: Class) -> tuple[str, ...]:
    """The servers of a class, in their order."""
    return tuple(name for name in new if classes.get(name) == wanted)


def all_on(taken: Route, names: Iterable[str]) -> dict[str, Route]:
    """One route for all of them."""
    return dict.fromkeys(names, taken)


def turn_to_deliver(pending: str | None, original: str | None, *, has_reached_agent: bool) -> Delivered:
    """What a retry delivers: the message that is owed, else the first turn while no turn has run, else a nudge."""
    if pending is not None and not is_blank(pending):
        return "pending"
    return "recovery" if has_reached_agent or is_blank(original) else "original"
