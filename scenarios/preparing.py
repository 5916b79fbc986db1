"""Shared by the tests of a preparation: one call, and the written file read back independently of its writer."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from fake_runtimes import runtimes
from fake_runtimes.loaded import Loaded
from fake_runtimes.profile import load_profile
from harness.preparation import Values, Written, written_config
from harness.reference.prepare.failures import PreparationError
from harness.reference.prepare.request import Runtime
from harness.reference.secrets.placeholders import MissingVariableError
from harness.reference.selection.zimmer import Instance

CLONE = "/clones/example"
CACHE = f"{CLONE}/.npm-cache"
PINNED = {"claude": "claude-2.1.268", "codex": "codex-0.146.0", "pi": "pi-0.84.1+2.32.1"}
FILES = {"claude": ".mcp.json", "codex": ".codex/config.toml", "pi": ".mcp.json"}
PRODUCTION = Instance("production", "https://zimmer.example.com", "production-key")
STAGING = Instance("staging", "https://staging.zimmer.example.com", "staging-key")
SELF_SESSION = "zimmer-self-session"

NPX = {"type": "stdio", "command": "npx", "args": ["-y", "some-package"]}
LOCAL_BINARY = {"type": "stdio", "command": "/usr/local/bin/thing"}
REMOTE = {"type": "streamable-http", "url": "https://a.test/mcp"}


def prepared(runtime: Runtime, names: list[str], tree: dict[str, Any], values: Values | None = None, **more) -> Written:
    """One preparation in production with the given secrets."""
    more = {"instance": PRODUCTION, "clone": CLONE, **more}
    return written_config(runtime, names, tree, values={} if values is None else values, **more)


def goes_through(
    runtime: Runtime, names: list[str], tree: dict[str, Any], values: Values | None = None, **more: Any
) -> Written:
    """One preparation that must not fail: a missing variable is the test's failure, not an error of its own."""
    try:
        return prepared(runtime, names, tree, values, **more)
    except (PreparationError, MissingVariableError) as error:
        raise AssertionError(f"the preparation failed: {error}") from error


def again(
    runtime: Runtime, names: list[str], tree: dict[str, Any], before: Written, values: Values | None = None, **more
):
    """The next preparation of the same clone, in place."""
    assert before.text is not None
    more.setdefault("earlier", before.prepared.record)
    return prepared(runtime, names, tree, values, files={before.path: before.text}, **more)


def document(written: Written) -> dict[str, Any]:
    """The written file, parsed."""
    assert written.text is not None
    content: dict[str, Any] = (
        tomllib.loads(written.text) if written.path.endswith(".toml") else json.loads(written.text)
    )
    return content


def servers(written: Written) -> dict[str, Any]:
    """The server entries of the written file."""
    content = document(written)
    table: dict[str, Any] = content["mcp_servers" if written.path.endswith(".toml") else "mcpServers"]
    return table


def loaded(runtime: Runtime, written: Written) -> Loaded:
    """What the pinned runtime's own reader makes of the file."""
    return runtimes.read(load_profile(PINNED[runtime]), written.text, {})
