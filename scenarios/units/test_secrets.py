"""Placeholders of a catalog entry: what is scanned, what is resolved, and what fails."""

from __future__ import annotations

import copy

import pytest

from harness.reference.catalog.catalog import read_catalog
from harness.reference.secrets.interpolator import resolve_entry, resolve_servers
from harness.reference.secrets.placeholders import (
    MissingVariableError,
    foreign_placeholders,
    resolve_text,
    variables,
)

SECRET = "s3cr3t-marker"


def lookup(**values: str):
    return values.get


@pytest.mark.requirement("secrets-grammar")
@pytest.mark.parametrize(
    ("text", "values", "resolved"),
    [
        ("${V}", {"V": "x"}, "x"),
        ("${A}-${B:-z}", {"A": "1"}, "1-z"),
        ("${U:-http://h:1/p}", {}, "http://h:1/p"),
        ("${V:-}", {}, ""),
        ("${_A1}", {"_A1": "v"}, "v"),
        ("Bearer ${TOK}", {"TOK": "tok123"}, "Bearer tok123"),
        ("${lower}", {"lower": "x"}, "${lower}"),
        ("${MixedCase}", {"MixedCase": "x"}, "${MixedCase}"),
        ("${A}\n", {"A": "1"}, "1\n"),
        ("${A:-two\nlines}", {}, "two\nlines"),
    ],
)
def test_a_placeholder_is_an_upper_case_name_with_an_optional_default(text, values, resolved):
    assert resolve_text(text, values.get) == resolved


@pytest.mark.requirement("secrets-non-placeholders-literal")
@pytest.mark.parametrize(
    "text", ["${lower}", "${1A}", "${ V }", "$V", "${V-d}", "${V:?m}", "${V:+d}", "{{V}}", "${}", "${V"]
)
def test_every_other_form_is_left_as_it_is(text):
    assert resolve_text(text, {"V": "x", "lower": "y", "1A": "z"}.get) == text


@pytest.mark.requirement("secrets-values-not-rescanned")
def test_a_value_is_never_scanned_again():
    assert resolve_text("${A}", lookup(A="${B}", B="no")) == "${B}"
    assert resolve_text("${A}", lookup(A="${A}")) == "${A}"
    assert resolve_text("${A}", lookup(A=r"\1 \g<0>")) == r"\1 \g<0>"


@pytest.mark.requirement("secrets-nested-default-trap")
def test_a_default_ends_at_the_first_closing_brace():
    assert resolve_text("${A:-${B}}", lookup(B="b")) == "${B}"
    assert resolve_text("${A:-${B}}", lookup(A="x", B="b")) == "x}"


@pytest.mark.requirement("secrets-blank-is-missing")
@pytest.mark.parametrize("blank", ["", "  ", "\t\n", "\u00a0"])
def test_a_blank_value_counts_as_unset(blank):
    assert resolve_text("${V:-d}", lookup(V=blank)) == "d"
    with pytest.raises(MissingVariableError, match="'V'"):
        resolve_text("${V}", lookup(V=blank))


@pytest.mark.requirement("secrets-missing-error-type")
def test_the_first_missing_name_is_named_in_the_error():
    with pytest.raises(MissingVariableError) as neither:
        resolve_text("${A}${B}", lookup())
    with pytest.raises(MissingVariableError) as second:
        resolve_text("${A}${B}", lookup(A="1"))
    assert (str(neither.value), second.value.name) == ("Required environment variable 'A' not set", "B")


@pytest.mark.requirement("secrets-placeholders-env-headers")
def test_env_and_headers_are_resolved():
    entry = {"env": {"A": "x${T}y"}, "headers": {"X-K": "${T}"}}
    assert resolve_entry(entry, lookup(T="1")) == {"env": {"A": "x1y"}, "headers": {"X-K": "1"}}


@pytest.mark.requirement("secrets-placeholders-args-url", "secrets-nonstrings-untouched")
def test_args_and_url_are_resolved_and_what_is_no_text_is_handed_through():
    entry = {
        "args": ["-y", "--token=${T}", 42, None],
        "url": "https://h.test/${T}",
        "env": {"N": 5, "B": True},
    }
    assert resolve_entry(entry, lookup(T="1")) == {
        "args": ["-y", "--token=1", 42, None],
        "url": "https://h.test/1",
        "env": {"N": 5, "B": True},
    }


@pytest.mark.requirement("secrets-codex-http-headers")
def test_codex_header_tables_are_resolved_too():
    assert resolve_entry({"http_headers": {"X": "a-${T}"}}, lookup(T="1")) == {"http_headers": {"X": "a-1"}}


