"""How a command ends: the one place that turns what was raised into an exit code and one line on stderr."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
import tempfile
import traceback
from types import TracebackType

from harness import __version__
from harness.errors import HarnessError, UserInputError

HARNESS_FAULT = HarnessError.exit_code
LONGEST_LINE = 1_000
INTERRUPTED = 128 + 2
READER_GONE = 128 + 13


class Ending:
    """Context manager around a command.

    `exit_code` holds the answer afterwards, whatever was raised inside.
    """

    def __init__(self, program: str) -> None:
        self.program = program
        self.exit_code = HARNESS_FAULT

    def __enter__(self) -> Ending:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if raised is not None:
            self.exit_code = self._end(raised)
        return True

    def _end(self, raised: BaseException) -> int:
        match raised:
            case HarnessError():
                return self._say(str(raised), raised.exit_code)
            case SystemExit():
                return raised.code if isinstance(raised.code, int) else 0 if raised.code is None else 1
            case KeyboardInterrupt():
                return self._say("interrupted", INTERRUPTED)
            case BrokenPipeError():
                _drop_stdout()
                return READER_GONE
            case OSError(errno=errno.ENOSPC | errno.EIO | errno.EBADF):
                _drop_stdout()
                return self._say(f"output cannot be written: {raised.strerror}", UserInputError.exit_code)
            case _:
                place = _write_crash_file(raised)
                return self._say(
                    f"a fault of the harness ({type(raised).__name__}); traceback in {place}", HARNESS_FAULT
                )

    def _say(self, message: str, exit_code: int) -> int:
        print(f"{self.program}: error: {_one_line(message)}", file=sys.stderr)
        return exit_code


def _one_line(message: str) -> str:
    """A message on one line of a length that can be read; what would change the terminal is shown as an escape."""
    from harness.report.safety import shorten, visible  # who ends well does without

    return shorten(visible(" ".join(message.split())), LONGEST_LINE)


def _drop_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's flush at exit does not complain again."""
    with contextlib.suppress(OSError):  # a stand-in for stdout has no descriptor
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)


def _write_crash_file(raised: BaseException) -> str:
    """A file in the system's temp folder with the traceback.

    Arguments stay out of it, they may hold secrets.
    """
    report = f"mcp-harness {__version__}, Python {platform.python_version()}, {platform.platform()}\n\n" + "".join(
        traceback.format_exception(raised)
    )
    with tempfile.NamedTemporaryFile(
        "w",
        prefix="mcp-harness-crash-",
        suffix=".txt",
        delete=False,
        encoding="utf-8",
        errors="backslashreplace",
    ) as file:
        file.write(report)
    return file.name
