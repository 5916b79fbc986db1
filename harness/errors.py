"""The errors of the harness, by who is at fault. Standard library alone.

    HarnessError
    ├── UserInputError    what was handed in cannot be used              exit code 2
    ├── CannotRunError    what was asked for is not here to be run       exit code 3
    └── HarnessFault      the harness itself is wrong                    exit code 4

Errors of the system under test are not here: they are values, or live with `harness.reference`.
"""

from __future__ import annotations


class HarnessError(Exception):
    """Base of all errors that end a command with one line. `exit_code` is the process's."""

    exit_code = 4


class UserInputError(HarnessError):
    """Unusable input. The message is one line: what was found at which place, and what to do.

    `file` is shown as given by the user; `line` and `column` count from 1 and are None where a place
    has no meaning (a missing file).
    """

    exit_code = 2

    def __init__(
        self, what: str, *, file: str | None = None, line: int | None = None, column: int | None = None, fix: str = ""
    ) -> None:
        place = ":".join(str(part) for part in (file, line, column) if part is not None)
        text = f"{place}: {what}" if place else what
        super().__init__(f"{text}. {fix}" if fix else text)
        self.what, self.file, self.line, self.column, self.fix = what, file, line, column, fix


class CannotRunError(HarnessError):
    """A runtime, package or base revision that was asked for is missing; the message says how to get it."""

    exit_code = 3


class HarnessFault(HarnessError):  # noqa: N818 - the fault is our own, unlike the errors above
    """A broken promise inside the harness."""

    exit_code = 4
