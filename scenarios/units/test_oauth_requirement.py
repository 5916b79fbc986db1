"""What a server advertised: what its answer says, what is recorded of it, for how long, and what a page makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from harness.reference.catalog.catalog import Catalog, read_catalog
from harness.reference.catalog.entry import read_entry
from harness.reference.credentials.key import credential_key
from harness.reference.credentials.state import StoredCredential
from harness.reference.oauth.check import check_oauth_requirement, log_line, record_check
from harness.reference.oauth.probe import probe_after_edit, probe_servers
from harness.reference.oauth.requirement import (
    DETERMINATIONS,
    NOT_REQUIRED_FOR_SECONDS,
    TABLE,
    Determination,
    Record,
    determination,
    effective,
    oauth_required_for,
    record,
    recorded,
)
from harness.reference.oauth.server import RemoteServer, remote_server
from harness.reference.oauth.settings import OAuthSettings
from harness.reference.readiness.probe import Status, judge_all
from harness.reference.secrets.loader import SecretsLoader
from harness.reference.selection.session import Session
from harness.reference.selection.zimmer import Instance
from harness.reference.session import gate
from harness.reference.session.order import Order
from harness.reference.surfaces.connectors import rows
from harness.reference.surfaces.options import configs_answer, mcp_servers_answer, options
from harness.reference.surfaces.requirement import RequirementRow, requirement_rows
from harness.world import Ambiguous, NotSent, Request, Response, World, header
from harness.world.model import Fault
from scenarios.units.oauth_run import START_SECONDS, Answers, Ran, run_world

HOST = "https://mcp.test"
URL = f"{HOST}/mcp?team=blue"
SETTINGS = OAuthSettings("zimmer.test")
NOTION: dict[str, Any] = {"type": "http", "url": "https://mcp.notion.com/v1/mcp", "headers": {}}
NOTION_KEY = "notion|3fad03f7abd02b9c"
DAY = 86_400.0
BEARER = {"WWW-Authenticate": 'Bearer realm="mcp"'}
JSON = {"Content-Type": "application/json"}
ANSWERS: dict[Determination, Response] = {
    "advertised_required": Response(401, BEARER),
    "advertised_not_required": Response(200, JSON),
    "undetermined": Response(500),
}


def server_of(name: str = "mcp", url: str = URL, **fields: Any) -> RemoteServer:
    return remote_server(read_entry(name, {"type": "http", "url": url, **fields}), lambda _: None)


def own_answers(answer: Any, url: str = URL) -> Answers:
    """A server without any document, which answers this itself."""
    return Answers({f"GET {url}": answer})


def run(program: Callable[[World], Any], answers: Answers | None = None, **options: Any) -> Ran:
    """A program; the time of its second and later steps is up to itself."""
    servers = {} if answers is None else answers.origins(URL, NOTION["url"])
    return run_world(program, servers=servers, **options)


def stored(values: str, *, age: float = 0.0, key: str = "k") -> dict[tuple[str, str], Any]:
    """A recorded answer of some age."""
    row = {"server_name": "mcp", "determination": values, "detail": None, "recorded_at": START_SECONDS - age}
    return {(TABLE, key): row}


# --- what an answer says --------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "requirement-adv-required-bearer-401",
    "requirement-401-not-bearer",
    "requirement-bearer-scheme-case",
    "requirement-not-required-2xx-mcp",
    "requirement-2xx-html-undetermined",
    "requirement-content-type-parsing",
    "requirement-other-status-undetermined",
)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(401, BEARER), "advertised_required"),
        (Response(401, {"www-authenticate": "bearer"}), "advertised_required"),
        (Response(401, {"WWW-Authenticate": 'Basic realm="a", Bearer realm="b"'}), "advertised_required"),
        (Response(401, {"WWW-Authenticate": 'Basic realm="Bearer"'}), "undetermined"),
        (Response(401, {"WWW-Authenticate": 'Basic realm="mcp"'}), "undetermined"),
        (Response(401, JSON), "undetermined"),
        (Response(403, BEARER), "undetermined"),
        (Response(400, {**BEARER, **JSON}), "undetermined"),
        (Response(200, JSON), "advertised_not_required"),
        (Response(299, {"content-type": "text/event-stream"}), "advertised_not_required"),
        (Response(200, {"Content-Type": " Application/JSON ; charset=utf-8"}), "advertised_not_required"),
        (Response(204, JSON), "advertised_not_required"),
        (Response(204), "undetermined"),
        (Response(200), "undetermined"),
        (Response(200, {"Content-Type": "text/html"}), "undetermined"),
        (Response(200, {"Content-Type": "text/plain"}), "undetermined"),
        (Response(200, {"Content-Type": "application/problem+json"}), "undetermined"),
        (Response(200, {"Content-Type": "text/html; note=application/json"}), "undetermined"),
        (Response(200, {"Content-Type": "application/json, text/html"}), "undetermined"),
        (Response(200, {**BEARER, "Content-Type": "text/html"}), "undetermined"),
        *((Response(status, JSON), "undetermined") for status in (302, 304, 400, 403, 404, 405, 406, 429, 500, 503)),
    ],
)
def test_only_a_bearer_challenge_says_required_and_only_an_mcp_answer_not_required(answer, said):
    assert determination(answer) == said


@pytest.mark.requirement("requirement-connection-error-undetermined")
@pytest.mark.parametrize("error", [NotSent("refused"), NotSent("dns"), NotSent("tls"), Ambiguous("timeout")])
def test_no_answer_is_undetermined(error):
    assert determination(error) == "undetermined"


# --- how it is asked ------------------------------------------------------------------------------------------


async def check(world: World, server: RemoteServer | None = None) -> Any:
    return await check_oauth_requirement(
        world, server or server_of(), configured=None, redirect_uri="https://z.test/cb"
    )


@pytest.mark.requirement("requirement-ask-method", "requirement-no-token-needed")
def test_the_server_is_asked_once_for_its_url_with_query_and_without_a_token():
    answers = own_answers(Response(404))
    run(lambda world: check(world, server_of(url="https://user:pw@mcp.test/mcp?team=blue#f")), answers)
    assert len(answers.requests) == 4
    assert all("/.well-known/" in request.url for request in answers.requests[:3])
    last = answers.requests[-1]
    assert (last.method, last.url, last.body) == ("GET", URL, b"")
    assert header(last.headers, "Accept") == "application/json"
    assert all(header(request.headers, "Authorization") is None for request in answers.requests)


@pytest.mark.requirement("requirement-no-redirect-following", "requirement-other-status-undetermined")
def test_a_redirect_is_an_answer_that_says_nothing():
    answers = Answers(
        {f"GET {URL}": Response(302, {"Location": f"{HOST}/login"}), f"GET {HOST}/login": Response(200, JSON)}
    )
    ran = run(check, answers)
    assert ran.result.determination == "undetermined"
    assert f"GET {HOST}/login" not in answers.asked
    assert len(answers.asked) == 4


@pytest.mark.requirement("requirement-connection-error-undetermined")
@pytest.mark.parametrize("action", ["refused", "dns", "tls", "open-timeout", "reset-before", "reset-after"])
def test_a_server_that_cannot_be_asked_is_recorded_as_undetermined(action):
    async def program(world: World) -> Any:
        return await probe_servers(world, (server_of(),), SETTINGS)

    ran = run(program, own_answers(Response(200, JSON)), faults=[Fault(action, port="http")])
    assert ran.result == {"mcp": "undetermined"}
    (row,) = ran.rows(TABLE).values()
    assert row["determination"] == "undetermined"


# --- what is recorded -----------------------------------------------------------------------------------------


@pytest.mark.requirement("requirement-three-values", "requirement-record-write-best-effort")
def test_a_record_holds_one_of_three_values_and_nothing_is_recorded_of_what_is_no_config():
    assert get_args(Determination) == ("advertised_required", "advertised_not_required", "undetermined")

    async def program(world: World) -> list[str]:
        seen: list[str] = []
        for value in DETERMINATIONS:
            await record(world, "n", "k", value, "HTTP 1")
            seen.append(effective(await recorded(world, "k"), world.clock.now()))
        for name, key, value in (("", "k2", "undetermined"), ("n", " ", "undetermined"), ("n", "k3", "maybe")):
            await record(world, name, key, value)
        await record(world, None, None, "undetermined")
        await record(world, "n", "k", "maybe")
        return seen

    ran = run(program)
    assert ran.result == list(DETERMINATIONS)
    assert list(ran.rows(TABLE)) == ["k"]
    assert ran.rows(TABLE)["k"]["determination"] == "undetermined"
    assert effective(None, START_SECONDS) == "undetermined"
    assert effective(Record("n", "k", "maybe", START_SECONDS), START_SECONDS) == "undetermined"


@pytest.mark.requirement("requirement-one-row-per-config")
def test_a_second_answer_replaces_the_first():
    answers = iter((Response(401, BEARER), Response(200, JSON)))
    notion = remote_server(read_entry("notion", NOTION), lambda _: None)

    async def program(world: World) -> None:
        for _ in range(2):
            await probe_servers(world, (notion,), SETTINGS)

    ran = run(program, own_answers(lambda _: next(answers), NOTION["url"]))
    assert {key: row["determination"] for key, row in ran.rows(TABLE).items()} == {
        NOTION_KEY: "advertised_not_required"
    }
    assert [told["determination"] for told in ran.named("oauth.probed")] == [
        "advertised_required",
        "advertised_not_required",
    ]


@pytest.mark.requirement("requirement-key-follows-config")
@pytest.mark.parametrize(
    "edit",
    [{"url": NOTION["url"] + "/"}, {"type": "sse"}, {"headers": {"X-Team": "a"}}],
)
def test_an_edited_config_has_no_answer_yet(edit):
    notion = server_of("notion", **NOTION)
    edited = server_of("notion", **{**NOTION, **edit})

    async def program(world: World) -> list[str]:
        await record_check(world, notion, await check(world, notion))
        return [
            effective(await recorded(world, key), world.clock.now())
            for key in (notion.credential_key, edited.credential_key)
        ]

    ran = run(program, own_answers(Response(401, BEARER), NOTION["url"]))
    assert ran.result == ["advertised_required", "undetermined"]


@pytest.mark.requirement("requirement-detail-capped")
@pytest.mark.parametrize(
    ("detail", "kept"), [("d" * 600, "d" * 255), ("HTTP 401", "HTTP 401"), ("", None), (None, None)]
)
def test_a_detail_is_cut(detail, kept):
    ran = run(lambda world: record(world, "n", "k", "undetermined", detail))
    assert ran.rows(TABLE)["k"]["detail"] == kept


@pytest.mark.requirement("requirement-detail-capped")
def test_a_detail_says_status_or_error_and_nothing_of_what_was_answered():
    secret = Response(401, {"WWW-Authenticate": 'Bearer realm="s3cr3t"'}, b"s3cr3t")

    async def program(world: World) -> None:
        server = server_of(url="https://id:s3cr3t@mcp.test/mcp?team=blue")
        await probe_servers(world, (server,), SETTINGS)

    ran = run(program, own_answers(secret))
    (row,) = ran.rows(TABLE).values()
    assert row["detail"] == "HTTP 401"
    assert "s3cr3t" not in ran.told + json.dumps(row)


class Broken:
    """A store that fails when it is written to."""

    def __init__(self, world: World, error: Exception) -> None:
        self.world, self.error = world, error
        self.rolled_back = 0

    async def begin(self) -> Any:
        return self

    async def put(self, *_: Any) -> None:
        raise self.error

    async def rollback(self) -> None:
        self.rolled_back += 1


@pytest.mark.requirement("requirement-record-write-best-effort")
def test_a_record_that_cannot_be_written_disturbs_nobody_and_keeps_no_lock():
    async def program(world: World) -> Any:
        store = Broken(world, OSError(28, "No space left on device"))
        broken: Any = SimpleNamespace(
            http=world.http, tasks=world.tasks, clock=world.clock, events=world.events, store=store
        )
        return await gate.ask_all(broken, order(), (server_of(),)), store.rolled_back

    ran = run(program, own_answers(Response(401, BEARER)))
    assert ran.result == ({"mcp": gate.NEEDS_SIGN_IN}, 1)
    assert ran.rows(TABLE) == {}


# --- for how long ---------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "requirement-not-required-expires",
    "requirement-expiry-boundary",
    "requirement-required-never-expires",
    "requirement-tri-state-reader",
)
@pytest.mark.parametrize(
    ("value", "age", "says", "required"),
    [
        ("advertised_not_required", 0, "advertised_not_required", False),
        ("advertised_not_required", 7 * DAY - 60, "advertised_not_required", False),
        ("advertised_not_required", 604_799, "advertised_not_required", False),
        ("advertised_not_required", 604_800, "undetermined", None),
        ("advertised_not_required", 604_801, "undetermined", None),
        ("advertised_not_required", 8 * DAY, "undetermined", None),
        ("advertised_required", 157_680_000, "advertised_required", True),
        ("advertised_required", 0, "advertised_required", True),
        ("undetermined", 0, "undetermined", None),
        ("undetermined", 8 * DAY, "undetermined", None),
    ],
)
def test_not_required_is_believed_for_seven_days_and_required_for_ever(value, age, says, required):
    kept = Record("n", "k", value, START_SECONDS - age)
    assert effective(kept, START_SECONDS) == says
    assert oauth_required_for(kept, START_SECONDS) is required
    assert oauth_required_for(None, START_SECONDS) is None


@pytest.mark.requirement("requirement-reprobe-renews")
def test_a_new_answer_begins_the_seven_days_anew_and_replaces_whatever_was_there():
    async def program(world: World) -> list[str]:
        said = []
        for days in (0, 6):
            await world.clock.sleep(days * DAY)
            await record(world, "n", "k", "advertised_not_required")
        for days in (6, 1):
            await world.clock.sleep(days * DAY)
            said.append(effective(await recorded(world, "k"), world.clock.now()))
        await record(world, "n", "k", "advertised_required")
        await record(world, "n", "k", "undetermined", "connection refused")
        return [*said, effective(await recorded(world, "k"), world.clock.now())]

    assert run(program).result == ["advertised_not_required", "undetermined", "undetermined"]
    assert NOT_REQUIRED_FOR_SECONDS == 7 * DAY


# --- the two who ask ------------------------------------------------------------------------------------------


def order(servers: Mapping[str, Any] | None = None, **oauth: Any) -> Order:
    """A session's order, as far as asking needs one."""
    air: Any = None
    instance = Instance("production", "https://zimmer.test", "k")
    return Order(
        "s", "claude", "/clone", (), read_catalog(servers or {}), instance, lambda _: None, air,
        oauth=OAuthSettings("zimmer.test", **oauth),
    )  # fmt: skip


