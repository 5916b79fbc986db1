"""The macOS keychain through its own program `security`. NOT verified on a real keychain: all workers are Linux.

Nothing here runs unless a deployment gives its writers a `Keychain`. A value goes in as hex on stdin: in argv every
process could read it, and as raw JSON its quotes would end the word that it is in.

Source: seed 002 "This is a reimplementation of another project's internals"; requirements writers-codex-keychain-*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from harness.reference.credentials.writers.store_file import Change, Document, Result, document_of, parse, text_of
from harness.reference.credentials.writers.tool import ToolAnswer, ask
from harness.world import World

SECURITY = "security"
SECONDS = 5.0
NO_SUCH_ITEM = 44
"""The exit code of `security` for errSecItemNotFound."""

VERIFICATION = "unverified"
"""No result of this path is one of a real keychain, and none may be reported as that."""


class Item(NamedTuple):
    """A generic password: one value of a service and an account."""

    service: str
    account: str
    value: Document


@dataclass(frozen=True, slots=True)
class Keychain:
    """The login keychain of a user, whose name is the account of Claude's one item."""

    user: str

    async def put(self, world: World, item: Item) -> bool:
        """Put an item in, over the one there is. A keychain that cannot be used gives a warning."""
        command = put_command(item)
        answer = None if command is None else await ask(world, [SECURITY, "-i"], command, until(world))
        return told(world, answer, "written to")

    async def get(self, world: World, service: str, account: str) -> str | None:
        """An item's text; None where there is none or it cannot be had."""
        answer = await ask(world, get_argv(service, account), None, until(world))
        if answer is None or answer.exit_code != 0:
            return None
        return readable("\n".join(answer.lines))

    async def remove(self, world: World, service: str, account: str) -> bool:
        """Remove an item; whether there was one."""
        answer = await ask(world, remove_argv(service, account), None, until(world))
        if answer is not None and answer.exit_code == NO_SUCH_ITEM:
            return False
        return told(world, answer, "removed from")

    async def document(self, world: World, service: str) -> Document:
        """The JSON object in the user's item of a service."""
        return document_of(await self.get(world, service, self.user))

    async def change(self, world: World, service: str, change: Change[Result]) -> None:
        """Change the JSON object in the user's item of a service."""
        document, _ = change(await self.document(world, service))
        if document is not None:
            await self.put(world, Item(service, self.user, document))


def put_command(item: Item) -> str | None:
    """The command on the stdin of `security -i`; None for names that would end its line."""
    if not (item.service + item.account).isprintable():
        return None
    value = text_of(item.value).encode("utf-8", "surrogatepass").hex()
    return f"add-generic-password -U -s {word(item.service)} -a {word(item.account)} -X {value}"


def word(text: str) -> str:
    """A word of that command."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def get_argv(service: str, account: str) -> list[str]:
    """What prints an item's value."""
    return [SECURITY, "find-generic-password", "-s", service, "-a", account, "-w"]


def remove_argv(service: str, account: str) -> list[str]:
    """What removes an item."""
    return [SECURITY, "delete-generic-password", "-s", service, "-a", account]


def readable(printed: str) -> str:
    """A value as it was put in: one that is not all ASCII, or has line ends, is printed as hex."""
    try:
        text = bytes.fromhex(printed).decode(errors="replace")
    except ValueError:
        return printed
    return printed if parse(text) is None else text


def told(world: World, answer: ToolAnswer | None, done: str) -> bool:
    """Whether it was done; a warning where it was not. What the program printed is not repeated."""
    if answer is not None and answer.exit_code == 0:
        return True
    why = "it could not be asked" if answer is None else f"exit code {answer.exit_code}"
    world.events.emit("log", level="warn", text=f"a credential could not be {done} the keychain: {why}")
    return False


def until(world: World) -> float:
    """When an answer comes too late."""
    return world.clock.now() + SECONDS


def unverified() -> dict[str, Any]:
    """What a report says of this path (writers-codex-keychain-unverified)."""
    return {"path": "macOS keychain (security)", "status": VERIFICATION, "runtimes": ["claude", "codex"]}
