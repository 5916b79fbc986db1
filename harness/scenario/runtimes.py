"""The programs of the fake runtimes, by the name of their command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import fake_runtimes.claude.session as claude
import fake_runtimes.codex.session as codex
import fake_runtimes.pi.session as pi


def runtime_programs() -> Mapping[str, Callable[[Any, Any], Any]]:
    """From profile and plan to a program. Looked up at each call, so that a known-bad variant takes effect."""
    return {"claude": claude.program, "codex": codex.program, "pi": pi.program}
