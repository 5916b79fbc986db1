"""Scenario files: what is read, and that a mistake is one line with its place."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from fake_servers.mcp.behaviour import CHOICES, Behaviour, Tool
from harness.errors import UserInputError
from harness.scenario import invariants
from harness.scenario.document import schema
from harness.scenario.model import PackageFacts
from harness.scenario.positions import positions
from harness.scenario.production import play
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.verdicts import Verdict
from harness.world.model.faults import ACTIONS
from scenarios.playing import SESSION, short

DOCUMENT = Path(__file__).parents[2] / "harness" / "scenario" / "README.md"
EXAMPLES = re.findall(r"```toml\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)

MISTAKES = [
    # what is added to a good file, the line that is named (of what was added), words of the message
    ("[[expect]]\nservr = 'a'\nis = 'failed'", 1, "Did you mean server?"),
    ("[[expect]]\nis = 'failed'", 1, "It needs one of exit, event"),
    ("[[expect]]\nexit = 0\noutput = 'stderr'", 1, "has both `exit` and `output`"),
    ("[[expect]]\nserver = 'a'\nis = 'up'", 3, "There are connected, failed"),
    ("[[expect]]\nserver = 'aa'\nis = 'failed'", 2, "no server is called 'aa'"),
    ("[[expect]]\nserver = 'a'", 1, "lacks `is`"),
    ("[[expect]]\nexit = '0'", 2, "a whole number"),
    ("[[expect]]\nexit = 0\nafter = 2", 3, "There are 1 to 1"),
    ("[[expect]]\nexit = 0\nsession = 'T'", 3, "no session is called 'T'"),
    ("[[expect]]\nexit = 0\nonly_on = ['codex@1']", 3, "unknown runtime 'codex@1'"),
    ("[[expect]]\nevent = 'x'\ntimes = 1\nnever = true", 4, "both `times` and `never`"),
    ("[[expect]]\nfile = 'x'", 1, "expects nothing"),
    ("[[expect]]\nfile = 'x'\nmatches = '('", 3, "no regular expression"),
    ("[[expect]]\nfile = 'x'\nabsent = true\nmode = 0o600", 3, "has no content"),
    ("[[expect]]\nevent = 'x'\nbetween = [1]", 3, "at least 2"),
    ("[[fault]]\naction = 'broken'", 2, "There are answer"),
    ("[[fault]]\naction = 'answer'", 1, "lacks `status`"),
    ("[[fault]]\naction = 'refused'\nserver = 'b'\nactor = 'x'", 3, "both `server` and `actor`"),
    ("[[fault]]\naction = 'slow'\nseconds = -1", 3, "at least 0"),
    ("[[fault]]\naction = 'slow'\nseconds = inf", 3, "Leave the key out"),
    ("[[hold]]\nactor = 'S'\nat = 'x'\nuntil = 'y'", 4, "a table"),
    ("[[step]]\nstart = 'S'", 1, "started twice"),
    ("[[step]]\nfollow_up = 'T'", 1, "was not started before"),
    ("[[step]]\nstart = 'T'\nservers = ['c']", 3, "no server is called 'c'"),
    ("[[step]]\nstart = 'T'\nservers = ['a']\nroot = 'r'", 4, "both `servers` and `root`"),
    ("[[step]]\nstart = 'T'\nroot = 'r'", 3, "Add [roots.r]"),
    ("[[step]]\nstart = 'T'\nclone = 'there'", 3, "absolute path"),
    ("[[step]]\nstart = 'T/1'", 1, "no name for a session"),
    ("[[step]]\nadvance = 2020-01-01", 2, "in quotes"),
    ("[server.a]\nstatus = 7", 2, "at least 100"),
    ("[server.c]\nstatus = 500", 1, "no server is called 'c'"),
    ("[server.a]\ninitialise = 'never'", 2, "Did you mean initialize?"),
    ("[package.p]\nserver = 'c'", 2, "no server is called 'c'"),
    ("[[credential]]\nserver = 'b'", 1, "lacks `access_token`"),
    ("[secrets]\nA = 1", 2, "a text"),
    ("[[old_bug]]\nname = 'x'", 1, "lacks `shows`"),
    ("[files]\n'a b' = [", 2, "is no TOML"),
]  # fmt: skip


@pytest.mark.parametrize(("added", "line", "words"), MISTAKES)
def test_a_mistake_is_one_line_with_file_place_and_advice(added, line, words):
    good = short("", session=SESSION)
    with pytest.raises(UserInputError) as caught:
        read_scenario(f"{good}\n{added}", "my.toml")
    message = str(caught.value)
    assert "\n" not in message
    assert words in message, message
    assert message.startswith("my.toml:")
    assert caught.value.line == good.count("\n") + 1 + line, message


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("schema = 1", "schema = 2", "It must be 1"),
        ("schema = 1\n", "", "lacks `schema`"),
        ('id = "short"', 'id = "So Short"', "must match"),
        ('["claude", "codex", "pi"]', '"cloud"', "must match"),
        ('["claude", "codex", "pi"]', '"claude@9"', "unknown runtime 'claude@9'"),
        ('title = "A short one"', 'title = ""', "at least 1"),
        ("[catalog.a]", "[katalog.a]", "Did you mean catalog?"),
        ("[[step]]", "[[steps]]", "has no key `steps`"),
    ],
)
def test_a_head_that_is_wrong_is_told(old, new, words):
    with pytest.raises(UserInputError, match=re.escape(words)):
        read_scenario(short().replace(old, new), "my.toml")


def test_a_good_file_is_read_whole():
    scenario = read_scenario(
        short(
            "[server.a]\nstarts_after_seconds = 3\ntools = ['x', { name = 'y', is_error = true }]",
            "[[fault]]\naction = 'slow'\nserver = 'b'\nseconds = 2\nnth = 1",
            "[[hold]]\nactor = 'S'\nat = 'spawn *'\nuntil = { event = 'x', who = 'y', where = { z = 1 } }",
            "[[expect]]\nevent = 'x'\nat_most = 2",
        )
    )
    assert scenario.servers["a"].starts_after_seconds == 3
    assert [tool.name for tool in scenario.servers["a"].tools] == ["x", "y"]
    assert (scenario.faults[0].action, scenario.faults[0].seconds, scenario.faults[0].nth) == ("slow", 2, 1)
    assert scenario.holds[0].until.where == {"z": 1}
    assert scenario.expectations[0].says == "x 0 to 2x"
    assert scenario.sessions == ("S",)


def test_a_catalog_may_be_a_file_beside_the_scenario(tmp_path):
    (tmp_path / "mcp.json").write_text(json.dumps({"a": {"type": "stdio", "command": "/opt/a"}}))
    text = 'schema = 1\nid = "x"\ntitle = "x"\nruntime = "pi"\ncatalog = "mcp.json"\n' + SESSION
    (tmp_path / "x.toml").write_text(text)
    assert list(load_scenario(tmp_path / "x.toml").catalog) == ["a"]
    (tmp_path / "x.toml").write_text(text.replace("mcp.json", "other.json"))
    with pytest.raises(UserInputError, match=r"x\.toml:5: .*other\.json: no such file"):
        load_scenario(tmp_path / "x.toml")


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_documentation_run_and_pass(text):
    scenario = read_scenario(text)
    for runtime in scenario.runtimes:
        report = play(scenario, runtime)
        assert report.verdict is Verdict.PASS, (report.failures, report.detail)


def test_the_documentation_names_every_key_and_choice():
    text = DOCUMENT.read_text(encoding="utf-8")
    definitions = schema()["$defs"]
    keys = {key for name, each in definitions.items() for key in each.get("properties", {}) if name != "behaviour"}
    keys |= set(schema()["properties"]) | set(Behaviour._fields) - {"name", "version", "protocol_version"}
    missing = sorted(key for key in keys if not re.search(rf"\b{re.escape(key)}\b", text))
    assert missing == []
    assert not [action for action in ACTIONS if f"`{action}`" not in text]
    assert not [name for name in invariants.names() if f"`{name}`" not in text]


def test_the_schema_offers_what_the_fakes_and_the_world_can_do():
    definitions = schema()["$defs"]
    behaviour = definitions["behaviour"]["properties"]
    assert set(behaviour) == set(Behaviour._fields)
    assert {key: tuple(behaviour[key]["enum"]) for key in CHOICES} == dict(CHOICES)
    assert set(definitions["tool"]["properties"]) == set(Tool._fields)
    assert set(definitions["package"]["properties"]) == set(PackageFacts._fields) - {"name"}
    assert set(definitions["fault"]["properties"]["action"]["enum"]) == ACTIONS
    assert tuple(definitions["expect_invariant"]["properties"]["invariant"]["enum"]) == invariants.names()


def test_the_line_of_a_key_is_found_in_every_way_to_write_it():
    text = '''
a.b = 1
"c d" = """
x = 1
"""
e = [
  { f = 1 },  # g = 2
]

[h]
i = 'j = "'

[[k]]
l = 1
[k.m]
n = 1

[[k]]
l = 2
[o."p.q"]
r = 1
'''
    assert tomllib.loads(text)
    lines = positions(text)
    wanted = {
        ("a", "b"): 2,
        ("c d",): 3,
        ("e", 0, "f"): 6,
        ("h", "i"): 11,
        ("k", 0, "l"): 14,
        ("k", 0, "m", "n"): 16,
        ("k", 1, "l"): 19,
        ("k", 1, "absent"): 18,
        ("o", "p.q", "r"): 21,
        ("absent",): 1,
    }
    assert {path: lines.line(path) for path in wanted} == wanted
