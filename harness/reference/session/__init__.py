"""The orchestrator around one headless runtime, as code over a world: prepare, spawn, watch, heal, retry, leave out.

Nothing here decides a rule of its own where a pure package has one: what is written, pinned, healed or repaired comes
from `prepare` and `npx`. Before a process is started `gate` asks who has to be authorized, after a failed handshake
`failed_handshakes` does, by the same predicate; `routes` and `ladder` decide what becomes of each server.
"""

from __future__ import annotations
