"""Two runs of the gate as events, built by hand: the shipped catalog when clean, and a pull request with everything."""

from __future__ import annotations

from harness.gate.events import Changed, Event, Finished, Found, Judged, Planned, Started
from harness.gate.model import (
    Allowance,
    Change,
    Edit,
    Finding,
    Judgement,
    Need,
    Outcome,
    Place,
    Severity,
    State,
)
from harness.gate.rule import Rule

RUNTIMES = ("claude@2.1.268", "codex@0.146.0", "pi@0.84.1+2.32.1")

ZIMMER_NAMES = ("zimmer", "zimmer-sessions", "zimmer-fleet", "zimmer-self-session", "zimmer-work", "zimmer-gate")
PLAIN_NAMES = ("context7", "linear", "remote-fs-screenshots", "image-diff", "svg-tracer")


def place(line: int, column: int = 3, *, file: str = "mcp.json", pointer: str = "", length: int = 10) -> Place:
    return Place(file, line, column, line, column + length, pointer)


def judgement(
    name: str,
    line: int = 1,
    *,
    needs: tuple[Need, ...] = (),
    roots: tuple[str, ...] = (),
    state: State = State.STARTS,
    states: dict[str, State] | None = None,
    runtimes: tuple[str, ...] = RUNTIMES,
    touched: bool = True,
    first_request: str = "yes",
) -> Judgement:
    outcomes = tuple(
        Outcome(
            runtime=runtime,
            state=(states or {}).get(runtime, state),
            first_request=first_request if state is State.STARTS else "never",
            tool_room=64 - len(f"mcp__{name}__"),
            credential_key=next((need.text for need in needs if need.kind == "consent"), None),
            written={"command": "npx", "args": ["-y", f"{name}@latest"]},
            detail="",
        )
        for runtime in runtimes
    )
    return Judgement(name, place(line, pointer=f"/{name}"), roots, needs, outcomes if touched else (), touched)


def finding(
    rule: str = "MH203",
    severity: Severity = Severity.ERROR,
    *,
    entry: str | None = "acme-search",
    where: Place | None = None,
    message: str = "the runtime refuses the entry.",
    fix: str = "",
    edits: tuple[Edit, ...] = (),
    runtimes: tuple[str, ...] = (),
    fingerprint: str = "3fad03f7abd02b9c",
    allowance: Allowance | None = None,
) -> Finding:
    where = where or place(48, 7, pointer=f"/{entry}")
    return Finding(rule, severity, where, entry, runtimes, message, fix, edits, fingerprint, allowance)


def started(*, entries: int = 16, base: str | None = None, runtimes: tuple[str, ...] = RUNTIMES) -> Started:
    return Started("mcp.json", entries, "roots.json", 1, runtimes, pinned=True, base=base)


def finished(
    *, errors: int = 0, warnings: int = 0, notes: int = 0, allowed: int = 0, judged: int = 16, entries: int = 16
) -> Finished:
    failed = errors > 0
    return Finished(
        verdict="FAIL" if failed else "PASS",
        errors=errors,
        warnings=warnings,
        notes=notes,
        allowed=allowed,
        judged=judged,
        entries=entries,
        seconds=1.94,
        seed=0,
        exit_code=int(failed),
    )


def stream(*findings: Finding, judgements: tuple[Judgement, ...] = ()) -> list[Event]:
    """A run that found these findings, with counts that agree."""
    counted = [f.severity for f in findings if f.allowance is None]
    return [
        started(entries=len(judgements)),
        *map(Judged, judgements),
        *map(Found, findings),
        finished(
            errors=counted.count(Severity.ERROR),
            warnings=counted.count(Severity.WARNING),
            notes=counted.count(Severity.NOTE),
            allowed=len(findings) - len(counted),
            judged=len(judgements),
            entries=len(judgements),
        ),
    ]


def clean_run() -> list[Event]:
    judgements = [
        judgement("playwright-custom", 3, roots=("zimmer",)),
        *(judgement(name, 11 + 7 * number) for number, name in enumerate(PLAIN_NAMES)),
        *(judgement(name, 60, needs=(Need("secret", "ZIMMER_PROD_API_KEY"),)) for name in ZIMMER_NAMES),
        judgement("slack-workspace", 104, needs=(Need("secret", "SLACK_BOT_TOKEN"),)),
        judgement("secrets-service-account", 111, needs=(Need("secret", "STRAD_API_KEY"),)),
        judgement("figma", 118, state=State.AUTHORIZE, needs=(Need("consent", "figma|d39d3b6252bc1ac5"),)),
        judgement("notion", 124, state=State.AUTHORIZE, needs=(Need("consent", "notion|eac663db915250e7"),)),
    ]
    note = finding(
        "MH431",
        Severity.NOTE,
        entry=None,
        where=place(12, 5),
        message="7 npx entries float on @latest: two spawns may run different code.",
        fix="pin a version.",
    )
    return [started(), *map(Judged, judgements), Found(note), finished(notes=1)]


