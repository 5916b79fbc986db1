"""The fake Pi adapter's accounts, tool names, budgets and npx resolver."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest

from fake_runtimes.budgets import Memory
from fake_runtimes.launch import launch, remembered
from fake_runtimes.loaded import LoadedServer
from fake_runtimes.pi.config import read_config
from fake_runtimes.pi.credentials import account, handoff_path
from fake_runtimes.pi.names import namespace, offered
from fake_runtimes.pi.resolver import CachedPackage, NpmExec, child_cache, connect, intercepted, plan, process_cache
from fake_runtimes.pi.startup import attempt, call
from fake_runtimes.profile import load_profile

OLDER: Any = load_profile("pi-0.84.1+2.32.1")
NEWER: Any = load_profile("pi-0.86.1+2.36.0")
BOTH = (OLDER, NEWER)
PACKAGE = CachedPackage("pkg", "1.2.3", "/cache/_npx/0a/node_modules/pkg/bin.js")
NO_NPM = NpmExec(None)


def servers(entries, settings=None):
    document = {"mcpServers": entries, "settings": settings or {}}
    return read_config(json.dumps(document), {}, OLDER).servers


def one(settings=None, **fields):
    return servers({"x": {"command": "c", "lifecycle": "eager", **fields}}, settings)[0]


def npx(*args, **fields):
    return servers({"x": {"command": "npx", "args": list(args), **fields}})[0]


def test_the_account_is_a_digest_of_the_name_alone():
    digest = hashlib.sha256("unï".encode()).hexdigest()
    plain = LoadedServer("unï", "http", url="https://x.test")
    assert account(plain) == account(plain._replace(url="https://y.test")) == f"sha256-{digest}"
    assert handoff_path(plain) == f"sha256-{digest}/tokens.json"


@pytest.mark.parametrize(
    ("name", "older", "newer"),
    [
        ("a-b", "a_b", "a_b"),
        ("plain_1", "plain_1", "plain_1"),
        ("my-srv.x", "_mcpns_6d_79_5f_73_72_76_2e_78", "_mcpns_my__srv_2e_x"),
    ],
)
def test_a_namespace_encodes_odd_characters_by_version(name, older, newer):
    assert (namespace(name, OLDER), namespace(name, NEWER)) == (older, newer)


def test_the_newer_version_limits_a_namespace():
    for name in ("n" * 60, "n.n" * 30):
        assert len(namespace(name, NEWER)) == 59
        assert "_h_" in namespace(name, NEWER)
        assert len(namespace(name, OLDER)) >= 60
    assert namespace("n" * 59, NEWER) == "n" * 59


def test_proxies_that_meet_are_all_skipped():
    names, dropped = offered({"a-b": ["t"], "a_b": ["t", "u"], "c": ["t", "u"]}, OLDER, {})
    assert names == {("c", "t"): "mcp__c", ("c", "u"): "mcp__c"}
    assert dropped == (("a-b", "t"), ("a_b", "t"), ("a_b", "u"))


def test_direct_tools_have_names_of_their_own():
    found = servers(
        {
            "my-srv.x": {"command": "c", "directTools": True},
            "s-mcp": {"command": "c", "directTools": ["a.b"], "toolPrefix": "short"},
            "s2": {"command": "c", "directTools": ["echo"], "toolPrefix": "mcp"},
            "n": {"command": "c", "directTools": True, "toolPrefix": "none"},
        }
    )
    tools = {"my-srv.x": ["echo"], "s-mcp": ["a.b", "c"], "s2": ["echo"], "n": ["t" * 70]}
    names, _ = offered(tools, OLDER, {server.name: server for server in found})
    assert names == {
        ("my-srv.x", "echo"): "my-srv_2e_x_echo",
        ("s-mcp", "a.b"): "s_a_b",
        ("s2", "echo"): "mcp__s2_echo",
        ("n", "t" * 70): "t" * 70,
    }


def test_equal_direct_names_leave_the_first_or_none_by_version():
    found = {server.name: server for server in servers({"s": {"command": "c", "directTools": True}})}
    tools = {"s": ["a.b", "a_b", "s_own"]}
    assert offered(tools, OLDER, found) == (
        {("s", "a.b"): "s_a_b", ("s", "s_own"): "s_s_own"},
        (("s", "a_b"),),
    )
    assert offered(tools, NEWER, found) == ({("s", "s_own"): "s_own"}, (("s", "a.b"), ("s", "a_b")))


@pytest.mark.requirement("prepare-fake-pi-own-default")
def test_a_silent_server_has_sixty_seconds_or_exactly_what_is_written():
    for profile in BOTH:
        assert attempt(one(), profile, None) == ("timed_out", 60.0)
        for milliseconds in (5000, 30000, 90000, 180000):
            assert attempt(one(requestTimeoutMs=milliseconds), profile, None) == ("timed_out", milliseconds / 1000)


@pytest.mark.parametrize(
    ("entry", "settings", "seconds"),
    [
        ({}, {"requestTimeoutMs": 5000}, 5.0),
        ({"requestTimeoutMs": 6000}, {"requestTimeoutMs": 2000}, 6.0),
        ({"requestTimeoutMs": 0}, {"requestTimeoutMs": 4000}, 60.0),
        ({"requestTimeoutMs": "7000"}, {}, 60.0),
        ({}, {"requestTimeoutMs": 0}, 60.0),
    ],
)
def test_the_entry_s_budget_wins_and_its_zero_means_the_default(entry, settings, seconds):
    for profile in BOTH:
        assert attempt(one(settings, **entry), profile, None).at_seconds == seconds


def test_the_tool_list_has_the_budget_as_well():
    assert attempt(one(requestTimeoutMs=5000), OLDER, 1.0, None) == ("timed_out", 6.0)


@pytest.mark.requirement("startup-timeout-pi-covers-tool-calls", "prepare-pi-budget-covers-calls")
def test_the_budget_covers_every_tool_call():
    for profile in BOTH:
        long, wide, plain = one(requestTimeoutMs=300000), one(requestTimeoutMs=180000), one()
        assert call(long, profile, 250.0) == ("answered", 250.0, "")
        late = call(long, profile, 310.0)
        assert (late.outcome, late.at_seconds) == ("timed_out", 300.0)
        assert late.text == "Failed to call tool: Request timed out"
        assert call(wide, profile, 100.0).outcome == "answered"
        assert call(plain, profile, 100.0)[:2] == ("timed_out", 60.0)


def test_the_first_request_waits_for_the_slowest_server_but_thirty_seconds_at_most():
    found = servers({name: {"command": "c", "requestTimeoutMs": 50000} for name in ("good", "slow")})
    for profile in BOTH:
        hanging = launch(profile, found, {"good": 1.0, "slow": None}, {})
        assert (hanging.first_request_at_seconds, hanging.offered) == (30.0, ())
        assert hanging.attempts["slow"] == ("timed_out", 50.0)
        settled = launch(profile, found, {"good": 1.0, "slow": 20.0}, {})
        assert (settled.first_request_at_seconds, settled.offered) == (20.0, ("good", "slow"))


def test_a_lazy_server_is_not_spawned_once_its_tools_are_cached():
    lazy = servers({"x": {"command": "c"}, "later": {"command": "c"}})
    first = launch(OLDER, lazy[:1], {"x": 1.0}, {})
    second = launch(OLDER, lazy, {"x": 1.0, "later": 1.0}, {}, remembered(first))
    assert (second.attempts, second.offered, second.first_request_at_seconds) == ({}, ("x",), 0.0)
    eager = launch(OLDER, [one()], {"x": 1.0}, {}, Memory(cached=("x",)))
    assert eager.attempts == {"x": ("connected", 1.0)}


@pytest.mark.requirement("npx-pi-resolver-intercepts")
@pytest.mark.parametrize(
    ("command", "args", "package"),
    [
        ("npx", ["-y", "pkg", "a"], ("pkg", "", ("a",))),
        ("npx", ["--yes", "pkg", "--", "a"], ("pkg", "", ("--", "a"))),
        ("npx", ["--yes", "--", "pkg"], None),
        ("npx", ["--package=pkg", "--", "bin"], None),
        ("npx", ["--package", "-y", "bin"], None),
        ("npx", ["-p", "pkg", "bin", "-q"], ("pkg", "bin", ("-q",))),
        ("npx", ["-y", "--package=@s/pkg@1.2.3", "bin"], ("@s/pkg@1.2.3", "bin", ())),
        ("npm", ["exec", "-y", "--package", "pkg", "--", "bin", "a"], ("pkg", "bin", ("a",))),
        ("npx", ["-q", "pkg"], None),
        ("npx", [], None),
        ("npm", ["exec", "pkg"], None),
        ("npm", ["exec", "-p", "pkg", "--", "bin"], None),
        ("npm", ["install", "pkg"], None),
        ("/usr/bin/npx", ["-y", "pkg"], None),
        ("sh", ["-c", "npx -y pkg"], None),
    ],
)
def test_only_the_plain_spellings_of_npx_are_intercepted(command, args, package):
    assert intercepted(command, args) == package


@pytest.mark.requirement("npx-pi-resolver-intercepts")
def test_a_cached_package_runs_under_node_and_an_unknown_flag_runs_plain_npx():
    caches = {"/user": (PACKAGE,)}
    environment = {"NPM_CONFIG_CACHE": "/user"}
    for profile in BOTH:
        assert plan(npx("-y", "pkg", "a"), environment, profile, caches, NO_NPM) == (
            "cached",
            ("node", PACKAGE.binary_path, "a"),
            0.0,
        )
        assert plan(npx("-q", "pkg"), environment, profile, caches, NO_NPM) == ("plain", ("npx", "-q", "pkg"), 0.0)


def test_only_an_exact_version_is_compared():
    caches = {"~/.npm": (PACKAGE, PACKAGE._replace(version="1.0.0", binary_path="/old"))}
    found = {
        spec: plan(npx("-y", spec), {}, OLDER, caches, NO_NPM).how
        for spec in ("pkg", "pkg@latest", "pkg@^9", "pkg@1.2.3", "pkg@1.0.0", "pkg@9.9.9", "other")
    }
    hits = {spec for spec, how in found.items() if how == "cached"}
    assert hits == {"pkg", "pkg@latest", "pkg@^9", "pkg@1.2.3", "pkg@1.0.0"}
    assert plan(npx("-y", "pkg@1.0.0"), {}, OLDER, caches, NO_NPM).argv == ("node", "/old")


@pytest.mark.requirement("npx-pi-resolver-process-cache")
def test_the_lookup_reads_the_cache_of_the_process_and_never_the_entry_s():
    pinned = npx("-y", "pkg", env={"NPM_CONFIG_CACHE": "/clone"})
    for profile in BOTH:
        for environment, default in (({"NPM_CONFIG_CACHE": "/user"}, "/npm"), ({}, "/user")):
            in_entry = plan(pinned, environment, profile, {"/clone": (PACKAGE,)}, NO_NPM, default)
            in_process = plan(pinned, environment, profile, {"/user": (PACKAGE,)}, NO_NPM, default)
            assert (in_entry.how, in_process.how) == ("fallback", "cached")
    assert pinned.env == {"NPM_CONFIG_CACHE": "/clone"}


@pytest.mark.requirement("npx-pi-resolver-30s-cap")
def test_the_resolver_gives_up_at_thirty_seconds_whatever_the_budget():
    for profile in BOTH:
        for budget in ({}, {"requestTimeoutMs": 5000}, {"requestTimeoutMs": 180000}):
            slow = npx("-y", "pkg", env={"NPM_CONFIG_CACHE": "/clone"}, **budget)
            planned = plan(slow, {}, profile, {}, NpmExec(40.0, PACKAGE))
            assert planned == ("fallback", ("npx", "-y", "pkg"), 30.0)
            assert slow.env == {"NPM_CONFIG_CACHE": "/clone"}
            assert plan(slow, {}, profile, {}, NpmExec(29.0, PACKAGE)).starts_after_seconds == 29.0


@pytest.mark.requirement("npx-pi-fallback-uses-pin")
def test_the_fallback_installs_into_the_cache_of_the_entry():
    pinned = npx("-y", "pkg", env={"NPM_CONFIG_CACHE": "/clone/.npm-cache"})
    for profile in BOTH:
        for environment in ({}, {"NPM_CONFIG_CACHE": "/user"}):
            assert plan(pinned, environment, profile, {}, NO_NPM).how == "fallback"
            assert child_cache(pinned, environment, profile, "/npm") == "/clone/.npm-cache"
            unpinned = child_cache(npx("-y", "pkg"), environment, profile, "/npm")
            assert unpinned == process_cache(pinned, environment, "/npm") != "/clone/.npm-cache"


def test_an_install_within_the_limit_runs_what_it_installed():
    planned = plan(npx("-y", "pkg"), {}, OLDER, {}, NpmExec(10.0, PACKAGE))
    assert planned == ("installed", ("node", PACKAGE.binary_path), 10.0)
    assert plan(npx("-y", "pkg"), {}, OLDER, {}, NpmExec(2.0)) == ("fallback", ("npx", "-y", "pkg"), 2.0)


@pytest.mark.requirement("npx-pi-budget-covers-fallback")
def test_the_budget_begins_with_the_fallback():
    for profile in BOTH:
        for budget, ended in ((180000, ("connected", 130.0)), (60000, ("timed_out", 90.0))):
            server = npx("-y", "pkg", requestTimeoutMs=budget)
            planned = plan(server, {}, profile, {}, NO_NPM)
            assert connect(server, profile, planned, 100.0) == ended
        node = one(command="node", requestTimeoutMs=180000)
        assert connect(node, profile, plan(node, {}, profile, {}, NO_NPM), 100.0) == ("connected", 100.0)


@pytest.mark.requirement("npx-cold-clone-fits-budget")
def test_an_install_of_65_seconds_connects_under_the_written_budget_alone():
    for profile in BOTH:
        for fields, outcome in (({"requestTimeoutMs": 180000}, "connected"), ({}, "timed_out")):
            cold = npx("-y", "pkg", **fields)
            planned = plan(cold, {}, profile, {}, NpmExec(65.0, PACKAGE))
            assert connect(cold, profile, planned, 65.0).outcome == outcome
