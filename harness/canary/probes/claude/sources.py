"""Where servers are found, which of equal names counts, and which need somebody's approval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from harness.canary.claims import Claim, probe
from harness.canary.probes.claude.ground import APPROVED, SETTINGS, SETTLED, USER, init, listing, session, statuses
from harness.canary.probes.doors import Doors
from harness.canary.trial import Trial

PENDING = "⏸ Pending approval (run `claude` to approve)"
CONNECTED = "✔ Connected"


@probe(
    Claim(
        "claude.source.precedence",
        "of equal names a server of the local scope counts before the project's, and that before the user's",
        assumes={"all": "local", "two": "project", "one": "user", "given": "given"},
        relied_on=("prepare-local-values-merge",),
        affects="servers that a user has configured besides",
    ),
    Claim(
        "claude.source.parents",
        "a .mcp.json in a directory above is read as well, and the nearer one counts",
        assumes={"above": "above", "both": "project"},
        relied_on=("prepare-file-per-runtime",),
        affects="clones below a directory that holds a .mcp.json",
    ),
    Claim(
        "claude.source.settings-file",
        "mcpServers in a settings.json registers nothing, be it the user's or the project's",
        "seed 000",
        assumes={"user-settings": None, "project-settings": None},
        relied_on=("prepare-claude-never-settings-json", "translate-footgun-claude-fake-ignores"),
        affects="servers that were written into the wrong file",
    ),
    Claim(
        "claude.source.denied",
        "a server that the user's settings deny is not there",
        assumes=None,
        affects="servers that a user has denied",
    ),
    Claim(
        "claude.source.init-source",
        "the first line of a session tells where a server is from",
        affects="whoever reads the first line",
        reads=("init_names_source",),
        derive={"init_names_source": lambda observed: any(observed.values())},
    ),
    seconds=2.0,
)
def precedence(trial: Trial) -> Mapping[str, Any]:
    """One name in several places, each with a door of its own."""
    doors = Doors()
    above = trial.project
    trial.project = above / "inner"
    trial.project.mkdir()
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")

        def at(place: str, *names: str) -> dict[str, Any]:
            return {name: {"type": "http", "url": f"{base}/{place}/{name}"} for name in names}

        local = {"mcpServers": at("local", "all")}
        trial.write_json(USER, {"mcpServers": at("user", "all", "two", "one"), "projects": {str(trial.project): local}})
        trial.write_json(".mcp.json", {"mcpServers": at("project", "all", "two", "both", "denied", "given")})
        trial.write_json("../.mcp.json", {"mcpServers": at("above", "above", "both")})
        trial.write_json(".claude/settings.json", {"mcpServers": at("settings", "project-settings")})
        denied = {"deniedMcpServers": [{"serverName": "denied"}]}
        trial.write_json(SETTINGS, {**APPROVED, **denied, "mcpServers": at("settings", "user-settings")})
        given = trial.write_json("given.json", {"mcpServers": at("given", "given")})
        run = session(trial, "--mcp-config", str(given), env=SETTLED)
    where = {
        visit.path.partition("/")[2]: visit.path.partition("/")[0]
        for visits in doors.visits.values()
        for visit in visits
    }
    shown = init(run).get("mcp_servers", [])
    return {
        "claude.source.precedence": {name: where.get(name) for name in ("all", "two", "one", "given")},
        "claude.source.parents": {name: where.get(name) for name in ("above", "both")},
        "claude.source.settings-file": {name: where.get(name) for name in ("user-settings", "project-settings")},
        "claude.source.denied": statuses(run).get("denied"),
        "claude.source.init-source": {server["name"]: server.get("source") for server in shown},
    }


@probe(
    Claim(
        "claude.source.given-entry-fault",
        "a bad entry of --mcp-config is skipped, the good ones are there",
        assumes={"exit": 0, "good": "connected"},
        affects="servers given on the command line",
    ),
    Claim(
        "claude.source.given-file-fault",
        "a file of --mcp-config that cannot be read ends the program with 1",
        assumes=lambda observed: observed["exit"] == 1,
        affects="servers given on the command line",
    ),
    Claim(
        "claude.source.strict",
        "--strict-mcp-config leaves the servers of --mcp-config alone",
        assumes={"good": "connected"},
        affects="servers given on the command line",
    ),
    seconds=3.0,
)
def given_servers(trial: Trial) -> Mapping[str, Any]:
    """Three sessions."""
    doors = Doors()
    with trial.serving(doors=doors) as urls, trial.modelled():
        good = {"type": "http", "url": urls["doors"].replace("/mcp", "/good")}
        trial.write_json(".mcp.json", {"mcpServers": {"other": good}})
        mixed = trial.write_json("mixed.json", {"mcpServers": {"good": good, "bad": {"type": "bogus"}}})
        broken = trial.write("broken.json", '{"mcpServers": {')
        first = session(trial, "--mcp-config", str(mixed), env=SETTLED)
        strict = session(trial, "--strict-mcp-config", "--mcp-config", str(mixed), env=SETTLED)
        second = session(trial, "--mcp-config", str(broken), env=SETTLED)
    return {
        "claude.source.given-entry-fault": {"exit": first.exit_code, "good": statuses(first).get("good")},
        "claude.source.given-file-fault": {"exit": second.exit_code, "said": trial.normal(second.stderr).strip()},
        "claude.source.strict": statuses(strict),
    }


# --- approval


class Approval(NamedTuple):
    """What says that servers are approved, and how a list and a session then show `a` and `b`."""

    says: str
    assumes: Mapping[str, str | None]
    settings: Mapping[str, Any] = {}
    project: Mapping[str, Any] | None = None
    here: Mapping[str, Any] | None = None


BOTH, NEITHER = {"a": CONNECTED, "b": CONNECTED}, {"a": PENDING, "b": PENDING}
APPROVALS: Mapping[str, Approval] = {
    "nothing": Approval("without any word a list contacts nobody", NEITHER),
    "user-all": Approval("the user's enableAllProjectMcpServers approves all", BOTH, APPROVED),
    "user-one": Approval(
        "the user's enabledMcpjsonServers approves one",
        {"a": CONNECTED, "b": PENDING},
        {"enabledMcpjsonServers": ["a"]},
    ),
    "user-disabled": Approval(
        "the user's disabledMcpjsonServers takes one away",
        {"a": None, "b": CONNECTED},
        {**APPROVED, "disabledMcpjsonServers": ["a"]},
    ),
    "project-untrusted": Approval(
        "the project's own settings approve nothing without trust", NEITHER, project=APPROVED
    ),
    "project-trusted": Approval("with trust they do", BOTH, project=APPROVED, here={"hasTrustDialogAccepted": True}),
    "trust": Approval("trust alone approves nothing", NEITHER, here={"hasTrustDialogAccepted": True}),
    "here-untrusted": Approval(
        "what .claude.json holds of the project approves nothing without trust",
        NEITHER,
        here={"enabledMcpjsonServers": ["a"]},
    ),
    "here-trusted": Approval(
        "with trust it does",
        {"a": CONNECTED, "b": PENDING},
        here={"enabledMcpjsonServers": ["a"], "hasTrustDialogAccepted": True},
    ),
    "here-disabled": Approval(
        "disabledMcpServers there switches one off",
        {"a": "⊘ Disabled for this project (re-enable via /mcp)", "b": CONNECTED},
        APPROVED,
        here={"disabledMcpServers": ["a"]},
    ),
}


@probe(
    *(
        Claim(f"claude.approval.{name}", case.says, assumes=case.assumes, affects="whoever looks at `claude mcp list`")
        for name, case in APPROVALS.items()
    ),
    Claim(
        "claude.approval.session",
        "a headless session connects to a project's servers that nobody has approved",
        assumes={"a": "connected", "b": "connected"},
        relied_on=("prepare-file-per-runtime",),
        affects="every server of a .mcp.json",
    ),
    seconds=7.0,
)
def approvals(trial: Trial) -> Mapping[str, Any]:
    """A list for each way to approve, and a session without any."""
    doors = Doors()
    found: dict[str, Any] = {}
    with trial.serving(doors=doors) as urls, trial.modelled():
        base = urls["doors"].removesuffix("/mcp")
        trial.write_json(
            ".mcp.json", {"mcpServers": {name: {"type": "http", "url": f"{base}/{name}"} for name in "ab"}}
        )
        for name, case in APPROVALS.items():
            trial.write_json(SETTINGS, case.settings)
            trial.write_json(".claude/settings.json", case.project or {})
            trial.write_json(USER, {"projects": {str(trial.project): case.here}} if case.here else {})
            shown = listing(trial.run("mcp", "list"))
            found[f"claude.approval.{name}"] = {server: shown.get(server) for server in "ab"}
        trial.write_json(SETTINGS, {})
        trial.write_json(USER, {})
        found["claude.approval.session"] = statuses(session(trial, env=SETTLED))
    return found
