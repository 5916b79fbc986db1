"""Settings shared by all tests: how many examples a property test tries, and whether they repeat.

`--hypothesis-profile nightly` tries more; `mcp-harness dev variants` loads a profile of its own.
"""

from __future__ import annotations

from hypothesis import settings

# Hypothesis itself loads a repeatable profile where it finds a CI; ours keeps to that choice.
IN_CI = settings.default is not None and settings.default.derandomize

settings.register_profile("default", max_examples=100, deadline=None, derandomize=IN_CI, print_blob=True)
settings.register_profile("nightly", max_examples=2_000, deadline=None, derandomize=False, print_blob=True)
settings.load_profile("default")
