"""What an entry may do on the machine that starts it, as far as its command line and its environment say so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from harness.gate.container_commands import ContainerRun
from harness.gate.launchers import command_line, container

HOST_ROOT = re.compile(r"/(?::.*)?")
"""A mount of the whole file system, `/` or `/:/host`."""
CONTAINER_SOCKET = re.compile(r"(?:docker|podman|containerd|crio)\.sock\b|/(?:var/)?run(?::|/?\Z)")
HOST_SPACES = ("network", "pid", "ipc", "userns", "uts")
"""What a container may share with its host."""
STRONG_CAPABILITIES = frozenset({"ALL", "SYS_ADMIN", "SYS_PTRACE", "SYS_MODULE", "NET_ADMIN", "DAC_OVERRIDE"})

PERMISSIONS = frozenset(
    {"--allow-all", "--allow-write", "--allow-run", "--allow-net", "--allow-env", "--allow-read", "--allow-ffi"}
    | {"--allow-dangerous", "--allow-delete", "--allow-destructive", "--enable-write", "--enable-writes", "--write"}
    | {"--access-mode=unrestricted", "--read-write", "--no-sandbox", "--yolo", "--unsafe", "--unrestricted"}
    | {"--dangerously-skip-permissions", "--dangerously-allow-all", "--disable-sandbox", "--no-read-only"}
    | {"--auto-approve", "--trust-all", "--insecure", "--disable-security"}
)
"""Arguments by which servers and their launchers are given more, `--name` or `--name=value`."""
RESTRAINTS = frozenset({"--read-only", "--readonly", "--access-mode=restricted", "--sandbox", "--safe-mode"})
"""Arguments that keep a server from something: to lose one is to gain power."""

CODE_BEFORE_MAIN = frozenset(
    {"LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "PATH", "NODE_OPTIONS", "NODE_PATH"}
    | {"PYTHONPATH", "PYTHONHOME", "BASH_ENV", "RUBYOPT", "PERL5OPT", "JAVA_TOOL_OPTIONS"}
)
"""Variables by which other code is loaded, or another program found."""
UNCHECKED_TLS = ("NODE_TLS_REJECT_UNAUTHORIZED", "0")


def powers(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The powers of an entry in words, each once; none of a remote server."""
    line = command_line(entry)
    if line is None:
        return ()
    run = container(entry)
    found = [*_of_container(run)] if run else []
    found += [word for word in _settled(line.args) if word in PERMISSIONS or word.partition("=")[0] in PERMISSIONS]
    env = entry.get("env")
    for name, value in env.items() if isinstance(env, dict) else ():
        if name in CODE_BEFORE_MAIN:
            found.append(f"{name}, which decides what code runs")
        elif (name, value) == UNCHECKED_TLS:
            found.append("TLS without a check of the certificate")
    return tuple(dict.fromkeys(found))


def restraints(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The restraints that an entry's arguments lay on its server."""
    line = command_line(entry)
    return tuple(word for word in _settled(line.args) if word in RESTRAINTS) if line else ()


def _settled(args: tuple[str, ...]) -> Iterator[str]:
    """Each option, and where a word follows also `--option=word`; a switch that is turned off is none."""
    for word, after in zip(args, (*args[1:], ""), strict=False):
        name, equals, value = word.partition("=")
        if equals and value.lower() in ("false", "0", "no", "off"):
            continue
        yield word
        if name.startswith("--") and not equals and after and not after.startswith("-"):
            yield f"{name}={after}"


def _of_container(run: ContainerRun) -> Iterator[str]:
    if run.has("privileged"):
        yield "--privileged"
    for name in HOST_SPACES:
        if "host" in run.values(name):
            yield f"--{name} host"
    for _, source in run.volume_sources():
        if HOST_ROOT.fullmatch(source):
            yield "a mount of the whole file system of the host"
        elif CONTAINER_SOCKET.search(source):
            yield "a mount of the container program's socket, which commands the host"
    for value in run.values("cap-add"):
        if value.upper().removeprefix("CAP_") in STRONG_CAPABILITIES:
            yield f"--cap-add {value.upper().removeprefix('CAP_')}"
    for option in run.values("security-opt"):
        if option.endswith("unconfined"):
            yield f"--security-opt {option}"
    if run.has("device"):
        yield "--device"
