"""The files that the site serves as they are."""

from __future__ import annotations

from harness.reference.catalog.schema import snapshot_text

SCHEMA_PATH = "/mcp.schema.json"


def static_files() -> dict[str, str]:
    """Path to text. The schema is a convenience copy for offline validation (catalog-snapshot-served)."""
    return {SCHEMA_PATH: snapshot_text()}
