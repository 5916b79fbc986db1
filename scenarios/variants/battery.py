"""Old bugs that the battery of the gate sees in simulated spawns."""

from __future__ import annotations

from harness.requirements.variants import variant


@variant("harness.reference.npx.isolation:colliding", catches=("npx-collide-detects",))
def twins_share_one_tree(servers):
    """Nobody collides: two servers of one package install into one tree at once."""
    return ()
