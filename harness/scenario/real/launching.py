"""How a real program is started in a scenario: its command line, all that it is told, and what its model says."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from fake_runtimes.plan import Plan, ToolCall
from fake_servers.models import Answer, ModelServer
from fake_servers.models import Call as Spoken
from harness.canary.installing import Installed
from harness.canary.probes.codex.asking import QUIET
from harness.canary.script import Call
from harness.canary.settings import APIS, KEPT_TEMPORARY, kept_folder, settings_of, spoken
from harness.canary.subjects import real_of

Names = Mapping[tuple[str, str], str]
MODEL_NAME = "canary"
"""A model that no program knows anything of: it is offered every tool as it is."""
NO_TOOL = "go_on"
"""What no runtime offers."""
CLAUDE_ALL_TOOLS = {"ENABLE_TOOL_SEARCH": "false"}
"""Without this a newer version puts a search in place of the tools, and what is offered is not in its requests."""
PI_OWN_STORE = {"PI_MCP_ADAPTER_TEST_AUTH_STORE": "memory"}
"""The adapter's store of credentials is then its own memory: nothing of the user's keyring is read or written."""
PI_RUN_KEYRING: Mapping[str, str | None] = {"DBUS_SESSION_BUS_ADDRESS": None, "XDG_RUNTIME_DIR": None}
"""So that its store is the kernel's keyring, of which the run has its own, and no service of the user's desktop."""
PI_HELPER = "mcp-keyring-helper.cjs"


def command_line(program: Installed, words: Sequence[str], model_url: str, servers: Sequence[str]) -> list[str]:
    """The words of the orchestrator, and those without which the program would talk to others than our servers.

    What a call of a tool needs nobody to allow is said here as well: in a scenario there is nobody to be asked.
    """
    if program.family == "claude":
        allowed = [f"mcp__{allowed_label(name)}__*" for name in servers]
        return [*program.argv, *words, "--settings", json.dumps({"permissions": {"allow": allowed}})]
    if program.family == "codex":
        provider = f'model_providers.canary={{name="canary",base_url="{model_url}/v1",wire_api="responses"}}'
        told = (f'model="{MODEL_NAME}"', 'model_provider="canary"', provider, 'approval_policy="never"', *QUIET)
        settings = [word for setting in told for word in ("-c", setting)]
        first, *rest = words
        return [*program.argv, first, "--skip-git-repo-check", *settings, *rest]
    return [*program.argv, "-e", str(program.adapter), "--model", "fake/m", *words]


def allowed_label(server: str) -> str:
    """A server's part in the names of its tools, as permissions write it."""
    return spoken("claude", Call(server, "x")).name.removeprefix("mcp__").removesuffix("__x")


def variables(
    program: Installed, home: Path, temporary: Path, model_url: str, *, has_keyring: bool = False
) -> dict[str, str | None]:
    """What is added to the environment that the orchestrator gives; None takes away. `has_keyring`: the run has one."""
    pi = PI_RUN_KEYRING if has_keyring else PI_OWN_STORE
    own: Mapping[str, str | None] = {"claude": CLAUDE_ALL_TOOLS, "pi": pi}.get(program.family, {})
    return {**settings_of(real_of(program), home, model_url), **own, "TMPDIR": str(temporary)}


def keyring_helper(program: Installed) -> list[str]:
    """How Pi's own helper is started, which answers of the keyring."""
    return [str(program.node), str(Path(str(program.adapter)).with_name(PI_HELPER))]


def trusting(authority: Path) -> dict[str, str]:
    """What makes a program trust the authority of the run: Node and what is built on it, and others."""
    return {"NODE_EXTRA_CA_CERTS": str(authority), "SSL_CERT_FILE": str(authority)}


def prepare_home(program: Installed, home: Path, temporary: Path, model_url: str) -> None:
    """Files that the program wants beside those of the scenario; what it keeps of itself is kept for later runs."""
    temporary.mkdir(exist_ok=True)
    for name in KEPT_TEMPORARY.get(program.family, ()):
        kept = kept_folder(real_of(program), temporary) / name
        kept.mkdir(parents=True, exist_ok=True)
        if not (temporary / name).exists():
            (temporary / name).symlink_to(kept, target_is_directory=True)
    if program.family == "codex":
        (home / ".codex").mkdir(parents=True, exist_ok=True)  # it starts in no home that is not there
    if program.family == "pi":
        url = f"{model_url}/v1"
        provider = {"baseUrl": url, "api": "openai-completions", "apiKey": "dummy", "models": [{"id": "m"}]}
        agent = home / ".pi/agent"
        agent.mkdir(parents=True, exist_ok=True)
        (agent / "models.json").write_text(json.dumps({"providers": {"fake": provider}}), encoding="utf-8")


def model_of(family: str, plan: Plan, names: Names) -> ModelServer:
    """The model of a run: one answer for each turn of its plan.

    A real program asks again only for the results of calls. So a turn that calls nothing and is not the last calls a
    tool that nobody has: it is told so, and asks again.
    """
    answers = []
    for number, turn in enumerate(plan.turns, 1):
        calls = tuple(said(family, call, names) for call in turn.calls)
        if not calls and number < len(plan.turns):
            calls = (Spoken(NO_TOOL),)
        answers.append(Answer(turn.words, calls, turn.seconds))
    return ModelServer(APIS[family], answers)


def said(family: str, call: ToolCall, names: Names) -> Spoken:
    """A call as the model makes it: by the name that it is offered where that is one of its own."""
    plain = spoken(family, Call(call.server, call.tool, call.args))
    name = names.get((call.server, call.tool))
    if family == "pi" or name is None:
        return plain
    if family == "codex":
        space, _, tool = name.partition("/")
        return Spoken(tool, call.args, space)
    return Spoken(name, call.args)
