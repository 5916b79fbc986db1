"""When adoption happens: before a spawn decides anything, before each refresh of the job, and at no other time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fake_servers.oauth.authorization import AuthorizationServer
from harness.reference.credentials import table
from harness.reference.credentials.cron import run_due_retries, run_refresh_job
from harness.reference.credentials.key import Runtime
from harness.reference.credentials.retire import retire
from harness.reference.credentials.row import TABLE, Credential, credential_of
from harness.reference.credentials.writers.protocol import RuntimePair
from harness.reference.credentials.writers.registry import registered_writers
from harness.reference.session.injection import hand_over
from harness.reference.session.job import run_session
from harness.reference.session.order import Order
from harness.reference.session.prepare import prepare_clone, prepare_with_retries
from harness.reference.session.spawn import environment_of
from harness.world import Request, Response, World
from harness.world.model import Fault
from scenarios.session_runs import SessionRun
from scenarios.units import writer_run
from scenarios.units.oauth_run import Ran, run_world
from scenarios.units.reconcile_run import ISSUER, KEYS, NOW, RUNTIMES, URL, Provided, holding, stored, stores, text_of
from scenarios.units.spawn_gate_run import CLONE, HOME, HOUR, STORE, TOKEN, Session, credential, remote
from scenarios.units.writer_run import run_writers

CODEX_STORE = f"{HOME}/.codex/.credentials.json"
N = {"n": remote("n")}
EXPIRED = credential("n", -HOUR)
FRESH = {"accessToken": "fresh-access", "refreshToken": "fresh-refresh"}


def claude_store(row: Credential, seconds: float, **tokens: Any) -> dict[str, str]:
    """Claude's file with what it has refreshed of a row."""
    entry = {"serverName": row.server_name, "serverUrl": row.server_url, "clientId": "client", **FRESH, **tokens}
    return {
        STORE: json.dumps(
            {"mcpOAuth": {row.runtime_keys["claude"]: {**entry, "expiresAt": int((NOW + seconds) * 1000)}}}
        )
    }


def codex_store(row: Credential, seconds: float) -> dict[str, str]:
    """Codex's file with what it has refreshed of a row."""
    entry = {
        "server_name": row.server_name,
        "server_url": row.server_url,
        "client_id": "client",
        "access_token": "fresh-access",
        "refresh_token": "fresh-refresh",
        "expires_at": int((NOW + seconds) * 1000),
        "scopes": [],
    }
    return {CODEX_STORE: json.dumps({row.runtime_keys["codex"]: entry})}


def row_of(session: Session) -> Credential:
    """The stored row of the server `n`."""
    (values,) = session.ran.rows(TABLE).values()
    return credential_of(values)


# --- the spawn --------------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "reconcile-spawn-reconciles-first", "reconcile-recovers-nulled-row", "reconcile-survives-relaunch"
)
@pytest.mark.parametrize("follow_up", [None, "and then?"])
@pytest.mark.parametrize("row", [EXPIRED, replace(EXPIRED, refresh_token=None), credential("n", 60)])
def test_a_newer_pair_in_the_store_is_taken_over_before_the_spawn_refreshes_or_blocks(row, follow_up):
    session = Session(N, credentials=[row], files=claude_store(row, 2 * HOUR), follow_up=follow_up)
    assert session.spawns == 1
    assert session.posts == 0
    assert session.required == []
    assert session.tokens() == {"n": "fresh-access"}
    assert row_of(session).refresh_token == "fresh-refresh"
    names = [event.name for event in session.ran.events]
    assert names.index("credential.adopted") < names.index("gate.judged") < names.index("spawn")


@pytest.mark.requirement("reconcile-adopt-expired-pair", "reconcile-spawn-reconciles-first")
def test_of_an_expired_pair_in_the_store_the_refresh_token_is_what_the_spawn_presents():
    presented: list[str] = []

    def answer(request: Request) -> Response:
        presented.append(request.body.decode())
        body = {"access_token": "third-access", "refresh_token": "third-refresh", "expires_in": 3600}
        return Response(200, {"Content-Type": "application/json"}, json.dumps(body).encode())

    row = credential("n", -3 * HOUR)
    session = Session(N, {f"POST {TOKEN}": answer}, credentials=[row], files=claude_store(row, -HOUR))
    assert len(presented) == 1
    assert "refresh_token=fresh-refresh" in presented[0]
    assert session.tokens() == {"n": "third-access"}


