"""How the fake Pi renews a token that was refused, what it keeps where, and whose token is lost; in a model world."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from fake_runtimes.pi.access import client_info, known_client
from fake_runtimes.pi.command import program
from fake_runtimes.pi.keyring_helper import program as helper
from fake_runtimes.pi.ring import Ring
from fake_runtimes.plan import Plan
from fake_servers.mcp import Behaviour
from harness.world import Response, World
from harness.world.model import Fault, Simulation
from scenarios.sign_in import SignInServer, as_json
from scenarios.sign_in import granted as grant
from scenarios.units.fake_pi_run import BOTH, HOME, Ran, run_pi, turn
from scenarios.worlds import program as body_program

URL = "https://srv.test/mcp"
ORIGIN = "https://srv.test"
ISSUER = f"{ORIGIN}/as"
ACCOUNT = f"sha256-{hashlib.sha256(b's').hexdigest()}"
HANDED_IN = f"{HOME}/.pi/agent/mcp-oauth/{ACCOUNT}/tokens.json"
RINGS = "/run/keyring/pi-mcp-adapter.oauth"
KEPT = f"{RINGS}/{ACCOUNT}"
NEEDS_AUTH = "MCP: Failed to connect to s: OAuth authentication required. Run /mcp-auth s."
CLIENT = {"clientId": "c", "redirectUris": ["http://localhost/"]}
NEW = Behaviour(requires_bearer=("new", "good"))
NEXT = grant("new", expires_in=3600, refresh_token="next", scope="read")
BY_PROFILE = pytest.mark.parametrize("profile", BOTH, ids=lambda profile: profile.version)


def credential(access: str = "old", refresh: str | None = "once", client: Any = CLIENT, **stamp: Any) -> dict[str, Any]:
    """What is handed in, or kept; `issuer` stamps both of its parts."""
    tokens = {"accessToken": access, **({} if refresh is None else {"refreshToken": refresh}), **stamp}
    parts = {"tokens": tokens, **({} if client is None else {"clientInfo": {**client, **stamp}})}
    return {**parts, "serverUrl": URL}


def renewing(
    entry: dict[str, Any] | None, *grants: Response, server: SignInServer | None = None, raw: Any = None, **run: Any
) -> tuple[Ran, SignInServer]:
    """A run over one server whose credential is handed in."""
    behind = server or SignInServer(NEW, grants=grants)
    files = {} if entry is None else {HANDED_IN: json.dumps(entry)}
    ran = run_pi({"s": {"url": URL, **(raw or {})}}, servers={ORIGIN: behind}, **{"files": files, **run})
    return ran, behind


def kept(ran: Ran) -> dict[str, Any]:
    """What the keyring holds after a run."""
    found: dict[str, Any] = json.loads(ran.file(KEPT) or "null")
    return found


def spent(server: SignInServer) -> list[str]:
    """The refresh tokens that were presented."""
    return [asked["refresh_token"] for asked in server.asked]


@pytest.mark.requirement("reconcile-runtimes-do-refresh", "writers-pi-rotates-like-claude")
@BY_PROFILE
def test_a_token_that_is_refused_is_renewed_and_the_pair_is_kept_in_the_keyring_alone(profile):
    ran, server = renewing(credential(), NEXT, profile=profile)
    assert (ran.stderr, server.asked) == (
        [],
        [{"grant_type": "refresh_token", "refresh_token": "once", "resource": URL, "client_id": "c"}],
    )
    now = ran.simulation.started_seconds
    tokens = kept(ran)["tokens"]
    assert now + 3600 <= tokens.pop("expiresAt") < now + 3601
    assert tokens == {"accessToken": "new", "refreshToken": "next", "scope": "read", "issuer": ISSUER}
    assert kept(ran)["clientInfo"] == {**CLIENT, "issuer": ISSUER}
    assert ran.file(HANDED_IN) is None


@BY_PROFILE
def test_a_token_is_borne_as_long_as_the_server_takes_it_whatever_its_time(profile):
    ran, server = renewing(credential("good", expiresAt=1), profile=profile)
    assert (ran.stderr, spent(server)) == ([], [])


@BY_PROFILE
def test_a_refused_refresh_token_stays_and_is_presented_by_every_run(profile):
    ran, server = renewing(credential(), profile=profile)
    assert (ran.stderr, spent(server)) == ([NEEDS_AUTH], ["once"])
    assert kept(ran)["tokens"] == {"accessToken": "old", "refreshToken": "once", "issuer": ISSUER}
    again, behind = renewing(None, files={KEPT: ran.file(KEPT) or ""}, profile=profile)
    assert (again.stderr, spent(behind)) == ([NEEDS_AUTH], ["once"])


@pytest.mark.parametrize("client", [None, {"clientId": "c"}])
def test_without_more_than_a_clients_id_another_one_is_registered_and_renews(client):
    ran, server = renewing(credential(client=client), NEXT)
    assert (ran.stderr, server.registered) == ([], 1)
    assert server.asked[0]["client_id"] == kept(ran)["clientInfo"]["clientId"] == "registered"


def test_a_client_of_the_configuration_goes_first():
    ran, server = renewing(credential(), NEXT, raw={"oauth": {"clientId": "mine"}})
    assert (server.registered, server.asked[0]["client_id"]) == (0, "mine")
    assert kept(ran)["clientInfo"] == {"clientId": "mine", "issuer": ISSUER, "configPreRegistered": True}


def test_a_server_without_a_credential_gets_a_client_and_asks_nobody():
    ran, server = renewing(None)
    assert (ran.stderr, server.registered, server.asked) == ([NEEDS_AUTH], 1, [])
    assert kept(ran) == {
        "clientInfo": {"clientId": "registered", "redirectUris": ["http://localhost:19876/callback"], "issuer": ISSUER},
        "serverUrl": URL,
    }
    initialized = [seen for seen in server.requests if seen.rpc_method == "initialize"]
    assert len(initialized) == 2  # once without a thought of OAuth


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (as_json({"error": "too_many", "error_description": "Too many requests"}, 429), "Too many requests"),
        (as_json({"error": "invalid_request"}, 400), "invalid_request"),
        (Response(500, {"Content-Type": "text/html"}, b"<html>"), None),
        (Response(503, {"Content-Type": "text/html"}, b"<html>"), None),
    ],
)
def test_an_error_of_oauth_fails_the_server_and_a_fault_of_its_server_wants_a_person(answer, told):
    ran, server = renewing(credential(), answer)
    assert spent(server) == ["once"]
    assert ran.stderr[0].startswith(NEEDS_AUTH if told is None else f"MCP: Failed to connect to s: {told} — probe: ")
    assert kept(ran)["tokens"]["refreshToken"] == "once"


def test_a_credential_of_another_issuer_is_left_alone_and_fails_the_server():
    ran, server = renewing(credential(issuer="https://other.test"))
    assert server.asked == []
    assert "OAuth authorization server issuer changed for s; clear credentials" in ran.stderr[0]
    assert kept(ran)["tokens"]["issuer"] == "https://other.test"


def test_a_server_whose_authorization_server_registers_nobody_has_failed():
    class Closed(SignInServer):
        def handle(self, request, now, who):
            refuses = request.url.endswith("/registration")
            return Response(404) if refuses else super().handle(request, now, who)

    ran, _ = renewing(None, server=Closed(NEW))
    assert ran.stderr[0].startswith(
        "MCP: Failed to connect to s: Dynamic Client Registration rejected (HTTP 404): — probe"
    )


def overtaken(stamp: dict[str, Any], *grants: Response) -> tuple[Ran, SignInServer]:
    """A run whose token is refused from its second call on, after another program has put its own pair there."""
    other = json.dumps(credential("good", "other", issuer=ISSUER))

    async def push(world: World) -> None:
        await world.clock.sleep(2.5)
        await world.files.write(KEPT, other.encode())

    class Closing(SignInServer):
        def handle(self, request, now, who):
            if now - start > 3.0:
                self.behaviour = NEW
            return super().handle(request, now, who)

    server = Closing(Behaviour(), grants=grants)
    plan = Plan((turn(("s", "echo")), turn(("s", "echo"), seconds=4.0), turn(("s", "echo"))))
    simulation = Simulation(servers={ORIGIN: server})
    start = simulation.started_seconds
    tree = simulation.tree
    config = json.dumps({"mcpServers": {"s": {"url": URL}}})
    for path, text in {"/clone/.mcp.json": config, HANDED_IN: json.dumps(credential(**stamp))}.items():
        tree.make_directory(path.rpartition("/")[0], 0o755, 0, start)
        tree.write(path, text.encode(), 0o644, 0, start)
    argv = ("pi", "-p", "--mode", "json", "go on")
    pi = simulation.start("pi", program(BOTH[0], plan), argv, env={"HOME": HOME}, directory="/clone")
    simulation.start("other", body_program(push))
    outcome = simulation.run()
    assert simulation.ended(pi) == (0, None, ())
    return Ran(simulation, outcome, pi), server


@pytest.mark.requirement("reconcile-pi-process-cache-modelled")
def test_what_was_read_is_kept_until_a_refusal_and_then_the_dead_token_is_spent_before_the_new_one():
    refused = as_json({"error": "invalid_grant"}, 400)
    ran, server = overtaken({"issuer": ISSUER}, refused, NEXT)
    assert ran.calls() == ["ok", "ok", "ok"]
    assert spent(server) == ["once", "other"]
    assert kept(ran)["tokens"]["refreshToken"] == "next"


@pytest.mark.requirement("reconcile-pi-process-cache-modelled")
def test_a_credential_without_its_issuer_is_stamped_over_the_new_pair():
    ran, server = overtaken({}, as_json({"error": "invalid_grant"}, 400))
    assert [text.partition(":")[0] for text in ran.calls()] == ["ok", "Failed to call tool", "Failed to call tool"]
    assert spent(server) == ["once"]
    assert kept(ran)["tokens"]["refreshToken"] == "once"


def test_a_call_whose_token_is_refused_goes_through_with_a_new_one():
    revoked = Fault("answer", port="http", label=f"POST {URL}", after_seconds=0.5, answer=Response(401), times=1)
    open_server = SignInServer(Behaviour(), grants=[NEXT])
    plan = Plan((turn(("s", "echo")), turn(("s", "echo"))))
    ran, server = renewing(credential(), server=open_server, faults=[revoked], plan=plan)
    assert (ran.calls(), spent(server)) == (["ok", "ok"], ["once"])


@pytest.mark.parametrize(
    ("info", "known"),
    [({"clientId": "c"}, False), ({"clientId": "c", "issuer": "i"}, False), (CLIENT, True), (None, False)],
)
def test_a_client_of_which_there_is_no_more_than_an_id_is_none(info, known):
    assert (known_client({} if info is None else {"clientInfo": info}) is not None) == known


def test_what_is_kept_of_a_registration():
    told = {"client_id": "c", "client_secret": "s", "client_id_issued_at": 5, "redirect_uris": ["x"], "more": 1}
    assert client_info(told) == {
        "clientId": "c",
        "clientSecret": "s",
        "clientIdIssuedAt": 5,
        "redirectUris": ["x"],
    }


# --- the kernel's keyring, from process to process


def sessions(*steps: tuple[str, str, str]) -> list[str | None]:
    """What is read in order; a step is a session, `read`, `write` or `remove`, and what is written."""
    rings: dict[str, Ring] = {}
    found: list[str | None] = []

    async def play(world: World) -> None:
        for name, operation, text in steps:
            ring = rings.setdefault(name, Ring(world, RINGS))
            if operation == "read":
                found.append(await ring.read("a"))
            else:
                await (ring.write("a", text) if operation == "write" else ring.remove("a"))

    simulation = Simulation()
    actor = simulation.start("rings", body_program(play))
    simulation.run()
    assert simulation.ended(actor).error is None
    return found


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ("A=1 B=2 C A D", ["2", "1", "1"]),
        ("A=1 B B=2 A C", ["1", "2", "2"]),
        ("A=1 A B- A C", ["1", None, None]),
        ("A=1 A B B- C=2 D A E", ["1", "1", "2", "2", "2"]),
        ("A=1 B C=2 D B E", ["1", "2", "1", "1"]),
        ("A", [None]),
    ],
)
def test_who_has_read_an_older_key_publishes_it_again_by_reading(steps, found):
    read = []
    for step in steps.split():
        operation = "write" if "=" in step else "remove" if step.endswith("-") else "read"
        read.append((step[0], operation, step.partition("=")[2]))
    assert sessions(*read) == found


def test_the_helper_makes_a_key_of_its_own_which_a_session_that_has_read_the_old_one_replaces():
    found: list[str | None] = []

    async def play(world: World) -> None:
        ring = Ring(world, f"{RINGS}")
        await ring.write(ACCOUNT, "old")
        await helper(world, ("keyctl", "session", "-", "node", "mcp-keyring-helper.cjs"))
        found.append((await world.files.read(KEPT)).decode())
        found.append(await ring.read(ACCOUNT))
        found.append((await world.files.read(KEPT)).decode())

    request = {"operation": "write", "service": "pi-mcp-adapter.oauth", "account": ACCOUNT, "payload": "newer"}
    simulation = Simulation()
    actor = simulation.start("both", body_program(play), stdin=(json.dumps(request),))
    simulation.run()
    assert simulation.ended(actor).error is None
    assert found == ["newer", "old", "old"]


def test_a_helper_whose_answer_nobody_reads_fails_without_a_word():
    request = {"operation": "read", "service": "pi-mcp-adapter.oauth", "account": ACCOUNT}

    async def play(world: World) -> None:
        child = await world.processes.spawn(("keyctl",), env={}, directory="/")
        await child.write_line(json.dumps(request))
        await child.close_stdin()

    simulation = Simulation(launcher=lambda argv, env, directory: helper)
    simulation.start("asks", body_program(play))
    simulation.run()
    (ended,) = (event for event in simulation.events if event.name == "ended" and event.actor == "asks/keyctl")
    assert ended.details["exit_code"] == 1
    assert all(simulation.ended(actor).error is None for actor in simulation.actors)