async def asked_by_gate(world: World, servers: Sequence[RemoteServer]) -> Any:
    return await gate.ask_all(world, order(), servers)


async def asked_by_probe(world: World, servers: Sequence[RemoteServer]) -> Any:
    return await probe_servers(world, servers, SETTINGS)


@pytest.mark.requirement("requirement-recorded-by-both")
@pytest.mark.parametrize("asker", [asked_by_gate, asked_by_probe])
@pytest.mark.parametrize("value", DETERMINATIONS)
def test_both_askers_record_every_answer(asker, value):
    ran = run(lambda world: asker(world, (server_of(),)), own_answers(ANSWERS[value]))
    assert [row["determination"] for row in ran.rows(TABLE).values()] == [value]
    assert [told["determination"] for told in ran.named("oauth.probed")] == [value]


@pytest.mark.requirement("requirement-gate-ignores-record")
@pytest.mark.parametrize("before", DETERMINATIONS)
@pytest.mark.parametrize("value", DETERMINATIONS)
def test_the_gate_acts_on_the_live_answer_whatever_is_recorded(before, value):
    server = server_of()
    answers = own_answers(ANSWERS[value])
    ran = run(lambda world: asked_by_gate(world, (server,)), answers, rows=stored(before, key=server.credential_key))
    assert ran.result == {"mcp": gate.NEEDS_SIGN_IN if value == "advertised_required" else None}
    assert f"GET {URL}" in answers.asked


