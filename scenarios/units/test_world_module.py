"""The package as a whole: its page runs, it needs the standard library alone, and what it exports."""

from __future__ import annotations

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import harness.world
import harness.world.model
import harness.world.model.simulation

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "harness" / "world"
MODULES = sorted(PACKAGE.rglob("*.py"))
REAL = ("outside", "blocking", "live")
"""Where the drivers for real processes are."""
LIBRARIES = {"live": {"anyio", "httpx"}}


def test_the_examples_of_the_page_run():
    results = doctest.testfile(str(PACKAGE / "README.md"), module_relative=False, encoding="utf-8")
    assert results.failed == 0
    assert results.attempted > 30


def test_the_examples_of_the_docstrings_run():
    results = doctest.testmod(harness.world.model.simulation)
    assert (results.failed, results.attempted > 2) == (0, True)


def test_the_world_loads_isolated_with_the_standard_library_alone():
    script = f"import sys; sys.path.insert(0, {str(REPOSITORY)!r}); import harness.world, harness.world.model"
    script += "; print(*sorted({name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    process = subprocess.run([sys.executable, "-IS", "-c", script], check=True, capture_output=True, text=True)
    assert process.stdout.split() == ["__main__", "harness"] or process.stdout.split() == ["harness"]
    assert process.stderr == ""


@pytest.mark.parametrize("path", MODULES, ids=[str(path.relative_to(PACKAGE)) for path in MODULES])
def test_every_module_imports_only_the_standard_library_and_the_world(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported = [node.module or ""]
        else:
            continue
        libraries = LIBRARIES.get(path.parent.name, set())
        for name in imported:
            own = name == "harness.world" or name.startswith("harness.world.")
            assert own or name.split(".")[0] in sys.stdlib_module_names | libraries, name


def test_nothing_of_the_model_reads_the_real_clock_files_or_network():
    # time.monotonic guards the real length of a run, os.strerror spells an errno, random is seeded.
    allowed = {"time": {"monotonic"}, "os": {"strerror"}, "random": {"Random"}}
    for path in MODULES:
        if path.parent.name in REAL:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in allowed:
                assert node.attr in allowed[node.value.id], (path.name, node.attr)
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                assert not names & {"asyncio", "threading", "socket", "subprocess", "pathlib", "secrets", "datetime"}


@pytest.mark.parametrize("module", [harness.world, harness.world.model])
def test_what_is_exported_is_there_and_sorted(module):
    assert all(hasattr(module, name) for name in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
