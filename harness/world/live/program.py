"""Running a program over a live world, and giving such a world to a program that has an event loop of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import anyio

from harness.world.errors import WorldFault
from harness.world.live.driver import Driver
from harness.world.live.signals import default_actions
from harness.world.live.steering import Steering
from harness.world.live.world import LiveWorld
from harness.world.outside.setting import Setting, without_own
from harness.world.ports import Program, World

FAILED = 1
"""The exit code of a program that raises or breaks the rules of the world."""
UNUSABLE = 2
"""The exit code where nobody steers who should."""


def run(
    program: Program,
    argv: Sequence[str],
    setting: Setting | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    directory: str | None = None,
    store: str = "",
    takes_signals: bool = True,
) -> int:
    """Run a program as this process, with its standard streams; the answer is the exit code.

    Variables and directory are the process's own unless they are given. What the program raises goes to stderr, and so
    does what its tasks raise when nobody asks for it. `store` is the file in which rows are kept. SIGINT and SIGTERM
    end the process unless the program asks for them; where `takes_signals` is False they do what they did before.

    Without a setting nobody steers, whatever the environment says: no request goes anywhere but to its own host.
    """
    for descriptor in (0, 1, 2):
        require_open(descriptor)
    actions: AbstractContextManager[None] = default_actions() if takes_signals else nullcontext()
    with actions:
        try:
            return anyio.run(_run, program, argv, setting, variables, directory, store)
        except WorldFault as fault:  # whoever should steer is not there
            sys.stderr.write(f"{fault}\n")
            return UNUSABLE


def require_open(descriptor: int) -> None:
    """A standard stream that is closed becomes the null device, lest a file or socket of ours take its place."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


async def _run(
    program: Program,
    argv: Sequence[str],
    setting: Setting | None,
    variables: Mapping[str, str] | None,
    directory: str | None,
    store: str,
) -> int:
    async with _entered(setting, variables, directory, store) as (driver, world, exit_code):
        try:
            code = await program(world, argv)
            if not isinstance(code, int):
                raise WorldFault(f"{driver.name} returned {code!r}, which is no exit code")  # noqa: TRY301
        except SystemExit as exit_:
            code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else FAILED
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever a program raises is how it ends
            if error not in driver.misuses:
                driver.complain(driver.name, error)
            code = FAILED
        exit_code.append(FAILED if driver.misuses else code)
    return exit_code[0]


@asynccontextmanager
async def live_world(
    setting: Setting | None = None,
    *,
    variables: Mapping[str, str] | None = None,
    directory: str | None = None,
    store: str = "",
) -> AsyncIterator[World]:
    """A world for as long as it is entered. Tasks that still run at the exit never go on.

    Without a setting nobody steers, whatever the environment says.
    """
    async with _entered(setting, variables, directory, store) as (_, world, exit_code):
        yield world
        exit_code.append(0)


@asynccontextmanager
async def _entered(
    setting: Setting | None, variables: Mapping[str, str] | None, directory: str | None, store: str
) -> AsyncIterator[tuple[Driver, LiveWorld, list[int]]]:
    """A driver and its world; at the exit the actor has ended with the code that was put into the list."""
    setting = setting or Setting()
    own = without_own(os.environ) if variables is None else dict(variables)
    place = os.path.abspath(directory or ".")  # noqa: PTH100 - paths are texts here
    steering = Steering(os.path.join(place, setting.control), setting.name) if setting.control else None  # noqa: PTH118
    tasks = anyio.create_task_group()
    driver = Driver(setting, tasks, own, place, steering)
    world = LiveWorld(driver, store)
    error: BaseException | None = None
    exit_code: list[int] = []
    try:
        async with tasks:
            try:
                yield driver, world, exit_code
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as raised:  # noqa: BLE001 - raised again, and not as one of a group
                error = raised
            finally:
                driver.alive = False
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await world.close()
            driver.free()
            driver.tell_lost()
            await driver.finish(exit_code[0] if exit_code else FAILED)
    if error is not None:
        raise error
