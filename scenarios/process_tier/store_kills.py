"""Processes of the orchestrator that are killed by the steps of their own store, for tests.

A step is a statement by which a commit is made (its beginning, each row, its end), and each has a before and an after.
Nothing is timed: a process counts its steps, and sends SIGKILL to itself at the one that it was told.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import anyio

from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials import table
from harness.reference.credentials.cron import run_refresh_job
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.reconcile import Reconciler
from harness.reference.credentials.refresh import refresh
from harness.reference.credentials.retire import retire
from harness.reference.credentials.writers.claude import ClaudeWriter
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.oauth.web import OAuthDeps, callback, initiate
from harness.requirements.variants import VARIANTS
from harness.scenario.variants import in_place
from harness.world import World
from harness.world.live import live_world, run
from harness.world.live.forks import Fork
from harness.world.outside.setting import Setting
from scenarios.variants import live_store
from scenarios.variants import refresh as refresh_variants

PRELOAD = ("harness.world.live", "scenarios.process_tier.store_kills")
BUGS = (live_store, refresh_variants)
"""Imported, so that a process has the variants that it is given by name."""
SERVER = "notion"
PATIENCE_SECONDS = 20.0
STATEMENTS = ("BEGIN", "INSERT", "DELETE", "COMMIT")


def nothing(_name: str) -> str | None:
    """No variable has a value."""
    return None


class House(NamedTuple):
    """One deployment: where its provider is, its folder, when it began, and what a browser came back with."""

    origin: str
    folder: str
    certificates: str
    began: float
    parameters: Mapping[str, str] = {}

    @property
    def store(self) -> str:
        """The file of its rows."""
        return f"{self.folder}/rows.db"

    @property
    def entry(self) -> dict[str, str]:
        """The catalog's one entry."""
        return {"type": "http", "url": f"{self.origin}/mcp"}

    @property
    def key(self) -> str:
        """The key of its credential."""
        return credential_key(SERVER, self.entry)

    @property
    def deps(self) -> OAuthDeps:
        """What the web side knows."""
        return OAuthDeps(read_catalog({SERVER: self.entry}), nothing, OAuthSettings("zimmer.example.com"))

    @property
    def claude(self) -> ClaudeWriter:
        """A runtime's store."""
        return ClaudeWriter(f"{self.folder}/.claude")

    def entered(self) -> AbstractAsyncContextManager[World]:
        """A world of this deployment."""
        return live_world(self.setting, variables=self.variables, directory="/", store=self.store)

    @property
    def setting(self) -> Setting:
        """Nobody steers; the provider's authority is trusted."""
        return Setting("zimmer", certificates=self.certificates)

    @property
    def variables(self) -> dict[str, str]:
        """Its environment."""
        return {"HOME": self.folder, "PATH": "/usr/bin:/bin"}


async def renews(world: World, house: House) -> Any:
    """The scheduled job."""
    await run_refresh_job(world, (house.claude,))


async def waited(world: World, house: House) -> Any:
    """Whoever began before anybody was killed, and had to wait for the row."""
    return (await refresh(world, house.key, reason="gate", since={})).result


async def adopts(world: World, house: House) -> Any:
    """A spawn that looks into its runtime's store."""
    return await Reconciler(world, (house.claude,)).adopt(house.key)


async def retires(world: World, house: House) -> Any:
    """The classifier that has seen the grant refused."""
    return await retire(world, house.key, (house.claude,), SERVER)


async def clicks(world: World, house: House) -> Any:
    """A person on the Connectors page."""
    return await initiate(world, house.deps, server_name=SERVER)


async def completes(world: World, house: House) -> Any:
    """The provider's redirect."""
    return await callback(world, house.deps, house.parameters)


async def finds(world: World, house: House) -> Any:
    """The row, once its lock is free."""
    transaction = await world.store.begin()
    row = await table.read(transaction, house.key, lock=True)
    await transaction.rollback()
    return row


PROGRAMS: Mapping[str, Callable[[World, House], Awaitable[Any]]] = {
    each.__name__: each for each in (renews, waited, adopts, retires, clicks, completes, finds)
}


def here(house: House, program: Callable[[World, House], Awaitable[Any]]) -> Any:
    """Do something here and now. TimeoutError where somebody holds what it waits for."""

    async def body() -> Any:
        async with house.entered() as world:
            with anyio.fail_after(PATIENCE_SECONDS):
                return await program(world, house)

    return anyio.run(body)


def act(house: House, name: str) -> Any:
    """The same by name."""
    return here(house, PROGRAMS[name])


class Dying(sqlite3.Connection):
    """A connection that tells each step, and ends its process at one."""

    told: ClassVar[str] = ""
    left: ClassVar[int] = 0

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """The statement, and a step before and after it."""
        name = sql.split()[0]
        self.step(f"before {name}")
        done = super().execute(sql, parameters)
        self.step(f"after {name}")
        return done

    @classmethod
    def step(cls, label: str) -> None:
        """One step, if it is one that a commit is made of."""
        if not label.endswith(STATEMENTS):
            return
        with Path(cls.told).open("a", encoding="utf-8") as file:
            file.write(f"{label}\n")
        if cls.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        cls.left -= 1


def dies(house: House, name: str, point: int, bug: str) -> int:
    """The process, which dies at the step of that number (-1: at none)."""
    Dying.told, Dying.left = f"{house.folder}/steps", point
    vars(sqlite3)["connect"] = partial(sqlite3.connect, factory=Dying)

    async def program(world: World, _argv: Sequence[str]) -> int:
        await PROGRAMS[name](world, house)
        return 0

    with in_place(VARIANTS[bug] if bug else None):
        return run(program, [], house.setting, variables=house.variables, directory="/", store=house.store)


def killed(house: House, name: str, point: int, bug: str = "") -> tuple[int, list[str]]:
    """Have it die: its exit code (negative: the signal), and the steps that it came to."""
    codes: list[int] = []
    Fork(dies, (house, name, point, bug), PRELOAD, codes.append).join()
    steps = Path(f"{house.folder}/steps")
    return codes[0], steps.read_text(encoding="utf-8").splitlines() if steps.exists() else []
