"""Pi's writer: the account away first, then the file; what the adapter makes of it; what the keyring gives back."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from fake_runtimes.plan import Plan
from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.oauth import AuthorizationServer, Protected, Resource, Site
from harness.reference.credentials.key import pi_account
from harness.reference.credentials.writers import pi
from harness.reference.credentials.writers.pi import PiWriter
from harness.reference.credentials.writers.pi_store import PiStore, accounts_to_remove
from harness.reference.credentials.writers.registry import session_writer
from harness.reference.credentials.writers.staging import stage
from harness.world import World
from harness.world.model import Fault, Hold, Seeded
from harness.world.model.simulation import DEFAULT_START_SECONDS
from scenarios.units.fake_pi_run import BOTH, run_pi, turn
from scenarios.units.fake_pi_run import HOME as FAKE_HOME
from scenarios.units.writer_run import (
    HOUR_MS,
    KEYRING,
    NOW,
    NOW_MS,
    PI,
    RUNNER,
    URL,
    bare,
    clearing,
    deleting,
    full,
    keyring_account,
    killed_everywhere,
    launched,
    reading,
    row,
    run_writers,
    server,
    staged_file,
    writing,
)

WRITER = PiWriter(PI, PiStore(RUNNER))
NOTION, LINEAR = staged_file("notion"), staged_file("linear")
NOTION_HASH = "31f61ed3e6e210c5f3f729345968bdbcf267cf0fbfec31eac02ed9966ba1d067"
ACCOUNT = pi_account("notion")
ISSUER, REDIRECT = "https://as.test", "https://zimmer.test/mcp_oauth/callback"
ENTRY = {
    "serverUrl": URL,
    "tokens": {
        "accessToken": "notion-access",
        "refreshToken": "notion-refresh",
        "expiresAt": int(NOW) + 3600,
        "scope": "read write",
        "issuer": ISSUER,
    },
    "clientInfo": {"clientId": "client-123", "redirectUris": [REDIRECT], "issuer": ISSUER},
}
ROTATED = {"serverUrl": URL, "tokens": {"accessToken": "rotated", "refreshToken": "r2", "expiresAt": NOW + 7200.5}}
BY_PROFILE = pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)


THEIRS = {"accessToken": "theirs", "refreshToken": "r"}


@pytest.mark.requirement("refresh-chain-never-burned", "writers-missing-store-not-error")
@pytest.mark.parametrize(
    ("changed", "stays"),
    [
        ({}, True),
        ({"tokens": {**THEIRS, "expiresAt": int(NOW) + 3600}}, False),
        ({"tokens": THEIRS}, False),
        ({"tokens": {**THEIRS, "accessToken": "", "expiresAt": int(NOW) + 3601}}, False),
        ({"tokens": []}, False),
        ({"serverUrl": "https://elsewhere.test/mcp"}, False),
        ({"clientInfo": {"clientId": "another"}}, False),
        ({"clientInfo": ["client-123"]}, False),
        ({"clientInfo": None}, False),
    ],
)
def test_a_later_pair_that_another_session_has_handed_in_stays_and_nothing_else_does(changed, stays):
    theirs = {**ENTRY, "tokens": {**THEIRS, "expiresAt": int(NOW) + 3601}, **changed}
    ran = run_writers(writing(WRITER, full()), files={NOTION: json.dumps(theirs)})
    assert ran.json(NOTION) == (theirs if stays else ENTRY)


def in_parts(text: str, size: int = 60, **manifest: Any) -> dict[str, str]:
    """An entry as the older adapter keeps a long one: the files of its accounts."""
    digest = sha256(text.encode()).hexdigest()[:16]
    parts = [text[start : start + size] for start in range(0, len(text), size)]
    whole = {"__piMcpAdapterOAuthChunked": 1, "chunkCount": len(parts), "chunkDigest": digest, **manifest}
    base = keyring_account("notion")
    return {base: json.dumps(whole), **{f"{base}.chunk.{digest}.{at}": part for at, part in enumerate(parts)}}


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-pi-path", "writers-pi-entry", "writers-pi-plaintext-scope")
def test_a_token_is_staged_as_a_private_file_in_a_private_directory_of_the_names_digest():
    ran = run_writers(writing(WRITER, full()), directories={PI: 0o755, f"{PI}/sha256-{NOTION_HASH}": 0o755})
    path = f"{PI}/sha256-{NOTION_HASH}/tokens.json"
    assert ran.result == PI
    assert ran.json(path) == ENTRY
    assert [ran.mode(place) for place in (PI, f"{PI}/sha256-{NOTION_HASH}", path)] == [0o700, 0o700, 0o600]
    assert ran.names(f"{PI}/sha256-{NOTION_HASH}") == ["tokens.json"]


@pytest.mark.requirement("writers-pi-entry", "writers-pi-nothing-synthesized")
@pytest.mark.parametrize("blank", [None, "", " "])
def test_what_is_absent_is_left_out_and_nothing_is_made_up(blank):
    ran = run_writers(writing(WRITER, bare(refresh_token=blank, scope=blank, issuer=blank)))
    tokens = {"accessToken": "notion-access"}
    assert ran.json(NOTION) == {"serverUrl": URL, "tokens": tokens, "clientInfo": {"clientId": "client-123"}}
    no_client = run_writers(writing(WRITER, bare(client_id=blank, redirect_uris=(REDIRECT,))))
    assert no_client.json(NOTION) == {"serverUrl": URL, "tokens": tokens}


@pytest.mark.requirement("writers-pi-path", "writers-pi-path-fallback")
@pytest.mark.parametrize(
    ("variables", "directory"),
    [
        ({}, PI),
        ({"MCP_OAUTH_DIR": "/d"}, "/d"),
        ({"MCP_OAUTH_DIR": " /d "}, "/d"),
        ({"MCP_OAUTH_DIR": ""}, PI),
        ({"MCP_OAUTH_DIR": "  "}, PI),
        ({"PI_CODING_AGENT_DIR": "/p"}, "/p/mcp-oauth"),
        ({"PI_CODING_AGENT_DIR": "~/p"}, "/home/u/p/mcp-oauth"),
        ({"PI_CODING_AGENT_DIR": "~/p", "HOME": "/home/b"}, "/home/b/p/mcp-oauth"),
        ({"MCP_OAUTH_DIR": "oauth"}, "/clone/oauth"),
    ],
)
def test_the_directory_is_the_variables_or_below_pis_own(variables, directory):
    async def body(world: World) -> Any:
        return session_writer(world, "pi", variables, directory="/clone").directory  # type: ignore[attr-defined]

    assert run_writers(body).result == directory


@pytest.mark.requirement("writers-pi-serverurl-exact")
@pytest.mark.parametrize(
    "url", ["https://${HOST}/mcp", "https://mcp.notion.com/mcp/", "HTTPS://Mcp.Notion.com:443/mcp"]
)
def test_the_url_is_the_entrys_after_its_placeholders_byte_for_byte(url):
    staged = stage(row(resource="https://mcp.notion.com"), server(url=url), "pi")
    assert run_writers(writing(WRITER, staged)).json(NOTION)["serverUrl"] == url.replace("${HOST}", "mcp.notion.com")


# --- the account first ------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-pi-store-beats-file", "reconcile-read-before-write")
def test_the_account_is_read_and_removed_before_the_file_is_written():
    ran = run_writers(writing(WRITER, full()), files={keyring_account("notion"): json.dumps(ROTATED)})
    assert ran.asked == [f"read {ACCOUNT}", f"remove {ACCOUNT}"]
    assert not ran.exists(keyring_account("notion"))
    assert ran.json(NOTION) == ENTRY
    assert ran.started == [RUNNER, RUNNER]


def test_an_account_that_is_not_there_is_not_removed():
    assert run_writers(writing(WRITER, full())).asked == [f"read {ACCOUNT}"]


@pytest.mark.requirement("writers-pi-chunked-remove")
def test_an_account_in_parts_goes_with_all_of_them_itself_at_last():
    files = in_parts(json.dumps(ROTATED))
    ran = run_writers(writing(WRITER, full()), files=files)
    removals = [line.removeprefix("remove ") for line in ran.asked if line.startswith("remove")]
    assert removals == [*(path.rpartition("/")[2] for path in list(files)[1:]), ACCOUNT]
    assert ran.names(KEYRING) == []


@pytest.mark.requirement("writers-pi-chunked-remove")
@pytest.mark.parametrize("count", [100_000, 65, 0, -1, 2.0, True, "2", None])
def test_a_number_of_parts_that_cannot_be_is_not_followed(count):
    text = json.dumps({"__piMcpAdapterOAuthChunked": 1, "chunkCount": count, "chunkDigest": "0123456789abcdef"})
    assert accounts_to_remove("a", text) == ("a",)
    most = json.dumps({"__piMcpAdapterOAuthChunked": 1, "chunkCount": 64, "chunkDigest": "0123456789abcdef"})
    assert len(accounts_to_remove("a", most)) == 65


async def hanging(world: World, _argv: Any) -> int:
    await world.clock.sleep(1000)
    return 0


async def failing(world: World, _argv: Any) -> int:
    await world.processes.write_line('{"ok":false,"error":"PermissionDenied"}')
    return 1


async def babbling(world: World, _argv: Any) -> int:
    await world.processes.write_line('{"ok":true,"found":true,"value":"{}"}')
    await world.processes.write_line("nonsense")
    return 0


UNREACHABLE = {"hangs": hanging, "fails": failing, "babbles": babbling, "is missing": None}


@pytest.mark.requirement("writers-pi-store-unreachable-stages", "reconcile-pi-probe-two-second-bound")
@pytest.mark.parametrize("how", UNREACHABLE)
def test_a_keyring_that_cannot_be_reached_never_fails_a_write_which_ends_in_five_seconds(how):
    ran = run_writers(writing(WRITER, full(), full("linear")), launcher=lambda _argv: UNREACHABLE[how])
    assert ran.result == PI
    assert (ran.exists(NOTION), ran.exists(LINEAR)) == (True, True)
    assert ran.outcome.seconds <= 5
    assert len(ran.warnings) == 1
    gone = run_writers(deleting(WRITER, "notion"), files={NOTION: "{}"}, launcher=lambda _argv: UNREACHABLE[how])
    assert (gone.result, gone.exists(NOTION)) == (("notion",), False)
    assert gone.outcome.seconds <= 5
    read = run_writers(reading(WRITER, ["notion"]), launcher=lambda _argv: UNREACHABLE[how])
    assert read.result == {}
    assert read.outcome.seconds <= 2
    assert all(actor.exit_code is not None for actor in read.simulation.actors)


@pytest.mark.requirement("writers-pi-one-bad-does-not-lose-others")
def test_one_that_cannot_be_staged_loses_no_other():
    for action in ("enospc", "torn", "eacces"):
        fault = Fault(action, label=f"write {LINEAR}")
        ran = run_writers(writing(WRITER, full("linear"), full()), faults=[fault])
        assert (ran.result, ran.json(NOTION), ran.exists(LINEAR)) == (PI, ENTRY, False)
        assert len(ran.warnings) == 1
        assert "linear-access" not in ran.warnings[0]
        none = run_writers(writing(WRITER, full("linear")), faults=[fault])
        assert none.result is None


# --- the adapter ------------------------------------------------------------------------------------------------------

REMOTE, ORIGIN = "https://mcp.test/mcp", "https://mcp.test"
FAKE_STAGED = f"{FAKE_HOME}/.pi/agent/mcp-oauth/{ACCOUNT}/tokens.json"
FAKE_KEPT = f"{KEYRING}/{ACCOUNT}"
CALLS = Plan((turn(("notion", "echo")),))


def staged_for_fake(before: str | None = None, **entry: Any) -> dict[str, str]:
    """The files that a write leaves for the fake's session, the keyring's among them."""
    staged = stage(row(access_token="AT1"), server(url=REMOTE, **entry), "pi")
    files = {} if before is None else {FAKE_KEPT: before}
    ran = run_writers(writing(WRITER, staged), files=files)
    left = {FAKE_STAGED: ran.text(NOTION), FAKE_KEPT: ran.text(FAKE_KEPT)}
    return {path: text for path, text in left.items() if text is not None}


def session(files: dict[str, str], profile: Any, url: str = REMOTE, **options: Any):
    """A session of the fake with one server, and the bearers that the server saw first."""
    guarded = HttpServer(Behaviour(requires_bearer=("AT1",)))
    ran = run_pi({"notion": {"url": url}}, profile=profile, files=files, servers={ORIGIN: guarded}, **options)
    return ran, [seen.headers.get("Authorization") for seen in guarded.requests if seen.rpc_method == "initialize"]


@pytest.mark.requirement(
    "writers-three", "writers-runtime-format", "writers-pi-unattended", "writers-pi-import-deletes-file"
)
@BY_PROFILE
def test_a_session_connects_with_the_staged_token_and_takes_the_file_away(profile):
    ran, bearers = session(staged_for_fake(), profile, plan=CALLS)
    assert bearers == ["Bearer AT1"]
    assert ran.calls() == ["ok"]
    assert ran.file(FAKE_STAGED) is None
    assert ran.simulation.tree.stat(FAKE_STAGED.rpartition("/")[0], 0) is None
    assert json.loads(ran.file(FAKE_KEPT) or "")["tokens"]["accessToken"] == "AT1"
    later = run_writers(writing(WRITER, full()), files={FAKE_KEPT: ran.file(FAKE_KEPT) or ""})
    assert (later.json(NOTION), later.warnings) == (ENTRY, [])


def protected() -> tuple[AuthorizationServer, Site]:
    """A server that wants a token of its own authorization server."""
    authorization = AuthorizationServer("/as")
    return authorization, Site(authorization, Protected(HttpServer(), authorization, Resource("/mcp")))


@pytest.mark.requirement("writers-pi-unattended")
@BY_PROFILE
def test_without_a_staged_token_a_session_asks_for_a_human(profile):
    _, site = protected()
    ran = run_pi({"notion": {"url": REMOTE}}, profile=profile, servers={ORIGIN: site})
    assert "MCP: Failed to connect to notion: OAuth authentication required. Run /mcp-auth notion." in ran.stderr


@pytest.mark.requirement("writers-pi-rotates-like-claude", "writers-pi-two-way", "writers-pi-entry")
@BY_PROFILE
@pytest.mark.parametrize("knows_the_client", [True, False])
def test_a_refused_token_is_renewed_by_pi_with_the_staged_client_and_read_back_from_its_store(
    profile, knows_the_client
):
    authorization, site = protected()
    access, refresh = authorization.issue("client-123", now=DEFAULT_START_SECONDS, expires_in=0)
    known: dict[str, Any] = {} if knows_the_client else {"redirect_uris": (), "issuer": None}
    credential = full(
        server_url=REMOTE, access_token=access, refresh_token=refresh, issuer=f"{ORIGIN}/as", expires_at_ms=NOW_MS + 1
    )
    staged = run_writers(writing(WRITER, replace(credential, **known))).text(NOTION) or ""
    ran = run_pi({"notion": {"url": REMOTE}}, profile=profile, files={FAKE_STAGED: staged}, servers={ORIGIN: site})
    assert len(authorization.received("register")) == (0 if knows_the_client else 1)
    assert len(authorization.received("token")) == 1
    asked = authorization.received("token")[0].fields
    assert (asked["client_id"] == "client-123") is knows_the_client
    if not knows_the_client:
        return
    assert ran.stderr == []
    assert ran.file(FAKE_STAGED) is None
    newest = authorization.tokens[-1]
    found = run_writers(reading(WRITER, ["notion"]), files={FAKE_KEPT: ran.file(FAKE_KEPT) or ""}).result
    assert (found["notion"].access_token, found["notion"].refresh_token) == (newest.access, newest.refresh)
    assert newest.access != access


@pytest.mark.requirement("writers-pi-store-beats-file")
@BY_PROFILE
def test_an_old_account_does_not_get_in_the_way_of_the_new_token(profile):
    dead = json.dumps({"serverUrl": REMOTE, "tokens": {"accessToken": "dead"}})
    assert session(staged_for_fake(before=dead), profile)[1] == ["Bearer AT1"]
    kept = {FAKE_KEPT: dead, **staged_for_fake()}
    assert "Bearer AT1" not in session(kept, profile)[1]


@pytest.mark.requirement("writers-pi-serverurl-exact", "writers-pi-name-shared-account")
@BY_PROFILE
@pytest.mark.parametrize("url", [f"{REMOTE}/", f"{ORIGIN}/other"])
def test_a_token_is_never_sent_to_another_url_of_the_same_name(profile, url):
    assert set(session(staged_for_fake(), profile, url=url)[1]) <= {None}


@pytest.mark.requirement("writers-pi-name-shared-account")
def test_what_is_read_back_tells_for_which_url_it_is():
    other = {**ROTATED, "serverUrl": "https://mcp.elsewhere.test/mcp"}
    files = {keyring_account("notion"): json.dumps(other)}
    assert run_writers(reading(WRITER, ["notion"]), files=files).result["notion"].server_url == other["serverUrl"]


WHOLE = in_parts(json.dumps(ROTATED))
DIGEST = sha256(json.dumps(ROTATED).encode()).hexdigest()[:16]

# --- reading back -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-pi-two-way", "reconcile-pi-probe-through-helper")
def test_a_pair_that_pi_renewed_is_read_from_the_keyring():
    ran = run_writers(
        reading(WRITER, ["notion", "linear", "notion"]), files={keyring_account("notion"): json.dumps(ROTATED)}
    )
    assert list(ran.result) == ["notion"]
    pair = ran.result["notion"]
    assert (pair.access_token, pair.refresh_token) == ("rotated", "r2")
    assert (pair.expires_at, pair.server_url) == (NOW + 7200.5, URL)
    assert ran.asked == [f"read {ACCOUNT}", f"read {pi_account('linear')}"]
    requests = ran.events("keyring")
    assert {request["account"] for request in requests} == {ACCOUNT, pi_account("linear")}


@pytest.mark.requirement("writers-pi-read-store-only", "reconcile-pi-staged-file-not-read")
def test_what_is_staged_is_not_read_back():
    assert run_writers(reading(WRITER, ["notion"]), files={NOTION: json.dumps(ENTRY)}).result == {}


@pytest.mark.requirement("writers-pi-read-store-only")
@pytest.mark.parametrize(
    "files",
    [
        {keyring_account("notion"): json.dumps({"tokens": {"accessToken": 12345}})},
        {keyring_account("notion"): json.dumps({"tokens": {"accessToken": "a", "refreshToken": {}}})},
        {keyring_account("notion"): json.dumps({"clientInfo": {"clientId": "c"}, "serverUrl": URL})},
        {keyring_account("notion"): "{oops"},
        in_parts(json.dumps(ROTATED), chunkDigest="0" * 16),
        dict(list(in_parts(json.dumps(ROTATED)).items())[:-1]),
        in_parts(json.dumps(ROTATED), chunkCount=1),
        {path.replace(DIGEST, "0" * 16): text.replace(DIGEST, "0" * 16) for path, text in WHOLE.items()},
    ],
)
def test_what_is_no_whole_entry_is_nothing(files):
    assert run_writers(reading(WRITER, ["notion"]), files=files).result == {}


def test_an_entry_in_parts_is_put_together():
    found = run_writers(reading(WRITER, ["notion"]), files=in_parts(json.dumps(ROTATED))).result
    assert found["notion"].access_token == "rotated"


@pytest.mark.requirement("reconcile-pi-keyring-session-seam")
def test_a_helper_without_a_session_keyring_finds_nothing_and_how_it_is_run_is_the_deployments():
    plain = PiWriter(PI, PiStore(RUNNER[3:]))
    files = {keyring_account("notion"): json.dumps(ROTATED)}
    assert run_writers(reading(plain, ["notion"]), files=files).result == {}
    assert list(run_writers(reading(WRITER, ["notion"]), files=files).result) == ["notion"]

    async def runner(world: World) -> Any:
        given = {"PI_MCP_ADAPTER_KEYRING_RECOVERY_KEYCTL": "/k", "PI_MCP_ADAPTER_KEYRING_RECOVERY_HELPER": "/h.cjs"}
        return [session_writer(world, "pi", one).store.runner for one in ({}, given)]  # type: ignore[attr-defined]

    usual, told = run_writers(runner).result
    assert usual[:4] == ("keyctl", "session", "-", "node")
    assert usual[4] == "/home/u/.pi/agent/npm/node_modules/pi-mcp-adapter/mcp-keyring-helper.cjs"
    assert told == ("/k", "session", "-", "node", "/h.cjs")


# --- taking away ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("writers-delete-returns-removed")
@pytest.mark.parametrize(
    ("files", "gone"),
    [
        ({NOTION: "{}"}, ("notion",)),
        ({keyring_account("notion"): "{}"}, ("notion",)),
        ({NOTION: "{}", keyring_account("notion"): "{}"}, ("notion",)),
        ({LINEAR: "{}", keyring_account("linear"): "{}"}, ()),
        ({}, ()),
    ],
)
def test_deleting_removes_the_file_and_the_account_of_the_named_alone(files, gone):
    ran = run_writers(deleting(WRITER, "notion", "never"), files=files)
    assert ran.result == gone
    assert not ran.exists(NOTION.rpartition("/")[0])
    assert not ran.exists(keyring_account("notion"))
    assert (ran.exists(LINEAR), ran.exists(keyring_account("linear"))) == (LINEAR in files, LINEAR in files)


@pytest.mark.requirement("writers-pi-plaintext-scope")
def test_a_staged_file_goes_although_its_directory_is_a_link_and_nothing_beside_it():
    kept = "/data/other/kept"
    links = {NOTION.rpartition("/")[0]: "/data/other"}
    files = {"/data/other/tokens.json": "{}", kept: "theirs"}
    ran = run_writers(deleting(WRITER, "notion"), files=files, links=links)
    assert (ran.result, ran.exists(NOTION), ran.exists("/data/other/tokens.json")) == (("notion",), False, False)
    assert ran.text(kept) == "theirs"


@pytest.mark.requirement("writers-pi-plaintext-scope")
def test_in_a_directory_that_is_somebody_elses_a_token_lies_in_a_private_one_of_its_own():
    made = run_writers(reading(WRITER, []), directories={PI: 0o1777})
    ran = run_writers(writing(WRITER, full()), before=made, user=1000)
    assert (ran.result, ran.json(NOTION)) == (PI, ENTRY)
    assert [ran.mode(place) for place in (PI, NOTION.rpartition("/")[0], NOTION)] == [0o1777, 0o700, 0o600]


@pytest.mark.requirement("writers-pi-plaintext-scope")
def test_what_was_never_taken_over_goes_with_the_session():
    async def body(world: World) -> None:
        await WRITER.write(world, [full(), full("linear")])
        await WRITER.discard(world, ["notion", "never"])

    ran = run_writers(body)
    assert (ran.exists(NOTION), ran.exists(NOTION.rpartition("/")[0]), ran.exists(LINEAR)) == (False, False, True)


@pytest.mark.requirement("writers-codex-no-needs-auth", "store-pi-no-cache")
def test_nothing_is_remembered_that_could_be_cleared():
    ran = run_writers(clearing(WRITER, "notion"))
    assert (ran.result, ran.asked, ran.exists(PI)) == ((), [], False)


# --- at once, killed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_spawns_at_once_lose_no_file_of_one_another(seed):
    spawns = [writing(WRITER, full(), full(f"s{number}")) for number in range(5)]
    ran = run_writers(*spawns, decisions=Seeded(seed, run=0.5, stall=0.1))
    assert ran.errors == {}
    assert ran.json(NOTION) == ENTRY
    assert all(ran.exists(staged_file(f"s{number}")) for number in range(5))


@pytest.mark.parametrize("point", [f"write {NOTION}", f"rename {NOTION}"])
def test_an_adapter_that_takes_the_directory_away_meanwhile_does_not_lose_the_new_token(point):
    async def adapter(world: World) -> None:
        await world.files.remove_tree(NOTION.rpartition("/")[0])
        world.events.emit("imported")

    hold = Hold("zimmer", point, lambda event: event.name == "imported")
    ran = run_writers(writing(WRITER, full()), adapter, files={NOTION: "{}"}, holds=[hold])
    assert ran.outcome.unmet_holds == ()
    assert (ran.result, ran.json(NOTION)) == (PI, ENTRY)


@pytest.mark.requirement("writers-secret-file-mode")
def test_a_write_killed_anywhere_leaves_the_old_file_or_the_new_and_the_next_one_works():
    before = json.dumps(ROTATED)
    new = json.dumps(ENTRY)
    points = 0
    for ran in killed_everywhere(writing(WRITER, full()), files={NOTION: before, keyring_account("notion"): before}):
        points += 1
        left = ran.json(NOTION)
        assert left in (ROTATED, ENTRY), f"point {points}"
        for name in ran.names(NOTION.rpartition("/")[0]):
            assert ran.mode(f"{NOTION.rpartition('/')[0]}/{name}") == 0o600
        again = run_writers(writing(WRITER, full()), before=ran)
        assert (again.json(NOTION), again.exists(keyring_account("notion"))) == (json.loads(new), False)
        assert again.names(NOTION.rpartition("/")[0]) == ["tokens.json"]
    assert points > 20


def test_an_expired_credential_is_not_staged_and_times_are_whole_seconds():
    ran = run_writers(writing(WRITER, full(expires_at_ms=NOW_MS)))
    assert (ran.result, ran.asked, ran.exists(PI)) == (None, [], False)
    assert pi.entry_of(full(expires_at_ms=NOW_MS + HOUR_MS + 999))["tokens"]["expiresAt"] == int(NOW) + 3600


def test_a_helper_that_prints_before_its_answer_is_heard():
    async def program(world: World, argv: Any) -> int:
        await world.processes.write_line("Joined session keyring: 12345")
        found = launched(argv)
        assert found is not None
        return await found(world, argv)

    files = {keyring_account("notion"): json.dumps(ROTATED)}
    assert list(run_writers(reading(WRITER, ["notion"]), files=files, launcher=lambda _argv: program).result)
