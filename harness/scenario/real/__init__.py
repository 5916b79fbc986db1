"""Scenarios on the real programs: the pinned runtime itself, its servers and its model on loopback, real time."""
