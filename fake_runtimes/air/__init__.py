"""The `air` program as pure functions: resolving a catalog and translating entries for a runtime.

Standard library alone; no clock, no files, no environment. What it does follows measurements of AIR 0.3.0
and readings of its later adapters; where versions differ there is a switch on `prepare`:

- `keeps_local_entries`: newer AIR leaves a same-named entry that it did not write; 0.3.0 overwrites it.
- `codex_adapter`: `checked` (default) makes a surviving `${...}` fail on every runtime, as the documents
of the
  system promise; `real` forwards variable names to Codex and checks nothing, as the real adapter does.

`prepare` answers both with the files that AIR leaves on disk and with `entries`, the translated servers as
data.
Zimmer's Codex writer takes the data: AIR's own TOML has lost the user's comments, and there must be one
way only.
"""

from __future__ import annotations

from .program import AirResult as AirResult
from .program import activated as activated
from .program import prepare as prepare
from .program import resolve as resolve
