"""What is installed from the wheel works elsewhere: on another repository's catalog, without this source tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DEVELOPMENT_ONLY = ("hypothesis", "syrupy", "xmlschema", "xdist", "scenarios")
CATALOG = {"a": {"type": "stdio", "command": "npx", "args": ["-y", "pkg@1.0.0"]}}


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content in a folder of its own."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "content")
    return folder / "content"


@pytest.fixture
def installed(unpacked, tmp_path):
    """Run the installed command in another repository; -S keeps this source tree off the path."""

    def run(*arguments: str, folder: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        paths = [str(unpacked), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
        absent = f"sys.modules.update(dict.fromkeys({DEVELOPMENT_ONLY!r}))"  # as if they were not installed
        program = f"import sys; sys.path[:0] = {paths!r}; {absent}; from harness.cli import main; sys.exit(main())"
        command = [sys.executable, "-S", "-c", program, *arguments]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return run


def test_the_wheel_holds_the_data_and_no_tests(unpacked):
    names = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    assert "fake_runtimes/profiles/claude-2.1.268.toml" in names
    assert "harness/requirements/manifest/catalog.toml" in names
    assert "harness/vectors/cases/catalog.jsonl" in names
    assert "harness/report/schemas/sarif-2.1.0.schema.json" in names
    assert "harness/requirements/schemas/variants-report.schema.json" in names
    assert "harness/vectors/schemas/vectors-check.schema.json" in names
    assert "harness/reference/catalog/air.mcp.schema.json" in names
    assert "harness/scenario/incidents/702.toml" in names
    assert "harness/scenario/schemas/scenario.schema.json" in names
    assert not [name for name in names if name.startswith("scenarios/")]


def test_the_installed_gate_judges_another_repository_from_a_folder_below(installed, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "below").mkdir()
    (tmp_path / "mcp.json").write_text(json.dumps(CATALOG))
    done = installed("gate", "--runtime", "all", folder=tmp_path / "below")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("../mcp.json: 1 entry; claude@2.1.268")


def test_the_installed_gate_fails_well_where_it_must(installed, tmp_path):
    assert installed("gate").returncode == 2
    (tmp_path / "mcp.json").write_text(json.dumps({**CATALOG, "b": {"type": "http", "url": "https://x.test"}}))
    failed = installed("gate")
    assert failed.returncode == 1
    assert "MH203" in failed.stdout


def test_the_installed_developer_commands_say_what_needs_the_source_tree(installed):
    listed = installed("dev", "vectors", "list", "--format", "json")
    assert listed.returncode == 0
    assert "catalog.validate" in listed.stdout
    variants = installed("dev", "variants")
    assert variants.returncode == 3, variants.stderr
    assert variants.stderr.count("\n") == 1


def test_the_installed_command_plays_a_shipped_scenario(installed):
    done = installed("run", "702")
    assert (done.returncode, done.stderr) == (0, "")
    assert "PASS  702 on codex@0.146.0" in done.stdout
    assert "702" in installed("scenarios").stdout
    assert installed("run", "702", "--variant", "codex-is-left-to-its-own-budget").returncode == 3


def test_the_installed_scenario_commands_work_without_what_only_development_needs(installed):
    assert installed("scenarios").returncode == 0
    assert installed("run", "702").returncode == 0
    for command in ("shrink", "campaign", "explain", "gate"):
        done = installed(command, "--help")
        assert (done.returncode, done.stderr) == (0, ""), command
    ids = ("702", "losses-are-named", "answer-lost", "optional_grace_ms", "codex.wait.optional", "#595")
    done = installed("explain", *ids)
    assert (done.returncode, done.stderr) == (0, "")
    for arguments in (("shrink", "none.toml"), ("dev", "requirements"), ("run", "702", "--variant", "x.y")):
        done = installed(*arguments)
        assert done.returncode in {2, 3}, (arguments, done.stderr)
        assert done.stderr.count("\n") == 1
