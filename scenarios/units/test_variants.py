"""The known-bad variants: each is caught by the checks of the rules it breaks, and the runner tells when one is not."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from harness.requirements.judging import Outcome, Ran, Verdict, classify, judge, undecided
from harness.requirements.patching import Patch, TargetMissingError
from harness.requirements.variants import VARIANTS, Variant
from scenarios.report_schemas import validate

JOBS = 2
LIMIT_SECONDS = 900

RULES = """
    import functools

    def double(number):
        return 2 * number

    def triple(number):
        return 3 * number

    class Box:
        @property
        def size(self):
            return 1

        @staticmethod
        def kind():
            return "box"

    @functools.cache
    def remembered(number):
        return double(number)
"""

TESTS = """
    import pytest
    from hypothesis import given, strategies as st
    from scenarios.rules import Box, double, remembered, triple

    @pytest.mark.smoke
    def test_smoke():
        assert triple(1) == 3

    @pytest.mark.requirement("toy-double")
    @given(st.integers())
    def test_double(number):
        assert double(number) == number + number

    @pytest.mark.requirement("toy-sum")
    def test_sum():
        assert double(2) + 0 == 4

    @pytest.mark.requirement("toy-refuses")
    def test_refuses():
        with pytest.raises(TypeError):
            double(None)

    @pytest.mark.requirement("toy-box")
    def test_box():
        assert (Box().size, Box.kind()) == (1, "box")

    @pytest.mark.requirement("toy-remembered")
    def test_remembered():
        assert remembered(2) == 4

    @pytest.fixture
    def four():
        assert double(2) == 4
        return 4

    @pytest.mark.requirement("toy-fixture")
    def test_fixture(four):
        assert four == 4

    @pytest.mark.requirement("toy-broken")
    def test_broken():
        assert triple(2) == 5

    @pytest.mark.requirement("toy-half-broken")
    def test_broken_half():
        assert double(3) == 7

    @pytest.mark.requirement("toy-half-broken")
    def test_sound_half():
        assert double(3) == 6

    @pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.requirement("toy-parameter")), 2])
    def test_parameter(number):
        assert double(number) < 3 or number == 2