@pytest.mark.requirement("secrets-placeholders-not-elsewhere")
def test_nothing_is_resolved_in_keys_command_cwd_oauth_title_and_description():
    entry = {
        "command": "${BIN}",
        "cwd": "/a/${X}",
        "env": {"${K}": "v"},
        "headers": {"${K}": "v"},
        "oauth": {"clientId": "${X}", "clientSecret": "${X}"},
        "title": "${X}",
        "description": "${X}",
    }
    assert resolve_entry(entry, lookup(BIN="b", X="x", K="k")) == entry
    assert variables(entry) == ((), ())


@pytest.mark.requirement("secrets-blank-result-dropped")
def test_a_key_whose_value_comes_out_blank_is_removed_unless_the_catalog_wrote_an_empty_text():
    entry = {"env": {"P": "${P}", "BLANK": "${B:-}", "EMPTY": "", "W": "  "}, "args": ["", "${E:-}"]}
    assert resolve_entry(entry, lookup(P="yes")) == {"env": {"P": "yes", "EMPTY": ""}, "args": ["", ""]}
    assert resolve_entry({"headers": {"H": "${B:-}"}}, lookup()) == {"headers": {}}


@pytest.mark.requirement("secrets-no-rescue-per-entry")
def test_one_missing_variable_fails_all_entries():
    healthy = {f"ok{number}": {"command": "c", "env": {"A": "${T}"}} for number in range(20)}
    assert len(resolve_servers(healthy, lookup(T="1"))) == 20
    with pytest.raises(MissingVariableError, match="'NOPE'"):
        resolve_servers({**healthy, "broken": {"command": "c", "args": ["${NOPE}"]}, "z": {}}, lookup(T="1"))


@pytest.mark.requirement("secrets-required-variable")
@pytest.mark.parametrize(
    ("entry", "required", "optional"),
    [
        (
            {
                "url": "https://e.test/${TENANT}/mcp",
                "args": ["--profile", "${PROFILE}"],
                "headers": {"Authorization": "Bearer ${API_KEY}"},
                "env": {"MODE": "${MODE:-headless}", "REGION": "${REGION}"},
            },
            ("REGION", "API_KEY", "PROFILE", "TENANT"),
            ("MODE",),
        ),
        ({"args": ["${V}", "${V:-d}"]}, ("V",), ("V",)),
        ({"args": ["${lower}"]}, (), ()),
        ({"command": "${BIN}"}, (), ()),
        ({"env": {"A": "${B}${A}"}, "args": ["${B}", 1, None]}, ("B", "A"), ()),
        ({"env": "${A}", "headers": ["${B}"], "args": "${C}", "url": 7}, (), ()),
    ],
)
def test_required_variables_are_listed_once_in_scan_order(entry, required, optional):
    assert variables(entry) == (required, optional)


@pytest.mark.requirement("secrets-catalog-has-placeholder")
def test_a_resolved_value_never_reaches_the_catalog_or_its_snapshot():
    tree = {
        "a": {
            "type": "stdio",
            "command": "npx",
            "args": ["--token=${TOKEN}"],
            "env": {"T": "${TOKEN}"},
        },
        "b": {"type": "http", "url": "https://h/${TOKEN}", "headers": {"X": "${TOKEN}"}},
    }
    before = copy.deepcopy(tree)
    catalog = read_catalog(tree)
    resolved = resolve_servers({name: entry.raw for name, entry in catalog.entries.items()}, lookup(TOKEN=SECRET))
    assert resolved["a"]["env"] == {"T": SECRET}
    assert tree == before
    assert SECRET not in catalog.snapshot_text()
    assert catalog.snapshot_text().count("${TOKEN}") == 4


@pytest.mark.requirement("secrets-foreign-placeholder-lint")
@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ({"env": {"A": "${lower}"}}, [(("env", "A"), "${lower}")]),
        ({"command": "${BIN}"}, [(("command",), "${BIN}")]),
        ({"oauth": {"clientSecret": "${S}"}}, [(("oauth", "clientSecret"), "${S}")]),
        ({"cwd": "/a/${X:-d}"}, [(("cwd",), "${X:-d}")]),
        ({"args": ["ok", "${V:?m}"]}, [(("args", 1), "${V:?m}")]),
        ({"url": "https://${1A}/"}, [(("url",), "${1A}")]),
        ({"headers": {"H": "${A:-${B}}"}}, [(("headers", "H"), "${B}")]),
        ({"env": {"V": "${V:-d}", "W": "${W}", "N": 5}}, []),
        ({"env": {"V": "$V {{V}} ${"}, "title": "${T}", "description": "${lower}"}, []),
        ({"env": {"${K}": "v"}}, []),
    ],
)
def test_placeholders_that_readiness_cannot_see_are_reported(entry, found):
    assert list(foreign_placeholders(entry)) == found
