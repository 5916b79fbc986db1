"""Old or plausible bugs of the fake Codex's runs: what it waits for, reads, hands down and survives."""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

from fake_runtimes.client import connect_stdio
from fake_runtimes.codex.config import server_tables as server_tables_rule
from fake_runtimes.codex.home import read_credentials as read_credentials_rule
from fake_runtimes.codex.home import read_project as read_project_rule
from fake_runtimes.codex.servers import Servers, identity
from fake_runtimes.codex.shape import check_entry as check_entry_rule
from fake_runtimes.codex.startup import attempt_seconds as attempt_seconds_rule
from fake_runtimes.loaded import EntryError
from fake_runtimes.profile import load_profile
from harness.requirements.variants import variant

SERVERS = "fake_runtimes.codex.servers:Servers"
HOME = "fake_runtimes.codex.home"
CONFIG = "fake_runtimes.codex.config"
BUGS = "fake_runtimes.codex.bugs"
NEWER: Any = load_profile("codex-0.169.0")
start_one = Servers._start
environment_rule = Servers._environment


@variant(
    f"{SERVERS}.wait_for_first_request",
    catches=("prepare-codex-grace-zero", "prepare-fake-codex-own-default", "prepare-hang-costs-whole-budget"),
)
async def the_first_request_waits_for_nobody(self):
    """Asks the model as soon as the servers have been started."""


@variant(f"{SERVERS}.wait_for_first_request", catches=("prepare-codex-grace-zero",))
async def the_first_request_waits_for_everybody(self):
    """Waits each budget in every version, so that the grace is never seen."""
    await self.settled()


@variant(f"{SERVERS}._start", catches=("prepare-nine-cold-npx-within-budget",))
async def servers_start_one_after_the_other(self, server):
    """Starts a server when the one before it has its outcome."""
    names = list(self._tasks)
    before = names[: names.index(server.name)]
    await self.world.tasks.wait([self._tasks[name] for name in before])
    await start_one(self, server)


@variant(f"{SERVERS}._connect_stdio", catches=("startup-timeout-codex-fast-beside-slow",))
async def the_longest_budget_serves_all_servers_of_a_run(self, server, budget):
    """Gives up on nobody before the slowest server's budget is over."""
    longest = max(attempt_seconds_rule(one, self.profile) for one in self.held.servers)
    return await connected(self, server, longest)


@variant(
    f"{SERVERS}._connect_stdio",
    catches=("prepare-codex-default-stdio", "npx-cold-clone-fits-budget", "prepare-nine-cold-npx-within-budget"),
)
async def a_run_knows_the_default_budget_alone(self, server, budget):
    """Starts every server under 30 seconds, whatever was written for it."""
    return await connected(self, server, self.profile.default_startup_timeout_sec)


async def connected(self, server, budget):
    return await connect_stdio(
        self.world,
        server,
        self._environment(server),
        self.held.directory,
        identity(self.profile),
        budget,
        budget,
        on_spawn=self._children.append,
    )


@variant(f"{SERVERS}._environment", catches=("prepare-codex-child-env-whitelist",))
def a_run_hands_down_its_whole_environment(self, server):
    """Lets a child see everything that was exported to the program."""
    return {**self.world.env.variables, **environment_rule(self, server)}


@variant(f"{HOME}:read_project", catches=("prepare-codex-trust",))
async def every_project_is_trusted(world, profile, arguments, place):
    """Reads the project's file without asking whether it may."""
    text, _ = await read_project_rule(world, profile, arguments, place)
    return text, True


@variant(f"{HOME}:record_trust", catches=("prepare-codex-trust",))
async def trust_is_not_recorded(world, place):
    """Leaves the user's file as it was."""


@variant(f"{CONFIG}:server_tables", catches=("translate-footgun-codex-unknown-ignored",))
def only_the_bad_entry_is_dropped(merged):
    """Starts the other servers of a file with one bad entry."""
    return {name: table for name, table in server_tables_rule(merged).items() if is_valid(table)}


def is_valid(table):
    try:
        check_entry_rule(table, NEWER)
    except EntryError:
        return False
    return True


@variant(f"{CONFIG}:server_tables", catches=("status-codex-name-pattern",))
def a_bad_name_rejects_the_whole_file(merged):
    """Takes a name that one server fails over for a fault of the file."""
    tables = server_tables_rule(merged)
    for name in tables:
        if re.fullmatch("[a-zA-Z0-9_-]+", name) is None:
            raise EntryError(f"invalid server name '{name}'")
    return tables


stores: WeakKeyDictionary[object, str] = WeakKeyDictionary()


@variant(f"{HOME}:read_credentials", catches=("store-codex-reads-each-connection",))
async def the_store_is_kept_for_the_life_of_the_process(world, held):
    """Looks at the store for the first connection alone."""
    text = await read_credentials_rule(world, held)
    return stores.setdefault(world, text)


@variant(f"{BUGS}:keeps_login", catches=("writers-codex-workaround-bugs",))
def no_login_ever_survives(bugs):
    """Has a bug that nobody asked for, and that no measured version shows."""
    return False


@variant(f"{BUGS}:uses_refresh_token", catches=("writers-codex-workaround-bugs",))
def no_token_is_ever_renewed(bugs):
    """Has the other one, so that the workaround looks as if it would be needed for ever."""
    return False


@variant(f"{BUGS}:uses_refresh_token", catches=("writers-codex-workaround-bugs",))
def the_bug_cannot_be_had(bugs):
    """Renews whatever happens, so that a scenario of the bug shows nothing."""
    return True
