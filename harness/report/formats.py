"""The report formats: how they are added, chosen and written.

A format is one module of this package with a function under `@report_format(NAME)`; nothing else has to
be touched. Whatever a format renders has been masked before (`harness.report.masking`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

import harness.report
from harness.errors import UserInputError
from harness.gate.events import Event
from harness.gate.rule import Rule
from harness.report.masking import masked
from harness.report.wrapping import fitting

RuleLookup = Callable[[str], Rule | None]
"""From a rule's id to what the rule says about itself (None: unknown)."""

Renderer = Callable[[Sequence[Event], RuleLookup], str]
"""From the events of one run to the whole text of the report, which ends with a line break unless empty."""

FORMATS: dict[str, Renderer] = {}
"""Filled by `load_formats`."""

_TEMPORARY_NAMES = 100


class Target(NamedTuple):
    """One `--format`: `path` is None for standard output."""

    format: str
    path: str | None


def report_format(name: str) -> Callable[[Renderer], Renderer]:
    """Register a renderer under `name`. It sees masked events, whoever calls it."""

    def register(render: Renderer) -> Renderer:
        @wraps(render)
        def render_masked(events: Sequence[Event], rules: RuleLookup) -> str:
            return render(masked(events), rules)

        if name in FORMATS:
            raise ValueError(f"report format {name} is registered twice")
        FORMATS[name] = render_masked
        return render_masked

    return register


@cache
def load_formats() -> tuple[str, ...]:
    """Import every module of this package, which registers the formats. Returns their names, sorted."""
    for module in iter_modules(harness.report.__path__):
        import_module(f"{harness.report.__name__}.{module.name}")
    return tuple(sorted(FORMATS))


def parse_target(text: str, formats: Sequence[str] = ()) -> Target:
    """Read `FORMAT[=PATH]`; no path and `-` mean standard output. Raises UserInputError.

    `formats` are those of the command, else the gate's.
    """
    name, separator, path = text.partition("=")
    known = tuple(formats) or load_formats()
    if name not in known:
        raise UserInputError(f'--format: there is no format "{name}"', fix=f"Known formats: {', '.join(known)}.")
    if separator and not path:
        raise UserInputError(f'--format: "{text}" names no file', fix=f"Write {name}=PATH, or {name} for stdout.")
    return Target(name, None if path in {"", "-"} else path)


def check_targets(targets: Sequence[Target]) -> None:
    """Refuse what could not be written: two reports to one place, a missing folder, a folder as a file.

    Worth calling before the gate runs. Raises UserInputError.
    """
    seen: dict[str | Path, Target] = {}
    for target in targets:
        place: str | Path = "" if target.path is None else _usable_path(target.path)
        other = seen.setdefault(place, target)
        if other is not target:
            where = "standard output" if target.path is None else target.path
            raise UserInputError(
                f"--format: {other.format} and {target.format} would both go to {where}",
                fix=f"Give one a file of its own, e.g. --format {target.format}=report.{target.format}.",
            )


def write_reports(
    events: Sequence[Event], targets: Sequence[Target], rules: RuleLookup, columns: int | None = None
) -> str:
    """Write each report to its file and return the text for standard output ("" when no target goes there).

    `columns` are those of the terminal that standard output is, None where it is none.
    A file is replaced as a whole or not at all. Raises UserInputError when it cannot be written.
    """
    check_targets(targets)
    load_formats()
    stream = masked(events)
    to_stdout = ""
    for target in targets:
        with fitting(columns if target.path is None else None):
            text = FORMATS[target.format](stream, rules)
        if target.path is None:
            to_stdout = text
        else:
            write_text(target.path, text)
    return to_stdout


def _usable_path(shown: str) -> Path:
    try:
        path = Path(shown).resolve()
        is_folder, parent_is_folder = path.is_dir(), path.parent.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise _unwritable(shown, error) from error
    if is_folder:
        raise UserInputError("the report cannot be written: this is a folder", file=shown, fix="Name a file inside it.")
    if not parent_is_folder:
        raise UserInputError(
            "the report cannot be written: its folder does not exist",
            file=shown,
            fix=f"Create it first: mkdir -p {Path(shown).parent}",
        )
    return path


def write_text(shown: str, text: str) -> None:
    """Write a report to its file, as a whole or not at all. Raises UserInputError."""
    path = _usable_path(shown)
    content = text.encode("utf-8", "backslashreplace")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a pipe or device: there is nothing to replace
        else:
            _replace(path, content)
    except (OSError, ValueError) as error:
        raise _unwritable(shown, error) from error


def _replace(path: Path, content: bytes) -> None:
    temporary = _create_beside(path, content)
    try:
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _create_beside(path: Path, content: bytes) -> Path:
    """A new file in the same folder, with the permissions that a new file of the user gets."""
    for number in range(_TEMPORARY_NAMES):
        temporary = path.with_name(f".mcp-harness-{number}.tmp")
        try:
            handle = temporary.open("xb")
        except FileExistsError:
            continue
        try:
            with handle:
                handle.write(content)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return temporary
    raise FileExistsError(17, f"{_TEMPORARY_NAMES} files named .mcp-harness-*.tmp are left in its folder")


def _unwritable(shown: str, error: Exception) -> UserInputError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return UserInputError(f"the report cannot be written ({reason})", file=shown, fix="Choose another file.")
