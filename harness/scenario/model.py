"""A scenario as frozen values: who is there, what is done, what may go wrong, what must be seen.

Names of sessions, servers and steps are the file's. Times are seconds of virtual time; those of an expectation
count from the start of the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from fake_runtimes.plan import Turn
from fake_servers.mcp.behaviour import Behaviour
from harness.world.model import Fault

FORMAT = 1
TIME_SCALE = 10.0
"""Seconds of a scenario in a real one where real processes play it, unless it says otherwise."""
HOME = "/home/agent"
CLONES = f"{HOME}/.zimmer/clones"
CODEX_HOME = f"{HOME}/.codex"
"""There before anybody acts, as the orchestrator names it to Codex, which then makes none."""


ORCHESTRATOR, RUNTIME = "orchestrator", "runtime"
HOLDERS = (ORCHESTRATOR, RUNTIME)


class Credential(NamedTuple):
    """A credential that is there before the run begins. `held_by` says in whose store: a row, the runtime's own.

    With `issued_by` (an authorization server) the tokens are that server's, and the texts here are empty.
    """

    server: str
    access_token: str = ""
    expires_in_seconds: float | None = None
    refresh_token: str | None = None
    issued_by: str | None = None
    held_by: tuple[str, ...] = HOLDERS


class AuthorizationFacts(NamedTuple):
    """An authorization server: its URL, which provider it behaves like, and in what it differs from that.

    `answers` are what the first requests to an endpoint get, `always` what all later ones do. Each has to come into
    play, unless they are `drawn`. `clients` are registered there already.
    """

    name: str
    issuer: str
    provider: str
    set: Mapping[str, Any] = {}
    answers: Mapping[str, tuple[Any, ...]] = {}
    always: Mapping[str, Any] = {}
    clients: tuple[Mapping[str, Any], ...] = ()
    drawn: bool = False


class Protection(NamedTuple):
    """Which authorization server lets callers into a server, and what the server says of itself (RFC 9728)."""

    authorization: str
    resource: Mapping[str, Any] = {}


class PackageFacts(NamedTuple):
    """An npm package: how long and in how many steps it installs, and what it leaves.

    `version` None is the one that an entry asks for. `server` names whose behaviour it has.
    """

    name: str
    version: str | None = None
    bin_name: str = ""
    bin_mode: int = 0o755
    install_seconds: float = 1.0
    steps: int = 4
    broken: bool = False
    server: str | None = None


class Match(NamedTuple):
    """Which events are meant: globs on the event's name, on who it happened to, and on its details."""

    event: str
    who: str = "*"
    where: Mapping[str, Any] = {}


class HoldFacts(NamedTuple):
    """Keeps `actor` at a switch point until an event has happened."""

    actor: str
    at: str
    until: Match
    limit_seconds: float = 300.0
    times: int = 1


# --- steps


class Start(NamedTuple):
    """Start a run of a session: prepare its clone, launch the runtime. `again` runs a session a further time.

    `servers` None means the whole catalog, or the defaults of `root`. `wait` False goes on at once.
    """

    session: str
    again: bool = False
    servers: tuple[str, ...] | None = None
    root: str | None = None
    clone: str = ""
    runtime: str | None = None
    turns: tuple[Turn, ...] = (Turn(),)
    environment: Mapping[str, str] = {}
    wait: bool = True
    after_seconds: tuple[float, ...] = (0.0,)


class Advance(NamedTuple):
    """Let time pass."""

    seconds: float


class Kill(NamedTuple):
    """Send a signal to all living actors of that name."""

    actor: str
    signal: str = "SIGKILL"


class Edit(NamedTuple):
    """Change the catalog: keys are set on the entry (None: taken away), or the entry is removed whole."""

    entry: str
    set: Mapping[str, Any] = {}
    unset: tuple[str, ...] = ()
    delete: bool = False


