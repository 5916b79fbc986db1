"""The live driver: a world of real files, sockets, processes and rows, in an event loop.

    code = run(program, ["argument"], store="/var/lib/rows.sqlite")      # as this process

    async with live_world(Setting("web"), store=path) as world:          # inside a program with a loop of its own
        await world.files.read("/etc/hostname")

Whoever calls decides whether somebody steers: the environment of the process is never asked.
"""

from harness.world.live.program import live_world, run

__all__ = ["live_world", "run"]
