"""Which command lines run a Python package that is fetched first, and what they fetch.

The options are those of uv 0.13 and of pipx; uv itself refuses any other one with exit code 2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from harness.gate.npm_commands import program

GLOBAL_VALUES = frozenset(
    {"--directory", "--project", "--config-file", "--cache-dir", "--color", "--allow-insecure-host"}
)
UV_VALUES = GLOBAL_VALUES | frozenset(
    {"--from", "-w", "--with", "--with-editable", "--with-requirements", "-c", "--constraints", "-b"}
    | {"--build-constraints", "--overrides", "--env-file", "--python-platform", "--torch-backend", "--index"}
    | {"--default-index", "-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--index-strategy"}
    | {"--keyring-provider", "-P", "--upgrade-package", "--upgrade-group", "--resolution", "--prerelease"}
    | {"--prerelease-package", "--fork-strategy", "--exclude-newer", "--exclude-newer-package"}
    | {"--no-sources-package", "--reinstall-package", "--link-mode", "-C", "--config-setting"}
    | {"--config-settings", "--config-settings-package", "--no-build-isolation-package", "--no-build-package"}
    | {"--no-binary-package", "--refresh-package", "-p", "--python", "--extra", "--no-extra", "--group"}
    | {"--no-group", "--only-group", "--package", "--max-recursion-depth"}
)
UVX_SWITCHES = frozenset(
    {"--isolated", "--no-env-file", "--lfs", "--no-index", "-U", "--upgrade", "--no-sources", "--reinstall"}
    | {"--compile-bytecode", "--no-build-isolation", "--no-build", "--no-binary", "--require-build-hashes"}
    | {"--no-require-build-hashes", "-n", "--no-cache", "--refresh", "--managed-python", "--no-managed-python"}
    | {"--no-python-downloads", "-q", "--quiet", "-v", "--verbose", "--system-certs", "--native-tls", "--offline"}
    | {"--no-progress", "--no-config", "-h", "--help", "-V", "--version", "--pre", "--python-preference"}
    | {"--show-resolution", "--allow-python-downloads", "--no-refresh", "--no-upgrade", "--no-reinstall"}
    | {"--preview", "--no-preview"}
)
PIPX_VALUES = frozenset({"--spec", "--pip-args", "--python", "--index-url", "-i", "--with", "--backend"})
ASSENTS = frozenset({"-y", "--yes"})
"""npx's consent to install, which nobody else knows."""


class PythonCommand(NamedTuple):
    """`form`: the words that run it, e.g. `uv tool run`. `first`: the position of its first argument.

    `package`: what it fetches, as written (None: nothing was named). `unknown`: positions of options in front
    of the package that the launcher does not know.
    """

    form: str
    first: int
    package: str | None
    unknown: tuple[int, ...]

    @property
    def fetches(self) -> bool:
        """Whether the package is what the command line is about; `uv run` runs what is there."""
        return self.form != "uv run"


def python_command(command: str, args: Sequence[str]) -> PythonCommand | None:
    """How a command line runs a Python package or script through uv or pipx; None for any other one."""
    name = program(command)
    if name == "uvx":
        return _uv_command("uvx", 0, args)
    if name == "pipx":
        return _pipx_command(args)
    if name != "uv":
        return None
    position = _subcommand(args, 0)
    if position is None or args[position] not in ("run", "tool"):
        return None
    if args[position] == "run":
        return _uv_command("uv run", position + 1, args)
    inner = _subcommand(args, position + 1)
    return _uv_command("uv tool run", inner + 1, args) if inner is not None and args[inner] == "run" else None


def _subcommand(args: Sequence[str], position: int) -> int | None:
    """The position of the first word that is neither an option nor an option's value."""
    while position < len(args):
        if not args[position].startswith("-"):
            return position
        position += 2 if args[position] in GLOBAL_VALUES else 1
    return None


def _uv_command(form: str, first: int, args: Sequence[str]) -> PythonCommand:
    source: str | None = None
    unknown: list[int] = []
    position = first
    while position < len(args) and args[position].startswith("-") and args[position] not in ("-", "--"):
        option, equals, value = args[position].partition("=")
        takes_next = option in UV_VALUES and not equals
        if option == "--from":
            source = value if equals else args[position + 1] if position + 1 < len(args) else None
        elif form != "uv run" and not _is_known(option):
            unknown.append(position)
        position += 2 if takes_next else 1
    if position < len(args) and args[position] == "--":
        position += 1
    positional = args[position] if position < len(args) and args[position].strip() else None
    return PythonCommand(form, first, positional and (source or positional), tuple(unknown))


def _is_known(option: str) -> bool:
    """Whether uvx knows an option; a short one may have letters or its value behind it (`-qv`, `-p3.12`)."""
    return (option if option.startswith("--") else option[:2]) in UV_VALUES | UVX_SWITCHES


def _pipx_command(args: Sequence[str]) -> PythonCommand | None:
    position = _subcommand(args, 0)
    if position is None or args[position] != "run":
        return None
    first = position = position + 1
    source: str | None = None
    unknown: list[int] = []
    while position < len(args) and args[position].startswith("-") and args[position] != "--":
        option, equals, value = args[position].partition("=")
        if option == "--spec":
            source = value if equals else args[position + 1] if position + 1 < len(args) else None
        elif option in ASSENTS:
            unknown.append(position)
        position += 2 if option in PIPX_VALUES and not equals else 1
    if position < len(args) and args[position] == "--":
        position += 1
    positional = args[position] if position < len(args) and args[position].strip() else None
    return PythonCommand("pipx run", first, positional and (source or positional), tuple(unknown))


_EXACT = re.compile(r"={2,3}\s*v?\d[^*,<>]*")
_VERSION = re.compile(r"v?\d+(?:\.\w+)*")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_LOCAL = re.compile(r"\.{1,2}(?:[/\\]|$)|/|~[/\\]|file:|[A-Za-z]:[/\\]")
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?\s*(?P<rest>.*)", re.DOTALL)


def requirement_floats(requirement: str) -> bool:
    """Whether two installs of a Python requirement may fetch different code.

    A version that a placeholder stands for is not known, so it does not count; nor does a file.
    """
    text = requirement.strip()
    if _LOCAL.match(text) or text.startswith("${"):
        return False
    if "://" in text:
        return _address_floats(text[text.index("@") + 1 :] if re.match(r"[\w.\[\],-]+\s*@", text) else text)
    found = _REQUIREMENT.fullmatch(text)
    rest = found["rest"].partition(";")[0].strip() if found else ""
    if "${" in rest:
        return False
    if rest.startswith("@"):
        return not _VERSION.fullmatch(rest[1:].strip())
    return not _EXACT.fullmatch(rest)


def _address_floats(address: str) -> bool:
    """A git address without a commit or version tag floats; an archive's does not."""
    address = address.strip().partition("#")[0]
    if not address.startswith("git+"):
        return False
    path = address.partition("://")[2].partition("/")[2]
    revision = path.rpartition("@")[2] if "@" in path else ""
    return not ("${" in revision or _COMMIT.fullmatch(revision) or _VERSION.fullmatch(revision))
