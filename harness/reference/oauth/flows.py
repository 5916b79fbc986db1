"""Flows that were started and are not finished: everything that the exchange will need, in the table of flows.

Source: seed 002 "Manual (paste-back) completion", "Authorizing from the Connectors page"; requirements
flow-pending-flow-*, authorize-sweep-*, flow-callback-single-use. A flow is claimed by taking its row away, in one
transaction, before anything is posted: so of two completions, or of one that died and its replay, one posts at most.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from harness.reference.catalog.entry import read_entry
from harness.reference.credentials import table
from harness.reference.credentials.authorized import authorized
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.row import Credential
from harness.reference.oauth.endpoints import acceptable_endpoint
from harness.reference.oauth.server import RemoteServer
from harness.reference.oauth.tokens import TokenAnswer
from harness.reference.secrets.blank import is_blank
from harness.reference.session import rows as sessions
from harness.world import World
from harness.world.ports import Transaction

TABLE = "mcp_oauth_pending_flows"
PAIRS = "mcp_oauth_pending_flow_pairs"
"""No row is ever put here: its locks keep the flows of one (session, server) one."""

LIFETIME_SECONDS = 86400.0
RANDOM_BYTES = 32
REQUIRED = (
    "server_name",
    "server_url",
    "state",
    "code_verifier",
    "authorization_endpoint",
    "token_endpoint",
    "client_id",
    "redirect_uri",
    "expires_at",
)


class InvalidFlowError(ValueError):
    """A flow that may not be stored. `missing` are required fields without a value; the text holds names alone."""

    def __init__(self, text: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.missing = missing


class SessionGoneError(LookupError):
    """The session that a flow was to belong to is not there."""


@dataclass(frozen=True, slots=True)
class PendingFlow:
    """One flow. `session` None: started from the Connectors page. `expires_at` in seconds since the epoch.

    `mcp_server_config` is the entry as the catalog had it, `credential_key` its key and `runtime_keys` those of the
    runtimes then: a catalog that changes meanwhile changes nothing of a flow.
    """

    state: str = field(repr=False)
    server_name: str
    server_url: str = field(repr=False)
    code_verifier: str = field(repr=False)
    authorization_endpoint: str = field(repr=False)
    token_endpoint: str = field(repr=False)
    client_id: str
    redirect_uri: str
    expires_at: float
    mcp_server_config: Mapping[str, Any] = field(repr=False)
    credential_key: str
    runtime_keys: Mapping[Runtime, str] = field(default_factory=dict)
    session: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    registration_endpoint: str | None = field(default=None, repr=False)
    scopes: str | None = None
    resource: str | None = None
    issuer: str | None = None
    manual: bool = False

    def server(self) -> RemoteServer:
        """The server as it was when the flow began; of its headers nothing is kept."""
        entry = read_entry(self.server_name, self.mcp_server_config)
        return RemoteServer(self.server_name, self.server_url, self.credential_key, entry, {}, self.runtime_keys)


COLUMNS = tuple(column.name for column in fields(PendingFlow))


def missing_fields(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The required fields without a value, in their order (flow-pending-flow-required-fields)."""
    return tuple(name for name in REQUIRED if is_missing(values.get(name)))


def is_missing(value: object) -> bool:
    """Null or a blank text."""
    return value is None or (isinstance(value, str) and is_blank(value))


def storable_endpoint(token_endpoint: str | None) -> bool:
    """Whether a flow with this token endpoint may be stored: https alone, blank too is refused."""
    return acceptable_endpoint(token_endpoint)


def require_valid(values: Mapping[str, Any]) -> None:
    """Raise InvalidFlowError where a flow may not be stored (https-pending-flow-refuses)."""
    missing = missing_fields(values)
    if missing:
        raise InvalidFlowError(f"A pending flow needs {', '.join(missing)}", missing)
    if not storable_endpoint(values.get("token_endpoint")):
        raise InvalidFlowError("The token endpoint of a pending flow must be an https URL")
    if not isinstance(values.get("mcp_server_config"), Mapping):
        raise InvalidFlowError("The server config of a pending flow must be an object")


def flow_values(flow: PendingFlow) -> dict[str, Any]:
    """A flow as the table keeps it."""
    return asdict(flow)


def flow_of(values: Mapping[str, Any]) -> PendingFlow:
    """A flow from the table's values; what is no column of ours is left out."""
    return PendingFlow(**{name: values[name] for name in COLUMNS if name in values})


def is_expired(flow: PendingFlow, now: float) -> bool:
    """Over at the very moment that it names (authorize-sweep-scope)."""
    return flow.expires_at <= now


def is_sweepable(flow: PendingFlow, now: float) -> bool:
    """Expired, and without a session that it would die with."""
    return is_expired(flow, now) and flow.session is None


def random_text(world: World) -> str:
    """32 unguessable bytes as base64url without padding: 43 characters."""
    return urlsafe_b64encode(bytes.fromhex(world.entropy.token(2 * RANDOM_BYTES))).decode().rstrip("=")


