"""The formats of the canary's report."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.canary.result import Canary
from harness.report.canary import json, junit, markdown, text

FORMATS: Mapping[str, Callable[[Canary], str]] = {
    "text": text.render,
    "json": json.render,
    "markdown": markdown.render,
    "junit": junit.render,
}