class Select(NamedTuple):
    """Give a session another list of servers."""

    session: str
    servers: tuple[str, ...]


class Write(NamedTuple):
    """Write a file, in a session's clone unless the path is absolute."""

    path: str
    text: str
    session: str | None = None
    mode: int = 0o644


class Remove(NamedTuple):
    """Remove a file or a tree."""

    path: str
    session: str | None = None


class Await(NamedTuple):
    """Go on when something has happened: an event, or the end of a session's run."""

    until: Match | None = None
    session: str | None = None
    limit_seconds: float | None = None


class Authorize(NamedTuple):
    """A person authorizes a server: in a browser that starts the flow, consents and comes back (or walks away).

    `session` is the one whose page it was started from. `pastes` is what is pasted where the flow ends so: the whole
    address ("url"), the bare "code", or a text. `repeats`: the browser sends the last request twice. `url` is the
    address that the form names, as anybody's form may. The person looks at the consent screen for `takes_seconds`.
    """

    server: str
    session: str | None = None
    user: str = "consents"
    pastes: str = "url"
    repeats: bool = False
    wait: bool = True
    url: str | None = None
    takes_seconds: float = 0.0


class RunJob(NamedTuple):
    """The orchestrator's scheduler runs a job once; or it works for so many `seconds` by its clock and its queue."""

    job: str
    seconds: float = 0.0
    wait: bool = True


class Provide(NamedTuple):
    """An authorization server is another one from now on: facts of its provider, its answers, what it revokes.

    What is scripted here has to come into play, unless it is `drawn`.
    """

    authorization: str
    set: Mapping[str, Any] = {}
    answers: Mapping[str, tuple[Any, ...]] = {}
    always: Mapping[str, Any] = {}
    revokes: str = ""
    drawn: bool = False


Action = Start | Advance | Kill | Edit | Select | Write | Remove | Await | Authorize | RunJob | Provide


class Step(NamedTuple):
    """One step of the operator. `only_on` names the runtimes for which it is done; empty means all."""

    action: Action
    name: str = ""
    only_on: tuple[str, ...] = ()
    line: int = 0


# --- expectations


class Often(NamedTuple):
    """How often: `at_least` and, unless None, `at_most`."""

    at_least: int = 1
    at_most: int | None = None

    def holds(self, number: int) -> bool:
        """Whether that many is right."""
        return self.at_least <= number and (self.at_most is None or number <= self.at_most)

    def __str__(self) -> str:
        if self.at_most == self.at_least:
            return "never" if self.at_most == 0 else f"{self.at_least}x"
        return f"at least {self.at_least}x" if self.at_most is None else f"{self.at_least} to {self.at_most}x"


class ExitIs(NamedTuple):
    """The exit code of the session's last run, or of the `run`-th: its runtime's; its own where that never started."""

    exit: int
    session: str | None = None
    run: int | None = None


class EventHappens(NamedTuple):
    """How often an event happened; all of its times lie in `between`; the first comes before another's first."""

    match: Match
    often: Often = Often()
    between: tuple[float, float] | None = None
    before: Match | None = None


class RequestOffers(NamedTuple):
    """What the `number`-th model request of the session's last run carries: servers or `server/tool`."""

    number: int
    offers: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    between: tuple[float, float] | None = None
    session: str | None = None
    run: int | None = None


class ServerIs(NamedTuple):
    """How a server stands at that moment, by the account of the runtime of the session's last run, or of the `run`-th.

    `text` is a glob on its words.
    """

    server: str
    state: str
    text: str = "*"
    session: str | None = None
    run: int | None = None


class FileIs(NamedTuple):
    """A file's content or absence; a path that is not absolute lies in the session's clone."""

    path: str
    contains: str | None = None
    lacks: str | None = None
    matches: str | None = None
    absent: bool = False
    mode: int | None = None
    session: str | None = None


