"""The model driver: a world in memory, in virtual time, by reproducible decisions.

simulation = Simulation(Seeded(7), servers={"https://as.test": server}, faults=[Fault("reset-after", port="http")])
actor = simulation.start("cron", program)          # program: async def (world, argv) -> exit code
outcome = simulation.run()                         # verdict, events, decisions, virtual seconds
"""

from harness.world.model.decisions import Calm, Decision, Decisions, Divergence, Listed, Recording, Replayed, Seeded
from harness.world.model.faults import Event, Fault, FaultPlan, Hold, Site
from harness.world.model.files import Tree
from harness.world.model.simulation import Actor, Ended, Launcher, Outcome, Server, Simulation

__all__ = [
    "Actor",
    "Calm",
    "Decision",
    "Decisions",
    "Divergence",
    "Ended",
    "Event",
    "Fault",
    "FaultPlan",
    "Hold",
    "Launcher",
    "Listed",
    "Outcome",
    "Recording",
    "Replayed",
    "Seeded",
    "Server",
    "Simulation",
    "Site",
    "Tree",
]
