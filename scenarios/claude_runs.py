"""Short ways to run one headless Claude in a model world, for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from fake_runtimes.claude.command import program
from fake_runtimes.plan import Plan
from fake_runtimes.profile import load_profile
from fake_servers.mcp import Behaviour
from fake_servers.mcp import program as server_program
from harness.world.model import Decisions, Fault, Simulation
from harness.world.ports import Response
from scenarios.sign_in import SignInServer
from scenarios.worlds import Body
from scenarios.worlds import program as body_program

OLD, NEW = "claude-2.1.268", "claude-2.1.328"
CLONE, HOME = "/clones/c1", "/home/u"
ARGV = ("claude", "-p", "go on", "--output-format", "stream-json", "--verbose")
CACHE_FILE = f"{HOME}/.claude/mcp-needs-auth-cache.json"
STORE_FILE = f"{HOME}/.claude/.credentials.json"


def entry(name: str, behaviour: Behaviour, *, remote: bool = False) -> dict[str, Any]:
    """The `.mcp.json` entry that reaches a server of the run."""
    return {"type": "http", "url": f"https://{name}.test/mcp"} if remote else {"command": name, "args": ["--serve"]}


class ClaudeRun:
    """A finished run of the servers given; `beside` is what another actor does meanwhile."""

    def __init__(
        self,
        profile: str,
        stdio: Mapping[str, Behaviour] | None = None,
        remote: Mapping[str, Behaviour] | None = None,
        *,
        plan: Plan | None = None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        entries: Mapping[str, Any] | None = None,
        directory: str = CLONE,
        faults: Sequence[Fault] = (),
        mcp_json: str | None = None,
        unexecutable: Sequence[str] = (),
        links: Mapping[str, str] | None = None,
        beside: Body | None = None,
        decisions: Decisions | None = None,
        argv: Sequence[str] = ARGV,
        stdin: Sequence[str] = (),
        grants: Sequence[Response] = (),
    ) -> None:
        stdio, remote = stdio or {}, remote or {}
        self.servers = {name: SignInServer(behaviour, grants=grants) for name, behaviour in remote.items()}

        def launcher(argv: Sequence[str], env: Mapping[str, str], directory: str) -> Any:
            if argv[0] in unexecutable:
                raise PermissionError(13, "not executable", argv[0])
            self.spawned.append((argv[0], dict(env), directory))
            return server_program(stdio[argv[0]]) if argv[0] in stdio else None

        self.spawned: list[tuple[str, dict[str, str], str]] = []
        self.simulation = Simulation(
            decisions,
            launcher=launcher,
            servers={f"https://{name}.test": server for name, server in self.servers.items()},
            faults=faults,
        )
        tree = self.simulation.tree
        for path, target in (links or {}).items():
            tree.make_directory(target, 0o755, 0, 0.0)
            tree.make_link(path, target, 0, 0.0)
        for path in (directory, f"{HOME}/.claude"):
            tree.make_directory(path, 0o755, 0, 0.0)
        members = {
            **{name: entry(name, behaviour) for name, behaviour in stdio.items()},
            **{name: entry(name, behaviour, remote=True) for name, behaviour in remote.items()},
            **(entries or {}),
        }
        text = json.dumps({"mcpServers": members}) if mcp_json is None else mcp_json
        for path, content in {f"{directory}/.mcp.json": text, **(files or {})}.items():
            tree.make_directory(path.rpartition("/")[0], 0o755, 0, 0.0)
            tree.write(path, content.encode(), 0o644, 0, 0.0)
        self.actor = self.simulation.start(
            "claude",
            program(load_profile(profile), plan or Plan()),
            argv,
            env={"HOME": HOME, "PATH": "/bin", **(env or {})},
            directory=directory,
            stdin=stdin,
        )
        if beside is not None:
            self.simulation.start("beside", body_program(beside))
        self.outcome = self.simulation.run()
        ended = self.simulation.ended(self.actor)
        assert ended.error is None, repr(ended.error)
        assert ended.lost == ()
        self.exit_code = ended.exit_code

    def events(self, name: str, **wanted: Any) -> list[dict[str, Any]]:
        """The details of the runtime's events of one name, with their time since the start as `at`."""
        return [
            {**event.details, "at": round(event.at_seconds - self.simulation.started_seconds, 6)}
            for event in self.outcome.events
            if event.name == name and event.actor == "claude" and wanted.items() <= event.details.items()
        ]

    def requests(self) -> list[tuple[float, list[str], list[str]]]:
        """The model requests: when, the tools of servers offered, who was pending."""
        return [(one["at"], one["tools"], one["pending"]) for one in self.events("model.request")]

    def outcomes(self) -> dict[str, tuple[str, float]]:
        """How each server came out, and when."""
        names = {"server.connected": "connected", "server.failed": "failed", "server.needs_auth": "needs-auth"}
        return {one["server"]: (status, one["at"]) for event, status in names.items() for one in self.events(event)}

    def lines(self) -> list[dict[str, Any]]:
        """What was written on stdout."""
        return [json.loads(line) for line in self.actor.stdout.lines]

    def printed(self) -> list[str]:
        """The lines on stdout."""
        return "\n".join(self.actor.stdout.lines).split("\n")

    def errors(self) -> list[str]:
        """The lines on stderr."""
        return list(self.actor.stderr.lines)

    def statuses(self) -> dict[str, str]:
        """The servers of the init line."""
        return {one["name"]: one["status"] for one in self.lines()[0]["mcp_servers"]}

    def log_files(self) -> list[str]:
        """The paths of all server logs."""
        return [path for path in self.paths("/") if "/mcp-logs-" in path]

    def log(self, server: str) -> list[tuple[str, str]]:
        """The lines of one server's log: level and text."""
        found = [path for path in self.log_files() if f"/mcp-logs-{server}/" in path]
        assert len(found) == 1, found
        lines = [json.loads(line) for line in self.text(found[0]).splitlines()]
        return [next((level, line[level]) for level in ("debug", "error") if level in line) for line in lines]

    def text(self, path: str) -> str:
        """A file's text."""
        return self.simulation.tree.read(path, 0).decode()

    def paths(self, directory: str) -> list[str]:
        """All files below a directory."""
        found = []
        for name in self.simulation.tree.names(directory, 0):
            path = f"{directory.rstrip('/')}/{name}"
            status = self.simulation.tree.stat(path, 0)
            assert status is not None
            found += self.paths(path) if status.kind == "directory" else [path]
        return found

    def ending(self, server: str) -> int | None:
        """The exit code of a server's process; None while it runs."""
        actor = next(one for one in self.simulation.actors if one.name == f"claude/{server}")
        return actor.exit_code
