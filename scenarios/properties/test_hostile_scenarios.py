"""Whatever a scenario file says, `run` ends with a report or with one line of ours, which shows no secret."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import UserInputError
from harness.scenario.library import shipped
from harness.scenario.production import play
from harness.scenario.reading import read_scenario
from harness.scenario.verdicts import Verdict
from harness.scenario.writing import toml_text
from scenarios.playing import short

TREES = {name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in shipped().items()}
MANY = 4_000 if settings.default is not None and settings.default.max_examples > 100 else 150
"""So many in the nightly run."""
SECRET = "hunter2hunter2"
LONG = "x" * 5_000
ODD_TEXTS = (
    "", "/", "~/", ".", "..", "//x", "*", "[", "#", "S#2", "\x00", "\n", "\u2028", "${MISSING}", "${", LONG, "ftp://x",
    "http://[::1", "http://[::1/mcp", "https://x:99999/mcp", "https://", "https://a:b@c/", "a{99999999999}", "\x1b[31m",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    5,
    -5,
    0,
    1.5,
    1e300,
    10**30,
    True,
    [],
    [5],
    [{}],
    [["a"]],
    {},
    {"": "y"},
    {"a": 5},
    {"a": {"b": []}},
)
SECRETIVE_TABLES = ("secrets", "environment", "files")
SECRETIVE = (
    "environment", "env", "headers", "args", "client_secret", "access_token", "refresh_token", "requires_bearer",
    "text", "url", "pastes", "secret", "body", "contains", "challenge",
)  # fmt: skip
"""Tables of a file, and keys of its tables, below which a secret may stand, whatever it is written as."""
Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """The place of everything in a tree."""
    if place:
        yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*place, key))


def put(tree: dict[str, Any], place: Place, value: Any) -> None:
    """Replace what is at a place."""
    holder: Any = tree
    for key in place[:-1]:
        holder = holder[key]
    holder[place[-1]] = deepcopy(value)


PLACES = {name: list(places(tree)) for name, tree in TREES.items()}
SECRET_PLACES = [
    (name, place)
    for name, found in PLACES.items()
    for place in found
    if place[0] in SECRETIVE_TABLES or any(part in SECRETIVE for part in place[2:])
]


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A shipped scenario in which one or two values are others."""
    name = draw(st.sampled_from(sorted(TREES)))
    tree = deepcopy(TREES[name])
    put(tree, draw(st.sampled_from(PLACES[name])), draw(st.sampled_from((*ODD_TEXTS, *ODD_VALUES))))
    if draw(st.booleans()):
        put(tree, draw(st.sampled_from(list(places(tree)))), draw(st.sampled_from((*ODD_TEXTS, *ODD_VALUES))))
    return tree


@settings(max_examples=MANY)
@given(broken())
def test_a_scenario_with_odd_values_is_played_or_refused_in_one_line(tree):
    text = toml_text(tree)
    told = refusal(text)
    if told:
        assert told.startswith("x.toml:")
        return
    scenario = read_scenario(text, "x.toml")
    report = play(scenario, scenario.runtimes[0])
    assert report.verdict not in (Verdict.CRASH, Verdict.HARNESS_ERROR), report.detail


WRAPPED = (SECRET, [SECRET], [[SECRET]], {"a": SECRET}, {"a": [SECRET]}, [{"a": SECRET}], {"a": {"b": SECRET}})


@settings(max_examples=MANY)
@given(st.sampled_from(SECRET_PLACES), st.sampled_from(WRAPPED))
def test_no_line_shows_what_stands_where_a_secret_may_be(where, value):
    name, place = where
    tree = deepcopy(TREES[name])
    put(tree, place, value)
    text = toml_text(tree)
    assert SECRET not in told_of(text)


def told_of(text: str) -> str:
    """What is said of a text, be it refused or not."""
    return refusal(text) or "\n".join(read_scenario(text).warnings)


def refusal(text: str) -> str:
    """What is said of a text; empty where it is a scenario."""
    try:
        read_scenario(text, "x.toml")
    except UserInputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "added",
    [
        f"secrets = {{ A = ['{SECRET}'] }}",
        f"secrets = '{SECRET}'",
        "secrets = { A = 424242424242 }",
        f"environment = {{ X = ['{SECRET}'] }}",
        f"environment = '{SECRET}'",
        f"files = {{ '.env' = ['{SECRET}'] }}",
        f"[[credential]]\nserver = 'b'\naccess_token = ['{SECRET}']",
        f"[[credential]]\nserver = 'b'\naccess_token = '{SECRET}'\nrefresh_token = {{ a = '{SECRET}' }}",
        f"[registered.b]\nclient_secret = ['{SECRET}']",
        f"[server.b]\nrequires_bearer = '{SECRET}'",
        f"[server.b]\nchallenge = ['{SECRET}']",
        f"[catalog.c]\ntype = 'streamable-http'\nurl = 'ftp://u:{SECRET}@x'",
        f"[catalog.c]\ntype = 'streamable-http'\nurl = ['{SECRET}']",
        f"[catalog.c]\ntype = 'streamable-http'\nurl = 'https://c.test/mcp'\nheaders = ['{SECRET}']",
        f"[catalog.c]\ntype = 'streamable-http'\nurl = 'https://c.test/mcp'\nheaders = '{SECRET}'",
        f"[catalog.c]\ntype = 'stdio'\ncommand = '/opt/c'\nenv = '{SECRET}'",
        f"[catalog.c]\ntype = 'stdio'\ncommand = '/opt/c'\nargs = '--token {SECRET}'",
        f"[catalog.c]\ntype = 'stdio'\ncommand = '/opt/c'\nenv = {{ A = ['{SECRET}'] }}",
        f"[[step]]\nwrite = 'x'\ntext = ['{SECRET}']",
        f"[[step]]\nauthorize = 'b'\npastes = ['{SECRET}']",
        f"[[step]]\nfollow_up = 'S'\nturns = [{{ calls = [{{ server = 'a', tool = 'echo', args = '{SECRET}' }}] }}]",
        f"[[step]]\nedit = 'b'\nset = {{ headers = '{SECRET}' }}",
        f"[[step]]\nedit = 'b'\nset = '{SECRET}'",
        f"[authorization.d]\nset = {{ token_fields = '{SECRET}' }}",
        f"[authorization.d]\nset = {{ access_seconds = ['{SECRET}'] }}",
        f"[authorization.d]\nclients = [{{ client_id = 'c', secret = ['{SECRET}'] }}]",
        f"[[fault]]\nserver = 'b'\naction = 'answer'\nstatus = 500\nbody = ['{SECRET}']",
        f"[[expect]]\nfile = 'x'\nlacks = ['{SECRET}']",
        f"[[expect]]\nevent = 'log'\nwhere = {{ text = ['{SECRET}'] }}",
    ],
)
def test_a_secret_of_a_wrong_kind_is_told_by_its_name_and_its_kind_alone(added):
    told = told_of(texts_of(added))
    assert told
    assert SECRET not in told
    assert "424242424242" not in told


def texts_of(added: str) -> str:
    """A short scenario with that in it: keys in front of the tables, tables behind."""
    return short(added) if added.startswith("[") else f"{added}\n{short()}"
