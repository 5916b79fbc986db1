"""The pytest plugin: `pytest mcp.json` judges a catalog, `pytest SCENARIO.toml` plays a scenario on its runtimes.

Of a catalog each entry is a test, and the file as a whole; of a scenario each runtime. Either is collected only when
it is named on the command line; nothing is imported before.
"""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from harness.gate.model import Finding, Severity
    from harness.scenario.model import Scenario

LEVELS = ("error", "warning", "note")
WHOLE_FILE = "the file"
SCENARIO_MARK = re.compile(r"^schema[ \t]*=", re.MULTILINE)
TIERS = ("model", "process", "real")
OPTIONS = {
    "--mcp-base": "judge what changes against a file or a git revision",
    "--mcp-roots": "the agent roots (default: roots.json beside the catalog)",
    "--mcp-known-secrets": "names of the secrets that exist, one a line",
    "--mcp-tools": "tool names by server (JSON)",
}


class EntryFindingsError(Exception):
    """Findings at or above the level that fails a test; the message is what the report shows."""


class ScenarioFailedError(AssertionError):
    """What was expected was not seen; the message is the timeline."""


class ScenarioBrokenError(Exception):
    """A program of the run raised, or the harness is at fault; the message is the timeline."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The gate's options, each with the meaning of its counterpart of `mcp-harness gate`."""
    group = parser.getgroup("mcp-harness", "gate on an MCP catalog named on the command line")
    for option, text in OPTIONS.items():
        group.addoption(option, default=None, help=text)
    group.addoption("--mcp-fail-on", choices=LEVELS, default=None, help="what fails a test (default: error)")
    group.addoption("--mcp-runtime", action="append", default=[], help="claude, codex or pi, NAME@VERSION, or all")
    group.addoption(
        "--mcp-tier",
        action="append",
        default=[],
        choices=TIERS,
        help="what plays a scenario: model (default), process or real; repeatable, one test for each",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CatalogFile | ScenarioFile | None:
    """Take a catalog or a scenario that the user named; one that merely lies in a test folder is left alone."""
    if file_path.suffix not in (".json", ".toml") or not is_named(file_path, parent.session):
        return None
    if file_path.suffix == ".json":
        return CatalogFile.from_parent(parent, path=file_path)
    return ScenarioFile.from_parent(parent, path=file_path) if looks_like_scenario(file_path) else None


def looks_like_scenario(path: Path) -> bool:
    """Whether a TOML file begins as scenarios do: with the version of their format."""
    try:
        return SCENARIO_MARK.search(path.read_text(encoding="utf-8", errors="replace")) is not None
    except OSError:
        return False


def is_named(path: Path, session: pytest.Session) -> bool:
    """Whether an argument names the file. Pytest drops one that lies in a folder which is named as well."""
    if session.isinitpath(path):
        return True
    beside, resolved = session.config.invocation_params.dir, path.resolve()
    return any((beside / argument.partition("::")[0]).resolve() == resolved for argument in session.config.args)


class CatalogFile(pytest.File):
    """A catalog named on the command line."""

    def collect(self) -> Iterable[pytest.Item]:
        """One item for the file, then one in catalog order for each entry that was judged or has a finding."""
        from harness.report.safety import visible

        findings, places, fail_on = self._judge()
        by_entry: dict[str | None, list[Finding]] = {None: []}
        for finding in findings:
            by_entry.setdefault(finding.entry, []).append(finding)
        tests: list[tuple[str | None, str, int]] = [(None, WHOLE_FILE, 1)]
        tests += [
            (entry, visible(entry) or '""', line_number)
            for entry, (touched, line_number) in places.items()
            if touched or entry in by_entry
        ]
        for entry, name, line_number in tests:
            yield EntryItem.from_parent(
                self, name=name, findings=by_entry.get(entry, []), fail_on=fail_on, line_number=line_number
            )

    def _judge(self) -> tuple[list[Finding], dict[str, tuple[bool, int]], Severity]:
        """The findings; for each entry whether it was judged and its line; and the level that fails."""
        from harness.errors import HarnessError
        from harness.gate.assemble import GateOptions, assemble
        from harness.gate.engine import run_gate
        from harness.gate.events import Found, Judged
        from harness.report.masking import masked

        def option(name: str) -> str | None:
            value: str | None = self.config.getoption(f"--mcp-{name}")
            return value

        options = GateOptions(
            catalog=str(self.path),
            base=option("base"),
            roots=option("roots"),
            runtimes=tuple(self.config.getoption("--mcp-runtime")),
            known_secrets=option("known-secrets"),
            tools=option("tools"),
            fail_on=option("fail-on"),
        )
        try:
            request = assemble(options, today=datetime.datetime.now(datetime.UTC).date()).request
            events = masked(list(run_gate(request, lambda: 0.0)))
        except HarnessError as error:
            raise self.CollectError(str(error)) from None
        findings = [event.finding for event in events if isinstance(event, Found)]
        judgements = [event.judgement for event in events if isinstance(event, Judged)]
        places = {judged.entry: (judged.touched, judged.place.line) for judged in judgements}
        return findings, places, request.fail_on


class EntryItem(pytest.Item):
    """One entry; it fails when a finding that no allowance covers reaches the level."""

    def __init__(self, *, findings: list[Finding], fail_on: Severity, line_number: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.findings, self.fail_on, self.line_number = findings, fail_on, line_number

    def runtest(self) -> None:
        """Raise for the findings that count; keep the others for the report."""
        rest = [line(finding) for finding in self.findings if not self._counts(finding)]
        if rest:
            self.add_report_section("call", "mcp-harness", "\n".join(rest))
        failing = [line(finding) for finding in self.findings if self._counts(finding)]
        if failing:
            raise EntryFindingsError("\n".join(failing))

    def _counts(self, finding: Finding) -> bool:
        return finding.allowance is None and finding.severity.rank <= self.fail_on.rank

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The findings themselves instead of a traceback."""
        if isinstance(excinfo.value, EntryFindingsError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where an editor finds the entry."""
        return self.path, self.line_number - 1, f"mcp-harness: {self.name}"


class ScenarioFile(pytest.File):
    """A scenario named on the command line."""

    def collect(self) -> Iterable[pytest.Item]:
        """One item for each runtime that it names and each tier asked for, marked with the ids that it decides."""
        from harness.errors import HarnessError
        from harness.gate.spawn import runtime_named
        from harness.scenario.reading import load_scenario

        try:
            scenario = load_scenario(self.path)
        except HarnessError as error:
            raise self.CollectError(str(error)) from None
        tiers = dict.fromkeys(self.config.getoption("--mcp-tier") or TIERS[:1])
        for name, tier in itertools.product(scenario.runtimes, tiers):
            label = runtime_named(name).label
            shown = label if tier == TIERS[0] else f"{label}-{tier}"
            item: ScenarioItem = ScenarioItem.from_parent(self, name=shown, scenario=scenario, runtime=label, tier=tier)
            if scenario.requirements:
                item.add_marker(pytest.mark.requirement(*scenario.requirements))
            yield item


class ScenarioItem(pytest.Item):
    """A scenario on one runtime at one tier."""

    def __init__(self, *, scenario: Scenario, runtime: str, tier: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.scenario, self.runtime, self.tier = scenario, runtime, tier

    def runtest(self) -> None:
        """Play it in the calmest order; raise unless its verdict lets a run pass."""
        from harness.report.masking import mask
        from harness.scenario.production import play
        from harness.scenario.timeline import CALM, timeline
        from harness.scenario.verdicts import BROKEN

        report = play(self.scenario, self.runtime, tier=self.tier)
        code = report.verdict.exit_code
        if code == 0:
            return
        lines = timeline(report, real_seconds=None, order=CALM, exit_code=code)
        told = "\n".join(mask(each) for each in lines)
        raise ScenarioBrokenError(told) if report.verdict in BROKEN else ScenarioFailedError(told)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The timeline instead of a traceback."""
        from harness.errors import HarnessError

        if isinstance(excinfo.value, (ScenarioFailedError, ScenarioBrokenError, HarnessError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where an editor finds it."""
        return self.path, 0, f"mcp-harness: {self.scenario.id} on {self.name}"


def line(finding: Finding) -> str:
    """One finding as one line, with nothing in it that could break the line."""
    from harness.report.safety import visible

    return visible(f"{finding.place} {finding.severity} {finding.rule} {finding.message} Fix: {finding.fix}")
