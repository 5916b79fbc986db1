"""`mcp-harness dev vectors`: list the operations, check vectors, export the project's own."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

from harness.cli.arguments.dev import VECTOR_FORMATS
from harness.cli.output import TEXT_OR_JSON, deliver, targets_of
from harness.errors import HarnessFault, UserInputError
from harness.vectors.checking import Report, check
from harness.vectors.loading import TABLE_FILE, case_files, load_operations, registered, table
from harness.vectors.reading import Read, read_vectors

LIST_SCHEMA = "mcp-harness/vectors-list/1"
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def run(args: argparse.Namespace) -> int:
    """Dispatch on the action."""
    targets = (
        []
        if args.action == "export"
        else targets_of(args.format, VECTOR_FORMATS if args.action == "check" else TEXT_OR_JSON)
    )
    broken = load_operations()
    match args.action:
        case "list":
            deliver(targets, lambda name: _list_json() if name == "json" else _list_text())
        case "check":
            report = check(_read_files(args.files), args.op)
            _require_some(report, args.op)
            deliver(targets, lambda name: _in_format(report, name))
            for line in _problem_lines(report) if any(target.format == "json" for target in targets) else ():
                print(line, file=sys.stderr)
            for module in broken:
                print(f"{module.module} cannot be imported: {module.error}", file=sys.stderr)
            return report.exit_code
        case _:
            print("\n".join(str(path) for path in export(Path(args.directory))))
    if broken:
        raise HarnessFault("; ".join(f"{module.module} cannot be imported: {module.error}" for module in broken))
    return 0


def _read_files(names: list[str]) -> Iterator[Read]:
    for name in names:
        try:
            content = Path(name).read_bytes()
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise UserInputError(f"cannot be read: {reason}", file=name, fix="Name a file of vectors.") from error
        yield from read_vectors(name, content)


def _require_some(report: Report, op_glob: str) -> None:
    """A check that looked at nothing must not pass."""
    if not (report.checked or report.unreadable or report.unknown):
        only = "" if op_glob == "*" else f" of an operation {op_glob}"
        raise UserInputError(f"the files hold no vector{only}", fix="mcp-harness dev vectors list tells the operations")


def _problem_lines(report: Report) -> list[str]:
    lines = [f"{each.file}:{each.line}: unreadable: {each.why}" for each in report.unreadable]
    lines += [f"{each.file}:{each.line}: unknown operation {each.op}: {each.case}" for each in report.unknown]
    for vector, problems in report.checked:
        lines += [f"{vector.file}:{vector.line}: {problem}" for problem in problems]
    return lines


def _in_format(report: Report, name: str) -> str:
    match name:
        case "json":
            return _report_json(report)
        case "junit":
            return _report_junit(report)
    return _report_text(report)


def _report_text(report: Report) -> str:
    lines = _problem_lines(report)
    lines += [f"  {name:<40} {passed} passed, {failed} failed" for name, (passed, failed) in report.by_op().items()]
    apart = f"{len(report.unreadable)} unreadable, {len(report.unknown)} of an unknown operation"
    verdict = "PASS" if report.exit_code == 0 else "FAIL"
    lines.append(f"{verdict}  {report.passed} passed, {report.failed} failed, {apart}; exit {report.exit_code}")
    return "\n".join(lines)


def _report_json(report: Report) -> str:
    document = {
        "passed": report.passed,
        "failed": report.failed,
        "unknown_op": len(report.unknown),
        "unreadable": len(report.unreadable),
        "by_op": {name: {"passed": passed, "failed": failed} for name, (passed, failed) in report.by_op().items()},
    }
    return json.dumps(document, indent=1)


def _report_junit(report: Report) -> str:
    errors = len(report.unreadable) + len(report.unknown)
    total = len(report.checked) + errors
    root = ElementTree.Element("testsuites", tests=str(total), failures=str(report.failed), errors=str(errors))
    for name, (passed, failed) in report.by_op().items():
        suite = ElementTree.SubElement(root, "testsuite", name=name, tests=str(passed + failed), failures=str(failed))
        for vector, problems in report.checked:
            if vector.op != name:
                continue
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=_xml(vector.case))
            if problems:
                ElementTree.SubElement(case, "failure", message=_xml(problems[0])).text = _xml("\n".join(problems))
    if errors:
        suite = ElementTree.SubElement(root, "testsuite", name="not answered", tests=str(errors), errors=str(errors))
        apart = [(f"{each.file}:{each.line}", f"unreadable: {each.why}") for each in report.unreadable]
        apart += [(f"{each.file}:{each.line}", f"unknown operation {each.op}: {each.case}") for each in report.unknown]
        for place, why in apart:
            case = ElementTree.SubElement(suite, "testcase", classname="not answered", name=_xml(place))
            ElementTree.SubElement(case, "error", message=_xml(why))
    return ElementTree.tostring(root, encoding="unicode")


def _xml(text: str) -> str:
    """The text without what XML cannot hold."""
    return NOT_IN_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _list_json() -> str:
    operations = [
        {**table()[name]._asdict(), "requirements": operation.requirements}
        for name, operation in registered().items()
        if name in table()
    ]
    return json.dumps({"schema": LIST_SCHEMA, "operations": operations}, indent=1, ensure_ascii=False)


def _list_text() -> str:
    lines = []
    for name, operation in registered().items():
        if name not in table():
            continue
        shape = table()[name]
        lines += [
            name,
            f"  {shape.decides}",
            f"  input         {json.dumps(shape.input, ensure_ascii=False)}",
            f"  output        {json.dumps(shape.output, ensure_ascii=False)}",
            f"  requirements  {', '.join(operation.requirements) or '-'}",
            "",
        ]
    lines.append(f"{len(registered())} operations")
    return "\n".join(lines)


def export(directory: Path) -> list[Path]:
    """Write the table and the project's own vectors into a folder; returns the files written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        written = [directory / TABLE_FILE]
        written[0].write_bytes((files("harness.vectors") / TABLE_FILE).read_bytes())
        for file in case_files():
            written.append(directory / file.name)
            shutil.copyfile(file, written[-1])
    except OSError as error:
        raise UserInputError(f"cannot be written to: {error.strerror}", file=str(directory)) from error
    return written