@pytest.mark.requirement("reconcile-refuse-row-without-expiry")
@pytest.mark.parametrize(("runtime", "seconds"), [("claude", -HOUR), ("codex", 2 * HOUR), ("codex", -HOUR)])
def test_a_new_authorization_without_an_expiry_is_what_the_spawn_writes_over_an_old_pair(runtime, seconds):
    row = credential("n", None)
    files = claude_store(row, seconds) if runtime == "claude" else codex_store(row, seconds)
    session = Session(N, credentials=[row], files=files, runtime=runtime)
    assert session.spawns == 1
    assert row_of(session).access_token == "access-of-n"
    assert "access-of-n" in (session.text(next(iter(files))) or "")
    assert "fresh-access" not in (session.text(next(iter(files))) or "")


@pytest.mark.requirement("reconcile-spawn-reads-own-runtime")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_spawn_reads_the_store_of_its_own_runtime_alone(runtime):
    """Whoever opened another runtime's store would be killed there."""
    row = credential("n", HOUR)
    files = {**claude_store(row, 2 * HOUR), **codex_store(row, 2 * HOUR)}
    own = {"claude": f"{HOME}/.claude/*", "codex": f"{HOME}/.codex/.credentials.json", "pi": "*keyring-helper*"}
    deadly = [Fault("kill", label=f"read {own[name]}") for name in ("claude", "codex") if name != runtime]
    helper = [] if runtime == "pi" else [Fault("kill", label=f"spawn {own['pi']}")]
    session = Session(N, credentials=[row], files=files, runtime=runtime, faults=[*deadly, *helper])
    assert not session.ran.named("fault")
    assert session.spawns >= 1
    adopts = {"claude", "codex"} & {runtime}
    assert [line["runtime"] for line in session.ran.named("credential.adopted")] == sorted(adopts)


@pytest.mark.requirement("reconcile-relaunch-order", "reconcile-survives-relaunch")
def test_a_relaunch_has_written_credentials_and_config_before_its_process_is_there():
    row = EXPIRED

    def relaunched(**options: Any) -> Session:
        return Session(N, credentials=[row], files=claude_store(row, 2 * HOUR), follow_up="go on", **options)

    killed = relaunched(faults=[Fault("kill", label="spawn claude*")])
    assert killed.spawns == 0
    assert killed.tokens() == {"n": "fresh-access"}
    assert "n" in json.loads(killed.text(f"{CLONE}/.mcp.json") or "{}")["mcpServers"]
    for label in (f"lock row {TABLE}/*", f"write {STORE}*", f"rename {STORE}*", f"write {CLONE}/.mcp.json*"):
        early = relaunched(faults=[Fault("kill", label=label)])
        assert early.spawns == 0


@pytest.mark.requirement("reconcile-read-before-write", "reconcile-codex-rotation-adopted")
def test_within_a_spawn_the_keyring_is_read_before_the_account_is_removed_and_the_new_pair_is_staged():
    server = writer_run.server()
    row = writer_run.row(
        credential_key=server.credential_key, runtime_keys=server.runtime_keys, redirect_uri="https://z/cb"
    )
    entry = {
        "serverUrl": writer_run.URL,
        "tokens": {"accessToken": "fresh-access", "refreshToken": "fresh-refresh", "expiresAt": NOW + 2 * HOUR},
    }

    async def body(world: World) -> None:
        await table.insert_unchecked(world, row)
        await hand_over(world, writer_run.WRITERS["pi"], [server])

    run = run_writers(body, files={writer_run.keyring_account("notion"): json.dumps(entry)})
    assert run.asked[0].startswith("read ")
    assert run.asked.index(next(line for line in run.asked if line.startswith("remove "))) > 0
    assert run.json(writer_run.STORES["pi"])["tokens"]["accessToken"] == "fresh-access"


@pytest.mark.requirement("reconcile-codex-rotation-adopted", "reconcile-codex-written-not-trusted")
def test_a_pair_that_codex_refreshed_is_adopted_before_the_store_is_written_again():
    row = credential("n", 60)
    session = Session(N, credentials=[row], files=codex_store(row, 2 * HOUR), runtime="codex")
    assert row_of(session).refresh_token == "fresh-refresh"
    (entry,) = json.loads(session.text(CODEX_STORE) or "{}").values()
    assert (entry["access_token"], entry["refresh_token"]) == ("fresh-access", "fresh-refresh")
    assert session.posts == 0


