"""Started by a program that knows nothing of any world, in place of another program: becomes what stands in for that.

    python -IS standing_in.py CONTROL COMMAND [WORD...]

Whoever steers at `CONTROL` is asked what stands in for the command line; this process is that from then on, and an
actor. Nothing else is ever executed.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # from wherever it lies, with nothing but the standard library to be found
    sys.path.insert(0, os.path.realpath(__file__).rsplit(os.sep, 4)[0])

from harness.world.blocking.control_client import ControlClient
from harness.world.errors import Unsteered
from harness.world.outside.control import launch_message, launched
from harness.world.outside.setting import Setting

NOBODY = ""
"""The actor's name in the question: whoever steers knows by the process who its parent is."""
NOT_FOUND = 127


def main() -> None:
    """Be this process."""
    control, command, *words = sys.argv[1:]
    variables = dict(os.environ)
    try:
        answer = ControlClient(control).ask(launch_message(NOBODY, [command, *words], variables, os.getcwd()))  # noqa: PTH109
        launch = launched(answer, command)
    except (Unsteered, OSError) as error:
        sys.stderr.write(f"{command}: nobody stands in for it: {error}\n")
        sys.exit(NOT_FOUND)
    told = Setting(launch.name, control).variables()
    os.execve(launch.argv[0], launch.argv, {**variables, **launch.env, **told})  # noqa: S606


if __name__ == "__main__":
    main()
