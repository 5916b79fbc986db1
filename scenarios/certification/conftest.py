"""Tests that run real programs for long are chosen by `-m nightly`; without that they are left out."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark of this directory."""
    config.addinivalue_line("markers", "nightly: runs real programs for more than a few seconds; chosen by -m nightly")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for."""
    if "nightly" in config.option.markexpr:
        return
    late = [item for item in items if item.get_closest_marker("nightly") is not None]
    if late:
        items[:] = [item for item in items if item not in late]
        config.hook.pytest_deselected(items=late)