@pytest.mark.requirement(
    "reconcile-scoped-on-own-dir", "reconcile-scoped-reads-own-dir", "reconcile-scoped-off-global-file"
)
def test_a_session_with_a_config_directory_of_its_own_is_read_and_written_there_and_started_with_it():
    row = EXPIRED
    own = "/sessions/a/claude"
    files = {f"{own}/.credentials.json": claude_store(row, 2 * HOUR)[STORE], STORE: '{"mcpOAuth": {}}'}
    given: list[str] = []

    async def story(world: World, order: Order) -> None:
        ready = await prepare_with_retries(world, order)
        given.append(environment_of(world, order, ready).variables.get("CLAUDE_CONFIG_DIR", ""))
        await run_session(world, order)

    session = Session(N, credentials=[row], files=files, env={"CLAUDE_CONFIG_DIR": own}, program=story)
    assert given == [own]
    assert "fresh-access" in (session.text(f"{own}/.credentials.json") or "")
    assert session.text(STORE) == '{"mcpOAuth": {}}'
    assert row_of(session).access_token == "fresh-access"
    shared = Session(N, credentials=[row], files=claude_store(row, 2 * HOUR))
    assert shared.tokens() == {"n": "fresh-access"}


# --- whole stories ----------------------------------------------------------------------------------------------------


class Told:
    """A provider that rotates, asked by Zimmer and by the runtime; and the session between them."""

    def __init__(self, seconds: float = HOUR) -> None:
        self.provider = AuthorizationServer("https://as.test")
        access, refresh = self.provider.issue("client", expires_in=seconds, now=NOW)
        self.row = credential("n", seconds, access_token=access, refresh_token=refresh)
        self.now = NOW

    def answer(self, request: Request) -> Response:
        """The provider's token endpoint."""
        return self.provider.handle(request, self.now, "anybody")

    async def rotates(self, world: World) -> None:
        """Claude renews what its file holds, and writes the new pair back."""
        self.now = world.clock.now()
        document = json.loads(await world.files.read(STORE))
        (key,) = document["mcpOAuth"]
        entry = document["mcpOAuth"][key]
        form = f"grant_type=refresh_token&refresh_token={entry['refreshToken']}&client_id=client"
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        request = Request("POST", TOKEN, headers, form.encode())
        answer = await world.http.send(request, open_timeout_seconds=5, read_timeout_seconds=5)
        assert answer.status == 200
        got = json.loads(answer.body)
        entry |= {
            "accessToken": got["access_token"],
            "refreshToken": got["refresh_token"],
            "expiresAt": int((world.clock.now() + got["expires_in"]) * 1000),
        }
        await world.files.write_atomic(STORE, json.dumps(document).encode())

    def run(self, story: Any, **options: Any) -> Session:
        """The session, in as many spawns as the story has."""
        answers = {f"POST {TOKEN}": self.answer}
        return Session(N, answers, credentials=[self.row], program=story, **options)

    @property
    def statuses(self) -> list[int]:
        """What the provider answered each token request."""
        return [asked.status for asked in self.provider.received("token")]


@pytest.mark.requirement(
    "reconcile-idle-gap-scenario", "reconcile-survives-relaunch", "reconcile-rotation-kills-prior-token"
)
@pytest.mark.parametrize("idle_seconds", [5 * 60.0, 3 * HOUR])
def test_a_pair_that_claude_rotated_survives_a_restart_and_an_idle_time_longer_than_its_life(idle_seconds):
    told = Told()

    async def story(world: World, order: Order) -> None:
        await run_session(world, order)
        await world.clock.sleep(50 * 60)
        await told.rotates(world)
        await world.clock.sleep(idle_seconds)
        told.now = world.clock.now()
        await run_session(world, order)

    session = told.run(story)
    assert set(told.statuses) == {200}, "a token that was rotated away was presented"
    head = told.provider.tokens[-1]
    row = row_of(session)
    assert (row.access_token, row.refresh_token) == (head.access, head.refresh)
    assert session.tokens() == {"n": head.access}
    assert told.provider.accepts(session.tokens()["n"], session.ran.simulation.now)
    assert session.spawns == 2


