"""What a scenario file says without any effect: told as warnings, since whoever wrote it meant something by it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fake_servers.mcp.behaviour import Behaviour, Tool
from harness.scenario import facts, model
from harness.scenario.addresses import place_of
from harness.scenario.model import Step
from harness.scenario.positions import Path
from harness.scenario.vocabulary import Vocabulary

Idle = tuple[Path, str]
ASKING = ("status", "challenge", "requires_bearer")
"""Keys by which a server that is not protected wants a token all the same."""
OF_A_CALL = ("answers_after_seconds", "text", "is_error")


def idle(names: Vocabulary, steps: Sequence[Step], servers: Mapping[str, Behaviour], started: set[str]) -> list[Idle]:
    """The place of each table or key that changes nothing, and why. `started` are the packages that entries start."""
    tree = names.document.tree
    return [
        *unstarted(names, steps, started),
        *uncalled(steps, servers),
        *unasked(names, steps),
        *elsewhere(tree, names.families),
    ]


def unstarted(names: Vocabulary, steps: Sequence[Step], started: set[str]) -> Iterator[Idle]:
    """Servers that no session is given, packages that nobody starts."""
    tree, used, texts = names.document.tree, facts.used(steps), names.texts
    owners = {table.get("server") for table in tree.get("package", {}).values()}
    for name in tree.get("server", {}):
        if not (used is None or name in used or name in owners or any(name in text for text in texts)):
            yield ("server", name), f"[server.{name}]: no session is given this server"
    for name in tree.get("package", {}):
        if name not in started and not any(name in text for text in texts):
            yield ("package", name), f"[package.{name}]: no entry starts this package"


def uncalled(steps: Sequence[Step], servers: Mapping[str, Behaviour]) -> Iterator[Idle]:
    """What servers do at a call that no turn makes."""
    starts = [step.action for step in steps if isinstance(step.action, model.Start)]
    calls = {(call.server, call.tool) for start in starts for turn in start.turns for call in turn.calls}
    for name, behaviour in servers.items():
        if behaviour.exits == "on-call" and not any(server == name for server, _ in calls):
            yield ("server", name, "exits"), f"[server.{name}] exits on-call: no turn calls it"
        for tool in behaviour.tools:
            usual = Tool(tool.name)
            odd = next((key for key in OF_A_CALL if getattr(tool, key) != getattr(usual, key)), None)
            if odd is not None and (name, tool.name) not in calls:
                yield ("server", name, "tools"), f"[server.{name}] `{odd}` of {tool.name}: no turn calls it"


def unasked(names: Vocabulary, steps: Sequence[Step]) -> Iterator[Idle]:
    """Authorization servers, clients and addresses for sign-ins that nobody comes to."""
    tree = names.document.tree
    servers = tree.get("server", {})
    protected = {name for name, table in servers.items() if "protected_by" in table}
    authorized = {step.action.server for step in steps if isinstance(step.action, model.Authorize)}
    for name, table in tree.get("authorization", {}).items():
        if not is_asked(tree, name, table.get("issuer", f"https://{name}.test")):
            yield ("authorization", name), f"[authorization.{name}]: it protects no server, and nothing leads to it"
    for name in tree.get("registered", {}):
        asks = any(key in servers.get(name, {}) for key in ASKING)
        if not asks and name not in protected | authorized and name in names.servers:
            yield ("registered", name), f"[registered.{name}]: the server is not protected, and nobody authorizes it"
    if "app_host" in tree and not protected | authorized:
        yield ("app_host",), "app_host: there is nothing to consent to, so no browser comes there"


def is_asked(tree: Mapping[str, Any], name: str, issuer: str) -> bool:
    """Whether an authorization server protects something, issues tokens, is expected to be asked (or not), or whether
    anything else names its host.
    """
    rows = (*tree.get("server", {}).values(), *tree.get("credential", ()), *tree.get("expect", ()))
    if any(name in (row.get("protected_by"), row.get("issued_by"), row.get("received")) for row in rows):
        return True
    others = {other: each for other, each in tree.get("authorization", {}).items() if other != name}
    return f"//{place_of(issuer)}" in texts({**tree, "authorization": others})


def elsewhere(tree: Mapping[str, Any], families: Sequence[str]) -> Iterator[Idle]:
    """What is said of runtimes that this file is not about."""
    if tree.get("codex_bugs") and "codex" not in families:
        yield ("codex_bugs",), "codex_bugs: the file is not about codex"
    written = tree["runtime"]
    own = {name.partition("@")[0] for name in ([written] if isinstance(written, str) else written)}
    for rows, key in (("step", "only_on"), ("expect", "only_on"), ("old_bug", "runtimes")):
        for index, table in enumerate(tree.get(rows, ())):
            named = table.get(key, ())
            if named and own.isdisjoint(name.partition("@")[0] for name in named):
                yield (rows, index, key), f"[[{rows}]] {index + 1} is for {' and '.join(named)}, and the file is not"


def texts(value: Any) -> str:
    """All that is written, as one text."""
    return json.dumps(value, ensure_ascii=False, default=str)
