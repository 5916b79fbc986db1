"""Which tests and scenario files name which requirements, read from the source without running any of it."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeGuard

from harness.scenario.positions import positions

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Check(NamedTuple):
    """A test that names a requirement: the file (from the source root), the line of the mark, the test's name."""

    requirement: str
    file: str
    line: int
    test: str


class ScanFault(NamedTuple):
    """A mark that cannot be counted."""

    file: str
    line: int
    message: str


class Scan(NamedTuple):
    """What the marks of all test files say. `smoke_files` hold at least one smoke test."""

    checks: tuple[Check, ...] = ()
    faults: tuple[ScanFault, ...] = ()
    smoke_files: tuple[str, ...] = ()


def scan_tree(root: Path) -> Scan:
    """Scan `scenarios/**/*.py` and `scenarios/incidents/*.toml` below the source root."""
    tests = sorted((root / "scenarios").rglob("*.py"))
    played = sorted((root / "scenarios" / "incidents").glob("*.toml"))
    return merge(
        scan(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8"))
        for scan, files in ((scan_source, tests), (scan_scenario, played))
        for file in files
    )


def merge(scans: Iterable[Scan]) -> Scan:
    """All scans as one."""
    every = tuple(scans)
    return Scan(
        tuple(check for scan in every for check in scan.checks),
        tuple(fault for scan in every for fault in scan.faults),
        tuple(file for scan in every for file in scan.smoke_files),
    )


@functools.cache
def scan_source(file: str, text: str) -> Scan:
    """Scan one file's text; the same text once.

    Marks count as decorators of a test or test class, as the module's `pytestmark`, and on a `pytest.param`.
    The ids must be string literals; only on a `pytest.param` they may be computed, as the vector tests do.
    """
    try:
        tree = ast.parse(text, file)
    except (SyntaxError, ValueError) as error:
        return Scan(faults=(ScanFault(file, getattr(error, "lineno", None) or 1, f"cannot be parsed: {error}"),))
    is_test_file = Path(file).name.startswith("test_")
    checks: list[Check] = []
    faults: list[ScanFault] = []
    nodes = list(ast.walk(tree))
    for test, mark, computed_allowed in _marks(nodes):
        literal = [argument.value for argument in mark.args if _is_text(argument)]
        if len(literal) < len(mark.args) or mark.keywords or not mark.args:
            if not computed_allowed:
                faults.append(
                    ScanFault(file, mark.lineno, f"{test or 'pytestmark'}: requirement ids must be string literals")
                )
            continue
        if not is_test_file or not _is_test_name(test):
            faults.append(
                ScanFault(file, mark.lineno, f"{test}: names requirements, but pytest does not collect it as a test")
            )
            continue
        checks += [Check(str(identifier), file, mark.lineno, test) for identifier in literal]
    smoke = (file,) if any(_is_mark(node, "smoke") for node in nodes) else ()
    return Scan(tuple(checks), tuple(faults), smoke)


@functools.cache
def scan_scenario(file: str, text: str) -> Scan:
    """Scan one scenario file's text: the ids in its `requirements`. Its other faults are told when it is collected."""
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return Scan(faults=(ScanFault(file, 1, f"is no TOML: {error}"),))
    named = tree.get("requirements", [])
    line = positions(text).line(("requirements",))
    if not isinstance(named, list) or not all(isinstance(each, str) for each in named):
        return Scan(faults=(ScanFault(file, line, "requirements must be a list of ids"),))
    return Scan(tuple(Check(each, file, line, str(tree.get("title", ""))) for each in named))


def _marks(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, ast.Call, bool]]:
    """Each requirement mark, the test it sits on ("" for the module), and whether its ids may be computed."""
    for node in nodes:
        if isinstance(node, Definition):
            for decorator in node.decorator_list:
                if _is_requirement(decorator):
                    yield node.name, decorator, False
                elif isinstance(decorator, ast.Call):
                    for inner in ast.walk(decorator):
                        if _is_requirement(inner):
                            yield node.name, inner, True
        elif isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "pytestmark" for target in node.targets):
            for inner in ast.walk(node.value):
                if _is_requirement(inner):
                    yield "", inner, False


def _is_requirement(node: ast.AST) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and _is_mark(node.func, "requirement")


def _is_mark(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and ast.unparse(node.value) in ("pytest.mark", "mark")


def _is_text(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_test_name(name: str) -> bool:
    return name == "" or name.startswith(("test_", "Test"))
