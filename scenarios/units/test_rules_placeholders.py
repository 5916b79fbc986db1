"""The gate's rules on placeholders: MH301 to MH306."""

from __future__ import annotations

import json

import pytest

from harness.gate.model import Severity
from scenarios.units.gate_fixture import entry_findings, findings, mended, only, where

STDIO = {"type": "stdio", "command": "npx"}
REMOTE = {"type": "sse", "url": "https://x.test/sse"}


@pytest.mark.requirement("secrets-foreign-placeholder-lint")
@pytest.mark.parametrize(
    ("entry", "pointer", "shown"),
    [
        ({**STDIO, "env": {"K": "${lower}"}}, "/a/env/K", "${lower}"),
        ({**STDIO, "env": {"K": "${1X}"}}, "/a/env/K", "${1X}"),
        ({**STDIO, "args": ["-y", "${V:?m}"]}, "/a/args/1", "${V:?…}"),
        ({**REMOTE, "headers": {"K": "Bearer ${V-d}"}}, "/a/headers/K", "${V-…}"),
        ({**REMOTE, "url": "https://${host}/mcp"}, "/a/url", "${host}"),
        ({"type": "stdio", "command": "${BIN}"}, "/a/command", "${BIN}"),
        ({**STDIO, "cwd": "${DIR:-/srv}"}, "/a/cwd", "${DIR:-…}"),
        ({**REMOTE, "oauth": {"clientSecret": "${S}"}}, "/a/oauth/clientSecret", "${S}"),
        ({**STDIO, "env": {"K": "${input:token}"}}, "/a/env/K", "${input:token}"),
    ],
)
def test_a_form_that_only_air_sees_fails_the_whole_session(entry, pointer, shown):
    found = only(entry_findings(entry, {"MH301"}))
    assert (found.place.pointer, found.severity) == (pointer, Severity.ERROR)
    assert found.message.startswith(shown)
    assert "shows the server as ready" in found.message
    assert "the WHOLE session fails" in found.message


@pytest.mark.requirement("secrets-foreign-placeholder-lint")
@pytest.mark.parametrize(
    "entry",
    [
        {**STDIO, "env": {"K": "${V:-d}", "L": "${V}", "M": "$lower", "N": "${", "O": "${}"}},
        {**STDIO, "title": "${lower}", "description": "${1X}"},
        {**STDIO, "env": {"${lower}": "x"}},
    ],
)
def test_the_grammars_own_forms_and_places_that_air_drops_are_no_finding(entry):
    assert entry_findings(entry, {"MH301"}) == []


def test_a_form_that_air_can_fill_is_told_apart_from_one_that_it_never_can():
    lower = only(entry_findings({**STDIO, "env": {"K": "${lower}"}}, {"MH301"}))
    shell = only(entry_findings({**STDIO, "env": {"K": "${V:?m}"}}, {"MH301"}))
    assert "where AIR's environment lacks it" in lower.message
    assert "where AIR's environment lacks it" not in shell.message


def test_another_hosts_env_spelling_is_turned_into_the_catalogs_own():
    text = json.dumps({"a": {**REMOTE, "headers": {"K": "Bearer ${env:TOKEN}"}}})
    found = only(findings(text, {"MH301", "MH304"}))
    assert found.rule == "MH301"
    assert json.loads(mended(text, found))["a"]["headers"]["K"] == "Bearer ${TOKEN}"
    assert findings(mended(text, found), {"MH301", "MH304"}) == []
    mixed = only(entry_findings({**STDIO, "command": "${env:BIN}"}, {"MH301"}))
    assert mixed.edits == ()


def test_a_default_behind_a_foreign_form_is_not_shown():
    found = only(entry_findings({**STDIO, "env": {"K": "${V-hunter2hunter2}"}}, {"MH301"}))
    assert "hunter2" not in found.message


