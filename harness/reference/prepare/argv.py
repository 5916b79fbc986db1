"""The argument list of `air prepare`."""

from __future__ import annotations

from collections.abc import Sequence

from harness.reference.prepare.request import Runtime

FIXED_FLAGS = ("--no-subagent-merge", "--without-defaults")
"""AIR must not put back what the session removed (prepare-without-defaults, selection-without-defaults)."""


def prepare_argv(
    runtime: Runtime,
    clone: str,
    *,
    chosen: Sequence[str] = (),
    plugin_servers: Sequence[str] = (),
    root: str | None = None,
    skills: Sequence[str] = (),
    hooks: Sequence[str] = (),
    plugins: Sequence[str] = (),
) -> tuple[str, ...]:
    """`prepare <runtime> --target <clone> …`, servers as chosen then bundled by plugins, each once."""
    servers = dict.fromkeys((*chosen, *plugin_servers))
    return (
        "prepare",
        runtime,
        "--target",
        clone,
        *FIXED_FLAGS,
        *(("--root", root) if root else ()),
        *repeated("--skill", skills),
        *repeated("--mcp-server", servers),
        *repeated("--hook", hooks),
        *repeated("--plugin", plugins),
    )


def repeated(flag: str, values: Sequence[str] | dict[str, None]) -> tuple[str, ...]:
    """One flag for each value."""
    return tuple(word for value in values for word in (flag, value))
