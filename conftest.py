"""Settings shared by all tests: how many examples a property test tries, whether they repeat, and what waits for night.

`--hypothesis-profile nightly` tries more; `mcp-harness dev variants` loads a profile of its own. Tests with the mark
`nightly` take long: `-m nightly` chooses them, and without that they are left out, whatever else is chosen.
"""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings

# Hypothesis itself loads a repeatable profile where it finds a CI; ours keeps to that choice.
IN_CI = settings.default is not None and settings.default.derandomize

settings.register_profile("default", max_examples=100, deadline=None, derandomize=IN_CI, print_blob=True)
settings.register_profile("nightly", max_examples=2_000, deadline=None, derandomize=False, print_blob=True)
settings.load_profile("default")


def pytest_configure() -> None:
    """Whoever runs the tests in the background may have them ignore ^C, and with them all that they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, unless it was asked for."""
    if "nightly" in config.option.markexpr:
        return
    late = [item for item in items if item.get_closest_marker("nightly") is not None]
    if late:
        items[:] = [item for item in items if item.get_closest_marker("nightly") is None]
        config.hook.pytest_deselected(items=late)