@pytest.mark.requirement("requirement-gate-and-record-agree")
@pytest.mark.parametrize("first", [0, 1])
def test_verdict_record_and_log_come_of_one_answer(first):
    turns = [Response(401, BEARER), Response(200, JSON)]
    count: dict[str, int] = {"asked": first}

    def alternating(_: Request) -> Response:
        count["asked"] += 1
        return turns[(count["asked"] - 1) % 2]

    ran = run(lambda world: asked_by_gate(world, (server_of(),)), own_answers(alternating))
    (row,) = ran.rows(TABLE).values()
    blocked = ran.result["mcp"] is not None
    assert count["asked"] == first + 1
    assert (row["determination"] == "advertised_required") is blocked is (first == 0)
    (line,) = ran.named("log")
    assert ("not required" in line["text"]) is not blocked


@pytest.mark.requirement("requirement-log-not-required", "requirement-log-undetermined")
@pytest.mark.parametrize(
    ("answer", "faults", "says", "never"),
    [
        (Response(200, JSON), (), "advertised: not required", "could not determine whether OAuth is required"),
        (Response(503), (), "could not determine whether OAuth is required (HTTP 503)", "advertised: not required"),
        (
            Response(200, JSON),
            (Fault("refused", port="http"),),
            "could not determine whether OAuth is required (connection refused)",
            "advertised: not required",
        ),
    ],
)
def test_the_spawn_log_tells_not_required_from_could_not_tell(answer, faults, says, never):
    ran = run(lambda world: asked_by_gate(world, (server_of(),)), own_answers(answer), faults=faults)
    (line,) = ran.named("log")
    assert says in line["text"]
    assert "'mcp'" in line["text"]
    assert never not in line["text"]
    assert "does not require OAuth" not in ran.told


