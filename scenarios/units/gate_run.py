"""A run of the gate on parsed catalogs, without files: for tests of its course and of comparisons."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from typing import Any

from harness.gate.context import Context, SecretKnowledge
from harness.gate.engine import Base, GateRequest, run_gate
from harness.gate.events import Changed, Event, Finished, Found, Planned
from harness.gate.model import Change, Finding, Severity
from harness.gate.spawn import runtime_named
from harness.inputs.document import Document
from harness.inputs.settings import Allow, Settings
from scenarios.units.gate_fixture import PRODUCTION, RUNTIMES

TODAY = datetime.date(2026, 7, 1)
STDIO = {"type": "stdio", "command": "npx", "args": ["-y", "pkg@1.0.0"]}
REMOTE = {"type": "streamable-http", "url": "https://x.example.com/mcp"}


def as_text(tree: Any, indent: int | None = 2) -> str:
    return tree if isinstance(tree, str) else json.dumps(tree, indent=indent, ensure_ascii=False)


def context_of(
    tree: Any, roots: Any = None, *, runtimes: Iterable[str] = RUNTIMES, known: Iterable[str] | None = None
) -> Context:
    """A context of a catalog and roots, each a tree or a text; `known` are the names of secrets that exist."""
    return Context(
        Document.parse("mcp.json", as_text(tree).encode()),
        runtimes=tuple(map(runtime_named, runtimes)),
        roots_document=None if roots is None else Document.parse("roots.json", as_text(roots).encode()),
        secrets=SecretKnowledge("names", frozenset(known)) if known is not None else None,
        instance=PRODUCTION,
    )


def settings_of(*allow: Allow) -> Settings:
    """Settings of a file in which each [[allow]] takes four lines."""
    lines = tuple(range(1, 4 * len(allow), 4))
    return Settings(allow=allow, file="mcp-harness.toml", allow_lines=lines)


def events_of(
    head: Context,
    base: Context | None = None,
    *,
    settings: Settings | None = None,
    fail_on: str = "error",
    every_entry: bool = False,
) -> list[Event]:
    """The whole stream of one run."""
    request = GateRequest(
        head,
        Base("base", base) if base else None,
        settings or Settings(),
        pinned=True,
        fail_on=Severity(fail_on),
        every_entry=every_entry,
        today=TODAY,
    )
    return list(run_gate(request, lambda: 0.0))


def found(events: Iterable[Event]) -> list[Finding]:
    return [event.finding for event in events if isinstance(event, Found)]


def rules(events: Iterable[Event]) -> list[str]:
    return [finding.rule for finding in found(events)]


def finished(events: Iterable[Event]) -> Finished:
    (event,) = [event for event in events if isinstance(event, Finished)]
    return event


def changes(events: Iterable[Event]) -> list[Change]:
    return [event.change for event in events if isinstance(event, Changed)]


def planned(events: Iterable[Event]) -> list[tuple[str, str]]:
    return [(event.when, event.text) for event in events if isinstance(event, Planned)]