def _pull_request_findings() -> tuple[Finding, ...]:
    allowed = Allowance("mcp-harness.toml:4:1", "acme-legacy", "2027-01-31")
    return (
        finding(
            message='"type": "http" fails `air validate` (prepare would let it through, unchecked).',
            fix='"type": "streamable-http"',
            edits=(Edit(1204, 1210, '"streamable-http"'),),
            where=place(48, 7, pointer="/acme-search/type"),
            fingerprint="a1b2c3d4e5f60718",
        ),
        finding(
            "MH310",
            message="${ACME_TOKEN_} is new and no known secret; one missing variable stops the WHOLE session, "
            "on 3 of 3 runtimes. Did you mean ACME_TOKEN (used by acme-docs)?",
            where=place(51, 20, pointer="/acme-search/headers/Authorization"),
            fingerprint="b1b2c3d4e5f60718",
        ),
        finding(
            "MH601",
            entry=None,
            message="the root docs names svg-tracer, which is no entry any more.",
            fix="remove it from the list.",
            where=place(9, 34, file="roots.json", pointer="/docs/default_mcp_servers/0"),
            fingerprint="c1b2c3d4e5f60718",
        ),
        finding(
            "MH512",
            Severity.WARNING,
            entry="acme-fast",
            message="startup_timeout_sec 20 is honoured by codex only; claude keeps 180 s, pi keeps 180 s.",
            where=place(77, 3, pointer="/acme-fast/startup_timeout_sec"),
            runtimes=("claude@2.1.268", "pi@0.84.1+2.32.1"),
            fingerprint="d1b2c3d4e5f60718",
        ),
        finding(
            "MH431",
            Severity.NOTE,
            entry="acme-fast",
            message="the npx package floats on @latest.",
            fix="pin a version.",
            where=place(79, 5, pointer="/acme-fast/args/1"),
            runtimes=("codex@0.146.0",),
            fingerprint="e1b2c3d4e5f60718",
        ),
        finding(
            "MH120",
            entry="acme-legacy",
            message="type sse is deprecated.",
            where=place(90, 5, pointer="/acme-legacy/type"),
            fingerprint="f1b2c3d4e5f60718",
            allowance=allowed,
        ),
    )


_AGAIN = (
    "stored key notion|eac663db915250e7 -> notion|3fad03f7abd02b9c: everyone must AUTHORIZE AGAIN "
    "(claude, codex; pi: same account, but its token is bound to the old URL, so again there too)"
)


def _pull_request_changes() -> tuple[Change, ...]:
    token_lines = '+  "headers": {\n+    "Authorization": "Bearer ${ACME_TOKEN_}"\n+  }'
    return (
        Change(
            "added",
            "acme-search",
            ("root zimmer gets it by default: those sessions can now reach https://search.acme.test",),
            {RUNTIMES[0]: f'--- before\n+++ after\n@@ -0,0 +1,6 @@\n+{{\n+  "type": "http",\n{token_lines}\n+}}'},
        ),
        Change(
            "changed",
            "notion",
            (
                "url https://mcp.notion.com/mcp -> https://mcp.notion.com/v1/mcp",
                _AGAIN,
            ),
            {},
        ),
        Change(
            "changed",
            "acme-fast",
            ("startup_timeout_sec 180 -> 20", "claude, pi: no byte changes"),
            {
                RUNTIMES[1]: "--- before\n+++ after\n@@ -4 +4 @@\n"
                '-  "startup_timeout_sec": 180\n+  "startup_timeout_sec": 20'
            },
        ),
        Change("removed", "svg-tracer", ("still named in roots.json:9 -> error MH601 there",), {}),
    )


def pull_request_run() -> list[Event]:
    judgements = [
        judgement("context7", 3, touched=False),
        judgement(
            "acme-search",
            44,
            roots=("zimmer",),
            state=State.NOT_WRITTEN,
            needs=(Need("secret", "ACME_TOKEN_"),),
        ),
        judgement("notion", 60, state=State.AUTHORIZE, needs=(Need("consent", "notion|3fad03f7abd02b9c"),)),
        judgement("acme-fast", 70, first_request="late"),
    ]
    return [
        started(base="origin/main@4f1c2e9"),
        *map(Judged, judgements),
        *map(Found, _pull_request_findings()),
        *map(Changed, _pull_request_changes()),
        Planned("before", "seed ACME_TOKEN_ (or fix its name)"),
        Planned("before", "tell users of notion to authorize at /connectors"),
        Planned("after", "existing clones keep their budget for acme-fast until their config is regenerated"),
        finished(errors=3, warnings=1, notes=1, allowed=1, judged=3),
    ]


_RULES = {
    "MH203": Rule(
        "MH203",
        Severity.ERROR,
        "a type that the schema does not know",
        why="The schema check refuses it, but prepare lets it through.",
        fix='Write "streamable-http".',
        requirements=(),
        incidents=("#412",),
    )
}


def rules(identifier: str) -> Rule | None:
    """A lookup that knows one rule."""
    return _RULES.get(identifier)
