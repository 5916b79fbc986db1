"""The tiers: at what fidelity a scenario can be played."""

from __future__ import annotations

MODEL, PROCESS, REAL = "model", "process", "real"
TIERS = (MODEL, PROCESS, REAL)
