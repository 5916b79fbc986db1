"""Two configs of one server that a runtime files under one key: each row keeps to its own chain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.reference.catalog.catalog import read_catalog
from harness.reference.credentials import owners, table
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.reconcile import Reconciler, settle_owners
from harness.reference.credentials.retire import retire
from harness.reference.credentials.writers.registry import registered_writers, session_writer
from harness.reference.oauth.server import remote_server
from harness.reference.session.injection import hand_over
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.world import World
from harness.world.model import Fault
from scenarios.units.oauth_run import START_SECONDS, Ran
from scenarios.units.spawn_gate_run import HOME, HOUR, STORE, Session, credential, remote

Entry = Mapping[str, Any]
PLAIN, TEAM = remote("n"), remote("n", headers={"X-Team": "acme"})
ONE, OTHER = (remote("n", url=f"https://${{{name}}}.test/mcp") for name in ("ONE", "OTHER"))
SAME: Any = {"ONE": "n", "OTHER": "n"}.get
CODEX_STORE = f"{HOME}/.codex/.credentials.json"
SHARED: Mapping[Runtime, tuple[Entry, Entry, str]] = {
    "codex": (PLAIN, TEAM, CODEX_STORE), "claude": (ONE, OTHER, STORE)
}  # fmt: skip
RUNTIMES = sorted(SHARED)
TOKENS: Mapping[Runtime, tuple[str, str]] = {
    "codex": ("access_token", "refresh_token"), "claude": ("accessToken", "refreshToken")
}  # fmt: skip


def rows_of(runtime: Runtime) -> tuple[Any, Any]:
    """The row of before an edit, and the one of after it, which ends later."""
    before, after, _ = SHARED[runtime]
    old = credential("n", HOUR, entry=before, lookup=SAME, access_token="old")
    new = credential("n", 2 * HOUR, entry=after, lookup=SAME, access_token="new")
    assert old.credential_key != new.credential_key
    assert old.runtime_keys[runtime] == new.runtime_keys[runtime]
    return old, new


class Shared:
    """A runtime's store, and the rows, while a program runs."""

    def __init__(self, world: World, order: Order) -> None:
        self.world, self.order, self.runtime = world, order, order.runtime
        self.before, self.after, self.path = SHARED[order.runtime]

    async def spawn(self, entry: Entry) -> None:
        """A session that has this config."""
        await run_session(self.world, replace(self.order, catalog=read_catalog({"n": dict(entry)})))

    async def entries(self) -> dict[str, Any]:
        """What the store has."""
        document = json.loads(await self.world.files.read(self.path))
        found: dict[str, Any] = document["mcpOAuth"] if self.runtime == "claude" else document
        return found

    async def renews(self, token: str, hours: float) -> None:
        """The runtime renews what lies there."""
        [(key, entry)] = (await self.entries()).items()
        access, refresh = TOKENS[self.runtime]
        expiry = "expiresAt" if self.runtime == "claude" else "expires_at"
        changed = {key: {**entry, access: token, refresh: f"refresh-of-{token}", expiry: stamp(hours)}}
        document = {"mcpOAuth": changed} if self.runtime == "claude" else changed
        await self.world.files.write(self.path, json.dumps(document).encode())

    async def held(self) -> list[str]:
        """The access tokens in the store."""
        return [entry[TOKENS[self.runtime][0]] for entry in (await self.entries()).values()]

    async def adopted(self) -> list[str]:
        """What the two rows hold after the scheduled job has looked into every store, for each of them."""
        found = []
        for row in rows_of(self.runtime):
            await Reconciler(self.world, registered_writers(self.world)).adopt(row.credential_key)
            after = await table.find(self.world, row.credential_key)
            found.append("" if after is None else after.access_token)
        return found


def stamp(hours: float) -> int:
    """An expiry as the stores have it."""
    return int((START_SECONDS + hours * HOUR) * 1000)


def run(runtime: Runtime, program: Any, **more: Any) -> Any:
    """Both rows, and what is done; its answer."""

    async def body(world: World, order: Order) -> Any:
        return await program(Shared(world, order))

    first = dict(SHARED[runtime][0])
    return Session({"n": first}, credentials=rows_of(runtime), runtime=runtime, lookup=SAME, program=body, **more).ran


