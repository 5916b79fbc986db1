"""The monitor of token chains: it tells a rule that was broken from a race that none could win."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from fake_servers.oauth import AuthorizationServer
from harness.reference.credentials.row import TABLE
from harness.requirements.holes import load_holes
from harness.scenario import holes
from harness.scenario.arrivals import sort_of
from harness.scenario.chains import Monitor
from harness.scenario.stores import family_of, is_of_a_runtime, is_store, tokens_in, whose
from harness.world import Request
from harness.world.model import Event

CLAUDE, CODEX = "/home/agent/.claude/.credentials.json", "/home/agent/.codex/.credentials.json"
OWN = "/home/agent/own/S/.credentials.json"
RING = "/run/keyring/pi/sha256-1"
TOKEN = "https://as.test/token"
LOCK = "lock /home/agent/.claude/.zimmer-credential-store.lock"
HOUR = 3600.0


class Runtime(NamedTuple):
    """As a job has it."""

    family: str


class Session(NamedTuple):
    """A job."""

    runtime: Runtime
    environment: Mapping[str, str] = {}


class Scene:
    """A stage by hand: rows and files as they are put, events as they are told; `monitor` looks on."""

    def __init__(self, *, reuse: str = "revokes-family", **facts: Any) -> None:
        server = AuthorizationServer("https://as.test")
        server.provider = server.provider._replace(reuse=reuse, **facts)
        self.server, self.now = server, 1_700_000_000.0
        self.events: list[Event] = []
        self.jobs: dict[str, Any] = {}
        self.tree: dict[str, str] = {}
        self.row: dict[str, Any] = {}
        self.tokens = [server.issue("client", "read", HOUR, now=self.now)]
        self.monitor = Monitor({"as": server}, self, self.tell)
        self.store(1)

    def tell(self, actor: str, name: str, details: dict[str, Any]) -> None:
        self.events.append(Event(self.now, actor, name, details))

    def rows(self, table: str) -> Mapping[str, Mapping[str, Any]]:
        return {"key": self.row} if table == TABLE and self.row else {}

    def files(self):
        return iter([(path, text.encode()) for path, text in self.tree.items()])

    def text(self, path: str) -> str | None:
        return self.tree.get(path)

    # --- what is done

    def store(self, number: int, expires_at: float | None = None, actor: str = "cron") -> None:
        """The orchestrator's row gets a generation."""
        access, refresh = self.tokens[number - 1]
        until = self.now + HOUR if expires_at is None else expires_at
        self.row = {"server_name": "a", "access_token": access, "refresh_token": refresh, "expires_at": until}
        self.monitor.arrived(actor, "committed", None)

    def text_of(self, number: int, expires_at: float | None = None) -> str:
        """A store's text with a generation in it."""
        access, refresh = self.tokens[number - 1]
        entry = {"serverName": "a", "serverUrl": "https://a.test/mcp", "accessToken": access, "refreshToken": refresh}
        until = self.now + 2 * HOUR if expires_at is None else expires_at
        return json.dumps({"mcpOAuth": {"a|1": {**entry, "expiresAt": until * 1000}}})

    def write(self, path: str, number: int, expires_at: float | None = None, actor: str = "S/claude") -> None:
        """Somebody replaces a store."""
        self.monitor.arrived(actor, f"rename {path}", None)
        self.tree[path] = self.text_of(number, expires_at)
        self.monitor.arrived(actor, f"renamed {path}", None)

    def read(self, actor: str, path: str) -> None:
        """Somebody reads a store, and goes on."""
        self.monitor.arrived(actor, f"read {path}", None)
        self.monitor.arrived(actor, "begin", None)

    def renew(self, number: int, actor: str = "S/claude") -> None:
        """Somebody presents a generation, and the provider answers."""
        self.present(number, actor)
        body = f"grant_type=refresh_token&client_id=client&refresh_token={self.tokens[number - 1][1]}".encode()
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = self.server.handle(Request("POST", TOKEN, headers, body), self.now, actor)
        self.tell(actor, "request", {"at": f"POST {TOKEN}", "status": answer.status})
        if answer.status == 200:
            told = json.loads(answer.body)
            self.tokens.append((told["access_token"], told["refresh_token"]))

    def present(self, number: int, actor: str) -> tuple[str, str]:
        """Somebody is about to send a generation: (rule, hole)."""
        body = f"grant_type=refresh_token&refresh_token={self.tokens[number - 1][1]}".encode()
        self.monitor.arrived(actor, f"POST {TOKEN}", body)
        last = self.monitor.attempts[-1]
        assert self.events[-1].name == "attempt"
        return last.wrong, last.hole