@pytest.mark.requirement("reconcile-scoped-cron-gap")
def test_known_gap_what_a_session_rotated_in_its_own_directory_is_unknown_to_the_job_which_spends_the_old_token():
    row = credential("n", 600, updated_at=NOW - 5 * HOUR)
    presented: list[str] = []

    def answer(request: Request) -> Response:
        presented.append(request.body.decode())
        return Response(400, {"Content-Type": "application/json"}, b'{"error": "invalid_grant"}')

    async def story(world: World, _order: Order) -> None:
        await run_refresh_job(world, registered_writers(world))

    own = {"/sessions/a/claude/.credentials.json": claude_store(row, 2 * HOUR)[STORE]}
    session = Session(N, {f"POST {TOKEN}": answer}, credentials=[row], files=own, program=story)
    assert ["refresh_token=refresh-of-n" in body for body in presented] == [True]
    assert row_of(session).refresh_token is None


# --- the refresh job --------------------------------------------------------------------------------------------------


def job(provided: Provided, files: Mapping[str, str], *more: Credential, watched: Any = None, **options: Any) -> Ran:
    """One scheduled run, and the repetitions that it queues."""
    writers = stores() if watched is None else watched

    async def program(world: World) -> None:
        await run_refresh_job(world, writers)
        while (at := await run_due_retries(world, writers)) is not None:
            await world.clock.sleep(at - world.clock.now())

    return run_world(program, rows=stored(provided.row, *more), files=files, servers=provided.servers, **options)


@pytest.mark.requirement("reconcile-cron-reads-every-runtime", "reconcile-codex-no-carve-out")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_job_adopts_what_any_runtime_rotated_and_presents_no_token_that_was_rotated_away(runtime):
    provided = Provided(seconds=600.0)
    fresh = RuntimePair("fresh-access", "fresh-refresh", NOW + 2 * HOUR, URL)
    ran = job(provided, {**holding(provided.pair), **holding(fresh, runtime)})
    assert provided.server.received("token") == []
    assert ran.rows(TABLE)[provided.row.credential_key]["refresh_token"] == "fresh-refresh"
    assert [line["runtime"] for line in ran.named("credential.adopted")] == [runtime]


@pytest.mark.requirement("reconcile-adopt-expired-pair", "reconcile-cron-before-each-refresh")
def test_of_an_expired_pair_that_a_runtime_left_the_refresh_token_is_what_the_job_presents():
    provided = Provided(seconds=-1200.0)
    access, second = provided.server.issue("client-1", expires_in=-60, now=NOW)
    ran = job(provided, {**holding(None), **holding(RuntimePair(access, second, NOW - 60, URL), "claude")})
    assert [asked.fields["refresh_token"] for asked in provided.server.received("token")] == [second]
    row = credential_of(ran.rows(TABLE)[provided.row.credential_key])
    assert row.refresh_token == provided.server.tokens[-1].refresh


@pytest.mark.requirement("reconcile-cron-before-each-refresh")
def test_each_row_is_reconciled_directly_before_its_own_refresh_however_slow_the_one_before_it_was():
    """While the first row's refresh takes its time, a runtime rotates the second one's pair."""
    provided = Provided(seconds=600.0)
    first = replace(provided.row, credential_key="a|0", server_name="a", runtime_keys=dict.fromkeys(RUNTIMES, "a"))

    async def runtime(world: World) -> None:
        await world.clock.sleep(5.0)
        fresh = RuntimePair("fresh-access", "fresh-refresh", NOW + 2 * HOUR, URL)
        await stores("pi")[0].change(world, lambda held: {**held, KEYS["pi"]: fresh})

    slow = Fault("slow", label=f"POST {ISSUER}/token", seconds=20.0, times=1)
    ran = job(provided, holding(None), first, faults=[slow], others={"runtime": runtime})
    assert [asked.fields["refresh_token"] for asked in provided.server.received("token")] == [first.refresh_token]
    assert ran.rows(TABLE)[provided.row.credential_key]["refresh_token"] == "fresh-refresh"