def granted(flow: PendingFlow, answer: TokenAnswer, now: float) -> Credential:
    """The credential that an answer gives to a flow's server, keyed by the server's config and by nobody's session.

    An answer without scope grants what was asked for (RFC 6749 section 5.1).
    """
    return Credential(
        credential_key=flow.credential_key,
        server_name=flow.server_name,
        server_url=flow.server_url,
        client_id=flow.client_id,
        access_token=answer.access_token,
        refresh_token=answer.refresh_token,
        client_secret=flow.client_secret,
        token_endpoint=flow.token_endpoint,
        scopes=answer.scope or flow.scopes,
        resource=flow.resource,
        issuer=flow.issuer,
        redirect_uri=flow.redirect_uri,
        expires_at=None if answer.expires_in_seconds is None else now + answer.expires_in_seconds,
        runtime_keys=dict(flow.runtime_keys),
    )


async def start(world: World, flow: PendingFlow) -> PendingFlow:
    """Store a new flow with a state, a verifier and an expiry of its own, in place of the one of its (session, server).

    Raises InvalidFlowError, SessionGoneError; nothing is stored then.
    """
    fresh = replace(
        flow,
        state=random_text(world),
        code_verifier=random_text(world),
        expires_at=world.clock.now() + LIFETIME_SECONDS,
    )
    await put_only(world, fresh)
    return fresh


async def put_only(world: World, flow: PendingFlow, *, replaces: bool = True) -> bool:
    """Store a flow as the only one of its (session, server). Without `replaces` an other one stays, and False."""
    require_valid(flow_values(flow))
    transaction = await world.store.begin()
    try:
        await require_session(transaction, flow.session)
        await transaction.get(PAIRS, pair_key(flow.session, flow.server_name), lock=True)
        others = [other for other in await all_flows(world) if is_of_pair(other, flow.session, flow.server_name)]
        if not others or replaces:
            for other in others:
                await transaction.delete(TABLE, other.state)
            await transaction.put(TABLE, flow.state, flow_values(flow))
    except BaseException:
        await transaction.rollback()
        raise
    if others and not replaces:
        await transaction.rollback()
        return False
    await transaction.commit()
    return True


async def require_session(transaction: Transaction, session: str | None) -> None:
    """Hold the session's row until the flow is stored, as a foreign key does; raises SessionGoneError."""
    if session is not None and await transaction.get(sessions.TABLE, session, lock=True) is None:
        raise SessionGoneError(session)


def pair_key(session: str | None, server_name: str) -> str:
    """The lock of a (session, server)."""
    return f"{'session ' + session if session is not None else 'connectors'} | {server_name}"


def is_of_pair(flow: PendingFlow, session: str | None, server_name: str) -> bool:
    """Whether a flow is that of a (session, server)."""
    return flow.session == session and flow.server_name == server_name


async def all_flows(world: World) -> tuple[PendingFlow, ...]:
    """All stored flows, by state."""
    return tuple(flow_of(row.values) for row in await world.store.rows(TABLE))


async def find(world: World, state: str) -> PendingFlow | None:
    """The flow of a state, expired or not."""
    transaction = await world.store.begin()
    row = await transaction.get(TABLE, state)
    await transaction.rollback()
    return None if row is None else flow_of(row.values)


async def claim(world: World, state: str) -> PendingFlow | None:
    """Take a flow out of the table; None where it is not there, or where somebody was faster.

    Whoever has it is the only one who may post its code (flow-callback-single-use, authorize-state-single-use).
    """
    transaction = await world.store.begin()
    try:
        row = await transaction.get(TABLE, state, lock=True)
        if row is not None:
            await transaction.delete(TABLE, state)
    except BaseException:
        await transaction.rollback()
        raise
    if row is None:
        await transaction.rollback()
        return None
    await transaction.commit()
    return flow_of(row.values)


async def give_back(world: World, flow: PendingFlow) -> None:
    """Put a claimed flow back, so that a person may paste again. Not where its server was started anew meanwhile,
    nor where its session is gone, nor where it could not be stored today.
    """
    try:
        await put_only(world, flow, replaces=False)
    except (InvalidFlowError, SessionGoneError):
        return


async def sweep_expired_session_less(world: World) -> int:
    """Remove the flows that are expired and belong to no session; how many."""
    now = world.clock.now()
    swept = 0
    for flow in await all_flows(world):
        if is_sweepable(flow, now):
            swept += await claim(world, flow.state) is not None
    return swept


async def delete_of_pair(world: World, session: str | None, server_name: str, credential_key: str) -> int:
    """Remove the flow of a (session, server), whose server needs no consent any more; how many there were.

    Left open it would keep the session parked until it expires (resume-waits-for-open-flow). Under the lock of the
    credential, and only while that is good: once it is retired, a flow that is there is one that a person wants.
    """
    transaction = await world.store.begin()
    try:
        row = await table.read(transaction, credential_key, lock=True)
        needless = [flow for flow in await all_flows(world) if is_of_pair(flow, session, server_name)]
        if not authorized(row, world.clock.now()):
            needless = []
        for flow in needless:
            await transaction.delete(TABLE, flow.state)
    except BaseException:
        await transaction.rollback()
        raise
    if needless:
        await transaction.commit()
    else:
        await transaction.rollback()
    return len(needless)


async def delete_of_session(world: World, session: str) -> int:
    """Remove the flows of a session that is destroyed, whose row is gone already; how many.

    A flow that is being stored meanwhile holds the session's row, so it is here, or it is never stored.
    """
    return sum(
        [await claim(world, flow.state) is not None for flow in await all_flows(world) if flow.session == session]
    )