@pytest.mark.requirement("requirement-static-header-not-asked")
def test_a_server_with_a_static_credential_and_a_stdio_server_are_never_asked():
    static = server_of("static", headers={"X-API-Key": "k"})
    stdio = RemoteServer("local", "", "k", read_entry("local", {"type": "stdio", "command": "npx"}), {}, {})
    answers = own_answers(Response(401, BEARER))
    ran = run(lambda world: probe_servers(world, (static, stdio), SETTINGS), answers)
    assert answers.requests == []
    assert ran.rows(TABLE) == {}
    assert ran.result == {}


@pytest.mark.requirement("requirement-probe-on-selection-change", "requirement-two-askers")
@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (Session(("a",)), Session(("a", "mcp")), True),
        (Session(("mcp",)), Session(("a", "mcp")), True),
        (Session(("a",)), Session(("a",), plugin_servers=("mcp",)), True),
        (Session(("mcp",)), Session(()), True),
        (Session(("mcp", "a")), Session(("a", "mcp")), False),
        (Session(("mcp",)), Session(("mcp",), injected=("zimmer-self-session",)), False),
    ],
)
def test_an_edit_of_the_selection_asks_and_another_one_does_not(before, after, asked):
    async def program(world: World) -> Any:
        return await probe_after_edit(world, before, after, (server_of(),), SETTINGS)

    answers = own_answers(Response(401, BEARER))
    ran = run(program, answers)
    assert bool(answers.requests) is asked
    assert len(ran.rows(TABLE)) == int(asked)
    assert ran.result == (("mcp",) if asked else ())


