"""What a scenario file says without any effect is a warning with its line."""

from __future__ import annotations

import pytest

from harness.scenario.library import load_all
from harness.scenario.reading import read_scenario
from scenarios.playing import HEAD, SESSION, short

PROTECTED = "[authorization.as-b]\n[server.b]\nprotected_by = 'as-b'"
IDLE = [
    ("[authorization.x]", "[authorization.x]: it protects no server, and nothing leads to it"),
    ("[registered.b]\nclient_id = 'x'", "[registered.b]: the server is not protected, and nobody authorizes it"),
    ("app_host = 'zimmer.example.com'", "app_host: there is nothing to consent to, so no browser comes there"),
    (
        "[[expect]]\nexit = 0\nonly_on = ['codex']",
        "[[expect]] 1 is for codex, and the file is not",
    ),
    ("[[step]]\nadvance = 1\nonly_on = ['pi', 'codex']", "[[step]] 1 is for pi and codex, and the file is not"),
    ("codex_bugs = ['openai/codex#15122']", "codex_bugs: the file is not about codex"),
    (
        "[server.a]\ntools = ['echo', { name = 'slow', answers_after_seconds = 3 }]",
        "[server.a] `answers_after_seconds` of slow: no turn calls it",
    ),
    ("[server.b]\ntools = [{ name = 'find', is_error = true }]", "[server.b] `is_error` of find: no turn calls it"),
    ("[package.p]\nsteps = 2", "[package.p]: no entry starts this package"),
]
USED = [
    PROTECTED,
    f"app_host = 'zimmer.example.com'\n{PROTECTED}",
    f"[registered.b]\nclient_id = 'x'\n{PROTECTED}",
    "[registered.b]\nclient_id = 'x'\n[server.b]\nstatus = 401",
    "[registered.b]\nclient_id = 'x'\n[[step]]\nauthorize = 'b'",
    "[authorization.x]\n[[expect]]\nreceived = 'x'\nnever = true",
    "[authorization.x]\n[[credential]]\nserver = 'b'\nissued_by = 'x'",
    (
        "[authorization.x]\n[authorization.as-b]\nset = { metadata = { token_endpoint = 'https://x.test/token' } }\n"
        "[server.b]\nprotected_by = 'as-b'"
    ),
    "[[expect]]\nexit = 0\nonly_on = ['claude@2.1.328']",
    "[server.a]\ntools = [{ name = 'echo', is_error = true }]",
    "[server.b]\ntools = [{ name = 'find', description = 'x', read_only = true }]",
]


def warned(text: str) -> tuple[str, ...]:
    """The warnings of a file about Claude alone."""
    top, rest = (text, "") if text.startswith(("app_host", "codex_bugs")) else ("", text)
    head, _, tables = top.partition("\n[")
    file = short(*([f"[{tables}"] if tables else []), rest, head=f"{head}\n{HEAD}")
    return read_scenario(file.replace('runtime = ["claude", "codex", "pi"]', 'runtime = "claude"'), "my.toml").warnings


@pytest.mark.parametrize(("text", "words"), IDLE)
def test_what_changes_nothing_is_told(text, words):
    (warning,) = warned(text)
    place, said = warning.split(": ", 1)
    assert said == words
    assert place.startswith("my.toml:")


@pytest.mark.parametrize("text", USED)
def test_what_has_an_effect_is_not(text):
    assert warned(text) == ()


def test_a_server_that_exits_on_a_call_needs_one():
    exits = "[server.a]\nexits = 'on-call'"
    assert warned(exits) == ()
    uncalled = short(exits, session=SESSION.replace('server = "a"', 'server = "b"'))
    (warning,) = read_scenario(uncalled).warnings
    assert warning.endswith("[server.a] exits on-call: no turn calls it")


def test_nothing_of_a_shipped_scenario_is_idle():
    assert [warning for scenario in load_all() for warning in scenario.warnings] == []
