"""Files that a long command keeps up to date: whoever stops it finds the last whole one."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from harness.errors import UserInputError
from harness.inputs.files import display_path, is_there

PROBE = ".mcp-harness.part"
"""A file that is written to see whether one can be."""


def try_folder(path: Path, option: str) -> None:
    """See before long work begins that its results can lie in a folder; what is made for that is taken away again.

    Raises UserInputError, as `keep` does.
    """
    made: list[Path] = []
    try:
        for folder in reversed((path, *path.parents)):
            if not folder.exists():
                folder.mkdir()
                made.append(folder)
        probe = path / PROBE
        probe.write_bytes(b"")
        probe.unlink()
    except (OSError, ValueError) as error:
        raise unusable(path, option, error) from None
    finally:
        for folder in reversed(made):
            with suppress(OSError):
                folder.rmdir()


def require_new(path: Path, option: str) -> None:
    """Nothing is there yet. Raises UserInputError."""
    try:
        there = path.exists()
    except (OSError, ValueError) as error:
        raise unusable(path, option, error) from None
    if there:
        raise UserInputError("is there already", file=display_path(path), fix=f"Name another folder with {option}.")


def unusable(path: Path, option: str, error: OSError | ValueError) -> UserInputError:
    """What is said of a folder in which nothing can be kept."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    is_file = is_there(path) or isinstance(error, NotADirectoryError | FileExistsError)
    what = "is a file, not a folder" if is_file else f"nothing can be written there: {reason}"
    return UserInputError(what, file=display_path(path), fix=f"Name another folder with {option}.")


def keep(path: Path, text: str, option: str) -> None:
    """Write a file in one piece, with its folder. Raises UserInputError, which names the option to change."""
    beside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserInputError(
            f"cannot be written: {reason}", file=display_path(path), fix=f"Name another folder with {option}."
        ) from None
