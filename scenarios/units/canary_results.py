"""A run of the canary with something of everything, and a clean one."""

from __future__ import annotations

from fake_runtimes.codex.bugs import LOGIN_IS_LOST, REFRESH_IS_UNUSED
from harness.canary.claims import Claim
from harness.canary.effects import Fallen, Played
from harness.canary.judging import judge
from harness.canary.profile_writing import Written
from harness.canary.result import Canary, Checked, Missing
from harness.canary.running import NOT_MEASURABLE, TIMED_OUT, Measured, Problem
from harness.canary.subject import FAKE, REAL, Subject
from scenarios.units.canary_toys import PROFILE

CLAIMS = (
    Claim(
        "claude.log.closed",
        "a closed connection is logged as a failure of the transport",
        assumes={"line": "Connection failed (-32000): MCP error -32000: Connection closed", "twice": False},
        relied_on=("failure-stderr-rejection", "status-claude-log-wording"),
        affects="how a stdio server that dies is told from one whose credential is refused",
    ),
    Claim("claude.key.plain", "the credential key is made of type and url", "seed 002", assumes=True),
    Claim("claude.key.slash", "a trailing slash counts", "seed 002", assumes=True),
    Claim("claude.protocol.probe", "what is sent before initialize"),
    Claim("claude.protocol.order", "the order of the first requests"),
    Claim("claude.seed.munged", "values are munged", "seed 002", assumes=True, relied_on=("credential-key-preimage",)),
    Claim("claude.new.field", "nobody asked this before"),
    Claim("claude.keychain.macos", "the keychain of macOS is asked", not_modelled="there is no keychain here"),
    Claim("claude.keychain.linux", "the keyring of Linux is asked"),
    Claim("claude.refresh.dropped", "a dropped connection is no refusal", assumes=True),
    Claim("claude.budget.silent", "how long a silent server is waited for", relied_on=("startup-timeout-default",)),
    Claim("claude.log.started", "what is logged of a start", reads=("log_wording",)),
    Claim("claude.retry.often", "it tries again", assumes=lambda seen: seen > 1, relied_on=("failure-ladder",)),
    Claim("codex.login.kept", "a sign-in is kept", shows={LOGIN_IS_LOST: lambda seen: seen != "kept"}),
    Claim("codex.refresh.expired", "a token is renewed", shows={REFRESH_IS_UNUSED: lambda seen: seen == 0}),
    Claim("codex.refresh.later", "and later too", shows={REFRESH_IS_UNUSED: lambda seen: seen == 0}),
)
SECRET = "Abc123xYz" * 4
LOGGED = "Connection failed (-32000): MCP error -32000: Connection closed"
BEFORE = {
    "claude.log.closed": {"line": LOGGED, "twice": False},
    "claude.key.plain": True,
    "claude.protocol.probe": [],
    "claude.protocol.order": ["initialize", "tools/list"],
    "claude.seed.munged": False,
    "claude.budget.silent": {"seconds": 30},
    "claude.log.started": "Starting connection with timeout of 30000ms",
    "claude.retry.often": 3,
    "codex.login.kept": "kept",
    "codex.refresh.expired": 1,
    "codex.refresh.later": 1,
}
NOW = {
    "claude.log.closed": {"line": "CONNECTION_CLOSED after 5 of it awake", "twice": True},
    "claude.key.plain": True,
    "claude.key.slash": True,
    "claude.protocol.probe": ["server/discover"],
    "claude.protocol.order": ["initialize", "tools/list"],
    "claude.seed.munged": False,
    "claude.new.field": {"Authorization": f"Bearer {SECRET}"},
    "claude.budget.silent": {"seconds": 60},
    "claude.log.started": "Starting",
    "claude.retry.often": 5,
    "codex.login.kept": "kept",
    "codex.refresh.expired": 0,
    "codex.refresh.later": 1,
}
PROBLEMS = {
    "claude.keychain.macos": Problem(NOT_MEASURABLE, "no macOS here"),
    "claude.keychain.linux": Problem(NOT_MEASURABLE, "no macOS here"),
    "claude.refresh.dropped": Problem(TIMED_OUT, "no answer in 20 s, tried again alone"),
}
NEW = "2.1.328"
WRITTEN = Written("claude-2.1.328", "", ("log_wording",), ("log_wording",), ("wait_tool",), ("x: not given",))


def measured(kind, observations, problems, seconds=83.25, left=()):
    """What a subject of the new version did."""
    subject = Subject(kind, "claude", NEW, ("claude",), PROFILE)
    took = {"keys": 1.5, "logs": 40.0}
    return Measured(subject, observations, problems, took, seconds, ("logs",), left)


def checked(real, fake=None, before=BEFORE, **more):
    """The new version against the pinned one."""
    rows = judge(CLAIMS, before=before, real=real, fake=fake)
    return Checked(
        "claude", NEW, "claude@2.1.268", pinned=True, recorded=bool(before), rows=rows, real=real, fake=fake, **more
    )


def upgrade():
    """Everything that can be said of an upgrade."""
    fake = {**NOW, "claude.log.closed": {"line": LOGGED, "twice": True}, "claude.refresh.dropped": True}
    fallen = Fallen("498", "a server that dies <early>", "fail", "server a: connected | not failed")
    one = checked(
        measured(REAL, NOW, PROBLEMS),
        measured(FAKE, fake, {"claude.keychain.linux": Problem(NOT_MEASURABLE, "KeyError: 'x'")}, 3.0),
        digest="0123456789abcdef" * 4,
        played=Played(6, (fallen,)),
        written=WRITTEN,
        place="fake_runtimes/profiles/claude-2.1.328.toml",
    )
    return Canary(
        (one,), (Missing("codex@9.9.9", "@openai/codex@9.9.9 was not installed: No matching version"),), 97.04, 2
    )


def clean():
    """A version that is as the pinned one."""
    observations = {**BEFORE, "claude.key.slash": True}
    observations = {claim: value for claim, value in observations.items() if claim != "claude.seed.munged"}
    real = measured(REAL, observations, {}, 4.5)
    fake = measured(FAKE, observations, {}, 0.5)
    one = checked(real, fake)
    kept = tuple(row for row in one.rows if row.claim.id in observations and not row.claim.not_modelled)
    return Canary((one._replace(rows=kept),), (), 5.0, 2)
