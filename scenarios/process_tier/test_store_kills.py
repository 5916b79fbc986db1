"""The store in its file, under processes that are killed at each step of their commits."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from fake_servers.mounts import Mount, TestAuthority
from fake_servers.oauth.authorization import AuthorizationServer
from fake_servers.oauth.browser import consent
from fake_servers.oauth.profiles import Stage, profile_named
from harness.reference.credentials.row import COLUMNS, Credential, row_values
from harness.reference.credentials.row import TABLE as CREDENTIALS
from harness.reference.credentials.writers.claude import pairs
from harness.reference.oauth.flows import TABLE as FLOWS
from harness.reference.oauth.web import Answer
from harness.world import Request, Response, World
from harness.world.live.store import all_committed, put_committed
from scenarios.process_tier.store_kills import SERVER, House, act, clicks, completes, here, killed, renews

ORIGIN = "https://127.0.0.1:0"
HOUR = 3600.0
CLIENT = "a-client"
MOST_POINTS = 60
COMMIT = ["before BEGIN", "after BEGIN", "before INSERT", "after INSERT", "before COMMIT", "after COMMIT"]


class Door:
    """One address behind which there is another provider for each death."""

    def __init__(self) -> None:
        self.server: Any = None

    def handle(self, request: Request, now: float, who: str) -> Response:
        """The answer of the one that is there now."""
        answer: Response = self.server.handle(request, now, who)
        return answer


class Place(NamedTuple):
    """Where the houses are built."""

    folder: Path
    door: Door
    origin: str
    certificates: str


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    """A provider that listens, and a folder."""
    with tempfile.TemporaryDirectory(prefix="k-") as name:
        folder = Path(name).resolve()
        authority, door = TestAuthority(folder), Door()
        with Mount({ORIGIN: door}, authority=authority) as mount:
            yield Place(folder, door, mount.url(ORIGIN).rstrip("/"), str(authority.path))


class Life:
    """A house with its provider, before and after a death."""

    def __init__(self, place: Place) -> None:
        self.stage: Stage = profile_named("well-behaved").moved(place.origin, place.origin).stage()
        place.door.server = self.stage.site
        folder = tempfile.mkdtemp(dir=place.folder)
        self.house = House(place.origin, folder, place.certificates, time.time())
        put_committed(self.house.store, {})

    @property
    def provider(self) -> AuthorizationServer:
        """Who gives out the tokens."""
        return self.stage.authorization

    def row(self) -> dict[str, Any] | None:
        """The credential as committed."""
        return all_committed(self.house.store, CREDENTIALS).get(self.house.key)

    def flows(self) -> dict[str, Any]:
        """The consents under way."""
        return all_committed(self.house.store, FLOWS)

    def holds(self, left: float) -> Credential:
        """A credential that the provider has given out, with so many seconds left."""
        access, refresh = self.provider.issue(CLIENT, expires_in=left, now=self.house.began)
        row = Credential(
            self.house.key, SERVER, f"{self.house.origin}/mcp", CLIENT, access, refresh,
            token_endpoint=f"{self.house.origin}/token", expires_at=self.house.began + left,
            updated_at=self.house.began - 5 * HOUR, runtime_keys={"claude": self.house.key},
        )  # fmt: skip
        put_committed(self.house.store, {(CREDENTIALS, self.house.key): row_values(row)})
        return row

    def runtime_renews(self, row: Credential) -> None:
        """As Claude does by itself, into its own store: the row's token is spent then."""
        form = {"grant_type": "refresh_token", "refresh_token": row.refresh_token, "client_id": CLIENT}
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        request = Request("POST", str(row.token_endpoint), headers, urlencode(form).encode())
        told = json.loads(self.provider.handle(request, self.house.began, "claude").body)
        self.runtime_has(told["access_token"], told["refresh_token"], self.house.began + HOUR)

    def runtime_has(self, access: str, refresh: str | None, expires_at: float) -> None:
        """An entry of Claude's store."""
        entry = {
            "serverName": SERVER, "serverUrl": f"{self.house.origin}/mcp", "clientId": CLIENT,
            "accessToken": access, "refreshToken": refresh, "expiresAt": int(expires_at * 1000),
        }  # fmt: skip
        path = Path(self.house.claude.path)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_text(json.dumps({"mcpOAuth": {self.house.key: entry}}))

    def begins(self) -> None:
        """A person clicks, consents, and is about to come back."""

        async def body(world: World, house: House) -> Any:
            return await consented(world, await clicks(world, house))

        self.house = self.house._replace(parameters=here(self.house, body))

    # --- what must hold after any death

    def assert_whole(self) -> None:
        """No half row, nothing that keeps the next one waiting, and a file that is none the worse."""
        row = self.row()
        if row is not None:
            assert set(row) == set(COLUMNS)
            pairs_given = {(each.access, each.refresh) for each in self.provider.tokens}
            assert (row["access_token"], row["refresh_token"]) in {
                *pairs_given,
                *((one, None) for one, _ in pairs_given),
            }
        found = act(self.house, "finds")
        assert (None if found is None else row_values(found)) == row
        assert sqlite3.connect(self.house.store).execute("PRAGMA integrity_check").fetchone() == ("ok",)

    def presented(self) -> list[int]:
        """How often each refresh token and each code has come to the provider."""
        asked = [each.fields for each in self.provider.received("token")]
        return list(Counter(each.get("refresh_token") or each.get("code") for each in asked).values())

    def assert_ends_well(self) -> None:
        """The credential is good, or a person has exactly one thing to do, and that helps."""

        async def body(world: World, house: House) -> Any:
            await renews(world, house)
            started: Answer = await clicks(world, house)
            under_way = self.flows()
            if started.location == "/connectors":
                return started.message, len(under_way)
            answer = await completes(world, house._replace(parameters=await consented(world, started)))
            return answer.message, len(under_way) - 1

        message, needless = here(self.house, body)
        assert message in (f"{SERVER} is already authorized.", f"Successfully authorized {SERVER}")
        assert needless == 0
        row = self.row()
        assert row is not None
        assert self.provider.accepts(row["access_token"], time.time())


