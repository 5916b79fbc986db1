"""Run the tests of every known-bad variant in one pytest session, each in place only while its tests run.

A test that fails without any variant proves nothing when it fails under one: each that failed under a variant
runs once unpatched too, and where it does not pass there it is reported and left out.
"""

from __future__ import annotations

import contextlib
import io
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Literal, NamedTuple, cast

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

from harness.errors import CannotRunError, HarnessFault
from harness.requirements.judging import Judgement, Outcome, Ran, Verdict, classify, judge, undecided
from harness.requirements.patching import Patch, TargetMissingError
from harness.requirements.scan import Scan
from harness.requirements.variants import Variant

# A variant may turn a loop that ends into one that does not.
TEST_LIMIT_SECONDS = 60
PROPERTY_EXAMPLES = 60
VECTOR_TESTS = "scenarios/units/test_vectors.py"

# Plain asserts: rewriting would compare and print whole documents for failures that nobody reads.
PYTEST_OPTIONS = (
    "-qq",
    "--no-header",
    "--no-summary",
    "--assert=plain",
    "--tb=no",
    "--continue-on-collection-errors",
    *("-p", "no:randomly"),
    *("-p", "no:cacheprovider"),
)  # fmt: skip


class Report(NamedTuple):
    """What became of the variants.

    `broken`: tests (or test files) that fail without any variant, with the error; of the tests only those are
    looked at that would have caught a variant.
    """

    judgements: tuple[Judgement, ...]
    broken: dict[str, str]


class TestTookTooLong(BaseException):
    """A test under a variant ran past `TEST_LIMIT_SECONDS`."""

    __test__ = False


def files_to_collect(variants: Sequence[Variant], scan: Scan, vector_ids: frozenset[str], root: Path) -> list[str]:
    """The test files that hold a check of any id that these variants break, and the smoke tests."""
    ids = {identifier for variant in variants for identifier in variant.catches}
    files = {check.file for check in scan.checks if check.requirement in ids} | set(scan.smoke_files)
    if vector_ids & ids and (root / VECTOR_TESTS).is_file():
        files.add(VECTOR_TESTS)
    return sorted(files)


def run_variants(variants: Sequence[Variant], files: Sequence[str], root: Path) -> Report:
    """Judge each variant by the tests in `files` (relative to `root`)."""
    session = VariantSession(variants)
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        pytest.main([*PYTEST_OPTIONS, f"--rootdir={root}", *(str(root / file) for file in files)], plugins=[session])
    if not session.finished:
        if session.no_smoke_test:
            raise CannotRunError("no test is marked `smoke`: nothing tells a caught bug from a broken harness")
        raise HarnessFault(f"the tests of the variants could not be run: {output.getvalue()[-2000:]}")
    return Report(tuple(session.judgements), session.broken)


