"""Answer vectors with the reference and compare."""

from __future__ import annotations

import copy
import fnmatch
import json
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

from harness.vectors.loading import input_validator, registered, table
from harness.vectors.matching import ABSENT, mismatches
from harness.vectors.reading import Read, Unreadable, Vector

SHOWN_CHARACTERS = 300


class Checked(NamedTuple):
    """One answered vector and the lines that tell what is wrong with the answer (none: it passed)."""

    vector: Vector
    problems: tuple[str, ...]


class Report(NamedTuple):
    """The outcome of a check.

    A line that cannot be read and an operation that is not known are no failures: they are apart.
    """

    checked: tuple[Checked, ...]
    unreadable: tuple[Unreadable, ...]
    unknown: tuple[Vector, ...]

    @property
    def failed(self) -> int:
        return sum(bool(each.problems) for each in self.checked)

    @property
    def passed(self) -> int:
        return len(self.checked) - self.failed

    @property
    def exit_code(self) -> int:
        return 2 if self.unreadable or self.unknown else 1 if self.failed else 0

    def by_op(self) -> dict[str, tuple[int, int]]:
        """Passed and failed of each operation, by name."""
        counts: dict[str, tuple[int, int]] = {}
        for vector, problems in self.checked:
            passed, failed = counts.get(vector.op, (0, 0))
            counts[vector.op] = (passed, failed + 1) if problems else (passed + 1, failed)
        return dict(sorted(counts.items()))


def check(reads: Iterable[Read], op_glob: str = "*") -> Report:
    """Answer and compare every vector whose operation fits the glob.

    Lines that cannot be read always count.
    """
    checked, unreadable, unknown = [], [], []
    for read in reads:
        if isinstance(read, Unreadable):
            unreadable.append(read)
        elif not fnmatch.fnmatchcase(read.op, op_glob):
            continue
        elif read.op not in registered() or read.op not in table():
            unknown.append(read)
        elif fault := input_fault(read):
            unreadable.append(Unreadable(read.file, read.line, fault))
        else:
            checked.append(Checked(read, answer_problems(read)))
    return Report(tuple(checked), tuple(unreadable), tuple(unknown))


def input_fault(vector: Vector) -> str:
    """How the input breaks the schema of its operation, or ""."""
    error = next(iter(input_validator(vector.op).iter_errors(vector.input)), None)
    if error is None:
        return ""
    what = f"{error.json_path}: {_short(error.message)}"
    return f"{vector.op}: {vector.case}: the input does not fit the operation: {what}"


def answer_problems(vector: Vector) -> tuple[str, ...]:
    """One line for each place where the answer is not as expected, or one line for an answer that raised."""
    with Recorded() as recorded:
        # A copy: an operation that changes its input must not change what a second look at the vector sees.
        recorded.value = registered()[vector.op].answer(copy.deepcopy(vector.input))
    if recorded.raised is not None:
        raised = f"{type(recorded.raised).__name__}: {_short(str(recorded.raised))}"
        return (f"{vector.op}: {vector.case}: no answer: {raised}",)
    return tuple(
        f"{vector.op}: {vector.case}: {at or '(whole answer)'}: expected {show(expected)}, got {show(got)}"
        for at, expected, got in mismatches(vector.expected, recorded.value, subset=vector.subset)
    )


def show(value: Any) -> str:
    """A value on one line."""
    return repr(value) if value is ABSENT else _short(json.dumps(value, ensure_ascii=False, default=repr))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else f"{line[:SHOWN_CHARACTERS]}..."


class Recorded:
    """Context manager that keeps what was raised.

    Whatever an operation raises makes its case fail, and no other.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self.raised: Exception | None = None

    def __enter__(self) -> Recorded:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(raised, Exception):
            self.raised = raised
        return raised is self.raised
