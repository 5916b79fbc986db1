"""What Zimmer writes for a runtime before a spawn: pure functions from a request to file texts.

`pipeline.prepare` is the whole; `argv`, `spawn` and `failures` are what stands around it when `air` and the
agent are started. Nothing here reads or writes a file, and nothing that is handed in is changed.
"""

from __future__ import annotations
