"""Operations of the language-neutral test vectors."""

from __future__ import annotations

from collections.abc import Collection

from harness.cli.explaining.kind import Kind, labelled, paragraphs, text_of
from harness.cli.explaining.requirements import requirement_line
from harness.vectors.loading import load_operations, registered


def ids() -> Collection[str]:
    """All of them."""
    load_operations()
    return registered()


def explanation(name: str) -> str:
    """What it answers for."""
    it = registered()[name]
    lines = labelled("does", " ".join((it.answer.__doc__ or "").split()))
    lines += paragraphs("rules", map(requirement_line, it.requirements))
    return text_of(f"{name}  operation of the test vectors", lines, {"more": "mcp-harness dev vectors list"})


VECTOR = Kind("operation of test vectors", ids, explanation)
