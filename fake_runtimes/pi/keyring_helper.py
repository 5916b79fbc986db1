"""The adapter's `mcp-keyring-helper.cjs`: one JSON request on stdin, one line on stdout, the same store as Pi's.

Run by itself on headless Linux it has no session keyring: it finds nothing, cannot write, and removes nothing, the last
without an error. Under `keyctl session -` it sees what Pi has. Measured on 2.32.1 and 2.36.0, whose helpers are equal.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from fake_runtimes.pi.ring import KEYRING, Ring
from fake_runtimes.pi.variables import KEYRING_VARIABLE
from fake_runtimes.text import JsonTextError, json_stringify, parse_json
from harness.world.ports import World

HELPER_NAME = "mcp-keyring-helper.cjs"
JOINING = "keyctl"
OPERATIONS = ("read", "write", "remove")
Value = TypeVar("Value")
DENIED = "Couldn't access platform storage: AccessDenied"


class RefusedError(Exception):
    """Why a request is not answered; the message is the helper's."""


def is_keyring_helper(argv: Sequence[str]) -> bool:
    """Whether a command runs the helper, under a joined session keyring or not."""
    return bool(argv) and argv[-1].endswith(HELPER_NAME)


async def program(world: World, argv: Sequence[str]) -> int:
    """Answer one request. Exit code 0, or 1 for an error."""
    lines = []
    while (line := await world.processes.read_line()) is not None:
        lines.append(line)
    try:
        answer: Mapping[str, Any] = {"ok": True, **await answered(world, "\n".join(lines), joined=argv[0] == JOINING)}
    except RefusedError as error:
        answer = {"ok": False, "error": str(error)}
    try:
        await world.processes.write_line(json_stringify(answer))
    except BrokenPipeError:  # whoever asked is gone
        return 1
    return 0 if answer["ok"] else 1


async def answered(world: World, text: str, *, joined: bool) -> Mapping[str, Any]:
    """What is answered besides `ok`. Raises RefusedError."""
    request = checked(text)
    directory = f"{world.env.variables.get(KEYRING_VARIABLE) or KEYRING.rpartition('/')[0]}/{request['service']}"
    ring, account, operation = Ring(world, directory), request["account"], request["operation"]
    if operation == "write":
        if not joined:
            raise RefusedError(DENIED)
        await used(ring.write(account, request["payload"]))
        return {}
    if operation == "remove":
        if joined:
            await used(ring.remove(account))
        return {}
    value = await used(ring.read(account)) if joined else None
    return {"found": False} if value is None else {"found": True, "value": value}


def checked(text: str) -> Mapping[str, Any]:
    """A request. Raises RefusedError."""
    try:
        request = parse_json(text)
    except JsonTextError as error:
        raise RefusedError(str(error)) from None
    if not isinstance(request, dict) or request.get("operation") not in OPERATIONS:
        raise RefusedError("invalid operation")
    needed = ("service", "account", *(("payload",) if request["operation"] == "write" else ()))
    for name in needed:
        if not isinstance(request.get(name), str) or not request[name]:
            raise RefusedError(f"invalid {name}")
    return request


async def used(work: Coroutine[Any, Any, Value]) -> Value:
    """What a use of the keyring comes to."""
    try:
        return await work
    except OSError as error:
        raise RefusedError(f"Couldn't access platform storage: {error.strerror}") from None
