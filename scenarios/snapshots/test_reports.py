"""Each format as a person sees it, for the clean catalog and for a pull request with everything in it."""

from __future__ import annotations

import pytest

from harness.report.formats import FORMATS, load_formats
from scenarios.units.report_events import clean_run, pull_request_run, rules


@pytest.mark.parametrize("name", ["text", "json", "github", "junit", "sarif", "markdown"])
@pytest.mark.parametrize("run", [clean_run(), pull_request_run()], ids=["clean", "pull-request"])
def test_reports_look_as_they_did(name, run, snapshot):
    load_formats()
    assert FORMATS[name](run, rules) == snapshot
