"""An edit of a session's servers or plugins: who is new is asked, and an idle session that needs a human is failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness.reference.credentials import table
from harness.reference.oauth.deps import OAuthDeps
from harness.reference.oauth.requirement import TABLE as REQUIREMENTS
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.session import rows
from harness.reference.session.order import Order
from harness.reference.session.resume import resume_after_authorization
from harness.reference.session.selection_edit import edit_selection
from harness.world import Response, World
from harness.world.model import Fault
from scenarios.units.failed_handshakes_run import UNAUTHORIZED, Handshakes
from scenarios.units.spawn_gate_run import (
    HOUR,
    SESSION,
    TOKEN,
    Session,
    credential,
    deps_of,
    refuses,
    remote,
    serves,
    stdio,
)

NOTION = {"notion": remote("notion"), "files": stdio()}
IDLE = {"status": "needs_input", "mcp_servers": ["files"], "session_id": "uuid", "prompt": "Do A", "transcript": "x"}


def edited(answers: Mapping[str, Any] | None = None, **more: Any) -> Session:
    """A session after an edit that brings in `servers`, directly or (`plugins`) with a plugin."""
    catalog = more.pop("catalog", NOTION)
    lists = more.pop("lists", {"servers": ("files", "notion")})
    row = {**IDLE, **more.pop("row", {})}
    then = more.pop("then", None)

    async def program(world: World, order: Order) -> Any:
        deps = OAuthDeps(order.catalog, order.lookup, more.get("oauth", OAuthSettings("zimmer.example.com")))
        blocked = await edit_selection(world, SESSION, deps, **lists)
        return blocked if then is None else await then(world, order)

    chosen = more.pop("chosen", ["files"])
    wanted = refuses("notion") if answers is None else answers
    return Session(catalog, wanted, chosen=chosen, row={**row, "mcp_servers": chosen}, program=program, **more)


def probed(session: Session) -> list[str]:
    """The servers that were asked."""
    return [each["server"] for each in session.ran.named("oauth.probed")]


@pytest.mark.requirement("resume-three-doors", "resume-door-edit-idle-only", "requirement-probe-on-selection-change")
def test_an_idle_session_is_failed_for_a_server_that_has_to_be_authorized():
    session = edited()
    assert session.ran.result == ("notion",)
    assert probed(session) == ["notion"]
    assert (session.row["status"], session.metadata.get("failure_reason")) == ("failed", "oauth_required")
    assert session.required == ["notion"]
    assert session.row["mcp_servers"] == ["files", "notion"]
    assert session.timeline == ["blocked"]
    assert (session.jobs, session.spawns) == ([], 0)
    assert session.ran.named("session.blocked") == [{"servers": ["notion"]}]


NUMBER_IN_HEADERS = {"headers": {"X-Trace": 1}}


@pytest.mark.requirement("gate-skips-declared-unavailable")
@pytest.mark.parametrize(
    ("runtime", "name", "more", "fails"),
    [
        ("codex", "a.b", {}, False),
        ("claude", "a.b", {}, True),
        ("pi", "a.b", {}, True),
        ("claude", "workspace", {}, False),
        ("codex", "workspace", {}, True),
        ("codex", "notion", NUMBER_IN_HEADERS, False),
        ("claude", "notion", NUMBER_IN_HEADERS, True),
        ("codex", "notion", {"headers": ["X-Trace"]}, False),
        ("codex", "notion", {"oauth": {"clientId": 5}}, False),
        ("codex", "notion", {"oauth": {"clientId": "client", "scopes": ["read"]}}, True),
        ("codex", "notion", {"headers": {"X-Trace": "1"}, "startup_timeout_sec": "soon"}, True),
        ("pi", "notion", {"unavailable": "No OAuth discovery."}, False),
    ],
)
def test_an_idle_session_is_failed_for_no_server_that_its_runtime_cannot_have(runtime, name, more, fails):
    session = edited(
        refuses(name),
        catalog={name: remote(name, **more), "files": stdio()},
        lists={"servers": ("files", name)},
        row={"runtime": runtime},
    )
    assert session.ran.result == ((name,) if fails else ())
    assert session.row["status"] == ("failed" if fails else "needs_input")
    assert probed(session) == ([name] if fails else [])


def test_a_server_without_an_address_fails_no_session_whatever_client_is_registered_for_it():
    client = {"client_id": "c", "authorization_endpoint": "https://as.test/authorize", "token_endpoint": TOKEN}
    oauth = OAuthSettings("zimmer.example.com", {"nowhere": client})
    nowhere = {"title": "N", "type": "streamable-http"}
    session = edited({}, catalog={"nowhere": nowhere, "files": stdio()}, lists={"servers": ("nowhere",)}, oauth=oauth)
    assert (session.ran.result, session.row["status"]) == ((), "needs_input")


@pytest.mark.requirement("resume-three-doors")
def test_the_doors_before_a_spawn_and_the_one_after_it_lead_to_the_same_state():
    first = Session({"notion": remote("notion")}, refuses("notion"))
    later = Session({"notion": remote("notion")}, refuses("notion"), follow_up="do X")
    spawned = Handshakes({"notion": remote("notion")}, [{"notion": UNAUTHORIZED}])
    for each in (first, later, edited(), spawned):
        row = each.row
        assert (row["status"], row["metadata"].get("failure_reason")) == ("failed", "oauth_required")
        assert [server["server_name"] for server in row["metadata"].get("oauth_required_servers", ())] == ["notion"]


@pytest.mark.requirement("resume-door-edit-idle-only", "requirement-probe-on-selection-change")
@pytest.mark.parametrize(
    "row",
    [
        {"status": "running"},
        {"status": "waiting"},
        {"status": "archived"},
        {"status": "needs_input", "metadata": {"paused_by": "mcp_retry"}},
    ],
)
def test_a_session_that_is_not_idle_is_asked_for_and_left_alone(row):
    session = edited(row=row)
    assert probed(session) == ["notion"]
    assert session.ran.result == ()
    assert session.row["status"] == row["status"]
    assert session.row["mcp_servers"] == ["files", "notion"]
    assert session.required == []


@pytest.mark.requirement("resume-door-edit-plugins", "requirement-probe-on-selection-change")
@pytest.mark.parametrize(("status", "then"), [("needs_input", "failed"), ("running", "running")])
def test_a_plugin_that_brings_such_a_server_in_is_the_same_door(status, then):
    row = {"status": status, "metadata": {"pending_follow_up_prompt": "do X"}}
    session = edited(lists={"plugin_servers": ("notion",)}, row=row)
    assert session.row["status"] == then
    assert session.required == (["notion"] if then == "failed" else [])
    assert session.metadata.get("pending_follow_up_prompt") == "do X"
    assert session.row["mcp_servers"] == ["files"]
    assert session.row["plugin_servers"] == ["notion"]


def authorized_then_resumed(seconds: float = HOUR) -> Any:
    """Somebody authorizes the server, and the completion reaches the session."""

    async def then(world: World, _order: Order) -> Any:
        await table.insert_unchecked(world, credential("notion", seconds))
        return await resume_after_authorization(world, SESSION, deps_of(NOTION), "notion")

    return then


@pytest.mark.requirement("resume-door-edit-keeps-owed-turn")
def test_a_message_that_was_owed_before_the_edit_is_owed_after_it_and_delivered_by_the_resume():
    row = {"metadata": {"pending_follow_up_prompt": "do X"}}
    assert edited(row=row).metadata.get("pending_follow_up_prompt") == "do X"
    session = edited(row=row, then=authorized_then_resumed())
    assert session.ran.result == "resumed"
    (job,) = session.jobs
    assert (job["kind"], job["prompt"]) == ("follow_up", "do X")


@pytest.mark.requirement("resume-door-edit-no-owed-turn")
def test_an_edit_invents_no_turn():
    session = edited(then=authorized_then_resumed())
    assert "pending_follow_up_prompt" not in session.metadata
    (job,) = session.jobs
    assert (job["kind"], job["prompt"], session.row["status"]) == ("new_session", None, "waiting")


@pytest.mark.requirement("requirement-blip-keeps-session")
@pytest.mark.parametrize("answer", [Response(404), Response(500), None])
def test_a_server_that_cannot_be_asked_costs_nobody_anything(answer):
    answers = {} if answer is None else {"GET https://notion.test/mcp": answer}
    faults = [Fault("refused", port="http", label="*notion.test*")] if answer is None else []
    session = edited(answers, faults=faults)
    assert (session.ran.result, session.row["status"]) == ((), "needs_input")
    assert [each["determination"] for each in session.ran.named("oauth.probed")] == ["undetermined"]


@pytest.mark.parametrize(
    ("rows_of", "blocked"),
    [
        ([credential("notion")], ()),
        ([credential("notion", -HOUR)], ()),
        ([credential("notion", -HOUR, refresh_token=None)], ("notion",)),
        ([], ("notion",)),
    ],
)
def test_what_is_stored_counts_as_it_will_at_the_next_spawn(rows_of, blocked):
    assert edited(credentials=rows_of).ran.result == blocked


def test_a_client_that_was_registered_by_hand_is_itself_the_answer():
    known = {
        "notion": {
            "client_id": "c", "authorization_endpoint": "https://as.test/a", "token_endpoint": "https://as.test/t"
        }
    }  # fmt: skip
    assert edited({}, oauth=OAuthSettings("zimmer.example.com", known)).ran.result == ("notion",)


@pytest.mark.requirement("requirement-static-header-not-asked")
@pytest.mark.parametrize("more", [{"headers": {"X-API-Key": "k"}}, {"unavailable": "It is down."}])
def test_a_server_that_the_gate_does_not_look_at_is_not_asked_here_either(more):
    session = edited(catalog={"notion": remote("notion", **more), "files": stdio()})
    assert (session.ran.result, session.asked) == ((), [])
    assert session.ran.rows(REQUIREMENTS) == {}


@pytest.mark.requirement("requirement-probe-on-selection-change")
@pytest.mark.parametrize("lists", [{}, {"servers": ("files", "notion")}, {"servers": ("notion", "files")}])
def test_an_edit_that_changes_nothing_asks_nobody(lists):
    session = edited(lists=lists, chosen=["files", "notion"])
    assert (session.asked, session.ran.result, session.row["status"]) == ([], (), "needs_input")


def test_a_server_whose_address_cannot_be_resolved_is_left_to_the_next_preparation():
    catalog = {"notion": remote("notion", url="https://${NOWHERE}.test/mcp"), "files": stdio()}
    session = edited({}, catalog=catalog)
    assert (session.ran.result, session.row["mcp_servers"]) == ((), ["files", "notion"])


def test_a_server_that_needs_no_token_is_asked_and_that_is_all():
    session = edited(serves("notion"))
    assert (session.ran.result, session.row["status"]) == ((), "needs_input")
    (noted,) = session.ran.rows(REQUIREMENTS).values()
    assert noted["determination"] == "advertised_not_required"


@pytest.mark.requirement("resume-door-edit-idle-only")
def test_a_session_that_starts_while_its_servers_are_asked_is_not_failed():
    async def starts(world: World) -> None:
        await world.clock.sleep(5.0)
        await rows.change(world, SESSION, lambda values: {**values, "status": "running"})

    slow = {"GET https://notion.test/mcp": Response(401, {"WWW-Authenticate": "Bearer"}, after_seconds=10.0)}
    session = edited(slow, others={"somebody": starts})
    assert (session.ran.result, session.row["status"]) == ((), "running")
    assert "oauth_required_servers" not in json.dumps(session.row)
