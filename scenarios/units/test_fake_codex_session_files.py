"""What the fake Codex reads from a world's files before a run: one bad entry, trust, layers."""

from __future__ import annotations

import pytest

from fake_runtimes.codex.command import program
from harness.world.model import Simulation
from scenarios.units.test_fake_codex_session import (
    BOTH,
    CLONE,
    ENVIRONMENT,
    EXEC,
    FULL,
    GOOD,
    HANGS,
    HOME,
    NEWER,
    OLDER,
    PROJECT_CONFIG,
    TRUSTED,
    USER_CONFIG,
    entry,
    failed_at,
    run,
)

# --- one bad entry


@pytest.mark.requirement("translate-footgun-codex-unknown-ignored")
@pytest.mark.parametrize("path", [USER_CONFIG, PROJECT_CONFIG])
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("[mcp_servers.bad]\nstartup_timeout_sec = 60\n", "invalid transport\nin `mcp_servers.bad`"),
        (entry("bad", url="https://bad.test", args=["x"]), "args is not supported for streamable_http"),
        (entry("bad", 'http_headers = { A = "b" }'), "http_headers is not supported for stdio"),
        (entry("bad", "env = { N = 1 }"), "invalid type: integer `1`, expected a string"),
        (entry("bad", "this is no TOML"), ""),
    ],
)
def test_one_bad_entry_ends_the_run_before_anything_starts(path, bad, said):
    for profile in BOTH:
        files = {USER_CONFIG: TRUSTED, path: (TRUSTED if path == USER_CONFIG else "") + entry("good") + bad}
        found = run(None, {"good": GOOD, "bad": GOOD}, profile=profile, files=files)
        assert (found.exit_code, found.stdout) == (1, [])
        assert found.stderr[0].startswith("Error loading config.toml: ")
        assert found.events("run.refused") == [{"text": "\n".join(found.stderr)}]
        assert said in "\n".join(found.stderr)
        assert found.events("server.connecting") == found.events("model.request") == found.events("spawn") == []


@pytest.mark.requirement("translate-footgun-codex-unknown-ignored")
def test_unknown_keys_are_passed_over_unless_the_run_is_strict():
    text = entry("a", "[mcp_servers.a.headers]", 'X = "1"', type="stdio", transport="stdio")
    text += '[mcpServers.b]\ncommand = "run-b"\n'
    for profile in BOTH:
        found = run(text, {"a": GOOD, "b": GOOD}, profile=profile)
        assert (found.exit_code, found.tools(), found.stderr) == (0, ["mcp__a/echo"], [])
        strict = run(entry("a", type="stdio"), {"a": GOOD}, profile=profile, argv=(*EXEC, "--strict-config"))
        assert strict.exit_code == 1
        assert strict.stderr == ["Error loading config.toml: unknown configuration field `mcp_servers.a.type`"]


def test_a_file_that_cannot_be_read_ends_the_run():
    simulation = Simulation()
    simulation.tree.make_directory(CLONE, 0o755, 0, 0)
    simulation.tree.make_directory(f"{HOME}/.codex", 0o755, 0, 0)
    simulation.tree.write(USER_CONFIG, b"\xff\xfe", 0o644, 0, 0)
    other = Simulation()
    other.tree.make_directory(f"{HOME}/.codex", 0o755, 0, 0)
    other.tree.write(USER_CONFIG, b"", 0o000, 0, 0)
    said: list[str] = []
    for world in (simulation, other):
        actor = world.start("codex", program(OLDER), EXEC, env=ENVIRONMENT, user=1000)
        world.run()
        assert world.ended(actor) == (1, None, ())
        said += actor.stderr.lines
    assert said == [
        "Error loading config.toml: stream did not contain valid UTF-8",
        "Error loading config.toml: Permission denied (os error 13)",
    ]


@pytest.mark.requirement("status-codex-name-pattern")
def test_a_server_of_a_bad_name_fails_alone():
    text = entry('"bad name!"', command="run-good") + entry('"a.b"', command="run-good") + entry("good")
    for profile, names in ((OLDER, {"bad name!", "a.b"}), (NEWER, {"bad name!"})):
        found = run(text, {"good": GOOD}, profile=profile)
        assert found.exit_code == 0
        assert found.failures().keys() == names
        assert "mcp__good/echo" in found.tools()
        told = f"Invalid MCP server name 'bad name!': must match pattern {profile.server_name_pattern}"
        assert told in found.failures()["bad name!"]