@pytest.mark.parametrize(
    ("entry", "pointer"),
    [
        ({**STDIO, "title": "Server of ${TEAM}"}, "/a/title"),
        ({**STDIO, "description": "see ${url}"}, "/a/description"),
        ({**STDIO, "unavailable": "ask ${OWNER}"}, "/a/unavailable"),
        ({**STDIO, "env": {"${NAME}": "x"}}, "/a/env/${NAME}"),
        ({**REMOTE, "headers": {"X-${NAME}": "x"}}, "/a/headers/X-${NAME}"),
    ],
)
def test_a_placeholder_that_nobody_resolves_is_a_note(entry, pointer):
    found = only(entry_findings(entry, {"MH302"}))
    assert (found.place.pointer, found.severity) == (pointer, Severity.NOTE)
    assert "nobody" in found.message


def test_a_placeholder_in_a_server_name_is_a_note_and_values_are_none():
    found = only(entry_findings(STDIO, {"MH302"}, name="x-${NAME}"))
    assert found.place.pointer == "/x-${NAME}"
    assert entry_findings({**STDIO, "env": {"K": "${V}"}}, {"MH302"}) == []


def test_a_nested_default_is_one_warning():
    text = '{\n  "a": { "type": "stdio", "command": "c", "env": { "K": "${A:-${B}}" } }\n}'
    found = only(findings(text, {"MH301", "MH303"}))
    assert (found.rule, found.severity) == ("MH303", Severity.WARNING)
    assert where(found) == (2, 57)
    assert "stray `}`" in found.message


@pytest.mark.parametrize("value", ["${A:-b}", "${A}${B}", "${A:-b}-${B:-c}", "${A:-}${B}"])
def test_plain_defaults_are_not_nested(value):
    assert entry_findings({**STDIO, "env": {"K": value}}, {"MH303"}) == []


def test_a_foreign_form_beside_a_nested_default_is_told_as_well():
    found = entry_findings({**STDIO, "env": {"K": "${A:-${B}} ${lower}"}}, {"MH301", "MH303"})
    assert [each.rule for each in found] == ["MH301", "MH303"]
    assert "${lower}" in found[0].message


@pytest.mark.parametrize(
    ("value", "readers", "becomes"),
    [
        ("$TOKEN", "Gemini's", None),
        ("Bearer $TOKEN", "Gemini's", None),
        ("$env:TOKEN", "pi@0.84.1+2.32.1 alone", "${TOKEN}"),
        ("{env:TOKEN}", "pi@0.84.1+2.32.1 alone", "${TOKEN}"),
        ("$env:token", "pi@0.84.1+2.32.1 alone", None),
        ("%TOKEN%", "Windows's", None),
        ("{{TOKEN}}", "a template engine's", "${TOKEN}"),
        ("{{ inputs.token }}", "a template engine's", None),
        ("$(TOKEN)", "Kubernetes's", "${TOKEN}"),
        ("${TOKEN", "nobody's", "${TOKEN}"),
        ("Bearer ${TOKEN", "nobody's", "Bearer ${TOKEN}"),
        ("${TOKEN:-none", "nobody's", "${TOKEN:-none}"),
    ],
)
def test_another_hosts_placeholder_is_told_with_who_expands_it(value, readers, becomes):
    text = json.dumps({"a": {**STDIO, "env": {"K": value}}})
    found = only(findings(text, {"MH304"}))
    assert (found.place.pointer, found.severity) == ("/a/env/K", Severity.WARNING)
    assert readers in found.message
    assert "as written" in found.message
    if becomes is None:
        assert found.edits == ()
    else:
        result = mended(text, found)
        assert json.loads(result)["a"]["env"]["K"] == becomes
        assert findings(result, {"MH304"}) == []


@pytest.mark.parametrize(
    "value", ["${TOKEN}", "$", "$5", "a$WORD", "price$", "100%", "%20AB%20", "%AB%20", "{TOKEN}", "$$TOKEN", "$select"]
)
def test_texts_that_only_resemble_a_placeholder_are_let_be(value):
    assert entry_findings({**STDIO, "env": {"K": value}}, {"MH304"}) == []


