"""Whether Codex reads a project's `.codex/config.toml`."""

from __future__ import annotations

from typing import NamedTuple

from fake_runtimes.profile import CodexProfile

EXEC = "exec"
WRITABLE_SANDBOXES = ("danger-full-access", "workspace-write")


class Trust(NamedTuple):
    """`used`: the project's file counts. `persisted`: the user's config now records the directory as trusted."""

    used: bool
    persisted: bool = False
    warning: str = ""


def judge(
    profile: CodexProfile,
    *,
    command: str = EXEC,
    record: str | None = None,
    sandbox: str | None = None,
    flag: bool = False,
) -> Trust:
    """Trust of a project for one command.

    `record` is the user's `trust_level` for the directory, `flag` is `exec --trust`. A version may trust on
    the fly what it may write to, and notes that down in the user's file.
    """
    if record == "trusted":
        return Trust(used=True)
    if command != EXEC:
        return Trust(used=False)
    if flag and profile.trust_flag:
        return Trust(used=True, persisted=True)
    if record is None and profile.trusts_writable_runs and sandbox in WRITABLE_SANDBOXES:
        return Trust(used=True, persisted=True)
    return Trust(used=False, warning=profile.untrusted_warning)
