"""The orchestrator around one headless runtime, as code over a world: prepare, spawn, watch, heal, retry, leave out.

Nothing here decides a rule of its own where a pure package has one: what is written, pinned, healed or repaired comes
from `prepare` and `npx`. The OAuth check before a spawn and the routing of refused credentials have their place
between `prepare_clone` and `spawn_runtime`, and in `ladder.decide`.
"""

from __future__ import annotations
