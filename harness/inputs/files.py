"""Reading what the user names: files whole, with one clear line when that cannot be done."""

from __future__ import annotations

import os
from pathlib import Path

from harness.errors import UserInputError
from harness.inputs.document import Document
from harness.inputs.limits import MAXIMUM_FILE_BYTES

MOST_UPWARDS = 2
"""So many folders up a place is still told from the current folder."""
SETTINGS_NAME = "mcp-harness.toml"


def read_bytes(path: Path, example: str = "mcp.json") -> bytes:
    """The content of a regular file, read once and never past the size limit. Raises UserInputError.

    `example` is what a file of the kind that is wanted may be called.
    """
    name = display_path(path)
    try:
        if path.is_dir():
            raise UserInputError(
                "is a folder",
                file=name,
                fix=f"Name the file, for instance {Path(name, example).as_posix()}.",
            )
        if not path.is_file():
            raise UserInputError(
                "is no regular file" if path.exists() else "no such file", file=name, fix="Check the path."
            )
        with path.open("rb") as stream:
            return stream.read(MAXIMUM_FILE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UserInputError(
            f"cannot be read: {reason}", file=name, fix="Check the path and its permissions."
        ) from None


def read_text(path: Path, example: str = "mcp.json") -> str:
    """The UTF-8 text of a file. Raises UserInputError."""
    content = read_bytes(path, example)
    if len(content) > MAXIMUM_FILE_BYTES:
        raise UserInputError(f"is larger than {MAXIMUM_FILE_BYTES:,} bytes", file=display_path(path))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserInputError(
            f"byte {error.start} is not UTF-8", file=display_path(path), fix="Save the file as UTF-8."
        ) from None


def read_document(path: Path, example: str = "mcp.json") -> Document:
    """The JSON document in a file. Raises UserInputError with file, line and column."""
    return Document.parse(display_path(path), read_bytes(path, example))


def display_path(path: Path) -> str:
    """`path` as the user knows it: one that is not absolute as it is, another one relative to the current folder where
    it lies below or beside that.
    """
    if not path.is_absolute():
        return path.as_posix()
    try:
        relative = os.path.relpath(path)
        shares = len(Path(os.path.commonpath([path, Path.cwd()])).parts) > 1
    except ValueError:  # another drive, on systems that have them; a character that no path can have
        return path.as_posix()
    ups = Path(relative).parts.count("..")
    is_near = ups == 0 or (shares and ups <= MOST_UPWARDS and ups < len(Path(relative).parts))
    return Path(relative if is_near else path).as_posix()


def is_there(path: Path, *, is_folder: bool = False) -> bool:
    """Whether a file, or a folder, is at a path. What cannot be looked at, or be a path at all, is not there."""
    try:
        return path.is_dir() if is_folder else path.is_file()
    except (OSError, ValueError):
        return False


def find_upward(start: Path, name: str) -> Path | None:
    """`name` in `start` or the nearest folder above it, up to the root of the git work tree."""
    start = start.absolute()
    for folder in (start, *start.parents):
        try:
            if (folder / name).is_file():
                return folder / name
            if (folder / ".git").exists():
                return None
        except OSError as error:
            raise UserInputError(
                f"cannot be searched for {name}: {error.strerror}",
                file=display_path(folder),
                fix="Check the folder's permissions.",
            ) from None
    return None


def folder_in_repository() -> str:
    """The current folder seen from the top of its git work tree, in POSIX form; "" at the top or outside any."""
    here = Path.cwd()
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here)
    relative = here.relative_to(top).as_posix()
    return "" if relative == "." else relative


def replace_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, keeping its mode; a symbolic link stays one. Raises UserInputError."""
    target = path.resolve()
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as stream:
            stream.write(text)
        temporary.chmod(target.stat().st_mode & 0o7777)
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UserInputError(
            f"cannot be written: {error.strerror}",
            file=display_path(path),
            fix="Check the folder's permissions.",
        ) from None
