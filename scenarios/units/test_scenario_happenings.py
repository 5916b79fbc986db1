"""The table of events: what runs show is in it, what is in it can be shown, and the document tells the same."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from harness.scenario.happenings import ANYBODY, HAPPENINGS, OPERATOR_ROLE, role_of
from harness.scenario.library import load_all
from harness.scenario.naming import OPERATOR
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from scenarios.playing import HEAD, SESSION, short

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "harness" / "scenario" / "README.md"
EMITTED = re.compile(r'(?:events\.|self\.|simulation\.)emit\(\s*(?:[\w.\[\]]+, )?"([a-z._]+)"')
NPX = '\n[catalog.n]\ntype = "stdio"\ncommand = "npx"\nargs = ["-y", "p@1.0.0"]\n'
STAYS = "[server.a]\nignores_stdin_end = true"
AWAY = "[[step]]\nstart = 'S'\nwait = false\nturns = [{ seconds = 60 }]\n[[step]]\nadvance = 9\n"
KEY = 'command = "/opt/a"\nenv = { K = "${MISSING}" }'
TWO = "[[step]]\nstart = 'A'\nclone = '/c'\nwait = false\n[[step]]\nstart = 'B'\nclone = '/c'"
ODD = """{"mcpServers": {"x": {"type": "nope"}, "y": 7}}"""
OTHERS = [
    # what the shipped scenarios do not show: the text, the runtime
    (short(session=f"{SESSION}[[step]]\nselect = 'S'\nservers = ['a']\n[[step]]\nremove = '.mcp.json'"), "pi"),
    (short(session=f"{SESSION}[[step]]\nedit = 'a'\nset = {{ title = 'x' }}"), "pi"),
    (short(session=f"{AWAY}[[step]]\nkill = 'S/*'"), "codex"),
    (short(STAYS, session=f"{AWAY}[[step]]\nkill = 'S/codex'"), "codex"),
    (short(head=HEAD.replace('command = "/opt/a"', KEY)), "claude"),
    (short("[[fault]]\naction = 'enospc'\nat = 'mkdir */.npm-cache*'", head=HEAD + NPX), "claude"),
    (short("[server.b]\nstatus = 401", session=f"{SESSION}[[step]]\nfollow_up = 'S'"), "claude"),
    (short("[package.p]\ninstall_seconds = 900", head=HEAD + NPX), "pi"),
    (short("[files]\n'~/.mcp.json' = '{'"), "claude"),
    (short(head=HEAD + NPX, session=TWO), "codex"),
    (short(f"[[step]]\nwrite = '.mcp.json'\ntext = '{ODD}'"), "claude"),
]
UNSHOWN: frozenset[str] = frozenset({"reached"})
"""Emitted for a family's marks alone."""


@cache
def shown() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """The fields and the roles of each event of the shipped scenarios and of those above."""
    runs = [(scenario, runtime) for scenario in load_all() for runtime in scenario.runtimes]
    runs += [(read_scenario(text), runtime) for text, runtime in OTHERS]
    fields: dict[str, set[str]] = defaultdict(set)
    roles: dict[str, set[str]] = defaultdict(set)
    for scenario, runtime in runs:
        for event in play(scenario, runtime).events:
            fields[event.name] |= set(event.details)
            roles[event.name].add(OPERATOR_ROLE if event.actor == OPERATOR else role_of(event.actor))
    return dict(fields), dict(roles)


def test_every_event_of_a_run_is_in_the_table_with_its_fields_and_roles():
    fields, roles = shown()
    assert set(fields) <= set(HAPPENINGS)
    assert [(name, each) for name, each in fields.items() if not each <= set(HAPPENINGS[name].fields)] == []
    assert [(name, each) for name, each in roles.items() if not each <= set(HAPPENINGS[name].roles)] == []


def test_every_event_of_the_table_is_shown_with_all_its_fields():
    fields, _ = shown()
    missing = {name: sorted(set(each.fields) - fields.get(name, set())) for name, each in HAPPENINGS.items()}
    assert {name for name in HAPPENINGS if name not in fields} == UNSHOWN
    assert {name: each for name, each in missing.items() if each and name not in UNSHOWN} == {}


def test_every_name_that_the_sources_emit_is_in_the_table():
    sources = [
        path for folder in ("harness", "fake_runtimes", "fake_servers") for path in (ROOT / folder).rglob("*.py")
    ]
    emitted = {name for path in sources for name in EMITTED.findall(path.read_text(encoding="utf-8"))}
    assert len(emitted) > 30
    assert emitted <= set(HAPPENINGS)


def test_the_document_has_the_table():
    rows = re.findall(r"^\| `([a-z._]+)` \| ([^|]+) \| (.*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.M)
    told = {name: (who, re.findall(r"`(\w+)`", fields)) for name, who, fields in rows if name in HAPPENINGS}
    assert told == {
        name: ("anybody" if each.roles == ANYBODY else ", ".join(each.roles), list(each.fields))
        for name, each in HAPPENINGS.items()
    }


@pytest.mark.parametrize(("actor", "role"), [("S", "session"), ("S/pi", "runtime"), ("S#2/pi#2/a/b", "server")])
def test_a_role_is_told_by_the_name(actor, role):
    assert role_of(actor) == role
