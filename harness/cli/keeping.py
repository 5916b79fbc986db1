"""Files that a long command keeps up to date: whoever stops it finds the last whole one."""

from __future__ import annotations

from pathlib import Path

from harness.errors import UserInputError
from harness.inputs.files import display_path


def make_folder(path: Path, option: str) -> None:
    """Make a folder before long work begins whose results shall lie there. Raises UserInputError, as `keep` does."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserInputError(
            f"cannot be made: {error.strerror}", file=display_path(path), fix=f"Name another folder with {option}."
        ) from None


def keep(path: Path, text: str, option: str) -> None:
    """Write a file in one piece, with its folder. Raises UserInputError, which names the option to change."""
    beside = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    except OSError as error:
        raise UserInputError(
            f"cannot be written: {error.strerror}", file=display_path(path), fix=f"Name another folder with {option}."
        ) from None
