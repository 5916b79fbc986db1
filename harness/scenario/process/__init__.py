"""Scenarios on real processes: the fakes as executables, the reference in forked processes, servers on real sockets."""

from harness.scenario.process.production import ProcessProduction

__all__ = ["ProcessProduction"]
