"""No decoration: when one behaviour of a fake is turned round, the battery's result is another."""

from __future__ import annotations

import pytest

from fake_runtimes.pi.servers import Servers
from fake_servers.npm import tree
from harness.gate.battery.results import Tried
from harness.world import Response
from scenarios.units.battery_run import LOCAL, PACKAGE, REMOTE, rules_of, tried

CATALOG = {"local": LOCAL, "package": PACKAGE, "remote": REMOTE}


def result(runtime: str) -> tuple[Tried, set[tuple[str, str]]]:
    """What the reports make of it."""
    trial = tried(CATALOG, runtimes=[runtime])
    return trial.tried, rules_of(trial)


@pytest.fixture
def before():
    return {runtime: result(runtime) for runtime in ("claude", "codex", "pi")}


def test_claude_that_starts_one_server_at_a_time_lets_a_hang_hide_the_others(before, monkeypatch):
    monkeypatch.setattr("fake_runtimes.claude.session.at_a_time", lambda *_: 1)
    tried_now, _ = result("claude")
    assert "MH956" in {fact.rule for fact in tried_now.facts}
    assert tried_now != before["claude"][0]


def test_claude_that_logs_nothing_is_silent(before, monkeypatch):
    async def flush(_log):
        return

    monkeypatch.setattr("fake_runtimes.claude.logs.ServerLog.flush", flush)
    kinds = {name: fact.kinds for fact in result("claude")[0].facts if (name := fact.rule) == "MH957"}
    assert "hangs" in kinds["MH957"]
    assert result("claude") != before["claude"]


def test_codex_that_takes_every_server_for_required_ends_the_run_of_all(before, monkeypatch):
    monkeypatch.setattr("fake_runtimes.codex.servers.is_required", lambda _server: True)
    tried_now, rules = result("codex")
    assert {("MH950", name) for name in CATALOG} <= rules
    assert tried_now.hurt == len(CATALOG)
    assert before["codex"][1] == set()


def test_pi_that_says_nothing_at_its_start_is_silent(before, monkeypatch):
    monkeypatch.setattr("fake_runtimes.pi.servers.Servers.startup_lines", lambda _servers: [])
    assert "MH957" in {fact.rule for fact in result("pi")[0].facts}
    assert "MH957" not in {fact.rule for fact in before["pi"][0].facts}


def test_pi_that_offers_nothing_after_a_failure_loses_the_others(before, monkeypatch):
    offered = Servers.offered
    monkeypatch.setattr(Servers, "offered", lambda servers: {} if servers.failures else offered(servers))
    tried_now, rules = result("pi")
    assert {("MH950", name) for name in CATALOG} <= rules
    assert tried_now.hurt == len(CATALOG)
    assert before["pi"][1] == set()


def test_a_runtime_that_logs_a_header_leaks_it(monkeypatch):
    keyed = {**REMOTE, "headers": {"Authorization": "Bearer ${HEADER_KEY}"}}
    assert rules_of(tried({"keyed": keyed}, runtimes=["claude"])) == set()
    monkeypatch.setattr("fake_runtimes.claude.connecting.port_text", lambda _url: "mcp-harness-marker-HEADER_KEY")
    assert rules_of(tried({"keyed": keyed}, runtimes=["claude"])) == {("MH953", "keyed")}


@pytest.mark.parametrize(
    ("target", "replacement", "runtime"),
    [
        ("fake_servers.mcp.http.HttpServer._refusal", lambda _server, _request: None, "codex"),
        ("fake_servers.mcp.http.HttpServer._post", lambda _server, _request, _message: Response(500), "codex"),
    ],
)
def test_a_server_that_answers_otherwise_changes_the_result(target, replacement, runtime, before, monkeypatch):
    monkeypatch.setattr(target, replacement)
    assert result(runtime) != before[runtime]


def test_an_npm_that_replaces_a_half_tree_lets_the_struck_server_come_through(before, monkeypatch):
    unpack = tree.unpack

    async def clearing(world, place, package):
        await world.files.remove_tree(place.place(package))
        await unpack(world, place, package)

    monkeypatch.setattr(tree, "unpack", clearing)
    assert result("codex")[0].survived == before["codex"][0].survived + 1