def rotated(path: str = CLAUDE, **facts: Any) -> Scene:
    """A runtime has renewed, and written it into its store."""
    scene = Scene(**facts)
    scene.write(path, 1)
    scene.renew(1)
    scene.write(path, 2)
    return scene


@pytest.mark.requirement("refresh-chain-never-burned")
def test_whoever_has_not_looked_breaks_a_rule():
    assert rotated().present(1, "cron") == ("it had not looked", "")


@pytest.mark.requirement("refresh-chain-never-burned")
def test_whoever_has_read_the_fresher_one_breaks_a_rule():
    scene = rotated()
    scene.read("cron", CLAUDE)
    assert scene.present(1, "cron") == ("it had read the fresher one", "")


def test_a_rotation_after_the_look_is_a_race():
    scene = Scene()
    scene.write(CLAUDE, 1)
    scene.read("cron", CLAUDE)
    scene.renew(1)
    scene.write(CLAUDE, 2)
    assert scene.present(1, "cron") == ("", holes.READ_THEN_ROTATED)


@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_look_of_an_earlier_run_is_none():
    scene = Scene()
    scene.write(CLAUDE, 1)
    scene.read("cron", CLAUDE)
    scene.renew(1)
    scene.write(CLAUDE, 2)
    scene.now += 1800
    assert scene.present(1, "cron") == ("it had not looked", "")


@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_look_from_before_ones_own_last_request_is_none():
    scene = Scene()
    scene.write(CLAUDE, 1)
    scene.read("cron", CLAUDE)
    scene.present(1, "cron")
    scene.renew(1)
    scene.write(CLAUDE, 2)
    assert scene.present(1, "cron") == ("it had not looked", "")


@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_row_is_never_fresher_than_what_its_lock_let_one_read():
    scene = Scene()
    scene.renew(1, "S")
    scene.store(2)
    assert scene.present(1, "cron") == ("its own row holds the fresher one", "")


def test_a_newer_pair_that_ends_no_later_cannot_be_told():
    scene = Scene()
    scene.renew(1)
    scene.write(CLAUDE, 2, expires_at=scene.now + 60)
    scene.read("cron", CLAUDE)
    assert scene.present(1, "cron") == ("", holes.NO_LATER)


def test_a_store_that_could_not_be_read_is_told():
    scene = rotated()
    scene.monitor.arrived("cron", f"read {CLAUDE}", None)
    scene.tell("cron", "fault", {"action": "eacces", "at": f"read {CLAUDE}"})
    scene.monitor.arrived("cron", "begin", None)
    assert scene.present(1, "cron") == ("", holes.NOT_READABLE)


@pytest.mark.parametrize(
    ("store", "family", "environment", "expected"),
    [
        (CLAUDE, "claude", {}, ("it had not looked", "")),
        (CODEX, "claude", {}, ("", holes.OTHER_RUNTIME)),
        (RING, "claude", {}, ("", holes.OTHER_RUNTIME)),
        (RING, "pi", {}, ("it had not looked", "")),
        (OWN, "claude", {}, ("", holes.ONE_SESSION)),
        (OWN, "claude", {"CLAUDE_CONFIG_DIR": "/home/agent/own/S"}, ("it had not looked", "")),
        (CLAUDE, "claude", {"CLAUDE_CONFIG_DIR": "/home/agent/own/S"}, ("", holes.ONE_SESSION)),
    ],
)
@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_session_has_to_look_where_its_runtime_will(store, family, environment, expected):
    scene = rotated(store)
    if store == CODEX:
        scene.tree[CODEX] = scene.tree[CODEX].replace('{"mcpOAuth": ', "").removesuffix("}")
    scene.jobs["T"] = Session(Runtime(family), environment)
    assert scene.present(1, "T") == expected


