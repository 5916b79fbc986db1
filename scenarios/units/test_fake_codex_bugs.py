"""The two bugs of Codex that the orchestrator's writer works around: off, on, and what is needed with which of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fake_runtimes import executable
from fake_runtimes.codex.bugs import KNOWN, LOGIN_IS_LOST, NONE, REFRESH_IS_UNUSED, UnknownBugError, read_bugs
from fake_runtimes.codex.command import program
from fake_runtimes.plan import Plan, ToolCall, Turn
from fake_servers.mcp import HttpServer
from fake_servers.oauth import AuthorizationServer, Protected, Resource, Site
from harness.errors import UserInputError
from harness.reference.credentials.writers import codex
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from harness.world import World
from harness.world.model.simulation import DEFAULT_START_SECONDS
from scenarios.units.test_fake_codex_session import BOTH, ENVIRONMENT, FULL, HOME, NEWER, Run, entry, run
from scenarios.units.writer_run import full

URL = "https://tickets.test/mcp"
STORE = f"{HOME}/.codex/.credentials.json"
CONFIG = entry("tickets", url=URL)
LOGIN = ("codex", "mcp", "login", "tickets")
EXEC = ("codex", "exec", "--json", *FULL, "go on")
CALL = Plan((Turn(calls=(ToolCall("tickets", "echo"),)),))
LATE = Plan((Turn(seconds=600.0, calls=(ToolCall("tickets", "echo"),)),))


class House:
    """A server and the authorization server that protects it."""

    def __init__(self) -> None:
        self.authorization = AuthorizationServer("/as")
        self.site = Site(self.authorization, Protected(HttpServer(), self.authorization, Resource("/mcp")))

    def entry(self, expires_in: float = 3600.0) -> dict[str, Any]:
        """An entry of the store as the orchestrator writes it."""
        now = DEFAULT_START_SECONDS
        access, refresh = self.authorization.issue("client-123", now=now, expires_in=expires_in)
        written = full(
            server_name="tickets",
            server_url=URL,
            access_token=access,
            refresh_token=refresh,
            expires_at_ms=int(now + expires_in) * 1000,
            scope=None,
            issuer="https://tickets.test/as",
        )
        return dict(codex.entry_of(written))

    def run(
        self, *commands: tuple[str, ...], bugs: Any = NONE, stored: Any = None, plan: Plan = CALL, profile: Any = NEWER
    ) -> Run:
        """One program after the other, in the same home."""

        async def story(world: World, _argv: Any) -> int:
            for argv in commands:
                code = await program(profile, plan, bugs)(world, argv)
            return code

        files = {} if stored is None else {STORE: json.dumps({"tickets|1": stored})}
        return run(CONFIG, files=files, http={URL: self.site}, started=story, environment=ENVIRONMENT)


def calls(found: Run) -> list[tuple[bool, str]]:
    return [(event["ok"], event["text"]) for event in found.events("tool.call")]


def works(found: Run) -> bool:
    return [ok for ok, _ in calls(found)] == [True]


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize(("bugs", "survives"), [(NONE, True), ({REFRESH_IS_UNUSED}, True), ({LOGIN_IS_LOST}, False)])
def test_a_login_of_codexs_own_is_there_at_the_next_start_unless_the_bug_is_on(profile, bugs, survives):
    found = House().run(LOGIN, EXEC, bugs=frozenset(bugs), profile=profile)
    assert "Successfully logged in to MCP server 'tickets'." in found.actor.stdout.lines
    assert works(found) is survives
    assert (found.simulation.tree.stat(STORE, 0) is not None) is survives


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize("profile", BOTH)
def test_what_the_orchestrator_has_written_is_used_with_both_bugs(profile):
    house = House()
    assert works(house.run(EXEC, bugs=frozenset(KNOWN), stored=house.entry(), profile=profile))
    assert house.authorization.received("token") == []


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("expires_in", [-60.0, 20.0])
def test_a_stored_refresh_token_gives_a_new_token_unless_the_bug_is_on(profile, expires_in):
    house = House()
    assert works(house.run(EXEC, stored=house.entry(expires_in), profile=profile))
    assert len(house.authorization.received("token")) == 1

    house = House()
    stored = house.entry(expires_in)
    found = house.run(EXEC, bugs=frozenset({REFRESH_IS_UNUSED}), stored=stored, profile=profile)
    assert house.authorization.received("token") == []
    assert found.failures()["tickets"].endswith("Authorization required")
    assert json.loads(found.text(STORE))["tickets|1"] == stored


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize("profile", BOTH)
def test_a_token_that_ends_during_a_session_fails_its_calls_with_the_bug(profile):
    house = House()
    stored = house.entry(120.0)
    found = house.run(EXEC, bugs=frozenset({REFRESH_IS_UNUSED}), stored=stored, plan=LATE, profile=profile)
    ((ok, text),) = calls(found)
    assert (ok, text.endswith("Authorization required")) == (False, True)
    assert house.authorization.received("token") == []


@pytest.mark.requirement("writers-codex-workaround-bugs")
@pytest.mark.parametrize(("bugs", "needed"), [(NONE, False), ({LOGIN_IS_LOST}, True), ({REFRESH_IS_UNUSED}, True)])
def test_without_both_bugs_codex_needs_nobody_who_writes_its_store(bugs, needed):
    house = House()
    given = frozenset(bugs)
    lasting = house.run(LOGIN, EXEC, bugs=given)
    stored = house.entry(-60.0)
    assert (not (works(lasting) and works(house.run(EXEC, bugs=given, stored=stored)))) is needed


def test_a_sign_in_is_registered_and_exchanged_as_the_program_does_it():
    house = House()
    found = house.run(LOGIN)
    (client,) = house.authorization.clients.values()
    (asked,) = house.authorization.received("authorize")
    (exchange,) = house.authorization.received("token")
    assert (asked.fields["resource"], exchange.fields["resource"]) == (URL, URL)
    assert exchange.fields["client_id"] == client.client_id
    (stored,) = json.loads(found.text(STORE)).values()
    assert (stored["server_name"], stored["client_id"]) == ("tickets", client.client_id)
    status = found.simulation.tree.stat(STORE, 0)
    assert status is not None
    assert status.mode & 0o777 == 0o600


@pytest.mark.parametrize("endpoint", ["register", "authorize", "token"])
def test_an_authorization_server_that_sends_nobody_back_signs_nobody_in(endpoint):
    house = House()
    house.authorization.answer_always(endpoint, "500-html")
    found = house.run(LOGIN)
    assert (found.exit_code, found.stderr) == (
        1,
        ["Error: nobody can sign in to 'tickets' through this stand-in"],
    )
    assert found.simulation.tree.stat(STORE, 0) is None


def test_bugs_are_named_with_commas_or_blanks_between_and_an_unknown_one_is_refused():
    assert read_bugs("") == NONE
    assert read_bugs("openai/codex#15122, openai/codex#17265") == frozenset(KNOWN)
    with pytest.raises(UnknownBugError, match=r"unknown bug '15122', known are openai/codex#15122"):
        read_bugs("15122")


def test_who_starts_the_fake_names_its_bugs_by_a_flag_or_the_environment():
    argv = ("codex", "--fake-bugs", LOGIN_IS_LOST, "exec")
    told = executable.told_by(argv, {"MCP_FAKE_BUGS": REFRESH_IS_UNUSED})
    assert (told.bugs, told.argv) == (LOGIN_IS_LOST, ("codex", "exec"))
    assert executable.told_by(("codex", "exec"), {"MCP_FAKE_BUGS": REFRESH_IS_UNUSED}).bugs == REFRESH_IS_UNUSED


@pytest.mark.parametrize(
    ("runtime", "bugs", "text"),
    [
        ("codex", "nothing", "MCP_FAKE_BUGS: unknown bug 'nothing', known are "),
        ("claude", LOGIN_IS_LOST, "MCP_FAKE_BUGS: no bugs of claude are known"),
    ],
)
def test_bugs_that_a_fake_cannot_have_are_unusable(runtime, bugs, text):
    found = run(started=executable.program(runtime, executable.Told("", "", (runtime, "--version"), bugs)))
    assert found.exit_code == 64
    assert found.stderr[0].startswith(f"mcp-fake-{runtime}: {text}")


@pytest.mark.parametrize("bugs", [[], list(KNOWN)])
def test_a_scenario_gives_its_codex_these_bugs(bugs):
    text = SCENARIO.format(bugs=json.dumps(bugs))
    verdict = play(read_scenario(text), "codex").verdict
    assert verdict is (Verdict.FAIL if bugs else Verdict.PASS)


def test_a_scenario_with_bugs_cannot_be_about_the_real_program():
    text = SCENARIO.format(bugs=json.dumps(list(KNOWN))).replace("watched", 'tiers = ["model", "real"]\nwatched')
    with pytest.raises(UserInputError, match="at the tier real Codex has the bugs that it has"):
        read_scenario(text)


SCENARIO = """
schema = 1
id = "own-renewal"
title = "Codex renews what it has"
runtime = "codex"
watched = false
codex_bugs = {bugs}

[catalog.tickets]
type = "streamable-http"
url = "https://tickets.test/mcp"

[authorization.desk-as]
provider = "notion"

[server.tickets]
protected_by = "desk-as"
tools = ["find"]

[[credential]]
server = "tickets"
issued_by = "desk-as"
expires_in_seconds = 10
held_by = ["runtime"]

[[step]]
start = "S"
turns = [{{ calls = [{{ server = "tickets", tool = "find" }}] }}]

[[expect]]
event = "tool.call"
where = {{ server = "tickets", ok = true }}
"""
