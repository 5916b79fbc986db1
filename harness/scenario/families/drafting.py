"""What a family is, and the parts that its drawn scenarios are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harness.scenario.draws import Draws
from harness.scenario.reach import Mark, happens
from harness.scenario.trees import Tree


class Family(NamedTuple):
    """A kind of scenario. `old_bugs` are known-bad variants that it must find, each from random starts."""

    name: str
    says: str
    incidents: tuple[str, ...]
    tree: Callable[[int], Tree]
    marks: tuple[Mark, ...]
    old_bugs: tuple[str, ...]


BYSTANDER_KILLED = Mark("bystander-killed", "a server beside is killed", happens("fault", action="kill"))


def draft(name: str, title: str, runtime: str) -> Tree:
    """The head of a drawn scenario."""
    return {"schema": 1, "id": name, "title": title, "runtime": runtime, "catalog": {}, "server": {}, "package": {}}


def npx(*args: str) -> dict[str, Any]:
    """An entry that npx starts."""
    return {"type": "stdio", "command": "npx", "args": ["-y", *args]}


def local(name: str) -> dict[str, Any]:
    """An entry that starts a program of the machine."""
    return {"type": "stdio", "command": f"/opt/tools/{name}"}


def connected(server: str, session: str) -> dict[str, Any]:
    """What must be seen of a server."""
    return {"session": session, "server": server, "is": "connected", "says": f"{server} is connected in {session}"}


def add_bystander(tree: Tree, draws: Draws) -> None:
    """A server that may be killed at any time: nobody else may be hurt by it."""
    if draws.chance("bystander", 40):
        tree["catalog"]["bystander"] = local("bystander")
        tree["fault"] = [{"action": "kill", "server": "bystander", "drawn": True, "times": 1}]


def without_empty(tree: Tree) -> Tree:
    """The tree without tables that hold nothing."""
    return {key: value for key, value in tree.items() if value not in ({}, [])}
