"""One headless run of Pi with its MCP adapter (`pi -p`): config, servers, model requests, the end.

No server is usable before the slowest of those started at launch has its outcome, and only then is anything
printed about any of them. The first model request waits for that, but not longer than a fixed time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fake_runtimes.client import HttpConnection, end_children
from fake_runtimes.connections.stdio import StdioConnection
from fake_runtimes.loaded import SKIPPED, Loaded
from fake_runtimes.pi.calls import Answered, answer, called_name
from fake_runtimes.pi.connect import CLOSING, Surroundings, cancelled_start
from fake_runtimes.pi.front import (
    SESSION_VERSION,
    Front,
    assistant_message,
    message_events,
    print_lines,
    user_message,
)
from fake_runtimes.pi.home import flag_value, home_of, load_config, read_if_there
from fake_runtimes.pi.metadata import FILE
from fake_runtimes.pi.npx import Resolver
from fake_runtimes.pi.offer import meeting_lines, offered_names, tool_list, with_direct_tools
from fake_runtimes.pi.servers import Servers, is_eager
from fake_runtimes.pi.startup import first_request_wait_seconds
from fake_runtimes.pi.texts import Said
from fake_runtimes.pi.tokens import Entries, Store
from fake_runtimes.pi.variables import process_environment
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_runtimes.profile import PiProfile
from fake_runtimes.text import iso_time
from harness.world.ports import Task, World

# Read in the adapter, as the pace of its launch: so many servers are being connected at a time.
AT_A_TIME = 10
NO_FAILURE = 0
SESSION_ID_DIGITS = 32
ADAPTER = "pi-mcp-adapter"


class Run:
    """One run. Whatever becomes of its servers, it ends with 0."""

    def __init__(self, world: World, profile: PiProfile, argv: Sequence[str], mode: str) -> None:
        self.world, self.profile, self.argv = world, profile, argv
        environment = process_environment(world.env.variables)
        home = home_of(environment, world.env.directory)
        resolver = Resolver(world, home, environment, profile)
        entries = Entries(world, home, environment, Store(world, environment, profile))
        self.around = Surroundings(world, home, environment, profile, resolver, entries)
        self.servers = Servers(self.around, (), ())
        self.front = Front(world, mode)
        self.requests = 0
        self._told_meetings: tuple[str, ...] = ()

    async def play(self, plan: Plan, prompt: str) -> int:
        """From the configuration to the last turn. Attempts that are still open then are left as they are."""
        await self.load()
        await self.front.say(self.header())
        starting = self.launch()
        await self.answer(plan, prompt, starting)
        await self.close()
        await self.front.finish(plan.last_words)
        return self.ended()

    def ended(self) -> int:
        """The exit code, written down."""
        self.world.events.emit("run.ended", exit_code=NO_FAILURE)
        return NO_FAILURE

    def header(self) -> Mapping[str, Any]:
        """The first event of a run."""
        return {
            "type": "session",
            "version": SESSION_VERSION,
            # not measured: a session that nobody has kept; here it is begun under its old id
            "id": flag_value(self.argv, "--session") or self.world.entropy.token(SESSION_ID_DIGITS),
            "timestamp": iso_time(self.world.clock.now()),
            "cwd": self.around.home.session,
        }

    async def answer(self, plan: Plan, prompt: str, starting: Task) -> None:
        """One prompt: the model's turns, the first of them when the servers are there or have been waited for."""
        asked = user_message(prompt, self.now_ms())
        await self.front.say({"type": "agent_start"}, *message_events(asked))
        await self.world.tasks.wait([starting], timeout_seconds=first_request_wait_seconds(self.profile))
        messages = [asked]
        for turn in plan.turns:
            messages += await self.take(turn, starting)
        await self.front.say({"type": "agent_end", "messages": messages}, {"type": "agent_settled"})

    def now_ms(self) -> int:
        """The time as messages carry it."""
        return int(self.world.clock.now() * 1000)

    async def load(self) -> None:
        """Read the configuration and what an earlier run remembered."""
        home, environment = self.around.home, self.around.environment
        warning = self.profile.own_adapter_warning
        if warning:
            adapter = next((value for flag in ("-e", "--extension") if (value := flag_value(self.argv, flag))), ADAPTER)
            await self.world.processes.write_error(warning.format(adapter=adapter))
        loaded = await load_config(self.world, home, self.argv, environment, self.profile)
        await self.complain(loaded)
        servers = [with_direct_tools(server, environment) for server in loaded.servers]
        self.servers = Servers(self.around, servers, disabled_names(loaded))
        if servers:
            self.servers.remember(await read_if_there(self.world, f"{home.agent}/{FILE}"))
        await self.tell_meetings()

    async def tell_meetings(self) -> None:
        """Say once which servers have no proxy because their names meet."""
        lines = meeting_lines(self.servers.by_name, self.servers.offered(), self.profile)
        new = [line for line in lines if line not in self._told_meetings]
        self._told_meetings = (*self._told_meetings, *new)
        await print_lines(self.world.processes.write_error, new)

    async def complain(self, loaded: Loaded) -> None:
        """Lost files are told at once; what is dropped is not told at all."""
        lines = [problem.text for problem in loaded.problems if problem.server is None and problem.text]
        await print_lines(self.world.processes.write_error, lines)
        for problem in loaded.problems:
            if problem.server is not None and problem.code == SKIPPED:
                self.world.events.emit("server.skipped", server=problem.server, text=problem.text)

    def launch(self) -> Task:
        """Start what is started at launch; an eager server is started twice, the first time in vain.

        With an eager server in a first run the real one starts the lazy ones in that first round alone, so that those
        which are not done by then are given up. Which those are is a race that this one does not run.
        """
        start = self.world.tasks.start
        for name in self.servers.startup:
            server = self.servers.by_name[name]
            if is_eager(server):
                start(cancelled_start(self.around, server), f"first start of {name}")
        return start(self.initialise(), "initialisation")

    async def initialise(self) -> None:
        """Connect the servers of the launch, some at a time; then, and only then, tell and offer."""
        servers = self.servers
        waiting = list(servers.startup)[::-1]
        if servers.first_run:
            await servers.save()
        await self.front.connecting(len(waiting))

        async def work() -> None:
            while waiting:
                await servers.connect(waiting.pop())

        workers = [
            self.world.tasks.start(work(), f"connecting {number}") for number in range(min(AT_A_TIME, len(waiting)))
        ]
        await self.world.tasks.wait(workers)
        await self.front.settled(servers.startup_lines(), servers.statuses())
        await servers.learn(servers.startup)
        await self.tell_meetings()
        servers.settled = True

    async def take(self, turn: Turn, starting: Task) -> list[Mapping[str, Any]]:
        """One model request, and the calls that its answer asks for; the messages that came of it."""
        self.ask()
        await self.world.clock.sleep(turn.seconds)
        names = [called_name(self.servers, call) for call in turn.calls]
        calls = [tool_call(self.requests, number, *named) for number, named in enumerate(names, 1)]
        message = assistant_message(turn.words, calls, self.now_ms())
        await self.front.say({"type": "turn_start"}, *message_events(message), *map(started, calls))
        answers = await self.call_all(starting, turn.calls, calls)
        results = [
            tool_result(call, answered.said, self.now_ms()) for call, answered in zip(calls, answers, strict=True)
        ]
        for result in results:
            await self.front.say(*message_events(result))
        await self.front.say({"type": "turn_end", "message": message, "toolResults": results})
        return [message, *results]

    async def call_all(
        self, starting: Task, wanted: Sequence[ToolCall], calls: Sequence[Mapping[str, Any]]
    ) -> list[Answered]:
        """The answers to all calls of a turn, which are made at the same time; an event tells the end of each.

        What goes to one process, or to a server that is yet to be connected, goes there one after the other here.
        """
        answers: dict[int, Answered] = {}

        async def work(numbers: Sequence[int]) -> None:
            for number in numbers:
                answers[number] = await self.called(starting, wanted[number])
                await self.front.say(ended(calls[number], answers[number].said))

        lanes = lanes_of(self.servers, wanted)
        if len(lanes) <= 1:
            for lane in lanes:
                await work(lane)
        else:
            tasks = [self.world.tasks.start(work(lane), f"calls {lane[0] + 1}") for lane in lanes]
            await self.world.tasks.wait(tasks)
            for task in tasks:
                task.result()
        return [answers[number] for number in range(len(wanted))]

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

    async def close(self) -> None:
        """End the servers that are connected; an attempt that is open is left to the end of the process."""
        connections = self.servers.connections.values()
        children = [one.child for one in connections if isinstance(one, StdioConnection)]
        await end_children(self.world, children, CLOSING)
        for connection in connections:
            if not isinstance(connection, StdioConnection):
                await connection.close()