class VariantSession:
    """The pytest plugin: takes the place of the loop that runs each collected test once."""

    def __init__(self, variants: Sequence[Variant]) -> None:
        self.variants = variants
        self.judgements: list[Judgement] = []
        self.broken: dict[str, str] = {}
        self.finished = False
        self.no_smoke_test = False
        self._smoke: list[pytest.Item] = []
        self._checks: list[tuple[pytest.Item, frozenset[str]]] = []
        self._sound: set[pytest.Item] = set()
        self._worst = Outcome.PASSED
        self._error = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Register the marks, and make property tests short and repeatable."""
        config.addinivalue_line("markers", "requirement(*ids): the ids of the manifest that this test checks")
        config.addinivalue_line("markers", "smoke: must still pass while a known-bad variant is in place")
        settings.register_profile(
            "variants",
            max_examples=PROPERTY_EXAMPLES,
            phases=(Phase.explicit, Phase.generate),
            derandomize=True,
            database=None,
            deadline=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        settings.load_profile("variants")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Remember the files that cannot be collected; the others run."""
        if report.failed:
            self.broken[report.nodeid] = f"cannot be collected: {report.longreprtext.strip().splitlines()[-1:]}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        """Note how the phase ended; leave out the traceback that a report of pytest's own would render."""
        raised = call.excinfo.value if call.excinfo is not None else None
        phase = cast("Literal['setup', 'call', 'teardown']", call.when)
        outcome = classify(raised, phase)
        if outcome is not Outcome.PASSED and self._worst in (
            Outcome.PASSED,
            Outcome.ASSERTED,
            Outcome.SKIPPED,
        ):
            self._worst = max(self._worst, outcome, key=_SEVERITY.index)
            self._error = self._error or f"{type(raised).__name__}: {str(raised).strip()[:200]}"
        return pytest.TestReport(
            item.nodeid,
            item.location,
            {},
            "passed" if raised is None else "skipped" if outcome is Outcome.SKIPPED else "failed",
            None,
            phase,
            duration=call.duration,
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the smoke tests unpatched, then for each variant the tests that could catch it."""
        wanted = {identifier for variant in self.variants for identifier in variant.catches}
        for item in session.items:
            ids = frozenset(str(argument) for mark in item.iter_markers("requirement") for argument in mark.args)
            if ids & wanted:
                self._checks.append((item, ids))
            if item.get_closest_marker("smoke") is not None and self._is_sound(item):
                self._smoke.append(item)
        self.no_smoke_test = not self._smoke
        if self.no_smoke_test:
            return True
        # Property tests last: they need not run once an assertion has failed for their ids.
        self._checks.sort(key=lambda check: is_hypothesis_test(getattr(check[0], "obj", None)))
        self.judgements = [self._judge(variant) for variant in self.variants]
        self.finished = True
        return True

    def _judge(self, variant: Variant) -> Judgement:
        bug = (variant.replacement.__doc__ or "").strip().partition("\n")[0]
        judgement = Judgement(variant.name, variant.target, bug, variant.catches, Verdict.TARGET_MISSING)
        try:
            patch = Patch(variant)
        except TargetMissingError as error:
            return judgement._replace(problem=str(error))
        runs: list[Ran] = []
        proven = False
        while not proven:
            try:
                patch.apply()
                smoke = [self._run(item, frozenset()) for item in self._smoke]
                failed, runs = self._run_until_decided(variant.catches)
            finally:
                patch.undo()
            # Only after `undo`; every broken test is found, so that the next round leaves all of them out.
            proven = not [item for item in failed if not self._is_sound(item)]
        verdict, survived, crashed = judge(variant.catches, runs, smoke)
        return judgement._replace(
            verdict=verdict,
            survived=survived,
            untested=tuple(sorted(set(survived).difference(*(ids for _, ids in self._checks)))),
            crashed=crashed,
            smoke=tuple(f"{ran.test}: {ran.error}" for ran in smoke if ran.outcome is not Outcome.PASSED),
            tests=len(runs),
        )

    def _run_until_decided(self, catches: tuple[str, ...]) -> tuple[list[pytest.Item], list[Ran]]:
        """The tests that did not pass, and all runs."""
        failed: list[pytest.Item] = []
        runs: list[Ran] = []
        open_ids = frozenset(catches)
        for item, ids in self._checks:
            if ids & open_ids and item.nodeid not in self.broken:
                runs.append(self._run(item, ids))
                failed += [item] if runs[-1].outcome is not Outcome.PASSED else []
                open_ids = undecided(catches, runs)
            if not open_ids:
                break
        return failed, runs

    def _is_sound(self, item: pytest.Item) -> bool:
        """Whether a test passes without any variant, which is asked of it once."""
        if item not in self._sound and item.nodeid not in self.broken:
            ran = self._run(item, frozenset())
            if ran.outcome is Outcome.PASSED:
                self._sound.add(item)
            else:
                self.broken[item.nodeid] = ran.error
        return item in self._sound

    def _run(self, item: pytest.Item, ids: frozenset[str]) -> Ran:
        self._worst, self._error = Outcome.PASSED, ""
        with _time_limit():
            # Without a next item every fixture is torn down: nothing made under a variant outlives it.
            runtestprotocol(item, log=False, nextitem=None)
        item._report_sections.clear()
        return Ran(item.nodeid, ids, self._worst, self._error)


_SEVERITY = [Outcome.PASSED, Outcome.SKIPPED, Outcome.ASSERTED, Outcome.CRASHED]


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> Any:
        raise TestTookTooLong(f"more than {TEST_LIMIT_SECONDS} s")

    if not hasattr(signal, "setitimer"):  # no such timer on Windows; the variants are then run without a limit
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, TEST_LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