@pytest.mark.requirement("requirement-blip-keeps-session")
def test_a_server_that_is_down_costs_an_idle_session_nothing():
    idle = {("sessions", "s"): {"status": "needs_input", "mcp_servers": ["mcp"]}}

    async def program(world: World) -> Any:
        return await probe_after_edit(world, Session(), Session(("mcp",)), (server_of(),), SETTINGS)

    down = [Fault("refused", port="http")]
    ran = run(program, own_answers(Response(401, BEARER)), rows=idle, faults=down)
    assert ran.result == ()
    assert ran.row("sessions", "s") == idle["sessions", "s"]
    (row,) = ran.rows(TABLE).values()
    assert (row["determination"], row["detail"]) == ("undetermined", "connection refused")


@pytest.mark.requirement("requirement-no-token-needed")
def test_a_probe_of_an_authorized_server_carries_no_token():
    server = server_of()
    credential = {"server_name": "mcp", "access_token": "t0k3n", "refresh_token": "r"}
    answers = own_answers(lambda request: Response(200, JSON) if "t0k3n" in str(request) else Response(401, BEARER))
    ran = run(
        lambda world: probe_servers(world, (server,), SETTINGS),
        answers,
        rows={("mcp_oauth_credentials", server.credential_key): credential},
    )
    assert "t0k3n" not in str(answers.requests)
    assert ran.result == {"mcp": "advertised_required"}


# --- what a page makes of it ----------------------------------------------------------------------------------

LOADER = SecretsLoader(environment={})


