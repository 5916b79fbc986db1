"""One headless run of Codex, `codex exec`: configuration, servers, model requests, calls, and the end of it all."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

from fake_runtimes.codex import lines
from fake_runtimes.codex.arguments import Arguments
from fake_runtimes.codex.bugs import NONE, Bugs
from fake_runtimes.codex.calls import Called, run_call
from fake_runtimes.codex.home import notices, read_home
from fake_runtimes.codex.offers import offer
from fake_runtimes.codex.rollout import Rollout
from fake_runtimes.codex.servers import Servers
from fake_runtimes.plan import Plan, Turn
from fake_runtimes.profile import CodexProfile
from harness.world import World

READS_STDIN = "Reading additional input from stdin..."
# not measured: a run without a prompt on its command line
READS_PROMPT, NO_PROMPT = "Reading prompt from stdin...", "No prompt provided via stdin."
FROM_STDIN = "-"
SESSION_FAILED = (
    "Error: thread/start: thread/start failed: error creating thread: Fatal error: Failed to initialize session: "
)
DONE, RUN_REFUSED, BAD_ARGUMENTS, BROKEN_STDOUT = 0, 1, 2, 101
UUID_CUTS = (0, 8, 12, 16, 20, 32)


async def run_exec(world: World, arguments: Arguments, profile: CodexProfile, plan: Plan, bugs: Bugs = NONE) -> int:
    """`codex exec [--json] PROMPT` of that version, its model answering as planned; the answer is its exit code.

    It emits `server.connecting`, `server.connected`, `server.failed`, `server.needs_auth` and `server.skipped`,
    `model.request` with the tools offered (`namespace/tool`) and the servers still starting, `tool.call`,
    `run.refused` with the text on stderr, and `run.ended`. Exit codes: 0 however its servers fared, 1 for a
    configuration that cannot be used and for a required server that did not start, 2 for unknown arguments.
    """
    try:
        code = await execute(world, arguments, profile, plan, bugs)
    except BrokenPipeError:
        code = BROKEN_STDOUT
    world.events.emit("run.ended", exit_code=code)
    return code


async def execute(world: World, arguments: Arguments, profile: CodexProfile, plan: Plan, bugs: Bugs) -> int:
    """The run; the answer is its exit code."""
    if arguments.error is not None:
        return await refused(world, arguments.error, BAD_ARGUMENTS)
    held = await read_home(world, profile, arguments)
    if held.refused is not None:
        return await refused(world, held.refused, RUN_REFUSED)
    for text in notices(held.loaded):
        await world.processes.write_error(text)
    if not await has_prompt(world, arguments):
        return await refused(world, NO_PROMPT, RUN_REFUSED)
    servers = Servers(world, profile, held._replace(bugs=bugs))
    await servers.start()
    refusal = await servers.refusal()
    turns = Turns(world, servers, arguments)
    refusal = refusal or await turns.begin()
    if refusal is None:
        await turns.run(plan)
    code = DONE if refusal is None else await refused(world, refusal, RUN_REFUSED)
    await servers.end()
    return code


async def refused(world: World, text: str, code: int) -> int:
    """Say why there is no run; the answer is the exit code."""
    world.events.emit("run.refused", text=text)
    await world.processes.write_error(text)
    return code


async def has_prompt(world: World, arguments: Arguments) -> bool:
    """Take what stdin holds until it ends, as no terminal is there: a pipe left open keeps the run from starting.

    With a prompt on the command line it is added to that, else it is the prompt.
    """
    given = arguments.prompt not in ("", FROM_STDIN)
    await world.processes.write_error(READS_STDIN if given else READS_PROMPT)
    while (line := await world.processes.read_line()) is not None:
        given = given or bool(line.strip())
    return given


def new_thread(world: World) -> str:
    """The id of a thread that has not been there."""
    token = world.entropy.token(UUID_CUTS[-1])
    return "-".join(token[begin:end] for begin, end in pairwise(UUID_CUTS))


class Turns:
    """The model's requests in one run, which is one turn of the thread."""

    def __init__(self, world: World, servers: Servers, arguments: Arguments) -> None:
        self._world, self._servers, self._arguments = world, servers, arguments
        # not measured: what a thread is that nobody has kept; here it is begun under its old id
        thread = arguments.resumed or new_thread(world)
        self._thread = thread
        self._rollout = Rollout(world, servers.profile, servers.held.home, thread)
        self._items = 0

    async def begin(self) -> str | None:
        """Begin the transcript; what the run says, and ends with, when there is no place for it."""
        try:
            await self._rollout.begin(self._servers.held.directory)
        except OSError as error:
            return f"{SESSION_FAILED}{error.strerror} (os error {error.errno})"
        return None

    async def run(self, plan: Plan) -> None:
        """Wait for the servers, then ask the model turn by turn."""
        await self._print(lines.thread_started(self._thread))
        await self._print(lines.TURN_STARTED)
        await self._servers.wait_for_first_request()
        for number, turn in enumerate(plan.turns, 1):
            await self._ask(number, turn)
        await self._print(lines.TURN_COMPLETED)
        await self._finish(plan.last_words)

    async def _ask(self, number: int, turn: Turn) -> None:
        """One model request with the tools of the servers that are ready by now, and the calls it answers with."""
        offers = offer(self._servers.connections, self._servers.profile)
        tools = sorted(f"{name.namespace}/{name.tool}" for name in offers.values())
        self._world.events.emit("model.request", number=number, tools=tools, pending=list(self._servers.pending))
        await self._world.clock.sleep(turn.seconds)
        if turn.words:
            await self._print(lines.message(self._items, turn.words))
            self._items += 1
        ended: list[Called] = []
        for call in turn.calls:
            listed = (call.server, call.tool) in offers
            if listed:
                await self._print(lines.call_started(self._items, call))
            called = await run_call(self._servers, offers, call)
            self._world.events.emit("tool.call", server=call.server, tool=call.tool, ok=called.ok, text=called.text)
            if listed:
                await self._print(lines.call_completed(self._items, called))
                self._items += 1
            ended.append(called)
        await self._rollout.add(ended)

    async def _finish(self, words: str) -> None:
        """The last words: alone on stdout where no lines are printed, and in the file that was asked for."""
        if not self._arguments.json:
            await self._world.processes.write_line(words)
        path = self._arguments.last_message
        if path is not None:
            whole = path if path.startswith("/") else f"{self._world.env.directory.rstrip('/')}/{path}"
            with suppress(OSError):  # not measured
                await self._world.files.write(whole, words.encode())

    async def _print(self, line: lines.Line) -> None:
        if self._arguments.json:
            await self._world.processes.write_line(lines.encode(line))
