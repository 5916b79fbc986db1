"""Scenario files: what is read, and that a mistake is one line with its place."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

from fake_servers.mcp.behaviour import CHOICES, Behaviour, Tool
from harness.errors import UserInputError
from harness.requirements.source_tree import import_variants, require_source_root
from harness.requirements.variants import VARIANTS
from harness.scenario import invariants
from harness.scenario.document import schema
from harness.scenario.granting import NOT_OF_THE_SERVER
from harness.scenario.model import PackageFacts, Start
from harness.scenario.positions import positions
from harness.scenario.production import play
from harness.scenario.reading import load_scenario, read_scenario
from harness.scenario.variants import known_variants
from harness.scenario.verdicts import Verdict
from harness.world.model import Seeded
from harness.world.sites import ACTIONS
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
    ("[[expect]]\nevent = 'spawn'\ntimes = 1\nnever = true", 4, "both `times` and `never`"),
    ("[[expect]]\nfile = 'x'", 1, "expects nothing"),
    ("[[expect]]\nfile = 'x'\nmatches = '('", 3, "no regular expression"),
    ("[[expect]]\nfile = 'x'\nabsent = true\nmode = 0o600", 3, "has no content"),
    ("[[expect]]\nevent = 'spawn'\nbetween = [1]", 3, "at least 2"),
    ("[[fault]]\naction = 'broken'", 2, "There are answer"),
    ("[[fault]]\naction = 'answer'", 1, "lacks `status`"),
    ("[[fault]]\naction = 'refused'\nserver = 'b'\nactor = 'x'", 3, "both `server` and `actor`"),
    ("[[fault]]\naction = 'slow'\nseconds = -1", 3, "at least 0"),
    ("[[fault]]\naction = 'slow'\nseconds = inf", 3, "leave it out for none"),
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
    ("[[credential]]\nserver = 'b'", 1, "needs one of access_token and issued_by"),
    ("[secrets]\nA = 1", 2, "a text"),
    ("[[old_bug]]\nname = 'x'", 1, "lacks `shows`"),
    ("[files]\n'a b' = [", 2, "is no TOML"),
    ("[files]\n'../x' = 'y'", 2, "climbs out"),
    ("[[step]]\nwrite = 'a/../../x'\ntext = ''", 2, "climbs out"),
    ("[[step]]\nremove = '..'", 2, "climbs out"),
    ("[[expect]]\nfile = '../x'\nabsent = true", 2, "climbs out"),
    ("[[expect]]\nevent = 'server.fail'\nnever = true", 2, "Did you mean server.failed?"),
    ("[[expect]]\nevent = 'sever.*'\nnever = true", 2, "no event is called"),
    ("[[expect]]\nevent = 'spawn'\nbefore = { event = 'spwan' }", 3, "Did you mean spawn?"),
    ("[[expect]]\nevent = 'spawn'\nnever = true\nwhere = { agv = 'a' }", 4, "no field `agv`. Did you mean argv?"),
    ("[[expect]]\nevent = '*'\nnever = true\nwhere = { argv = 'x', tree = 'y' }", 4, "has all of argv, tree"),
    ("[[expect]]\nevent = 'server.*'\nnever = true\nwhere = { server = 'notoin' }", 4, "is called 'notoin'"),
    ("[[expect]]\nevent = 'session.degraded'\nnever = true\nwhere = { servers = 'c*' }", 4, "no server is called 'c*'"),
    ("[[expect]]\nevent = 'tool.call'\nnever = true\nwhere = { tool = 'ecko' }", 4, "Did you mean echo?"),
    ("[[expect]]\nevent = 'tool.call'\nnever = true\nwhere = { ok = 'true' }", 4, "It is true or false"),
    ("[[expect]]\nevent = 'tool.call'\nnever = true\nwhere = { text = 1 }", 4, "It is a text"),
    ("[[expect]]\nevent = 'ended'\nnever = true\nwhere = { exit_code = false }", 4, "It is a number"),
    ("[[expect]]\nevent = 'step.start'\nnever = true\nwhere = { session = 'T' }", 4, "no session is called 'T'"),
    ("[[expect]]\nevent = 'step.edit'\nnever = true\nwhere = { entry = 'c' }", 4, "no server is called 'c'"),
    ("[[expect]]\nevent = 'download'\nnever = true\nwhere = { package = 'p' }", 4, "no package is called 'p'"),
    ("[[expect]]\nevent = 'killed'\nnever = true\nwhere = { signal = 'SIGFOO' }", 4, "no signal is called"),
    ("[[expect]]\nevent = 'fault'\nnever = true\nwhere = { action = 'refuse' }", 4, "Did you mean refused?"),
    ("[[expect]]\nevent = 'spawn'\nnever = true\nwhere = { child = 'X/*' }", 4, "nobody can be called 'X/*'"),
    ("[[expect]]\nevent = 'server.failed'\nwho = 'X/*'\nnever = true", 3, "nobody can be called 'X/*'"),
    ("[[expect]]\nevent = 'server.failed'\nwho = 'codx'\nat_most = 0", 3, "Did you mean codex?"),
    ("[[expect]]\nevent = 'server.failed'\nwho = 'S#2'\nnever = true", 3, "session S has 1 run"),
    ("[[expect]]\nevent = 'server.failed'\nwho = 'S'\nnever = true", 3, "never happens to 'S', a session"),
    ("[[expect]]\nrequest = 1\nlacks = ['a/ecko']", 3, "Did you mean a/echo?"),
    ("[[expect]]\nrow = 'sesions/S'\nabsent = true", 2, "Did you mean sessions?"),
    ("[[expect]]\nrow = 'sessions/T'\nabsent = true", 2, "no session is called 'T'"),
    ("[[expect]]\nreceived = 'a'\nnever = true", 2, "a is no remote server"),
    ("[[expect]]\nexit = 0\n[[expect]]\nevent = 'spawn'\nbetween = [-1, 2]", 5, "`between` is [-1, 2]"),
    ("[[expect]]\nrequest = 1\nbetween = [2, 1]", 3, "`between` is [2, 1]"),
    ("[[step]]\nwait_for = { event = 'server.conected' }", 2, "Did you mean server.connected?"),
    ("[[step]]\nwait_for = { event = 'server.failed', where = { server = 'c' } }", 2, "no server is called 'c'"),
    ("[[hold]]\nactor = 'S'\nat = 'x'\nuntil = { event = 'nope' }", 4, "no event is called 'nope'"),
    ("[[hold]]\nactor = 'S'\nat = 'x'\nuntil = { event = 'spawn', who = 'Q' }", 4, "nobody can be called 'Q'"),
    ("[[hold]]\nactor = 'T'\nat = 'x'\nuntil = { event = 'spawn' }", 2, "nobody can be called 'T'"),
    ("[[step]]\nkill = 'Q'", 2, "nobody can be called 'Q'"),
    ("[[step]]\nstart = 'T'\nturns = [{ calls = [{ server = 'c', tool = 'echo' }] }]", 3, "no server is called 'c'"),
    ("[[step]]\nname = 'x'\nadvance = 1\n[[step]]\nname = 'x'\nadvance = 1", 5, "two steps are called 'x'"),
    ("[[step]]\nedit = 'a'", 1, "changes nothing"),
    ("[[step]]\nedit = 'c'\nunset = ['x']", 2, "the catalog has no 'c'"),
    ("[[fault]]\naction = 'kill'", 1, "does not say where"),
    ("[[fault]]\naction = 'kill'\nactor = 'Q'", 3, "nobody can be called 'Q'"),
    ("[[fault]]\naction = 'refused'\nserver = 'a'", 2, "cannot strike a, a stdio server"),
    ("[[fault]]\naction = 'enoent'\nserver = 'b'", 2, "cannot strike b, a remote server"),
    ("[[fault]]\naction = 'kill'\nserver = 'a'\nstatus = 401", 4, "`status` has no effect with kill"),
    ("[[fault]]\naction = 'kill'\nserver = 'a'\nafter_seconds = 5\nbefore_seconds = 1", 5, "ends before it begins"),
    ("[server.a]\nstatus = 401", 2, "a stdio server, on which `status` has no effect"),
    ("[server.b]\nexits = 'on-call'", 2, "a remote server, on which `exits` has no effect"),
    ("[[old_bug]]\nname = 'nope.nope'\nshows = 'x'", 2, "no known-bad variant is called 'nope.nope'"),
    ("[sever.a]\nstatus = 401", 1, "Did you mean server?"),
    ("[[expects]]\nexit = 0", 1, "Did you mean expect?"),
    ("[server.a]\nexit_code = 1" + "0" * 5000, 2, "too long to be read"),
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
        ("[catalog.a]", "requirements = ['NOPE-1']\n[catalog.a]", "no requirement is called 'NOPE-1'"),
        ("[catalog.a]", "requirements = ['npx-isolate-eech']\n[catalog.a]", "Did you mean npx-isolate-each?"),
        ("[catalog.a]", "tiers = ['reel']\n[catalog.a]", "Did you mean real?"),
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
            "[[hold]]\nactor = 'S'\nat = 'spawn *'\nuntil = { event = 'tool.call', who = 'pi', where = { ok = true } }",
            "[[expect]]\nevent = 'tool.*'\nat_most = 2",
        )
    )
    assert scenario.servers["a"].starts_after_seconds == 3
    assert [tool.name for tool in scenario.servers["a"].tools] == ["x", "y"]
    assert (scenario.faults[0].action, scenario.faults[0].seconds, scenario.faults[0].nth) == ("slow", 2, 1)
    assert scenario.holds[0].until.where == {"ok": True}
    assert scenario.expectations[0].says == "tool.* 0 to 2x"
    assert scenario.sessions == ("S",)


def test_a_catalog_may_be_a_file_beside_the_scenario(tmp_path):
    (tmp_path / "mcp.json").write_text(json.dumps({"a": {"type": "stdio", "command": "/opt/a"}}))
    text = 'schema = 1\nid = "x"\ntitle = "x"\nruntime = "pi"\ncatalog = "mcp.json"\n' + SESSION
    text += "\n[[expect]]\nexit = 0\n"
    (tmp_path / "x.toml").write_text(text)
    assert list(load_scenario(tmp_path / "x.toml").catalog) == ["a"]
    (tmp_path / "x.toml").write_text(text.replace("mcp.json", "other.json"))
    with pytest.raises(UserInputError, match=r"x\.toml:5: .*other\.json: no such file"):
        load_scenario(tmp_path / "x.toml")


@pytest.mark.parametrize("text", EXAMPLES)
def test_the_examples_of_the_documentation_run_and_pass(text):
    scenario = read_scenario(text)
    for runtime in scenario.runtimes:
        for seed in (None, *range(21)):
            report = play(scenario, runtime, None if seed is None else Seeded(seed), seed=seed or 0)
            assert report.verdict is Verdict.PASS, (seed, report.failures, report.detail)


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
    assert set(behaviour) - set(NOT_OF_THE_SERVER) == set(Behaviour._fields)
    assert {key: tuple(behaviour[key]["enum"]) for key in CHOICES} == dict(CHOICES)
    assert set(definitions["tool"]["properties"]) == set(Tool._fields)
    assert set(definitions["package"]["properties"]) == set(PackageFacts._fields) - {"name"}
    assert set(definitions["fault"]["properties"]["action"]["enum"]) == ACTIONS
    assert tuple(definitions["expect_invariant"]["properties"]["invariant"]["enum"]) == invariants.names()


def test_a_file_must_expect_something(tmp_path):
    (tmp_path / "x.toml").write_text(short())
    with pytest.raises(UserInputError, match=r"x\.toml: it expects nothing.*Add an \[\[expect\]\]"):
        load_scenario(tmp_path / "x.toml")


@pytest.mark.parametrize(
    "written",
    [
        "who = 'S'", "who = 'S*'", "who = 'S/*'", "who = '*/codex'", "who = 'claude#2'", "who = 'S/claude#3'",
        "who = 'claude'", "who = 'session S'", "who = 'S/claude/a#2'", "who = 'npx'", "where = { child = 'S/pi/*' }",
        "where = { child = 'S/claude#2' }", "where = { argv = '/opt/*' }",
    ],
)  # fmt: skip
def test_names_that_there_can_be_are_taken(written):
    event = "spawn" if "where" in written else "ended"
    assert read_scenario(short(f"[[expect]]\nevent = '{event}'\n{written}")).expectations


def test_names_may_come_from_files_of_the_clone():
    files = '[files]\n\'.mcp.json\' = \'{"mcpServers": {"own-one": {"command": "/opt/own"}}}\''
    for name in ("own-one", "own-*"):
        where = f"where = {{ server = '{name}' }}"
        assert read_scenario(short(files, f"[[expect]]\nevent = 'server.failed'\n{where}\nnever = true"))
    with pytest.raises(UserInputError, match="no server is called 'own_\\*'"):
        read_scenario(short(files, "[[expect]]\nevent = 'server.failed'\nwhere = { server = 'own_*' }"))


def test_the_clone_may_be_told_from_the_home_directory():
    scenario = read_scenario(short(session="[[step]]\nstart = 'S'\nclone = '~/shared'"))
    action = scenario.steps[0].action
    assert isinstance(action, Start)
    assert action.clone == "/home/agent/shared"


def test_a_table_that_changes_nothing_is_a_warning_with_its_line():
    scenario = read_scenario(
        short("[server.a]\nexit_code = 2\n[package.p]\nsteps = 2", session="[[step]]\nstart = 'S'\nservers = ['b']")
    )
    assert [line.partition(": ")[2] for line in scenario.warnings] == [
        "[server.a]: no session is given this server",
        "[package.p]: no entry starts this package",
    ]
    assert scenario.warnings[0].startswith("scenario.toml:15: ")
    assert not read_scenario(short("[server.a]\nexit_code = 2")).warnings


def test_known_bad_variants_are_found_without_being_imported():
    import_variants(require_source_root())
    assert set(known_variants()) == set(VARIANTS)


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
        ("o",): 20,
        ("absent",): 1,
    }
    assert {path: lines.line(path) for path in wanted} == wanted
