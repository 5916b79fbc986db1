"""ConnectorStatusProbe: could a session attach a catalog server at this moment (seed 000, "Availability")?

Local inputs alone: how the required variables resolve, the stored credential row, and the entry's own declaration.
Nothing is contacted, started, refreshed or written (readiness-local-only, readiness-never-spawns-job).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from harness.reference.catalog.catalog import Catalog
from harness.reference.catalog.entry import Entry
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential, state_of
from harness.reference.oauth.capability import oauth_capable
from harness.reference.readiness.contained import contained
from harness.reference.readiness.states import AUTHORIZABLE, State, blocks, label
from harness.reference.secrets.blank import is_blank
from harness.reference.secrets.loader import Resolution
from harness.reference.secrets.placeholders import variables
from harness.reference.selection.zimmer import Instance, retarget

ResolutionLookup = Callable[[str], Resolution]
CredentialLookup = Callable[[str], StoredCredential | None]
"""The stored row under an exact credential key."""

NOT_AUTHORIZED = "OAuth authorization not completed"
NOT_RENEWABLE = "OAuth token expired and cannot be refreshed"


class VariableSource(NamedTuple):
    """A required variable and the badge of the provider that resolves it."""

    variable: str
    badge: str


@dataclass(frozen=True)
class Status:
    """The answer for one server. Names and badges only, never a value (readiness-no-secret-values).

    `missing_variables` is filled in missing_configuration alone, `unreachable_variables` in store_unavailable,
    `declared` in declared_unavailable, `error_message` (`<Class>: <text>`) in probe_failed.
    """

    name: str
    title: str
    state: State
    missing_variables: tuple[str, ...] = ()
    unreachable_variables: tuple[str, ...] = ()
    declared: str | None = None
    error_message: str | None = None
    sources: tuple[VariableSource, ...] = ()

    @property
    def label(self) -> str:
        """The badge text of the state."""
        return label(self.state)

    @property
    def available(self) -> bool:
        """Whether the server can be attached: every state but the four blocking ones."""
        return not blocks(self.state)

    @property
    def reason_plain(self) -> str | None:
        """Why it cannot be attached, compact; None where it can."""
        return reason(self, mark="")

    @property
    def reason_markdown(self) -> str | None:
        """The same with variable names in back-ticks."""
        return reason(self, mark="`")

    @property
    def authorizable(self) -> bool:
        """Whether an Authorize button can help."""
        return self.state in AUTHORIZABLE


def reason(status: Status, *, mark: str) -> str | None:
    """The compact reason of a blocking state, variable names between marks (readiness-reason-forms)."""
    if status.state is State.DECLARED_UNAVAILABLE:
        return status.declared
    if status.state is State.MISSING_CONFIGURATION:
        return ", ".join(f"{mark}{name}{mark}" for name in status.missing_variables) + " unresolved"
    return {State.NEEDS_AUTHORIZATION: NOT_AUTHORIZED, State.NEEDS_REAUTH: NOT_RENEWABLE}.get(status.state)


def judge_all(
    catalog: Catalog,
    resolution: ResolutionLookup,
    credential: CredentialLookup,
    instance: Instance | None = None,
) -> tuple[Status, ...]:
    """The statuses of all servers, in catalog order, each name resolved once for the whole list."""
    return judge_named(catalog, catalog.names, resolution, credential, instance)


def judge_named(
    catalog: Catalog,
    names: Iterable[str | None],
    resolution: ResolutionLookup,
    credential: CredentialLookup,
    instance: Instance | None = None,
) -> tuple[Status, ...]:
    """The statuses of the named servers alone, in the given order, each once; blank and unknown names are skipped."""
    once = resolved_once(resolution)
    known = dict.fromkeys(name for name in names if not is_blank(name))
    statuses = (judge(str(name), catalog.find(str(name)), once, credential, instance) for name in known)
    return tuple(status for status in statuses if status is not None)


def resolved_once(resolution: ResolutionLookup) -> ResolutionLookup:
    """A lookup that asks for each name once, so that a blip cannot judge two servers differently."""
    known: dict[str, Resolution] = {}

    def lookup(name: str) -> Resolution:
        if name not in known:
            known[name] = resolution(name)
        return known[name]

    return lookup


def judge(
    name: str,
    entry: Entry | None,
    resolution: ResolutionLookup,
    credential: CredentialLookup,
    instance: Instance | None = None,
) -> Status | None:
    """The status of one server; None for a name that is not in the catalog. No error leaves it.

    `instance` is the deployment, whose own servers are retargeted outside production; None judges the entry as written.
    """
    if entry is None:
        return None
    outcome = contained(lambda: assess(entry, resolution, credential, instance))
    return outcome.answer or Status(name, entry.title, State.PROBE_FAILED, error_message=outcome.error)


def assess(
    entry: Entry, resolution: ResolutionLookup, credential: CredentialLookup, instance: Instance | None
) -> Status:
    """Judge in the order of readiness-check-order: declaration, variables, credential. Raises what a lookup raises."""
    if entry.unavailable is not None:
        return Status(entry.name, entry.title, State.DECLARED_UNAVAILABLE, declared=entry.unavailable)
    answers = {name: resolution(name) for name in required_variables(entry, instance)}
    sources = tuple(VariableSource(name, answer.badge) for name, answer in answers.items())
    unreachable = tuple(name for name, answer in answers.items() if answer.state == "unreachable")
    absent = tuple(name for name, answer in answers.items() if answer.state == "absent")
    state = state_by_variables(absent, unreachable) or state_by_credential(entry, credential)
    return Status(
        entry.name,
        entry.title,
        state,
        missing_variables=absent if state is State.MISSING_CONFIGURATION else (),
        unreachable_variables=unreachable,
        sources=sources,
    )


def required_variables(entry: Entry, instance: Instance | None) -> tuple[str, ...]:
    """The names that must resolve: those of the entry as this deployment will write it.

    Outside production a server of Zimmer's own is retargeted first, which overwrites its key
    (secrets-retargeted-key-not-required).
    """
    written = entry.raw if instance is None else retarget(entry.name, entry.raw, instance)
    return variables(written).required


def state_by_variables(absent: tuple[str, ...], unreachable: tuple[str, ...]) -> State | None:
    """What the variables alone decide. An unreachable one wins: it is never told as unset."""
    if unreachable:
        return State.STORE_UNAVAILABLE
    return State.MISSING_CONFIGURATION if absent else None


def state_by_credential(entry: Entry, credential: CredentialLookup) -> State:
    """What is left once all variables resolve: the OAuth credential, or the static one, or none needed."""
    if oauth_capable(entry.raw):
        return oauth_state(stored_credential(entry, credential))
    return State.READY if variables(entry.raw).required else State.NO_CREDENTIAL_REQUIRED


def stored_credential(entry: Entry, credential: CredentialLookup) -> StoredCredential | None:
    """The row under the key of the entry as it stands now; a row under another key is not matched."""
    return credential(credential_key(entry.name, entry.credential_config()))


def oauth_state(row: StoredCredential | None) -> State:
    """The state of an OAuth-capable server by its stored row."""
    if row is None:
        return State.NEEDS_AUTHORIZATION
    state = state_of(row)
    if state.active:
        return State.READY
    return State.TOKEN_EXPIRED if state.can_refresh else State.NEEDS_REAUTH