class RowIs(NamedTuple):
    """A stored row's values as compact JSON, or its absence."""

    table: str
    key: str
    contains: str | None = None
    lacks: str | None = None
    absent: bool = False


class Received(NamedTuple):
    """How many requests a remote or an authorization server got.

    `method` is an HTTP or a JSON-RPC method; of an authorization server also an endpoint or a grant type.
    """

    server: str
    method: str = "*"
    often: Often = Often()


class CredentialIs(NamedTuple):
    """How the orchestrator's stored credential of a server stands: a state, and whose tokens it holds.

    `generation` is the number of the tokens in their chain, from 1; `newest`: nothing newer was given out. `one_shot`:
    it is noted that a person has to authorize again each time.
    """

    server: str
    state: str | None = None
    generation: int | None = None
    newest: bool | None = None
    one_shot: bool | None = None


class OutputHas(NamedTuple):
    """What the runtime of the session's last run printed, or that of the `run`-th."""

    stream: str
    contains: str | None = None
    lacks: str | None = None
    session: str | None = None
    run: int | None = None


class InvariantHolds(NamedTuple):
    """A built-in invariant could be judged and holds."""

    name: str


Check = (
    ExitIs
    | EventHappens
    | RequestOffers
    | ServerIs
    | FileIs
    | RowIs
    | Received
    | CredentialIs
    | OutputHas
    | InvariantHolds
)


class Expectation(NamedTuple):
    """What must be seen after a step (its number from 1), or at the end.

    `says` is its sentence in the report; `warns` makes it a warning; `only_on` as for steps.
    """

    check: Check
    says: str
    after: int | None = None
    warns: bool = False
    only_on: tuple[str, ...] = ()
    line: int = 0


class OldBug(NamedTuple):
    """A known-bad variant under which this scenario must fail, and what is then seen; on `runtimes` (empty: all)."""

    name: str
    shows: str
    runtimes: tuple[str, ...] = ()


class Scenario(NamedTuple):
    """A whole file. `file` is shown as the user named it; `text` is what it held.

    `runtimes` are spelled as in the file. `not_at` gives for each tier that is not claimed the reason. `struck`
    names servers that may fail besides those that the file itself makes misbehave. `registered` are clients that were
    registered by hand (`mcp_oauth_clients`), `app_host` is where browsers reach the orchestrator.
    `watched`: the orchestrator looks after its sessions. `codex_bugs` are those that the fake Codex has besides what
    its profile says. `time_scale` counts at the tier process alone. `warnings` are lines about tables that change
    nothing.
    """

    id: str
    title: str
    runtimes: tuple[str, ...]
    steps: tuple[Step, ...]
    expectations: tuple[Expectation, ...] = ()
    incidents: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ("model",)
    not_at: Mapping[str, str] = {}
    catalog: Mapping[str, Any] = {}
    roots: Mapping[str, Any] = {}
    secrets: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    credentials: tuple[Credential, ...] = ()
    servers: Mapping[str, Behaviour] = {}
    authorizations: Mapping[str, AuthorizationFacts] = {}
    protections: Mapping[str, Protection] = {}
    registered: Mapping[str, Any] = {}
    app_host: str | None = None
    packages: Mapping[str, PackageFacts] = {}
    files: Mapping[str, str] = {}
    faults: tuple[Fault, ...] = ()
    holds: tuple[HoldFacts, ...] = ()
    watched: bool = True
    codex_bugs: tuple[str, ...] = ()
    time_scale: float = TIME_SCALE
    struck: tuple[str, ...] = ()
    old_bugs: tuple[OldBug, ...] = ()
    warnings: tuple[str, ...] = ()
    file: str = ""
    text: str = ""

    @property
    def sessions(self) -> tuple[str, ...]:
        """The names of its sessions, in the order of their first start."""
        starts = (step.action for step in self.steps if isinstance(step.action, Start))
        return tuple(dict.fromkeys(start.session for start in starts))
