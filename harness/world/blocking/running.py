"""Running a program as this process."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn, TypeGuard

from harness.world.blocking.process import OWN_STDERR, OWN_STDOUT, Process
from harness.world.blocking.world import BlockingWorld
from harness.world.errors import WorldFault
from harness.world.outside.setting import Setting, setting_from
from harness.world.ports import Program

FAILED = 1
"""The exit code of a program that raises."""
UNUSABLE = 2
"""The exit code where the environment does not say in what world this is."""


def run(program: Program, argv: Sequence[str], setting: Setting | None = None) -> int:
    """Run a program as this process: its environment, directory, signals and standard streams are this process's.

    The answer is its exit code, negative for a signal by which it wants to end. A program that raises, or breaks the
    rules of the world, has its traceback on stderr and code 1; one that nobody listens to any more ends as by SIGPIPE,
    and one whose own streams cannot be written for another reason with a line and code 1. Tasks that still run then
    never go on. The setting is what the environment says; where it says no name, the program is called as its `argv`
    does.
    """
    for descriptor in (0, 1, 2):
        _require(descriptor)
    try:
        setting = setting or setting_from(os.environ, called(argv))
        process = Process(setting)
    except (ValueError, WorldFault) as error:
        sys.stderr.write(f"{error}\n")
        return UNUSABLE
    except OSError as error:  # the working directory is gone, or not to be seen
        sys.stderr.write(f"{called(argv)}: {error.strerror}: the working directory\n")
        return FAILED
    threading.Thread(target=_work, args=(process, program, argv), name=process.name, daemon=True).start()
    process.serve()
    return process.exit_code


def called(argv: Sequence[str]) -> str:
    """What a program is called by its argv."""
    return os.path.basename(argv[0]) if argv else "program"  # noqa: PTH119


def main(program: Program, argv: Sequence[str], setting: Setting | None = None) -> NoReturn:
    """Run a program as this process and end as it says, at once, whatever of it still waits for something."""
    code = run(program, argv, setting)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    if code < 0:
        with suppress(OSError, ValueError):
            if -code != signal.SIGKILL:
                signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _require(descriptor: int) -> None:
    """A standard stream that is closed becomes the null device, lest a file or socket of ours take its place."""
    try:
        os.fstat(descriptor)
    except OSError:
        os.open(os.devnull, os.O_RDWR)


def _work(process: Process, program: Program, argv: Sequence[str]) -> None:
    """In the program's thread. The baton is never given back."""
    process.wait_until_signals_have_their_default()
    process.baton.take()
    world = BlockingWorld(process)
    code = FAILED
    try:
        code = process.drive(_called(program, world, argv), process.name)
        if not isinstance(code, int):
            raise WorldFault(f"{process.name} returned {code!r}, which is no exit code")  # noqa: TRY301
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else FAILED
    except BaseException as error:  # noqa: BLE001 - however it ends, it ends with a traceback
        if not _is_unheard(error):
            process.halt_with(error)
        code = -signal.SIGPIPE
        if not isinstance(error, BrokenPipeError):
            code = FAILED
            process.complain([f"{called(argv)}: {error.strerror}\n"])
    _tell_lost(process, world)
    process.end(code)


def _is_unheard(error: BaseException) -> TypeGuard[OSError]:
    """Whether it is what this process's own streams are closed or full with."""
    return isinstance(error, OSError) and error.filename in (OWN_STDOUT, OWN_STDERR)


async def _called(program: Program, world: BlockingWorld, argv: Sequence[str]) -> int:
    return await program(world, argv)


def _tell_lost(process: Process, world: BlockingWorld) -> None:
    """What tasks raised that nobody asked for; that nobody heard them is no fault of theirs."""
    lost = [error for error in world.tasks.lost() if not _is_unheard(error)]
    if lost:
        import traceback

        for error in lost:
            process.complain(traceback.format_exception(error))
