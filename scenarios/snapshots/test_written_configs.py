"""The config files that the shipped catalog becomes, all of its servers in one session: for a person to read."""

from __future__ import annotations

import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from harness.preparation import RUNTIMES
from scenarios.preparing import prepared, servers
from scenarios.shipped import shipped_catalog


class ConfigFile(SingleFileSnapshotExtension):
    """One readable text file a snapshot."""

    _write_mode = WriteMode.TEXT


class JsonFile(ConfigFile):
    """A `.mcp.json`."""

    file_extension = "json"


class TomlFile(ConfigFile):
    """A `config.toml`."""

    file_extension = "toml"


@pytest.mark.requirement("prepare-claude-json-format", "prepare-codex-toml-format", "prepare-secrets-joined-at-prepare")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_shipped_catalog_as_it_is_written(runtime, snapshot):
    tree = shipped_catalog()
    names = [name for name in tree if name != "$schema"]
    written = prepared(runtime, names, tree, lambda name: f"value-of-{name}")
    assert written.warnings == ()
    assert written.text == snapshot(extension_class=TomlFile if runtime == "codex" else JsonFile)


@pytest.mark.requirement("prepare-fixture-catalog-size")
def test_the_shipped_catalog_mirrors_the_kind_of_the_real_one():
    tree = {name: entry for name, entry in shipped_catalog().items() if name != "$schema"}
    assert len(tree) == 16
    assert [name for name, entry in tree.items() if entry.get("default_in_roots")] == ["playwright-custom"]
    assert tree["playwright-custom"]["default_in_roots"] == ["zimmer"]
    assert {"context7", "linear"} <= set(tree)
    grown = {**tree, "seventeenth": {"type": "sse", "url": "https://a.test/sse"}}
    assert "seventeenth" in servers(prepared("claude", ["seventeenth"], grown))