@pytest.mark.requirement("reconcile-cron-before-each-refresh")
def test_each_repetition_reads_the_stores_once_more():
    provided = Provided(seconds=600.0)
    watched = stores()
    refused = Fault("refused", label=f"POST {ISSUER}/token", times=2)
    job(provided, holding(None), watched=watched, faults=[refused])
    assert [len(store.reads) for store in watched] == [3, 3, 3]
    assert [asked.status for asked in provided.server.received("token")] == [200]


@pytest.mark.requirement("reconcile-no-mid-session-push", "reconcile-adoption-is-periodic")
@pytest.mark.parametrize("rotated", [None, *RUNTIMES])
def test_the_job_writes_to_no_store_whether_it_refreshes_or_adopts(rotated: Runtime | None):
    provided = Provided(seconds=600.0)
    fresh = RuntimePair("fresh-access", "fresh-refresh", NOW + 2 * HOUR, URL)
    files = {**holding(provided.pair), **(holding(fresh, rotated) if rotated else {})}
    watched = stores()
    ran = job(provided, files, watched=watched)
    assert {what for store in watched for what, _ in store.calls} == {"read"}
    for path, text in files.items():
        assert ran.simulation.tree.read(path, 0).decode() == text
    assert len(provided.server.received("token")) == (0 if rotated else 1)


@pytest.mark.requirement("reconcile-cron-selected-rows-only")
def test_a_row_that_is_not_due_is_adopted_by_the_next_spawn_at_the_latest():
    provided = Provided(seconds=5 * HOUR)
    fresh = RuntimePair("fresh-access", "fresh-refresh", NOW + 9 * HOUR, URL)
    files = {**holding(None), "/stores/claude.json": text_of({KEYS["claude"]: fresh})}
    ran = job(provided, files)
    assert provided.server.received("token") == []
    row = credential_of(ran.rows(TABLE)[provided.row.credential_key])
    assert row.access_token in (provided.row.access_token, "fresh-access")
    spawned = credential("n", 5 * HOUR)
    session = Session(N, credentials=[spawned], files=claude_store(spawned, 9 * HOUR))
    assert row_of(session).access_token == "fresh-access"


# --- retired ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-retired-credential-stays-dead", "gate-retire-deletes-runtime-copy")
@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_after_a_retirement_the_next_spawn_adopts_nothing_and_writes_no_token(runtime):
    row = credential("n", HOUR)
    files = {
        **claude_store(row, HOUR, accessToken="access-of-n", refreshToken="refresh-of-n"),
        **codex_store(row, 2 * HOUR),
    }

    async def story(world: World, order: Order) -> None:
        await retire(world, row.credential_key, registered_writers(world), "n")
        await run_session(world, order)
        await run_refresh_job(world, registered_writers(world))

    session = Session(N, credentials=[row], files=files, runtime=runtime, program=story)
    assert session.required == ["n"]
    assert {event["argv"][0] for event in session.ran.named("spawn")} <= {"keyctl"}
    assert row_of(session).refresh_token is None
    assert session.posts == 0
    assert session.tokens() == {}
    assert json.loads(session.text(CODEX_STORE) or "{}") == {}


# --- what is not there ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("reconcile-no-runtime-refresh-switch")
@pytest.mark.parametrize("profile", ["pi-0.84.1+2.32.1", "claude-2.1.268", "codex-0.146.0"])
def test_nothing_that_is_prepared_is_meant_to_keep_the_runtime_from_refreshing(profile):
    run = SessionRun(profile, {"n": remote("n")}, chosen=("n",), program=prepare_clone).finished()
    text = run.text(run.config) or ""
    assert '"n"' in text or "mcp_servers.n" in text
    assert "oauth" not in text.lower()


@pytest.mark.requirement("reconcile-no-runtime-refresh-switch")
def test_no_variable_of_a_started_runtime_speaks_of_oauth():
    for runtime in RUNTIMES:
        seen: list[Mapping[str, str]] = []

        async def story(world: World, order: Order, seen: list[Mapping[str, str]] = seen) -> None:
            ready = await prepare_with_retries(world, order)
            seen.append(environment_of(world, order, ready).variables)

        Session(N, credentials=[credential("n")], runtime=runtime, program=story)
        assert seen
        assert [name for name in seen[0] if "OAUTH" in name.upper() or "REFRESH" in name.upper()] == []
