"""The MCP section of get_configs as an agent reads it."""

from __future__ import annotations

import pytest

from harness.reference.catalog.catalog import read_catalog
from harness.reference.readiness.probe import judge_all
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.surfaces.roster import mcp_section
from scenarios.shipped import shipped_catalog


@pytest.mark.requirement("offer-get-configs-item", "offer-roster-consequence-honest")
def test_the_section_of_the_shipped_catalog_without_any_secret(snapshot):
    catalog = read_catalog(shipped_catalog())
    statuses = judge_all(catalog, SecretsLoader().resolution, lambda _: None)
    assert mcp_section(catalog, statuses) == snapshot
