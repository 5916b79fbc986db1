"""A program that knows nothing of any world, as an actor of one: started, watched and ended by this one in its place.

    python -IS supervising.py TOLD

`TOLD` is a JSON file: `argv` of the program and `env`, what is added to this process's environment (null takes a
variable away); `keyring`, where it is given, is the user namespace that the program is in (see `keyring`). The program
has this process's stdin, and what it prints goes on to this one's stdout and stderr, line by line, after whoever steers
was told. Signals are passed on; it dies with this process, which ends as it does.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

if __name__ == "__main__":  # from wherever it lies, with nothing but the standard library to be found
    sys.path.insert(0, os.path.realpath(__file__).rsplit(os.sep, 4)[0])

from harness.world.blocking.control_client import ControlClient
from harness.world.errors import Unsteered
from harness.world.outside.keyring import enter
from harness.world.outside.reaping import die_with_parent
from harness.world.outside.setting import setting_from, without_own

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LAST_LINES_SECONDS = 0.5
"""How long is read on when the program has ended: what it has left running may hold its pipes open for ever."""
STDIN, STDOUT, STDERR = 0, 1, 2


def environment(variables: Mapping[str, str], told: Mapping[str, str | None]) -> dict[str, str]:
    """All that the program is told."""
    whole = {**without_own(variables), **told}
    return {name: value for name, value in whole.items() if value is not None}


def begin(namespace: str | None) -> None:
    """What the new process does before it becomes the program."""
    die_with_parent()
    if namespace:
        enter(namespace)


def pass_on(stream: BinaryIO, target: int, tell: Callable[[str], None]) -> None:
    """Line by line: first to whoever steers, then on. A program whose output nobody takes finds its pipe closed."""
    with stream:
        for line in stream:
            try:
                tell(line.decode("utf-8", "replace").removesuffix("\n"))
                os.write(target, line)
            except (Unsteered, BrokenPipeError):
                return


def supervise(told: Mapping[str, Any], variables: Mapping[str, str]) -> int:
    """Run the program; the answer is its exit code, negative for a signal."""
    setting = setting_from(variables)

    def asker() -> Callable[..., None]:
        client = ControlClient(setting.control)

        def ask(do: str, **more: Any) -> None:
            client.ask({"do": do, "actor": setting.name, **more})

        return ask

    ask = asker()
    ask("started")
    child = subprocess.Popen(
        told["argv"],
        env=environment(variables, told["env"]),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=partial(begin, told.get("keyring")),
    )
    for number in PASSED_ON:
        signal.signal(number, lambda given, _: child.send_signal(given))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)  # its stdin has one reader, the program
    readers = []
    for name, stream, target in (("stdout", child.stdout, STDOUT), ("stderr", child.stderr, STDERR)):
        say = asker()
        arguments = (stream, target, lambda text, name=name, say=say: say("printed", stream=name, text=text))
        readers.append(threading.Thread(target=pass_on, args=arguments, daemon=True))
        readers[-1].start()
    code = child.wait()
    for reader in readers:
        reader.join(LAST_LINES_SECONDS)
    ask("ended", exit_code=code)
    return code


def main() -> None:
    """Be this process."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        told = json.load(file)
    code = 1
    with suppress(Unsteered):
        code = supervise(told, os.environ)
    if code < 0:
        with suppress(OSError, ValueError):  # not every signal has a handler that could be taken away
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