def page(
    answered: Mapping[str, tuple[str, float]],
    *,
    tree: Mapping[str, Any] | None = None,
    credentials: Mapping[str, StoredCredential] | None = None,
) -> dict[str, RequirementRow]:
    """The page's rows over records, key to value and age; nobody is contacted."""
    catalog: Catalog = read_catalog(tree or {"mcp": {"type": "http", "url": URL}})
    held = credentials or {}
    statuses: tuple[Status, ...] = judge_all(catalog, LOADER.resolution, held.get)
    records: dict[tuple[str, str], Any] = {}
    for key, (value, age) in answered.items():
        records |= stored(value, age=age, key=key)
    answers = own_answers(Response(401, BEARER))

    async def program(world: World) -> dict[str, RequirementRow]:
        offered = options(catalog, statuses)
        assert rows(statuses, lambda name: name)
        assert configs_answer(offered)["mcp_servers"] == mcp_servers_answer(offered)["mcp_servers"]
        return await requirement_rows(world, catalog, statuses, held)

    ran = run(program, answers, rows=records)
    assert answers.requests == []
    result: dict[str, RequirementRow] = ran.result
    return result


KEY = server_of().credential_key


@pytest.mark.requirement("requirement-two-askers", "requirement-page-reads-record")
def test_pages_and_lists_of_twenty_servers_contact_none_and_read_the_record_of_each():
    tree = {f"s{number}": {"type": "http", "url": f"{HOST}/{number}"} for number in range(20)}
    keys = {name: credential_key(name, entry) for name, entry in tree.items()}
    shown = page(dict.fromkeys(list(keys.values())[:10], ("advertised_required", 0.0)), tree=tree)
    assert [row.cause for row in shown.values()] == ["advertised"] * 10 + ["assumed"] * 10


@pytest.mark.requirement(
    "requirement-row-says-assumed",
    "requirement-undetermined-means-maybe",
    "requirement-button-independent",
    "requirement-page-reads-record",
    "requirement-key-follows-config",
)
@pytest.mark.parametrize(
    ("key", "value", "age", "cause"),
    [
        (KEY, "advertised_required", 0.0, "advertised"),
        (KEY, "advertised_required", 900 * DAY, "advertised"),
        (KEY, "undetermined", 0.0, "assumed"),
        (KEY, "advertised_not_required", DAY, "recorded_open"),
        (KEY, "advertised_not_required", 8 * DAY, "assumed"),
        ("mcp|0123456789abcdef", "advertised_required", 0.0, "assumed"),
        ("mcp", "advertised_required", 0.0, "assumed"),
    ],
)
def test_a_row_offers_authorization_and_says_whether_that_is_an_assumption(key, value, age, cause):
    shown = page({key: (value, age)})["mcp"]
    assert shown.authorizable
    assert shown.cause == cause
    assert ("assum" in (shown.text or "")) is (cause == "assumed")
    assert (shown.text is None) is (cause == "advertised")
    unknown = page({})["mcp"]
    assert unknown.authorizable
    assert unknown.cause == "assumed"


@pytest.mark.requirement("requirement-three-causes-distinct")
def test_an_assumption_another_key_and_a_missing_refresh_token_are_told_apart():
    active = StoredCredential(expires_in_s=3600.0, refresh_token="r", token_endpoint="https://as.test/t")
    one_shot = StoredCredential(expires_in_s=-1.0, refresh_token_unsupported=True)
    shown = [
        page({})["mcp"],
        page({}, credentials={"mcp|0123456789abcdef": active})["mcp"],
        page({}, credentials={KEY: one_shot})["mcp"],
    ]
    assert [row.cause for row in shown] == ["assumed", "key_mismatch", "no_refresh_token"]
    assert len({row.text for row in shown}) == 3
    assert all(row.authorizable and row.text for row in shown)
    authorized = page({}, credentials={KEY: active})["mcp"]
    assert authorized == RequirementRow(authorizable=False, cause=None, text=None)
    another_server = page({}, credentials={"mcp-two|0123456789abcdef": active})["mcp"]
    assert another_server.cause == "assumed"


def test_a_line_of_the_log_for_a_required_server_says_so():
    async def program(world: World) -> str:
        return log_line(server_of(), await check(world))

    assert run(program, own_answers(Response(401, BEARER))).result == "MCP server 'mcp': advertised: required"