def test_whoever_completes_a_consent_looks_where_its_session_would():
    scene = rotated(CLAUDE)
    scene.jobs |= {"T": Session(Runtime("claude")), "S": Session(Runtime("pi")), "S#2": Session(Runtime("pi"))}
    scene.tell("operator", "step.authorize", {"server": "a", "session": "S"})
    scene.tell("operator", "step.authorize", {"server": "a", "session": "T"})
    assert scene.present(1, "web") == ("", holes.OTHER_RUNTIME)
    assert scene.present(1, "web#2") == ("it had not looked", "")


@pytest.mark.parametrize(("store", "expected"), [(CODEX, "it had not looked"), (OWN, ""), (RING, "it had not looked")])
def test_a_job_has_to_look_into_what_all_sessions_share(store, expected):
    assert rotated(store).present(1, "cron")[0] == expected


def test_a_helper_that_ended_badly_has_read_nothing():
    scene = rotated(RING)
    scene.monitor.arrived("cron", "spawn keyctl", None)
    scene.read("cron/keyctl", RING)
    assert scene.present(1, "cron") == ("", holes.NOT_READABLE)
    scene = rotated(RING)
    scene.read("cron/keyctl", RING)
    scene.tell("cron/keyctl", "ended", {"exit_code": 0})
    assert scene.present(1, "cron")[0] == "it had read the fresher one"


@pytest.mark.parametrize(("seconds", "expected"), [(1.9, ""), (2.0, holes.NOT_READABLE)])
def test_a_helper_that_answers_too_late_has_told_nobody(seconds, expected):
    scene = rotated(RING)
    scene.tell("cron", "spawn", {"argv": ["keyctl"], "child": "cron/keyctl"})
    scene.read("cron/keyctl", RING)
    scene.now += seconds
    scene.tell("cron/keyctl", "ended", {"exit_code": 0})
    assert scene.present(1, "cron")[1] == expected


def test_a_runtime_that_presents_what_is_spent_is_a_race():
    scene = Scene()
    scene.write(CLAUDE, 1)
    scene.renew(1, "cron")
    scene.store(2)
    assert scene.present(1, "S/claude") == ("", holes.STALE_UNDER_RUNTIME)


def test_what_is_spent_and_nowhere_replaced_is_under_way_or_lost():
    scene = Scene()
    scene.renew(1, "S/claude")
    assert scene.present(1, "cron") == ("", holes.NOT_YET_WRITTEN)
    scene.tell("S/claude", "killed", {"signal": "SIGKILL"})
    assert scene.present(1, "cron") == ("", holes.ANSWER_LOST)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("S/claude", "cron", ("", holes.NOT_YET_WRITTEN)),
        ("cron", "S/claude", ("", holes.NOT_YET_WRITTEN)),
        ("cron", "T", ("another process of the orchestrator presents it just now", "")),
        ("cron", "cron", ("", "")),
    ],
)
@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_token_that_is_being_presented_is_as_good_as_spent(first, second, expected):
    scene = Scene()
    assert scene.present(1, first) == ("", "")
    assert scene.present(1, second) == expected
    assert scene.monitor.attempts[-1].reuse == any(expected)


@pytest.mark.parametrize(("name", "details"), [("request", {"at": f"POST {TOKEN}", "status": 503}), ("ended", {})])
def test_a_token_that_was_refused_meanwhile_is_not_being_presented(name, details):
    scene = Scene()
    scene.present(1, "S/claude")
    scene.tell("S/claude", name, details)
    assert scene.present(1, "cron") == ("", "")


@pytest.mark.requirement("refresh-chain-never-burned")
def test_whoever_writes_over_what_it_had_read_breaks_a_rule():
    scene = rotated()
    scene.read("T", CLAUDE)
    scene.monitor.arrived("T", LOCK, None)
    scene.read("T", CLAUDE)
    scene.write(CLAUDE, 1, actor="T", expires_at=scene.now + 60)
    (found,) = scene.monitor.overwrites[:1]
    assert (found.wrong, found.before, found.after) == ("it had read the fresher one", 2, 1)