@pytest.mark.requirement("reconcile-two-rows-one-name", "refresh-chain-never-burned")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_was_handed_over_for_one_row_is_not_taken_over_into_another(runtime):
    async def program(shared: Shared) -> Any:
        await shared.spawn(shared.before)
        await shared.spawn(shared.after)
        held = await shared.held()
        untouched = await shared.adopted()
        await shared.renews("renewed", 5)
        return held, untouched, await shared.adopted()

    assert run(runtime, program).result == (["new"], ["old", "new"], ["old", "renewed"])


@pytest.mark.requirement("reconcile-two-rows-one-name", "refresh-chain-never-burned")
def test_a_row_gets_what_was_renewed_of_its_copy_before_another_takes_its_place():
    async def program(shared: Shared) -> Any:
        await shared.spawn(shared.before)
        await shared.renews("renewed", 4)
        await shared.spawn(shared.after)
        return await shared.held(), await shared.adopted()

    assert run("codex", program).result == (["new"], ["renewed", "new"])


@pytest.mark.requirement("reconcile-two-rows-one-name")
def test_a_fresher_copy_that_stays_where_it_is_stays_its_rows():
    """Claude's entry of the one row ends later than the other row, so that rule keeps it."""

    async def program(shared: Shared) -> Any:
        await shared.spawn(shared.before)
        await shared.renews("renewed", 4)
        await shared.spawn(shared.after)
        return await shared.held(), await shared.adopted()

    assert run("claude", program).result == (["renewed"], ["renewed", "new"])


@pytest.mark.requirement("reconcile-two-rows-one-name")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_retiring_one_row_leaves_the_others_copy(runtime):
    async def program(shared: Shared) -> Any:
        await shared.spawn(shared.before)
        await shared.spawn(shared.after)
        old, new = rows_of(runtime)
        await retire(shared.world, old.credential_key, registered_writers(shared.world), "n")
        held = await shared.held()
        await retire(shared.world, new.credential_key, registered_writers(shared.world), "n")
        return held, await shared.held()

    assert run(runtime, program).result == (["new"], [])


@pytest.mark.requirement("reconcile-two-rows-one-name")
@pytest.mark.parametrize("why", ["it has lapsed", "the disk is full"])
def test_a_copy_that_nothing_is_handed_over_for_stays_its_rows(why):
    lapsed = why == "it has lapsed"
    faults = [] if lapsed else [Fault("enospc", label="write *.credentials.json", nth=2)]

    async def program(shared: Shared) -> Any:
        await shared.spawn(shared.before)
        new = rows_of("codex")[1]
        if lapsed:
            await table.change(
                shared.world,
                new.credential_key,
                lambda _: replace(new, expires_at=START_SECONDS - 1, refresh_token=None),
            )
        writer = session_writer(shared.world, "codex", shared.world.env.variables)
        entry = read_catalog({"n": dict(TEAM)}).require("n")
        await hand_over(shared.world, writer, [remote_server(entry, SAME)])
        await shared.renews("renewed", 5)
        return await shared.held(), (await shared.adopted())[0]

    assert run("codex", program, faults=faults).result == (["renewed"], "renewed")


DEATHS = [
    # where the spawn of the second row dies, at which of these points, and whose the copy in the store is then
    (f"put row {owners.TABLE}/codex *", 1, "old"),
    ("write *.credentials.json", 1, "old"),
    ("renamed *.credentials.json", 1, "new"),
    (f"put row {owners.TABLE}/codex *", 2, "new"),
]


def dying_spawn(begun: Session, after: Any, *, at: str, nth: int) -> Ran:
    """What `after` does in the world that a run has left, a minute after a spawn of the second row died at a point."""

    async def dying(world: World) -> Any:
        await run_session(world, replace(begun.order, catalog=read_catalog({"n": dict(TEAM)})))

    async def later(world: World, order: Order) -> Any:
        await world.clock.sleep(60)
        return await after(Shared(world, order))

    there = begun.ran.simulation.table.committed
    ran = Session(
        {"n": dict(PLAIN)}, runtime="codex", lookup=SAME, program=later, others={"dying": dying},
        more_rows=dict(there), files={CODEX_STORE: begun.text(CODEX_STORE) or "{}"},
        faults=[Fault("kill", actor="dying", label=at, nth=nth)],
    ).ran  # fmt: skip
    assert len(ran.named("killed")) == 1
    return ran


async def nothing(world: World, order: Order) -> None:
    """Nobody was there before."""


async def spawned_first(world: World, order: Order) -> None:
    await Shared(world, order).spawn(PLAIN)


def begun_by(program: Any) -> Session:
    return Session({"n": dict(PLAIN)}, credentials=rows_of("codex"), runtime="codex", lookup=SAME, program=program)


