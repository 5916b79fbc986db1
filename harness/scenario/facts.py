"""What a scenario's catalog, steps and tables say of its servers, gathered for the reading of the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fake_servers.mcp.behaviour import Behaviour
from fake_servers.npm.registry import split_spec
from harness.reference.npx.specs import package_specs
from harness.scenario import model
from harness.scenario.desk import CRON, WEB
from harness.scenario.model import Action, Step
from harness.world.model.faults import Fault
from harness.world.sites import FILE_ACTIONS, HTTP_ACTIONS, PROCESS_ACTIONS

STDIO, REMOTE = "stdio", "remote"
OF_HTTP = (
    "status", "challenge", "body", "content_type", "requires_bearer", "drops", "answers_as", "supports_get"
)  # fmt: skip
OF_A_PROCESS = (
    "starts_after_seconds", "stderr", "stdout_noise", "exits", "exit_code", "ignores_signals", "ignores_stdin_end"
)  # fmt: skip
WRONG_FIELDS: Mapping[str, tuple[str, ...]] = {STDIO: OF_HTTP, REMOTE: OF_A_PROCESS}
STRIKES: Mapping[str, Collection[str]] = {STDIO: FILE_ACTIONS | PROCESS_ACTIONS, REMOTE: HTTP_ACTIONS}
"""Which faults can strike a server of that kind."""
NPX = "npx"

Entry = Mapping[str, Any]


def entries(catalog: Mapping[str, Any], steps: Sequence[Step]) -> Iterator[tuple[str, Entry]]:
    """Every entry as the catalog has it, and as each edit leaves it."""
    yield from ((name, entry) for name, entry in catalog.items() if isinstance(entry, Mapping))
    for step in steps:
        if isinstance(step.action, model.Edit):
            yield step.action.entry, {**catalog.get(step.action.entry, {}), **step.action.set}


def transports(found: Sequence[tuple[str, Entry]]) -> dict[str, str]:
    """Which servers are processes and which remote, where all that is said of them agrees."""
    kinds: dict[str, set[str]] = {}
    for name, entry in found:
        kinds.setdefault(name, set()).update(
            kind for kind, key in ((STDIO, "command"), (REMOTE, "url")) if entry.get(key)
        )
    return {name: next(iter(of)) for name, of in kinds.items() if len(of) == 1}


def specs(entry: Entry) -> tuple[str, ...]:
    """The npm packages that an entry starts."""
    args = entry.get("args", ())
    if entry.get("command") != NPX or not isinstance(args, list | tuple):
        return ()
    return tuple(split_spec(spec)[0] for spec in package_specs(tuple(map(str, args))))


def tools(
    found: Sequence[tuple[str, Entry]], servers: Mapping[str, Behaviour], packages: Mapping[str, Any]
) -> dict[str, set[str]]:
    """The tools of each server; one that is started from a package may have those of any."""
    default = Behaviour()
    own = {name: {tool.name for tool in servers.get(name, default).tools} for name, _ in found}
    everything = set().union(*own.values())
    shared = {name for name, entry in found if any(packages.get(each, {}).get("server") for each in specs(entry))}
    return {name: everything if name in shared else there for name, there in own.items()}


def used(steps: Sequence[Step]) -> set[str] | None:
    """The servers that some session is given, or somebody authorizes; None where that is not said by name."""
    named: set[str] = set()
    for step in steps:
        action = step.action
        if isinstance(action, model.Start):
            if action.root is not None or (action.servers is None and not action.again):
                return None
            named |= {*(action.servers or ())}
        elif isinstance(action, model.Select):
            named |= {*action.servers}
        elif isinstance(action, model.Authorize):
            named.add(action.server)
    return named


def runs(actor: str, actions: Sequence[Action]) -> int:
    """How often an actor of the orchestrator may run: what is authorized for a session may let it go on once more."""
    if actor == WEB:
        return sum(isinstance(action, model.Authorize) for action in actions)
    if actor == CRON:
        return sum(isinstance(action, model.RunJob) for action in actions)
    return sum(isinstance(action, model.Start | model.Authorize) and action.session == actor for action in actions)


def has_target(fault: Fault) -> bool:
    """Whether a fault says where it strikes."""
    return (fault.actor, fault.port, fault.label, fault.content) != ("*", "*", "*", "*")
