"""Tiny end-to-end runs that pass whichever known-bad variant is in place.

They tell a caught bug from a broken harness.
"""

from __future__ import annotations

import pytest

from harness.reference.catalog.catalog import read_catalog

PLAIN_SERVER = {
    "type": "stdio",
    "command": "server",
    "args": ["--flag"],
    "title": "Plain",
    "description": "A plain server.",
}


@pytest.mark.smoke
def test_a_catalog_with_one_plain_server_is_read():
    catalog = read_catalog({"plain": PLAIN_SERVER})
    assert "plain" in tuple(catalog.names)
