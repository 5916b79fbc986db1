"""What is offered in place of a name that is none: the one that was meant, or a handful, always a short line."""

from __future__ import annotations

import pytest

from harness.errors import UserInputError
from harness.scenario.hints import NAMES_SHOWN, few, meant, nearest
from harness.scenario.reading import read_scenario
from scenarios.playing import short

MANY = [f"server-{number}" for number in range(40)]
LONGEST_LINE = 300


@pytest.mark.parametrize(
    ("written", "known", "said"),
    [
        ("refrsh", ("refresh", "rotate"), "Did you mean refresh?"),
        ("post", ("GET", "POST"), "Did you mean POST?"),
        ("x", ("one", "two"), "There are one, two."),
        ("x", ("", "two"), "There are two."),
        ("x", (), ""),
        ("x", list("abcdefgh"), "There are a, b, c, d, e, f, and 2 more."),
    ],
)
def test_a_name_that_is_none_is_answered_by_the_nearest_or_by_a_handful(written, known, said):
    assert nearest(written, known) == said


def test_who_wants_no_list_gets_the_nearest_or_nothing():
    assert meant("tool", ["tools"], before="a/") == "Did you mean a/tools?"
    assert meant("x", ["tools"]) == ""
    assert few(["a"]) == "a"


TOOLS = "[server.a]\ntools = [" + ", ".join(f"'{each}'" for each in MANY) + "]\n"
STEPS = "\n".join(f"[[step]]\nstart = '{each}'" for each in MANY)


@pytest.mark.parametrize(
    "text",
    [
        f"{TOOLS}[[expect]]\nrequest = 1\nsession = 'S'\noffers = ['a/x']",
        f"{TOOLS}[[expect]]\nevent = 'tool.call'\nwhere = {{ tool = 'x' }}",
        f"{STEPS}\n[[expect]]\nexit = 0\nsession = 'x'",
        f"{STEPS}\n[[expect]]\nexit = 0\nsession = 'S'\nafter = 'x'",
        f"{STEPS}\n[[expect]]\nevent = 'spawn'\nwho = 'x~y'",
        "[authorization.x]\nanswers = { token = ['zzz'] }",
        "[authorization.x]\nprovider = 'zzz'",
        "[authorization.x]\nset = { zzz = 1 }",
        f"{STEPS}\n[[expect]]\nexit = 0",
        "[[expect]]\nzzz = 1",
        "[[expect]]\nevent = 'zzz'",
        "[[expect]]\nreceived = 'b'\nmethod = 'zzz'",
        "[[expect]]\nevent = 'attempt'\nwhere = { hole = 'zzz' }",
        "[[expect]]\nevent = 'attempt'\nwhere = { zzz = 'x' }",
        "[[expect]]\ninvariant = 'zzz'",
        "[[fault]]\naction = 'zzz'",
        "zzz = 1",
    ],
)
def test_no_list_of_names_makes_an_error_long(text):
    before, after = (text, "") if text == "zzz = 1" else ("", text)
    with pytest.raises(UserInputError) as caught:
        read_scenario(f"{before}\n{short(after)}", "my.toml")
    message = str(caught.value)
    assert len(message) < LONGEST_LINE, message
    assert message.count(", ") <= NAMES_SHOWN + 2, message
    assert "\n" not in message