async def renewed_later(shared: Shared) -> Any:
    """What lies there after the death, and the two rows once the runtime has renewed it."""
    held = await shared.held()
    await settle_owners(shared.world, registered_writers(shared.world), rows_of("codex"))
    await shared.renews("renewed", 5)
    return held, await shared.adopted()


@pytest.mark.requirement("reconcile-two-rows-one-name", "refresh-chain-never-burned")
@pytest.mark.parametrize(("at", "nth", "whose"), DEATHS)
def test_whoever_dies_while_one_copy_takes_anothers_place_leaves_it_to_the_row_that_it_is_of(at, nth, whose):
    ran = dying_spawn(begun_by(spawned_first), renewed_later, at=at, nth=nth)
    assert ran.result == ([whose], ["renewed", "new"] if whose == "old" else ["old", "renewed"])


@pytest.mark.requirement("reconcile-two-rows-one-name", "refresh-chain-never-burned")
def test_whoever_dies_with_a_first_copy_written_leaves_it_to_its_row_alone():
    ran = dying_spawn(begun_by(nothing), renewed_later, at="renamed *.credentials.json", nth=1)
    assert ran.result == (["new"], ["old", "renewed"])


@pytest.mark.requirement("reconcile-two-rows-one-name")
@pytest.mark.parametrize(("at", "nth", "whose"), DEATHS)
def test_a_copy_whose_place_was_about_to_be_taken_goes_with_its_own_row_alone(at, nth, whose):
    async def after(shared: Shared) -> Any:
        old, new = rows_of("codex")
        its, others = (old, new) if whose == "old" else (new, old)
        await retire(shared.world, others.credential_key, registered_writers(shared.world), "n")
        held = await shared.held()
        await retire(shared.world, its.credential_key, registered_writers(shared.world), "n")
        return held, await shared.held()

    assert dying_spawn(begun_by(spawned_first), after, at=at, nth=nth).result == ([whose], [])


@pytest.mark.requirement("reconcile-two-rows-one-name")
@pytest.mark.parametrize(("at", "nth", "whose"), DEATHS)
def test_a_third_spawn_finds_whose_copy_a_death_has_left(at, nth, whose):
    async def after(shared: Shared) -> Any:
        await shared.spawn(shared.before)
        known = await owners.owners(shared.world)
        await shared.renews("renewed", 5)
        return [owner.successor for owner in known.values()], await shared.held(), await shared.adopted()

    ran = dying_spawn(begun_by(spawned_first), after, at=at, nth=nth)
    assert ran.result == ([""], ["renewed"], ["renewed", "new"])


def unnoted(runtime: Runtime, token: str, hours: float, program: Any, *, lapsed: bool = False) -> Any:
    """What a program gives where a store holds a pair of which nobody has noted whose it is."""

    async def there_already(shared: Shared) -> Any:
        old = rows_of(runtime)[0]
        if lapsed:
            await table.change(shared.world, old.credential_key, lambda _: replace(old, refresh_token=None))
        await shared.spawn(shared.before)
        transaction = await shared.world.store.begin()
        for place in await owners.owners(shared.world):
            await transaction.delete(owners.TABLE, place)
        await transaction.commit()
        await shared.renews(token, hours)
        return await program(shared)

    return run(runtime, there_already).result


@pytest.mark.requirement("reconcile-two-rows-one-name", "refresh-chain-never-burned")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_pair_of_which_nobody_knows_whose_it_is_is_not_taken_over_into_two_rows(runtime):
    assert unnoted(runtime, "renewed", 5, Shared.adopted) == ["old", "new"]


@pytest.mark.requirement("reconcile-two-rows-one-name")
def test_a_row_that_has_no_chain_claims_no_pair():
    assert unnoted("codex", "renewed", 5, Shared.adopted, lapsed=True)[1] == "renewed"


@pytest.mark.requirement("reconcile-two-rows-one-name")
@pytest.mark.parametrize(("token", "left"), [("old", ["old"]), ("renewed", [])])
def test_retiring_a_row_leaves_an_unnoted_copy_that_another_row_holds(token, left):
    async def program(shared: Shared) -> Any:
        old, new = rows_of("codex")
        await table.change(shared.world, old.credential_key, lambda _: replace(old, refresh_token="refresh-of-old"))
        await retire(shared.world, new.credential_key, registered_writers(shared.world), "n")
        return await shared.held()

    assert unnoted("codex", token, 1, program) == left
