"""The blocking driver: a program runs as this process, with real files, sockets, children and signals.

It needs the standard library alone and no event loop, so that an executable starts in some ten milliseconds:

    from harness.world.blocking import main
    main(program, sys.argv)            # program: async def (world, argv) -> exit code

No port call suspends. Tasks are threads of which one runs at a time: whoever holds the baton, which is put down only
inside port calls. Where somebody steers the world (`harness.world.outside`), every switch point is asked first, with
the labels of the model.
"""

from harness.world.blocking.running import main, run

__all__ = ["main", "run"]