async def consented(world: World, started: Answer) -> Mapping[str, str]:
    """What the provider's redirect brings once a person has consented."""
    return (await consent(world, str(started.location))).parameters


def lives(place: Place, name: str, bug: str, prepare: Any) -> Iterator[tuple[Life, str]]:
    """A life for each step at which such a process can be killed, and what the step was; all of them are met."""
    met = []
    for point in range(MOST_POINTS):
        life = Life(place)
        prepare(life)
        code, steps = killed(life.house, name, point, bug)
        if code == 0:
            break
        assert (code, len(steps)) == (-9, point + 1)
        met.append(steps[-1])
        life.assert_whole()
        yield life, steps[-1]
    else:
        pytest.fail("it never ends")
    assert met == steps


def renewing(place: Place, bug: str = "") -> None:
    """The scheduled job, killed while it renews: whoever waited for its row does not present the token once more."""
    outcomes = set()
    for life, _ in lives(place, "renews", bug, lambda life: life.holds(-60.0)):
        posted = len(life.provider.received("token"))
        waited = act(life.house, "waited")
        renewed = (life.row() or {})["access_token"] == life.provider.tokens[-1].access
        assert life.presented() in ([], [1])
        outcomes.add((posted, waited, renewed))
        life.assert_ends_well()
    # before its note: the other one renews; after it, nobody knows; then the answer is lost with it, or kept by it
    assert outcomes == {(0, "refreshed", True), (0, "skipped", True), (1, "skipped", False), (1, "skipped", True)}


def adopting(place: Place, bug: str = "") -> None:
    """A spawn, killed while it takes over what the runtime has renewed: the next one does it, and nothing is posted."""
    met = []
    for life, step in lives(place, "adopts", bug, lambda life: life.runtime_renews(life.holds(-60.0))):
        met.append(step)
        asked = len(life.provider.received("token"))
        act(life.house, "adopts")
        assert (life.row() or {})["refresh_token"] == life.provider.tokens[-1].refresh
        assert len(life.provider.received("token")) == asked
        life.assert_ends_well()
    assert met == COMMIT


def completing(place: Place, bug: str = "") -> None:
    """Whoever takes the provider's redirect, killed: the code is posted once at most, whoever comes back again."""
    outcomes = set()
    for life, _ in lives(place, "completes", bug, Life.begins):
        left, stored = len(life.flows()), life.row() is not None
        assert not (left and life.presented())
        act(life.house, "completes")
        assert life.presented() in ([], [1])
        outcomes.add((left, stored, life.row() is not None))
        life.assert_ends_well()
    assert outcomes == {(1, False, True), (0, False, False), (0, True, True)}


def retiring(place: Place, bug: str = "") -> None:
    """A credential that is retired, its retirer killed: what is retired is never taken back from a copy."""
    for life, _ in lives(place, "retires", bug, lambda life: life.holds(HOUR)):
        before = life.row() or {}
        tokens = life.provider.tokens[0]
        ended = before["refresh_token"] is None
        if ended:
            assert before["expires_at"] < time.time()
        life.runtime_has(tokens.access, tokens.refresh, life.house.began + 2 * HOUR)
        adopted = act(life.house, "adopts")
        assert not (ended and adopted)
        act(life.house, "retires")
        assert pairs(json.loads(Path(life.house.claude.path).read_text())) == {}
        assert (life.row() or {})["refresh_token"] is None
        life.assert_ends_well()


def clicking(place: Place, bug: str = "") -> None:
    """A second click, killed: there is the old flow or the new one, and never none or both."""
    for life, _ in lives(place, "clicks", bug, lambda life: act(life.house, "clicks")):
        assert len(life.flows()) == 1
        life.assert_ends_well()


def test_whoever_waits_for_a_job_that_was_killed_while_it_renewed_presents_no_token_twice(place):
    renewing(place)


def test_what_a_runtime_has_renewed_is_taken_over_whole_by_the_next_one_where_the_first_was_killed(place):
    adopting(place)


def test_a_consent_whose_completion_was_killed_is_complete_or_can_be_given_once_more(place):
    completing(place)


def test_a_credential_is_retired_or_not_when_its_retirer_was_killed_and_never_comes_back(place):
    retiring(place)


def test_a_click_that_was_killed_leaves_one_flow(place):
    clicking(place)


@pytest.mark.parametrize(
    ("check", "bug"),
    [(renewing, "refresh.an_attempt_is_noted_with_its_answer"), (clicking, "live_store.each_row_is_written_by_itself")],
)
def test_a_store_that_commits_too_late_or_in_parts_is_found(place, check, bug):
    with pytest.raises(AssertionError):
        check(place, bug)
