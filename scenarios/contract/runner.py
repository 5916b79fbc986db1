"""One program of the contract as a process of its own: `runner.py DRIVER STORE USER PROGRAM ARGUMENT...`.

A group of cases is a program as well. USER is a number to give privileges up to, or `-`.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path[:1] = [str(Path(__file__).parents[2])]

from harness.world.outside.setting import Setting, setting_from  # noqa: E402 - found where this file is
from harness.world.ports import World  # noqa: E402


def main() -> int:
    driver, store, user, name, *rest = sys.argv[1:]
    from scenarios.contract import faults, files, http, processes, tasks  # noqa: F401 - they add their cases
    from scenarios.contract import store as rows  # noqa: F401
    from scenarios.contract.cases import GROUPS, PROGRAMS, batch

    program = batch(name) if name in GROUPS else PROGRAMS[name]
    if user != "-":
        give_up_privileges(driver, int(user))
    setting = setting_from(os.environ, name)
    if driver == "blocking":
        from harness.world import blocking

        return blocking.run(program, [name, *rest], setting)
    from harness.world import live

    return live.run(program, [name, *rest], setting, store=store)


def give_up_privileges(driver: str, user: int) -> None:
    """Become another user, who may not be able to read what this program is made of: it is all loaded before."""
    package = importlib.import_module(f"harness.world.{driver}")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
    package.run(nothing, [], Setting())
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


async def nothing(world: World, argv: Sequence[str]) -> int:
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
