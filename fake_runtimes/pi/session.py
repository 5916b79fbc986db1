"""One headless run of Pi with its MCP adapter (`pi -p --mode json`): config, servers, model requests, the end.

No server is usable before the slowest of those started at launch has its outcome, and only then is anything
printed about any of them. The first model request waits for that, but not longer than a fixed time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fake_runtimes.client import end_children
from fake_runtimes.connections.stdio import StdioConnection
from fake_runtimes.loaded import SKIPPED, Loaded
from fake_runtimes.pi.calls import Answered, answer
from fake_runtimes.pi.connect import CLOSING, Surroundings, cancelled_start
from fake_runtimes.pi.home import home_of, load_config, read_if_there
from fake_runtimes.pi.metadata import FILE
from fake_runtimes.pi.npx import Resolver
from fake_runtimes.pi.offer import offered_names, tool_list, with_direct_tools
from fake_runtimes.pi.servers import Servers
from fake_runtimes.pi.startup import EAGER_LIFECYCLES, first_request_wait_seconds
from fake_runtimes.pi.variables import process_environment
from fake_runtimes.plan import Plan, Turn
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import json_stringify
from harness.world.ports import Program, Task, World

# Read in the adapter, as the pace of its launch: so many servers are being connected at a time.
AT_A_TIME = 10
NO_FAILURE = 0


def program(profile: PiProfile, plan: Plan = Plan()) -> Program:  # noqa: B008 - immutable
    """A run that reads its configuration from the world, and whose model does what the plan says."""

    async def run(world: World, argv: Sequence[str]) -> int:
        await Run(world, profile, argv).play(plan)
        world.events.emit("run.ended", exit_code=NO_FAILURE)
        return NO_FAILURE

    return run


class Run:
    """One run. Whatever becomes of its servers, it ends with 0."""

    def __init__(self, world: World, profile: PiProfile, argv: Sequence[str]) -> None:
        self.world, self.profile, self.argv = world, profile, argv
        environment = process_environment(world.env.variables)
        home = home_of(environment, world.env.directory)
        resolver = Resolver(world, home, environment, profile)
        self.around = Surroundings(world, home, environment, profile, resolver)
        self.servers = Servers(self.around, (), ())
        self.requests = 0

    async def play(self, plan: Plan) -> None:
        """From the configuration to the last turn. Attempts that are still open then are left as they are."""
        await self.load()
        await self.say({"type": "session", "cwd": self.around.home.session}, {"type": "agent_start"})
        starting = self.launch()
        await self.world.tasks.wait([starting], timeout_seconds=first_request_wait_seconds(self.profile))
        for turn in plan.turns:
            await self.take(turn, starting)
        await self.say({"type": "agent_end"}, {"type": "agent_settled"})
        await self.close()

    async def load(self) -> None:
        """Read the configuration and what an earlier run remembered."""
        home, environment = self.around.home, self.around.environment
        loaded = await load_config(self.world, home, self.argv, environment, self.profile)
        await self.complain(loaded)
        servers = [with_direct_tools(server, environment) for server in loaded.servers]
        self.servers = Servers(self.around, servers, disabled_names(loaded))
        if servers:
            self.servers.remember(await read_if_there(self.world, f"{home.agent}/{FILE}"))

    async def complain(self, loaded: Loaded) -> None:
        """Lost files are told at once; what is dropped is not told at all."""
        lines = [problem.text for problem in loaded.problems if problem.server is None and problem.text]
        await print_lines(self.world.processes.write_error, lines)
        for problem in loaded.problems:
            if problem.server is not None and problem.code == SKIPPED:
                self.world.events.emit("server.skipped", server=problem.server, text=problem.text)

    def launch(self) -> Task:
        """Start what is started at launch; an eager server is started twice, the first time in vain."""
        start = self.world.tasks.start
        for name in self.servers.startup:
            server = self.servers.by_name[name]
            if server.raw.get("lifecycle") in EAGER_LIFECYCLES:
                start(cancelled_start(self.around, server), f"first start of {name}")
        return start(self.initialise(), "initialisation")

    async def initialise(self) -> None:
        """Connect the servers of the launch, some at a time; then, and only then, tell and offer."""
        servers = self.servers
        waiting = list(servers.startup)[::-1]
        if servers.first_run:
            await servers.save()

        async def work() -> None:
            while waiting:
                await servers.connect(waiting.pop())

        workers = [
            self.world.tasks.start(work(), f"connecting {number}") for number in range(min(AT_A_TIME, len(waiting)))
        ]
        await self.world.tasks.wait(workers)
        await print_lines(self.world.processes.write_error, servers.startup_lines())
        await servers.learn(servers.startup)
        servers.settled = True

    async def take(self, turn: Turn, starting: Task) -> None:
        """One model request, and the calls that its answer asks for."""
        self.ask()
        await self.world.clock.sleep(turn.seconds)
        answered = [await self.called(starting, call) for call in turn.calls]
        await self.say({"type": "turn_start"}, *execution_events(self.requests, answered), {"type": "turn_end"})

    def ask(self) -> None:
        """Send a model request: it carries the tools that are offered at this moment."""
        self.requests += 1
        names = offered_names(self.servers.by_name, self.servers.offered(), self.profile)
        self.world.events.emit(
            "model.request",
            number=self.requests,
            tools=tool_list(names.values(), self.servers.settings),
            pending=[] if self.servers.settled else sorted(self.servers.startup),
        )

    async def called(self, starting: Task, call: Any) -> Answered:
        """One call and what is written down of it."""
        answered = await answer(self.servers, starting, call)
        said = answered.said
        details = {"server": call.server, "tool": call.tool, "ok": not said.error, "text": said.text}
        self.world.events.emit("tool.call", **details, error=said.error, name=answered.name)
        return answered

    async def say(self, *events: Mapping[str, Any]) -> None:
        """Events on stdout, one a line; there is none about servers."""
        await print_lines(self.world.processes.write_line, [json_stringify(dict(event)) for event in events])

    async def close(self) -> None:
        """End the servers that are connected; an attempt that is open is left to the end of the process."""
        connections = self.servers.connections.values()
        children = [one.child for one in connections if isinstance(one, StdioConnection)]
        await end_children(self.world, children, CLOSING)
        for connection in connections:
            if not isinstance(connection, StdioConnection):
                await connection.close()


def disabled_names(loaded: Loaded) -> list[str]:
    """The servers that are switched off; those that are no entries are dropped without a word."""
    skipped = [problem for problem in loaded.problems if problem.code == SKIPPED and problem.text]
    return [problem.server for problem in skipped if problem.server is not None]


def execution_events(turn: int, answered: Sequence[Answered]) -> list[Mapping[str, Any]]:
    """The pair of events of each call of a turn."""
    events: list[Mapping[str, Any]] = []
    for number, (name, args, said) in enumerate(answered, 1):
        call = {"toolCallId": f"call_{turn}_{number}", "toolName": name}
        result = {"content": [{"type": "text", "text": said.text}], "details": said.details}
        events.append({"type": "tool_execution_start", **call, "args": args})
        events.append({"type": "tool_execution_end", **call, "result": result, "isError": said.is_error})
    return events


async def print_lines(write: Callable[[str], Any], lines: Sequence[str]) -> None:
    """Lines in one piece; a reader that is gone is not missed."""
    if not lines:
        return
    try:
        await write("\n".join(lines))
    except BrokenPipeError:
        return