@pytest.mark.requirement("refresh-chain-never-burned")
def test_claudes_fresher_entry_is_not_written_over_even_if_it_came_late():
    scene = Scene()
    scene.write(CLAUDE, 1)
    scene.read("T", CLAUDE)
    scene.monitor.arrived("T", LOCK, None)
    scene.renew(1)
    scene.write(CLAUDE, 2)
    scene.read("T", CLAUDE)
    scene.write(CLAUDE, 1, actor="T", expires_at=scene.now + 60)
    assert scene.monitor.overwrites[0].wrong == "what stands there is good and ends later"


def test_what_comes_after_the_writers_own_look_is_a_race():
    scene = Scene()
    scene.write(CLAUDE, 1)
    scene.read("T", CLAUDE)
    scene.monitor.arrived("T", LOCK, None)
    scene.read("T", CLAUDE)
    scene.renew(1)
    scene.write(CLAUDE, 2)
    scene.write(CLAUDE, 1, actor="T", expires_at=scene.now + 60)
    assert (scene.monitor.overwrites[0].wrong, scene.monitor.overwrites[0].hole) == ("", holes.OVERWRITTEN)


def ask_keyring(scene: Scene, child: str, exit_code: int = 0) -> None:
    """A helper of T reads Pi's keyring."""
    scene.tell("T", "spawn", {"argv": ["keyctl", "node", "mcp-keyring-helper.cjs"], "child": child})
    if exit_code == 0:
        scene.read(child, RING)
    scene.tell(child, "ended", {"exit_code": exit_code})


@pytest.mark.requirement("refresh-chain-never-burned")
def test_a_helper_that_was_given_up_has_told_nothing_even_if_it_was_done_at_that_moment():
    scene = rotated(RING)
    ask_keyring(scene, "T/keyctl")
    scene.monitor.arrived("T", "SIGKILL to T/keyctl", None)
    assert scene.present(1, "T") == ("", holes.NOT_READABLE)
    ask_keyring(scene, "T/keyctl#2")
    assert scene.present(1, "T") == ("it had read the fresher one", "")


def take_away(scene: Scene) -> tuple[str, str]:
    """T has the account of the keyring removed, for which it asks twice; (rule, hole) of the newer pair in it."""
    ask_keyring(scene, "T/keyctl#8")
    scene.tell("T", "spawn", {"argv": ["keyctl", "node", "mcp-keyring-helper.cjs"], "child": "T/keyctl#9"})
    scene.read("T/keyctl#9", RING)
    scene.monitor.arrived("T/keyctl#9", f"remove {RING}", None)
    del scene.tree[RING]
    scene.monitor.arrived("T/keyctl#9", "begin", None)
    (found,) = scene.monitor.overwrites
    assert (found.store, found.before, found.after) == (RING, 2, 1)
    return found.wrong, found.hole


@pytest.mark.parametrize(
    ("exit_code", "expected"),
    [
        (None, ("it had not looked", "")),
        (0, ("it had read the fresher one", "")),
        (-9, ("", holes.NOT_READABLE)),
    ],
)
@pytest.mark.requirement("refresh-chain-never-burned")
def test_whoever_takes_a_newer_pair_out_of_the_keyring_has_to_have_looked(exit_code, expected):
    scene = rotated(RING)
    if exit_code is not None:
        ask_keyring(scene, "T/keyctl", exit_code)
    assert take_away(scene) == expected
    assert scene.monitor.taken_by(("as", 1), 1) == (expected[1] or holes.OVERWRITTEN)


def test_what_the_provider_has_ended_may_be_taken_out_of_the_keyring_unseen():
    scene = rotated(RING)
    scene.renew(1, "S/claude")
    assert scene.monitor.attempts[-1].reuse
    assert take_away(scene) == ("", "")


def test_what_comes_into_the_keyring_after_a_look_is_a_race():
    scene = Scene()
    scene.write(RING, 1)
    ask_keyring(scene, "T/keyctl")
    scene.renew(1)
    scene.write(RING, 2)
    assert take_away(scene) == ("", holes.OVERWRITTEN)