def test_a_script_is_left_to_its_shell():
    script = ["-c", "exec npx server --root $HOME"]
    assert entry_findings({"type": "stdio", "command": "/bin/sh", "args": script}, {"MH304"}) == []
    assert len(entry_findings({**STDIO, "args": script}, {"MH304"})) == 1


def test_without_pi_nobody_expands_its_spelling():
    found = only(entry_findings({**STDIO, "env": {"K": "{env:TOKEN}"}}, {"MH304"}, runtimes=("claude", "codex")))
    assert "on every runtime" in found.message


def test_a_value_with_an_exclamation_mark_runs_on_pi_and_is_not_shown():
    text = '{\n "a": {"type": "stdio", "command": "c", "env": {\n  "K": "!hunter2 --now"}}\n}'
    found = only(findings(text, {"MH305"}))
    assert (found.severity, found.runtimes) == (Severity.ERROR, ("pi@0.84.1+2.32.1",))
    assert where(found) == (3, 8)
    assert "hunter2" not in found.message


@pytest.mark.parametrize(
    "entry", [{**STDIO, "env": {"K": "!!x"}}, {**STDIO, "env": {"K": "x!"}}, {**STDIO, "args": ["!x"]}]
)
def test_two_marks_and_other_places_run_nothing(entry):
    assert entry_findings(entry, {"MH305"}) == []


def test_a_header_runs_on_pi_too_and_nothing_runs_without_pi():
    entry = {**REMOTE, "headers": {"K": "!x"}}
    assert len(entry_findings(entry, {"MH305"})) == 1
    assert entry_findings(entry, {"MH305"}, runtimes=("claude", "codex")) == []


@pytest.mark.parametrize(
    ("value", "severities"),
    [
        (" ", [Severity.WARNING]),
        ("\t\u00a0", [Severity.WARNING]),
        ("${A:-}", [Severity.NOTE]),
        ("${A:- }${B:-}", [Severity.NOTE]),
        ("", []),
        ("${A}", []),
        ("${A} ${B:-}", []),
        ("x${A:-}", []),
    ],
)
def test_a_value_that_comes_out_blank_is_dropped(value, severities):
    found = entry_findings({**STDIO, "env": {"K": value}}, {"MH306"})
    assert [each.severity for each in found] == severities
    assert all("env.K is dropped at prepare" in each.message for each in found)
    assert entry_findings({**STDIO, "args": [value]}, {"MH306"}) == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({**STDIO, "args": ["${workspaceFolder}/x"]}, "Nothing here expands VS Code's and Cursor's variables"),
        ({**STDIO, "args": ["${workspaceFolderBasename}"]}, "Nothing here expands VS Code's and Cursor's variables"),
        ({**STDIO, "env": {"K": "${userHome}"}}, "Nothing here expands VS Code's and Cursor's variables"),
        ({"type": "stdio", "command": "${workspaceFolder}/x"}, "Nothing here expands VS Code's and Cursor's variables"),
        ({**STDIO, "env": {"K": "${input:api-key}"}}, "Write ${API_KEY} and seed that secret: only an editor knows"),
        ({**STDIO, "env": {"K": "${env:acme_token}"}}, "Write ${ACME_TOKEN} and seed that secret"),
        ({**STDIO, "env": {"K": "${acmeToken}"}}, "Write ${ACMETOKEN}, in upper case"),
        ({**STDIO, "env": {"K": "${acme_token:-x}"}}, "Write ${ACME_TOKEN}, in upper case"),
        ({**STDIO, "env": {"K": "${V:?m}"}}, "Write ${V}:"),
        ({**STDIO, "env": {"K": "${V-d}"}}, "Write ${V:-default}:"),
        ({"type": "stdio", "command": "${BIN}"}, "Write the value out: nothing is resolved in command."),
        ({**STDIO, "env": {"K": "${1X}"}}, "Write ${NAME} in upper case"),
    ],
)
def test_the_fix_fits_the_form_that_was_written(entry, said):
    assert only(entry_findings(entry, {"MH301"})).fix.startswith(said)