def test_a_server_that_is_switched_off_is_not_waited_for_even_if_required():
    found = run(entry("off", enabled=False, required=True) + entry("good"), {"off": HANGS, "good": GOOD})
    assert (found.exit_code, found.at("model.request")) == (0, [0.0])
    assert found.events("server.skipped") == [{"server": "off", "text": "disabled"}]


# --- the project's file and its trust


@pytest.mark.requirement("prepare-codex-trust")
@pytest.mark.parametrize(
    ("options", "user", "older", "newer"),
    [
        (FULL, "", (True, True), (False, False)),
        (("-s", "workspace-write"), "", (True, True), (False, False)),
        ((), 'sandbox_mode = "workspace-write"\n', (True, True), (False, False)),
        (("--dangerously-bypass-approvals-and-sandbox",), "", (True, True), (False, False)),
        ((), "", (False, False), (False, False)),
        (("--sandbox=read-only",), "", (False, False), (False, False)),
        (FULL, f'[projects."{CLONE}"]\ntrust_level = "untrusted"\n', (False, False), (False, False)),
        ((), TRUSTED, (True, False), (True, False)),
    ],
)
def test_the_project_s_file_counts_as_measured(options, user, older, newer):
    for profile, (used, written) in ((OLDER, older), (NEWER, newer)):
        found = run(user, {"p": GOOD}, profile=profile, files={PROJECT_CONFIG: entry("p")}, argv=(*EXEC, *options))
        assert (found.exit_code, found.tools()) == (0, ["mcp__p/echo"] if used else [])
        after = found.text(USER_CONFIG)
        assert after.startswith(user)
        assert (after != user) is written
        if written:
            assert after.endswith(TRUSTED)
        assert bool(found.stderr) is (not used and profile is NEWER)
        assert all("Untrusted project-local configuration is disabled" in line for line in found.stderr)


@pytest.mark.requirement("prepare-codex-trust")
def test_the_newer_version_trusts_when_told_and_remembers():
    found = run(None, {"p": GOOD}, profile=NEWER, files={PROJECT_CONFIG: entry("p")}, argv=(*EXEC, "--trust"))
    assert found.tools() == ["mcp__p/echo"]
    assert found.text(USER_CONFIG) == TRUSTED
    refused = run(None, {"p": GOOD}, files={PROJECT_CONFIG: entry("p")}, argv=(*EXEC, "--trust"))
    assert (refused.exit_code, refused.stderr) == (2, ["error: unexpected argument '--trust' found"])


def test_the_trust_of_a_repository_covers_its_subdirectories():
    config = {PROJECT_CONFIG: entry("p"), f"{CLONE}/sub/x": ""}
    for profile in BOTH:
        for git, tools in (({f"{CLONE}/.git/HEAD": ""}, ["mcp__p/echo"]), ({}, [])):
            argv = (*EXEC, "-C", f"{CLONE}/sub")
            found = run(TRUSTED, {"p": GOOD}, profile=profile, files={**config, **git}, argv=argv)
            assert found.tools() == tools


def test_the_project_s_keys_lie_over_the_user_s_in_one_table():
    user = entry("a", startup_timeout_sec=22, tool_timeout_sec=7) + entry("b")
    project = "[mcp_servers.a]\nstartup_timeout_sec = 11\n[mcp_servers.b]\nenabled = false\n"
    found = run(user, {"a": HANGS, "b": GOOD}, files={PROJECT_CONFIG: project}, argv=(*EXEC, *FULL))
    assert (failed_at(found), found.tools()) == ({"a": 11.0}, [])
    mixed = run(entry("a"), {"a": GOOD}, files={PROJECT_CONFIG: entry("a", url="https://a.test")}, argv=(*EXEC, *FULL))
    assert mixed.exit_code == 1
    assert "url is not supported for stdio" in mixed.stderr[0]


def test_the_home_is_named_by_its_variable():
    found = run(
        None, {"a": GOOD}, files={"/elsewhere/config.toml": entry("a")}, environment={"CODEX_HOME": "/elsewhere"}
    )
    assert found.tools() == ["mcp__a/echo"]