def test_what_a_runtime_puts_over_a_newer_pair_in_the_keyring_is_published_again():
    scene = rotated(RING)
    scene.write(RING, 1, actor="S/pi")
    assert scene.monitor.taken_by(("as", 1), 1) == holes.REPUBLISHED
    assert scene.present(1, "T/pi") == ("", holes.REPUBLISHED)


def test_what_a_helper_that_only_asked_puts_back_over_a_newer_pair_is_published_again_too():
    """It had read the older one, and a runtime renewed that before the helper published what it had found."""
    scene = rotated(RING)
    scene.write(RING, 1, actor="cron/keyctl")
    (found,) = scene.monitor.overwrites
    assert (found.wrong, found.hole) == ("", holes.REPUBLISHED)
    assert scene.present(1, "T/pi") == ("", holes.REPUBLISHED)


def test_an_answer_that_came_into_a_store_was_not_lost():
    scene = rotated(RING)
    scene.tell("S/claude", "killed", {"signal": "SIGKILL"})
    scene.write(RING, 1, actor="S/pi")
    assert scene.present(1, "S/pi") == ("", holes.REPUBLISHED)


def test_a_row_goes_back_by_a_later_expiry_alone():
    scene = Scene()
    scene.renew(1, "cron")
    scene.store(2, scene.now + 60)
    scene.store(1, scene.now + HOUR)
    assert not scene.monitor.backwards
    assert scene.monitor.overwrites[-1].hole == holes.NO_LATER
    scene.store(2, scene.now + 2 * HOUR)
    scene.store(1, scene.now + HOUR)
    assert [each.text for each in scene.monitor.backwards] == ["cron puts generation 1 over 2 of as"]


def test_what_was_retired_and_comes_back_is_told():
    scene = Scene()
    kept = dict(scene.row)
    scene.row |= {"refresh_token": None}
    scene.monitor.arrived("S", "committed", None)
    scene.tell("S", "credential.retired", {"server": "a"})
    scene.monitor.arrived("S", "committed", None)
    assert scene.monitor.revived == []
    scene.row = kept
    scene.monitor.arrived("cron", "committed", None)
    assert [each.text for each in scene.monitor.revived] == ["cron puts generation 1 of as back, which was retired"]


def test_names_of_actors_and_files_tell_whose_they_are():
    assert [is_of_a_runtime(each) for each in ("cron", "S", "S/keyctl", "S/claude#2", "S#2/pi/x")] == [
        False, False, False, True, True,
    ]  # fmt: skip
    assert [whose(each) for each in ("S", "cron/keyctl#3", "S#2/claude/npx")] == ["S", "cron", "S#2/claude"]
    assert [is_store(each) for each in (CLAUDE, RING, "/run/keyring/pi.keys/x", f"{CLAUDE}.tmp")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert family_of("/own/x/.credentials.json", '{"mcpOAuth": {}}') == "claude"
    assert [family_of(each, None) for each in (CLAUDE, CODEX, RING)] == ["claude", "codex", "pi"]


def test_a_text_that_is_no_json_holds_no_token():
    assert tokens_in('{"a": "0123456789abcdef", "expiresAt": 5000') == ()
    assert tokens_in('{"a": "0123456789abcdef", "expiresAt": 1700000000000}') == (("0123456789abcdef", 1.7e9),)
    inner = json.dumps({"a": "0123456789abcdef", "expires_at": 7})
    assert ("0123456789abcdef", 7.0) in tokens_in(json.dumps({"chunk": inner}))


def test_labels_that_mean_nothing_cost_nothing():
    assert sort_of("read /tmp/x") == sort_of("sleep") == sort_of("commit") == ("", "")
    assert sort_of(f"rows of {TABLE}") == ("read", "row")


def test_every_hole_that_is_told_is_described():
    told = {value for name, value in vars(holes).items() if name.isupper() and isinstance(value, str)}
    assert told == set(load_holes())
    assert all(all(each) for each in load_holes().values())
