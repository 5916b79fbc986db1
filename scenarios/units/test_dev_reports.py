"""The reports of the developer commands for programs, each checked against its own schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import harness
from harness.cli import dev_requirements, dev_variants, dev_vectors, main
from harness.requirements.judging import Verdict
from harness.requirements.manifest import KINDS, Level, Status, load_manifest
from harness.requirements.matrix import FaultKind, Matrix
from harness.vectors.loading import case_files
from scenarios.report_schemas import schema, validate

REQUIREMENTS_REPORT = "requirements-report"
REQUIREMENTS_LIST = "requirements-list"
VARIANTS_REPORT = "variants-report"
VARIANTS_LIST = "variants-list"
VECTORS_LIST = "vectors-list"
VECTORS_CHECK = "vectors-check"
PACKAGES = ("harness.requirements", "harness.vectors", "harness.report")


def report_of(capsys, name: str, *arguments: str, exit_code: int = 0) -> dict[str, Any]:
    """The JSON that `dev` writes, valid against the schema `name`."""
    assert main(["dev", *arguments, "--format", "json"]) == exit_code
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    validate(name, report)
    return report


@pytest.fixture
def no_source_tree(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(harness, "__file__", str(tmp_path / "site-packages" / "harness" / "__init__.py"))


@pytest.mark.parametrize(
    ("name", "version"),
    [
        (REQUIREMENTS_REPORT, dev_requirements.REPORT_SCHEMA),
        (REQUIREMENTS_LIST, dev_requirements.LIST_SCHEMA),
        (VARIANTS_REPORT, dev_variants.SCHEMA),
        (VARIANTS_LIST, dev_variants.LIST_SCHEMA),
        (VECTORS_LIST, dev_vectors.LIST_SCHEMA),
    ],
)
def test_a_schema_names_the_version_that_is_written(name, version):
    assert schema(name)["properties"]["schema"] == {"const": version}
    assert version == f"mcp-harness/{name}/1"


def test_every_schema_of_a_report_is_a_sound_schema_of_the_current_draft():
    found = [
        file.name
        for package in PACKAGES
        for file in (files(package) / "schemas").iterdir()
        if file.name.endswith(".schema.json") and not file.name.startswith("sarif")
    ]
    assert len(found) >= 6
    for name in found:
        one = schema(name.removesuffix(".schema.json"))
        assert one["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]
        jsonschema.Draft202012Validator.check_schema(one)


def test_the_coverage_of_every_area_fits_its_schema(capsys):
    exit_code = main(["dev", "requirements", "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    validate(REQUIREMENTS_REPORT, report)
    assert report["exit_code"] == exit_code
    assert {gap["area"] for gap in report["missing"]} <= {area["area"] for area in report["areas"]} != set()


def test_faults_of_the_coverage_fit_its_schema(capsys, monkeypatch):
    def with_unknown_checks(_root):
        return Matrix(load_manifest(), {"catalog-no-such": ("test_x.py:1",)}, {}, ("test_y.py:2: cannot be parsed",))

    monkeypatch.setattr(dev_requirements, "load_matrix", with_unknown_checks)
    report = report_of(capsys, REQUIREMENTS_REPORT, "requirements", exit_code=1)
    kinds = {fault["kind"] for fault in report["faults"]}
    assert kinds >= {FaultKind.UNKNOWN_ID, FaultKind.UNUSABLE_CHECK, FaultKind.MUST_WITHOUT_CHECK}


@pytest.mark.usefixtures("no_source_tree")
def test_the_bare_list_of_rules_fits_its_schema(capsys):
    report = report_of(capsys, REQUIREMENTS_LIST, "requirements", exit_code=3)
    assert len({rule["id"] for rule in report["requirements"]}) == len(report["requirements"]) > 1000


def test_the_list_of_operations_fits_its_schema(capsys):
    assert report_of(capsys, VECTORS_LIST, "vectors", "list")["operations"] != []


def test_a_check_of_vectors_fits_its_schema_and_holds_the_agreed_members_alone(capsys, tmp_path: Path):
    unusable = tmp_path / "odd.jsonl"
    unusable.write_text('{\n{"op": "no.such", "case": "c", "input": {}, "expected": 1}\n')
    own = [str(file) for file in case_files()]
    report = report_of(capsys, VECTORS_CHECK, "vectors", "check", str(unusable), *own, exit_code=2)
    assert set(report) == {"passed", "failed", "unknown_op", "unreadable", "by_op"}
    assert (report["unknown_op"], report["unreadable"]) == (1, 1)
    assert sum(counts["passed"] for counts in report["by_op"].values()) == report["passed"] > 0


def test_the_schemas_know_every_word_that_the_reports_choose_from():
    requirements = schema(REQUIREMENTS_REPORT)["$defs"]
    rule = schema(REQUIREMENTS_LIST)["$defs"]["requirement"]["properties"]
    variants = schema(VARIANTS_REPORT)
    chosen: list[tuple[list[str], Iterable[str]]] = [
        (requirements["area"]["properties"]["status"]["enum"], Status),
        (requirements["gap"]["properties"]["level"]["enum"], Level),
        (requirements["fault"]["properties"]["kind"]["enum"], FaultKind),
        (rule["level"]["enum"], Level),
        (rule["kind"]["enum"], KINDS),
        (variants["$defs"]["variant"]["properties"]["verdict"]["enum"], Verdict),
        (variants["properties"]["counts"]["required"], Verdict),
    ]
    for words, known in chosen:
        assert words == list(known)


@pytest.mark.parametrize("name", [REQUIREMENTS_REPORT, REQUIREMENTS_LIST, VARIANTS_REPORT, VECTORS_LIST, VECTORS_CHECK])
def test_a_schema_refuses_a_member_that_it_does_not_know(name):
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        validate(name, {**dict.fromkeys(schema(name)["required"]), "surprise": 1})


def test_the_variants_are_listed_with_what_they_break_and_which_rules_catch_them(capsys):
    report = report_of(capsys, VARIANTS_LIST, "variants", "--list")
    names = [each["name"] for each in report["variants"]]
    assert names == sorted(names)
    assert len(names) > 500
    assert [each["name"] for each in report["variants"] if bool(each["catches"]) == bool(each["closes"])] == []
    assert [each["name"] for each in report["variants"] if not each["breaks"] or "\n" in each["breaks"]] == []
    assert main(["dev", "variants", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("startup_timeout.bounds_are_exclusive  "))
    assert lines[at + 1].startswith("    caught by startup-timeout-")
    at = next(number for number, line in enumerate(lines) if line.startswith("chains.nothing_is_adopted  "))
    assert "; shown by the scenario clock-skew-of-a-provider, deploy-restart-stale-token, " in lines[at + 1]
    shown = {each["name"]: each["scenarios"] for each in report["variants"]}
    assert shown["scenario.codex_is_left_to_its_own_budget"] == ["702"]
    bugs = sum(not each["closes"] for each in report["variants"])
    assert lines[-1].startswith(f"{bugs} variants and {len(names) - bugs} proposals; try one with: mcp-harness run ")
    assert len(lines) == 2 * len(names) + 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("startup_timeout.bounds_are_exclusive",), "startup_timeout.bounds_are_exclusive"),
        (("startup_timeout.bounds_*",), "startup_timeout.bounds_are_exclusive"),
        (("bounds-are-EXCLUSIVE",), "startup_timeout.bounds_are_exclusive"),
        (("strictly between",), "startup_timeout.bounds_are_exclusive"),
        (("startup-timeout-integer-5-600",), "startup_timeout.bounds_are_exclusive"),
        (("closing",), "closing.refresh_under_the_runtimes_lock"),
        (("refreshed-under-a-live-runtime",), "closing.refresh_under_the_runtimes_lock"),
        (("702",), "scenario.codex_is_left_to_its_own_budget"),
        (("#689",), "spawn_gate.the_memory_of_refusals_is_left"),
        (("deploy-restart-stale-token",), "chains.nothing_is_adopted"),
        (("no such thing", "bounds_are_exclusive"), "startup_timeout.bounds_are_exclusive"),
    ],
)
def test_a_word_finds_the_variants_that_it_is_true_of(words, found, capsys):
    report = report_of(capsys, VARIANTS_LIST, "variants", "--list", *words)
    names = [each["name"] for each in report["variants"]]
    assert found in names
    assert len(names) < 100


def test_a_word_that_no_variant_is_about_is_one_line(capsys):
    assert main(["dev", "variants", "--list", "startup_timeout.bounds_are_exclusiv3"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "Did you mean startup_timeout.bounds_are_exclusive?" in output.err
    assert main(["dev", "variants", "--list", "zzz"]) == 2
    assert "no variant is about zzz. Leave the word out to see all." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["dev", "variants", "--list", "closing"], VARIANTS_LIST),
        (["dev", "requirements", "npx"], REQUIREMENTS_REPORT),
        (["dev", "vectors", "list"], VECTORS_LIST),
        (["scenarios"], "scenarios-list"),
    ],
)
def test_every_report_can_go_to_a_file_beside_the_text_on_stdout(arguments, name, tmp_path, capsys):
    path = tmp_path / "report.json"
    main([*arguments, "--format", f"json={path}", "--format", "text"])
    text = capsys.readouterr().out
    validate(name, json.loads(path.read_text(encoding="utf-8")))
    main(arguments)
    assert capsys.readouterr().out == text != ""
