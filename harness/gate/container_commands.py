"""Which command lines run a server in a container, and how. The options are those of docker 28."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.gate.npm_commands import program

PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
GLOBAL_VALUES = frozenset(
    {"--config", "-c", "--context", "-H", "--host", "-l", "--log-level", "--tlscacert", "--tlscert", "--tlskey"}
    | {"--connection", "--url", "--root", "--namespace", "--address", "--storage-driver", "--identity"}
    | {"--runtime", "--cgroup-manager"}
)
SWITCHES = frozenset(
    {"detach", "disable-content-trust", "help", "init", "interactive", "no-healthcheck", "oom-kill-disable"}
    | {"privileged", "publish-all", "quiet", "read-only", "rm", "sig-proxy", "tty", "use-api-socket", "replace"}
    | {"rmi", "tls-verify", "env-host", "http-proxy", "no-hosts", "no-hostname", "read-only-tmpfs"}
    | {"unsetenv-all", "rootfs", "latest"}
)
SHORT = {
    "a": "attach",
    "c": "cpu-shares",
    "d": "detach",
    "e": "env",
    "h": "hostname",
    "i": "interactive",
    "l": "label",
    "m": "memory",
    "p": "publish",
    "P": "publish-all",
    "q": "quiet",
    "t": "tty",
    "u": "user",
    "v": "volume",
    "w": "workdir",
}
FALSE = frozenset({"false", "0", "f", "F", "False", "FALSE"})
_MOUNT_SOURCE = re.compile(r"(?:\A|,)(?:src|source)=([^,]*)")


class Option(NamedTuple):
    """An option by its long name. `name_at` is the argument with the name, `at` the one with the value."""

    name: str
    value: str
    name_at: int
    at: int


class ContainerRun(NamedTuple):
    """`verb` is run or exec, `verb_at` its position; `image_at` the position of the image (exec: the container)."""

    program: str
    verb: str
    verb_at: int
    options: tuple[Option, ...]
    image_at: int | None

    def has(self, name: str) -> bool:
        """Whether a switch is on, or an option given."""
        values = self.values(name)
        return bool(values) and values[-1] not in FALSE

    def values(self, name: str) -> tuple[str, ...]:
        """All values of an option."""
        return tuple(option.value for option in self.options if option.name == name)

    @property
    def form(self) -> str:
        """`docker run` and the like."""
        return f"{self.program} {self.verb}"

    def volume_sources(self) -> Iterator[tuple[int, str]]:
        """What is mounted from the host, with the position of the argument."""
        for option in self.options:
            if option.name == "volume":
                yield option.at, option.value
            elif option.name == "mount":
                yield from ((option.at, source) for source in _MOUNT_SOURCE.findall(option.value))


def container_run(command: str, args: Sequence[str]) -> ContainerRun | None:
    """How a command line runs something in a container; None for any other one."""
    name = program(command)
    if name not in PROGRAMS:
        return None
    position = _word(args, 0)
    if position is not None and args[position] == "container":
        position = _word(args, position + 1)
    if position is None or args[position] not in ("run", "exec"):
        return None
    options, image_at = _options(args, position + 1)
    return ContainerRun(name, args[position], position, tuple(options), image_at)


def _word(args: Sequence[str], position: int) -> int | None:
    while position < len(args):
        if not args[position].startswith("-"):
            return position
        position += 2 if args[position] in GLOBAL_VALUES else 1
    return None


def _options(args: Sequence[str], position: int) -> tuple[list[Option], int | None]:
    """The options in front of the image, and where the image stands."""
    options: list[Option] = []
    while position < len(args):
        argument = args[position]
        if argument == "--":
            position += 1
            break
        if not argument.startswith("-") or argument == "-":
            break
        found, used = _long(args, position) if argument.startswith("--") else _cluster(args, position)
        options += found
        position += used
    return options, position if position < len(args) else None


def _long(args: Sequence[str], position: int) -> tuple[list[Option], int]:
    name, equals, value = args[position][2:].partition("=")
    name = "network" if name == "net" else name
    if equals:
        return [Option(name, value, position, position)], 1
    if name in SWITCHES:
        return [Option(name, "true", position, position)], 1
    value = args[position + 1] if position + 1 < len(args) else ""
    return [Option(name, value, position, min(position + 1, len(args) - 1))], 2


def _cluster(args: Sequence[str], position: int) -> tuple[list[Option], int]:
    """`-it`, `-eNAME`, `-e=NAME`, `-ite NAME`."""
    letters, found = args[position][1:], []
    for offset, letter in enumerate(letters):
        name, rest = SHORT.get(letter, letter), letters[offset + 1 :]
        if name in SWITCHES and not rest.startswith("="):
            found.append(Option(name, "true", position, position))
        elif rest:
            return [*found, Option(name, rest.removeprefix("="), position, position)], 1
        else:
            value = args[position + 1] if position + 1 < len(args) else ""
            return [*found, Option(name, value, position, min(position + 1, len(args) - 1))], 2
    return found, 1


def image_floats(image: str) -> bool:
    """Whether an image has no tag or `latest`; a digest, another tag, and one that a placeholder stands for do not."""
    image = image.strip()
    if not image or "@sha256:" in image:
        return False
    tag = image.rpartition("/")[2].partition(":")[2]
    return tag in ("", "latest") and "${" not in image.rpartition("/")[2]