"""

# Variant, target, the ids it breaks, the body, the verdict that is due, and what the report must hold.
TOY_VARIANTS = [
    ("caught", "double", ["toy-double", "toy-remembered"], "number: 3 * number", "caught", {"survived": []}),
    ("not_raising", "double", ["toy-refuses"], "number: 0", "caught", {}),
    ("of_a_parameter", "double", ["toy-parameter"], "number: 9", "caught", {}),
    ("of_a_property", "Box.size", ["toy-box"], "self: 2", "caught", {}),
    ("of_a_static_method", "Box.kind", ["toy-box"], ": 'bag'", "caught", {}),
    ("of_a_cached_function", "remembered", ["toy-remembered"], "number: 5", "caught", {}),
    (
        "harmless",
        "double",
        ["toy-sum"],
        "number: number + number",
        "survived",
        {"survived": ["toy-sum"], "untested": []},
    ),
    (
        "half_caught",
        "double",
        ["toy-sum", "toy-none"],
        "number: 3",
        "survived",
        {"survived": ["toy-none"], "untested": ["toy-none"]},
    ),
    ("crashing", "double", ["toy-sum"], "number: {}[number]", "crashed", {"crashed": {"toy-sum": "KeyError: 2"}}),
    ("in_a_fixture", "double", ["toy-fixture"], "number: 3", "crashed", {}),
    ("with_a_broken_test", "double", ["toy-broken"], "number: 3", "survived", {"survived": ["toy-broken"]}),
    ("beside_a_broken_test", "double", ["toy-half-broken"], "number: 3", "caught", {"tests": 1}),
    ("harmless_beside_a_broken_test", "double", ["toy-half-broken"], "number: number + number", "survived", {}),
    ("smoking", "triple", ["toy-sum"], "number: 4", "smoke failed", {}),
    ("calling_the_rule_through_its_module", "double", ["toy-sum"], "number: rules.double(number) + 1", "caught", {}),
    ("without_target", "quadruple", ["toy-sum"], "number: 4", "target missing", {}),
]


@pytest.fixture(scope="module")
def toy_report(tmp_path_factory):
    """What the command says of a small source tree with one variant of each fate."""
    root = tmp_path_factory.mktemp("toy")
    variants = ["from harness.requirements.variants import variant", "from scenarios import rules"]
    for name, target, catches, body, _, _ in TOY_VARIANTS:
        variants += [f"{name} = lambda {body}", f"{name}.__name__ = {name!r}"]
        variants += [f"variant('scenarios.rules:{target}', catches={tuple(catches)})({name})"]
    variants += ["foreign = lambda value: ''", "foreign.__name__ = 'foreign'"]
    variants += ["variant('json:dumps', catches=('toy-sum',))(foreign)"]
    files = {
        "pytest.ini": "[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n",
        "scenarios/__init__.py": "",
        "scenarios/rules.py": textwrap.dedent(RULES),
        "scenarios/units/__init__.py": "",
        "scenarios/units/test_rules.py": textwrap.dedent(TESTS),
        "scenarios/units/test_not_importable.py": (
            "import pytest\nimport no_such_module\n\n@pytest.mark.requirement('toy-sum')\ndef test_it(): pass\n"
        ),
        "scenarios/variants/__init__.py": "",
        "scenarios/variants/toy.py": "\n".join(variants),
        "scenarios/variants/half_written.py": "from scenarios.rules import not_there\n",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return run_variants("--root", str(root), "toy.*", "--jobs", "2")


def run_variants(*arguments: str) -> dict[str, Any]:
    """The JSON report of `dev variants` in a process of its own: a session of pytest cannot hold another."""
    command = [sys.executable, "-m", "harness.cli", "dev", "variants", "--format", "json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert done.returncode in (0, 1), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    validate("variants-report", report)
    assert report["exit_code"] == done.returncode
    return report


def test_every_known_bad_variant_is_caught_by_the_checks_of_the_rules_it_breaks():
    report = run_variants("--jobs", str(JOBS))
    missed = [
        f"{each['verdict']}: {each['name']} {each['survived'] or each['crashed'] or each['smoke'] or each['problem']}"
        for each in report["variants"]
        if each["verdict"] != Verdict.CAUGHT
    ]
    assert missed == []
    assert report["broken"] == {}
    assert report["exit_code"] == 0
    assert len(report["variants"]) > 0


@pytest.mark.parametrize(("name", "verdict", "holds"), [(row[0], row[4], row[5]) for row in TOY_VARIANTS])
def test_the_runner_tells_what_became_of_a_variant(toy_report, name, verdict, holds):
    (judged,) = (each for each in toy_report["variants"] if each["name"] == f"toy.{name}")
    assert judged["verdict"] == verdict
    assert {key: judged[key] for key in holds} == holds


def test_a_target_outside_the_project_is_a_missing_target(toy_report):
    (judged,) = (each for each in toy_report["variants"] if each["name"] == "toy.foreign")
    assert judged["verdict"] == Verdict.TARGET_MISSING
    assert "json:dumps" in judged["problem"]


def test_one_variant_that_is_not_caught_fails_the_whole_run_worst_first(toy_report):
    assert toy_report["exit_code"] == 1
    verdicts = [each["verdict"] for each in toy_report["variants"]]
    assert verdicts == sorted(verdicts, key=list(Verdict).index)
    assert toy_report["counts"]["caught"] == 8


def test_tests_that_fail_without_any_variant_are_named_and_prove_nothing(toy_report):
    assert set(toy_report["broken"]) == {
        "scenarios/units/test_rules.py::test_broken",
        "scenarios/units/test_rules.py::test_broken_half",
        "scenarios/units/test_not_importable.py",
        "scenarios.variants.half_written",
    }


PHASES = [
    (None, "call", Outcome.PASSED),
    (AssertionError(), "call", Outcome.ASSERTED),
    (AssertionError(), "setup", Outcome.CRASHED),
    (AssertionError(), "teardown", Outcome.CRASHED),
    (KeyError("x"), "call", Outcome.CRASHED),
    (ExceptionGroup("flaky", [AssertionError()]), "call", Outcome.ASSERTED),
    (ExceptionGroup("flaky", [ExceptionGroup("inner", [AssertionError()])]), "call", Outcome.ASSERTED),
    (ExceptionGroup("flaky", [AssertionError(), KeyError("x")]), "call", Outcome.CRASHED),
    (pytest.fail.Exception("did not raise"), "call", Outcome.ASSERTED),
    (pytest.skip.Exception("not here"), "call", Outcome.SKIPPED),
]


@pytest.mark.parametrize(("raised", "phase", "outcome"), PHASES)
def test_only_an_assertion_in_the_body_of_a_test_counts_as_one(raised, phase, outcome):
    assert classify(raised, phase) is outcome


def ran(outcome: Outcome, *ids: str) -> Ran:
    return Ran("test", frozenset(ids), outcome, "the error")


PASSED = [ran(Outcome.PASSED)]
JUDGED = [
    (["a"], [ran(Outcome.ASSERTED, "a")], PASSED, Verdict.CAUGHT),
    (["a", "b"], [ran(Outcome.ASSERTED, "a", "b")], PASSED, Verdict.CAUGHT),
    (["a", "b"], [ran(Outcome.ASSERTED, "a"), ran(Outcome.PASSED, "b")], PASSED, Verdict.SURVIVED),
    (["a"], [], PASSED, Verdict.SURVIVED),
    (["a"], [ran(Outcome.SKIPPED, "a")], PASSED, Verdict.SURVIVED),
    (["a"], [ran(Outcome.CRASHED, "a")], PASSED, Verdict.CRASHED),
    (["a"], [ran(Outcome.CRASHED, "a"), ran(Outcome.ASSERTED, "a")], PASSED, Verdict.CAUGHT),
    (["a", "b"], [ran(Outcome.CRASHED, "a"), ran(Outcome.ASSERTED, "b")], PASSED, Verdict.CRASHED),
    (["a"], [ran(Outcome.ASSERTED, "a")], [ran(Outcome.ASSERTED)], Verdict.SMOKE_FAILED),
    (["a"], [ran(Outcome.ASSERTED, "a")], [ran(Outcome.CRASHED)], Verdict.SMOKE_FAILED),
]


@pytest.mark.parametrize(("catches", "runs", "smoke", "verdict"), JUDGED)
def test_a_variant_is_caught_when_an_assertion_fails_for_each_of_its_ids(catches, runs, smoke, verdict):
    assert judge(tuple(catches), runs, smoke)[0] is verdict


def test_an_id_stays_undecided_until_an_assertion_fails_for_it():
    runs = [ran(Outcome.CRASHED, "a"), ran(Outcome.ASSERTED, "b", "c"), ran(Outcome.PASSED, "d")]
    assert undecided(("a", "b", "d"), runs) == {"a", "d"}


def local_target(value: int) -> int:
    """Stands for a rule of the reference."""
    return value


also_bound = local_target


def test_a_patch_reaches_every_name_of_its_target_and_leaves_nothing_behind():
    patch = Patch(Variant("v", f"{__name__}:local_target", (), lambda value: value + 1))
    patch.apply()
    assert (local_target(1), also_bound(1)) == (2, 2)
    patch.undo()
    assert (local_target(1), also_bound(1)) == (1, 1)


def test_a_module_that_took_the_replacement_meanwhile_gets_the_original_back(monkeypatch):
    patch = Patch(Variant("v", f"{__name__}:local_target", (), lambda value: value + 1))
    patch.apply()
    late = type(sys)("harness.loaded_late")
    vars(late)["taken"] = local_target
    monkeypatch.setitem(sys.modules, "harness.loaded_late", late)
    patch.undo()
    assert vars(late)["taken"](1) == 1


@pytest.mark.parametrize(
    "target",
    [
        "scenarios.units.test_variants",
        "scenarios.units.test_variants:",
        "scenarios.units.test_variants:no_such",
        "scenarios.units.test_variants:JOBS",
        "scenarios.units.test_variants:JOBS.real",
        "scenarios.units.no_such:function",
        "json:dumps",
    ],
)
def test_a_target_that_is_no_function_of_the_project_is_missing(target):
    with pytest.raises(TargetMissingError, match=r"test_variants|no_such|json"):
        Patch(Variant("v", target, (), lambda: None))


def test_a_name_glob_that_fits_no_variant_is_unusable_input(capsys):
    from harness.cli import main

    before = dict(VARIANTS)
    assert main(["dev", "variants", "no.such.*"]) == 2
    assert "no known-bad variant is named no.such.*" in capsys.readouterr().err
    assert set(before) <= set(VARIANTS)


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_part_outside_its_whole_is_unusable_input(shard, capsys):
    from harness.cli import main

    assert main(["dev", "variants", "--shard", shard]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_without_a_source_tree_the_variants_cannot_be_run(tmp_path: Path, capsys):
    from harness.cli import main

    assert main(["dev", "variants", "--root", str(tmp_path)]) == 3
    assert "source checkout" in capsys.readouterr().err
