"""The formats of the canary's report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from harness.canary.result import Canary
from harness.report.canary import json, junit, markdown, text

Formats = Mapping[str, Callable[[Canary], str]]


def formats(*, details: bool = False) -> Formats:
    """What renders each; `details`: long lists stand in the text too. The others hold them anyway."""
    return {
        "text": partial(text.render, details=details),
        "json": json.render,
        "markdown": markdown.render,
        "junit": junit.render,
    }


FORMATS = formats()