def lanes_of(servers: Servers, wanted: Sequence[ToolCall]) -> list[list[int]]:
    """The calls by number, those together that have to wait for each other."""
    lanes: list[list[int]] = []
    of_server: dict[str, list[int]] = {}
    for number, call in enumerate(wanted):
        name = call.server or str(call.args.get("server", ""))
        if not name or isinstance(servers.connections.get(name), HttpConnection):
            lanes.append([number])
        elif name in of_server:
            of_server[name].append(number)
        else:
            of_server[name] = [number]
            lanes.append(of_server[name])
    return lanes


def disabled_names(loaded: Loaded) -> list[str]:
    """The servers that are switched off; those that are no entries are dropped without a word."""
    skipped = [problem for problem in loaded.problems if problem.code == SKIPPED and problem.text]
    return [problem.server for problem in skipped if problem.server is not None]


def tool_call(turn: int, number: int, name: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call as the model's answer holds it."""
    return {"type": "toolCall", "id": f"call_{turn}_{number}", "name": name, "arguments": args}


def started(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The event of a call's begin."""
    asked = {"toolCallId": call["id"], "toolName": call["name"], "args": call["arguments"]}
    return {"type": "tool_execution_start", **asked}


def ended(call: Mapping[str, Any], said: Said) -> Mapping[str, Any]:
    """The event of a call's end."""
    result = {"content": [{"type": "text", "text": said.text}], "details": said.details}
    asked = {"toolCallId": call["id"], "toolName": call["name"]}
    return {"type": "tool_execution_end", **asked, "result": result, "isError": said.is_error}


def tool_result(call: Mapping[str, Any], said: Said, now_ms: int) -> Mapping[str, Any]:
    """The message with which a call's result goes back to the model."""
    return {
        "role": "toolResult",
        "toolCallId": call["id"],
        "toolName": call["name"],
        "content": [{"type": "text", "text": said.text}],
        "details": said.details,
        "isError": said.is_error,
        "timestamp": now_ms,
    }
