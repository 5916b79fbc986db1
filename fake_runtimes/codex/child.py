"""The environment of a stdio child of Codex."""

from __future__ import annotations

from collections.abc import Mapping

from fake_runtimes.codex.config import env_vars
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.profile import CodexProfile


def child_environment(server: LoadedServer, environment: Mapping[str, str], profile: CodexProfile) -> dict[str, str]:
    """A fixed list of variables, the names in `env_vars`, then the entry's `env` on top; nothing else.

    An unset name is skipped without a word. The two directories that the program puts before an inherited
    PATH are left out here: they differ with every run.
    """
    inherited = {
        name: environment[name] for name in (*profile.child_environment, *env_vars(server.raw)) if name in environment
    }
    return {**inherited, **server.env}
